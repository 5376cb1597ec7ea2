//! Times each launch of a program's steps, on any backend whose session times launches separately.

use std::time::{Duration, Instant};

use super::Session;
use crate::error::{Error, Result};

/// The time of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchTime {
    /// The numbers of the stages that the launch carries out, ascending.
    pub stages: Vec<usize>,
    /// Seconds of the device.
    pub seconds: f64,
}

/// How long launches are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Work before anything counts, in which an idle device reaches its clock.
    pub warm_up: Duration,
    /// The time after which no further round begins, once there are enough.
    pub budget: Duration,
    /// The least and the most rounds, each of all steps of the program's cycle.
    pub rounds: [usize; 2],
}

impl Default for Timing {
    fn default() -> Self {
        let (warm_up, budget) = (Duration::from_millis(300), Duration::from_secs(3));
        Timing { warm_up, budget, rounds: [5, 51] }
    }
}

/// Runs steps of a session and returns the median time of each launch, those of the same stages as one, in the order
/// in which they first run. Launches run in their turn, on the values and behind the kernels of a real step: many write
/// fields where they lie, and one that ran again and again would soon compute with values that no run has.
///
/// # Errors
///
/// [`Error::Unsupported`] where the session does not time launches separately, and the errors of
/// [`Session::time_step`].
pub fn time_launches(session: &mut dyn Session, cycle: usize, timing: &Timing) -> Result<Vec<LaunchTime>> {
    let cycle = cycle.max(1);
    let begun = Instant::now();
    loop {
        for _ in 0..cycle {
            session.time_step()?;
        }
        if begun.elapsed() >= timing.warm_up {
            break;
        }
    }
    let mut samples: Vec<(Vec<usize>, Vec<f64>)> = Vec::new();
    let (begun, [least, most]) = (Instant::now(), timing.rounds);
    for round in 0..most.max(1) {
        if round >= least && begun.elapsed() >= timing.budget {
            break;
        }
        for _ in 0..cycle {
            for LaunchTime { stages, seconds } in session.time_step()? {
                match samples.iter_mut().find(|(known, _)| *known == stages) {
                    Some((_, all)) => all.push(seconds),
                    None => samples.push((stages, vec![seconds])),
                }
            }
        }
    }
    if samples.is_empty() {
        return Err(Error::unsupported(
            "timing groups of stages",
            format!("{} has no launches that can be told apart", session.plan().program),
            "time plans of plain programs with --measured, and groups of programs of several loops",
        ));
    }
    let median = |(stages, mut all): (Vec<usize>, Vec<f64>)| {
        all.sort_by(f64::total_cmp);
        LaunchTime { stages, seconds: all[all.len() / 2] }
    };
    Ok(samples.into_iter().map(median).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::device::DeviceSpec;
    use crate::domain::Shape;
    use crate::plan::{Options, Plan, plan};
    use crate::program::Problem;
    use crate::real::{Array, DType};

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
        let program = crate::catalogue::find("2d5pt").unwrap().program(2).unwrap();
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
}
