//! How a run was cut into advances, and what of the plan ran in them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::plan::Plan;

/// The advances of a run: the steps that a device did without a halt in between, each number with how often.
///
/// A run halts where an epoch ends, where a row of a record is due, at marks, and where its caller wants it to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advances(BTreeMap<u64, u64>);

impl Advances {
    /// Returns the advances of a run that never halts.
    pub fn one(steps: u64) -> Advances {
        let mut all = Advances::default();
        all.add(steps, 1);
        all
    }

    /// Returns the advances of a run that halts after every so many steps.
    pub fn halting(steps: u64, every: u64) -> Advances {
        let every = every.max(1);
        let mut all = Advances::default();
        all.add(every, steps / every);
        all.add(steps % every, 1);
        all
    }

    /// Adds an advance of `steps` steps, so many times; one of no step is none.
    pub fn add(&mut self, steps: u64, times: u64) {
        if steps > 0 && times > 0 {
            *self.0.entry(steps).or_default() += times;
        }
    }

    /// Returns the steps of an advance and how often there was one, in ascending order of the steps.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(&steps, &times)| (steps, times))
    }

    /// Returns the total number of steps of all advances.
    pub fn steps(&self) -> u64 {
        self.iter().fold(0, |sum, (steps, times)| steps.saturating_mul(times).saturating_add(sum))
    }

    /// Returns the number of advances.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the steps of the longest advance.
    pub fn longest(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(&steps, _)| steps)
    }

    /// Returns the same steps with a halt after every `most` steps of an advance at the latest.
    pub fn cut(&self, most: u64) -> Advances {
        let mut all = Advances::default();
        for (steps, times) in self.iter() {
            all.add(most.max(1), steps / most.max(1) * times);
            all.add(steps % most.max(1), times);
        }
        all
    }
}

/// What of a plan ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ran {
    /// The advances: the host waited for the end of each.
    pub advances: u64,
    /// Steps of the longest advance.
    pub longest: u64,
    /// Passes over the domain, each of which loads and stores what does not stay on the chip.
    pub passes: u64,
    /// Steps of the deepest pass; less than the plan's depth where every advance was shorter than a pass.
    pub depth: u64,
}

impl Ran {
    /// Returns what of a plan ran in these advances.
    pub fn of(plan: &Plan, advances: &Advances) -> Ran {
        let cut = plan.cut(advances);
        let passes = cut.iter().map(|(steps, times)| plan.traffic.passes(steps) * times).sum();
        // Tiles that stay on the chip exchange every `depth` steps within a pass.
        let within = |steps: u64| match plan.traffic.pass_steps {
            0 | 1 => steps.min(u64::from(plan.depth)),
            _ => plan.traffic.deepest(steps),
        };
        let depth = cut.iter().map(|(steps, _)| within(steps)).max().unwrap_or(0);
        Ran { advances: advances.count(), longest: advances.longest(), passes, depth }
    }

    /// Returns in words what ran where that is not what the plan says: halts left shallower passes, or more of them; `None`
    /// where they did not.
    pub fn differs(&self, plan: &Plan, steps: u64) -> Option<String> {
        let whole = Ran::of(plan, &Advances::one(steps));
        if steps == 0 || (self.passes <= whole.passes && self.depth >= whole.depth) {
            return None;
        }
        let count = |number: u64, noun: &str| crate::plan::description::count(number as usize, noun);
        // A kernel that keeps the domain goes over it in every step, whether it was halted or not.
        let passes = match plan.traffic.pass_steps {
            0 | 1 => String::new(),
            _ => format!("{} pass{}, ", self.passes, if self.passes == 1 { "" } else { "es" }),
        };
        Some(format!(
            "{passes}{} deep at the most: the run halted {}, {} apart at the most",
            count(self.depth, "step"),
            count(self.advances, "time"),
            count(self.longest, "step"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use super::*;
    use crate::backend::{Pace, Segmented, Session, drive};
    use crate::catalogue;
    use crate::device::DeviceSpec;
    use crate::domain::Shape;
    use crate::error::Result;
    use crate::plan::{Depth, Execution, Options, plan};
    use crate::program::{Probe, Problem, Record};
    use crate::real::{Array, DType};

    /// A session that does its steps and has zeros.
    struct Zeros(Plan);

    impl Session for Zeros {
        fn plan(&self) -> &Plan {
            &self.0
        }
        fn advance(&mut self, _: u64) -> Result<f64> {
            Ok(1e-6)
        }
        fn read(&mut self, _: usize) -> Result<Array> {
            Array::zeros(DType::F64, self.0.shape.cells())
        }
        fn read_window(&mut self, _: usize, _: [usize; 3], _: [usize; 3]) -> Result<Array> {
            Array::zeros(DType::F64, 1)
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

    fn problem() -> Problem {
        let program = catalogue::find("2d5pt").unwrap().program(2).unwrap();
        Problem::new(Arc::new(program), Shape::new(&[512, 512]).unwrap(), DType::F64).unwrap()
    }

    /// A run that is halted at each step, whose kernel takes eight, reports single steps and their traffic.
    #[test]
    fn a_run_that_halts_reports_what_ran() {
        let once = 16.0 * 512.0 * 512.0;
        let probe = Probe { field: 0, index: [0, 10, 20] };
        let options =
            Options { execution: Execution::Streaming, depth: Depth::Steps(8), ..Options::default() };
        let run = |every: Option<u64>, steps: u64| {
            let mut problem = problem();
            problem.record = every.map(|every| Record::new(&problem.program, every, vec![probe]));
            let plan = plan(&problem, &DeviceSpec::preset("h200").unwrap(), &options).unwrap();
            let fields = [Array::zeros(DType::F64, 512 * 512).unwrap()];
            let mut session =
                Segmented::around(Segmented::new(&problem, &fields).unwrap(), Box::new(Zeros(plan)));
            let pace = Pace { epoch: std::time::Duration::from_secs(9), ..Pace::default() };
            drive("zeros", session.as_mut(), steps, pace, &mut |_, _| Ok(ControlFlow::Continue(()))).unwrap()
        };
        let halted = run(Some(1), 400);
        assert_eq!(halted.ran, Ran { advances: 400, longest: 1, passes: 400, depth: 1 });
        assert_eq!((halted.bytes_moved, halted.bytes_least), (400.0 * once, once));
        let words = halted.ran.differs(&halted.plan, halted.steps).unwrap();
        assert!(words.starts_with("400 passes, 1 step deep at the most"), "{words}");
        let four = run(Some(4), 400);
        assert_eq!(four.ran, Ran { advances: 100, longest: 4, passes: 100, depth: 4 });
        assert_eq!(four.bytes_moved, 100.0 * once);
        // Without a record, epochs are whole passes.
        let free = run(None, 400);
        assert_eq!((free.ran.passes, free.ran.depth, free.bytes_moved), (50, 8, 50.0 * once));
        assert_eq!(free.ran.differs(&free.plan, free.steps), None);
    }

    #[test]
    fn advances_are_counted_and_cut() {
        let all = Advances::halting(17, 5);
        assert_eq!((all.steps(), all.count(), all.longest()), (17, 4, 5));
        assert_eq!(all.cut(2).iter().collect::<Vec<_>>(), [(1, 3), (2, 7)]);
        assert_eq!(Advances::one(0).count(), 0);
    }
}
