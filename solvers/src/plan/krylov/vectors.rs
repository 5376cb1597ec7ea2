//! The vectors that each method keeps, and the order in which they are worth a place on the chip.

use abide_core::solver::plan::krylov::{Division, SUMMED, Vector, is_pointwise};
use abide_core::solver::{Method, Preconditioning};

/// Returns the vectors of a method, the one whose place saves the most traffic first.
pub fn of(method: Method, applied: Preconditioning) -> Vec<Vector> {
    use Vector::{
        Direction, Image, Inverse, M, N, P, PHat, Q, R, Residue, S, SHat, Shadow, T, U, V, W, X, Z,
    };
    let (mut all, unless_pointwise): (Vec<Vector>, &[Vector]) = match method {
        Method::Cg => (vec![P, Q, R, X], &[Z]),
        Method::SingleReductionCg => (vec![R, W, P, S, X], &[U]),
        Method::PipelinedCg(_) => (vec![W, R, Z, S, P, N, X], &[M, U, Q]),
        Method::Minres => (vec![P, Q, W, T, S, R, X], &[Z]),
        Method::BiCgStab => (vec![R, V, T, P, Shadow, X], &[SHat, PHat]),
        Method::Gmres(_) => (vec![W, X], &[Z]),
        Method::Chebyshev(_) => (vec![P, R, Q, X], &[Z]),
        Method::Jacobi(_) => (vec![X, Q, R], &[Z]),
    };
    if !is_pointwise(applied) {
        all.extend(unless_pointwise);
    }
    if let Preconditioning::Chebyshev { .. } = applied {
        // The polynomial's vectors are touched once for each of its products.
        all.splice(0..0, [Direction, Image, Residue]);
    }
    if matches!(applied, Preconditioning::Jacobi | Preconditioning::Chebyshev { .. }) {
        all.push(Inverse);
    }
    all
}

/// Checks whether threads other than the owner of a row read or write the vector, so that registers cannot
/// hold it: results of products whose sums are the work of several threads, and vectors to which blocks of
/// block-Jacobi are applied.
pub fn is_shared_within(vector: Vector, division: Division, applied: Preconditioning) -> bool {
    use Vector::{Image, N, P, Q, R, S, T, V, W, Z};
    let product = matches!(division, Division::Split { .. } | Division::Merged { .. })
        && matches!(vector, Q | W | S | N | V | T | Image | Z);
    let block = matches!(applied, Preconditioning::BlockJacobi { .. }) && matches!(vector, R | W | P | S);
    product || block
}

/// Checks whether a vector is touched so seldom that it is worth no place on the chip: GMRES changes `x` once
/// per cycle.
pub fn is_seldom(method: Method, vector: Vector) -> bool {
    matches!(method, Method::Gmres(_)) && vector == Vector::X
}

/// Returns the vector that the method exchanges as it stands, and whose own part a block may read in its
/// shared memory.
pub fn exchanged(method: Method) -> Option<Vector> {
    matches!(method, Method::Cg | Method::Chebyshev(_)).then_some(Vector::P)
}

/// Returns the most sums that one pass over the rows makes in an iteration.
pub fn sums(method: Method, applied: Preconditioning) -> usize {
    let scaled = usize::from(applied != Preconditioning::None);
    match method {
        Method::Cg => 1 + scaled,
        Method::SingleReductionCg | Method::PipelinedCg(_) => 2 + scaled,
        Method::Minres => 3,
        Method::BiCgStab => 2,
        Method::Gmres(_) => SUMMED,
        Method::Chebyshev(_) | Method::Jacobi(_) => 1,
    }
}

/// Returns the barriers of an iteration: exchanges and reductions that wait on their own, and the exchanges
/// of a preconditioner's products.
pub fn barriers(method: Method, applied: Preconditioning) -> usize {
    let own = match method {
        // GMRES has those of the exchange and of the projections, whatever their number.
        Method::Cg | Method::Minres | Method::Gmres(_) => 3,
        Method::SingleReductionCg | Method::Chebyshev(_) | Method::Jacobi(_) => 2,
        Method::PipelinedCg(_) => 1,
        Method::BiCgStab => 5,
    };
    own + method.products() * applied.products()
}
