//! `abide run --record` and `--every` by a scalar.

use super::{Place, exists, json};

/// A table as a reader of .csv files sees it: the names, the steps, and the values behind them.
struct Table {
    names: Vec<String>,
    steps: Vec<u64>,
    rows: Vec<Vec<f64>>,
}

fn table(place: &Place, name: &str) -> Table {
    let mut reader = csv::Reader::from_path(place.path(name)).unwrap();
    let names = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let (mut steps, mut rows) = (Vec::new(), Vec::new());
    for record in reader.records() {
        let record = record.unwrap();
        steps.push(record[0].parse().unwrap());
        rows.push(record.iter().skip(1).map(|value| value.parse().unwrap()).collect());
    }
    Table { names, steps, rows }
}

fn bits(rows: &[Vec<f64>]) -> Vec<Vec<u64>> {
    rows.iter().map(|row| row.iter().map(|value| value.to_bits()).collect()).collect()
}

const CLOVER: &str = "run cloverleaf --size 12x10 --dtype f64 --backend cpu";

/// Each row holds the bits that a run of as many steps ends with.
#[test]
fn scalars_and_probes_after_each_step() {
    let place = Place::new();
    let probes = "--probe density0@3,4 --probe xvel0@12,10";
    place.works(&format!("{CLOVER} --steps 7 --record s.csv {probes}"));
    let all = table(&place, "s.csv");
    assert_eq!(all.names, ["step", "time", "dt", "dt_stable", "density0@3,4", "xvel0@12,10"]);
    assert_eq!(all.steps, (0..=7).collect::<Vec<u64>>());
    for (steps, row) in all.rows.iter().enumerate() {
        let outputs = "--output density0=d.npy --output xvel0=x.npy";
        let report = json(&place.works(&format!("{CLOVER} --steps {steps} {outputs} --json")));
        for (name, value) in all.names[1..4].iter().zip(row) {
            assert_eq!(
                report["scalars"][name].as_f64().unwrap().to_bits(),
                value.to_bits(),
                "{steps} {name}"
            );
        }
        let (density, velocity) = (place.read("d.npy").values, place.read("x.npy").values);
        assert_eq!(density.get(3 * 10 + 4).unwrap().to_bits(), row[3].to_bits(), "{steps}");
        assert_eq!(velocity.get(12 * 11 + 10).unwrap().to_bits(), row[4].to_bits(), "{steps}");
    }
    place.works(&format!("{CLOVER} --steps 7 --record third.csv --record-every 3 {probes}"));
    let third = table(&place, "third.csv");
    assert_eq!(third.steps, [0, 3, 6]);
    let expected: Vec<_> = all.rows.iter().step_by(3).cloned().collect();
    assert_eq!(bits(&third.rows), bits(&expected));
}

/// A run that goes on counts on, and its rows are those of the run in one piece.
#[test]
fn a_resumed_run_goes_on_with_the_count() {
    let place = Place::new();
    place.works(&format!("{CLOVER} --steps 12 --record all.csv --probe energy0@0,0"));
    place.works(&format!("{CLOVER} --steps 5 --checkpoint c.npz --every 100"));
    let go_on = "run cloverleaf --backend cpu --resume c.npz --steps 7 --probe energy0@0,0 --record";
    place.works(&format!("{go_on} rest.csv"));
    place.works(&format!("{go_on} few.csv --record-every 4"));
    let [all, rest, few] = ["all.csv", "rest.csv", "few.csv"].map(|name| table(&place, name));
    assert_eq!(rest.steps, (5..=12).collect::<Vec<u64>>());
    assert_eq!(bits(&rest.rows), bits(&all.rows[5..]));
    assert_eq!(few.steps, [5, 8, 12]);
    assert_eq!(bits(&few.rows), bits(&[5, 8, 12].map(|step: usize| all.rows[step].clone())));
}

