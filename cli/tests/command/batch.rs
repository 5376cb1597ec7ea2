//! `abide run --batch`: many small domains at once, files with an axis of members.

use abide::Array;

use super::{Place, json, noise};

fn part(all: &Array, members: usize, number: usize) -> Array {
    let values = all.len() / members;
    all.part(number * values..(number + 1) * values).unwrap()
}

impl Place {
    /// Reads a file of a batch of domains of two axes as its extents and values.
    fn stack(&self, name: &str) -> (String, Array) {
        let loaded = self.read(name);
        (loaded.shape.to_string(), loaded.values)
    }
}

/// Parameters are spread, inputs and outputs have an axis of members, and each member is what it is alone.
#[test]
fn members_are_what_they_are_alone() {
    let place = Place::new();
    let all = Array::from_fn(abide::DType::F64, 3 * 13 * 17, |i| noise(3 * 13 * 17, 5)[i]);
    place.write("u.npy", &[3, 13, 17], &all);
    let line = "run heat --size 13x17 --dtype f64 --steps 20 --backend cpu";
    let report =
        place.works(&format!("{line} --batch 3 --param kappa=0.05:0.2 --input u.npy --output all.npy"));
    assert!(report.contains("3 members of 13x17 f64"), "{report}");
    let (shape, end) = place.stack("all.npy");
    assert_eq!(shape, "3x13x17");
    for (member, kappa) in [(0, "0.05"), (1, "0.125"), (2, "0.2")] {
        place.write("one.npy", &[13, 17], &part(&all, 3, member));
        place.works(&format!("{line} --param kappa={kappa} --input one.npy --output alone.npy"));
        assert!(part(&end, 3, member).same_bits(&place.read("alone.npy").values), "member {member}");
    }
    // A batch of one has its axis too, and the first value of a spread.
    place.works(&format!("{line} --batch 1 --param kappa=0.2:9 --input one.npy --output one-of-one.npy"));
    let (shape, end) = place.stack("one-of-one.npy");
    assert_eq!(shape, "1x13x17");
    assert!(end.same_bits(&place.read("alone.npy").values));
}

#[test]
fn starts_and_shared_inputs_are_for_all_members() {
    let place = Place::new();
    let line = "run 2d5pt --size 11x9 --steps 7 --backend cpu";
    place.works(&format!("{line} --batch 4 --input random:5 --output random.npy"));
    let (_, random) = place.stack("random.npy");
    for member in 0..4 {
        place.works(&format!("{line} --input random:{} --output alone.npy", 5 + member));
        assert!(part(&random, 4, member).same_bits(&place.read("alone.npy").values), "member {member}");
    }
    place.write("shared.npy", &[11, 9], &Array::F32(noise(99, 3).iter().map(|&x| x as f32).collect()));
    place.works(&format!("{line} --input shared.npy --output alone.npy"));
    place.works(&format!("{line} --batch 4 --input shared.npy --output shared-all.npy"));
    let (_, all) = place.stack("shared-all.npy");
    for member in 0..4 {
        assert!(part(&all, 4, member).same_bits(&place.read("alone.npy").values), "member {member}");
    }
}

/// Domains of three axes make files of four, which come back to the bit; one axis makes a picture.
#[test]
fn files_of_any_number_of_axes() {
    let place = Place::new();
    let line = "run 3d7pt --size 5x4x3 --batch 6 --backend cpu";
    place.works(&format!("{line} --steps 3 --input random:1 --output a.npy"));
    place.works(&format!("{line} --steps 0 --input a.npy --output b.npy"));
    assert_eq!(std::fs::read(place.path("a.npy")).unwrap(), std::fs::read(place.path("b.npy")).unwrap());
    let bytes = std::fs::read(place.path("a.npy")).unwrap();
    assert!(String::from_utf8_lossy(&bytes[..128]).contains("(6, 5, 4, 3)"));
    place.fails(&format!("{line} --steps 1 --output a.vti"), &["4 axes", "3 at most", "write .npy"]);
    place.works("run heat --size 40 --batch 8 --steps 3 --backend cpu --output lines.png");
    let picture = abide::io::read(&place.path("lines.png")).unwrap();
    assert_eq!(picture.shape.to_string(), "8x40");
    place.works("run heat --size 6x5 --batch 8 --steps 4 --every 2 --backend cpu --frames f%d.vti");
    assert!(std::fs::read_to_string(place.path("f2.vti")).unwrap().contains("0 4 0 5 0 7"));
}

