//! A session on an engine: the methods as they are written, with the operator and the loops of a host backend.

use std::sync::Arc;

use super::{
    Engine, LinearSession, Method, Observe, Operator, Parameters, Preconditioner, Report, SolveOptions, SolvePlan,
    SolverError,
};
use crate::error::Error;
use crate::real::{Array, Real};

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
        let preconditioner = engine.run(|| options.preconditioner.build(&engine, Arc::clone(&operator)))?;
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
        let wrong = |name: &str, has: &Array| {
            let reason = format!("it is {}, the matrix {}", has.dtype(), T::DTYPE);
            Error::invalid(format!("the vector {name}"), reason, "cast it with Array::cast")
        };
        let b = T::slice(b).ok_or_else(|| wrong("b", b))?;
        if x.dtype() != T::DTYPE {
            return Err(wrong("x", x).into());
        }
        let x = T::slice_mut(x).unwrap_or_default();
        let EngineSession { engine, operator, preconditioner, method, .. } = self;
        engine.run(|| {
            let solver = method.solver::<T, E>();
            solver.solve_observed(engine, operator, &mut **preconditioner, b, x, parameters, observe)
        })
    }
}
