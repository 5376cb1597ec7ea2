//! Cutting the rows into shares, one per block: consecutive rows of about equally many bytes.

use abide_core::slabs::common_multiple;
use abide_core::solver::plan::krylov::{Configuration, Division, SLICE, Share, Space};
use abide_core::solver::{Matrix, Preconditioning};
use abide_core::{Error, Result};

use super::spread::Parts;
use super::{reach, slabs, sums};

/// The shares of a configuration, before places are given out.
pub struct RowPartition<'a> {
    pub shares: Vec<Share>,
    /// Rows, a power of two, of which all shares' first rows are multiples: blocks of the tree of sums.
    pub unit: usize,
    /// Entries of every row as laid out, if all rows are alike.
    pub width: Option<usize>,
    pub column_bytes: usize,
    /// What slabs read of each other.
    pub read: slabs::Read,
    /// The entries of a stored matrix, and the rows of it that are spread.
    pub parts: Option<Parts<'a>>,
}

impl<'a> RowPartition<'a> {
    pub fn new(matrix: &'a Matrix, configuration: &Configuration, applied: Preconditioning) -> Result<Self> {
        let rows = matrix.rows();
        // Blocks of block-Jacobi are never cut.
        let size = if let Preconditioning::BlockJacobi { size } = applied { size } else { 1 };
        let parts = match matrix {
            Matrix::Stored(stored) => Some(Parts::new(stored, configuration.spread)?),
            Matrix::Stencil(_) => None,
        };
        let width = match (&parts, configuration.division) {
            (Some(parts), Division::Sliced { .. }) => common_width(parts),
            _ => None,
        };
        let work = |row: usize| match &parts {
            // Padded rows are all alike, whatever they hold. Of a spread row, each block has its own part to
            // do.
            Some(parts) if width.is_none() || !parts.spread.is_empty() => {
                let own = width.map_or_else(|| parts.start(row), |width| width * row);
                own + 3 * row + parts.spread_before(row)
            }
            _ => row,
        };
        let (unit, firsts) = cut_in_units(rows, configuration, size, work);
        let mut shares: Vec<Share> = firsts.windows(2).map(|pair| Share::of(pair[0]..pair[1])).collect();
        let read = slabs::given(matrix, &shares, configuration.slabs)?;
        let Some(parts) = parts else {
            if let (Matrix::Stencil(operator), Space::Grid) = (matrix, configuration.space) {
                reach::of_stencil(operator, &mut shares);
            }
            return Ok(RowPartition { shares, unit, width, column_bytes: 2, read, parts });
        };
        let mut column_bytes = if configuration.space == Space::Grid || rows <= 1 << 16 { 2 } else { 4 };
        for share in &mut shares {
            share.entries = match (configuration.division, width) {
                (Division::Sliced { .. }, Some(width)) => share.rows.next_multiple_of(SLICE) * width,
                (Division::Sliced { .. }, None) => slices(&parts, share).map(|width| SLICE * width).sum(),
                _ => parts.start(share.first + share.rows) - parts.start(share.first),
            };
            share.spread_entries = parts.spread.iter().map(|&row| parts.piece(row, share).len()).sum();
            let all = share.entries + share.spread_entries;
            if all > u32::MAX as usize / 2 {
                let change = "take a matrix of more, shorter rows";
                return Err(Error::limit("entries of one block's rows", all, u32::MAX / 2, change));
            }
            let (low, high) = columns(&parts, share);
            if configuration.space == Space::Grid {
                share.base = low;
                // A block without rows reads none.
                share.reach = if share.rows > 0 { high + 1 - low } else { 0 };
                if high - low > usize::from(u16::MAX) {
                    column_bytes = 4;
                }
            }
        }
        Ok(RowPartition { shares, unit, width, column_bytes, read, parts: Some(parts) })
    }
}

/// Returns the widths of a share's slices.
pub fn slices<'a>(parts: &'a Parts<'_>, share: &Share) -> impl Iterator<Item = usize> + use<'a> {
    let (first, rows) = (share.first, share.rows);
    (0..rows.div_ceil(SLICE)).map(move |slice| {
        let rows = first + slice * SLICE..first + rows.min((slice + 1) * SLICE);
        rows.map(|row| parts.range(row).len()).max().unwrap_or(0)
    })
}

/// Returns the width of the widest slice, if padding all slices to it costs at most a tenth more entries than
/// their own widths.
fn common_width(parts: &Parts<'_>) -> Option<usize> {
    let rows = parts.rows();
    let all = Share::of(0..rows);
    let (widest, sum, count) = slices(parts, &all)
        .fold((0, 0, 0), |(widest, sum, count), width| (width.max(widest), sum + width, count + 1));
    (widest > 0 && widest <= SLICE && widest * count * 10 <= sum * 11).then_some(widest)
}

/// Returns the least and the largest column of a share's entries and rows.
fn columns(parts: &Parts<'_>, share: &Share) -> (usize, usize) {
    let last = (share.first + share.rows).saturating_sub(1).max(share.first);
    let (mut low, mut high) = (share.first, last);
    for row in share.first..share.first + share.rows {
        let range = parts.range(row);
        if let (Some(&first), Some(&last)) =
            (parts.indices().get(range.start), parts.indices().get(range.end.wrapping_sub(1)))
            && !range.is_empty()
        {
            low = low.min(first as usize);
            high = high.max(last as usize);
        }
    }
    (low, high)
}

/// What the heaviest share may have more for the sake of a larger unit, of which fewer make a sum: a part of
/// this many.
const SLACK: usize = 60;

/// Returns the largest unit that costs hardly any balance, and the first row of each share, and the end of the
/// last. First rows are multiples of the unit, and of `size`.
fn cut_in_units(
    rows: usize,
    configuration: &Configuration,
    size: usize,
    work: impl Fn(usize) -> usize,
) -> (usize, Vec<usize>) {
    if configuration.space == Space::Block {
        return (rows.next_power_of_two().max(SLICE), vec![0, rows]);
    }
    let heaviest =
        |firsts: &[usize]| firsts.windows(2).map(|pair| work(pair[1]) - work(pair[0])).max().unwrap_or(0);
    let of_unit = |unit: usize| cut(rows, configuration.blocks, common_multiple(size, unit), &work);
    let mut unit = SLICE;
    let mut firsts = of_unit(unit);
    while configuration.space == Space::Grid && !sums::is_room(sums::windows(rows, &firsts, unit)) {
        unit *= 2;
        firsts = of_unit(unit);
    }
    let least = heaviest(&firsts);
    while 2 * unit < rows {
        let next = of_unit(2 * unit);
        if heaviest(&next) > least + least / SLACK {
            break;
        }
        (unit, firsts) = (2 * unit, next);
    }
    (unit, firsts)
}

/// Returns the first row of each of `blocks` shares, and the end of the last. They are multiples of `align`,
/// and divide `work`, which counts the work before a row, as evenly as that allows.
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
