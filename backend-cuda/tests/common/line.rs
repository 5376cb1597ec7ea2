//! Slabs of a domain on devices, for tests.

use std::sync::Arc;

use abide_core::plan::streaming::warp::Edges;
use abide_core::{Boundary, Plan, Problem, Result};
use abide_cuda::CudaBackend;
use abide_ranks::{Device, Ranked};

/// Returns a backend of slabs on the devices of these numbers.
pub fn slabs(numbers: &[usize]) -> Result<Ranked> {
    weighted(CudaBackend::connected(numbers)?.into_iter().map(|backend| (backend, 1)).collect())
}

/// Returns a backend of slabs, each on its device and as large beside the others as its weight.
pub fn weighted(all: Vec<(Arc<CudaBackend>, usize)>) -> Result<Ranked> {
    let (single, count) = (all[0].0.clone(), all.len());
    let make = move |ranks: usize| {
        let device = |(backend, weight): &(Arc<CudaBackend>, usize)| Device {
            backend: backend.clone(),
            weight: *weight,
        };
        Ok(all[..ranks].iter().map(device).collect())
    };
    Ranked::new(single, count, make)
}

/// Returns the plan with a launch for each pass of a slab, which gives planes to the slabs beside it; `None` where kernels cannot. The
/// planner does so for large domains alone.
pub fn giving(problem: &Problem, plan: &Plan) -> Option<Plan> {
    let mut plan = plan.clone();
    let ranks = plan.ranks.as_mut()?;
    let is_ring = problem.boundaries_of(0).0[0][0] == Boundary::Periodic;
    let (count, halo) = (ranks.own.len(), ranks.halo);
    for (rank, slab) in ranks.slabs.iter_mut().enumerate() {
        let given =
            [is_ring || rank > 0, is_ring || rank + 1 < count].map(|inner| if inner { halo } else { 0 });
        let own = given[0]..given[0] + ranks.own[rank].len();
        if slab.depth != ranks.depth {
            return None;
        }
        *slab = slab.unchained().unwrap_or_else(|| slab.clone()).giving(Edges { own, given })?;
    }
    Some(plan)
}
