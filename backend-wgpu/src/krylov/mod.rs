//! Linear solvers: a few dispatches per iteration, many iterations per submission, the stopping tests on the
//! device.
//!
//! A session makes the preconditioner (`packed`), compiles the method's phases (`modules`), allocates and
//! binds (`system`), and submits iterations (`session`). State and history come back with each submission,
//! and pass through the tests of [`abide_core::solver::Run`] here (`outcome`).

mod modules;
mod outcome;
mod packed;
mod session;
mod system;

use abide_core::backend::{LinearBackend, LinearSession};
use abide_core::solver::{Matrix, SolveOptions, SolvePlan, SolverError};
use abide_core::{Backend, Result};
use abide_shaders::wgsl::krylov::script;
use abide_solvers::plan::plan_dispatches;

use crate::blocking::block_on;
use crate::session::check_type;
use crate::{NAME, WgpuBackend};

pub(crate) use modules::Modules;

impl LinearBackend for WgpuBackend {
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan> {
        check_type(&self.gpu, matrix.dtype())?;
        plan_dispatches(NAME, matrix, &self.spec, options, &script(matrix, options)?.effort())
    }

    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        plan.check(self.name(), matrix, options)?;
        matrix.check(options)?;
        let session = session::KrylovSession::open(self.gpu.clone(), &self.modules, matrix, plan, options);
        Ok(Box::new(block_on(async { Ok(session.await) })??))
    }
}
