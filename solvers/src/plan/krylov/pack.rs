//! The matrix as a layout's kernels read it.

use abide_core::solver::plan::krylov::{Division, Krylov, SLICE};
use abide_core::sparse::Csr;
use abide_core::{Array, Real, Result, memory, with_array};

use super::shares;
use super::spread::Parts;

/// Column numbers of entries, counted from the base of their block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Columns {
    /// Columns of 16 bits.
    U16(Vec<u16>),
    /// Columns of 32 bits.
    U32(Vec<u32>),
}

/// The arrays of a matrix, block after block: the entries of the block's rows, then its pieces of the spread
/// rows, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    /// Values; 0 for the padding of a slice.
    pub values: Array,
    /// Columns. The padding of a slice has one of the row's own columns, or the block's base. Columns of
    /// spread rows are counted from the block's first row.
    pub columns: Columns,
    /// The beginnings of the pieces of spread rows, counted from their block's first entry, and the end of
    /// the last piece; then the same for rows (slices).
    pub offsets: Vec<u32>,
    /// For a merge path, the number of rows that end before each thread's items, tile after tile, and the
    /// number of all rows at the end.
    pub searches: Vec<u32>,
    /// The first entry, offset of rows and search of each block.
    pub firsts: Vec<[usize; 3]>,
}

/// Lays a matrix out for a layout's kernels.
pub fn pack(matrix: &Csr, krylov: &Krylov) -> Result<Packed> {
    with_array!(matrix.values(), values => pack_of(matrix, values, krylov))
}

fn pack_of<T: Real>(matrix: &Csr, old: &[T], krylov: &Krylov) -> Result<Packed> {
    let parts = Parts::new(matrix, krylov.spread)?;
    let total = krylov.shares.iter().map(|share| share.entries + share.spread_entries).sum();
    let mut packed = Array::zeros(T::DTYPE, total)?;
    let values = T::slice_mut(&mut packed).unwrap_or_default();
    let mut wide = memory::filled(0_u32, total, "a matrix laid out for a device", "make the system smaller")?;
    let (mut offsets, mut searches, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
    let mut begun = 0;
    for share in &krylov.shares {
        let mut at = share.entries;
        if !parts.spread.is_empty() {
            offsets.push(at as u32);
        }
        for &row in &parts.spread {
            for entry in parts.piece(row, share) {
                (values[begun + at], wide[begun + at]) =
                    (old[entry], matrix.indices()[entry] - share.first as u32);
                at += 1;
            }
            offsets.push(at as u32);
        }
        firsts.push([begun, offsets.len(), searches.len()]);
        let own_offsets = offsets.len();
        offsets.push(0);
        at = 0;
        let base = share.base as u32;
        let relative = |entry: usize| matrix.indices()[entry] - base;
        if let Division::Sliced { width } = krylov.division {
            for (slice, own) in shares::slices(&parts, share).enumerate() {
                let width = width.unwrap_or(own);
                for lane in 0..SLICE {
                    let row = slice * SLICE + lane;
                    let range = if row < share.rows { parts.range(share.first + row) } else { 0..0 };
                    let padding = range.clone().next().map_or(0, &relative);
                    for j in 0..width {
                        let place = begun + at + j * SLICE + lane;
                        wide[place] = padding;
                        if let Some(entry) = range.clone().nth(j) {
                            (values[place], wide[place]) = (old[entry], relative(entry));
                        }
                    }
                }
                at += SLICE * width;
                offsets.push(at as u32);
            }
        } else {
            for row in share.first..share.first + share.rows {
                for entry in parts.range(row) {
                    (values[begun + at], wide[begun + at]) = (old[entry], relative(entry));
                    at += 1;
                }
                offsets.push(at as u32);
            }
        }
        if let Division::Merged { items } = krylov.division {
            search(&offsets[own_offsets + 1..], krylov.threads * items, items, &mut searches);
        }
        begun += share.entries + share.spread_entries;
    }
    let columns = if krylov.column_bytes == 2 {
        // The plan has checked that they fit.
        Columns::U16(wide.into_iter().map(|column| column as u16).collect())
    } else {
        Columns::U32(wide)
    };
    Ok(Packed { values: packed, columns, offsets, searches, firsts })
}

/// Makes the merge-path searches: for every `items`-th diagonal, up to a whole number of tiles, the number of
/// rows that end before it. `ends` are the rows' ends among the entries (Merrill and Garland, SC'16,
/// algorithm 2).
fn search(ends: &[u32], tile: usize, items: usize, searches: &mut Vec<u32>) {
    let entries = ends.last().map_or(0, |&end| end as usize);
    let all = ends.len() + entries;
    for diagonal in (0..=all.next_multiple_of(tile)).step_by(items) {
        let diagonal = diagonal.min(all);
        let (mut low, mut high) = (diagonal.saturating_sub(entries), diagonal.min(ends.len()));
        while low < high {
            let middle = (low + high) / 2;
            // A row's end comes after its last entry.
            if (ends[middle] as usize) < diagonal - middle { low = middle + 1 } else { high = middle }
        }
        searches.push(low as u32);
    }
}