/// A plain program records what is probed, by whatever schedule it runs.
#[test]
fn a_plain_program_records_probes() {
    let place = Place::new();
    for execution in ["stepwise", "streaming"] {
        let line = format!("run heat --size 40x30 --dtype f64 --backend cpu --execution {execution}");
        place.works(&format!("{line} --steps 25 --record u.csv --record-every 10 --probe u@20,15"));
        let rows = table(&place, "u.csv");
        assert_eq!(
            (&rows.names[..], &rows.steps[..]),
            (&["step", "u@20,15"].map(str::to_owned)[..], &[0, 10, 20][..])
        );
        for (steps, row) in rows.steps.iter().zip(&rows.rows) {
            place.works(&format!("{line} --steps {steps} --output u.npy"));
            assert_eq!(place.read("u.npy").values.get(20 * 30 + 15).unwrap().to_bits(), row[0].to_bits());
        }
    }
    // Zero steps have the values before the first.
    place.works("run heat --size 9x9 --steps 0 --record none.csv --probe u@0,0 --backend cpu");
    assert_eq!(table(&place, "none.csv").steps, [0]);
    let out = place.works("run heat --size 9x9 --steps 2 --record n.csv --probe u@0,0 --backend cpu");
    assert!(out.contains("n.csv (3 rows)"), "{out}");
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let place = Place::new();
    place.fails("run heat --size 8x8 --steps 1 --record r.csv", &["computes no scalar", "u@0,0"]);
    let line = "run heat --size 8x9 --steps 1 --record r.csv --probe";
    place.fails(&format!("{line} u@8,0"), &["u@8,0", "8x9"]);
    place.fails(&format!("{line} u@1,2,3"), &["3", "one for each axis"]);
    place.fails(&format!("{line} q@1,2"), &["field", "q"]);
    place.fails(&format!("{line} u1,2"), &["u@12,40"]);
    place.fails(&format!("{line} u@1,2 --probe u@1,2"), &["given twice"]);
    place.fails("run heat --size 8x8 --steps 1 --probe u@1,2", &["--record"]);
    place.fails("run heat --size 8x8 --steps 1 --record-every 2", &["--record"]);
    place.fails(&format!("{line} u@1,2 --record-every 0"), &["1 or more"]);
    let line = "run heat --size 8x8 --steps 1 --probe u@1,2 --record";
    place.fails(&format!("{line} missing/r.csv"), &["missing"]);
    place.fails(&format!("{line} ."), &["folder"]);
    place.fails(&format!("{line} r.npy --output r.npy"), &["two outputs"]);
    place.fails("run heat --size 8x8 --steps 1 --every time=1 --frames f%d.png", &["scalar", "time"]);
    place.fails("run cloverleaf --size 8x8 --steps 1 --every time=0 --frames f%d.png", &["time=0.5"]);
    place.fails("run cloverleaf --size 8x8 --steps 1 --every time=1", &["nothing is written on the way"]);
}

/// Frames follow the scalar, and have the number of the mark that it has reached.
#[test]
fn frames_by_simulated_time() {
    let place = Place::new();
    let line = format!("{CLOVER} --record s.csv --every time=0.3");
    place.works(&format!("{line} --steps 25 --frames density0=f%d.npy --output density0=m.gif"));
    let table = table(&place, "s.csv");
    let reached = |row: &Vec<f64>| (row[0] / 0.3).floor() as u64;
    let mut expected: Vec<(u64, u64)> = vec![(0, 0)];
    for (row, &step) in table.rows.iter().zip(&table.steps) {
        if reached(row) > expected.last().unwrap().1 {
            expected.push((step, reached(row)));
        }
    }
    assert!(expected.len() > 3, "{expected:?}");
    for &(step, number) in &expected {
        place.works(&format!("{CLOVER} --steps {step} --output density0=at.npy"));
        assert_eq!(place.read(&format!("f{number}.npy")), place.read("at.npy"), "frame {number}");
    }
    let frames = place.names().iter().filter(|name| name.starts_with('f')).count();
    assert_eq!(frames, expected.len());
    let file = std::fs::File::open(place.path("m.gif")).unwrap();
    let mut decoder = gif::DecodeOptions::new().read_info(file).unwrap();
    let mut pictures = 0;
    while decoder.read_next_frame().unwrap().is_some() {
        pictures += 1;
    }
    assert_eq!(pictures, expected.len());
}

/// A run may end at a mark, and goes through marks without a trace.
#[test]
fn marks_change_no_bit() {
    let place = Place::new();
    let line = format!("{CLOVER} --steps 1000");
    let ends = |rest: &str| {
        let words = ["time", ">=", "1.3"].join(" ");
        let mut command = place.command(&format!("{line} {rest} --json"));
        let output = command.args(["--until", &words]).output().unwrap();
        assert!(output.status.success(), "{}", super::words(&output));
        json(&String::from_utf8(output.stdout).unwrap())
    };
    let plain = ends("--output pressure=a.npy");
    let marked = ends("--output pressure=b.npy --every time=0.4 --frames x%d.npy --record r.csv");
    assert_eq!(plain["steps"], marked["steps"]);
    assert_eq!(plain["scalars"], marked["scalars"]);
    assert_eq!(place.read("a.npy"), place.read("b.npy"));
    // The last step passes two marks.
    let found = ["x0.npy", "x1.npy", "x2.npy", "x3.npy", "x4.npy"].map(|name| exists(&place.path(name)));
    assert_eq!(found, [true, true, true, false, true]);
    let table = table(&place, "r.csv");
    assert_eq!(table.steps.last().copied(), plain["steps"].as_u64());
    assert_eq!(table.rows.last().unwrap()[0], plain["scalars"]["time"].as_f64().unwrap());
    let notes = marked["notes"].to_string();
    assert!(notes.contains("time >= 1.3 after step"), "{notes}");
}

