//! What slabs and their exchanges cost, by the planner's estimates.

use std::ops::Range;

use abide_core::plan::streaming::warp::Edges;
use abide_core::program::StageKind;
use abide_core::slabs::Slabs;
use abide_core::{Execution, Plan, Problem, Stage};

/// Bytes per second at which planes are handed on through messages where the memory's bandwidth is not known; and how
/// often such an exchange moves each byte: out of the field, into the message, into the other's field.
const COPIES: (f64, f64) = (4e9, 6.0);

/// What an exchange by copies takes beside one by stores, in seconds: events between devices, and copies that begin one after
/// another. Of H200s in steps of 2304² planes.
const COPIED: f64 = 20e-6;

/// Returns the steps whose time a slab takes for `depth` of them: those that do not fill a pass take a whole one's.
pub(super) fn paid_steps(plan: &Plan, depth: u32) -> f64 {
    f64::from(depth.div_ceil(plan.depth.max(1)) * plan.depth.max(1))
}

/// Returns the plan of a slab whose passes give neighbours what they read, where it can: devices store into each other's memory,
/// and exchange after each pass.
pub(super) fn giving(slabs: &Slabs, rank: usize, stores: bool, plan: &Plan) -> Option<Plan> {
    let over_link = plan.device.link.is_some_and(|link| link.stores);
    if !stores || !over_link || plan.depth != slabs.depth {
        return None;
    }
    let slab = &slabs.slabs[rank];
    let own = slab.halo[0]..slab.halo[0] + slab.own.len();
    // Neighbours' halos are as deep as the own ones.
    let halo = slab.halo.into_iter().max().unwrap_or(0);
    let given = [0, 1].map(|side| if slabs.is_inner(rank, side) { halo } else { 0 });
    plan.giving(Edges { own, given })
}

/// Returns the share of a slab's planes that its passes make: all, or its own where neighbours give the others.
pub(super) fn kept(slabs: &Slabs, rank: usize, plan: &Plan) -> f64 {
    match plan.warp_streaming().and_then(|streaming| streaming.edges.as_ref()) {
        Some(edges) => edges.own.len() as f64 / slabs.slabs[rank].cells() as f64,
        None => 1.0,
    }
}

/// Returns the seconds between two passes that give so many bytes: a barrier, and what of the bytes is still on its way.
pub(super) fn communicator(slabs: &Slabs, rank: usize, plan: &Plan, bytes: f64) -> f64 {
    let pass = seconds(plan) * kept(slabs, rank, plan) * f64::from(plan.depth);
    plan.device.link.map_or(0.0, |link| link.seconds + (bytes / link.bandwidth - pass).max(0.0))
}

/// Returns the estimated seconds of a step of a slab: the planner's own where it made one.
pub(super) fn seconds(plan: &Plan) -> f64 {
    let traffic = &plan.traffic;
    let arithmetic =
        traffic.cells * traffic.flops / traffic.flops_per_second.max(1.0) + traffic.overhead_seconds;
    if plan.estimated_seconds > 0.0 && plan.estimated_seconds.is_finite() {
        plan.estimated_seconds.max(arithmetic)
    } else {
        arithmetic
    }
}

/// Returns the seconds that a kernel which keeps the domain on the chip takes to load and store it, as it does between two
/// exchanges.
pub(super) fn restart(slab: &Problem, plan: &Plan) -> f64 {
    let bandwidth = plan.device.memory_bandwidth;
    if plan.execution != Execution::Persistent || bandwidth <= 0.0 {
        return 0.0;
    }
    let written = |field: usize| if slab.program.is_written(field) { 2.0 } else { 1.0 };
    let values: f64 =
        (0..slab.program.fields().len()).map(|field| written(field) * slab.values_of(field) as f64).sum();
    values * slab.dtype.bytes() as f64 / bandwidth
}

/// Returns the most reductions of a step of the program's cycle.
pub(super) fn reductions(problem: &Problem) -> usize {
    let program = &problem.program;
    let is_reduction = |stage: &&Stage| matches!(stage.does, StageKind::Reduce(..));
    let of_step = |step: &Range<usize>| program.stages()[step.clone()].iter().filter(is_reduction).count();
    program.steps().iter().map(of_step).max().unwrap_or(0)
}

/// Returns the estimated seconds of an exchange and the most bytes that a rank sends.
pub(super) fn exchange(slabs: &Slabs, problem: &Problem, plan: &Plan, stores: bool) -> (f64, f64) {
    let cell = problem.dtype.bytes() as f64;
    let plane =
        |field: usize| problem.values_of(field) as f64 / problem.extents_of(field)[slabs.axis].max(1) as f64;
    let all = (0..slabs.slabs.len()).map(|rank| {
        let exchanges = slabs.exchanges(rank);
        let edges = exchanges.iter().flat_map(|exchange| &exchange.fields);
        let bytes: f64 = edges.map(|edge| edge.sent.len() as f64 * plane(edge.field) * cell).sum();
        (exchanges.len(), bytes)
    });
    let (messages, bytes) = all.fold((0, 0.0_f64), |(n, most), (own, bytes)| (n.max(own), most.max(bytes)));
    let device = &plan.device;
    let seconds = match device.link {
        Some(link) if messages > 0 => {
            let more = if link.stores && !stores { COPIED } else { 0.0 };
            link.seconds + more + bytes / link.bandwidth
        }
        Some(_) => 0.0,
        None => {
            let bandwidth = if device.memory_bandwidth > 0.0 { device.memory_bandwidth } else { COPIES.0 };
            messages as f64 * device.exchange_seconds + COPIES.1 * bytes / bandwidth
        }
    };
    (seconds, bytes)
}
