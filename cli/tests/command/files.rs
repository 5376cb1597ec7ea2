//! `abide run`: the files that it writes besides arrays.

#[cfg(unix)]
use super::json;
use super::{Place, exists};

#[test]
fn pictures_in_and_out() {
    let place = Place::new();
    let grey = image::GrayImage::from_fn(7, 5, |x, y| image::Luma([(x * 30 + y) as u8]));
    grey.save(place.path("in.png")).unwrap();
    place.works("run heat --steps 0 --input in.png --output out.npy --output out.png --backend cpu");
    let out = place.read("out.npy");
    assert_eq!(out.shape.extents(), [5, 7]);
    assert_eq!(out.values.get(8), Some(f64::from(31.0f32 / 255.0)));
    assert_eq!(image::open(place.path("out.png")).unwrap().into_rgb8().dimensions(), (7, 5));
    grey.save(place.path("in.jpg")).unwrap();
    place.works("run life --steps 1 --input in.jpg --backend cpu");
}

#[test]
fn a_line_and_a_box_have_pictures_too() {
    let place = Place::new();
    place.works("run heat --size 40 --steps 3 --output line.png --backend cpu");
    assert_eq!(image::open(place.path("line.png")).unwrap().width(), 40);
    place.works("run heat --size 3x4x5 --steps 3 --output box.png --backend cpu");
    assert_eq!(image::open(place.path("box.png")).unwrap().into_rgb8().dimensions(), (5, 4));
}

#[test]
fn frames_are_numbered_by_the_step_over_every() {
    let place = Place::new();
    place.works("run gray-scott --size 16x16 --steps 25 --frames out_%03d.png --every 10 --backend cpu");
    assert_eq!(place.names(), ["out_000.png", "out_001.png", "out_002.png"]);
    place.works("run gray-scott --size 16x16 --steps 20 --frames u=u%d.npy --every 10 --backend cpu");
    place.works("run gray-scott --size 16x16 --steps 10 --output u=at10.npy --backend cpu");
    assert_eq!(place.read("u1.npy"), place.read("at10.npy"));
}

#[test]
fn a_movie_has_the_start_and_every_frame() {
    let place = Place::new();
    place.works("run wave --size 20x30 --steps 35 --output w.gif --every 10 --range -1:1 --backend cpu");
    let file = std::fs::File::open(place.path("w.gif")).unwrap();
    let mut decoder = gif::DecodeOptions::new().read_info(file).unwrap();
    assert_eq!((decoder.width(), decoder.height()), (30, 20));
    let mut frames = 0;
    while decoder.read_next_frame().unwrap().is_some() {
        frames += 1;
    }
    assert_eq!(frames, 4);
}

/// The bar and the words stand beside the cells, which have the colours that they have without.
#[test]
fn pictures_have_a_colour_bar_where_it_is_asked_for() {
    let place = Place::new();
    let run = "run wave --size 20x30 --steps 4 --every 2 --range -1:1 --backend cpu";
    place.works(&format!("{run} --output a.png --frames a%d.png"));
    place.works(&format!("{run} --output b.png --frames b%d.png --output b.gif --annotate"));
    let picture = |name: &str| image::open(place.path(name)).unwrap().into_rgb8();
    let (plain, annotated) = (picture("a.png"), picture("b.png"));
    let (width, height) = annotated.dimensions();
    assert!(width > 30 + 50 && height > 48, "{width}x{height}");
    assert_eq!(picture("b1.png").dimensions(), (width, height));
    let holds = |left: u32, top: u32| {
        plain.enumerate_pixels().all(|(x, y, colour)| annotated.get_pixel(left + x, top + y) == colour)
    };
    let places = (0..height - 20).flat_map(|top| (0..width - 30).map(move |left| (left, top)));
    let (left, top) = places.clone().find(|(left, top)| holds(*left, *top)).expect("the cells are there");
    // The highest value's colour is at the top of the bar, the lowest's at its foot.
    let map = abide::io::Colormap::default();
    let column = |x: u32| [annotated.get_pixel(x, top).0, annotated.get_pixel(x, top + 47).0];
    assert!((left + 31..width).any(|x| column(x) == [map.at(1.0), map.at(0.0)]), "no bar");
    // Axes stand at the left of the cells and below them.
    let is_ink = |x: u32, y: u32| annotated.get_pixel(x, y).0 == [0; 3];
    assert!((top..top + 20).all(|y| is_ink(left - 1, y)) && (left..left + 30).all(|x| is_ink(x, top + 20)));
    let file = std::fs::File::open(place.path("b.gif")).unwrap();
    let decoder = gif::DecodeOptions::new().read_info(file).unwrap();
    assert_eq!((u32::from(decoder.width()), u32::from(decoder.height())), (width, height));
}

