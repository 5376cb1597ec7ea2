//! Tuning on the device: the plan that it finds has the reference's bits, is kept, and is found again.

use crate::common;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::plan::{Execution, Measured, Options, Recipe, Tune};
use abide_core::{Array, Backend, DType, Plan, Problem, Result, Shape, Start, catalogue};
use abide_cuda::CudaBackend;
use abide_planner::candidates;

use common::present;

/// One test at a time has the device: runs that are timed must not share it.
static DEVICE: Mutex<()> = Mutex::new(());

fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
}

fn options(tune: Tune) -> Options {
    Options { tune, ..Options::default() }
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, |entries| entries.count())
}

fn start(problem: &Problem) -> Vec<Array> {
    let fields = 0..problem.program.fields().len();
    let fill =
        |f| Start::Random { seed: 5 + f as u64, low: 0.1, high: 0.9 }.fill(&problem.shape, problem.dtype);
    fields.map(fill).collect::<Result<_>>().unwrap()
}

/// Checks that the fields after some steps of a plan are the reference's; the steps are no whole number of
/// passes.
fn has_the_references_bits(backend: &CudaBackend, problem: &Problem, plan: &Plan) {
    let steps = 2 * u64::from(plan.depth) + 5;
    let mut expected = start(problem);
    abide_cpu::reference::advance(problem, &mut expected, steps).unwrap();
    let mut session = backend.open(problem, plan, start(problem)).unwrap();
    session.advance(steps).unwrap();
    for (field, expected) in expected.iter().enumerate() {
        let got = session.read(field).unwrap();
        assert!(got.same_bits(expected), "{} {}: {}", problem.program.name(), problem.shape, plan.summary());
    }
}

fn noted(plan: &Plan, words: &str) -> bool {
    plan.notes.iter().any(|note| note.contains(words))
}

#[test]
fn the_winner_is_right_and_is_kept() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let _alone = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let backend = backend.keeping_winners_in(folder.path());
    // The second of each pair belongs to the same class of sizes as the first.
    let pairs = [
        (problem("2d5pt", &[509, 521], DType::F64), problem("2d5pt", &[512, 500], DType::F64)),
        (problem("3d7pt", &[61, 67, 130], DType::F32), problem("3d7pt", &[64, 65, 127], DType::F32)),
        (problem("gray-scott", &[127, 131], DType::F64), problem("gray-scott", &[131, 128], DType::F64)),
    ];
    for (number, (problem, near)) in pairs.iter().enumerate() {
        let plan = |problem: &Problem, tune| backend.plan(problem, &options(tune)).unwrap();
        let own = plan(problem, Tune::Off);
        assert_eq!(plan(problem, Tune::Kept), own, "nothing is kept yet");
        assert_eq!(files(folder.path()), number);

        let tuned = plan(problem, Tune::Quick);
        assert!(noted(&tuned, "tuning quick: the fastest of"), "{:?}", tuned.notes);
        assert_eq!(files(folder.path()), number + 1);
        has_the_references_bits(&backend, problem, &tuned);

        for tune in [Tune::Kept, Tune::Quick] {
            let kept = plan(problem, tune);
            assert_eq!(kept.schedule, tuned.schedule);
            assert!(noted(&kept, "kept from tuning quick on"), "{:?}", kept.notes);
        }
        assert_eq!(plan(problem, Tune::Off), own, "off uses nothing that is kept");

        let kept = plan(near, Tune::Kept);
        if noted(&kept, "kept from") {
            let same = match (Recipe::of(&kept), Recipe::of(&tuned)) {
                // Whether all stays on the chip is not a choice.
                (
                    Some(Recipe::Persistent { configuration: a, .. }),
                    Some(Recipe::Persistent { configuration: b, .. }),
                ) => a == b,
                (a, b) => a == b,
            };
            assert!(same, "{} is no {}", kept.summary(), tuned.summary());
        }
        has_the_references_bits(&backend, near, &kept);
        assert_eq!(files(folder.path()), number + 1);
    }

    // Another type, or other options, are other questions.
    let problem = problem("2d5pt", &[509, 521], DType::F32);
    assert!(!noted(&backend.plan(&problem, &options(Tune::Kept)).unwrap(), "kept from"));
    let persistent = Options { execution: Execution::Persistent, ..options(Tune::Kept) };
    assert!(!noted(&backend.plan(&pairs[0].0, &persistent).unwrap(), "kept from"));

    // A damaged file is tuned anew.
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::write(entry.unwrap().path(), "{}").unwrap();
    }
    let problem = &pairs[0].0;
    assert!(!noted(&backend.plan(problem, &options(Tune::Kept)).unwrap(), "kept from"));
    assert!(noted(&backend.plan(problem, &options(Tune::Quick)).unwrap(), "tuning quick: the fastest of"));
    assert!(noted(&backend.plan(problem, &options(Tune::Kept)).unwrap(), "kept from"));
}

#[test]
fn measurements_tell_of_every_plan_and_agree_with_a_session() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let _alone = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let backend = backend.keeping_winners_in(folder.path());
    let Some(tuner) = backend.tuner() else { panic!("the backend has a tuner") };
    let problem = problem("2d9pt", &[2311, 2297], DType::F64);
    let rows = tuner.measure(&problem, &options(Tune::Kept)).unwrap();
    assert_eq!(files(folder.path()), 0, "measuring alone keeps nothing");

    let plans = candidates(&problem, backend.device(), &options(Tune::Kept)).unwrap();
    assert_eq!(rows.len(), plans.len());
    for (row, plan) in rows.iter().zip(&plans) {
        println!(
            "{:8.2} µs predicted, {:8.2} measured, {:?} registers, {:?} spilled, {:?}: {}",
            row.predicted_seconds * 1e6,
            row.seconds.unwrap_or(f64::NAN) * 1e6,
            row.registers(),
            row.spill_bytes(),
            row.note,
            row.plan.summary(),
        );
        assert_eq!(row.plan.execution, plan.execution);
        assert_eq!(row.predicted_seconds, plan.estimated_seconds);
        assert!(row.seconds.is_some() || row.note.is_some(), "{}", row.plan.summary());
        assert!(row.seconds.is_none_or(|seconds| seconds > 0.0));
    }
    let own = rows[0].seconds.expect("the planner's own choice is always timed");
    let fastest = Measured::fastest(&rows).unwrap();
    let seconds = fastest.seconds.unwrap();
    assert!(seconds <= own);

    // A session of the fastest plan, timed by itself.
    let mut session = backend.open(&problem, &fastest.plan, start(&problem)).unwrap();
    let steps = (0.1 / seconds) as u64 / u64::from(fastest.plan.depth) * u64::from(fastest.plan.depth);
    session.advance(steps).unwrap();
    let alone = session.advance(steps).unwrap() / steps as f64;
    assert!((0.67..1.5).contains(&(alone / seconds)), "{alone} s a step alone, {seconds} when tuned");
}
