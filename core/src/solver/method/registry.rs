//! Methods and preconditioners by name, with their default parameters.

use crate::error::Result;
use crate::real::Real;
use crate::solver::{
    Engine, Measure, Method, Operator, Preconditioner, Preconditioning, Solver, SolverError,
};

/// A method's properties that a run has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// The name under which the method is chosen and reported.
    pub name: &'static str,
    /// The measure of the method's progress.
    pub measure: Measure,
}

impl Profile {
    const fn new(name: &'static str, measure: Measure) -> Profile {
        Profile { name, measure }
    }

    pub(in crate::solver) const CG: Profile = Profile::new("cg", Measure::Energy);
    pub(in crate::solver) const CG_SINGLE: Profile = Profile::new("cg-single", Measure::Energy);
    pub(in crate::solver) const CG_PIPELINED: Profile = Profile::new("cg-pipelined", Measure::Energy);
    pub(in crate::solver) const BICGSTAB: Profile = Profile::new("bicgstab", Measure::Residual);
    pub(in crate::solver) const GMRES: Profile = Profile::new("gmres", Measure::Residual);
    pub(in crate::solver) const CHEBYSHEV: Profile = Profile::new("chebyshev", Measure::Residual);
    pub(in crate::solver) const JACOBI: Profile = Profile::new("jacobi", Measure::Residual);

    const ALL: [Profile; 7] = [
        Profile::CG,
        Profile::CG_SINGLE,
        Profile::CG_PIPELINED,
        Profile::BICGSTAB,
        Profile::GMRES,
        Profile::CHEBYSHEV,
        Profile::JACOBI,
    ];
}

/// The names of the methods.
pub const METHODS: [&str; 7] = {
    let mut names = [""; 7];
    let mut k = 0;
    while k < names.len() {
        names[k] = Profile::ALL[k].name;
        k += 1;
    }
    names
};

/// The names of the preconditioners.
pub const PRECONDITIONERS: [&str; 4] = ["none", "jacobi", "block-jacobi", "chebyshev"];

/// Returns the method of that name, with its default parameters. For any other name the error lists
/// [`METHODS`].
pub fn method<T: Real, E: Engine<T>>(name: &str) -> Result<Box<dyn Solver<T, E>>> {
    Ok(name.parse::<Method>()?.solver())
}

/// Returns the preconditioner of that name for `a`, as [`Preconditioning::build`] makes it. For any other
/// name the error lists [`PRECONDITIONERS`].
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
