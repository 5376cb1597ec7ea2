//! Plans of solvers on devices without a barrier of all workgroups: an iteration is a few dispatches, each of
//! which ends before the next begins.
//!
//! Nothing stays on the chip from one dispatch to the next, so there is little to choose: how many threads a
//! row gets, and from which length on a row gets a whole workgroup.

use abide_core::solver::plan::krylov::applied;
use abide_core::solver::plan::{Dispatches, Effort};
use abide_core::solver::{
    Matrix, Method, Place, Preconditioning, Resident, SolveCache, SolveOptions, SolvePlan, SolveSchedule,
    SolveSync, SolveTraffic,
};
use abide_core::sparse::RowLengths;
use abide_core::{DeviceSpec, Error, Result};

/// Threads of a workgroup: as many as every device has.
const THREADS: usize = 256;

/// The most workgroups of a dispatch, and so the most shares of a sum: one workgroup adds them up, four per
/// thread.
const GROUPS: usize = 1024;

/// The most threads of a row.
const LANES: usize = 32;

/// Rows longer than this many times the mean are taken out of turn.
const LONG: usize = 16;

/// Plans a solve whose kernels do the work in `effort`. Fails if a vector or a part of the matrix is larger
/// than the device can bind.
pub fn plan_dispatches(
    backend: &'static str,
    matrix: &Matrix,
    device: &DeviceSpec,
    options: &SolveOptions,
    effort: &Effort,
) -> Result<SolvePlan> {
    matrix.check_extents()?;
    check_room(matrix, device, options)?;
    let (lanes, longest) = match matrix {
        Matrix::Stored(stored) => division(&stored.row_lengths()),
        Matrix::Stencil(_) => (1, None),
    };
    let share = |least: usize| matrix.rows().div_ceil(GROUPS).next_power_of_two().max(least);
    let (share, product_share) = (share(THREADS), share(THREADS / lanes));
    let schedule = Dispatches {
        threads: THREADS,
        share,
        product_share,
        groups: matrix.rows().div_ceil(share),
        product_groups: matrix.rows().div_ceil(product_share),
        lanes,
        longest,
        an_iteration: effort.dispatches,
    };
    let vector = matrix.rows() * matrix.dtype().bytes();
    let moved = (effort.products * matrix.bytes() + effort.passes * vector) as f64;
    let mut notes = Vec::new();
    if !matches!(options.cache, SolveCache::Auto | SolveCache::None) {
        notes.push(format!(
            "cache {} was asked for: nothing stays on the chip from one dispatch to the next",
            options.cache
        ));
    }
    let traffic = SolveTraffic::new(matrix, options, moved, device.on_chip_bytes() + device.l2_bytes);
    let schedule = SolveSchedule::Dispatches(schedule);
    Ok(SolvePlan {
        residents: vec![
            Resident { what: "matrix", place: Place::Memory, bytes: matrix.bytes() },
            Resident { what: "vectors", place: Place::Memory, bytes: effort.vectors * vector },
        ],
        synchronisation: SolveSync::Launches,
        notes,
        ..SolvePlan::new(backend, device, matrix, options, traffic, schedule)
    })
}

/// Returns the threads of a row, so that each has at least two entries if there are so many, and the length
/// from which on rows are long.
fn division(lengths: &RowLengths) -> (usize, Option<usize>) {
    let mean = lengths.entries / lengths.rows.max(1);
    let lanes = (1_usize << (mean / 2).max(1).ilog2()).min(LANES);
    let bound = (LONG * mean.max(1)).max(THREADS);
    (lanes, (lengths.max > bound).then_some(bound))
}

