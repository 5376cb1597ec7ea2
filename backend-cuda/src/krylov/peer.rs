//! A device that solves a linear system jointly with the devices of other processes.

use abide_core::backend::{LinearPeer, LinearSession};
use abide_core::communicator::Endpoint;
use abide_core::solver::plan::krylov::Slabs;
use abide_core::solver::{Matrix, SolveOptions, SolvePlan, SolverError};
use abide_core::{Backend, Error, Result};
use abide_solvers::plan::krylov::{plan_krylov, plan_krylov_slabs};

use super::distributed::DistributedSession;
use super::group::fitted;
use super::loaded::Member;
use crate::backend::CudaBackend;

impl LinearPeer for CudaBackend {
    fn plan_peers(&self, matrix: &Matrix, options: &SolveOptions, count: usize) -> Result<SolvePlan> {
        let alone = plan_krylov(matrix, self.device(), options)?;
        if count <= 1 {
            return Ok(alone);
        }
        plan_krylov_slabs(matrix, self.device(), options, Slabs { count, of_a_device: 1 }, &alone)
    }

    fn open_peer(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
        endpoint: Endpoint,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        let (rank, count) = (endpoint.rank(), plan.ranks.len());
        if rank >= count {
            return Err(Error::limit("rank of a plan", rank, count, "plan with these processes").into());
        }
        let (fitted, cubin) = fitted(self, matrix, plan, options)?;
        let multiprocessors = self.device().multiprocessors;
        let own = Member { context: self.context.clone(), multiprocessors, slabs: vec![rank] };
        Ok(Box::new(DistributedSession::open(matrix, fitted, options, &cubin, vec![own], Some(endpoint))?))
    }
}
