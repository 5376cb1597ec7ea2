//! What a pass of a stream moves, and how long it is likely to take.

use super::Stream;
use crate::device::DeviceSpec;
use crate::plan::perks::Traffic;
use crate::program::Problem;

/// What a step moves under a stream: a depth-th of a pass.
pub(super) fn traffic(problem: &Problem, device: &DeviceSpec, stream: &Stream) -> Traffic {
    let mut traffic = Traffic::uncached(problem, device);
    let depth = stream.depth as f64;
    traffic.load_bytes = traffic.cell_bytes / depth;
    traffic.store_bytes = traffic.changing_bytes / depth;
    traffic.overhead_seconds = device.launch_seconds / depth;
    traffic
}

/// The planner's own estimate of a pass.
pub(super) fn pass_seconds(problem: &Problem, device: &DeviceSpec, stream: &Stream) -> f64 {
    let traffic = traffic(problem, device, stream);
    let cells = traffic.cells * stream.overlap(problem) * stream.depth as f64;
    let memory = traffic.cells * (traffic.cell_bytes + traffic.changing_bytes) / device.memory_bandwidth;
    let arithmetic = cells * traffic.flops / traffic.flops_per_second.max(1.0);
    memory.max(2.0 * arithmetic) + device.launch_seconds
}
