//! The operations that a solver needs of a machine: reductions and fused updates of vectors.
//!
//! Solvers are written once over an [`Engine`]. [`Serial`] is the reference: one thread, plain loops. Another
//! engine gives the same bits if it keeps the tree of [`reduction`](abide_core::reduction) and applies the same closure to
//! each element.

use abide_core::sparse::Csr;
use abide_core::{Real, Result, memory, reduction};

/// Rows of a product that are handed out at once.
pub const ROWS: usize = 2048;

/// Reductions and elementwise updates of vectors in host memory.
///
/// All slices of a call have the same length; an engine may stop at the end of the shortest.
pub trait Engine<T: Real>: Send + Sync {
    /// Returns the dot products of `K` pairs in one reduction: one pass, one synchronisation.
    ///
    /// Each product is the sum in the tree of [`reduction`](abide_core::reduction).
    fn dots<const K: usize>(&self, pairs: [(&[T], &[T]); K]) -> [T; K];

    /// Computes `write[..][i] = f(write[..][i], read[..][i])` for each `i`, in one pass over all the vectors
    /// of an update.
    fn update<const W: usize, const R: usize>(
        &self,
        write: [&mut [T]; W],
        read: [&[T]; R],
        f: impl Fn([T; W], [T; R]) -> [T; W] + Sync,
    );

    /// Calls `f(start, chunk)` for each chunk of `size` values of `out`, which begins at `start`; the last
    /// chunk may be short.
    fn chunks(&self, out: &mut [T], size: usize, f: impl Fn(usize, &mut [T]) + Sync);

    /// Computes the product of a stored matrix of the engine's type with a vector, each row in the order of
    /// [`Csr::matvec`](abide_core::sparse::Csr::matvec).
    fn multiply(&self, matrix: &Csr, x: &[T], y: &mut [T]) {
        self.chunks(y, ROWS, |first, y| matrix.multiply_rows(first, x, y));
    }

    /// Runs a whole solve where the engine's threads are at hand.
    fn run<R: Send>(&self, solve: impl FnOnce() -> R + Send) -> R {
        solve()
    }

    /// Returns the dot product of `a` and `b`.
    fn dot(&self, a: &[T], b: &[T]) -> T {
        self.dots([(a, b)])[0]
    }

    /// Returns whether something holds on all devices that share the vectors' rows; each calls it alike.
    fn everywhere(&self, holds: bool) -> bool {
        holds
    }

    /// Computes `out[j] = (basis[j], w)` for each `j`, in one reduction.
    fn project(&self, basis: &[Vec<T>], w: &[T], out: &mut [T]) {
        for (out, v) in out.iter_mut().zip(basis) {
            *out = self.dot(v, w);
        }
    }

    /// Computes `w += sum_j coefficients[j] basis[j]`, `j` in order.
    fn combine(&self, w: &mut [T], basis: &[Vec<T>], coefficients: &[T]) {
        for (v, &c) in basis.iter().zip(coefficients) {
            self.update([&mut *w], [v], |[w], [v]| [w + c * v]);
        }
    }
}

/// The reference engine: one thread, no allocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Serial;

impl<T: Real> Engine<T> for Serial {
    fn dots<const K: usize>(&self, pairs: [(&[T], &[T]); K]) -> [T; K] {
        pairs.map(|(a, b)| reduction::dot(a, b))
    }

    fn update<const W: usize, const R: usize>(
        &self,
        write: [&mut [T]; W],
        read: [&[T]; R],
        f: impl Fn([T; W], [T; R]) -> [T; W] + Sync,
    ) {
        let (write, read, n) = to_shortest(write, read);
        // Loops rather than functions of arrays: there is one of these for each update of each method, to be compiled.
        for i in 0..n {
            let (mut held, mut given) = ([T::ZERO; W], [T::ZERO; R]);
            for k in 0..W {
                held[k] = write[k][i];
            }
            for k in 0..R {
                given[k] = read[k][i];
            }
            let new = f(held, given);
            for k in 0..W {
                write[k][i] = new[k];
            }
        }
    }

    fn chunks(&self, out: &mut [T], size: usize, f: impl Fn(usize, &mut [T]) + Sync) {
        for (k, chunk) in out.chunks_mut(size.max(1)).enumerate() {
            f(k * size.max(1), chunk);
        }
    }
}

/// Cuts all slices to the length of the shortest, which is returned, so that bounds are checked once and not in the loop.
pub fn to_shortest<'a, T, const W: usize, const R: usize>(
    write: [&'a mut [T]; W],
    read: [&'a [T]; R],
) -> ([&'a mut [T]; W], [&'a [T]; R], usize) {
    let lengths = write.iter().map(|w| w.len()).chain(read.iter().map(|r| r.len()));
    let n = lengths.min().unwrap_or(0);
    (write.map(|w| &mut w[..n]), read.map(|r| &r[..n]), n)
}

/// Returns `n` zeros. Fails if the machine does not have that much memory.
pub(crate) fn zeros<T: Real>(n: usize) -> Result<Vec<T>> {
    memory::filled(T::ZERO, n, "a solver's vector", "make the system smaller")
}
