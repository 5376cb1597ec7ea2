//! Methods and preconditioners by name, and made of what options say.

use abide_core::solver::{Method, Operator, Preconditioning, SolverError};
use abide_core::{Real, Result};

use crate::amg::Amg;
use crate::bounds::polynomial_bounds;
use crate::engine::Engine;
use crate::method::{BiCgStab, Cg, Minres, SingleReductionCg};
use crate::precondition::{BlockDiagonal, ChebyshevPolynomial, Diagonal, Identity, Ilu, Preconditioner};
use crate::solver::Solver;

/// Returns the method of that name, with its default parameters. For any other name the error lists
/// [`METHODS`](abide_core::solver::METHODS).
pub fn method<T: Real, E: Engine<T>>(name: &str) -> Result<Box<dyn Solver<T, E>>> {
    Ok(solver(&name.parse()?))
}

/// Returns the preconditioner of that name for `a`, as [`build_preconditioner`] makes it. For any other
/// name the error lists [`PRECONDITIONERS`](abide_core::solver::PRECONDITIONERS).
pub fn preconditioner<'a, T: Real, E: Engine<T> + 'a>(
    name: &str,
    engine: &E,
    a: &'a dyn Operator<T>,
) -> Result<Box<dyn Preconditioner<T, E> + 'a>, SolverError> {
    build_preconditioner(&name.parse()?, engine, a)
}

/// Returns the method on an engine.
pub fn solver<T: Real, E: Engine<T>>(method: &Method) -> Box<dyn Solver<T, E>> {
    match *method {
        Method::Cg => Box::new(Cg),
        Method::SingleReductionCg => Box::new(SingleReductionCg),
        Method::PipelinedCg(method) => Box::new(method),
        Method::Minres => Box::new(Minres),
        Method::BiCgStab => Box::new(BiCgStab),
        Method::Gmres(method) => Box::new(method),
        Method::Chebyshev(method) => Box::new(method),
        Method::Jacobi(method) => Box::new(method),
    }
}

/// Makes a preconditioner for `a`.
///
/// The polynomial's interval is from a 30th of the estimated largest eigenvalue to 1.1 times that
/// eigenvalue ([`estimate_bounds`](crate::estimate_bounds) in 30 steps).
///
/// # Errors
///
/// Those of the preconditioner's own constructor, and of the estimate.
pub fn build_preconditioner<'a, T: Real, E: Engine<T>>(
    preconditioning: &Preconditioning,
    engine: &E,
    a: impl Operator<T> + 'a,
) -> Result<Box<dyn Preconditioner<T, E> + 'a>, SolverError> {
    Ok(match *preconditioning {
        Preconditioning::None => Box::new(Identity),
        Preconditioning::Jacobi => Box::new(Diagonal::new(&a)?),
        Preconditioning::BlockJacobi { size } => Box::new(BlockDiagonal::new(&a, size)?),
        Preconditioning::Chebyshev { degree } => {
            let (scale, bounds) = polynomial_bounds(engine, &a)?;
            Box::new(ChebyshevPolynomial::new(a, scale, bounds, degree)?)
        }
        Preconditioning::Ilu => Box::new(Ilu::new(&a)?),
        Preconditioning::Amg { strength } => Box::new(Amg::new(a, strength)?),
    })
}
