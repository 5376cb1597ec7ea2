use std::sync::Arc;
use std::time::Duration;

use abide_core::backend::{LaunchTime, Timing, time_launches};
use abide_core::{Array, DType, DeviceSpec, Error, Options, Plan, Problem, Result, Session, Shape};

use abide_planner::plan;

/// A session of two steps in turn, whose launches take known times; some of its steps are slow.
struct Fake {
    plan: Plan,
    steps: usize,
    launches: bool,
}

impl Session for Fake {
    fn plan(&self) -> &Plan {
        &self.plan
    }
    fn advance(&mut self, _: u64) -> Result<f64> {
        Ok(0.0)
    }
    fn read(&mut self, _: usize) -> Result<Array> {
        Array::zeros(DType::F32, 0)
    }
    fn read_window(&mut self, _: usize, _: [usize; 3], _: [usize; 3]) -> Result<Array> {
        Array::zeros(DType::F32, 0)
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
    fn time_step(&mut self) -> Result<Vec<LaunchTime>> {
        let slow = if self.steps % 10 < 4 { 7.0 } else { 1.0 };
        let odd = self.steps % 2;
        self.steps += 1;
        let of = |stages: &[usize], seconds: f64| LaunchTime { stages: stages.to_vec(), seconds };
        Ok(match (self.launches, odd) {
            (false, _) => Vec::new(),
            (true, 0) => vec![of(&[0, 2], 1e-3 * slow), of(&[1], 2e-3)],
            (true, _) => vec![of(&[3], 5e-3 * slow)],
        })
    }
}

fn fake(launches: bool) -> Fake {
    let program = abide_core::catalogue::find("2d5pt").unwrap().program(2).unwrap();
    let problem = Problem::new(Arc::new(program), Shape::new(&[64, 64]).unwrap(), DType::F32).unwrap();
    let plan = plan(&problem, &DeviceSpec::preset("h200").unwrap(), &Options::default()).unwrap();
    Fake { plan, steps: 0, launches }
}

#[test]
fn every_launch_of_the_cycle_has_its_median() {
    let (warm_up, budget) = (Duration::ZERO, Duration::ZERO);
    let timing = Timing { warm_up, budget, rounds: [25, 40] };
    let mut session = fake(true);
    let found = time_launches(&mut session, 2, &timing).unwrap();
    let of = |stages: &[usize], seconds: f64| LaunchTime { stages: stages.to_vec(), seconds };
    assert_eq!(found, [of(&[0, 2], 1e-3), of(&[1], 2e-3), of(&[3], 5e-3)]);
    // A cycle to warm up, and as many as there have to be once the budget is used up.
    assert_eq!(session.steps, 2 + 2 * 25);
    let timing = Timing { budget: Duration::from_secs(60), ..timing };
    let mut session = fake(true);
    time_launches(&mut session, 2, &timing).unwrap();
    assert_eq!(session.steps, 2 + 2 * 40);
}

#[test]
fn a_session_without_launches_is_refused() {
    let timing = Timing { warm_up: Duration::ZERO, ..Timing::default() };
    let error = time_launches(&mut fake(false), 1, &timing).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("2d5pt has no launches"), "{error}");
}
