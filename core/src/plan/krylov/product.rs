//! Which product suits a matrix, and the forms that are worth an estimate.

use super::{CLUSTER, Division, Form, SLICE, Space};
use crate::device::DeviceSpec;
use crate::solver::Matrix;
use crate::sparse::{Csr, RowLengths};

/// The most entries that padding may add, in per cent, for slices to be considered.
const PADDING: usize = 30;

/// Rows so much longer than the mean that a few lanes each would wait for them.
const LONG: f64 = 16.0;

/// Rows and entries of a merge tile's thread; odd, so that neighbouring threads use different banks.
const ITEMS: usize = 7;

/// The forms for a matrix: one block, clusters, all multiprocessors; each with the products that suit its shares.
pub fn forms(matrix: &Matrix, device: &DeviceSpec) -> Vec<Form> {
    let multiprocessors = device.multiprocessors.max(1);
    let clusters: &[usize] =
        if device.compute_capability.is_some_and(|(major, _)| major >= 9) { &[2, 4, 8, CLUSTER] } else { &[] };
    let spaces = std::iter::once((Space::Block, 1))
        .chain(clusters.iter().map(|&blocks| (Space::Cluster, blocks)))
        .chain(std::iter::once((Space::Grid, multiprocessors)));
    let rows = matrix.rows();
    let lengths =
        if let Matrix::Stored(stored) = matrix { Some((stored.row_lengths(), padding(stored))) } else { None };
    let mut forms = Vec::new();
    for (space, blocks) in spaces {
        // Every block has a row, and no replica is larger than shared memory.
        if blocks > rows || (space != Space::Grid && rows * matrix.dtype().bytes() > device.shared_bytes_for(1)) {
            continue;
        }
        let share = rows.div_ceil(blocks);
        let divisions = match &lengths {
            Some((lengths, padding)) => divisions(lengths, *padding, share),
            None => vec![Division::Stencil],
        };
        forms.extend(divisions.into_iter().map(|division| {
            let wanted = match division {
                Division::Split { lanes } => share * lanes,
                // Merging has work for as many threads as there are items.
                Division::Merged { items } => {
                    lengths.as_ref().map_or(share, |(all, _)| (all.entries / blocks + share) / items)
                }
                Division::Sliced { .. } | Division::Stencil => share,
            };
            let threads = wanted.next_multiple_of(SLICE).clamp(128, device.threads_per_block.min(1024));
            Form { space, blocks, threads, division, registers: usize::MAX }
        }));
    }
    forms
}

/// The products for rows of these lengths, of which a block has `share`.
fn divisions(lengths: &RowLengths, padding: usize, share: usize) -> Vec<Division> {
    let (mean, max) = (lengths.mean().max(1.0), lengths.max as f64);
    let mut all = Vec::new();
    if padding <= PADDING {
        all.push(Division::Sliced { width: None });
    }
    if max > LONG * mean {
        all.push(Division::Merged { items: ITEMS });
    } else {
        // As many lanes as have entries, and a few times fewer where a block has rows for all its threads.
        let most = (mean.ceil() as usize).next_power_of_two().min(SLICE);
        let lanes = std::iter::successors(Some(most), |&lanes| (lanes > 1).then_some(lanes / 2));
        all.extend(
            lanes
                .take(3)
                .filter(|lanes| share * lanes <= 1 << 14 || *lanes == most)
                .map(|lanes| Division::Split { lanes }),
        );
    }
    if all.is_empty() {
        all.push(Division::Merged { items: ITEMS });
    }
    all
}

/// What padding the rows of every slice to one length adds, in per cent of the entries.
fn padding(matrix: &Csr) -> usize {
    let longest = (0..matrix.rows()).step_by(SLICE).map(|first| {
        let rows = first..matrix.rows().min(first + SLICE);
        rows.map(|row| matrix.range(row).len()).max().unwrap_or(0)
    });
    let padded: usize = longest.sum::<usize>() * SLICE;
    padded.saturating_sub(matrix.nnz()) * 100 / matrix.nnz().max(1)
}
