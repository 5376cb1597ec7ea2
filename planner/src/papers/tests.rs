use std::sync::Arc;

use abide_core::device::Capability;
use abide_core::{DType, DeviceSpec, Execution, Measured, Options, Plan, Problem, Shape, catalogue};

use super::compared::compare;
use super::{Answer, Details, Projected, STEPS, perks, projections};
use crate::persistent::plan_persistent;
use crate::stepwise::plan_stepwise;
use crate::streaming::warp::plan_streaming;

fn device(name: &str) -> DeviceSpec {
    DeviceSpec::preset(name).unwrap()
}

fn problem(name: &str, size: &str, dtype: DType) -> Problem {
    let shape: Shape = size.parse().unwrap();
    let program = catalogue::find(name).unwrap().program(shape.dimensions()).unwrap();
    Problem::new(Arc::new(program), shape, dtype).unwrap()
}

fn projected(answer: &Answer) -> &Projected {
    match answer {
        Answer::Projected(projected) => projected,
        Answer::NotApplicable(why) => panic!("{why}"),
    }
}

fn refused(answer: &Answer) -> &str {
    match answer {
        Answer::NotApplicable(why) => why,
        Answer::Projected(projected) => panic!("{projected:?}"),
    }
}

/// Table 2 of the PERKS report: domains that its kernels hold whole, with its measurements of them. The
/// projection is a bound, so no measurement is above it.
#[test]
fn perks_holds_the_reports_domains_whole_and_projects_a_bound() {
    let rows = [
        ("2d5pt", "3072x2160", "a100", DType::F32, 636.79),
        ("2d5pt", "2304x1536", "a100", DType::F64, 335.42),
        ("2d5pt", "2048x1120", "v100", DType::F64, 277.08),
        ("2d13pt", "4608x1440", "a100", DType::F32, 357.40),
        ("2d25pt", "2048x720", "v100", DType::F64, 105.13),
        ("3d7pt", "39x288x256", "a100", DType::F64, 146.25),
        ("3d7pt", "68x160x256", "v100", DType::F32, 212.58),
        ("poisson", "36x288x256", "a100", DType::F64, 87.59),
    ];
    for (name, size, on, dtype, measured) in rows {
        let papers = projections(&problem(name, size, dtype), &device(on)).unwrap();
        let perks = projected(&papers.perks);
        let Some(Details::Perks(cached)) = &perks.details else { panic!("{perks:?}") };
        // Some planes of a cube project to less in shared memory than in device memory.
        let least = if name.starts_with("2d") { 1.0 - 1e-12 } else { 0.9 };
        assert!(cached.in_registers + cached.in_shared >= least, "{name} {size}: {cached:?}");
        assert!(perks.gcells_per_s > measured, "{name} {size}: {} against {measured}", perks.gcells_per_s);
        // Cells are loaded and stored once in the run; the halo comes on top.
        assert!(perks.memory_bytes > 2.0 * dtype.bytes() as f64 / STEPS as f64, "{name} {size}");
        assert!(perks.memory_bytes < 2.0 * dtype.bytes() as f64, "{name} {size}");
    }
}

/// §5.2: a kernel that caches 3072 × 2448 of 3072² cells projects to 876.09 GCells/s. Here more is cached, so
/// the projection is higher, and no persistent kernel projects to more than the chosen one.
#[test]
fn perks_chooses_the_highest_projected_peak() {
    let (problem, device) = (problem("2d5pt", "3072x3072", DType::F32), device("a100"));
    let perks = perks::cache(&problem, &device).unwrap();
    assert!(perks.in_registers + perks.in_shared >= 2448.0 / 3072.0, "{perks:?}");
    assert!(perks.projection.gcells_per_s >= 876.09, "{perks:?}");
    let options = Options { execution: Execution::Persistent, ..Options::default() };
    for plan in crate::persistent::persistent_plans(&problem, &device, &options).unwrap() {
        assert!(plan.project(STEPS).gcells_per_s <= perks.projection.gcells_per_s, "{}", plan.summary());
    }
}

/// §6.2.1 and §6.3.2 of EBISU: 482 GCells/s of 2d5pt and 197 of 3d7pt were measured on an A100, below the
/// practical attainable performance.
#[test]
fn ebisu_projects_no_less_than_it_measures() {
    for (name, size, measured, projects) in
        [("2d5pt", "8352x8352", 482.0, 580.0), ("3d7pt", "2560x288x384", 197.0, 244.0)]
    {
        let problem = problem(name, size, DType::F64);
        let papers = projections(&problem, &device("a100")).unwrap();
        let ebisu = projected(&papers.ebisu);
        assert!(ebisu.gcells_per_s > measured, "{ebisu:?}");
        assert!((ebisu.gcells_per_s / projects - 1.0).abs() < 0.01, "{ebisu:?}");
        let rate = problem.shape.cells() as f64 / ebisu.seconds / 1e9;
        assert!((rate / ebisu.gcells_per_s - 1.0).abs() < 1e-12);
    }
}

