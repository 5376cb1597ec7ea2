//! Counting values that are no numbers, with all threads.

use abide_core::Real;
use rayon::ThreadPool;
use rayon::prelude::*;

/// Values that a thread counts at a time.
const PART: usize = 1 << 14;

/// Counts the values that are NaN or infinite.
pub fn non_finite<T: Real>(values: &[T], pool: Option<&ThreadPool>) -> u64 {
    let part = |values: &[T]| values.iter().filter(|value| !value.is_finite()).count() as u64;
    // Too little work to wake any thread.
    if values.len() <= PART {
        return part(values);
    }
    let all = || values.par_chunks(PART).map(part).sum();
    pool.map_or_else(all, |pool| pool.install(all))
}
