//! The options that a user may set for a solver: method, preconditioner, and what should stay on the chip.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::method::{Chebyshev, Gmres, Jacobi, METHODS, PRECONDITIONERS, PipelinedCg, Profile};
use crate::error::{Error, Result};
use crate::named::named;

/// A method with its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Conjugate gradients.
    Cg,
    /// Conjugate gradients with one reduction per iteration.
    SingleReductionCg,
    /// Pipelined conjugate gradients.
    PipelinedCg(PipelinedCg),
    /// Minimal residuals, for symmetric matrices.
    Minres,
    /// Stabilised bi-conjugate gradients.
    BiCgStab,
    /// Restarted GMRES.
    Gmres(Gmres),
    /// Chebyshev iteration.
    Chebyshev(Chebyshev),
    /// Jacobi's method.
    Jacobi(Jacobi),
}

impl Method {
    /// Returns every method with its default parameters, in the order of [`METHODS`].
    pub fn all() -> [Method; 8] {
        [
            Method::Cg,
            Method::SingleReductionCg,
            Method::PipelinedCg(PipelinedCg::default()),
            Method::Minres,
            Method::BiCgStab,
            Method::Gmres(Gmres::default()),
            Method::Chebyshev(Chebyshev::default()),
            Method::Jacobi(Jacobi::default()),
        ]
    }

    /// Returns the method's name and its measure of progress.
    pub fn profile(&self) -> Profile {
        match self {
            Method::Cg => Profile::CG,
            Method::SingleReductionCg => Profile::CG_SINGLE,
            Method::PipelinedCg(_) => Profile::CG_PIPELINED,
            Method::Minres => Profile::MINRES,
            Method::BiCgStab => Profile::BICGSTAB,
            Method::Gmres(_) => Profile::GMRES,
            Method::Chebyshev(_) => Profile::CHEBYSHEV,
            Method::Jacobi(_) => Profile::JACOBI,
        }
    }

    /// Returns the name under which the method is chosen and reported.
    pub fn name(&self) -> &'static str {
        self.profile().name
    }

    /// Returns whether the matrix must be symmetric positive definite.
    pub fn needs_definite(&self) -> bool {
        !matches!(self, Method::Minres | Method::BiCgStab | Method::Gmres(_) | Method::Jacobi(_))
    }

    /// Returns whether the matrix must be symmetric.
    pub fn needs_symmetric(&self) -> bool {
        self.needs_definite() || matches!(self, Method::Minres)
    }

    /// Returns the products with `A` per iteration.
    pub fn products(&self) -> usize {
        if matches!(self, Method::BiCgStab) { 2 } else { 1 }
    }

    /// Returns the number of vectors that the method keeps besides `b` and `x`.
    pub fn vectors(&self) -> usize {
        match self {
            Method::Cg => 4,
            Method::SingleReductionCg => 5,
            Method::PipelinedCg(_) => 9,
            Method::Minres | Method::BiCgStab => 7,
            Method::Gmres(gmres) => gmres.restart.saturating_add(3),
            Method::Chebyshev(_) => 3,
            Method::Jacobi(_) => 2,
        }
    }

    /// Returns the number of vectors, `x` among them, that an iteration finds and leaves changed: each must
    /// be read and written once, wherever it is kept.
    pub fn carried(&self) -> usize {
        match self {
            Method::Cg => 3,
            Method::SingleReductionCg => 4,
            Method::PipelinedCg(_) => 8,
            Method::Minres => 6,
            Method::BiCgStab => 4,
            // x changes once per cycle. An iteration adds a vector to the basis, which is read half full on
            // average.
            Method::Gmres(_) => 1,
            Method::Chebyshev(_) => 3,
            Method::Jacobi(_) => 1,
        }
    }

    /// Returns the number of vectors that an iteration must read without changing them, on average.
    pub fn consulted(&self) -> usize {
        match self {
            Method::BiCgStab => 1,
            Method::Gmres(gmres) => gmres.restart / 2,
            // These are b and the diagonal.
            Method::Jacobi(_) => 2,
            _ => 0,
        }
    }
}

