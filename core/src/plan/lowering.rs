//! How loops of formulas become text.

use super::options::{Lowering, Options};
use super::{Execution, Plan, plan_stepwise};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::expr::Looped;
use crate::program::Problem;

/// The most operations of a stage whose loops are written out unless they are to be kept: compilers take some seconds
/// for them.
const MOST_WRITTEN_OUT: usize = 1 << 14;

/// Returns how the loops of a problem's launches per stage become text.
pub(super) fn lowering(problem: &Problem, options: &Options) -> Lowering {
    let looped = || problem.program.stages().iter().filter_map(|stage| stage.looped.as_ref());
    match options.lowering {
        _ if !problem.is_plain() || looped().next().is_none() => Lowering::Straight,
        Lowering::Auto if looped().any(|looped| Looped::operations(looped) > MOST_WRITTEN_OUT) => {
            Lowering::Loops
        }
        Lowering::Loops => Lowering::Loops,
        Lowering::Auto | Lowering::Straight => Lowering::Straight,
    }
}

/// Plans for a device whose launches per stage keep loops, where loops are asked for: no other kernels do. `None` where
/// they are not asked for.
pub(super) fn plan_loops(problem: &Problem, device: &DeviceSpec, options: &Options) -> Option<Result<Plan>> {
    (options.lowering == Lowering::Loops).then(|| {
        let is_stepwise = matches!(options.execution, Execution::Auto | Execution::Stepwise);
        if !is_stepwise {
            let reason = format!("execution {} writes out each turn of a loop", options.execution);
            return Err(refused(device, reason, "use --execution stepwise, or --lowering straight"));
        }
        if problem.is_batch() || !problem.is_plain() {
            let reason =
                "kernels of batches and of programs that are not plain write out each turn of a loop";
            return Err(refused(device, reason.to_owned(), "use --lowering straight"));
        }
        plan_stepwise(problem, device, options)
    })
}

/// Refuses loops where a device runs formulas with each turn written out.
pub(super) fn refuse_loops(device: &DeviceSpec, options: &Options) -> Result<()> {
    match options.lowering {
        Lowering::Loops => {
            let reason = "a CPU's instructions are those of each turn of a loop".to_owned();
            Err(refused(device, reason, "use --lowering straight, or a GPU"))
        }
        Lowering::Auto | Lowering::Straight => Ok(()),
    }
}

fn refused(device: &DeviceSpec, reason: String, change: &str) -> Error {
    Error::unsupported(device.name.clone(), reason, change)
}
