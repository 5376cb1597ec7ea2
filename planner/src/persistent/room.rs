//! The shared memory and registers of a multiprocessor that a sweep takes.

use abide_core::domain::Axes;
use abide_core::plan::Persistent;
use abide_core::{DeviceSpec, Neighbourhood, Problem, Stage};

pub(super) fn shared_bytes(problem: &Problem, persistent: &Persistent) -> usize {
    let plane = persistent.plane();
    let cells = problem.program.fields().len() * persistent.planes_shared * plane[0] * plane[1];
    persistent.ring_bytes(problem) + cells * problem.dtype.bytes()
}

/// Returns the most planes, of those not in registers, that shared memory holds beside the ring.
pub(super) fn planes_shared(problem: &Problem, device: &DeviceSpec, persistent: &Persistent) -> usize {
    let limit = device.shared_bytes_for(persistent.blocks_per_multiprocessor);
    let plane = persistent.plane();
    let bytes = problem.program.fields().len() * plane[0] * plane[1] * problem.dtype.bytes();
    let room = limit.saturating_sub(persistent.ring_bytes(problem)) / bytes;
    room.min(persistent.planes[1] - persistent.planes_registers)
}

/// Values of a formula that the registers for addresses and temporaries hold.
const TEMPORARIES: usize = 8;

/// Returns the registers that a thread needs besides the planes it keeps: the window of the largest stage,
/// addresses and temporaries.
pub(super) fn working_registers(problem: &Problem, cells_per_thread: [usize; 2], chunk: usize) -> usize {
    let axes = Axes::of(problem.shape.dimensions());
    let words = problem.dtype.bytes() / 4;
    let own = cells_per_thread[0] * cells_per_thread[1];
    let stage = |stage: &Stage| {
        let field = |radius: &[usize; 3]| {
            let [rs, ry, rx] = axes.order(*radius);
            let extended = (cells_per_thread[0] + 2 * ry) * (cells_per_thread[1] + 2 * rx);
            let star = stage.footprint.neighbourhood != Neighbourhood::Box;
            let lateral = extended - own;
            (2 * rs + chunk) * own + if star { lateral } else { (2 * rs + chunk) * lateral }
        };
        let window: usize = stage.footprint.field_radius.iter().flatten().map(field).sum();
        window + chunk * own * stage.writes.len() + stage.dag.most_held().saturating_sub(TEMPORARIES)
    };
    let values = problem.program.stages().iter().map(stage).max().unwrap_or(0);
    36 + words * values
}
