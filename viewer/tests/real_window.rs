//! The program itself in a real window, on a display in memory (Xvfb).
//!
//! Without Xvfb nothing is tested, unless `ABIDE_REQUIRE` names `window`.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the viewer for some seconds; returns the rate that it showed, in GCells/s, and the step that it
/// reached. `None` without Xvfb.
fn sit(arguments: &str, screenshot: &Path) -> Option<(f64, u64)> {
    let there = Command::new("xvfb-run").arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        let required =
            std::env::var("ABIDE_REQUIRE").is_ok_and(|list| list.split(',').any(|item| item == "window"));
        assert!(!required, "there is no xvfb-run, and it is required");
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    let output = Command::new("xvfb-run")
        .args(["-a", "-s", "-screen 0 1280x800x24"])
        .arg(env!("CARGO_BIN_EXE_abide-view"))
        .args(arguments.split_whitespace())
        .arg("--screenshot")
        .arg(screenshot)
        // Remembered settings of other sittings do not count.
        .env("XDG_DATA_HOME", home.path())
        .env("HOME", home.path())
        .env_remove("WAYLAND_DISPLAY")
        .output()
        .unwrap();
    let words =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !words.contains("panicked"), "{words}");
    let line =
        words.lines().find(|line| line.contains(" GCells/s, step ")).unwrap_or_else(|| panic!("{words}"));
    let (rate, step) = line.split_once(" GCells/s, step ").unwrap();
    Some((rate.parse().unwrap(), step.parse().unwrap()))
}

#[test]
fn it_opens_runs_three_seconds_and_closes() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("window.png");
    let Some((rate, step)) = sit("gray-scott --size 256x256 --backend cpu --seconds 3", &picture) else {
        return;
    };
    assert!(rate > 0.0 && step > 10, "{rate} {step}");
    let picture = image::open(&picture).unwrap().to_rgb8();
    assert!(picture.width() >= 1000 && picture.height() >= 600);
    let colours: std::collections::HashSet<_> = picture.pixels().collect();
    assert!(colours.len() > 100, "a picture of a field has many colours: {}", colours.len());
}

/// Measures the cost of the display: the rate shown against the rate of the library alone, by turns. On a
/// machine that does anything else the result means nothing, so this test runs only when asked for:
/// `cargo test --release -p abide-viewer --test real_window -- --ignored`.
#[test]
#[ignore = "a measurement: needs a machine that does nothing else"]
fn the_display_costs_less_than_a_tenth() {
    let folder = tempfile::tempdir().unwrap();
    for backend in ["cpu", "wgpu"] {
        let choice: abide::Choice = backend.parse().unwrap();
        let mut ratios = Vec::new();
        for _ in 0..3 {
            let mut alone =
                abide::Simulation::builder("gray-scott").size(&[512, 512]).backend(choice).build().unwrap();
            let mut run = |seconds| {
                let deadline = Some(std::time::Duration::from_secs(seconds));
                let pace = abide::prelude::Pace { deadline, ..Default::default() };
                alone.run_with(u64::MAX, pace, |_| Ok(std::ops::ControlFlow::Continue(()))).unwrap()
            };
            // The window shows the last two seconds of five: by then drivers have compiled, and caches are
            // warm.
            run(3);
            let report = run(2);
            drop(alone);
            let arguments = format!("gray-scott --size 512x512 --backend {backend} --seconds 5");
            let Some((shown, _)) = sit(&arguments, &folder.path().join("window.png")) else { return };
            println!("{backend}: alone {:.4}, in the window {shown:.4} GCells/s", report.gcells_per_s);
            ratios.push(shown / report.gcells_per_s);
        }
        ratios.sort_by(f64::total_cmp);
        assert!((0.9..1.1).contains(&ratios[1]), "{backend}: {ratios:?}");
    }
}