#[test]
fn what_does_not_apply_is_said() {
    let a100 = device("a100");
    let line = projections(&problem("1d3pt", "4096", DType::F64), &a100).unwrap();
    assert!(projected(&line.perks).gcells_per_s > 0.0);
    assert!(refused(&line.ebisu).contains("a domain of one axis"), "{line:?}");

    let unknown = DeviceSpec {
        name: "some adapter".to_owned(),
        multiprocessors: 0,
        registers: None,
        shared_bandwidth: 0.0,
        ..a100.clone()
    };
    let papers = projections(&problem("2d5pt", "512x512", DType::F32), &unknown).unwrap();
    for answer in [&papers.perks, &papers.ebisu] {
        let why = refused(answer);
        assert!(why.contains("some adapter"), "{why}");
        assert!(why.contains("multiprocessors, registers, bandwidth of shared memory;"), "{why}");
    }

    let narrow = DeviceSpec { shared_bytes_per_block: 20 << 10, ..a100.clone() };
    let papers = projections(&problem("3d13pt", "64x64x64", DType::F64), &narrow).unwrap();
    assert!(refused(&papers.ebisu).contains("the limit is 20 KiB"), "{papers:?}");

    let mut wrong = problem("2d5pt", "512x512", DType::F32);
    wrong.shape = "5x5x5".parse().unwrap();
    assert!(projections(&wrong, &a100).is_err());
}

#[test]
fn what_is_more_than_the_paper_or_less_is_noted() {
    let a100 = device("a100");
    let noted = |name: &str, size: &str, words: &str| {
        let papers = projections(&problem(name, size, DType::F64), &a100).unwrap();
        [&papers.perks, &papers.ebisu]
            .map(|answer| projected(answer).notes.iter().any(|note| note.contains(words)))
    };
    assert_eq!(noted("gray-scott", "2048x2048", "all fields (2)"), [true, true]);
    assert_eq!(noted("2d5pt", "2048x2048", "all fields"), [false, false]);
    assert_eq!(noted("2d5pt", "64x64", "too small for the model"), [false, true]);
    assert_eq!(noted("2d5pt", "8352x8352", "too small"), [false, false]);
    assert_eq!(noted("3d27pt", "256x256x256", "the paper takes device tiling in 3D"), [false, true]);
    assert_eq!(noted("3d7pt", "256x256x256", "the paper takes"), [false, false]);
    assert_eq!(noted("2d5pt", "8352x8352", "6.3 steps take device memory out of the way"), [false, true]);
    assert_eq!(noted("3d7pt", "256x256x256", "18.3 under device tiling"), [false, true]);
    // A note where arithmetic is the bound, because the paper's bound is by bandwidths alone.
    assert_eq!(noted("3d27pt", "33x288x256", "by bandwidths alone"), [true, false]);
}

/// On a V100 there is room only for squares of 32 cells, which are too narrow for 3d13pt.
#[test]
fn halos_that_cost_too_much_are_noted() {
    let papers = projections(&problem("3d13pt", "256x256x256", DType::F64), &device("v100")).unwrap();
    let ebisu = projected(&papers.ebisu);
    let words = "under device tiling none do, because that takes tiles wider than 39.8 cells (eq. 23)";
    assert!(ebisu.notes.iter().any(|note| note.contains(words)), "{ebisu:?}");
}

#[test]
fn every_entry_has_an_answer_on_every_preset() {
    for entry in catalogue::plain() {
        for axes in entry.dimensions.clone() {
            let size = ["100000", "1000x1000", "100x100x100"][axes - 1];
            // The papers' models are of CUDA's warps and registers.
            let devices = abide_core::device::PRESETS.map(device);
            for device in devices.iter().filter(|device| device.has(Capability::Warps)) {
                let papers = projections(&problem(entry.name, size, DType::F64), device).unwrap();
                for answer in [&papers.perks, &papers.ebisu] {
                    let Answer::Projected(projected) = answer else { continue };
                    let figures = [projected.seconds, projected.gcells_per_s, projected.memory_bytes];
                    assert!(
                        figures.iter().all(|figure| figure.is_finite() && *figure > 0.0),
                        "{projected:?}"
                    );
                }
                let refused = matches!(papers.ebisu, Answer::NotApplicable(_));
                // Planes of three fields of radius 4 are more than the shared memory of some devices.
                let may_refuse = axes == 1 || entry.name == "acoustic";
                let is_expected = if refused { may_refuse } else { axes > 1 };
                assert!(is_expected, "{} on {size}: {:?}", entry.name, papers.ebisu);
            }
        }
    }
}

