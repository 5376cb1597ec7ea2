//! The configurations that fit, and the windows that follow from them.

use abide_core::plan::Overlapped;
use abide_core::plan::overlapped::{Configuration, Exchange, refreshes};
use abide_core::{Depth, DeviceSpec};

use super::estimate::Cost;
use super::{MOST_STEPS, MOST_WORDS, estimate};
use crate::passes::Demand;
use crate::workgroups::{MOST_ARGUMENTS, MOST_OPERATIONS, most_words, product};
use abide_core::domain::Boundary;

/// Depths of windows with a halo, unless one is asked for.
const DEPTHS: [usize; 12] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24];

/// The parts of a window that follow from its threads and cells per thread, whatever its depth.
pub(super) struct Layout {
    window: [usize; 3],
    whole: [bool; 3],
    shared_bytes: usize,
}

/// Returns all windows that fit, with their estimated seconds per step.
pub(super) fn candidates(demand: &Demand<'_>, device: &DeviceSpec, depth: Depth) -> Vec<(f64, Overlapped)> {
    let mut found = Vec::new();
    for (threads, cells) in divisions(demand.problem.shape.dimensions()) {
        for double in [true, false] {
            let mut configuration = Configuration { depth: 1, threads, cells, double };
            let Some((layout, cost)) = layout(demand, device, &configuration) else { continue };
            let depths: &[usize] = if layout.needs_no_halo(demand) { &[MOST_STEPS] } else { &DEPTHS };
            for depth in depth.or(depths) {
                configuration.depth = depth;
                if let Some(overlapped) = overlapped(demand, &layout, &configuration) {
                    found.push((estimate::step_seconds(demand, device, &overlapped, &cost), overlapped));
                }
            }
        }
    }
    found
}

/// Returns the threads of a window and the cells of a thread to choose from, for a number of axes.
fn divisions(dimensions: usize) -> Vec<([usize; 3], [usize; 3])> {
    let (threads, cells): (Vec<[usize; 3]>, Vec<[usize; 3]>) = match dimensions {
        1 => (
            [32, 64, 128, 256, 512, 1024].map(|x| [1, 1, x]).to_vec(),
            [1, 2, 4, 8, 16].map(|x| [1, 1, x]).to_vec(),
        ),
        2 => (
            product([1, 2, 4, 8, 16, 32], [8, 16, 32, 64]).map(|[y, x]| [1, y, x]).collect(),
            product([1, 2, 4, 6, 8, 12, 16], [1, 2, 4]).map(|[y, x]| [1, y, x]).collect(),
        ),
        _ => (
            product([1, 2, 4, 8], [2, 4, 8, 16]).flat_map(|[z, y]| [8, 16, 32].map(|x| [z, y, x])).collect(),
            product([1, 2, 4, 8], [1, 2, 4]).flat_map(|[z, y]| [1, 2].map(|x| [z, y, x])).collect(),
        ),
    };
    let sized =
        threads.into_iter().filter(|threads| (32..=1024).contains(&threads.iter().product::<usize>()));
    sized.flat_map(|threads| cells.clone().into_iter().map(move |cells| (threads, cells))).collect()
}

/// Returns the window of a configuration, whatever its depth, with its cost; `None` if the device or a
/// compiler has no room for it.
pub(super) fn layout(
    demand: &Demand<'_>,
    device: &DeviceSpec,
    configuration: &Configuration,
) -> Option<(Layout, Cost)> {
    let Configuration { threads, cells, double, .. } = *configuration;
    let count = threads.iter().product::<usize>();
    let volume = cells.iter().product::<usize>();
    let words = demand.problem.dtype.bytes() / 4;
    let fields = demand.program.fields().len();
    let too_many_taps = demand.program.stages().iter().any(|stage| stage.dag.taps().count() > MOST_ARGUMENTS);
    if count > device.threads_per_block
        || volume * fields * words > most_words(device, MOST_WORDS)
        || volume * demand.operations > MOST_OPERATIONS.max(demand.operations)
        || too_many_taps
    {
        return None;
    }
    let window: [usize; 3] = std::array::from_fn(|axis| threads[axis] * cells[axis]);
    let extents = demand.problem.shape.padded();
    let whole: [bool; 3] = std::array::from_fn(|axis| {
        let ghosts = ghosts(demand, axis);
        extents[axis] + ghosts[0] + ghosts[1] <= window[axis]
    });
    let all = (0..3).any(|axis| refreshes(demand.problem, axis, whole[axis], demand.radius[axis]));
    let exchange = Exchange::of(&demand.program, threads, cells, all, double);
    let shared_bytes = (exchange.words() * demand.problem.dtype.bytes()).next_multiple_of(16);
    // If no field has slots to double, both configurations are the same.
    let doubles = exchange.fields.iter().flatten().any(|given| given.copies > 1);
    if shared_bytes > device.shared_bytes_per_block || doubles != double {
        return None;
    }
    let cost = Cost::of(demand, &exchange);
    Some((Layout { window, whole, shared_bytes }, cost))
}

impl Layout {
    fn needs_no_halo(&self, demand: &Demand<'_>) -> bool {
        (0..3).all(|axis| self.whole[axis] || demand.reach[axis] == [0; 2])
    }
}

/// Returns the ghost cells below and above an axis that is held whole: those that a computed cell may tap.
fn ghosts(demand: &Demand<'_>, axis: usize) -> [usize; 2] {
    demand.problem.boundaries.0[axis]
        .map(|side| if side == Boundary::Fixed { 0 } else { demand.radius[axis] })
}

/// Returns the windows of a configuration; `None` if its depth leaves them no tile.
pub(super) fn overlapped(
    demand: &Demand<'_>,
    layout: &Layout,
    configuration: &Configuration,
) -> Option<Overlapped> {
    let extents = demand.problem.shape.padded();
    let (mut halo, mut tile) = ([[0; 2]; 3], extents);
    for axis in 0..3 {
        if layout.whole[axis] {
            halo[axis] = ghosts(demand, axis);
            continue;
        }
        halo[axis] = demand.reach[axis].map(|reach| reach.saturating_mul(configuration.depth));
        tile[axis] =
            layout.window[axis].checked_sub(halo[axis][0].checked_add(halo[axis][1])?)?.min(extents[axis]);
    }
    if tile.contains(&0) {
        return None;
    }
    let blocks: [usize; 3] = std::array::from_fn(|axis| extents[axis].div_ceil(tile[axis]));
    let computed: f64 = (0..3).map(|axis| (layout.window[axis] * blocks[axis]) as f64).product();
    Some(Overlapped {
        configuration: *configuration,
        whole: layout.whole,
        halo,
        tile,
        blocks,
        shared_bytes: layout.shared_bytes,
        valid: demand.problem.shape.cells() as f64 / computed,
    })
}
