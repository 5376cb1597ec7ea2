//! Linear systems on several devices: each has a slab of rows ([`row_slabs`]), and all have the bits of one. Devices that
//! solve jointly by themselves, such as GPUs, are handed the system (`LinearDeviceGroup`). Where each process has one
//! device, the processes gather over the communicator (`LinearPeer`). Other devices are ranks that exchange messages:
//!
//! [`concurrent::together`] runs the work of all ranks at the same time, and `session` solves.

mod concurrent;
mod session;

use std::sync::Arc;

use abide_core::backend::{LinearBackend, LinearPeer, LinearSession, LinearSlabs};
use abide_core::communicator::{Communicator, Endpoint};
use abide_core::solver::{Matrix, SolveOptions, SolvePlan, SolverError};
use abide_core::{Backend, Error, Result};
use abide_solvers::{cut_rows, row_slabs, row_unit};

use self::session::{Kind, Opening, RankedSolver, ends};
use crate::backend::Ranked;

/// Returns the solvers of a device.
fn linear(backend: &dyn Backend) -> Result<&dyn LinearBackend> {
    backend.linear().ok_or_else(|| {
        let who = format!("backend {}", backend.name());
        Error::unsupported(who, "it has no linear solvers", "use --backend cpu")
    })
}

/// Returns the part of a device's solvers that solves jointly with other devices.
fn slabs_of(backend: &dyn Backend, asked: usize) -> Result<&dyn LinearSlabs> {
    linear(backend)?.slabs().ok_or_else(|| {
        Error::unsupported(
            format!("backend {} on {asked} devices", backend.name()),
            "it solves a linear system on one device alone",
            "ask for one device (--devices 1), or use --backend cuda, or --backend cpu, whose devices are groups of its threads",
        )
    })
}

impl LinearBackend for Ranked {
    /// Plans the cut: whole leaves of the reduction tree for each device, by its weight; fewer devices than were asked for
    /// where there are fewer leaves.
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan> {
        if let Some(team) = &self.team {
            return team.plan_solve(matrix, options);
        }
        if let Some((processes, peer)) = self.peer()? {
            let plan = peer.plan_peers(matrix, options, processes)?;
            self.check_processes(matrix, plan.ranks.len().max(1))?;
            return Ok(plan);
        }
        let mut plan = linear(&*self.single)?.plan_solve(matrix, options)?;
        if self.asked == 1 {
            return Ok(plan);
        }
        slabs_of(&*self.single, self.asked)?;
        let (rows, unit) = (matrix.rows(), row_unit(options));
        let units = rows.div_ceil(unit);
        let ranks = self.asked.min(units);
        self.check_processes(matrix, ranks)?;
        if ranks < self.asked {
            plan.notes.push(format!(
                "{ranks} of {} devices solve: {rows} rows are cut between multiples of {unit}",
                self.asked
            ));
        }
        if ranks > 1 {
            let devices = self.devices(ranks)?;
            let weights: Vec<usize> = devices.iter().map(|device| device.weight).collect();
            plan.ranks = cut_rows(rows, unit, &weights);
        }
        Ok(plan)
    }

    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        if plan.ranks.is_empty() {
            return linear(&*self.single)?.open_solver(matrix, plan, options);
        }
        if let Some(team) = &self.team {
            return team.open_solver(matrix, plan, options);
        }
        plan.check(self.single.name(), matrix, options)?;
        matrix.check(options)?;
        if let Some((_, peer)) = self.peer()? {
            let open = |endpoint: &Endpoint| peer.open_peer(matrix, plan, options, endpoint.clone());
            let own = ends(&*self.factory, plan.ranks.len())?.into_iter();
            let own = own.map(|end| (end, Box::new(open) as Opening<'_>)).collect();
            return Ok(Box::new(self.solver(plan, Kind::PeerPuts, own)?));
        }
        // Ranks wait for each other on their own threads. Systems that had these threads in common, and were solved at the
        // same time, would wait for each other too.
        let devices = self.new_devices(plan.ranks.len())?;
        let ends = ends(&*self.factory, plan.ranks.len())?;
        let own: Vec<usize> = ends.iter().map(|end| end.rank()).collect();
        let slabs = row_slabs(matrix, options, &plan.ranks, own.iter().copied())?.into_iter().map(Arc::new);
        let devices = own.iter().filter_map(|&rank| devices.get(rank).cloned());
        let count = plan.ranks.len();
        let ranks = ends.into_iter().zip(devices.zip(slabs)).map(|(end, (device, slab))| {
            let open = move |endpoint: &Endpoint| {
                slabs_of(&*device.backend, count)?.open_slab(&slab, plan, options, endpoint.clone())
            };
            (end, Box::new(open) as Opening<'_>)
        });
        Ok(Box::new(self.solver(plan, Kind::Messages, ranks.collect())?))
    }
}

impl Ranked {
    /// Returns the number of processes, and the part of this one's device that solves with those of the others by itself;
    /// `None` where ranks send each other messages.
    fn peer(&self) -> Result<Option<(usize, &dyn LinearPeer)>> {
        Ok(self.factory.processes().zip(linear(&*self.single)?.peer()))
    }

    /// Checks that so many ranks of a system are one for each process.
    fn check_processes(&self, matrix: &Matrix, ranks: usize) -> Result<()> {
        match self.factory.processes() {
            Some(processes) if ranks < processes => {
                let what = format!("processes, each with rows of its own, of {} in all", matrix.rows());
                Err(Error::limit(what, processes, ranks, "start fewer, or take a larger system"))
            }
            _ => Ok(()),
        }
    }

    fn solver(
        &self,
        plan: &SolvePlan,
        kind: Kind,
        ranks: Vec<(Box<dyn Communicator>, Opening<'_>)>,
    ) -> Result<RankedSolver, SolverError> {
        RankedSolver::open(self.single.name(), plan, kind, ranks, self.factory.clone())
    }
}
