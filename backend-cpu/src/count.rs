//! Counting values that are no numbers, with all threads.

use std::sync::Arc;

use abide_core::{Real, Result};
use rayon::prelude::*;

use crate::threads::{Pool, on};

/// Values that a thread counts at a time.
const PART: usize = 1 << 14;

/// Counts the values that are NaN or infinite.
pub fn non_finite<T: Real>(values: &[T], pool: Option<&Arc<Pool>>) -> Result<u64> {
    let part = |values: &[T]| values.iter().filter(|value| !value.is_finite()).count() as u64;
    // Too little work to wake any thread.
    if values.len() <= PART {
        return Ok(part(values));
    }
    on(pool, || values.par_chunks(PART).map(part).sum())
}
