//! Cutting the rows into shares, one a block: consecutive rows of about as many bytes.

use super::{Division, Form, SLICE, Share, Space};
use crate::error::{Error, Result};
use crate::solver::{Matrix, Preconditioning};
use crate::sparse::Csr;

/// The shares of a form, before places are given out.
pub struct Cut {
    pub shares: Vec<Share>,
    /// Entries of every row as laid out, where all are alike.
    pub width: Option<usize>,
    pub column_bytes: usize,
}

impl Cut {
    pub fn new(matrix: &Matrix, form: &Form, applied: Preconditioning) -> Result<Cut> {
        let rows = matrix.rows();
        // Whole lines of memory, unless that would leave blocks without rows; blocks of block-Jacobi are never cut.
        let line = if rows >= 32 * SLICE * form.blocks { SLICE } else { 1 };
        let align = match applied {
            Preconditioning::BlockJacobi { size } => size * (line / gcd(size, line)),
            _ => line,
        };
        let width = match (matrix, form.division) {
            (Matrix::Stored(stored), Division::Sliced { .. }) => common_width(stored),
            _ => None,
        };
        let firsts = match matrix {
            // Padded rows are all alike, whatever they hold.
            Matrix::Stored(stored) if width.is_none() => {
                cut(rows, form.blocks, align, |row| start(stored, row) + 3 * row)
            }
            _ => cut(rows, form.blocks, align, |row| row),
        };
        let mut shares: Vec<Share> = firsts
            .windows(2)
            .map(|pair| Share {
                first: pair[0],
                rows: pair[1] - pair[0],
                entries: 0,
                cached: 0,
                cached_entries: 0,
                base: 0,
            })
            .collect();
        let Matrix::Stored(stored) = matrix else { return Ok(Cut { shares, width, column_bytes: 2 }) };
        let mut column_bytes = if form.space == Space::Grid || rows <= 1 << 16 { 2 } else { 4 };
        for share in &mut shares {
            share.entries = match (form.division, width) {
                (Division::Sliced { .. }, Some(width)) => share.rows.next_multiple_of(SLICE) * width,
                (Division::Sliced { .. }, None) => slices(stored, share).map(|width| SLICE * width).sum(),
                _ => start(stored, share.first + share.rows) - start(stored, share.first),
            };
            if share.entries > u32::MAX as usize / 2 {
                let change = "choose --backend cpu, or a matrix of more, shorter rows";
                return Err(Error::limit("entries of one block's rows", share.entries, u32::MAX / 2, change));
            }
            let (low, high) = columns(stored, share);
            if form.space == Space::Grid {
                share.base = low;
                if high - low > usize::from(u16::MAX) {
                    column_bytes = 4;
                }
            }
        }
        Ok(Cut { shares, width, column_bytes })
    }
}

/// Where the entries of a row begin; of the row after the last, where they end.
pub fn start(matrix: &Csr, row: usize) -> usize {
    matrix.offsets().get(row).unwrap_or(matrix.nnz())
}

/// The widths of a share's slices.
pub fn slices<'a>(matrix: &'a Csr, share: &Share) -> impl Iterator<Item = usize> + use<'a> {
    let (first, rows) = (share.first, share.rows);
    (0..rows.div_ceil(SLICE)).map(move |slice| {
        let rows = first + slice * SLICE..first + rows.min((slice + 1) * SLICE);
        rows.map(|row| matrix.range(row).len()).max().unwrap_or(0)
    })
}

/// The width of the widest slice, where padding all to it costs at most a tenth more entries than their own widths.
fn common_width(matrix: &Csr) -> Option<usize> {
    let all = Share { first: 0, rows: matrix.rows(), entries: 0, cached: 0, cached_entries: 0, base: 0 };
    let (widest, sum, count) =
        slices(matrix, &all).fold((0, 0, 0), |(widest, sum, count), width| (width.max(widest), sum + width, count + 1));
    (widest > 0 && widest <= SLICE && widest * count * 10 <= sum * 11).then_some(widest)
}

/// The least and the largest column of a share's entries and rows.
fn columns(matrix: &Csr, share: &Share) -> (usize, usize) {
    let last = (share.first + share.rows).saturating_sub(1).max(share.first);
    let (mut low, mut high) = (share.first, last);
    for row in share.first..share.first + share.rows {
        let range = matrix.range(row);
        if let (Some(&first), Some(&last)) =
            (matrix.indices().get(range.start), matrix.indices().get(range.end.wrapping_sub(1)))
            && !range.is_empty()
        {
            low = low.min(first as usize);
            high = high.max(last as usize);
        }
    }
    (low, high)
}

/// The first row of each of `blocks` shares and the end of the last: multiples of `align`, as even as they allow in `work`,
/// which counts what lies before a row.
fn cut(rows: usize, blocks: usize, align: usize, work: impl Fn(usize) -> usize) -> Vec<usize> {
    let total = work(rows) as u128;
    let mut firsts = vec![0];
    for block in 1..blocks {
        let target = (total * block as u128 / blocks as u128) as usize;
        let (mut low, mut high) = (firsts[block - 1], rows);
        while low < high {
            let middle = low + (high - low) / 2;
            if work(middle) < target {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let nearest = (low + align / 2) / align * align;
        firsts.push(nearest.clamp(firsts[block - 1], rows));
    }
    firsts.push(rows);
    firsts
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
