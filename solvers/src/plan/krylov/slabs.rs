//! Solves on several devices: the blocks of all of them are one grid, and what one publishes goes into the memory of those
//! that read it.
//!
//! A *slab* is the rows of a device's blocks. A device may have several, each with a part of its multiprocessors. Sums are
//! those of the one tree, whatever the blocks; the product is that of one device, so that a row's sum keeps its order. So
//! all bits are those of one device.

use std::ops::Range;

use abide_core::slabs::common_multiple;
use abide_core::solver::plan::krylov::{
    Division, Given, Krylov, RecomputedHalo, SLICE, Share, Slabs, applied, rows_of,
};
use abide_core::solver::{Matrix, Preconditioning, Reads, SolveOptions, SolvePlan};
use abide_core::{DeviceSpec, Error, Result};

use super::{plan_krylov_configuration, product};

/// Additional seconds of a barrier of all blocks where some are on other devices: stores must have arrived there
/// before the arrival is signalled, and both go over the link. With it, estimates of one H200 and of two are equally
/// close to the measurements.
const ACROSS: f64 = 1.5e-6;

/// The bytes per second of a device's link where its driver reports none.
const BANDWIDTH: f64 = 25e9;

/// Returns the seconds that an iteration takes more because slabs are on several devices.
pub(super) fn across(krylov: &Krylov, device: &DeviceSpec, products: f64, real: usize) -> f64 {
    if krylov.slabs.count == 1 {
        return 0.0;
    }
    let bandwidth = device.link.map_or(BANDWIDTH, |link| link.bandwidth);
    let given: usize = krylov.given.iter().map(|given| given.rows).sum();
    let of_a_slab = given as f64 / krylov.slabs.count as f64;
    // Where slabs make others' directions, their own blocks wait for the exchange alone.
    let across = krylov.barriers - usize::from(krylov.recomputed == RecomputedHalo::Slabs);
    across as f64 * ACROSS + products * of_a_slab * real as f64 / bandwidth
}

/// What each block gives to each other slab, block after block, the slabs in their order; and of each slab the rows of others
/// that it reads, before its own and behind them.
pub(super) type Read = (Vec<Given>, Vec<[Range<usize>; 2]>);

/// Returns what slabs read of each other.
pub(super) fn given(matrix: &Matrix, shares: &[Share], slabs: Slabs) -> Result<Read> {
    if slabs.count == 1 {
        return Ok((Vec::new(), Vec::new()));
    }
    let own = shares.len() / slabs.count;
    let reads: Vec<Reads> = rows_of(shares, slabs.count)
        .map(|rows| match rows {
            none if none.is_empty() => Ok(Reads::nothing()),
            rows => Reads::of(matrix, rows),
        })
        .collect::<Result<_>>()?;
    let beyond = |(rows, reads): (Range<usize>, &Reads)| match reads.ranges() {
        [] => [0..0, 0..0],
        all => [all[0].start.min(rows.start)..rows.start, rows.end..all[all.len() - 1].end.max(rows.end)],
    };
    let beyond = rows_of(shares, slabs.count).zip(&reads).map(beyond).collect();
    let mut given = Vec::with_capacity(shares.len() * (slabs.count - 1));
    for (block, share) in shares.iter().enumerate() {
        let others = reads.iter().enumerate().filter(|(slab, _)| *slab != block / own);
        given.extend(others.map(|(_, reads)| {
            let read = reads.within(&(share.first..share.first + share.rows));
            match &read[..] {
                [] => Given::default(),
                [first, ..] => {
                    let end = read.last().map_or(first.end, |last| last.end);
                    Given { first: first.start - share.first, rows: end - first.start }
                }
            }
        }));
    }
    Ok((given, beyond))
}

