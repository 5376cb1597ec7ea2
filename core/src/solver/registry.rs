//! Methods and preconditioners by name, with their default parameters.

use super::{
    BiCgStab, BlockDiagonal, Bounds, Cg, Chebyshev, ChebyshevPolynomial, Diagonal, Engine, Gmres, Identity, Jacobi,
    Operator, PipelinedCg, Preconditioner, SingleReductionCg, Solver, SolverError,
};
use crate::error::{Error, Result};
use crate::real::Real;

/// The names of the methods.
pub const METHODS: [&str; 7] = ["cg", "cg-single", "cg-pipelined", "bicgstab", "gmres", "chebyshev", "jacobi"];

/// The names of the preconditioners.
pub const PRECONDITIONERS: [&str; 4] = ["none", "jacobi", "block-jacobi", "chebyshev"];

/// The method of that name, with its default parameters; an error that lists [`METHODS`] for any other.
pub fn method<T: Real, E: Engine<T>>(name: &str) -> Result<Box<dyn Solver<T, E>>> {
    Ok(match name {
        "cg" => Box::new(Cg),
        "cg-single" => Box::new(SingleReductionCg),
        "cg-pipelined" => Box::new(PipelinedCg::default()),
        "bicgstab" => Box::new(BiCgStab),
        "gmres" => Box::new(Gmres::default()),
        "chebyshev" => Box::new(Chebyshev::default()),
        "jacobi" => Box::new(Jacobi::default()),
        _ => return Err(Error::unknown("solver", name, METHODS)),
    })
}

/// The preconditioner of that name for `a`; an error that lists [`PRECONDITIONERS`] for any other.
///
/// `block-jacobi` has blocks of 8 rows. `chebyshev` has degree 3, scaled by the diagonal where that is known, from a 30th of the
/// estimated largest eigenvalue to 1.1 times it.
pub fn preconditioner<'a, T: Real, E: Engine<T> + 'a>(
    name: &str,
    engine: &E,
    a: &'a dyn Operator<T>,
) -> Result<Box<dyn Preconditioner<T, E> + 'a>, SolverError> {
    Ok(match name {
        "none" => Box::new(Identity),
        "jacobi" => Box::new(Diagonal::new(a)?),
        "block-jacobi" => Box::new(BlockDiagonal::new(a, 8)?),
        "chebyshev" => {
            let mut scale = Diagonal::new(a).ok();
            let high = match &mut scale {
                Some(scale) => Bounds::estimate(engine, a, scale, 30)?,
                None => Bounds::estimate(engine, a, &mut Identity, 30)?,
            }
            .high();
            let bounds = Bounds::new(high / 30.0, 1.1 * high)?;
            Box::new(ChebyshevPolynomial::new(a, scale, bounds, 3)?)
        }
        _ => return Err(Error::unknown("preconditioner", name, PRECONDITIONERS).into()),
    })
}
