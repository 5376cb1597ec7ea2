//! The endings of commands: exit status, kind, and one JSON value on standard output.

use super::{Place, json, words};

const BANNER: &str = "%%MatrixMarket matrix coordinate real";

fn place() -> Place {
    let place = Place::new();
    for (name, rest) in [
        ("a.mtx", "symmetric\n2 2 3\n1 1 2\n2 1 1\n2 2 3\n"),
        ("bad.mtx", "general\n2 2 1\n1 x 3\n"),
        ("wide.mtx", "general\n1 2 1\n1 1 3\n"),
        ("hole.mtx", "general\n2 2 1\n1 1 3\n"),
        ("tiny.mtx", "general\n2 2 2\n1 1 1e-300\n2 2 2e-300\n"),
        ("turn.mtx", "general\n2 2 4\n1 1 0.8\n1 2 -0.6\n2 1 0.6\n2 2 0.8\n"),
        ("indefinite.mtx", "symmetric\n2 2 3\n1 1 1\n2 1 2\n2 2 1\n"),
    ] {
        std::fs::write(place.path(name), format!("{BANNER} {rest}")).unwrap();
    }
    place
}

const USAGE: &[&str] = &[
    "walk",
    "run 2d5pt",
    "run 2d6pt --steps 1",
    "run heat --steps -1",
    "run heat --steps 1 --steps 2",
    "run heat --steps 1 --param kapa=1",
    "run heat --steps 1 --param kappa=1 --param kappa=2",
    "run heat --steps 1 --param kappa=1e39",
    "run gray-scott --size 8x8 --steps 1 --input u=point --input u=gaussian",
    "run gray-scott --size 8x8 --steps 1 --input own --input u=gaussian",
    "run gray-scott --size 8x8 --steps 1 --input own --input own",
    "run heat --size 8x8 --steps 1 --input q=own",
    "run heat --size 8x8 --steps 1 --boundary x=fixed,x=mirror",
    "run heat --size 8x8 --steps 1 --boundary x=fixed --boundary y=mirror",
    "run 2d5pt --size 4x4 --steps 1 --boundary constant=1e39",
    "run heat --size 8x8 --steps 1 --every 5",
    "solve",
    "solve a.mtx --matrix trefethen:9",
    "solve a.mtx --method sor",
    "solve a.mtx --tolerance -1",
    "solve --matrix cube:3",
    "solve --operator laplacian2d --size 9x9 --boundary constant=1",
    "list nothing",
    "devices --now",
    "plan 2d5pt --device b300",
    "plan 2d5pt --device a100 --backend cpu",
    "plan heat --param kappa=1 --param kappa=1",
    "verify --backend tpu",
    "bench",
    "bench stencils --repeats 4",
    "bench solvers --method cg --method cg",
    "bench solvers --operator laplacian2d",
    "bench portable --backend cuda",
    "bench portable --backend cpu,cpu",
    "bench roofline",
];

const REFUSALS: &[&str] = &[
    "run heat --steps 1 --input missing.npy",
    "run heat --steps 1 --resume missing.npz",
    "run heat --size 8x8 --steps 1 --output missing/x.npy",
    "run 2d5pt --size 30000000x30000000 --steps 1 --backend cpu",
    "run heat --size 8x8 --steps 1 --backend cpu --execution persistent --cache shared",
    "solve none.mtx",
    "solve bad.mtx",
    "solve wide.mtx --backend cpu",
    "solve hole.mtx --backend cpu",
    "solve tiny.mtx --backend cpu --dtype f32",
    "solve tiny.mtx --backend cpu --dtype mixed",
    "solve turn.mtx --backend cpu --method cg",
    "solve a.mtx --output missing/x.npy",
    "plan 2d5pt --size 64x64 --backend cpu --measured",
    "bench solvers --matrix none.mtx",
    "bench stencils --backend cpu --size 8x8 --csv missing/r.csv",
    "bench roofline none.csv --output x.svg",
];

const NOT_CONVERGED: &[&str] = &[
    "solve --matrix laplacian2d:40x40 --rhs random:1 --backend cpu --max-iterations 7",
    "solve indefinite.mtx --backend cpu --method jacobi",
];

const NO_CUDA: &[&str] = &[
    "run heat --size 8x8 --steps 1 --backend cuda",
    "solve a.mtx --backend cuda",
    "plan heat --size 8x8 --backend cuda",
    "bench stencils --backend cuda --size 8x8",
];

#[test]
fn every_error_has_its_kind_its_status_and_one_json_value() {
    let place = place();
    let no_cuda = if abide::backend::open("cuda").is_err() { NO_CUDA } else { &[] };
    for (lines, kind, status) in [
        (USAGE, "usage", 2),
        (REFUSALS, "refusal", 1),
        (NOT_CONVERGED, "not-converged", 3),
        (no_cuda, "device", 1),
    ] {
        for line in lines {
            let output = place.command(&format!("{line} --json")).output().unwrap();
            let reported = words(&output);
            assert_eq!(output.status.code(), Some(status), "abide {line}: {reported}");
            assert!(
                reported.contains("error: ") && !reported.contains("panicked"),
                "abide {line}: {reported}"
            );
            let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
                panic!("abide {line}: {e} in {}", String::from_utf8_lossy(&output.stdout))
            });
            assert_eq!(value["kind"], kind, "abide {line}: {value}");
            let sentence = value["error"].as_str().unwrap();
            assert!(!sentence.is_empty() && !sentence.starts_with("error"), "abide {line}: {sentence}");
        }
        // The status is the same with and without `--json`.
        let output = place.command(lines.first().unwrap_or(&"list nothing")).output().unwrap();
        assert!(output.stdout.is_empty() || kind == "not-converged", "{kind}");
        assert!(lines.is_empty() || output.status.code() == Some(status), "{kind}");
    }
}

