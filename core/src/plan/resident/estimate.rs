//! The planner's estimate of a step.

use super::Resident;
use crate::device::DeviceSpec;
use crate::plan::streaming::requirement::Demand;

/// Clocks between two instructions of a warp that depend on each other.
const LATENCY: f64 = 6.0;

/// Seconds of an exchange through the second-level cache, whatever its size: a store, a flag, a load.
const EXCHANGE_SECONDS: f64 = 1.0e-6;

/// Returns the estimated seconds of a step.
pub(super) fn step_seconds(demand: &Demand<'_>, device: &DeviceSpec, resident: &Resident) -> f64 {
    let words = demand.bytes as f64 / 4.0;
    let clocks = device.shared_bandwidth.max(1.0) / 128.0 / device.multiprocessors as f64;
    let [rows, columns] = resident.cells_per_thread.map(|n| n as f64);
    let lines = resident.planes as f64 * rows;
    let warps = (resident.warps * resident.blocks_per_multiprocessor) as f64;
    let stages = demand.carries.len() as f64;
    // Per line of a warp: the arithmetic, and shuffles, copies and moves.
    let rate = device.flops(demand.pass.problem.dtype) / 2.0 / (device.multiprocessors as f64 * clocks) / 128.0;
    let arithmetic = demand.pass.operations as f64 * columns;
    let shared = (resident.planes - resident.planes_registers) as f64 / resident.planes as f64;
    let moved = 2.0 * words * demand.radius[2] as f64
        + words * columns * (0.6 + 2.0 * shared) * demand.fields as f64
        + if demand.radius[1] > 0 { words * columns * demand.radius[1] as f64 / rows } else { 0.0 };
    let beyond = (resident.planes as f64 + 2.0 * demand.radius[0] as f64) / resident.planes as f64;
    let issue = (arithmetic + moved * beyond) * lines * warps / 4.0;
    let pipe = arithmetic / rate.max(1e-3) * lines * warps / 4.0;
    // Few warps leave the latency of a line's chain exposed.
    let chain = stages * lines * LATENCY * (demand.pass.operations as f64 / stages).max(4.0);
    let step = (issue.max(pipe) * 1.25).max(chain) / clocks
        + stages * (resident.halves as f64 * -20e-9 + 80e-9 + warps * 2e-9);
    let block = resident.tile.iter().product::<usize>() as f64 * resident.blocks_per_multiprocessor as f64;
    let kept = resident.valid(demand.extents.iter().product::<usize>()).min(1.0);
    let exchange = if resident.blocks() > 1 || resident.margin != [0; 3] {
        let bytes = block * (1.0 - kept) * demand.pass.written as f64 * demand.bytes as f64;
        EXCHANGE_SECONDS + 2.0 * bytes * device.multiprocessors as f64 / device.l2_bandwidth
    } else {
        0.0
    };
    step + exchange / resident.depth as f64
}