#[cfg(unix)]
mod signals {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// Starts a run that continues until a signal ends it, waits until it has written some rows, and sends the
    /// signal. Returns the exit status and the report.
    fn ended_by(place: &Place, signal: &str) -> (Option<i32>, String) {
        let line = format!("{CLOVER} --steps 1000000000000 --record s.csv --probe density0@1,1 --json");
        let child = place.command(&line).stdout(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        let size = || std::fs::metadata(place.path("s.csv")).map_or(0, |metadata| metadata.len());
        while size() < 4000 && begun.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let sent = Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    }

    /// A run that is asked to end writes all its rows; one that is killed has the rows of earlier epochs.
    #[test]
    fn what_was_recorded_stays() {
        let place = Place::new();
        let (status, report) = ended_by(&place, "TERM");
        assert_eq!(status, Some(143), "{report}");
        let steps = json(&report)["steps"].as_u64().unwrap();
        let stopped = table(&place, "s.csv");
        assert_eq!(stopped.steps, (0..=steps).collect::<Vec<u64>>());
        let (status, _) = ended_by(&place, "KILL");
        assert_eq!(status, None);
        let text = std::fs::read_to_string(place.path("s.csv")).unwrap();
        let whole = &text[..=text.rfind('\n').unwrap()];
        for (number, line) in whole.lines().skip(1).enumerate() {
            assert_eq!(line.split(',').count(), stopped.names.len(), "{line}");
            assert!(line.starts_with(&format!("{number},")), "{line}");
        }
        assert!(whole.lines().count() > 20);
    }
}

/// A run that halts at each step reports the passes that it took and what they moved, not the planned ones.
#[test]
fn a_run_that_halts_tells_what_ran() {
    let place = Place::new();
    let line = "run heat --size 300x300 --steps 40 --backend cpu --execution streaming --depth 8";
    let free = json(&place.works(&format!("{line} --json")));
    assert_eq!((&free["ran"]["passes"], &free["ran"]["depth"]), (&5.into(), &8.into()), "{free}");
    let halted = json(&place.works(&format!("{line} --record m.csv --probe u@9,9 --json")));
    assert_eq!((&halted["ran"]["passes"], &halted["ran"]["depth"]), (&40.into(), &1.into()), "{halted}");
    let moved = |report: &serde_json::Value| report["bytes_moved"].as_f64().unwrap();
    assert!((moved(&halted) / moved(&free) - 8.0).abs() < 1e-9, "{free} {halted}");
    let text = place.works(&format!("{line} --record n.csv --probe u@9,9"));
    assert!(text.contains("40 passes, 1 step deep at the most"), "{text}");
    let plan = place.works("plan heat --size 8352x8352 --device h200 --execution streaming --record-every 1");
    assert!(plan.contains("every 1 step: passes of 1 step at the most, 8.00 bytes"), "{plan}");
    // A single step moves as much as a pass.
    for steps in [1, 10] {
        let report =
            json(&place.works(&format!("run gray-scott --size 64x64 --steps {steps} --backend cpu --json")));
        assert!(moved(&report) >= report["bytes_least"].as_f64().unwrap(), "{report}");
    }
}

/// Probes that kernels note leave the plan what it is; a launch per stage halts for them.
#[test]
fn probes_that_kernels_note_keep_the_plan() {
    let place = Place::new();
    for (model, probe) in [
        ("heat --size 8352x8352", "u@7,9"),
        ("gray-scott --size 4096x4096", "v@4095,0"),
        ("3d7pt --size 256x256x256", "u@1,2,3"),
        ("heat --size 512x512", "u@511,511"),
    ] {
        let line = format!("plan {model} --device h200 --json");
        let plain = json(&place.works(&line));
        let probed = json(&place.works(&format!("{line} --record-every 1 --probe {probe}")));
        assert_eq!(plain["schedule"], probed["schedule"], "{model}");
        assert_eq!(plain["estimated_seconds"], probed["estimated_seconds"], "{model}");
        assert!(probed["notes"].to_string().contains("note the value of the probe"), "{probed}");
        assert!(probed["halting"].is_null(), "{probed}");
    }
    // A launch per stage halts, and so do several devices.
    for other in ["--execution stepwise", "--devices 2"] {
        let line = format!("plan heat --size 4096x4096 --device h200 {other} --record-every 1 --probe u@5,5");
        let text = place.works(&line);
        assert!(text.contains("halting") && !text.contains("note the value"), "{text}");
    }
}