/// Every colour map colours pictures, frames and movies, each with one scale for all frames.
#[test]
fn pictures_have_the_colour_map_that_is_asked_for() {
    let place = Place::new();
    std::fs::write(place.path("ramp.toml"), RAMP).unwrap();
    for map in abide::io::Colormap::all() {
        place.works(&format!(
            "run ramp.toml --steps 4 --every 2 --backend cpu --colormap {map} --output m.gif --frames f%d.png \
             --output last.png"
        ));
        let picture = |name: &str| image::open(place.path(name)).unwrap().into_rgb8();
        // The field grows from 0 to 4. A picture alone spans its own values, of which there is one.
        let ends = |place: f64| map.at(if map.name() == "diverging" { 0.5 + place / 2.0 } else { place });
        assert_eq!(picture("f2.png").get_pixel(0, 0).0, ends(1.0), "{map}");
        assert_eq!(picture("f1.png").get_pixel(0, 0).0, ends(1.0), "{map}: the range so far");
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(std::fs::File::open(place.path("m.gif")).unwrap()).unwrap();
        for share in [0.0, 0.5, 1.0] {
            let frame = decoder.read_next_frame().unwrap().unwrap();
            let near = frame.buffer.iter().zip(ends(share)).all(|(a, b)| a.abs_diff(b) <= 3);
            assert!(near, "{map} {share}: {:?} {:?}", &frame.buffer[..3], ends(share));
        }
    }
    let run = "run heat --size 8x8 --steps 1 --output u.png";
    place.fails(&format!("{run} --colormap jet"), &["no colour map is named `jet`", "did you mean `turbo`?"]);
    place.fails(&format!("{run} --range 1:0"), &["range `1:0`", "write it like 0:1"]);
}

/// A field of one value, the number of the step.
const RAMP: &str = r#"
axes = 2
[fields]
u = 0.0
[[stages]]
u = "u + 1"
[run]
size = "6x6"
boundary = "periodic"
"#;

#[test]
fn vti_holds_all_fields_or_the_named() {
    let place = Place::new();
    place.works(
        "run fdtd-tm --size 6x8 --steps 3 --dtype f64 --output all.vti --output hx=one.vti --backend cpu",
    );
    let text = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    for part in [
        r#"Name="ez""#,
        r#"Name="hx""#,
        r#"Name="hy""#,
        r#"type="Float64""#,
        r#"WholeExtent="0 7 0 5 0 0""#,
        ">3</DataArray>",
    ] {
        assert!(text("all.vti").contains(part), "{part}");
    }
    assert!(text("one.vti").contains(r#"Name="hx""#) && !text("one.vti").contains(r#"Name="ez""#));
}

#[test]
fn a_checkpoint_splits_a_run_without_a_trace() {
    let place = Place::new();
    let model = "run gray-scott --backend cpu";
    let problem =
        "--size 19x23 --dtype f64 --boundary y=periodic,x=mirror --param feed=0.04 --input random:3";
    place.works(&format!("{model} {problem} --steps 100 --output u=whole.npy --output v=whole_v.npy"));
    place.works(&format!("{model} {problem} --steps 37 --checkpoint c.npz --every 20"));
    place.works(&format!("{model} --resume c.npz --steps 63 --output u=parts.npy --output v=parts_v.npy"));
    assert!(place.read("whole.npy").values.same_bits(&place.read("parts.npy").values));
    assert!(place.read("whole_v.npy").values.same_bits(&place.read("parts_v.npy").values));
    // Arguments that agree with the checkpoint may be given again; the numbers of frames go on.
    place.works(&format!(
        "{model} --resume c.npz --size 19x23 --dtype f64 --param feed=0.04 --steps 20 --frames f%d.png --every 10"
    ));
    // Step 37 is no frame of a run in one piece.
    let found = [0, 3, 4, 5].map(|number| exists(&place.path(&format!("f{number}.png"))));
    assert_eq!(found, [false, false, true, true]);
}

#[test]
fn heat_goes_on_with_its_conductivity_field() {
    let place = Place::new();
    place.works(
        "run heat --size 9x9 --input kappa=gaussian --steps 2 --checkpoint c.npz --every 2 --backend cpu",
    );
    assert!(place.works("run heat --resume c.npz --steps 2 --backend cpu").contains("heat-conductivity"));
}

#[test]
fn outputs_replace_what_was_there_and_leave_nothing_else() {
    let place = Place::new();
    for name in ["a.png", "b.npy", "c.vti", "d.gif", "e.npz"] {
        std::fs::write(place.path(name), "old").unwrap();
    }
    place.works(
        "run heat --size 8x8 --steps 4 --output a.png --output b.npy --output c.vti --output d.gif --checkpoint e.npz --every 2 --backend cpu",
    );
    assert_eq!(place.names(), ["a.png", "b.npy", "c.vti", "d.gif", "e.npz"]);
    assert!(place.contents().iter().all(|(_, contents)| contents != b"old"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_still_reports_and_writes() {
    let place = Place::new();
    let mut command = place.command("run heat --size 64x64 --steps 1000000000000 --output y.npy --checkpoint c.npz --every 1000 --backend cpu --json");
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let begun = std::time::Instant::now();
    while !exists(&place.path("c.npz")) && begun.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report = json(&String::from_utf8(output.stdout).unwrap());
    assert!(report["steps"].as_u64().unwrap() > 0);
    assert!(report["notes"].to_string().contains("stopped after"), "{report}");
    assert_eq!(place.read("y.npy").shape.extents(), [64, 64]);
}
