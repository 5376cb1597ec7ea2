//! The planner's estimate of a launch of one stage: one for plain programs and all others.

use abide_core::program::StageKind;
use abide_core::{DeviceSpec, Problem, Stage};

use crate::estimate::{formulas, instructions, issued_at_best, reducing, transform_seconds};
use crate::rates::{ARITHMETIC, MEMORY_SHARE};

/// The shortest launch that steps: a load, a barrier and a store. Measured on an H200 from 64² to 512².
const SHORTEST_SECONDS: f64 = 2.8e-6;

/// Scheduler clocks per 32 cells of a stage, and per 32 cells that its tile reads with its halos: 93 for stars of radius one
/// in two dimensions.
const CELL_CLOCKS: f64 = 43.0;

const READ_CLOCKS: f64 = 46.0;

/// Instructions of an index of a reduction by itself, besides its formula: a warp loads the rows of a leaf and joins them. Fitted on
/// an H200, f32, with reductions of 67 and 134 million cells between passes.
const REDUCED: f64 = 9.0;

/// Returns the seconds of a launch whose stage takes so many.
pub(super) fn launch_seconds(device: &DeviceSpec, stage_seconds: f64) -> f64 {
    // The shortest launch was measured on devices that report their registers, so it does not apply to others.
    let shortest = if device.registers.is_some() { SHORTEST_SECONDS } else { 0.0 };
    device.launch_seconds + stage_seconds.max(shortest)
}

/// Returns the seconds that a stage takes by itself, without its launch. It moves `bytes`, and a tile reads `reached` cells
/// for each of its own, halos included.
///
/// The slower of two bounds, each fitted on an H200. One is that of short formulas, of nine stencils: memory or the indices
/// of what tiles read, whichever is slower; the arithmetic is not hidden behind that and adds to it. The other is that of
/// formulas with many instructions, divisions above all, of CloverLeaf's loops: their issue, beside which memory works.
pub(crate) fn stage_seconds(
    problem: &Problem,
    device: &DeviceSpec,
    stage: &Stage,
    bytes: f64,
    reached: f64,
) -> f64 {
    seconds_with(problem, device, stage, bytes, reached, 0.0)
}

/// Returns the same for an update whose kernel reduces what it makes; `bytes` are those of both.
pub(crate) fn tail_seconds(
    problem: &Problem,
    device: &DeviceSpec,
    [update, reduction]: [&Stage; 2],
    bytes: f64,
    reached: f64,
) -> f64 {
    seconds_with(problem, device, update, bytes, reached, reducing(reduction, problem.dtype))
}

/// Returns the seconds of a stage with so many more instructions for each index.
fn seconds_with(
    problem: &Problem,
    device: &DeviceSpec,
    stage: &Stage,
    bytes: f64,
    reached: f64,
    more: f64,
) -> f64 {
    let over = |amount: f64, rate: f64| if rate > 0.0 { amount / rate } else { 0.0 };
    let indices = stage.indices(problem) as f64;
    let memory = over(bytes, device.memory_bandwidth * MEMORY_SHARE);
    let issue = issue_seconds(problem, device, stage, more);
    if matches!(stage.does, StageKind::Reduce(..)) {
        return memory.hypot(issue);
    }
    // Shared memory moves 128 bytes per clock and multiprocessor, which has four schedulers.
    let clocks = 4.0 * device.shared_bandwidth / 128.0;
    let reading = over(indices * (CELL_CLOCKS + READ_CLOCKS * reached + more) / 32.0, clocks);
    let flops = indices * stage.footprint.flops as f64;
    let short = memory.max(reading) + ARITHMETIC * over(flops, device.flops(problem.dtype));
    short.max(memory.hypot(issue)).max(transform_seconds(problem, device, stage))
}

/// Returns the seconds that a stage's instructions take to be issued; 0 where the device does not report its rate.
fn issue_seconds(problem: &Problem, device: &DeviceSpec, stage: &Stage, more: f64) -> f64 {
    if device.flops(abide_core::DType::F32) <= 0.0 {
        return 0.0;
    }
    let own = match stage.does {
        StageKind::Reduce(..) => REDUCED + formulas(stage, problem.dtype),
        _ => instructions(stage, problem.dtype),
    };
    (own + more) * stage.indices(problem) as f64 / issued_at_best(device)
}
