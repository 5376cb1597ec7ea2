//! 2.5-D streaming with temporal blocking, the portable form: for devices without a barrier of all workgroups
//! (Nguyen et al., SC'10).
//!
//! A workgroup owns a *window* across the swept axis, each of its threads a block of a plane's cells, and
//! sweeps a *share* of the planes. The stages of `depth` steps are *levels*, one behind another: each turns
//! the plane that arrives into a plane of its result and carries partial sums ([`Carry`]), so that it reads
//! only neighbours in the newest plane. Levels work a plane apart, from the last to the first, and one
//! barrier per plane serves all; where a window is one subgroup whose threads can shuffle, they work from the
//! first to the last without a barrier. Windows overlap by the reach of all steps along the two axes of a
//! plane only. The warp form for CUDA is [`WarpStreaming`](super::warp::WarpStreaming).

mod candidates;
mod description;
mod estimate;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::carry::{Carry, Slot};
use crate::device::DeviceSpec;
use crate::domain::Axes;
use crate::error::{Error, Result};
use crate::expr::{Node, Tap};
use crate::plan::overlapped::Exchange;
use crate::plan::portable::{
    self, Demand, MOST_ARGUMENTS, MOST_OPERATIONS, check_several_steps, most_words, no_room,
};
use crate::plan::{Execution, Options, Plan, Schedule};
use crate::program::{Problem, Stage};

/// The most words of registers for what a thread's cells carry from plane to plane, all levels together.
const MOST_WORDS: usize = 216;

/// The free choices of planes. Pairs are (slower, faster) axis of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configuration {
    /// Steps of a dispatch.
    pub depth: usize,
    /// Threads of a window.
    pub threads: [usize; 2],
    /// Cells of a plane that a thread owns.
    pub cells: [usize; 2],
    /// Planes by which loads are ahead of their use.
    pub ahead: usize,
    /// How threads give each other cells of a plane.
    pub handover: Handover,
    /// Parts into which the planes of a window are cut.
    pub shares: usize,
}

/// How the threads of a window give each other cells of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Handover {
    /// Through workgroup memory.
    Slots,
    /// Through two places of workgroup memory, of which one is read while the other is written.
    DoubleSlots,
    /// By shuffles: the window is one row of threads, and they are a subgroup. 32-bit values alone. With no
    /// barrier to save, a level takes what the one before it has just made.
    Shuffles,
}

impl Handover {
    /// All there are, by their barriers.
    pub const ALL: [Handover; 3] = [Handover::Shuffles, Handover::DoubleSlots, Handover::Slots];

    /// Barriers of a workgroup for each plane.
    pub fn barriers(self) -> usize {
        match self {
            Handover::Slots => 2,
            Handover::DoubleSlots => 1,
            Handover::Shuffles => 0,
        }
    }

    /// Planes by which a level is behind the one before it, beside what its formula waits for.
    pub fn lag(self) -> usize {
        usize::from(self != Handover::Shuffles)
    }

    /// Copies of what threads put into workgroup memory.
    pub fn copies(self) -> usize {
        match self {
            Handover::Slots => 1,
            Handover::DoubleSlots => 2,
            Handover::Shuffles => 0,
        }
    }
}

/// Planes that stream through several steps per dispatch. Pairs are (slower, faster) axis of a plane, triples
/// begin with the swept axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortableStreaming {
    /// What was chosen freely.
    pub configuration: Configuration,
    /// Cells below and above what is kept that go wrong where the domain goes on beyond a window, or share.
    pub margin: [[usize; 2]; 3],
    /// Cells below and above the domain that the outermost windows, or shares, hold.
    pub lead: [[usize; 2]; 3],
    /// Windows of the domain, across.
    pub tiles: [usize; 2],
    /// Rows and columns of windows that lie at a side of the domain where it does not go on.
    pub sides: [usize; 2],
    /// Parts into which the planes of those are cut: they ask the boundary, and take longer.
    pub side_shares: usize,
    /// Cells of a row that are loaded and stored at once.
    pub lanes: usize,
    /// The planes by which the result is behind what arrives.
    pub behind: usize,
    /// Values that a thread carries from plane to plane in registers.
    pub carried: usize,
    /// Bytes of workgroup memory of a window.
    pub shared_bytes: usize,
    /// The share of the computed cells that are kept, for windows and shares overlap: the valid portion V of
    /// EBISU (eq. 9).
    pub valid: f64,
}

impl PortableStreaming {
    /// Cells of a window's plane along its two axes.
    pub fn window(&self) -> [usize; 2] {
        std::array::from_fn(|axis| self.configuration.threads[axis] * self.configuration.cells[axis])
    }

    /// Cells that a window in the middle keeps along the two axes.
    pub fn tile(&self) -> [usize; 2] {
        std::array::from_fn(|axis| self.window()[axis].saturating_sub(self.margin[axis + 1].iter().sum()))
    }

    /// Threads of a workgroup.
    pub fn threads_per_block(&self) -> usize {
        self.configuration.threads.iter().product()
    }

    /// Windows that lie at no side, and those that do.
    pub fn windows(&self) -> [usize; 2] {
        let middle: usize = (0..2).map(|axis| self.tiles[axis] - self.sides[axis]).product();
        [middle, self.tiles.iter().product::<usize>() - middle]
    }

