//! Checkpoints know the formulas of their programs.

use std::io::{Read, Write};

use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

use super::{Place, json};

const MODEL: &str = "name = \"heat\"\naxes = 2\nboundary = \"mirror\"\n[fields]\nu = \"random:3\"\n[parameters]\nkappa = 0.1\n\
                     [[stages]]\nu = \"u + kappa*(u[0,-1] - 2*u + u[0,1])\"\n";

fn place() -> Place {
    let place = Place::new();
    std::fs::write(place.path("m.toml"), MODEL).unwrap();
    place.works(
        "run m.toml --size 9x8 --steps 5 --backend cpu --every 100 --checkpoint c.npz --output all.npy",
    );
    place
}

fn change(place: &Place, from: &str, to: &str) {
    assert!(MODEL.contains(from), "{from}");
    std::fs::write(place.path("m.toml"), MODEL.replace(from, to)).unwrap();
}

const RESUME: &str = "run m.toml --resume c.npz --steps 4 --backend cpu";

/// Of a program with another formula of the same name: refused, and the error says what differs.
#[test]
fn a_checkpoint_of_other_formulas_is_refused() {
    let place = place();
    place.works(RESUME);
    for (from, to, says) in [
        ("u[0,1])", "u[1,0])", &["u[0,1]", "u[1,0]", "by force"][..]),
        ("kappa*(", "(", &["kappa"]),
        ("\"mirror\"", "\"periodic\"", &["boundary: mirror", "boundary: periodic"]),
        ("[parameters]\nkappa = 0.1", "[scalars]\nkappa = 0.1", &["parameter kappa", "scalar kappa"]),
    ] {
        change(&place, from, to);
        place.fails(RESUME, says);
        if !to.contains("scalars") {
            let report = json(&place.works(&format!("{RESUME} --force --json")));
            let notes = report["notes"].to_string();
            assert!(notes.contains("by force") && notes.contains(says[0]), "{notes}");
        }
    }
}

/// The catalogue's formula does not go on with a user's program of the same name, nor the other way round.
#[test]
fn the_catalogue_does_not_resume_a_program_of_the_same_name() {
    let place = place();
    place.fails(
        "run heat --resume c.npz --steps 4 --backend cpu",
        &["another program named heat", "by force"],
    );
    assert!(abide::Simulation::resume(place.path("c.npz")).err().unwrap().to_string().contains("named heat"));
    place.works("run heat --size 9x8 --steps 5 --backend cpu --every 100 --checkpoint c.npz");
    place.fails(RESUME, &["another program named heat"]);
    place.works("run heat --resume c.npz --steps 4 --backend cpu");
}

/// What a run may change is no part of the formulas, nor are names and the order of lines.
#[test]
fn what_makes_no_other_formulas_is_resumed() {
    let place = place();
    place.works("run m.toml --size 9x8 --steps 9 --backend cpu --output whole.npy");
    for (from, to) in [
        ("kappa = 0.1", "kappa = 0.2"),
        ("\"random:3\"", "1.0"),
        ("[[stages]]\n", "[[stages]]\nname = \"step\"\nd = \"u[0,-1] - 2*u\"\n"),
        ("kappa = 0.1", "kappa = { default = 0.1, about = \"words\" }"),
    ] {
        change(&place, from, to);
        let report = json(&place.works(&format!("{RESUME} --output rest.npy --json")));
        assert!(!report["notes"].to_string().contains("formulas"), "{report}");
        assert_eq!(place.read("rest.npy"), place.read("whole.npy"), "{to}");
    }
    change(&place, "kappa*(u[0,-1] - 2*u + u[0,1])\"", "kappa*(d + u[0,1])\"");
    let model = std::fs::read_to_string(place.path("m.toml")).unwrap();
    std::fs::write(
        place.path("m.toml"),
        model.replace("[[stages]]\n", "[[stages]]\nd = \"u[0,-1] - 2*u\"\n"),
    )
    .unwrap();
    place.works(RESUME);
}

/// Rewrites a checkpoint as one of a version without formulas.
fn made_old(place: &Place) {
    let bytes = std::fs::read(place.path("c.npz")).unwrap();
    let mut old = ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    let mut new = ZipWriter::new(std::fs::File::create(place.path("c.npz")).unwrap());
    for number in 0..old.len() {
        let mut entry = old.by_index(number).unwrap();
        let name = entry.name().unwrap().into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        if name == "abide.formulas.txt" {
            continue;
        }
        if name == "abide.json" {
            let mut about: serde_json::Value = serde_json::from_slice(&content).unwrap();
            assert!(about.as_object_mut().unwrap().remove("formulas").is_some());
            content = serde_json::to_vec(&about).unwrap();
        }
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        new.start_file(name, options).unwrap();
        new.write_all(&content).unwrap();
    }
    new.finish().unwrap();
}

