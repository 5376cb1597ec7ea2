//! Tuning on the adapter at hand: the measurements, the kept plans, and the results of the plans that it
//! finds.

use crate::common;

use abide_core::backend::Backend;
use abide_core::{DType, Execution, Options, Tune, catalogue};
use common::{backend, check_plan, problem, values};

#[test]
fn what_tuning_finds_is_kept_and_right() {
    let Some(backend) = backend() else { return };
    let folder = tempfile::tempdir().unwrap();
    let backend = backend.keeping_winners_in(folder.path());
    let program = catalogue::find("2d5pt").unwrap().program(2).unwrap();
    let problem = problem(program, &[67, 131], DType::F32, "fixed").unwrap();
    let quick = Options { tune: Tune::Quick, ..Options::default() };

    let rows = backend.tuner().unwrap().measure(&problem, &Options { tune: Tune::Off, ..quick }).unwrap();
    assert!(rows.len() > 2 && rows[0].seconds.is_some(), "{rows:?}");
    assert!(rows.iter().any(|row| row.plan.execution == Execution::Stepwise));
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing is kept that was not asked for"
    );

    let tuned = backend.plan(&problem, &quick).unwrap();
    assert!(
        tuned.notes.iter().any(|note| note.starts_with("tuning quick: the fastest of")),
        "{:?}",
        tuned.notes
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let kept = backend.plan(&problem, &Options::default()).unwrap();
    assert_eq!(kept.schedule, tuned.schedule);
    assert!(kept.notes.iter().any(|note| note.starts_with("kept from tuning quick")), "{:?}", kept.notes);
    check_plan(&backend, &problem, &kept, &values(&problem, 1), 3);
}
