//! `abide run`: its results.

use abide::Array;

use super::{Place, json, noise, words};

/// Computes five points, the outermost cells kept: the catalogue's 2d5pt, written down once more.
fn five_points(u: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut new = u.to_vec();
    for y in 1..rows - 1 {
        for x in 1..columns - 1 {
            let at =
                |dy: isize, dx: isize| u[(y as isize + dy) as usize * columns + (x as isize + dx) as usize];
            let mut sum = 0.1 * at(-1, 0);
            for (weight, value) in
                [(0.102, at(0, -1)), (0.588, at(0, 0)), (0.104, at(0, 1)), (0.106, at(1, 0))]
            {
                sum = f64::mul_add(weight, value, sum);
            }
            new[y * columns + x] = sum;
        }
    }
    new
}

#[test]
fn a_file_in_and_a_file_out_to_the_bit() {
    let place = Place::new();
    let mut expected = noise(13 * 17, 1);
    place.write("x.npy", &[13, 17], &Array::F64(expected.clone()));
    let out = place
        .works("run 2d5pt --size 13x17 --steps 9 --dtype f64 --input x.npy --output y.npy --backend cpu -v");
    for _ in 0..9 {
        expected = five_points(&expected, 13, 17);
    }
    let y = place.read("y.npy");
    assert!(y.values.same_bits(&Array::F64(expected)));
    assert_eq!(y.shape.extents(), [13, 17]);
    for words in [
        "2d5pt",
        "13x17 f64",
        "boundary fixed",
        "9 steps",
        "cpu on ",
        "Cells/s",
        "bytes per cell and step",
        "in the whole run",
        "projected peak",
        "y.npy (u)",
    ] {
        assert!(out.contains(words), "{out} does not say {words}");
    }
    assert_eq!(place.names(), ["x.npy", "y.npy"]);
}

#[test]
fn the_size_is_the_inputs_and_zero_steps_give_it_back() {
    let place = Place::new();
    let input = Array::F32(noise(2 * 3 * 5, 2).into_iter().map(|x| x as f32).collect());
    place.write("x.npy", &[2, 3, 5], &input);
    place.works("run heat --steps 0 --input x.npy --output y.npy --backend cpu");
    assert_eq!(place.read("y.npy"), place.read("x.npy"));
}

#[test]
fn an_input_on_faces_has_the_extents_of_its_field() {
    let place = Place::new();
    place.write("f.npy", &[3, 6], &Array::F64(noise(18, 5)));
    place.write("x.npy", &[3, 5], &Array::F64(noise(15, 6)));
    let line = "run cloverleaf --dtype f64 --steps 0 --input vol_flux_x=f.npy --input density0=x.npy \
                --output vol_flux_x=y.npy --backend cpu";
    place.works(line);
    assert_eq!(place.read("y.npy"), place.read("f.npy"));
}

#[test]
fn several_fields_by_name() {
    let place = Place::new();
    let (u, v) = (noise(77, 3), noise(77, 4));
    place.write("a.npy", &[7, 11], &Array::F64(u.clone()));
    place.write("b.npy", &[7, 11], &Array::F64(v.clone()));
    let line = "run gray-scott --dtype f64 --input u=a.npy --input v=b.npy --output u=c.npy --output v=d.npy --output shown.npy --backend cpu";
    place
        .works(&format!("{line} --steps 1 --param du=0.125 --param dv=0 --param feed=0.5 --param kill=0.25"));
    let wrap = |values: &[f64], y: usize, x: usize| values[y % 7 * 11 + x % 11];
    let close = |a: f64, b: f64| (a - b).abs() < 1e-14;
    let (c, d) = (place.read("c.npy").values.to_f64(), place.read("d.npy").values.to_f64());
    for (y, x) in [(0, 0), (3, 5), (6, 10)] {
        let (here, reaction) = (wrap(&u, y, x), wrap(&u, y, x) * wrap(&v, y, x).powi(2));
        let around =
            wrap(&u, y + 6, x) + wrap(&u, y + 1, x) + wrap(&u, y, x + 10) + wrap(&u, y, x + 1) - 4.0 * here;
        assert!(close(wrap(&c, y, x), here + 0.125 * around - reaction + 0.5 * (1.0 - here)));
        assert!(close(wrap(&d, y, x), wrap(&v, y, x) + reaction - 0.75 * wrap(&v, y, x)));
    }
    assert_eq!(place.read("shown.npy"), place.read("d.npy"), "the model shows v");
}