#[test]
fn json_says_that_all_went_well() {
    let place = place();
    for line in ["run heat --size 8x8 --steps 1 --backend cpu", "solve a.mtx --backend cpu"] {
        let report = json(&place.works(&format!("{line} --json")));
        assert!(report.get("error").is_some_and(|e| e.is_null()) && report["kind"].is_null(), "{report}");
    }
    for line in ["--help", "--version", "run --help --json", "run --json --help", "help run"] {
        assert!(place.works(line).contains("abide"), "{line}");
    }
}

/// A system that the solver refuses has no iterations. A solve that it could not finish keeps its report.
#[test]
fn a_solvers_errors_keep_their_report() {
    let place = place();
    let reported =
        |line: &str| json(&String::from_utf8(place.command(line).output().unwrap().stdout).unwrap());
    let refused = reported("solve hole.mtx --backend cpu --json");
    assert_eq!((refused["converged"].as_bool(), refused.get("report").is_some()), (Some(false), false));
    let ended = reported("solve --matrix laplacian2d:40x40 --backend cpu --max-iterations 7 --json");
    assert_eq!(
        (ended["converged"].as_bool(), ended["report"]["iterations"].as_u64()),
        (Some(false), Some(7))
    );
    for dtype in ["f32", "mixed"] {
        let sentence =
            reported(&format!("solve tiny.mtx --backend cpu --dtype {dtype} --json"))["error"].to_string();
        assert!(sentence.contains("below the range of f32") && !sentence.contains("singular"), "{sentence}");
    }
    place.works("solve tiny.mtx --backend cpu --dtype f64");
}

/// Rounding may keep the true residual above the tolerance. Within the allowed drift the report says so.
#[test]
fn a_residual_above_the_tolerance_is_told() {
    let place = place();
    let line = "solve turn.mtx --backend cpu --method gmres --dtype f32";
    let residual = json(&place.works(&format!("{line} --json")))["residual"].clone();
    let (truth, wanted) = (residual["true"].as_f64().unwrap(), residual["wanted"].as_f64().unwrap());
    assert!(truth > wanted && truth <= 10.0 * wanted, "{residual}");
    assert_eq!(residual["met"], false);
    let text = place.works(line);
    assert!(text.contains("converged") && text.contains("up to 10 times count as converged"), "{text}");
    let text = place.works("solve a.mtx --backend cpu");
    assert!(!text.contains("count as converged"), "{text}");
    assert_eq!(json(&place.works("solve a.mtx --backend cpu --json"))["residual"]["met"], true);
}

#[cfg(unix)]
mod signals {
    use std::process::{Child, Command, Stdio};

    use super::super::{exists, with_own_signals};
    use super::*;

    fn send(signal: &str, child: &Child) {
        let sent =
            Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Starts a run that continues until a signal ends it, and waits until it is some steps in.
    fn running(place: &Place, command: &mut Command) -> Child {
        with_own_signals(command);
        let rest = "run heat --size 64x64 --steps 1000000000000 --checkpoint c.npz --every 1000 --backend cpu --json";
        let child = command
            .current_dir(place.path("."))
            .args(rest.split(' '))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let begun = std::time::Instant::now();
        while !exists(&place.path("c.npz")) && begun.elapsed().as_secs() < 120 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        child
    }

    fn ended(child: Child, status: i32, name: &str) -> serde_json::Value {
        let output = child.wait_with_output().unwrap();
        let reported = json(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(
            (output.status.code(), reported["kind"].as_str()),
            (Some(status), Some("interrupted")),
            "{reported}"
        );
        assert!(reported["error"].as_str().unwrap().contains(name), "{reported}");
        reported
    }

    #[test]
    fn each_signal_has_its_status() {
        for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
            let place = Place::new();
            let child = running(&place, &mut Command::new(env!("CARGO_BIN_EXE_abide")));
            send(signal, &child);
            let report = ended(child, status, &format!("SIG{signal}"));
            assert!(report["steps"].as_u64().unwrap() > 0, "{report}");
        }
    }

    /// Before a run has begun there is nothing to finish.
    #[test]
    fn a_command_that_waits_ends_at_once() {
        for (signal, status) in [("INT", 130), ("TERM", 143)] {
            let place = Place::new();
            assert!(Command::new("mkfifo").arg(place.path("a.mtx")).status().unwrap().success());
            let child = place.command("solve a.mtx --json").stdout(Stdio::piped()).spawn().unwrap();
            // The pipe opens only when the command reads it, and by then the command listens for signals.
            let _held = std::fs::OpenOptions::new().write(true).open(place.path("a.mtx")).unwrap();
            send(signal, &child);
            ended(child, status, "at once");
        }
    }

    /// The tests themselves may have been started with signals ignored, as behind an `&`: they set what they need.
    #[test]
    fn tests_do_not_depend_on_inherited_signals() {
        let tests = std::env::current_exe().unwrap();
        let name = "endings::signals::each_signal_has_its_status";
        let line = "trap '' HUP INT QUIT; exec timeout 300 \"$0\" --exact \"$1\"";
        let output = Command::new("sh").args(["-c", line]).arg(tests).arg(name).output().unwrap();
        let reported = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && reported.contains("1 passed"), "{reported}");
    }

    /// The command inherits an ignored signal, as under `nohup`.
    #[test]
    fn a_signal_that_is_to_be_ignored_is() {
        let place = Place::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_abide")]);
        let child = running(&place, &mut shell);
        send("HUP", &child);
        std::thread::sleep(std::time::Duration::from_millis(300));
        send("TERM", &child);
        ended(child, 143, "SIGTERM");
    }
}
