//! Rayon's global threads, and the error where the system grants none.

use std::error::Error as _;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::{io, thread};

use abide_core::{Error, Result};
use rayon::{ThreadBuilder, ThreadPoolBuilder};

use crate::memory;

/// Starts the threads that everything runs on, unless Abide or the program that uses it started them before.
///
/// Rayon panics at the first use of threads that it could not start, so all code that uses them calls this
/// first.
///
/// # Errors
///
/// [`Error::Limit`] where the system grants no such number of threads.
pub fn start() -> Result<()> {
    static STARTED: OnceLock<Result<()>> = OnceLock::new();
    STARTED
        .get_or_init(|| {
            let Err(error) = ThreadPoolBuilder::new().spawn_handler(spawn).build_global() else {
                return Ok(());
            };
            if error.source().is_some() {
                return Err(refused(wanted(), error));
            }
            // Somebody else was first; only using the threads tells whether they were granted.
            catch_unwind(rayon::current_num_threads)
                .map(drop)
                .map_err(|_| refused(wanted(), "an earlier attempt failed"))
        })
        .clone()
}

/// Bytes of address space that a thread takes as it starts: its stack, and what Rust and the system put
/// beside it.
const OF_A_THREAD: u64 = (2 << 20) + (128 << 10);

/// Bytes that are left to everything else.
const OF_THE_REST: u64 = 8 << 20;

/// Starts one of rayon's threads, the first after a look at the address space; not called where a program has
/// started its own.
fn spawn(thread: ThreadBuilder) -> io::Result<()> {
    if thread.index() == 0 {
        check(wanted(), memory::room_for_addresses()).map_err(io::Error::other)?;
    }
    thread::Builder::new().spawn(|| thread.run())?;
    Ok(())
}

/// Returns an error where the threads would fill the address space: a thread that has begun and finds no room
/// for its second, small stack ends the process.
fn check(threads: usize, room: Option<u64>) -> Result<(), String> {
    let wanted = (threads as u64).saturating_mul(OF_A_THREAD).saturating_add(OF_THE_REST);
    match room {
        Some(room) if wanted > room => Err(format!("{} MB of address space are left", room / 1_000_000)),
        _ => Ok(()),
    }
}

/// Returns the number of threads that rayon would start.
fn wanted() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|number| number.parse().ok());
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
    asked.filter(|&threads| threads > 0).unwrap_or_else(cores)
}

/// Returns the error for threads that the system does not grant.
pub fn refused(threads: usize, why: impl ToString) -> Error {
    Error::limit(
        "threads",
        threads,
        format!("what the system grants ({})", why.to_string()),
        "set RAYON_NUM_THREADS to fewer, or raise the limits on processes and address space (ulimit -u, ulimit -v)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_fill_the_address_space_are_refused() {
        assert!(check(2, None).is_ok() && check(2, Some(100 << 20)).is_ok());
        let error = refused(2928, check(2928, Some(945 << 20)).unwrap_err()).to_string();
        assert!(
            error.contains("threads: 2928 asked") && error.contains("990 MB of address space"),
            "{error}"
        );
        assert!(check(usize::MAX, Some(u64::MAX - 1)).is_err());
    }
}