#[test]
fn a_conductivity_field_changes_the_model() {
    let place = Place::new();
    place.write("k.npy", &[6, 6], &Array::F64(vec![0.1; 36]));
    let out = place.works(
        "run heat --dtype f64 --steps 20 --input kappa=k.npy --input random:5 --output u.npy --backend cpu",
    );
    assert!(out.contains("heat-conductivity"), "{out}");
    place.works("run heat --dtype f64 --steps 20 --size 6x6 --input random:5 --output w.npy --backend cpu");
    let pair = |name: &str| place.read(name).values.to_f64();
    assert!(pair("u.npy").iter().zip(pair("w.npy")).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn named_starts_are_for_all_fields_that_change_or_for_one() {
    let place = Place::new();
    place
        .works("run wave --size 9x9 --steps 0 --input point --output u=u.npy --output w=w.npy --backend cpu");
    assert_eq!(place.read("u.npy"), place.read("w.npy"));
    assert_eq!(place.read("u.npy").values.get(40), Some(1.0));
    place.works(
        "run gray-scott --size 9x9 --steps 0 --input v=random:7 --output u=u.npy --output v=v.npy --backend cpu",
    );
    place.works("run gray-scott --size 9x9 --steps 0 --input own --output u=own.npy --backend cpu");
    assert_eq!(place.read("u.npy"), place.read("own.npy"));
    place.works("run heat --size 9x9 --steps 0 --input random:7 --output h.npy --backend cpu");
    assert_eq!(place.read("v.npy").values.len(), 81);
    assert_ne!(place.read("v.npy"), place.read("own.npy"));
}

#[test]
fn boundaries_are_read_per_axis_and_side() {
    let place = Place::new();
    let out = place
        .works("run heat --size 8x9 --steps 2 --boundary y=periodic,x-=mirror,x+=constant=1.5 --backend cpu");
    assert!(out.contains("boundary y=periodic,x-=mirror,x+=constant=1.5"), "{out}");
    let out = place.works("run heat --size 8x9 --steps 2 --boundary x=fixed --backend cpu");
    assert!(
        out.contains("boundary y=mirror,x=fixed"),
        "an axis that is not named keeps the model's own: {out}"
    );
}

#[test]
fn the_report_as_json() {
    let place = Place::new();
    let report = json(&place.works("run 3d7pt --size 5x6x7 --steps 11 --dtype f64 --backend cpu --json"));
    assert_eq!(report["backend"], "cpu");
    assert_eq!(report["steps"], 11);
    assert_eq!(report["cells"], 210);
    assert_eq!(report["non_finite"], 0);
    assert_eq!(report["plan"]["dtype"], "f64");
    assert_eq!(report["plan"]["shape"], serde_json::json!([5, 6, 7]));
    assert!(report["gcells_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn defaults_are_f32_and_two_dimensions() {
    let place = Place::new();
    let shape = |line: &str| json(&place.works(line))["plan"]["shape"].clone();
    assert_eq!(shape("run heat --steps 0 --backend cpu --json"), serde_json::json!([512, 512]));
    assert_eq!(shape("run 1d3pt --steps 0 --backend cpu --json"), serde_json::json!([4096]));
    assert_eq!(shape("run 3d7pt --steps 0 --backend cpu --json"), serde_json::json!([128, 128, 128]));
    assert_eq!(json(&place.works("run heat --steps 0 --backend cpu --json"))["plan"]["dtype"], "f32");
}

#[test]
fn what_is_not_finite_is_carried_and_counted() {
    let place = Place::new();
    let mut values = vec![1.0; 25];
    (values[0], values[12]) = (f64::INFINITY, f64::NAN);
    place.write("x.npy", &[5, 5], &Array::F64(values));
    let out = place.works("run 2d5pt --dtype f64 --steps 1 --input x.npy --output y.npy --backend cpu");
    assert!(out.contains("6 of 25 values are NaN or infinite"), "{out}");
    let y = place.read("y.npy").values.to_f64();
    assert!([6, 8, 16, 18].iter().all(|&at| y[at].is_finite()) && y[12].is_nan() && y[0] == f64::INFINITY);
}

/// A scheme beyond its limit: a warning says when it was noticed, and what the limit is; the status is 0 unless asked.
#[test]
fn a_run_that_goes_wrong_says_so() {
    let place = Place::new();
    let line = "run heat --size 33x33 --param kappa=0.9 --steps 2000 --backend cpu";
    let output = place.command(line).output().unwrap();
    let reported = words(&output);
    assert_eq!(output.status.code(), Some(0), "{reported}");
    assert!(
        reported.starts_with("warning: ") && reported.contains("of 1089 values are NaN or infinite"),
        "{reported}"
    );
    assert!(reported.contains("kappa is 0.9 and is stable up to 1/(2·axes), here with 2 axes"), "{reported}");
    let output = place.command(&format!("{line} --json --check-finite")).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", words(&output));
    let report = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!((&report["kind"], report["steps"].as_u64()), (&"not-finite".into(), Some(2000)));
    let since = &report["non_finite_since"];
    let (noticed, finite) =
        (since["noticed_after_step"].as_u64().unwrap(), since["finite_after_step"].as_u64().unwrap());
    assert!(
        report["error"].as_str().unwrap().contains(&format!("first found after step {noticed}")),
        "{report}"
    );
    // What is said of both steps is so.
    for (steps, is_finite) in [(finite, true), (noticed, false)] {
        let report =
            json(&place.works(&format!(
                "run heat --size 33x33 --param kappa=0.9 --steps {steps} --backend cpu --json"
            )));
        assert_eq!(report["non_finite"].as_u64() == Some(0), is_finite, "{steps}: {report}");
    }
    place.works("run heat --size 33x33 --steps 20 --backend cpu --check-finite");
    let report = json(&place.works("run heat --size 33x33 --steps 20 --backend cpu --json"));
    assert!(report["non_finite_since"].is_null(), "{report}");
    // Values that were not finite to begin with are reported as such.
    let mut values = vec![1.0; 25];
    values[12] = f64::NAN;
    place.write("x.npy", &[5, 5], &Array::F64(values));
    let reported = words(&place.command("run life --steps 0 --input x.npy --backend cpu").output().unwrap());
    assert!(
        reported.contains("1 of 25 values are NaN or infinite: some before the first step"),
        "{reported}"
    );
}

#[test]
fn rates_and_amounts_have_units_that_fit() {
    let place = Place::new();
    let out = place.works("run 1d3pt --size 3 --steps 1 --execution stepwise --backend cpu --verbose");
    assert!(out.contains(": 1 step in "), "{out}");
    let lines = out.lines().filter(|line| line.starts_with("rate") || line.starts_with("moved"));
    assert!(lines.clone().count() == 2 && lines.clone().all(|line| !line.contains(" 0.0")), "{out}");
    let out = place.works("plan 1d3pt --size 3 --device a100");
    assert!(out.contains("12 B for all fields together"), "{out}");
    place.fails("run 2d5pt --size 30000000x30000000 --steps 1 --backend cpu", &["choose a smaller --size"]);
    let reported =
        words(&place.command("run 2d5pt --size 30000000x30000000 --steps 1 --backend cpu").output().unwrap());
    assert!(!reported.contains("--dtype f32"), "{reported}");
    place.fails("run 2d5pt --size 30000000x30000000 --dtype f64 --steps 1 --backend cpu", &["--dtype f32"]);
}

#[test]
fn rounding_an_input_to_f32_is_noted() {
    let place = Place::new();
    place.write("x.npy", &[4], &Array::F64(vec![0.1; 4]));
    let out = place.works("run 1d3pt --steps 0 --input x.npy --output y.npy --backend cpu");
    assert!(out.contains("input in f64 rounded to f32"), "{out}");
    assert_eq!(place.read("y.npy").values, Array::F32(vec![0.1; 4]));
}

#[test]
fn pinned_threads_change_no_bit() {
    let place = Place::new();
    let line = "run 2d5pt --size 300x200 --steps 20 --backend cpu --output";
    place.works(&format!("{line} free.npy"));
    let pinned = json(&place.works(&format!("{line} pinned.npy --pin --json")));
    assert_eq!(pinned["plan"]["schedule"]["cpu"]["pinned"], true, "{pinned}");
    assert!(place.read("free.npy").values.same_bits(&place.read("pinned.npy").values));
}

#[test]
fn auto_says_what_it_passed_over() {
    let place = Place::new();
    let report = json(&place.works("run heat --size 8x8 --steps 1 --json"));
    if report["backend"] == "cpu" {
        let notes = report["notes"].to_string();
        assert!(notes.contains("auto: backend cuda") && notes.contains("auto: backend wgpu"), "{notes}");
    }
}

/// A report says what was asked and, in a line, how it ran; the rest is for --verbose.
#[test]
fn a_report_begins_with_what_was_asked() {
    let place = Place::new();
    let line = "run gray-scott --size 20x30 --steps 7 --output v.png";
    let names = |out: &str| -> Vec<String> {
        out.lines().map(|line| line.split_whitespace().next().unwrap_or_default().to_owned()).collect()
    };
    let short = place.works(&format!("{line} --backend cpu"));
    assert_eq!(names(&short), ["gray-scott", "rate", "wrote", "how"], "{short}");
    assert!(short.contains("how         cpu on ") && short.contains("thread"), "{short}");
    let long = place.works(&format!("{line} --backend cpu --verbose"));
    assert_eq!(
        names(&long),
        ["gray-scott", "rate", "wrote", "how", "plan", "moved", "least", "peak"],
        "{long}"
    );
    // Backends that are not here are of interest to those who ask.
    let [short, long] = ["", " -v"].map(|verbose| place.works(&format!("{line}{verbose}")));
    assert!(!short.contains("is unavailable"), "{short}");
    if long.contains("how         cpu on") {
        assert!(long.contains("note        auto: backend cuda is unavailable: "), "{long}");
    }
    // A model file may ask for it too.
    std::fs::write(
        place.path("m.toml"),
        "base = \"heat\"\naxes = 2\n[run]\nsize = \"8x8\"\nsteps = 1\nverbose = true\nbackend = \"cpu\"\n",
    )
    .unwrap();
    assert!(place.works("run m.toml").contains("projected peak"));
}

#[test]
fn a_wish_that_is_not_followed_is_noted() {
    let place = Place::new();
    let out = place.works("run heat --size 8x8 --steps 1 --cache registers --backend cpu");
    assert!(out.contains("cache registers was asked for, the plan has cache none"), "{out}");
}
