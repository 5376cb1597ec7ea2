//! Linear solvers: the whole solve in one persistent kernel.
//!
//! A session lays the matrix out as the plan says (`image`), and launches the kernel for a bounded number of
//! iterations at a time (`session`): between launches the observer is asked, and a limit on time looked at.
//! The stopping tests run on the device; the history comes back and passes through the same tests of
//! [`abide_core::solver::Run`] here (`outcome`).

mod batch;
mod image;
mod outcome;
mod session;

use abide_core::solver::plan::krylov::{Home, Space, plan_krylov, plan_krylov_configuration};
use abide_core::solver::{
    BatchSystem, LinearBackend, LinearSession, Matrix, Parameters, Report, SolveOptions, SolvePlan,
    SolverError,
};
use abide_core::{Backend, Error, Result};
use abide_shaders::cuda;

use crate::nvrtc::{Cubin, Nvrtc};
use crate::{CudaBackend, cache, target};

pub use batch::plan_batch;
pub use image::Image;

/// Compiles the kernel of a plan; while the report shows spills, of a plan with fewer vectors in registers,
/// at last with half the threads. Returns the plan that was kept, with the compiler's report in it.
/// `batched`: the kernel of many systems, a block each.
pub fn fit_solver(
    nvrtc: &Nvrtc,
    matrix: &Matrix,
    plan: &SolvePlan,
    options: &SolveOptions,
    target: &str,
    batched: bool,
) -> Result<(SolvePlan, Cubin)> {
    let compile = |plan: &SolvePlan| -> Result<(SolvePlan, Cubin, usize)> {
        let Some(layout) = plan.krylov() else {
            return Err(Error::invalid(
                "the plan of a solver",
                "it is not a CUDA device's",
                "plan it with this backend",
            ));
        };
        let text = cuda::krylov(matrix, options, layout, batched)?;
        let cubin = cache::compile(nvrtc, &text, target, &cuda::COMPILE_OPTIONS)?;
        let spilled = cubin.report.iter().map(|kernel| kernel.spill_bytes).max().unwrap_or(0);
        Ok((SolvePlan { compiled: cubin.report.clone(), ..plan.clone() }, cubin, spilled))
    };
    let mut best = compile(plan)?;
    while best.2 > 0 {
        let Some(layout) = best.0.krylov() else { break };
        let mut configuration = layout.configuration();
        let in_registers = layout.vectors.iter().filter(|(_, home)| *home == Home::Registers).count();
        if in_registers > 0 {
            configuration.registers = in_registers - 1;
        } else if configuration.threads > 256 {
            configuration.threads = (configuration.threads / 2).next_multiple_of(32);
        } else {
            break;
        }
        let mut next = plan_krylov_configuration(matrix, &plan.device, options, &configuration)?;
        next.notes.push(
            "fewer vectors in registers or threads than modelled, for the compiler's report showed spills"
                .to_owned(),
        );
        let next = compile(&next)?;
        let helps = next.2 < best.2 || in_registers > 0;
        if !helps {
            break;
        }
        best = next;
    }
    let (mut plan, cubin, spilled) = best;
    if spilled > 0 {
        plan.notes.push(format!("the kernel spills {spilled} bytes a thread to local memory"));
    }
    Ok((plan, cubin))
}

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
            // A device may have no place for a cluster that its specification allows: half as many blocks
            // then, or all of them.
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

    /// All systems in one launch, a block each: conjugate gradients and BiCGStab, without a preconditioner,
    /// with the diagonal's or block-Jacobi's. A limit on time is refused.
    fn solve_batch(
        &self,
        systems: &mut [BatchSystem<'_>],
        options: &SolveOptions,
        parameters: &Parameters,
    ) -> Result<Vec<Result<Report, SolverError>>> {
        batch::solve(self, systems, options, parameters)
    }
}
