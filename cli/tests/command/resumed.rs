//! A run that was interrupted and goes on has the files of one run.

use super::Place;

/// Runs in one piece and in pieces that end at these steps, each going on from the checkpoint of the one before, with the
/// same options, and compares all files byte for byte.
fn same(model: &str, options: &str, ends: &[u64]) {
    started(model, "", options, ends);
}

/// The same of a run that starts by these inputs, which a checkpoint brings with it.
fn started(model: &str, inputs: &str, options: &str, ends: &[u64]) {
    let (whole, parts) = (Place::new(), Place::new());
    let last = ends.last().unwrap();
    let line = format!("{model} --backend cpu --checkpoint c.npz {options}");
    whole.works(&format!("{line} {inputs} --steps {last}"));
    let mut begun = 0;
    for end in ends {
        let resume = if begun > 0 { "--resume c.npz" } else { inputs };
        parts.works(&format!("{line} --steps {} {resume}", end - begun));
        begun = *end;
    }
    assert_eq!(whole.names(), parts.names(), "{line} {ends:?}");
    for ((path, expected), (_, found)) in whole.contents().iter().zip(parts.contents()) {
        assert!(*expected == found, "{line} {ends:?}: {}", path.display());
    }
}

#[test]
fn frames_keep_their_steps_names_and_bytes() {
    for ends in [&[7, 20][..], &[5, 20], &[10, 11, 12, 20], &[1, 2, 4, 20]] {
        same("run heat --size 9x9", "--every 5 --frames b%d.npy", ends);
    }
    started(
        "run heat --size 9x9",
        "--input random:3",
        "--every 4 --frames b%03d.vti --output o.npy",
        &[6, 13],
    );
}

/// Pictures share one scale, which the checkpoint keeps.
#[test]
fn pictures_keep_their_colours() {
    for (model, inputs) in [
        ("run heat --size 12x12", "--input point"),
        ("run wave --size 15x12", ""),
        ("run gray-scott --size 16x16", ""),
    ] {
        started(model, inputs, "--every 5 --frames b%d.png --output o.npy", &[7, 13, 26]);
        started(model, inputs, "--every 5 --frames b%d.png --range 0:1", &[5, 10, 26]);
    }
}

#[test]
fn records_and_probes_go_on_in_their_file() {
    let clover = "run cloverleaf --size 12x10 --dtype f64";
    for ends in [&[5, 12][..], &[4, 12], &[1, 2, 3, 12]] {
        same(clover, "--every 100 --record r.csv --probe density0@3,4", ends);
        same(clover, "--every 100 --record r.csv --record-every 4 --probe energy0@0,0", ends);
        same(
            "run heat --size 9x9",
            "--every 3 --record r.csv --record-every 2 --probe u@4,4 --frames f%d.npy",
            ends,
        );
    }
}

/// Marks of a scalar: frames are numbered by it, and the one at which a run ended is not written again.
#[test]
fn marks_keep_their_frames() {
    let clover = "run cloverleaf --size 12x10 --dtype f64";
    same(clover, "--every time=0.05 --frames f%d.npy --record r.csv", &[9, 20, 40]);
}

/// A run that was killed after its last checkpoint has rows and frames beyond it: they are written anew.
#[test]
fn what_came_after_the_checkpoint_is_written_anew() {
    let (whole, parts) = (Place::new(), Place::new());
    let line = "run heat --size 9x9 --backend cpu --every 5 --frames f%d.npy --record r.csv --probe u@4,4";
    whole.works(&format!("{line} --steps 23 --checkpoint c.npz"));
    parts.works(&format!("{line} --steps 10 --checkpoint c.npz"));
    parts.works(&format!("{line} --steps 17"));
    let reported = parts.works(&format!("{line} --steps 13 --resume c.npz --checkpoint c.npz"));
    assert!(reported.contains("r.csv (14 rows, behind the 10 of earlier steps)"), "{reported}");
    assert_eq!(whole.names(), parts.names());
    for ((path, expected), (_, found)) in whole.contents().iter().zip(parts.contents()) {
        assert!(*expected == found, "{}", path.display());
    }
}

/// A movie of each part: their frames, one after another, are at the steps of one run's.
#[test]
fn movies_have_their_frames_at_the_same_steps() {
    let place = Place::new();
    let frames = |name: &str| {
        let mut decoder =
            gif::DecodeOptions::new().read_info(std::fs::File::open(place.path(name)).unwrap()).unwrap();
        let mut count = 0;
        while decoder.read_next_frame().unwrap().is_some() {
            count += 1;
        }
        count
    };
    let line = "run wave --size 9x9 --backend cpu --every 5 --checkpoint c.npz";
    for (first, counts) in [(7, (2, 3)), (10, (3, 2))] {
        place.works(&format!("{line} --steps {first} --output a.gif"));
        place.works(&format!("{line} --steps {} --resume c.npz --output b.gif", 20 - first));
        assert_eq!((frames("a.gif"), frames("b.gif")), counts, "{first}");
    }
}
