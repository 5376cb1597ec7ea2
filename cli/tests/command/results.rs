//! Files of all fields, in and out: HDF5, `.npz`, TIFF, and what they say of where they come from.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use abide::io::{self, read};
use abide::{Array, Choice, DType, Shape, Simulation};

use super::{Place, exists, json, noise};

fn named(path: PathBuf, behind: &str) -> PathBuf {
    PathBuf::from(format!("{}:{behind}", path.display()))
}

#[test]
fn a_run_goes_on_from_the_last_step_of_a_file() {
    let place = Place::new();
    let line = "run gray-scott --size 12x17 --dtype f64 --backend cpu";
    place.works(&format!("{line} --steps 60 --every 20 --output a.h5 --output a.npz"));
    place.works(&format!("{line} --steps 100 --output v=whole.npy"));
    let whole = place.read("whole.npy").values;
    for start in [
        "--input a.h5",
        "--input a.npz",
        "--input u=a.h5:/u@-1 --input v=a.h5:v@3",
        "--input u=a.npz --input v=a.h5",
    ] {
        place.works(&format!("run gray-scott --dtype f64 --backend cpu --steps 40 {start} --output v=b.npy"));
        assert!(place.read("b.npy").values.same_bits(&whole), "{start}");
    }
    for (step, frame) in [(0, 0), (20, 1), (60, 3)] {
        place.works(&format!("{line} --steps {step} --output u=u.npy"));
        let u = read(&named(place.path("a.h5"), &format!("u@{frame}"))).unwrap();
        assert!(u.values.same_bits(&place.read("u.npy").values), "{step}");
    }
    place.fails(&format!("{line} --steps 1 --input v=a.h5:v@4"), &["v has 4 steps, @4"]);
    place.fails(&format!("{line} --steps 1 --input v=a.npz:w"), &["no array w, but u, v"]);
    place.fails(&format!("{line} --steps 1 --input u=a.h5 --output a.h5"), &["would replace the input"]);
    place.fails("run cloverleaf --steps 1 --backend cpu --input a.npz", &["it holds u, v, the fields are"]);
}

#[test]
fn frames_are_due_as_others_and_end_with_the_last_step() {
    let place = Place::new();
    place.works("run heat --size 9x7 --steps 25 --every 10 --backend cpu --output run.h5 --output one.npz");
    let steps = read(&named(place.path("run.h5"), "step")).unwrap().values;
    assert_eq!(steps, Array::F64(vec![0.0, 10.0, 20.0, 25.0]));
    place.works(
        "run cloverleaf --size 12x12 --steps 9 --every time=0.05 --backend cpu --dtype f64 --output c.h5",
    );
    let of = |name: &str| read(&named(place.path("c.h5"), name)).unwrap().values;
    let times = of("t").to_f64();
    assert_eq!(of("time").to_f64(), times);
    assert!(times.len() > 2 && times.is_sorted() && times[0] == 0.0 && times[1] >= 0.05);
    // Fields on nodes, faces and cells stand in one file.
    let node = read(&named(place.path("c.h5"), "xvel0@-1")).unwrap().shape;
    let cell = read(&named(place.path("c.h5"), "density0@-1")).unwrap().shape;
    assert_eq!((node.extents(), cell.extents()), (&[13, 13][..], &[12, 12][..]));
    // A run that goes on would replace the frames before.
    let line = "run heat --size 9x7 --every 10 --backend cpu --checkpoint k.npz";
    place.works(&format!("{line} --steps 20"));
    place.fails(&format!("{line} --steps 20 --resume k.npz --output run.h5"), &["it is there already"]);
    place.works(&format!("{line} --steps 15 --resume k.npz --output more.h5"));
    let steps = read(&named(place.path("more.h5"), "step")).unwrap().values;
    assert_eq!(steps, Array::F64(vec![30.0, 35.0]));
}

