//! How loops of formulas become text.

use super::options::{Lowering, Options};
use super::{Execution, Plan, plan_stepwise};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::program::Problem;

/// The most terms of a stage whose loops are written out unless they are to be kept: compilers take some seconds for them.
const MOST_WRITTEN_OUT: usize = 1 << 15;

/// Points of a thread that go through loops together: twice as many registers hold what loops carry.
const TOGETHER: usize = 2;

/// Divides a tile among fewer threads where each has fewer points than go through loops together; returns how many do.
pub(super) fn points(lowering: Lowering, tile: [usize; 3], threads: &mut [usize; 3]) -> Result<usize> {
    if lowering != Lowering::Jammed {
        return Ok(1);
    }
    if !tile[2].is_multiple_of(TOGETHER) {
        let what = "cells of a tile's rows that go through loops together";
        return Err(Error::limit(what, tile[2], format!("a multiple of {TOGETHER}"), "use --lowering loops"));
    }
    threads[2] = threads[2].min(tile[2] / TOGETHER);
    Ok(TOGETHER)
}

/// Returns how the loops of a problem's launches per stage become text.
pub(super) fn lowering(problem: &Problem, options: &Options) -> Lowering {
    let looped = || problem.program.stages().iter().filter_map(|stage| stage.looped.as_ref());
    match options.lowering {
        _ if !problem.is_plain() || looped().next().is_none() => Lowering::Straight,
        Lowering::Auto if looped().any(|looped| looped.written_out() > MOST_WRITTEN_OUT) => Lowering::Loops,
        asked @ (Lowering::Loops | Lowering::Jammed) => asked,
        Lowering::Auto | Lowering::Straight => Lowering::Straight,
    }
}

/// Plans for a device whose launches per stage keep loops, where loops are asked for: no other kernels do. `None` where
/// they are not asked for.
pub(super) fn plan_loops(problem: &Problem, device: &DeviceSpec, options: &Options) -> Option<Result<Plan>> {
    options.lowering.keeps_loops().then(|| {
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
    match options.lowering.keeps_loops() {
        true => {
            let reason = "a CPU's instructions are those of each turn of a loop".to_owned();
            Err(refused(device, reason, "use --lowering straight, or a GPU"))
        }
        false => Ok(()),
    }
}

/// Refuses to jam points where a device's kernels cannot.
pub(super) fn refuse_jam(device: &DeviceSpec, options: &Options) -> Result<()> {
    match options.lowering {
        Lowering::Jammed => {
            let reason = "WGSL has no operators for several points of a thread".to_owned();
            Err(refused(device, reason, "use --lowering loops, or CUDA"))
        }
        _ => Ok(()),
    }
}

fn refused(device: &DeviceSpec, reason: String, change: &str) -> Error {
    Error::unsupported(device.name.clone(), reason, change)
}
