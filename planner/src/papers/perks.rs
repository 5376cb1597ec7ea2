//! The choice of PERKS (Zhang et al., ICS'23, §5.2): what a persistent kernel keeps on the chip. The projection itself is
//! that of [`traffic`](abide_core::plan::traffic).

use abide_core::plan::Persistent;
use abide_core::units::{count, times};
use abide_core::{DeviceSpec, Error, Execution, Options, Problem, Result};
use serde::Serialize;

use super::STEPS;
use crate::persistent::persistent_plans;

pub use abide_core::plan::traffic::{Bound, Projection, Traffic, project, project_advances};

/// The cells that are cached in each place, and what that projects to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cached {
    /// The share of the domain's cells that stay in registers, D_cache^reg / D, 0 to 1.
    pub in_registers: f64,
    /// The share of the domain's cells that stay in shared memory, D_cache^sm / D, 0 to 1.
    pub in_shared: f64,
    /// The tiles, and which of their planes stay in registers and shared memory.
    pub persistent: Persistent,
    /// The projection of [`STEPS`] steps (eq. 5–10).
    pub projection: Projection,
}

/// Returns the persistent kernel with the highest projected peak (P, eq. 10) for [`STEPS`] steps, of those
/// that fit the device.
///
/// The paper does not state how large D_cache is: as large as its kernels leave room in registers and shared memory
/// (§5.2). Here it is as much as this project's kernels can hold. Concurrency (eq. 11 and 12) takes latencies that no
/// device reports; kernels with too few threads to hide them are no candidates.
///
/// # Errors
///
/// Those of [`persistent_plans`]; [`Error::Limit`] if no kernel fits.
pub fn cache(problem: &Problem, device: &DeviceSpec) -> Result<Cached> {
    let options = Options { execution: Execution::Persistent, ..Options::default() };
    let best = persistent_plans(problem, device, &options)?
        .into_iter()
        .filter_map(|plan| {
            let projection = plan.project(STEPS);
            let share = |cells: f64| cells / plan.traffic.cells.max(1.0);
            let [in_registers, in_shared] =
                [plan.traffic.cached_registers, plan.traffic.cached_shared].map(share);
            let persistent = plan.persistent()?.clone();
            Some(Cached { in_registers, in_shared, persistent, projection })
        })
        // Of equal peaks the first, which the planner's own estimate prefers.
        .reduce(
            |best, next| {
                if next.projection.gcells_per_s > best.projection.gcells_per_s { next } else { best }
            },
        );
    best.ok_or_else(|| {
        Error::limit(
            "shared memory of a block of a persistent kernel",
            format!("the exchange ring of {} fields", problem.program.fields().len()),
            format!("{} bytes", device.shared_bytes_per_block),
            "use fewer fields, or f32",
        )
    })
}

impl Cached {
    /// Returns what is cached where, in words.
    pub fn summary(&self) -> String {
        let blocks = count(self.persistent.blocks_per_multiprocessor, "block");
        format!(
            "{:.0} % of the cells in registers, {:.0} % in shared memory, {} tiles, {blocks} of {} threads per SM",
            100.0 * self.in_registers,
            100.0 * self.in_shared,
            times(&self.persistent.tiles),
            self.persistent.threads_per_block(),
        )
    }

    /// Returns the further notes on the projection, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let p = &self.projection;
        let bandwidths = (p.memory_seconds + p.halo_seconds).max(p.shared_seconds);
        let cells = p.gcells_per_s * p.seconds;
        (p.bound == Bound::Arithmetic && bandwidths > 0.0)
            .then(|| {
                let rate = cells / bandwidths;
                format!("by bandwidths alone, as in the paper (eq. 9): {rate:.0} GCells/s")
            })
            .into_iter()
            .collect()
    }
}