#[test]
fn a_result_is_computed_again_with_the_same_bits() {
    let place = Place::new();
    place.write("k.npy", &[9, 7], &Array::F64(noise(63, 4)));
    let line = "run heat --input u=random:5 --input kappa=k.npy --dtype f64 --boundary x=periodic";
    place.works(&format!("{line} --steps 33 --every 11 --backend cpu --output run.h5 --output all.npz --record r.csv --probe u@1,1"));
    std::fs::remove_file(place.path("r.csv")).unwrap();
    for file in ["run.h5", "all.npz"] {
        let report = place.works(&format!("run {file} --backend cpu --output u=again.npy"));
        assert!(report.contains(&format!("the fields have the bits of {file}")), "{report}");
        let again = place.read("again.npy").values;
        assert!(again.same_bits(&read(&named(place.path("run.h5"), "u")).unwrap().values));
        let report = place.works(&format!("run {file} --backend cpu --steps 34"));
        assert!(report.contains(&format!("the fields differ from those of {file}")), "{report}");
        let held = json(&place.works(&format!("info {file} --json")));
        let own = &held["provenance"];
        assert_eq!((&own["steps"], &own["program"]), (&33.into(), &"heat-conductivity".into()));
        assert!(
            own["digest"].as_str().unwrap().len() == 64 && own["model"].as_str().unwrap().contains("[run]")
        );
        assert!(place.works(&format!("info {file}")).contains("digest      "));
    }
    assert!(!exists(&place.path("r.csv")));
    place.works("run heat --size 8x8 --steps 1 --every 1 --backend cpu --checkpoint c.npz");
    place.fails("run c.npz", &["it does not say which run it comes from"]);
    for (file, words) in
        [("c.npz", "checkpoint"), ("k.npy", "field 9x7 f64"), ("run.h5", "array       u 4x9x7 f64")]
    {
        let text = place.works(&format!("info {file}"));
        assert!(text.contains(words), "{text}");
    }
    place.fails("info r.csv", &["no input format has this extension"]);
}

#[test]
fn stacks_are_masks_and_results() {
    let place = Place::new();
    place.works(
        "run 3d7pt --size 5x6x7 --input random:2 --steps 3 --backend cpu --output u.tif --output u.npy",
    );
    let (tiff, npy) = (read(&place.path("u.tif")).unwrap(), place.read("u.npy"));
    assert!(tiff.values.same_bits(&npy.values) && tiff.shape == npy.shape);
    place.works("run 3d7pt --input u.tif --steps 2 --backend cpu --devices 2 --output a.npy");
    place.works("run 3d7pt --input u.npy --steps 2 --backend cpu --output b.npy");
    assert!(place.read("a.npy").values.same_bits(&place.read("b.npy").values));
}

/// Returns what is wrong with a file that a process which was killed has left, and its frames.
fn check_left(path: &Path, size: [usize; 2], most: usize) -> usize {
    let steps = read(&named(path.to_owned(), "step")).map_or(Vec::new(), |own| own.values.to_f64());
    let shape = Shape::new(&size).unwrap();
    let start: abide::Start = "random:3".parse().unwrap();
    let mut reference = Simulation::builder("heat")
        .size(&size)
        .dtype(DType::F32)
        .start("u", start)
        .backend(Choice::CPU)
        .build()
        .unwrap();
    let looks = steps.len().div_ceil(most).max(1);
    for (frame, &step) in steps.iter().enumerate() {
        assert_eq!(step, frame as f64 * 2.0);
        if frame % looks != 0 && frame + 1 != steps.len() {
            continue;
        }
        reference.run(step as u64 - reference.step()).unwrap();
        let read = read(&named(path.to_owned(), &format!("u@{frame}"))).unwrap();
        assert_eq!(read.shape, shape);
        assert!(read.values.same_bits(&reference.field("u").unwrap()), "frame {frame} of {}", steps.len());
    }
    let times = io::hdf5::contents(path).unwrap().into_iter().find(|own| own.name == "t").unwrap();
    assert_eq!(times.extents, [steps.len()]);
    steps.len()
}

/// Whenever a process is killed, all frames that it has closed can be read. `ABIDE_ALL` has 100 runs of ten million cells.
#[cfg(unix)]
#[test]
fn a_process_that_is_killed_leaves_all_frames_that_it_has_closed() {
    let has_all = std::env::var_os("ABIDE_ALL").is_some();
    let (kills, size, most) = if has_all { (100, [3125, 3200], 4) } else { (6, [41, 67], 30) };
    let mut frames = 0;
    for kill in 0..kills {
        let place = Place::new();
        let line = format!("run heat --size {}x{} --input random:3", size[0], size[1]);
        let mut child = place
            .command(&format!("{line} --steps 1000000 --every 2 --backend cpu --output run.h5"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let path = place.path("run.h5");
        let begun = Instant::now();
        while !exists(&path) && begun.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Not a multiple of anything.
        let wait = if has_all { 37 + 7 * kill } else { 3 + 17 * kill };
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        frames += check_left(&path, size, most);
    }
    assert!(frames > kills as usize, "{frames}");
}
