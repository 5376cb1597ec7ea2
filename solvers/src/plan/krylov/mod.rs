//! Plans of persistent solvers on CUDA devices: who owns which rows, where vectors and matrix stay, and how
//! blocks wait for each other.
//!
//! A block owns consecutive rows for the whole solve. Systems that fit go to one block or to one thread-block
//! cluster, where waiting is cheap and every block holds the whole exchanged vector in shared memory. Other
//! systems go to all multiprocessors, where the exchanged vector passes through the last-level cache. Vectors
//! and matrix fill shared memory and registers in the order of the traffic that they save (PERKS, ICS'23,
//! section 4.3: vectors are touched more often than the matrix).

mod basis;
mod estimate;
mod pack;
mod place;
mod product;
mod reach;
mod shares;
mod slabs;
mod spread;
mod sums;
#[cfg(test)]
mod tests;
mod vectors;

use abide_core::solver::plan::krylov::{Configuration, Division, Krylov, Share, Slabs, Space, applied};
use abide_core::solver::{
    Matrix, Preconditioning, Product, SolveCache, SolveOptions, SolvePlan, SolveSchedule, SolveSync,
    check_block_size,
};
use abide_core::{DeviceSpec, Error, Result};

pub use pack::{Columns, Packed, pack};
pub use product::configurations;
pub use slabs::plan_krylov_slabs;

/// Rows longer than this many times the mean would keep others waiting even with a few lanes each.
const LONG: f64 = 16.0;

/// The most rows of a thread that keeps some of its vectors in registers, because its loops are unrolled.
const UNROLLED_ROWS: usize = 16;

/// Checks that system and device have what a persistent solver needs; the error says what is missing.
fn check(matrix: &Matrix, device: &DeviceSpec, options: &SolveOptions) -> Result<()> {
    if device.compute_capability.is_none_or(|(major, _)| major < 7) {
        let reason = "a persistent solver needs compute capability 7.0 or newer";
        return Err(Error::unsupported(&device.name, reason, "choose a device that has it"));
    }
    options.preconditioner.check_kernels()?;
    matrix.check_extents()?;
    let most = u32::MAX as usize / 2;
    if matrix.rows() > most {
        let what = "rows of a system in a persistent solver";
        return Err(Error::limit(what, matrix.rows(), most, "make the system smaller"));
    }
    if let Preconditioning::BlockJacobi { size } = options.preconditioner {
        check_block_size(size)?;
        if size > 64 {
            let what = "the rows of a block of block-Jacobi in a persistent solver";
            return Err(Error::limit(what, size, 64, "take 8"));
        }
    }
    if let Preconditioning::Chebyshev { degree } = options.preconditioner
        && !(1..=64).contains(&degree)
    {
        let what = "the degree of a polynomial preconditioner in a persistent solver";
        return Err(Error::limit(what, degree, "1 to 64", "take 3"));
    }
    basis::check(matrix, device, options.method)
}

/// Plans a solve by the configuration with the least estimate among those that fit.
pub fn plan_krylov(matrix: &Matrix, device: &DeviceSpec, options: &SolveOptions) -> Result<SolvePlan> {
    check(matrix, device, options)?;
    let mut best: Option<Krylov> = None;
    for configuration in product::configurations(matrix, device, options) {
        // A configuration that does not fit gives an error; the grid's always fits.
        if let Ok(krylov) = laid_out(matrix, device, options, &configuration)
            && best.as_ref().is_none_or(|best| krylov.seconds < best.seconds)
        {
            best = Some(krylov);
        }
    }
    let best = best.ok_or_else(|| {
        let bytes = device.shared_bytes_per_block;
        Error::limit(
            "shared memory of a persistent solver's block",
            "more",
            format!("{bytes} bytes"),
            "choose a device that has more",
        )
    })?;
    planned(matrix, device, options, best)
}

/// Plans a solve by a given configuration. Fails if it does not fit the device.
pub fn plan_krylov_configuration(
    matrix: &Matrix,
    device: &DeviceSpec,
    options: &SolveOptions,
    configuration: &Configuration,
) -> Result<SolvePlan> {
    check(matrix, device, options)?;
    planned(matrix, device, options, laid_out(matrix, device, options, configuration)?)
}

/// Returns the layout of a configuration: of conjugate gradients, the better one of exchanging directions and remaking them.
fn laid_out(
    matrix: &Matrix,
    device: &DeviceSpec,
    options: &SolveOptions,
    configuration: &Configuration,
) -> Result<Krylov> {
    if configuration.spread.is_some() && configuration.space != Space::Grid {
        let reason = "only a grid's blocks share rows";
        return Err(Error::invalid("the configuration of a persistent solver", reason, "leave out `spread`"));
    }
    let Slabs { count, .. } = configuration.slabs;
    if count > 1
        && (configuration.space != Space::Grid
            || configuration.spread.is_some()
            || matches!(configuration.division, Division::Merged { .. })
            || !configuration.blocks.is_multiple_of(count))
    {
        let reason = "slabs have equally many blocks of a grid, whole rows and no merge path";
        return Err(Error::invalid("the configuration of a persistent solver", reason, "take one slab"));
    }
    let applied = applied(options);
    let cut = shares::RowPartition::new(matrix, configuration, applied)?;
    let exchanging = place::place(matrix, device, options, configuration, &cut, false)?;
    let may_remake = configuration.space == Space::Grid
        && place::keeps_vectors(options.cache)
        && reach::may_remake(options, &exchanging.spread_rows);
    match may_remake.then(|| place::place(matrix, device, options, configuration, &cut, true)) {
        Some(Ok(remaking)) if remaking.seconds < exchanging.seconds => Ok(remaking),
        _ => Ok(exchanging),
    }
}

/// Returns the plan of a layout.
fn planned(
    matrix: &Matrix,
    device: &DeviceSpec,
    options: &SolveOptions,
    krylov: Krylov,
) -> Result<SolvePlan> {
    let count = krylov.slabs.count;
    let (product, synchronisation) = (
        match krylov.division {
            Division::Sliced { .. } => Product::Sliced,
            Division::Split { .. } => Product::Rows,
            Division::Merged { .. } => Product::Merge,
            Division::Stencil => Product::MatrixFree,
        },
        match krylov.space {
            Space::Block => SolveSync::Block,
            Space::Cluster => SolveSync::Cluster,
            Space::Grid if count > 1 => SolveSync::Devices,
            Space::Grid => SolveSync::Grid,
        },
    );
    let mut notes = Vec::new();
    if !krylov.spread_rows.is_empty() {
        notes.push(spread::note(&krylov));
    }
    if krylov.imbalance() > 2.0 {
        let heaviest = krylov.shares.iter().map(Share::work).max().unwrap_or(0);
        notes.push(format!(
            "rows that are not spread are one block's alone: the heaviest has {heaviest} entries, {:.1} times the mean, and all wait for it",
            krylov.imbalance()
        ));
    }
    let traffic = estimate::traffic(matrix, device, options, &krylov);
    let residents = abide_core::solver::plan::krylov::residents(&krylov, matrix.dtype());
    let ranks = if count > 1 { krylov.rows_of_slabs() } else { Vec::new() };
    let schedule = SolveSchedule::Krylov(Box::new(krylov));
    Ok(SolvePlan {
        cache: if options.cache == SolveCache::Auto { SolveCache::Mixed } else { options.cache },
        product,
        residents,
        synchronisation,
        ranks,
        notes,
        ..SolvePlan::new("cuda", device, matrix, options, traffic, schedule)
    })
}
