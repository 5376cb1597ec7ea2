//! Threads that each stay on a core of their own, where that is asked for.
//!
//! Left alone, a system moves threads from core to core as other work comes and goes, and a tile's cells stay
//! behind in the cache of the core that its thread left. On a machine that does nothing else, pinned threads
//! keep the cells in their caches. Where there is other work, it holds up a pinned thread, and with that
//! thread all that wait for it.

use abide_core::{Error, Result};
use core_affinity::CoreId;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::threads::refused;

/// Returns a core for each of `threads` threads, among those that the system lets this thread run on.
///
/// # Errors
///
/// [`Error::Unsupported`] where the system does not list its cores; [`Error::Limit`] where there
/// are fewer cores than threads.
pub fn cores(threads: usize) -> Result<Vec<CoreId>> {
    let mut cores = core_affinity::get_core_ids().ok_or_else(|| {
        Error::unsupported(
            "backend cpu",
            "pinned threads were asked for, and this system does not tell which cores they may run on",
            "leave --pin out",
        )
    })?;
    if threads > cores.len() {
        return Err(Error::limit(
            "pinned threads",
            threads,
            format!("{} cores that this process may run on", cores.len()),
            "ask for fewer threads (RAYON_NUM_THREADS), give the process more cores, or leave --pin out",
        ));
    }
    cores.truncate(threads);
    Ok(cores)
}

/// Pins the calling thread.
///
/// # Errors
///
/// [`Error::Device`] where the system refuses.
pub fn pin(core: CoreId) -> Result<()> {
    if core_affinity::set_for_current(core) {
        return Ok(());
    }
    Err(Error::device(
        "cpu",
        format!("pinning a thread to core {}", core.id),
        "the system refuses; leave --pin out",
    ))
}

/// Returns a pool of `threads` threads, each on a core of its own.
///
/// # Errors
///
/// The errors of [`cores`] and [`pin`]; [`Error::Limit`] where the system grants no such number of threads.
pub fn pool(threads: usize) -> Result<ThreadPool> {
    let cores = cores(threads)?;
    let pool =
        ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("abide-pinned-{i}")).build();
    let pool = pool.map_err(|error| refused(threads, error))?;
    pool.broadcast(|thread| pin(cores[thread.index()])).into_iter().collect::<Result<()>>()?;
    Ok(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cores on which the system lets the calling thread run, as the system itself writes them.
    #[cfg(target_os = "linux")]
    fn allowed() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        line.trim().to_owned()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn each_thread_of_a_pinned_pool_has_one_core_of_its_own() {
        let all = allowed();
        let cores = core_affinity::get_core_ids().unwrap().len();
        let pool = pool(cores).unwrap();
        let masks = pool.broadcast(|_| allowed());
        let mut numbers: Vec<usize> = masks.iter().map(|mask| mask.parse().expect("one core")).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), cores, "{masks:?}");
        assert_eq!(allowed(), all, "the thread that asked stays free");
    }

    #[test]
    fn more_threads_than_cores_are_refused() {
        let error = pool(100_000).unwrap_err().to_string();
        assert!(
            error.contains("100000") && error.contains("cores") && error.contains("RAYON_NUM_THREADS"),
            "{error}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_core_that_is_not_there_is_refused() {
        let error = std::thread::spawn(|| pin(CoreId { id: 1023 })).join().unwrap().unwrap_err().to_string();
        assert!(error.contains("core 1023") && error.contains("leave --pin out"), "{error}");
    }
}
