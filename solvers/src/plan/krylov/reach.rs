//! What blocks of a grid read of each other's rows: their reach.
//!
//! Where a block has room for the direction of conjugate gradients in all rows that it reads, it makes those of others itself,
//! of their preconditioned residual, which goes with the sums. Nobody then waits for the direction: an iteration has one barrier
//! less. And only the rows that others reach are published.

use std::ops::Range;

use abide_core::solver::plan::krylov::{Share, applied};
use abide_core::solver::{GridOperator, Method, SolveOptions};

use abide_core::Boundary;

/// Checks whether a method's directions can be made by those who read them.
pub(super) fn may_remake(options: &SolveOptions, spread_rows: &[usize]) -> bool {
    matches!(options.method, Method::Cg) && applied(options).products() == 0 && spread_rows.is_empty()
}

/// Notes for each share of a stencil's rows from which row to which it reads.
pub(super) fn of_stencil(operator: &GridOperator, shares: &mut [Share]) {
    let (shape, boundaries) = (operator.shape(), operator.boundaries());
    let (extents, axis) = (shape.padded(), 3 - shape.dimensions());
    let strides = [extents[1] * extents[2], extents[2], 1];
    let plane = strides[axis];
    let is_ring = |axis: usize| boundaries.0[axis].contains(&Boundary::Periodic);
    // Beyond a side that is no ring's lie cells that are no farther than the tap.
    let far = operator.stencil().taps().iter().map(|(offset, _)| {
        offset.iter().zip(strides).map(|(by, stride)| by.unsigned_abs() as usize * stride).sum::<usize>()
    });
    let far = far.max().unwrap_or(0);
    let planes = operator.radius()[axis] * plane;
    for share in shares.iter_mut().filter(|share| share.rows > 0) {
        let (first, end) = (share.first, share.first + share.rows);
        let reach = if is_ring(axis) {
            0..shape.cells()
        } else if (axis + 1..3).any(is_ring) {
            (first / plane * plane).saturating_sub(planes)..end.next_multiple_of(plane) + planes
        } else {
            first.saturating_sub(far)..end + far
        };
        share.base = reach.start;
        share.reach = reach.end.min(shape.cells()) - reach.start;
    }
}

/// Notes which of each share's rows no other one reaches.
pub(super) fn find_seams(shares: &mut [Share]) {
    let reaches: Vec<Range<usize>> =
        shares.iter().map(|share| share.base..share.base + share.reach).collect();
    let firsts: Vec<usize> = shares.iter().map(|share| share.first).collect();
    for share in shares.iter_mut() {
        let own = share.first..share.first + share.rows;
        let mut unread = 0..share.rows;
        for (reach, &first) in reaches.iter().zip(&firsts).filter(|(reach, _)| !reach.is_empty()) {
            // Reaches are in one piece: those of blocks before this one cover its first rows.
            if first < own.start {
                unread.start = unread.start.max(reach.end.clamp(own.start, own.end) - own.start);
            } else if first > own.start || own.is_empty() {
                unread.end = unread.end.min(reach.start.clamp(own.start, own.end) - own.start);
            }
        }
        share.seams = [unread.start, unread.end.max(unread.start)];
    }
}

#[cfg(test)]
mod tests {
    use abide_core::solver::plan::krylov::{Configuration, Division, RecomputedHalo, Slabs, Space};
    use abide_core::solver::{Matrix, Preconditioning, SolveCache, SolvePlan};
    use abide_core::{Boundaries, DType, DeviceSpec, Shape};

    use super::*;
    use crate::plan::krylov::slabs::plan_krylov_slabs;
    use crate::plan::krylov::{plan_krylov, plan_krylov_configuration};
    use crate::sparse::{hpcg, laplacian, laplacian_2d};

    fn planned(matrix: &Matrix, method: Method, count: usize) -> SolvePlan {
        let device = DeviceSpec::preset("h200").unwrap();
        let options = SolveOptions {
            method,
            preconditioner: Preconditioning::None,
            cache: SolveCache::Auto,
            ..SolveOptions::default()
        };
        let alone = plan_krylov(matrix, &device, &options).unwrap();
        if count == 1 {
            return alone;
        }
        plan_krylov_slabs(matrix, &device, &options, Slabs { count, of_a_device: 1 }, &alone).unwrap()
    }

