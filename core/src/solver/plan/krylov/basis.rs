//! GMRES's basis and least-squares problem: how much room it takes, and what it moves.

use super::Krylov;
use super::sums::Sums;

/// Dot products that one pass over the rows sums.
pub const SUMMED: usize = 4;

/// The most dot products whose sums of runs are in shared memory at once; the least are [`SUMMED`].
const GROUP: usize = 32;

/// Sums of runs of those dot products, where they are not the least.
const PARTS: usize = 2048;

/// Sums of other reductions, of which two may be under way. The sums of the basis come after them.
const OTHERS: usize = 2 * crate::solver::plan::krylov::basis::REDUCED;

/// Times that an iteration reads the basis: it projects twice and subtracts twice.
const READS: f64 = 4.0;

/// Returns how many dot products of one reduction there is room for: whole passes over the rows.
pub fn products(restart: usize) -> usize {
    (restart + 1).next_multiple_of(SUMMED)
}

/// Returns how many dot products have their sums of runs in shared memory at once.
pub fn group(sums: &Sums) -> usize {
    (PARTS / sums.runs / SUMMED * SUMMED).clamp(SUMMED, GROUP)
}

impl Krylov {
    /// Returns how many of GMRES's dot products have their sums of runs in shared memory at once.
    pub fn group(&self) -> usize {
        group(&self.sums)
    }

    /// Returns the dot products of GMRES that one pass over the rows sums, and how many of one reduction there
    /// is room for.
    pub fn dots(&self) -> [usize; 2] {
        [SUMMED, products(self.restart)]
    }

    /// Returns the number of values in device memory for the nodes of sums that pass between blocks.
    pub fn partials(&self) -> usize {
        let projected = if self.restart > 0 { 2 * products(self.restart) } else { 0 };
        (OTHERS + projected) * self.sums.slots
    }

    /// Returns the number of vectors in device memory beside those of [`vectors`](Krylov::vectors): GMRES's
    /// basis, and its first iterate.
    pub fn basis(&self) -> usize {
        if self.restart > 0 { self.restart + 1 } else { 0 }
    }

    /// Returns the number of values in device memory for GMRES's least-squares problem: columns, and those
    /// that wait between launches.
    pub fn triangle(&self) -> usize {
        let m = self.restart;
        if m > 0 { m * (m + 1) / 2 + 4 * m + 2 } else { 0 }
    }

    /// Returns the vectors of the basis that an iteration reads and writes, on average over a cycle.
    pub fn consulted(&self) -> f64 {
        if self.restart > 0 { READS * (self.restart as f64 + 1.0) / 2.0 + 1.0 } else { 0.0 }
    }

    /// Returns how many vectors of the basis one pass over the rows adds up, where a value has `real` bytes:
    /// enough loads in flight where a thread has few rows, and no more than its registers hold.
    pub fn together(&self, real: usize) -> usize {
        let has_many = self.is_unrolled() && self.rows_per_thread > 4;
        if has_many || (self.threads > 512 && real == 8) { SUMMED } else { 2 * SUMMED }
    }

    /// Returns the passes over a block's rows that an iteration makes for the basis, on average: half of them
    /// project, half subtract.
    pub fn passes(&self, real: usize) -> f64 {
        let mean = (self.restart as f64 + 1.0) / 2.0;
        let of = |at_once: usize| READS / 2.0 * (mean / at_once as f64).ceil();
        if self.restart > 0 { of(SUMMED) + of(self.together(real)) } else { 0.0 }
    }
}

/// The most sums of one reduction.
pub const REDUCED: usize = 4;