#[test]
fn a_checkpoint_of_an_earlier_version_is_resumed_with_a_note() {
    let place = place();
    place.works(&format!("{RESUME} --output rest.npy"));
    made_old(&place);
    let reported = place.works(&format!("{RESUME} --output old.npy"));
    assert!(reported.contains("does not say of which formulas it is"), "{reported}");
    assert_eq!(place.read("old.npy"), place.read("rest.npy"));
    let report = json(&place.works("run heat --resume c.npz --steps 1 --backend cpu --json"));
    assert!(report["notes"].to_string().contains("does not say"), "{report}");
}

/// Scalars, parameters and fields that are not numbers come back to the bit.
#[test]
fn a_checkpoint_with_values_that_are_not_finite_is_resumed() {
    let model = "axes = 1\nboundary = \"periodic\"\n[fields]\nu = \"random:1\"\nw = 0.0\n[parameters]\nk = 0.5\nbad = nan\nmost = inf\n\
                 [scalars]\ns = 0.5\nlarge = 1e300\n[[stages]]\nu = \"u*k + 0.25*u[-1]\"\nw = \"where(s == s, 0, s) + bad*0\"\n\
                 [[stages]]\ns = \"sqrt(s - 1)\"\nlarge = \"large*large\"\n";
    for devices in ["", " --devices 2"] {
        let place = Place::new();
        std::fs::write(place.path("m.toml"), model).unwrap();
        let run = "run m.toml --size 64 --dtype f64 --backend cpu";
        place.works(&format!(
            "{run} --steps 7 --output u=a.npy --output w=b.npy --every 100 --checkpoint all.npz"
        ));
        place.works(&format!("{run} --steps 3 --every 100 --checkpoint c.npz{devices}"));
        place.works(&format!(
            "run m.toml --resume c.npz --backend cpu --steps 4 --output u=c.npy --output w=d.npy --every 100 --checkpoint d.npz{devices}"
        ));
        assert_eq!(place.read("a.npy"), place.read("c.npy"));
        let bytes = |name: &str| std::fs::read(place.path(name)).unwrap();
        assert_eq!(bytes("b.npy"), bytes("d.npy"));
        assert_eq!(bytes("all.npz"), bytes("d.npz"));
        let read = abide::io::checkpoint::read_head(&place.path("d.npz")).unwrap();
        assert!(read.scalars[0].1.is_nan() && read.parameters[1].1.is_nan(), "{read:?}");
        assert_eq!((read.scalars[1].1, read.parameters[2].1), (f64::INFINITY, f64::INFINITY));
    }
}

/// A model whose fields have no start, and formulas of parameters, run by the command.
#[test]
fn starts_that_a_run_gives_and_formulas_of_parameters() {
    let place = Place::new();
    let model = "axes = 1\nboundary = \"x-=constant=1,x+=mirror\"\nuntil = \"time >= 0.5\"\n[fields]\nu = \"given\"\n[parameters]\ndt = 0.1\n\
                 dx = 0.5\n\"dt / dx\" = { formula = \"dt/dx\" }\n[scalars]\ntime = 0.0\n[[stages]]\nu = \"u + `dt / dx`*(u[-1] - u)\"\n\
                 [[stages]]\ntime = \"time + dt\"\n";
    std::fs::write(place.path("m.toml"), model).unwrap();
    place.fails("run m.toml --size 8 --steps 3 --backend cpu", &["the start of field u"]);
    let run = "run m.toml --size 8 --dtype f64 --backend cpu --input u=random:2 --steps 10";
    place.fails(&format!("{run} --param dt/dx=3"), &["no parameter is named"]);
    place.fails(&format!("{run} --param dx=0"), &["dt / dx", "dx = 0.0", "other parameters"]);
    let command = |name: &str, size: &str| {
        let mut command = place.command(&format!("{run} --output u.npy"));
        let output = command.args(["--param", &format!("{name}={size}")]).output().unwrap();
        (output.status.success(), super::words(&output))
    };
    let (works, said) = command("dt / dx", "3");
    assert!(!works && said.contains("set dt, dx"), "{said}");
    let report = json(&place.works(&format!("{run} --param dt=0.25 --output u.npy --json")));
    assert_eq!(report["steps"].as_u64(), Some(2));
    let found = place.read("u.npy").values.to_f64();
    place.works(&format!("{run} --steps 0 --output start.npy").replace("--steps 10 ", ""));
    let mut u = place.read("start.npy").values.to_f64();
    for _ in 0..2 {
        u = (0..8).map(|i| u[i] + 0.25 / 0.5 * (if i == 0 { 1.0 } else { u[i - 1] } - u[i])).collect();
    }
    assert_eq!(found, u);
}