/// Checks that all that is bound to a kernel fits in a binding, and its indices in 32 bits.
fn check_room(matrix: &Matrix, device: &DeviceSpec, options: &SolveOptions) -> Result<()> {
    if device.threads_per_block < THREADS {
        let change = "choose another device";
        return Err(Error::limit(
            format!("threads of a workgroup of a solver on {}", device.name),
            THREADS,
            device.threads_per_block,
            change,
        ));
    }
    let change = "choose f32 or another device";
    let most = u64::from(u32::MAX / 2);
    if matrix.rows() as u64 > most {
        return Err(Error::limit(
            "rows of a system in kernels of 32-bit indices",
            matrix.rows(),
            most,
            change,
        ));
    }
    let (rows, real) = (matrix.rows() as u64, matrix.dtype().bytes() as u64);
    let mut parts = vec![("one vector", rows * real)];
    if let Matrix::Stored(stored) = matrix {
        let entries = stored.nnz() as u64;
        if entries > u64::from(u32::MAX) {
            return Err(Error::limit(
                "entries of a matrix in kernels of 32-bit indices",
                entries,
                u32::MAX,
                change,
            ));
        }
        // Behind the offsets come the long rows, of which there are fewer than rows, and the first long row
        // of each workgroup.
        parts.extend([
            ("a matrix's offsets", 4 * (3 * rows + 2)),
            ("a matrix's columns", 4 * entries),
            ("a matrix's values", real * entries),
        ]);
    }
    if let Preconditioning::BlockJacobi { size } = applied(options) {
        parts.push((
            "block-Jacobi's inverses",
            rows.saturating_mul(real).saturating_mul(size.min(matrix.rows()) as u64),
        ));
    }
    if let Method::Gmres(method) = options.method {
        let restart = method.restart.min(matrix.rows()) as u64;
        parts.extend([
            ("GMRES's basis", (rows * real).saturating_mul(restart + 1)),
            (
                "GMRES's least-squares problem",
                real.saturating_mul(restart.saturating_mul(restart + 5).saturating_add(1)),
            ),
        ]);
    }
    match parts.into_iter().find(|(_, bytes)| *bytes > device.buffer_bytes) {
        Some((part, bytes)) => Err(Error::limit(
            format!("bytes of {part} on {}", device.name),
            bytes,
            device.buffer_bytes,
            change,
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use abide_core::sparse::{Csr, Triplets};

    use super::*;

    const EFFORT: Effort = Effort { dispatches: 5, passes: 11, products: 1, vectors: 5 };

    fn device() -> DeviceSpec {
        DeviceSpec {
            threads_per_block: 256,
            buffer_bytes: 1 << 27,
            ..DeviceSpec::preset("a100").unwrap_or_else(|e| panic!("{e}"))
        }
    }

    /// Makes rows of `width` entries, the first row full.
    fn matrix(rows: usize, width: usize, first: usize) -> Csr {
        let mut triplets = Triplets::new(rows, rows).unwrap();
        for row in 0..rows {
            let entries = if row == 0 { first } else { width };
            (0..entries).for_each(|k| triplets.push(row, (row + k) % rows, 1.0).unwrap());
        }
        triplets.into_csr().unwrap()
    }

    fn plan(matrix: impl Into<Matrix>) -> Result<SolvePlan> {
        plan_dispatches("wgpu", &matrix.into(), &device(), &SolveOptions::with_method(Method::Cg), &EFFORT)
    }

    #[test]
    fn threads_of_a_row_follow_its_length() {
        for (width, lanes) in [(1, 1), (3, 1), (5, 2), (7, 2), (27, 8), (42, 16), (300, 32)] {
            let plan = plan(matrix(1000, width, width)).unwrap();
            let layout = plan.dispatches().unwrap();
            assert_eq!((layout.lanes, layout.longest), (lanes, None), "{width}");
            assert_eq!(layout.product_groups, 1000_usize.div_ceil(256 / lanes), "{width}");
            assert_eq!(layout.groups, 4);
        }
        let skewed = plan(matrix(1000, 5, 999)).unwrap();
        assert_eq!(skewed.dispatches().unwrap().longest, Some(256));
        assert!(skewed.to_string().contains("rows above 256 entries"), "{skewed}");
    }

    #[test]
    fn what_no_binding_holds_is_refused_by_name() {
        let small = DeviceSpec { buffer_bytes: 1 << 12, ..device() };
        let options = SolveOptions::with_method(Method::Cg);
        let error = |matrix: Csr| {
            plan_dispatches("wgpu", &matrix.into(), &small, &options, &EFFORT).unwrap_err().to_string()
        };
        assert!(error(matrix(1000, 1, 1)).contains("one vector"));
        assert!(error(matrix(400, 1, 1)).contains("offsets"));
        assert!(error(matrix(300, 5, 5)).contains("columns"));
        let narrow = DeviceSpec { threads_per_block: 128, ..device() };
        let narrow =
            plan_dispatches("wgpu", &matrix(9, 1, 1).into(), &narrow, &options, &EFFORT).unwrap_err();
        assert!(narrow.to_string().contains("128"), "{narrow}");
    }
}