/// Plans a solve on slabs of devices that are alike, each of which has so many multiprocessors as `slab` says. `alone` is the
/// plan of one device; fewer slabs solve where there are too few rows.
///
/// # Errors
///
/// [`Error::Unsupported`] where a sum's order follows the blocks: products by a merge path, and rows spread over all blocks.
pub fn plan_krylov_slabs(
    matrix: &Matrix,
    slab: &DeviceSpec,
    options: &SolveOptions,
    slabs: Slabs,
    alone: &SolvePlan,
) -> Result<SolvePlan> {
    let Some(single) = alone.krylov() else {
        let change = "plan it with this backend";
        return Err(Error::invalid("the plan of a solver", "it is not a CUDA device's", change));
    };
    let block = match applied(options) {
        Preconditioning::BlockJacobi { size } => size.max(1),
        _ => 1,
    };
    let unit = common_multiple(SLICE, block);
    let units = matrix.rows().div_ceil(unit);
    let count = slabs.count.min(units);
    if count <= 1 {
        let mut plan = alone.clone();
        plan.notes.push(format!(
            "1 of {} devices solves: {} rows are cut between multiples of {unit}",
            slabs.count,
            matrix.rows()
        ));
        return Ok(plan);
    }
    let uneven = match single.division {
        Division::Merged { .. } => {
            Some("rows differ so much in length that threads share them by a merge path")
        }
        _ if !single.spread_rows.is_empty() => Some("rows are so long that they are spread over all blocks"),
        _ => None,
    };
    if let Some(uneven) = uneven {
        return Err(Error::unsupported(
            format!("a linear system on {} CUDA devices", slabs.count),
            format!("{uneven}: sums follow the blocks, and would have other bits than on one device"),
            "take one device (--devices 1), or --backend cpu",
        ));
    }
    // No more blocks than there are units of rows.
    let multiprocessors = slab.multiprocessors.min(units / count).max(1);
    let taken = multiprocessors as f64 / slab.multiprocessors.max(1) as f64;
    let device =
        DeviceSpec { multiprocessors, shared_bandwidth: taken * slab.shared_bandwidth, ..slab.clone() };
    let mut configuration = product::on_slabs(matrix, &device, options, count, single.division);
    configuration.slabs = Slabs { count, of_a_device: slabs.of_a_device.min(count) };
    let mut plan = plan_krylov_configuration(matrix, &device, options, &configuration)?;
    if count < slabs.count {
        plan.notes.push(format!(
            "{count} of {} devices solve: {} rows are cut between multiples of {unit}",
            slabs.count,
            matrix.rows()
        ));
    }
    let together = plan.krylov().map_or(0.0, |krylov| krylov.seconds);
    if single.seconds <= together {
        plan.notes.push(format!(
            "an iteration is estimated to take {:.1} µs on one device and {:.1} µs on {count}: --devices 1 is as fast",
            single.seconds * 1e6,
            together * 1e6
        ));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use abide_core::solver::plan::krylov::Space;
    use abide_core::solver::{GridOperator, Method, SolveCache};
    use abide_core::{Boundaries, DType, Shape};

    use super::*;
    use crate::plan::krylov::plan_krylov;
    use crate::sparse::{arrow, hpcg, laplacian_2d, trefethen};
    use abide_core::Boundary;

    fn options(method: Method, preconditioner: Preconditioning) -> SolveOptions {
        SolveOptions { method, preconditioner, cache: SolveCache::Auto, ..SolveOptions::default() }
    }

    fn planned(matrix: &Matrix, options: &SolveOptions, count: usize) -> Result<SolvePlan> {
        let device = DeviceSpec::preset("h200").unwrap();
        let alone = plan_krylov(matrix, &device, options).unwrap();
        plan_krylov_slabs(matrix, &device, options, Slabs { count, of_a_device: 1 }, &alone)
    }

    /// Slabs are all rows, one after the other, and each block gives every row that another slab's matrix names.
    #[test]
    fn slabs_are_all_rows_and_what_others_read_is_given() {
        let blocks = Preconditioning::BlockJacobi { size: 5 };
        for (matrix, options) in [
            (laplacian_2d(300, 299, DType::F64).unwrap(), options(Method::Cg, Preconditioning::None)),
            (hpcg(24, 23, 22, DType::F32).unwrap(), options(Method::PipelinedCg(Default::default()), blocks)),
            (trefethen(9000, DType::F64).unwrap(), options(Method::BiCgStab, Preconditioning::Jacobi)),
        ] {
            let matrix = Matrix::from(matrix);
            for count in [2, 3, 8] {
                let plan = planned(&matrix, &options, count).unwrap();
                let layout = plan.krylov().unwrap();
                assert_eq!((layout.slabs.count, layout.space, plan.ranks.len()), (count, Space::Grid, count));
                assert_eq!(layout.rows_of_slabs(), plan.ranks);
                assert_eq!((plan.ranks[0].start, plan.ranks[count - 1].end), (0, matrix.rows()));
                assert!(
                    plan.ranks.windows(2).all(|pair| pair[0].end == pair[1].start && !pair[0].is_empty())
                );
                let Matrix::Stored(stored) = &matrix else { continue };
                let own = layout.blocks_of_a_slab();
                for (slab, rows) in plan.ranks.iter().enumerate() {
                    for row in rows.clone() {
                        for (column, _) in stored.row(row) {
                            let block =
                                layout.shares.partition_point(|share| share.first + share.rows <= column);
                            if block / own == slab {
                                continue;
                            }
                            let other = if slab > block / own { slab - 1 } else { slab };
                            let given = layout.given[block * (count - 1) + other];
                            let at = column - layout.shares[block].first;
                            assert!((given.first..given.first + given.rows).contains(&at), "{slab} {block}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn few_rows_are_cut_among_few_devices_and_uneven_ones_among_none() {
        let cg = options(Method::Cg, Preconditioning::None);
        let small = Matrix::from(laplacian_2d(9, 8, DType::F64).unwrap());
        let plan = planned(&small, &cg, 8).unwrap();
        assert_eq!(plan.ranks.len(), 3);
        assert!(
            plan.notes.iter().any(|note| note.contains("3 of 8 devices solve: 72 rows")),
            "{:?}",
            plan.notes
        );
        let tiny = Matrix::from(laplacian_2d(5, 5, DType::F64).unwrap());
        let plan = planned(&tiny, &cg, 2).unwrap();
        assert!(plan.ranks.is_empty() && plan.notes.iter().any(|note| note.contains("1 of 2")));
        let uneven = Matrix::from(arrow(200_000, DType::F64).unwrap());
        let error = planned(&uneven, &cg, 2).unwrap_err().to_string();
        assert!(error.contains("2 CUDA devices") && error.contains("bits"), "{error}");
    }

    /// Plans with slabs keep the product of one device. A note states that one device is as fast, for small systems
    /// only.
    #[test]
    fn the_product_is_that_of_one_device_and_the_faster_one_is_told() {
        let cg = options(Method::Cg, Preconditioning::None);
        let device = DeviceSpec::preset("h200").unwrap();
        for (matrix, is_slower) in [
            (laplacian_2d(100, 99, DType::F64).unwrap(), true),
            (hpcg(104, 104, 104, DType::F64).unwrap(), false),
        ] {
            let matrix = Matrix::from(matrix);
            let alone = plan_krylov(&matrix, &device, &cg).unwrap();
            let plan = planned(&matrix, &cg, 2).unwrap();
            let divisions = [&alone, &plan].map(|plan| plan.krylov().unwrap().configuration().division);
            assert_eq!(divisions[0], divisions[1]);
            let noted = plan.notes.iter().any(|note| note.contains("--devices 1 is as fast"));
            assert_eq!(noted, is_slower, "{plan}");
        }
    }

    /// Estimates beside microseconds an iteration that were measured: on one H200, and on two.
    #[test]
    fn estimates_are_near_what_two_devices_took() {
        let cg = options(Method::Cg, Preconditioning::None);
        let stencil = crate::sparse::laplacian(2).unwrap();
        let zero = Boundaries::all(Boundary::Constant(0.0));
        let shape = Shape::new(&[1000, 999]).unwrap();
        let free = GridOperator::new(stencil, shape, zero, DType::F64).unwrap();
        let device = DeviceSpec::preset("h200").unwrap();
        for (matrix, [one, two]) in [
            (Matrix::from(laplacian_2d(1000, 999, DType::F64).unwrap()), [19.7, 12.1]),
            (free.into(), [15.0, 13.7]),
            (hpcg(104, 104, 104, DType::F64).unwrap().into(), [95.6, 52.9]),
        ] {
            let alone = plan_krylov(&matrix, &device, &cg).unwrap();
            let plans = [(alone, one), (planned(&matrix, &cg, 2).unwrap(), two)];
            for (plan, measured) in plans {
                let estimate = 1e6 * plan.krylov().unwrap().seconds;
                println!("{}: {estimate:.1} estimated, {measured} measured", plan.ranks.len().max(1));
                assert!(
                    (0.6..1.4).contains(&(estimate / measured)),
                    "{estimate} where {measured} was measured"
                );
            }
        }
    }
}
