//! Systems whose rows are divided among ranks, with the bits of one device.
//!
//! A rank owns a *slab*: a range of rows, and the same part of each vector. Its methods are those of one device, written over
//! a [`SlabEngine`], whose sums are of all ranks, and a [`SlabOperator`], which fetches the entries that the slab's rows
//! read. Slabs are cut between the leaves of the reduction tree, which knows no devices: each rank sums the largest subtrees
//! that it has whole, all ranks gather them, and each joins them in the tree's order. So every rank computes the same
//! scalars, and takes the same branches.
//!
//! If a rank cannot fetch or gather values, they are NaN from then on. No method continues from a residual that is
//! NaN, so it ends at its next test, and [`SlabSession`] reports the reason instead.

mod engine;
mod operator;
mod session;

use std::ops::Range;
use std::sync::Arc;

use abide_core::reduction::LEAF;
use abide_core::slabs::{common_multiple, cut};
use abide_core::solver::{Matrix, Preconditioning, Reads, RowSlab, SolveOptions};
use abide_core::sparse::{Csr, Offsets};
use abide_core::{Error, Result, memory};

pub use engine::SlabEngine;
pub use operator::SlabOperator;
pub use session::SlabSession;

/// Returns the rows between which a system can be cut: leaves of the reduction tree, and whole blocks of the preconditioner.
pub fn row_unit(options: &SolveOptions) -> usize {
    let block = match options.preconditioner {
        Preconditioning::BlockJacobi { size } => size.max(1),
        _ => 1,
    };
    common_multiple(LEAF, block)
}

/// Cuts `rows` rows into a part for each weight, in proportion, between multiples of `unit`. There are at least as many units
/// as weights.
pub fn cut_rows(rows: usize, unit: usize, weights: &[usize]) -> Vec<Range<usize>> {
    let own = cut(rows.div_ceil(unit), weights, 1).into_iter();
    own.map(|units| units.start * unit..units.end.saturating_mul(unit).min(rows)).collect()
}

/// Returns the slabs of some ranks of a system, all of which own these rows.
///
/// # Errors
///
/// [`Error::Invalid`] where the ranges are not all rows, one after the other, cut at multiples of [`row_unit`];
/// [`Error::Limit`] where the machine has no memory for the slabs.
pub fn row_slabs(
    matrix: &Matrix,
    options: &SolveOptions,
    own: &[Range<usize>],
    ranks: impl IntoIterator<Item = usize>,
) -> Result<Vec<RowSlab>> {
    let unit = row_unit(options);
    let mut end = 0;
    for own in own {
        if own.start != end || own.is_empty() || own.start % unit != 0 {
            end = usize::MAX;
            break;
        }
        end = own.end;
    }
    if end != matrix.rows() {
        let reason =
            format!("its slabs {own:?} are not the {} rows, cut at multiples of {unit}", matrix.rows());
        return Err(Error::invalid("the plan of a solver", reason, "plan this system"));
    }
    let reads: Vec<Reads> = own.iter().map(|rows| Reads::of(matrix, rows.clone())).collect::<Result<_>>()?;
    // What a rank takes from another is what that one gives it.
    let between = |reader: usize, owner: usize| reads[reader].within(&own[owner]);
    let others = |rank: usize, entries: &dyn Fn(usize) -> Vec<Range<usize>>| {
        let others = (0..own.len()).filter(|&other| other != rank);
        others.map(|other| (other, entries(other))).filter(|(_, entries)| !entries.is_empty()).collect()
    };
    let slab = |rank: usize| {
        let matrix = match matrix {
            Matrix::Stored(whole) => stored(whole, own[rank].clone(), &reads[rank])?.into(),
            Matrix::Stencil(operator) => Matrix::Stencil(Arc::clone(operator)),
        };
        let given = others(rank, &|other| between(other, rank));
        let taken = others(rank, &|other| between(rank, other));
        Ok(RowSlab { rank, own: own.to_vec(), matrix, reads: reads[rank].clone(), given, taken })
    };
    ranks.into_iter().map(slab).collect()
}

/// Returns some rows of a matrix, with their columns numbered as the entries that they read are kept.
fn stored(whole: &Csr, rows: Range<usize>, reads: &Reads) -> Result<Csr> {
    const WHAT: [&str; 2] = ["the rows of a slab", "make the system smaller, or take one device"];
    let entries = whole.range(rows.start).start..whole.range(rows.end - 1).end;
    let mut offsets: Vec<u64> = memory::reserved(rows.len() + 1, WHAT[0], WHAT[1])?;
    offsets.push(0);
    offsets.extend(rows.map(|row| (whole.range(row).end - entries.start) as u64));
    let mut indices: Vec<u32> = memory::reserved(entries.len(), WHAT[0], WHAT[1])?;
    // Places ascend as columns do, so rows stay sorted and are summed in the same order.
    indices
        .extend(whole.indices()[entries.clone()].iter().map(|&column| reads.place(column as usize) as u32));
    Csr::new(reads.len(), Offsets::narrowest(offsets)?, indices, whole.values().part(entries)?)
}
