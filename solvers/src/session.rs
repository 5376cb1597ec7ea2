//! A session on an engine: the methods as they are written, with the operator and the loops of a host
//! backend.

use std::sync::Arc;

use abide_core::backend::{LinearSession, Observe};
use abide_core::solver::{Method, Operator, Parameters, Report, SolveOptions, SolvePlan, SolverError};
use abide_core::{Array, DType, Error, Real, Result};

use crate::engine::Engine;
use crate::precondition::Preconditioner;
use crate::registry::{build_preconditioner, solver};
use crate::solver::Equations;

/// Returns the vectors of a system in the type that a solve takes. Fails if one has another type.
pub fn vectors_of<'a, T: Real>(b: &'a Array, x: &'a mut Array) -> Result<(&'a [T], &'a mut [T])> {
    let types = [b.dtype(), x.dtype()];
    let both = T::slice(b).zip(T::slice_mut(x));
    both.ok_or_else(|| other_types(T::DTYPE, types))
}

/// Fails unless both vectors of a system have the type that a solve takes.
///
/// # Errors
///
/// [`Error::Invalid`] with all three types.
pub fn check_types(dtype: DType, b: &Array, x: &Array) -> Result<()> {
    let types = [b.dtype(), x.dtype()];
    if types == [dtype; 2] { Ok(()) } else { Err(other_types(dtype, types)) }
}

fn other_types(dtype: DType, [b, x]: [DType; 2]) -> Error {
    let reason = format!("b is {b} and x is {x}, the solve takes {dtype}");
    Error::invalid("the vectors b and x", reason, "cast them with Array::cast")
}

/// A [`LinearSession`] in host memory.
pub struct EngineSession<T: Real, E: Engine<T>> {
    engine: E,
    operator: Arc<dyn Operator<T>>,
    preconditioner: Box<dyn Preconditioner<T, E>>,
    method: Method,
    plan: SolvePlan,
}

impl<T: Real, E: Engine<T>> EngineSession<T, E> {
    /// Makes the preconditioner of `operator`, which is the plan's matrix; the caller has checked the system.
    pub fn open(
        engine: E,
        operator: Arc<dyn Operator<T>>,
        plan: SolvePlan,
        options: &SolveOptions,
    ) -> Result<Self, SolverError> {
        let preconditioner =
            engine.run(|| build_preconditioner(&options.preconditioner, &engine, Arc::clone(&operator)))?;
        Ok(EngineSession { engine, operator, preconditioner, method: options.method, plan })
    }
}

impl<T: Real, E: Engine<T>> LinearSession for EngineSession<T, E> {
    fn plan(&self) -> &SolvePlan {
        &self.plan
    }

    fn solve(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        let (b, x) = vectors_of::<T>(b, x)?;
        let EngineSession { engine, operator, preconditioner, method, .. } = self;
        engine.run(|| {
            let solver = solver::<T, E>(method);
            let equations = Equations { a: operator, m: &mut **preconditioner, b };
            solver.solve_observed(engine, equations, x, parameters, observe)
        })
    }
}
