//! The methods and preconditioners by name, and the parameters of those methods that have any.

use super::bounds::Bounds;
use crate::error::{Error, Result};
use crate::real::DType;

/// Conjugate gradients after Ghysels and Vanroose: the one reduction of an iteration depends on nothing that
/// the products with `M^-1` and `A` compute, so that a parallel machine can do both at once.
///
/// Source: Ghysels and Vanroose, Parallel Computing 40 (2014), 224–238, algorithm 4. Every
/// [`replacement`](PipelinedCg::replacement) iterations r, u, w, s, q and z are computed from x and p afresh;
/// Cools, Yetkin, Agullo, Giraud and Vanroose (SIAM J. Matrix Anal. Appl. 39 (2018), 426–450) do the same
/// where an estimate asks for it. In exact arithmetic the iterates are those of [`Method::Cg`](super::Method::Cg). The longer
/// recurrences of this method lose accuracy, which replacement restores. Memory: 9 vectors besides `b` and
/// `x`. Per iteration: 1 product with `A`, 1 with `M^-1`, and beside them 1 reduction (of 3 dot products).
/// Per replacement: 4 more products with `A` and 2 more with `M^-1`.
///
/// If rounding has spoilt the recurrences so far that a square comes out negative, the method starts anew
/// from `x`, which the history counts as an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipelinedCg {
    /// Iterations from one replacement to the next; 0 for no replacement. Default 50.
    pub replacement: usize,
}

impl Default for PipelinedCg {
    fn default() -> Self {
        PipelinedCg { replacement: 50 }
    }
}

/// Chebyshev iteration for symmetric positive definite systems whose eigenvalues are bounded: no dot product
/// in the recurrence.
///
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 12.1, with the
/// preconditioned residual in the directions. Memory: 3 vectors besides `b` and `x`. Per iteration: 1 product
/// with `A`, 1 with `M^-1`, 1 reduction, which is for the stopping test alone. After k iterations without a
/// preconditioner the residual is at most `1 / T_k((high + low) / (high - low))` of the first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Chebyshev {
    /// Bounds of the eigenvalues of `M^-1 A`. An eigenvalue above the upper bound makes the iteration
    /// diverge; one below the lower bound makes it slow. Default none: they are estimated by
    /// `estimate_bounds` of the crate `abide-solvers` in 30 steps before the loop, and [`widened`](Bounds::widened) by 0.9 and 1.1.
    pub bounds: Option<Bounds>,
}

/// GMRES(m) with right preconditioning, for any invertible matrix.
///
/// Source: Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), 856–869; preconditioned as in Saad,
/// Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 9.5, so that the residual is the true one.
/// Vectors are made orthogonal by classical Gram–Schmidt done twice (Giraud, Langou and Rozložník, Comput.
/// Math. Appl. 50 (2005), 1069–1075): as good as the modified form, in 2 reductions whatever the length of
/// the basis. Memory: m + 3 vectors besides `b` and `x`, and m² / 2 coefficients. Per iteration: 1 product
/// with `A`, 1 with `M^-1`, 3 reductions (of j, j and 1 dot products at step j of a cycle). Per cycle: 1 more
/// product of each kind and 1 more reduction.
///
/// A cycle that does not lower the residual would be repeated for ever; it is [`SolverError::Stagnation`](super::SolverError::Stagnation) at
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gmres {
    /// Iterations per cycle, m; at least 1. Default 30.
    pub restart: usize,
}

/// Rows up to which a cycle holds the whole Krylov space unless a restart is asked for.
const WHOLE: usize = 300;

impl Gmres {
    /// Returns the method with the restart that suits a matrix of `rows` rows where none is asked for: as many
    /// iterations as rows up to 300 rows, where no cycle ends before the solution is found; else the default.
    pub fn suited(rows: usize) -> Gmres {
        let whole = (1..=WHOLE).contains(&rows);
        Gmres { restart: if whole { rows.max(Gmres::default().restart) } else { Gmres::default().restart } }
    }

    /// Fails for cycles without iterations.
    pub fn check(&self) -> Result<()> {
        if self.restart == 0 {
            return Err(Error::limit("GMRES's restart", 0, "at least 1", "take 30"));
        }
        Ok(())
    }
}