    /// Workgroups of a dispatch.
    pub fn workgroups(&self) -> usize {
        let [middle, sides] = self.windows();
        middle * self.configuration.shares + sides * self.side_shares
    }
}

/// A stage as a level sees it: cut by plane of arrival, and what its threads give each other of the plane
/// that arrives.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The parts, and what is carried between them.
    pub carry: Carry,
    /// Cells of the arriving plane that the stage looks at, from a cell: a plane's offsets, 0 along the swept
    /// axis.
    pub taps: Vec<Tap>,
    /// Which cells threads give each other.
    pub exchange: Exchange,
}

impl Arrival {
    /// The simplified stages of a step of a program of `fields` fields, for threads and cells of a plane.
    pub fn all(
        stages: &[Stage],
        fields: usize,
        axes: Axes,
        threads: [usize; 2],
        cells: [usize; 2],
    ) -> Vec<Arrival> {
        stages.iter().map(|stage| Arrival::of(Carry::of(stage, fields, axes), axes, threads, cells)).collect()
    }

    fn of(carry: Carry, axes: Axes, threads: [usize; 2], cells: [usize; 2]) -> Arrival {
        let fields = carry.values.len();
        let mut taps: Vec<Tap> = Vec::new();
        let formula = carry.nodes.iter().filter_map(|node| match node {
            Node::Tap(tap) => {
                let [_, slower, faster] = axes.order(tap.offset);
                Some((tap.field, [slower, faster]))
            }
            _ => None,
        });
        let carried = carry.slots.iter().filter_map(|slot| match slot {
            Slot::Raw { field, across, .. } => Some((*field, *across)),
            Slot::Node { .. } => None,
        });
        for (field, [slower, faster]) in formula.chain(carried) {
            let tap = Tap { field, offset: axes.padded([0, slower, faster]) };
            if !taps.contains(&tap) {
                taps.push(tap);
            }
        }
        let across = |pair: [usize; 2]| axes.padded([1, pair[0], pair[1]]);
        let exchange = Exchange::at_once(taps.iter().copied(), fields, across(threads), across(cells));
        Arrival { carry, taps, exchange }
    }

    /// The planes by which the result is behind what arrives.
    pub fn delay(&self) -> usize {
        self.carry.planes[1].unsigned_abs() as usize
    }
}

/// Plans streaming planes: the first of [`portable_streaming_plans`].
pub fn plan_portable_streaming(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    let plans = portable_streaming_plans(problem, device, options)?;
    plans.into_iter().next().ok_or_else(|| {
        let room = format!(
            "windows wider than their overlap, of {} threads, {} registers of carried values a thread, \
             {MOST_OPERATIONS} operations of its cells at all levels, {MOST_ARGUMENTS} taps and carried values a stage and {} \
             bytes of workgroup memory",
            device.threads_per_block,
            most_words(device, MOST_WORDS),
            device.shared_bytes_per_block
        );
        no_room("streaming planes", problem, device, options, room)
    })
}

/// All plans of planes that fit a device, the one that the model finds fastest first.
pub fn portable_streaming_plans(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
) -> Result<Vec<Plan>> {
    check_several_steps(problem, device, options)?;
    check_problem(problem)?;
    let demand = Demand::of(problem);
    let mut plans: Vec<(f64, PortableStreaming)> = candidates::candidates(&demand, device, options.depth);
    plans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let plan = |(estimate, streaming)| plan_of(problem, device, streaming, estimate);
    Ok(plans.into_iter().map(plan).collect())
}

/// The plan of a configuration, where it fits.
pub fn plan_configuration(
    problem: &Problem,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<Plan> {
    crate::plan::stepwise::check_buffer(problem, device).ok()?;
    check_problem(problem).ok()?;
    let demand = Demand::of(problem);
    let stages = demand.program.stages();
    let axes = Axes::of(problem.shape.dimensions());
    let arrivals =
        Arrival::all(stages, demand.program.fields().len(), axes, configuration.threads, configuration.cells);
    let layout = candidates::layout(&demand, device, configuration, &arrivals)?;
    let planes = candidates::planes(&demand, &layout, configuration)?;
    let estimate = estimate::step_seconds(&demand, device, &planes, &layout.cost);
    Some(plan_of(problem, device, planes, estimate))
}

/// Refuses what no configuration of planes does.
fn check_problem(problem: &Problem) -> Result<()> {
    let change = "leave --execution at auto, or use --execution overlapped";
    if problem.shape.dimensions() < 2 {
        return Err(Error::limit(
            "axes of a domain whose planes stream",
            problem.shape.dimensions(),
            "2 or 3",
            change,
        ));
    }
    let radius = problem.program.radius();
    // A cell that a ghost cell shows is another thread's, or of a plane that has gone.
    if let Some((axis, side)) = problem.boundaries.showing_this_side(|axis| radius[axis] > 0) {
        let what = format!("radius along an axis with a {side} boundary in a portable streaming kernel");
        return Err(Error::limit(what, radius[axis], 0, change));
    }
    Ok(())
}

fn plan_of(problem: &Problem, device: &DeviceSpec, planes: PortableStreaming, estimate: f64) -> Plan {
    let depth = planes.configuration.depth;
    portable::plan_of(
        problem,
        device,
        (Execution::Streaming, Schedule::PortableStreaming(planes)),
        depth,
        estimate,
    )
}