#[test]
fn the_table_has_a_row_for_each_model_and_the_plan() {
    let (problem, device) = (problem("2d5pt", "8352x8352", DType::F64), device("a100"));
    let plan = plan_streaming(&problem, &device, &Options::default()).unwrap();
    let text = compare(&problem, &plan, &[]).unwrap().to_string();
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    let words = |name: &str| line(name).split_whitespace().take(4).collect::<Vec<_>>().join(" ");
    assert!(!text.contains("easured"), "{text}");
    assert!(line("PERKS").contains("% of the cells in registers"), "{text}");
    assert!(line("EBISU").contains("SM tiling, 7 steps per pass, tiles of 256 cells, "), "{text}");
    assert!(words("EBISU").ends_with(" 2.40"), "{text}");
    assert!(line("plan").ends_with(&plan.summary()), "{text}");
    let estimate = format!("{:.2}", plan.estimated_seconds * 1e6);
    assert!(words("plan").starts_with(&format!("plan {estimate} ")), "{text}");
    // Columns end where their titles do.
    let end =
        |line: &str, word: &str| line.find(word).map(|at| line[..at].chars().count() + word.chars().count());
    let titles = text.lines().find(|line| line.contains("µs per step")).unwrap();
    assert_eq!(end(titles, "µs per step"), end(line("plan"), &estimate), "{text}");
}

#[test]
fn what_was_measured_stands_beside_the_model_of_its_schedule() {
    let (problem, device) = (problem("2d5pt", "8352x8352", DType::F64), device("a100"));
    let options = Options::default();
    let measured = |plan: Plan, seconds| Measured { plan, predicted_seconds: 1e-3, seconds, note: None };
    let streaming = plan_streaming(&problem, &device, &options).unwrap();
    let mut all = vec![
        measured(plan_stepwise(&problem, &device, &options).unwrap(), Some(2e-3)),
        measured(streaming.clone(), Some(0.5e-3)),
        measured(streaming.clone(), Some(0.25e-3)),
        measured(plan_persistent(&problem, &device, &options).unwrap(), None),
    ];
    let compared = compare(&problem, &all[0].plan, &all).unwrap();
    assert_eq!(compared.perks.measured_seconds, None, "it was not timed");
    assert_eq!(compared.ebisu.measured_seconds, Some(0.25e-3), "the fastest of its schedule");
    assert_eq!(compared.ebisu.measured_plan, Some(streaming.summary()));
    let reached = projected(&compared.ebisu.answer).seconds / 0.25e-3;
    assert_eq!(compared.ebisu.reached, Some(reached));
    // The prediction from before the plan was compiled.
    assert_eq!((compared.plan.measured_seconds, compared.plan.reached), (Some(2e-3), Some(0.5)));
    let text = compared.to_string();
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().split_whitespace();
    assert_eq!(row("PERKS").skip(3).take(2).collect::<Vec<_>>(), ["-", "-"]);
    let words: Vec<&str> = row("EBISU").skip(3).take(3).collect();
    assert_eq!(words, ["279.0", &format!("{:.0}", 100.0 * reached), "%"], "{text}");
    assert_eq!(row("plan").skip(3).take(3).collect::<Vec<_>>(), ["34.9", "50", "%"]);
    assert!(text.ends_with("beside EBISU the fastest streaming one.\n"), "{text}");

    // Without an estimate, or a model that applies, there still is what was measured.
    all[0].predicted_seconds = 0.0;
    let unknown = DeviceSpec { registers: None, ..device };
    let own = Plan { device: unknown, ..all[0].plan.clone() };
    let compared = compare(&problem, &own, &all).unwrap();
    assert!(refused(&compared.plan.answer).contains("no estimate"));
    assert!(refused(&compared.ebisu.answer).contains("registers"));
    assert_eq!(compared.plan.measured_gcells_per_s.map(f64::round), Some(35.0));
    assert_eq!((compared.ebisu.measured_seconds, compared.ebisu.reached), (Some(0.25e-3), None));
    assert!(compared.to_string().contains("not applicable: "));
    let other = self::problem("2d5pt", "512x512", DType::F64);
    assert!(compare(&other, &own, &all).is_err());
}