impl Default for Gmres {
    fn default() -> Self {
        Gmres { restart: 30 }
    }
}

/// Jacobi's method, damped: `x += weight M^-1 (b - A x)`.
///
/// Without a preconditioner `M` is the diagonal of `A`; a preconditioner takes the diagonal's place
/// (block-Jacobi gives the block method). The method converges if the spectral radius of `I - weight M^-1 A`
/// is below 1: for weight 1, if `A` is strictly diagonally dominant.
///
/// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., section 4.1. Memory: 2 vectors besides
/// `b` and `x`, and the diagonal. Per iteration: 1 product with `A`, 1 with `M^-1`, 1 reduction, which is for
/// the stopping test alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jacobi {
    /// The damping factor, above 0 and below 2. Default 1.
    pub weight: f64,
}

impl Default for Jacobi {
    fn default() -> Self {
        Jacobi { weight: 1.0 }
    }
}

impl Jacobi {
    /// Checks that the damping factor is above 0 and below 2.
    pub fn check(&self) -> Result<()> {
        if self.weight > 0.0 && self.weight < 2.0 {
            return Ok(());
        }
        let reason = format!("{} is outside ]0, 2[", self.weight);
        Err(Error::invalid("Jacobi's weight", reason, "take 1, or 2/3 as a smoother"))
    }
}

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

    /// Conjugate gradients.
    pub const CG: Profile = Profile::new("cg", Measure::Energy);
    /// Conjugate gradients with one reduction per iteration.
    pub const CG_SINGLE: Profile = Profile::new("cg-single", Measure::Energy);
    /// Pipelined conjugate gradients.
    pub const CG_PIPELINED: Profile = Profile::new("cg-pipelined", Measure::Energy);
    /// Minimal residuals.
    pub const MINRES: Profile = Profile::new("minres", Measure::Residual);
    /// Stabilised bi-conjugate gradients.
    pub const BICGSTAB: Profile = Profile::new("bicgstab", Measure::Residual);
    /// Restarted GMRES.
    pub const GMRES: Profile = Profile::new("gmres", Measure::Residual);
    /// Chebyshev iteration.
    pub const CHEBYSHEV: Profile = Profile::new("chebyshev", Measure::Residual);
    /// Jacobi's method.
    pub const JACOBI: Profile = Profile::new("jacobi", Measure::Residual);

    const ALL: [Profile; 8] = [
        Profile::CG,
        Profile::CG_SINGLE,
        Profile::CG_PIPELINED,
        Profile::MINRES,
        Profile::BICGSTAB,
        Profile::GMRES,
        Profile::CHEBYSHEV,
        Profile::JACOBI,
    ];
}

/// The names of the methods.
pub const METHODS: [&str; 8] = {
    let mut names = [""; 8];
    let mut k = 0;
    while k < names.len() {
        names[k] = Profile::ALL[k].name;
        k += 1;
    }
    names
};

/// The names of the preconditioners.
pub const PRECONDITIONERS: [&str; 6] = ["none", "jacobi", "block-jacobi", "chebyshev", "ilu", "amg"];

/// The quantity that a method reduces from iteration to iteration, by which its progress is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The norm of the residual.
    Residual,
    /// The A-norm of the error. Its square falls by `alpha rho` in an iteration of conjugate gradients
    /// (Hestenes and Stiefel, J. Res. NBS 49 (1952), theorem 6:1; in floating point too: Strakoš and Tichý,
    /// ETNA 13 (2002), 56–80). The norm of these methods' residual says nothing of progress: it may rise for
    /// more iterations than the matrix has rows.
    Energy,
}

impl Measure {
    /// Returns the least share of the energy taken off so far that a stretch of iterations must take off: the
    /// square of the type's rounding.
    ///
    /// Each `alpha rho` is at least `|r|^2 / |A|`, and the sum of all `alpha rho` is at most `|x|_A^2`. So a
    /// stretch below this share has only residuals below `rounding |A| |x|`, by which rounding `x` alone
    /// changes the residual. With a preconditioner the same holds of `M^-1 A`.
    pub fn least_share(dtype: DType) -> f64 {
        let rounding = match dtype {
            DType::F32 => f64::from(f32::EPSILON) / 2.0,
            DType::F64 => f64::EPSILON / 2.0,
        };
        rounding * rounding
    }
}
