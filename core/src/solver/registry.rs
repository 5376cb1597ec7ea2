//! Methods and preconditioners by name, with their default parameters.

use super::{Engine, Method, Operator, Preconditioner, Preconditioning, Solver, SolverError};
use crate::error::Result;
use crate::real::Real;

/// The names of the methods.
pub const METHODS: [&str; 7] = ["cg", "cg-single", "cg-pipelined", "bicgstab", "gmres", "chebyshev", "jacobi"];

/// The names of the preconditioners.
pub const PRECONDITIONERS: [&str; 4] = ["none", "jacobi", "block-jacobi", "chebyshev"];

/// The method of that name, with its default parameters; an error that lists [`METHODS`] for any other.
pub fn method<T: Real, E: Engine<T>>(name: &str) -> Result<Box<dyn Solver<T, E>>> {
    Ok(name.parse::<Method>()?.solver())
}

/// The preconditioner of that name for `a`, as [`Preconditioning::build`] makes it; an error that lists
/// [`PRECONDITIONERS`] for any other.
pub fn preconditioner<'a, T: Real, E: Engine<T> + 'a>(
    name: &str,
    engine: &E,
    a: &'a dyn Operator<T>,
) -> Result<Box<dyn Preconditioner<T, E> + 'a>, SolverError> {
    name.parse::<Preconditioning>()?.build(engine, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_values() {
        assert_eq!(Method::all().map(|method| method.name()), METHODS);
        assert_eq!(Preconditioning::ALL.map(|preconditioner| preconditioner.name()), PRECONDITIONERS);
    }

    #[test]
    fn parameters_follow_a_colon() {
        use crate::solver::{Gmres, Jacobi};
        assert_eq!("gmres:50".parse(), Ok(Method::Gmres(Gmres { restart: 50 })));
        assert_eq!("jacobi:0.5".parse(), Ok(Method::Jacobi(Jacobi { weight: 0.5 })));
        assert_eq!("block-jacobi:3".parse(), Ok(Preconditioning::BlockJacobi { size: 3 }));
        for bad in ["cg:1", "gmres:0", "gmres:x", "jacobi:2", "sor"] {
            assert!(bad.parse::<Method>().is_err(), "{bad}");
        }
        for bad in ["none:1", "block-jacobi:0", "chebyshev:-1", "ilu"] {
            assert!(bad.parse::<Preconditioning>().is_err(), "{bad}");
        }
    }
}
