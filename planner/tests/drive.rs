//! Runs in epochs.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use abide_core::backend::{Pace, drive};
use abide_core::{Array, DType, DeviceSpec, Options, Plan, Problem, Result, Session, Shape, catalogue};
use abide_planner::plan;

/// A device that takes this long for a step, whatever its plan projects.
struct Slow {
    plan: Plan,
    step: Duration,
    advances: Vec<u64>,
}

impl Session for Slow {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        self.advances.push(steps);
        let taken = self.step * steps as u32;
        sleep(taken);
        Ok(taken.as_secs_f64())
    }

    fn read(&mut self, _: usize) -> Result<Array> {
        Array::zeros(DType::F32, 1)
    }

    fn read_window(&mut self, _: usize, _: [usize; 3], _: [usize; 3]) -> Result<Array> {
        Array::zeros(DType::F32, 1)
    }

    fn write(&mut self, _: usize, _: &Array) -> Result<()> {
        Ok(())
    }

    fn write_window(&mut self, _: usize, _: [usize; 3], _: [usize; 3], _: &Array) -> Result<()> {
        Ok(())
    }

    fn set_parameter(&mut self, _: usize, _: f64) -> Result<()> {
        Ok(())
    }
}

fn slow(step: Duration) -> Slow {
    let program = catalogue::find("2d5pt").unwrap().program(2).unwrap();
    let problem = Problem::new(Arc::new(program), Shape::new(&[512, 512]).unwrap(), DType::F32).unwrap();
    let device = DeviceSpec::preset("h200").unwrap();
    Slow { plan: plan(&problem, &device, &Options::default()).unwrap(), step, advances: Vec::new() }
}

/// The plan projects some 10⁵ steps for an epoch, and the device does 10: no epoch is much longer than asked.
#[test]
fn no_epoch_trusts_the_projection() {
    let mut session = slow(Duration::from_millis(10));
    let depth = u64::from(session.plan.depth.max(1));
    let pace = Pace { epoch: Duration::from_millis(100), ..Pace::default() };
    let report = drive("slow", &mut session, 60, pace, &mut |_, _| Ok(ControlFlow::Continue(()))).unwrap();
    assert_eq!((report.steps, session.advances.iter().sum::<u64>()), (60, 60));
    assert_eq!(session.advances[0], depth.min(60), "the first epoch is a pass");
    let longest = session.advances.iter().max().unwrap();
    assert!(*longest <= depth.next_multiple_of(10).max(10 + depth), "{:?}", session.advances);
}

/// Epochs grow: a fast device is not asked step by step.
#[test]
fn epochs_grow_with_the_measured_rate() {
    let mut session = slow(Duration::ZERO);
    drive("fast", &mut session, 1_000_000, Pace::default(), &mut |_, _| Ok(ControlFlow::Continue(())))
        .unwrap();
    assert!(session.advances.len() < 12, "{:?}", session.advances);
}

/// Epochs end at multiples of the interval, counted from the steps that were done before.
#[test]
fn epochs_end_at_multiples_from_the_start() {
    let mut session = slow(Duration::ZERO);
    let pace = Pace { every: Some(5), begun: 7, ..Pace::default() };
    let mut ends = Vec::new();
    drive("fast", &mut session, 13, pace, &mut |_, progress| {
        ends.push(7 + progress.steps);
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    for due in [10, 15, 20] {
        assert!(ends.contains(&due), "{ends:?}");
    }
    assert!(session.advances.iter().all(|steps| *steps <= 5), "{:?}", session.advances);
}
