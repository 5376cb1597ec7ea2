//! Linear solvers: the whole solve in one persistent kernel.
//!
//! A session lays the matrix out as the plan says (`packed`), and launches the kernel for a bounded number of
//! iterations at a time (`session`, `epochs`). Between launches it calls the observer and checks the limit on time. The
//! stopping tests run on the device; the history comes back and passes through the same tests of
//! [`abide_core::solver::Run`] here (`outcome`).
//!
//! Several devices (`group`) have a slab of the rows each (`slab`, `loaded`), and a kernel each. All kernels run
//! concurrently (`distributed`). The devices belong to one process, or to several processes with a device each (`peer`,
//! `peers`).

mod batch;
mod distributed;
mod epochs;
mod fit;
mod group;
mod loaded;
mod outcome;
mod packed;
mod peer;
mod peers;
mod session;
mod slab;

use abide_core::backend::{BatchSystem, LinearBackend, LinearPeer, LinearSession};
use abide_core::solver::plan::krylov::Space;
use abide_core::solver::{Matrix, Parameters, Report, SolveOptions, SolvePlan, SolverError};
use abide_core::{Backend, Error, Result};
use abide_solvers::plan::krylov::{plan_krylov, plan_krylov_configuration};

use crate::backend::CudaBackend;
use crate::kernels::target;

pub use batch::plan_batch;
pub use fit::fit_solver;
pub use group::CudaDeviceGroup;
pub use packed::PackedSystem;
pub use slab::{Piece, Slab, numbers_of, region};

impl LinearBackend for CudaBackend {
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan> {
        plan_krylov(matrix, self.device(), options)
    }

    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        plan.check(self.name(), matrix, options)?;
        matrix.check(options)?;
        let mut plan = plan.clone();
        loop {
            let (fitted, cubin) =
                fit_solver(&self.nvrtc, matrix, &plan, options, &target(self.device()), false)?;
            let refused = match session::KrylovSession::open(&self.context, matrix, fitted, options, cubin) {
                Ok(session) => return Ok(Box::new(session)),
                Err(refused) => refused,
            };
            // A device may have no place for a cluster that its specification allows: then half as many
            // blocks are tried, or the grid of all of them.
            let (Some(layout), SolverError::Invalid(Error::Limit { .. })) = (plan.krylov(), &refused) else {
                return Err(refused);
            };
            let mut configuration = layout.configuration();
            if configuration.space != Space::Cluster {
                return Err(refused);
            }
            configuration.blocks /= 2;
            if configuration.blocks < 2 {
                (configuration.space, configuration.blocks) = (Space::Grid, self.device().multiprocessors);
            }
            let note = format!("another layout than planned: {refused}");
            plan = plan_krylov_configuration(matrix, self.device(), options, &configuration)?;
            plan.notes.push(note);
        }
    }

    fn peer(&self) -> Option<&dyn LinearPeer> {
        Some(self)
    }

    /// Solves all systems in one launch, one block per system: conjugate gradients and BiCGStab, without a
    /// preconditioner, with the diagonal's or block-Jacobi's. A limit on time is refused.
    fn solve_batch(
        &self,
        systems: &mut [BatchSystem<'_>],
        options: &SolveOptions,
        parameters: &Parameters,
    ) -> Result<Vec<Result<Report, SolverError>>> {
        batch::solve(self, systems, options, parameters)
    }
}