impl Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Method {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    /// Reads the name of a method; a parameter may follow after a colon: the replacement of
    /// `cg-pipelined:50`, the restart of `gmres:30`, the weight of `jacobi:1`.
    fn from_str(text: &str) -> Result<Self> {
        let (name, parameter) = split(text);
        let found = Method::all().into_iter().find(|method| method.name() == name);
        let method = found.ok_or_else(|| Error::unknown("solver", text, METHODS))?;
        let Some(parameter) = parameter else { return Ok(method) };
        let whole = parameter.parse::<usize>().ok();
        let given = match method {
            Method::PipelinedCg(_) => {
                whole.map(|replacement| Method::PipelinedCg(PipelinedCg { replacement }))
            }
            Method::Gmres(_) => whole.filter(|&m| m > 0).map(|restart| Method::Gmres(Gmres { restart })),
            Method::Jacobi(_) => {
                let weight = parameter.parse().ok().filter(|weight| *weight > 0.0 && *weight < 2.0);
                weight.map(|weight| Method::Jacobi(Jacobi { weight }))
            }
            _ => None,
        };
        given.ok_or_else(|| {
            let change = "write it like gmres:30, jacobi:0.7 (below 2), cg-pipelined:50, or without a number";
            Error::invalid(
                format!("solver `{text}`"),
                format!("{name} has no parameter `{parameter}`"),
                change,
            )
        })
    }
}

/// Splits a text into the name and the parameter after its colon.
fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once(':').map_or((text, None), |(name, parameter)| (name, Some(parameter)))
}

/// A preconditioner with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Preconditioning {
    /// No preconditioner.
    #[default]
    None,
    /// The diagonal.
    Jacobi,
    /// Blocks of `size` rows on the diagonal; default 8.
    BlockJacobi {
        /// Rows per block.
        size: usize,
    },
    /// A Chebyshev polynomial in the matrix, scaled by the diagonal if that is known.
    Chebyshev {
        /// Products with the matrix per application; default 3.
        degree: usize,
    },
    /// Incomplete factors with the matrix's own entries, ILU(0); of a symmetric matrix IC(0). On the CPU.
    Ilu,
    /// A cycle of algebraic multigrid by smoothed aggregation, for symmetric positive definite matrices. On the CPU.
    Amg {
        /// The least share of their diagonal entries' mean from which entries connect rows; default 0.08.
        strength: f64,
    },
}

impl Preconditioning {
    /// Every preconditioner with its default parameters, in the order of [`PRECONDITIONERS`].
    pub const ALL: [Preconditioning; 6] = [
        Preconditioning::None,
        Preconditioning::Jacobi,
        Preconditioning::BlockJacobi { size: 8 },
        Preconditioning::Chebyshev { degree: 3 },
        Preconditioning::Ilu,
        Preconditioning::Amg { strength: 0.08 },
    ];

    /// Those that the kernels of devices apply.
    pub const OF_KERNELS: [Preconditioning; 4] = [Self::ALL[0], Self::ALL[1], Self::ALL[2], Self::ALL[3]];

    /// Returns the name under which the preconditioner is chosen and reported.
    pub fn name(&self) -> &'static str {
        match self {
            Preconditioning::None => "none",
            Preconditioning::Jacobi => "jacobi",
            Preconditioning::BlockJacobi { .. } => "block-jacobi",
            Preconditioning::Chebyshev { .. } => "chebyshev",
            Preconditioning::Ilu => "ilu",
            Preconditioning::Amg { .. } => "amg",
        }
    }

    /// Fails where the kernels of a device cannot apply the preconditioner.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] for incomplete factors and algebraic multigrid.
    pub fn check_kernels(&self) -> Result<()> {
        if Preconditioning::OF_KERNELS.iter().all(|own| own.name() != self.name()) {
            let change = "solve on the CPU, or take jacobi, block-jacobi or chebyshev";
            return Err(Error::unsupported(
                format!("preconditioner {self}"),
                "no kernel of a device applies it",
                change,
            ));
        }
        Ok(())
    }

    /// Returns the products with `A` per application.
    pub fn products(&self) -> usize {
        match self {
            Preconditioning::Chebyshev { degree } => *degree,
            Preconditioning::Amg { .. } => 4,
            _ => 0,
        }
    }
}

impl Display for Preconditioning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Preconditioning {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Preconditioning {
    type Err = Error;