#[test]
fn a_checkpoint_goes_on_with_all_members() {
    let place = Place::new();
    let line = "run gray-scott --size 15x12 --batch 5 --param feed=0.02:0.05 --backend cpu";
    place.works(&format!("{line} --steps 30 --output v=whole.npy"));
    place.works(&format!("{line} --steps 18 --checkpoint c.npz --every 9"));
    place.works("run gray-scott --resume c.npz --steps 12 --backend cpu --output v=rest.npy");
    assert_eq!(place.stack("whole.npy"), place.stack("rest.npy"));
    let resume = "run gray-scott --resume c.npz --steps 1 --backend cpu";
    place.works(&format!("{resume} --batch 5 --param feed=0.02:0.05"));
    place.fails(&format!("{resume} --batch 4"), &["the batch", "the checkpoint has 5, given is 4"]);
    place.fails(&format!("{resume} --param feed=0.02:0.04"), &["parameter feed", "leave parameter feed out"]);
    place.works("run gray-scott --size 15x12 --steps 4 --checkpoint one.npz --every 4 --backend cpu");
    place.fails(
        "run gray-scott --resume one.npz --batch 2 --steps 1 --backend cpu",
        &["the checkpoint has a single domain, given is 2"],
    );
}

#[test]
fn reports_and_plans_count_all_members() {
    let place = Place::new();
    let line = "heat --size 16x20 --batch 7 --backend cpu --json";
    let report = json(&place.works(&format!("run {line} --steps 5")));
    assert_eq!(report["cells"], 7 * 16 * 20);
    assert_eq!(report["plan"]["batch"]["members"], 7);
    let single = json(&place.works("run heat --size 16x20 --backend cpu --json --steps 5"));
    assert_eq!(report["bytes_least"].as_f64(), single["bytes_least"].as_f64().map(|bytes| 7.0 * bytes));
    assert!(single["plan"]["batch"].is_null());
    assert_eq!(json(&place.works(&format!("plan {line}")))["batch"]["members"], 7);
    let plan = place.works("plan heat --size 64x64 --batch 4096 --device h200");
    assert!(plan.contains("batch         4096 members, side by side"), "{plan}");
    let plan = place.works("plan heat --size 640x640 --batch 16 --device h200");
    assert!(plan.contains("batch         16 members, one after another"), "{plan}");
    assert!(plan.contains("not side by side because"), "{plan}");
    // A model file says a batch like any other option.
    place.works("run heat --size 9x9 --batch 3 --param kappa=0.1:0.2 --steps 4 --backend cpu --write-config m.toml --output a.npy");
    place.works("run m.toml --output b.npy");
    assert_eq!(place.stack("a.npy"), place.stack("b.npy"));
}

#[test]
fn what_a_batch_cannot_be_is_refused() {
    let place = Place::new();
    let line = "run heat --size 8x9 --steps 1 --backend cpu";
    place.fails(&format!("{line} --batch 0"), &["members of a batch: 0 asked", "at least 1"]);
    place.fails(&format!("{line} --batch two"), &["members of a batch `two`"]);
    place.fails(&format!("{line} --batch -1"), &["members of a batch `-1`"]);
    place.fails(&format!("{line} --param kappa=0.1:0.2"), &["parameter kappa", "--batch N"]);
    place.fails(&format!("{line} --batch 2 --param kappa=0.1:x"), &["like kappa=0.1:0.2"]);
    place.fails(&format!("{line} --batch 2 --output a.png"), &["a.png", "2 at most"]);
    place.fails(&format!("{line} --batch 2 --record r.csv"), &["a record", "leave it out"]);
    place.fails(&format!("{line} --batch 2 --pin"), &["leave --pin out"]);
    place.fails("plan heat --size 8x9 --batch 2 --papers", &["--papers", "single domain"]);
    let clover = "run cloverleaf --size 8x9 --batch 2 --steps 3 --backend cpu";
    place.fails(&format!("{clover} --until time>=1"), &["an end by a condition", "leave it out"]);
    place.write("three.npy", &[3, 8, 9], &Array::F32(vec![0.5; 216]));
    place.fails(&format!("{line} --batch 2 --input three.npy"), &["for 3 members, the batch has 2"]);
    // Nothing of it is taken before it is asked for.
    place.fails(&format!("{line} --batch 1000000000000"), &["memory for the parameters of a batch"]);
    place.fails(
        "run 2d5pt --size 8000x9000 --batch 1000000 --steps 1 --backend cpu",
        &["memory for the fields", "choose a smaller --batch"],
    );
    // Sessions of so many stages take more than such small fields.
    place.fails(
        "run cloverleaf --size 2x2 --batch 10000000 --steps 1 --backend cpu",
        &["a session for each member", "choose a smaller --batch"],
    );
}
