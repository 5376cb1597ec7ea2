//! A plan's estimate beside the time that the device took.

use super::{Compiled, Plan};

/// A plan that was considered on the device.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The plan as it was compiled, if it was; its report has the registers and spills.
    pub plan: Plan,
    /// The planner's estimate of a step in seconds, before the compiler was asked.
    pub predicted_seconds: f64,
    /// The median of the timed runs' seconds per step; `None` where the plan was not timed.
    pub seconds: Option<f64>,
    /// The changes that the compiler's report made, or the reason why the plan was not timed.
    pub note: Option<String>,
}

impl Measured {
    /// Returns a plan that was not timed yet.
    pub fn of(plan: Plan) -> Measured {
        Measured { predicted_seconds: plan.estimated_seconds, plan, seconds: None, note: None }
    }

    /// Returns the most registers per thread of any of the plan's kernels; `None` if the plan was not
    /// compiled.
    pub fn registers(&self) -> Option<usize> {
        self.plan.compiled.iter().map(|kernel| kernel.registers).max()
    }

    /// Returns the most bytes per thread that any of the plan's kernels spills; `None` if it was not
    /// compiled.
    pub fn spill_bytes(&self) -> Option<usize> {
        Compiled::most_spilled(&self.plan.compiled)
    }

    /// Returns the measured seconds over the predicted ones.
    pub fn ratio(&self) -> Option<f64> {
        self.seconds.filter(|_| self.predicted_seconds > 0.0).map(|seconds| seconds / self.predicted_seconds)
    }

    /// Returns the fastest of these plans; `None` if none was timed.
    pub fn fastest<'a>(all: impl IntoIterator<Item = &'a Measured>) -> Option<&'a Measured> {
        let timed = all.into_iter().filter_map(|one| Some((one, one.seconds?)));
        timed.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(one, _)| one)
    }
}
