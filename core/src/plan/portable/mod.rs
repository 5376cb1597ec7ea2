//! Devices that have no barrier of all workgroups and tell next to nothing of themselves: what the kernels
//! for them have in common, and which of them is planned.
//!
//! Three families: a launch per stage ([`Stepwise`](super::Stepwise)), windows that stay in registers for
//! several steps ([`Overlapped`](super::Overlapped)), and planes that stream through several steps
//! ([`PortableStreaming`](super::PortableStreaming)).

mod neighbours;
pub(super) mod rates;
#[cfg(test)]
pub(super) mod tests;

use super::perks::Traffic;
use super::stepwise::check_buffer;
use super::{
    CachePolicy, Depth, Execution, Options, Plan, Schedule, base, plan_overlapped, plan_portable_streaming,
    plan_stepwise,
};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::program::{Problem, Program};

pub use self::neighbours::neighbours as portable_neighbours;

/// The most operations of a kernel's unrolled formulas: compilers take time for each.
pub(super) const MOST_OPERATIONS: usize = 3000;

/// The most arguments of a stage's function, its taps before all: WGSL allows 255.
pub(super) const MOST_ARGUMENTS: usize = 240;

/// Plans for a device that has no barrier of all workgroups and does not tell its registers: what `options`
/// ask for, or the faster by the planner's estimate where they leave it open.
pub fn plan_portable(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let stepwise = || plan_stepwise(problem, device, options);
    match (options.execution, options.depth) {
        (Execution::Overlapped, _) => plan_overlapped(problem, device, options),
        (Execution::Streaming, _) => plan_portable_streaming(problem, device, options),
        (Execution::Auto, Depth::Auto) => {
            let mut stepwise = stepwise()?;
            match plan_several_steps(problem, device, options) {
                Ok(several) if several.estimated_seconds < stepwise.estimated_seconds => Ok(several),
                Ok(_) => Ok(stepwise),
                Err(why) => {
                    stepwise.notes.push(format!("one step per launch because several cannot be: {why}"));
                    Ok(stepwise)
                }
            }
        }
        (Execution::Auto, Depth::Steps(2..)) => plan_several_steps(problem, device, options),
        (Execution::Auto | Execution::Stepwise | Execution::Persistent, _) => stepwise(),
    }
}

/// Several steps per launch: overlapped or streaming, whichever is estimated to be faster.
fn plan_several_steps(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    match (plan_overlapped(problem, device, options), plan_portable_streaming(problem, device, options)) {
        (Ok(overlapped), Ok(streaming)) if streaming.estimated_seconds < overlapped.estimated_seconds => {
            Ok(streaming)
        }
        (Ok(overlapped), _) => Ok(overlapped),
        (Err(why), Ok(mut streaming)) => {
            streaming.notes.push(format!("streaming because no overlapped tile fits: {why}"));
            Ok(streaming)
        }
        // Of two reasons, that of overlapped tiling: it can do more.
        (Err(why), Err(_)) => Err(why),
    }
}

/// Returns the plan of a schedule that takes `depth` steps per launch; `estimate` is in seconds per step.
pub(super) fn plan_of(
    problem: &Problem,
    device: &DeviceSpec,
    (execution, schedule): (Execution, Schedule),
    depth: usize,
    estimate: f64,
) -> Plan {
    let traffic = Traffic::in_passes(problem, device, depth);
    let mut plan = base(problem, device, execution, schedule, traffic);
    plan.depth = depth as u32;
    plan.estimated_seconds = estimate;
    plan
}

/// A device has no room for kernels of several steps of a kind; `room` says what there is.
pub(super) fn no_room(
    what: &str,
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    room: String,
) -> Error {
    let depth = match options.depth {
        Depth::Auto => "1 step deep".to_owned(),
        Depth::Steps(steps) => format!("{steps} steps deep"),
    };
    let asked = format!(
        "{} fields of radius {:?} on {} {}, {depth}",
        problem.program.fields().len(),
        problem.program.radius(),
        problem.shape,
        problem.dtype,
    );
    let change = "use a smaller --depth, or --execution stepwise";
    Error::limit(format!("{what} on {}", device.name), asked, room, change)
}

/// Refuses what no kernel of several steps can do on a device: fields that it cannot bind, cells that stay
/// from dispatch to dispatch.
pub(super) fn check_several_steps(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<()> {
    problem.check()?;
    check_buffer(problem, device)?;
    if options.cache == CachePolicy::Auto {
        return Ok(());
    }
    Err(Error::invalid(
        format!("--cache {} with several steps per launch", options.cache),
        "such a kernel keeps no cell from launch to launch",
        "leave --cache at auto, or choose a device that runs persistent kernels",
    ))
}

/// What a problem asks of a kernel of several steps, whatever its form.
pub(super) struct Demand<'a> {
    pub problem: &'a Problem,
    /// Simplified, as kernels are made of it.
    pub program: Program,
    pub radius: [usize; 3],
    /// How far a step reaches below and above a cell along each axis, all stages together.
    pub reach: [[usize; 2]; 3],
    /// Operations of a cell and step; a fused multiply-add is one.
    pub operations: usize,
}

impl Demand<'_> {
    pub fn of(problem: &Problem) -> Demand<'_> {
        let program = problem.program.simplified(problem.dtype);
        let mut reach = [[0; 2]; 3];
        for stage in program.stages() {
            for axis in 0..3 {
                let offsets = stage.dag.taps().map(|tap| tap.offset[axis]);
                let (low, high) = offsets.fold((0, 0), |(low, high), at| (low.min(at), high.max(at)));
                let mut sides = [low.unsigned_abs() as usize, high.unsigned_abs() as usize];
                // A ghost cell may show a cell as far on this side of the edge.
                if problem.boundaries.0[axis].iter().any(|side| side.shows_this_side()) {
                    sides = [sides[0].max(sides[1]); 2];
                }
                (0..2).for_each(|side| reach[axis][side] += sides[side]);
            }
        }
        let operations = program.operations().max(1);
        Demand { problem, radius: problem.program.radius(), program, reach, operations }
    }
}

/// The most words of registers that a thread may take for cells, of `most` on a GPU: half of them all where a
/// device tells.
pub(super) fn most_words(device: &DeviceSpec, most: usize) -> usize {
    device.registers_per_thread.map_or(most, |registers| most.min(registers / 2))
}

/// All pairs.
pub(super) fn product<const N: usize, const M: usize>(
    a: [usize; N],
    b: [usize; M],
) -> impl Iterator<Item = [usize; 2]> {
    a.into_iter().flat_map(move |a| b.map(|b| [a, b]))
}