    /// Reads the name of a preconditioner; a parameter may follow after a colon: the rows of a block of
    /// `block-jacobi:8`, the degree of `chebyshev:3`, the strength of `amg:0.08`.
    fn from_str(text: &str) -> Result<Self> {
        let (name, parameter) = split(text);
        let found = Preconditioning::ALL.into_iter().find(|preconditioner| preconditioner.name() == name);
        let preconditioner = found.ok_or_else(|| Error::unknown("preconditioner", text, PRECONDITIONERS))?;
        let Some(parameter) = parameter else { return Ok(preconditioner) };
        let share = parameter.parse().ok().filter(|share| (0.0..1.0).contains(share));
        if let (Preconditioning::Amg { .. }, Some(strength)) = (preconditioner, share) {
            return Ok(Preconditioning::Amg { strength });
        }
        match (preconditioner, parameter.parse::<usize>()) {
            (Preconditioning::BlockJacobi { .. }, Ok(size)) => {
                check_block_size(size)?;
                Ok(Preconditioning::BlockJacobi { size })
            }
            (Preconditioning::Chebyshev { .. }, Ok(degree)) => {
                check_degree(degree)?;
                Ok(Preconditioning::Chebyshev { degree })
            }
            _ => {
                let (what, reason) =
                    (format!("preconditioner `{text}`"), format!("{name} has no parameter `{parameter}`"));
                let change = "write it like block-jacobi:8, chebyshev:3, amg:0.08 (from 0 to below 1), or without a number";
                Err(Error::invalid(what, reason, change))
            }
        }
    }
}

named! {
    /// The data that a persistent solver keeps on the chip from iteration to iteration.
    SolveCache "cache of a solver" {
        /// The data that save the most traffic.
        #[default]
        Auto = "auto",
        /// Nothing.
        None = "none",
        /// The vectors.
        Vectors = "vectors",
        /// The matrix.
        Matrix = "matrix",
        /// The vectors first, and as much of the matrix as there is room for.
        Mixed = "mixed",
    }
}

named! {
    /// The vectors that the matrix of a system takes to 0.
    Nullspace "null space" {
        /// None that is known.
        #[default]
        None = "none",
        /// Those with one value in all rows: each row of the matrix adds up to 0, and each column.
        Constant = "constant",
    }
}

/// The options of a solve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolveOptions {
    /// The method; default conjugate gradients.
    pub method: Method,
    /// The preconditioner; default none.
    pub preconditioner: Preconditioning,
    /// The data that should stay on the chip; default auto.
    pub cache: SolveCache,
    /// Whether the matrix counts as symmetric without a look at it; default no.
    pub assume_symmetric: bool,
}

impl Default for SolveOptions {
    fn default() -> Self {
        let (preconditioner, cache) = (Preconditioning::None, SolveCache::Auto);
        SolveOptions { method: Method::Cg, preconditioner, cache, assume_symmetric: false }
    }
}

impl SolveOptions {
    /// Returns the default options with this method.
    pub fn with_method(method: Method) -> Self {
        SolveOptions { method, ..SolveOptions::default() }
    }
}

/// The most rows of a block: inverting a block of n rows takes n^3 operations, and cannot be stopped.
pub const MAX_BLOCK: usize = 1000;

/// Fails for blocks of no rows, or of too many.
pub fn check_block_size(size: usize) -> Result<()> {
    let limit = match size {
        0 => "at least 1".to_owned(),
        1..=MAX_BLOCK => return Ok(()),
        _ => format!("at most {MAX_BLOCK}"),
    };
    Err(Error::limit("the rows of a block of block-Jacobi", size, limit, "take 8"))
}

/// The highest degree: an application with more products could not be stopped for long, and would be no
/// approximation any more.
pub const MAX_DEGREE: usize = 1000;

/// Fails for a degree above [`MAX_DEGREE`].
pub fn check_degree(degree: usize) -> Result<()> {
    if degree > MAX_DEGREE {
        return Err(Error::limit("the degree of the chebyshev preconditioner", degree, MAX_DEGREE, "take 3"));
    }
    Ok(())
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
        assert_eq!("gmres:50".parse(), Ok(Method::Gmres(Gmres { restart: 50 })));
        assert_eq!("jacobi:0.5".parse(), Ok(Method::Jacobi(Jacobi { weight: 0.5 })));
        assert_eq!("block-jacobi:3".parse(), Ok(Preconditioning::BlockJacobi { size: 3 }));
        for bad in ["cg:1", "gmres:0", "gmres:x", "jacobi:2", "sor"] {
            assert!(bad.parse::<Method>().is_err(), "{bad}");
        }
        for preconditioner in Preconditioning::ALL {
            let is_known = preconditioner.check_kernels().is_ok();
            assert_eq!(is_known, Preconditioning::OF_KERNELS.contains(&preconditioner), "{preconditioner}");
        }
        assert_eq!("amg:0.25".parse(), Ok(Preconditioning::Amg { strength: 0.25 }));
        for bad in ["none:1", "block-jacobi:0", "chebyshev:-1", "ilu:1", "amg:1", "amg:-0.1", "amg:x", "ssor"]
        {
            assert!(bad.parse::<Preconditioning>().is_err(), "{bad}");
        }
    }
}
