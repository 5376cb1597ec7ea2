//! What a slab has of a system in its device's memory: the arrays of its blocks and rows.

use std::borrow::Cow;
use std::ops::Range;

use abide_core::solver::plan::krylov::Krylov;
use abide_core::{Array, Error, Result};
use abide_shaders::cuda::{KrylovArrays, KrylovNumbers, KrylovShare};

use super::outcome::{fresh, state_bytes};
use super::packed::PackedSystem;

/// Bytes at multiples of which the parts of a slab's region begin.
const LINE: usize = 128;

/// An array of a slab.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Piece<'a> {
    /// What its first bytes hold when a system is opened; the others hold nothing yet.
    pub loaded: Cow<'a, [u8]>,
    /// Its bytes.
    pub bytes: usize,
    /// The bytes before it in the array of the whole system: kernels count from there.
    pub before: usize,
}

/// The arrays of a slab, and how kernels count in them.
#[derive(Debug, Clone, PartialEq)]
pub struct Slab<'a> {
    /// The slab's rows.
    pub rows: Range<usize>,
    /// Values from one of its vectors to the next.
    pub stride: usize,
    /// Values from one turn of the exchanged vector to the next.
    pub turn: usize,
    /// The rows of other slabs that it reads, before its own and behind them.
    pub beyond: [Range<usize>; 2],
    /// The arrays. The history and the clocks have no bytes here, the place of other slabs no content.
    pub arrays: KrylovArrays<Piece<'a>>,
}

/// Where the parts of a region begin: arrivals, nodes of sums, the exchanged vector, nodes that carry
/// their own tag; and the end. All slabs have a region, of
/// one layout, into which the others store.
pub fn region(arrays: &KrylovArrays<Piece<'_>>) -> [usize; 5] {
    let mut at = 0;
    let mut begins = [0; 5];
    let parts = [&arrays.arrived, &arrays.partials, &arrays.exchanged, &arrays.tagged];
    for (begin, piece) in begins.iter_mut().zip(parts) {
        *begin = at;
        at = (at + piece.bytes).next_multiple_of(LINE);
    }
    begins[4] = at;
    begins
}

impl PackedSystem {
    /// Returns what a slab has of the packed system's arrays.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where the packed system is not of a layout with such a slab.
    pub fn slab<'a>(&'a self, layout: &Krylov, slab: usize) -> Result<Slab<'a>> {
        let count = layout.slabs.count;
        let Some(rows) = layout.rows_of_slabs().get(slab).cloned().filter(|_| slab < count) else {
            return Err(Error::limit("number of a slab", slab, count, "plan this system"));
        };
        let own = layout.blocks_of_a_slab();
        let blocks = slab * own..(slab + 1) * own;
        let real = self.real;
        let stride = rows.len().next_multiple_of(64).max(64);
        let turn = self.stride;
        let wrong = || Error::invalid("the packed system", "it is of another layout", "plan this system");
        let of = |whole: &'a [u8], bytes: Range<usize>| whole.get(bytes).map(Cow::Borrowed).ok_or_else(wrong);
        // Tables of blocks: each block finds its own by its number in the slab.
        let table = |whole: &'a [u8], each: usize| -> Result<Piece<'a>> {
            Ok(piece(of(whole, blocks.start * each..blocks.end * each)?, 0))
        };
        // Arrays in which the shares of blocks say where theirs begins.
        let firsts = |of: usize| -> Result<Range<usize>> {
            let [first, end] =
                [blocks.start, blocks.end].map(|block| self.firsts.get(block).map(|at| at[of]));
            first.zip(end).map(|(first, end)| first..end).ok_or_else(wrong)
        };
        let part = |whole: &'a [u8], of_numbers: usize, each: usize| -> Result<Piece<'a>> {
            if whole.is_empty() {
                return Ok(Piece::default());
            }
            let numbers = firsts(of_numbers)?;
            Ok(piece(of(whole, numbers.start * each..numbers.end * each)?, numbers.start * each))
        };
        let all = |whole: &'a [u8]| piece(Cow::Borrowed(whole), 0);
        let room = |bytes: usize, before: usize| Piece { bytes, before, ..Piece::default() };
        // Rows of block-Jacobi's inverse blocks are all as long.
        let size = if self.inverse.is_empty() { 0 } else { self.inverse.len() / layout_rows(layout).max(1) };
        let inverse = of(&self.inverse, rows.start * size..rows.end * size)?;
        let vectors = |count: usize| room(count * stride * real, rows.start * real);
        Ok(Slab {
            stride,
            turn,
            beyond: layout.beyond.get(slab).cloned().unwrap_or([0..0, 0..0]),
            arrays: KrylovArrays {
                shares: table(&self.shares, size_of::<KrylovShare>())?,
                offsets: part(&self.offsets, 1, 4)?,
                searches: part(&self.searches, 2, 4)?,
                nodes: table(&self.nodes, layout.sums.passes * 32 * 4)?,
                chains: all(&self.chains),
                spread: all(&self.spread),
                columns: part(&self.columns, 0, layout.column_bytes)?,
                values: part(&self.values, 0, real)?,
                b: room(stride * real, rows.start * real),
                inverse: piece(inverse, rows.start * size),
                factors: all(&self.factors),
                homes: vectors(layout.vectors.len()),
                exchanged: room(layout.exchanged() * turn * real, 0),
                partials: all(&self.partials),
                tagged: all(&self.tagged),
                pieces: Piece::default(),
                basis: vectors(layout.basis()),
                triangle: room(layout.triangle() * real, 0),
                given: table(&self.given, (count - 1) * 8)?,
                beyond: room((count - 1) * 8, 0),
                clocks: Piece { loaded: Cow::Owned(vec![0; 16]), bytes: 16, before: 0 },
                arrived: Piece { loaded: Cow::Owned(vec![0; LINE]), bytes: LINE, before: 0 },
                state: Piece { loaded: Cow::Owned(fresh()), bytes: state_bytes(), before: 0 },
                history: Piece::default(),
                thresholds: Piece::default(),
            },
            rows,
        })
    }

    /// Returns the number of the vector that holds the inverse diagonal, and its values in some rows; `None` where kernels
    /// read none.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where the machine has no memory for it.
    pub fn diagonal_of(&self, rows: &Range<usize>) -> Result<Option<(usize, Array)>> {
        let part = |(number, diagonal): &(usize, Array)| Ok((*number, diagonal.part(rows.clone())?));
        self.diagonal.as_ref().map(part).transpose()
    }
}

/// Returns a slab's numbers of a launch: `common` with what is its own.
pub fn numbers_of(
    common: KrylovNumbers,
    [stride, turn]: [usize; 2],
    beyond: &[Range<usize>; 2],
) -> KrylovNumbers {
    // Rows are numbered in 32 bits.
    let [low, high] = beyond;
    KrylovNumbers {
        stride: stride as u64,
        turn: turn as u64,
        low: low.start as u32,
        low_rows: low.len() as u32,
        high: high.start as u32,
        high_rows: high.len() as u32,
        ..common
    }
}

fn piece(loaded: Cow<'_, [u8]>, before: usize) -> Piece<'_> {
    Piece { bytes: loaded.len(), loaded, before }
}

fn layout_rows(layout: &Krylov) -> usize {
    layout.shares.last().map_or(0, |last| last.first + last.rows)
}
