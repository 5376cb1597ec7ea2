//! The plan of a solver on the CPU: nothing to choose, much to count.

use abide_core::DeviceSpec;
use abide_core::solver::{
    Bands, Matrix, Method, Place, Preconditioning, Resident, SolveCache, SolveOptions, SolvePlan,
    SolveSchedule, SolveSync, SolveTraffic,
};

/// Entries of a matrix, or taps, per piece of work: some ten microseconds, a hundred times as long as handing
/// the piece out.
pub const WORK: usize = 16 << 10;

/// Returns the plan of `threads` threads, or of the reference's one.
pub fn plan(matrix: &Matrix, options: &SolveOptions, device: &DeviceSpec, reference: bool) -> SolvePlan {
    let threads = if reference { 1 } else { device.multiprocessors.max(1) };
    let vector = matrix.rows().saturating_mul(matrix.dtype().bytes());
    // The vectors of the method, b and x; a preconditioner's own are counted with its passes only.
    let vectors = vector.saturating_mul(options.method.vectors() + 2);
    let products = (options.method.products() * (1 + options.preconditioner.products())) as f64;
    let all = matrix.bytes().saturating_add(vectors);
    let place = if all <= device.l2_bytes { Place::Cache } else { Place::Memory };
    let moved = match place {
        Place::Cache => 0.0,
        _ => products * matrix.bytes() as f64 + passes(options) * vector as f64,
    };
    let mut notes = Vec::new();
    if !matches!(options.cache, SolveCache::Auto | SolveCache::None) {
        notes.push(format!(
            "cache {} was asked for: what stays in a CPU's caches is the hardware's choice",
            options.cache
        ));
    }
    let traffic = SolveTraffic::new(matrix, options, moved, device.l2_bytes);
    let schedule = SolveSchedule::Bands(Bands { threads, work: WORK });
    SolvePlan {
        residents: vec![
            Resident { what: "matrix", place, bytes: matrix.bytes() },
            Resident { what: "vectors", place, bytes: vectors },
        ],
        synchronisation: if threads > 1 { SolveSync::Join } else { SolveSync::None },
        notes,
        ..SolvePlan::new("cpu", device, matrix, options, traffic, schedule)
    }
}

/// Counts the vectors that an iteration reads or writes, as the methods are written: a product reads one and
/// writes one, an update or a reduction reads each of its arguments once and writes each result once.
fn passes(options: &SolveOptions) -> f64 {
    let apply = match options.preconditioner {
        Preconditioning::None => 2.0,
        Preconditioning::Jacobi => 3.0,
        Preconditioning::BlockJacobi { size } => 2.0 + size as f64,
        Preconditioning::Chebyshev { degree } => 5.0 + 10.0 * degree as f64,
        // Two triangles, each with its right-hand side, its order and its solution twice.
        Preconditioning::Ilu => 8.0,
        // Four products and as many updates, and about as much again for the ways and all coarser matrices.
        Preconditioning::Amg { .. } => 60.0,
    };
    let plain = options.preconditioner == Preconditioning::None;
    match options.method {
        // Product 2, (p, q) 2, x and r 6, dots 2 (without preconditioner 1, and nothing is applied), p 3.
        Method::Cg if plain => 14.0,
        Method::Cg => 15.0 + apply,
        // p, s, x, r from u, w 10, product 2, dots 3; without preconditioner u is r.
        Method::SingleReductionCg if plain => 13.0,
        Method::SingleReductionCg => 15.0 + apply,
        // Dots 3, product 2, eight vectors from two more 18; a replacement: 4 products, 2 residuals' updates,
        // 2 applications.
        Method::PipelinedCg(method) => {
            let replacement =
                if method.replacement > 0 { (11.0 + 2.0 * apply) / method.replacement as f64 } else { 0.0 };
            23.0 + apply + replacement
        }
        // Product 2, (z, A z) 2, four vectors from themselves and two more 10, dots 3, w, x and r 7.
        Method::Minres => 24.0 + apply,
        // Products 4, dots 2 + 2 + 2, r 3, x and r 7, p 4.
        Method::BiCgStab => 24.0 + 2.0 * apply,
        // Two sweeps of projection and combination over half the basis on average, a norm, a scaled copy.
        Method::Gmres(method) => 7.0 + 2.0 * (2.0 + 3.0) * method.restart as f64 / 2.0 + apply,
        // Dot 1, d and x 5, product 2, r 3.
        Method::Chebyshev(_) => 11.0 + apply,
        // Product 2, residual 3, dot 1, x 3.
        Method::Jacobi(_) => 9.0 + apply.max(3.0),
    }
}
