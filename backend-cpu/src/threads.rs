//! Rayon's global threads, and what to say where the system grants none.

use std::error::Error as _;
use std::panic::catch_unwind;
use std::sync::OnceLock;

use abide_core::{Error, Result};
use rayon::ThreadPoolBuilder;

/// Starts the threads that everything runs on, unless they were started before, by Abide or by the program that uses it.
///
/// Rayon panics at the first use of threads that it could not start, so all that uses them asks this first.
///
/// # Errors
///
/// [`Error::Limit`] where the system grants no such number of threads.
pub fn start() -> Result<()> {
    static STARTED: OnceLock<Result<()>> = OnceLock::new();
    STARTED
        .get_or_init(|| {
            let Err(error) = ThreadPoolBuilder::new().build_global() else { return Ok(()) };
            if error.source().is_some() {
                return Err(refused(wanted(), error));
            }
            // Somebody else was first. Whether they were given their threads, only their use tells.
            catch_unwind(rayon::current_num_threads)
                .map(drop)
                .map_err(|_| refused(wanted(), "an earlier attempt failed"))
        })
        .clone()
}

/// The threads that rayon would start.
fn wanted() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
    asked.filter(|&threads| threads > 0).unwrap_or_else(cores)
}

/// The error for threads that the system does not grant.
pub fn refused(threads: usize, why: impl ToString) -> Error {
    Error::limit(
        "threads",
        threads,
        format!("what the system grants ({})", why.to_string()),
        "set RAYON_NUM_THREADS to fewer, or raise the limits on processes and address space (ulimit -u, ulimit -v)",
    )
}