    fn free(extents: [usize; 2], boundaries: &str) -> GridOperator {
        let boundaries = Boundaries::parse(boundaries, Boundary::Constant(0.0)).unwrap();
        let shape = Shape::new(&extents).unwrap();
        GridOperator::new(laplacian(2).unwrap(), shape, boundaries, DType::F64).unwrap()
    }

    /// Each entry of a row is in its block's reach, and those in others' rows are among the rows that these publish; of a
    /// stencil, the entries that a stored matrix has.
    #[test]
    fn what_rows_read_is_reached_and_published() {
        let square = laplacian_2d(1000, 299, DType::F64).unwrap();
        let mut cases = vec![(Matrix::from(square.clone()), square)];
        for boundaries in ["constant=0", "y=reflect,x=mirror", "y=clamp,x=periodic", "fixed"] {
            let operator = free([901, 299], boundaries);
            let stored = operator.assemble().unwrap();
            cases.push((operator.into(), stored));
        }
        for (matrix, stored) in cases {
            let plan = planned(&matrix, Method::Cg, 1);
            let layout = plan.krylov().unwrap();
            assert_eq!(layout.recomputed, RecomputedHalo::Blocks, "{plan}");
            let mut beyond = 0;
            for (reader, own) in layout.shares.iter().enumerate() {
                for row in own.first..own.first + own.rows {
                    for (column, _) in stored.row(row) {
                        assert!((own.base..own.base + own.reach).contains(&column), "{row} reads {column}");
                        let block = layout.shares.partition_point(|share| share.first + share.rows <= column);
                        let (at, [before, from]) =
                            (column - layout.shares[block].first, layout.shares[block].seams);
                        assert!(block == reader || at < before || at >= from, "{row} reads {column}");
                        beyond += usize::from(block != reader);
                    }
                }
            }
            assert!(beyond > 0);
        }
    }

    /// Of more blocks than there are units of rows, some have none, and read none.
    #[test]
    fn blocks_without_rows_reach_nothing() {
        let device = DeviceSpec::preset("h200").unwrap();
        for matrix in [laplacian_2d(9, 8, DType::F64).unwrap().into(), free([9, 8], "constant=0").into()] {
            let matrix: Matrix = matrix;
            let division = match matrix {
                Matrix::Stored(_) => Division::Split { lanes: 1 },
                Matrix::Stencil(_) => Division::Stencil,
            };
            let configuration = Configuration {
                space: Space::Grid,
                blocks: 7,
                threads: 128,
                division,
                registers: 0,
                run: 8,
                ahead: true,
                spread: None,
                slabs: Slabs::default(),
            };
            let plan = plan_krylov_configuration(&matrix, &device, &SolveOptions::default(), &configuration)
                .unwrap();
            let shares = &plan.krylov().unwrap().shares;
            assert!(shares.iter().any(|share| share.rows == 0));
            assert!(shares.iter().all(|share| (share.rows == 0) == (share.reach == 0)), "{shares:?}");
        }
    }

    /// Where a block has room for all that it reads, an iteration has a barrier less; not where it reads far, along a ring too,
    /// and not where directions are recurred otherwise.
    #[test]
    fn directions_are_made_by_those_with_room_for_them() {
        let square: Matrix = laplacian_2d(1000, 999, DType::F64).unwrap().into();
        let grid: Matrix = free([1000, 999], "constant=0").into();
        for (matrix, count) in [(&square, 1), (&square, 2), (&grid, 1), (&grid, 2), (&grid, 4)] {
            let plan = planned(matrix, Method::Cg, count);
            let layout = plan.krylov().unwrap();
            assert_eq!((layout.recomputed, layout.barriers), (RecomputedHalo::Blocks, 2), "{plan}");
            assert!(plan.to_string().contains("made where they are read"), "{plan}");
            let published: usize =
                layout.shares.iter().map(|share| share.rows - (share.seams[1] - share.seams[0])).sum();
            assert!(count > 1 || 3 * published < matrix.rows(), "{published} rows");
        }
        let cube = hpcg(104, 104, 104, DType::F64).unwrap().into();
        let ring = free([1000, 999], "y=periodic").into();
        for (matrix, method) in
            [(&cube, Method::Cg), (&ring, Method::Cg), (&square, Method::Chebyshev(Default::default()))]
        {
            let plan = planned(matrix, method, 1);
            assert_eq!(plan.krylov().unwrap().recomputed, RecomputedHalo::Nothing, "{plan}");
        }
    }
}
