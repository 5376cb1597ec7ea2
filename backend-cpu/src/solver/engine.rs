//! Reductions and updates in pieces, on all threads.

use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::reduction::{LEAF, Sums, leaf_dot};
use abide_core::sparse::Csr;
use abide_core::{Real, Result, memory};
use abide_solvers::{Engine, ROWS, Serial, to_shortest};

use super::rows::some_rows;
use crate::threads::{self, Pool, join};

/// Values of a piece of a reduction or an update: a subtree, and enough that handing it out is cheap beside
/// computing it.
const PIECE: usize = 64 * LEAF;

/// Dot products per reduction for which there is room without allocating; methods ask for 3 at most.
const DOTS: usize = 3;

/// The threaded engine: `abide_core::solver::Serial`'s bits on all threads of a pool.
///
/// Vectors are cut in halves down to pieces. A reduction's pieces are summed in any order, their sums in the
/// order of the tree.
pub struct Threads<T> {
    pool: Option<Arc<Pool>>,
    /// The sums of the pieces of a reduction in progress.
    sums: Mutex<Vec<T>>,
}

impl<T: Real> Threads<T> {
    /// Returns an engine for vectors of up to `rows` values, on a pool, or on the threads that everything shares.
    pub fn new(pool: Option<Arc<Pool>>, rows: usize) -> Result<Self> {
        if pool.is_none() {
            threads::start()?;
        }
        let len = rows.div_ceil(PIECE).max(1) * DOTS;
        let sums = memory::reserved(len, "a reduction's sums", "make the system smaller")?;
        Ok(Threads { pool, sums: Mutex::new(sums) })
    }
}

impl<T: Real> Engine<T> for Threads<T> {
    fn run<R: Send>(&self, solve: impl FnOnce() -> R + Send) -> R {
        // A join on a thread of the pool costs a hundredth of a join that must first enter the pool.
        threads::anyhow(self.pool.as_ref(), solve)
    }

    fn dots<const K: usize>(&self, pairs: [(&[T], &[T]); K]) -> [T; K] {
        let len = pairs.iter().map(|(a, b)| a.len().min(b.len())).min().unwrap_or(0);
        let pairs = pairs.map(|(a, b)| (&a[..len], &b[..len]));
        // Sums that a panic left behind are overwritten.
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums.clear();
        sums.resize(len.div_ceil(PIECE) * K, T::ZERO);
        pieces(pairs, &mut sums);
        let mut all: [Sums<T>; K] = std::array::from_fn(|_| Sums::new());
        for sums in sums.chunks_exact(K.max(1)) {
            for (all, &sum) in all.iter_mut().zip(sums) {
                all.push(sum);
            }
        }
        all.map(Sums::finish)
    }

    fn update<const W: usize, const R: usize>(
        &self,
        write: [&mut [T]; W],
        read: [&[T]; R],
        f: impl Fn([T; W], [T; R]) -> [T; W] + Sync,
    ) {
        let (write, read, len) = to_shortest(write, read);
        cut(write, read, len, &|write, read| Serial.update(write, read, &f));
    }

    fn multiply(&self, matrix: &Csr, x: &[T], y: &mut [T]) {
        self.chunks(y, ROWS, |first, y| some_rows(matrix, first, x, y));
    }

    fn chunks(&self, out: &mut [T], size: usize, f: impl Fn(usize, &mut [T]) + Sync) {
        chunks(0, out, size.max(1), &f);
    }
}

/// Sums all pieces of all pairs; the sums of one piece lie side by side.
fn pieces<T: Real, const K: usize>(pairs: [(&[T], &[T]); K], sums: &mut [T]) {
    let count = sums.len() / K.max(1);
    if count <= 1 {
        sums.copy_from_slice(&piece(pairs)[..sums.len()]);
        return;
    }
    let middle = count / 2;
    let (low, high) = sums.split_at_mut(middle * K);
    let at = middle * PIECE;
    join(
        || pieces(pairs.map(|(a, b)| (&a[..at], &b[..at])), low),
        || pieces(pairs.map(|(a, b)| (&a[at..], &b[at..])), high),
    );
}

/// Sums a piece of all pairs, leaf by leaf, so that values that pairs share are read once.
fn piece<T: Real, const K: usize>(pairs: [(&[T], &[T]); K]) -> [T; K] {
    let mut all: [Sums<T>; K] = std::array::from_fn(|_| Sums::new());
    let len = pairs.first().map_or(0, |(a, _)| a.len());
    for first in (0..len).step_by(LEAF) {
        let leaf = first..len.min(first + LEAF);
        for (all, (a, b)) in all.iter_mut().zip(&pairs) {
            all.push(leaf_dot(&a[leaf.clone()], &b[leaf.clone()]));
        }
    }
    all.map(Sums::finish)
}

/// What an update does with a piece of what it writes and reads.
type Update<'a, T, const W: usize, const R: usize> = &'a (dyn Fn([&mut [T]; W], [&[T]; R]) + Sync);

/// Does an update of `len` values piece by piece. It is compiled once per number of vectors, and not for each update.
fn cut<T: Real, const W: usize, const R: usize>(
    write: [&mut [T]; W],
    read: [&[T]; R],
    len: usize,
    update: Update<'_, T, W, R>,
) {
    if len <= PIECE {
        return update(write, read);
    }
    let middle = len / 2;
    let mut halves = write.map(|w| w.split_at_mut(middle));
    let low = std::array::from_fn(|k| mem::take(&mut halves[k].0));
    let high = std::array::from_fn(|k| mem::take(&mut halves[k].1));
    join(
        || cut(low, read.map(|r| &r[..middle]), middle, update),
        || cut(high, read.map(|r| &r[middle..]), len - middle, update),
    );
}

fn chunks<T: Real>(start: usize, out: &mut [T], size: usize, f: &(impl Fn(usize, &mut [T]) + Sync)) {
    let count = out.len().div_ceil(size);
    if out.len() <= PIECE || count < 2 {
        for (number, chunk) in out.chunks_mut(size).enumerate() {
            f(start + number * size, chunk);
        }
        return;
    }
    let middle = count / 2 * size;
    let (low, high) = out.split_at_mut(middle);
    join(|| chunks(start, low, size, f), || chunks(start + middle, high, size, f));
}
