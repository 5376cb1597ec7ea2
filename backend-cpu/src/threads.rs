//! The threads that share work, and the error where the system grants none.

use std::error::Error as _;
use std::panic::catch_unwind;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{io, thread};

use abide_core::floating::standard;
use abide_core::process::Process;
use abide_core::{Error, Result};
use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::memory;
use crate::pin;

/// Threads that share work, which a process that was forked makes anew: a fork copies none.
pub struct Pool {
    make: Make,
    /// What was made last. Another process may have made it, and then it has no threads here.
    made: AtomicPtr<Made>,
}

/// The way to make threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Make {
    /// Those of rayon's global pool, which the program may have started itself.
    Global,
    /// So many, of their own.
    Own(usize),
    /// So many, each on a core of its own.
    Pinned(usize),
}

/// What a process has made.
struct Made {
    process: Process,
    /// The pool, `None` for the global one, and the number of threads.
    threads: Result<(Option<ThreadPool>, usize)>,
}

/// The threads that everything runs on which has no others.
static GLOBAL: Pool = Pool { make: Make::Global, made: AtomicPtr::new(null_mut()) };

impl Pool {
    /// Returns so many threads.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where the system does not grant them.
    pub fn new(threads: usize) -> Result<Pool> {
        Pool::ready(Make::Own(threads))
    }

    /// Returns so many threads, each on a core of its own.
    ///
    /// # Errors
    ///
    /// Those of finding and taking cores; [`Error::Limit`] where the system does not grant them.
    pub fn pinned(threads: usize) -> Result<Pool> {
        Pool::ready(Make::Pinned(threads))
    }

    fn ready(make: Make) -> Result<Pool> {
        let pool = Pool { make, made: AtomicPtr::new(null_mut()) };
        pool.threads()?;
        Ok(pool)
    }

    /// Returns the number of threads, and starts them where they are not there.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where the system does not grant them.
    pub fn threads(&self) -> Result<usize> {
        self.made().map(|(_, threads)| *threads)
    }

    /// Calls `work` on one of the threads, in the standard floating-point mode; on the calling one if it shares work already.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where the system does not grant threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R> {
        Ok(within(self.made()?, work))
    }

    /// Returns the threads of this process. No lock is taken, so that a fork cannot leave one locked.
    fn made(&self) -> Result<&(Option<ThreadPool>, usize)> {
        let mut known = self.made.load(Ordering::Acquire);
        loop {
            // SAFETY: it is null or of `Box::into_raw`, and what was published is freed by `drop` alone.
            if let Some(made) = unsafe { known.as_ref() }.filter(|made| made.process.is_current()) {
                return made.threads.as_ref().map_err(Error::clone);
            }
            // SAFETY: as above.
            let parents = unsafe { known.as_ref() };
            let new = Box::into_raw(Box::new(Made {
                process: Process::current(),
                threads: self.make.threads(parents.and_then(|made| made.threads.as_ref().ok())),
            }));
            // What the parent made is left as it is: ending its threads could wait for them.
            match self.made.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => known = new,
                Err(others) => {
                    // SAFETY: nobody else has seen it.
                    drop(unsafe { Box::from_raw(new) });
                    known = others;
                }
            }
        }
    }
}

/// Work of any type, so that what hands it to threads is compiled once and not for each.
type Work<'a> = &'a mut (dyn FnMut() + Send);

/// Calls `work` on one of some threads.
fn within<R: Send>(made: &(Option<ThreadPool>, usize), work: impl FnOnce() -> R + Send) -> R {
    let (mut work, mut result) = (Some(work), None);
    hand(made, &mut || result = work.take().map(|work| work()));
    result.unwrap_or_else(|| unreachable!("a pool returns once the work is done, or unwinds"))
}

/// Does [`within`]'s work.
fn hand((pool, _): &(Option<ThreadPool>, usize), work: Work<'_>) {
    let work = || standard(work);
    match pool {
        Some(pool) => pool.install(work),
        None => rayon::scope(|_| work()),
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let made = *self.made.get_mut();
        // SAFETY: it is null or of `Box::into_raw`, and nobody else has it. That of another process stays.
        unsafe {
            if made.as_ref().is_some_and(|made| made.process.is_current()) {
                drop(Box::from_raw(made));
            }
        }
    }
}

impl Make {
    /// Makes the threads, beside those that a parent had before it was forked.
    fn threads(self, parents: Option<&(Option<ThreadPool>, usize)>) -> Result<(Option<ThreadPool>, usize)> {
        match (self, parents) {
            (Make::Global, None) => global().map(|threads| (None, threads)),
            // The global pool is the parent's, and cannot be made anew.
            (Make::Global, Some((_, threads))) => Ok((Some(own(*threads)?), *threads)),
            (Make::Own(threads), _) => Ok((Some(own(threads)?), threads)),
            (Make::Pinned(threads), _) => Ok((Some(pin::pool(threads)?), threads)),
        }
    }
}

/// Returns a pool of its own.
fn own(threads: usize) -> Result<ThreadPool> {
    let pool =
        ThreadPoolBuilder::new().num_threads(threads).spawn_handler(|thread| spawn(thread, threads)).build();
    pool.map_err(|error| refused(threads, error))
}

/// Starts the threads of rayon's global pool, unless the program has started them. Rayon panics at the first use of
/// threads that it could not start.
fn global() -> Result<usize> {
    let threads = wanted();
    let started = ThreadPoolBuilder::new().spawn_handler(|thread| spawn(thread, threads)).build_global();
    if let Err(error) = started
        && error.source().is_some()
    {
        return Err(refused(threads, error));
    }
    // Where other code built the pool first, only using the threads shows whether they could be started.
    catch_unwind(rayon::current_num_threads).map_err(|_| refused(threads, "an earlier attempt failed"))
}

/// Calls `work` on the threads of a pool, or on those that everything runs on which has none.
///
/// # Errors
///
/// Those of [`Pool::install`].
pub fn on<R: Send>(pool: Option<&Arc<Pool>>, work: impl FnOnce() -> R + Send) -> Result<R> {
    pool.map_or(&GLOBAL, |pool| pool).install(work)
}

/// Does what [`on`] does, and calls `work` on the calling thread where the system grants no threads. That happens only
/// after a fork: a session could not be opened without threads.
pub fn anyhow<R: Send>(pool: Option<&Arc<Pool>>, work: impl FnOnce() -> R + Send) -> R {
    match pool.map_or(&GLOBAL, |pool| pool).made() {
        Ok(made) => within(made, work),
        Err(_) => standard(work),
    }
}

/// Calls `work` on the threads that everything runs on which has no others, so that rayon's operations within it share
/// these. In a process that was forked they are other threads than those of rayon's global pool, which has none there.
///
/// # Errors
///
/// [`Error::Limit`] where the system grants no such number of threads.
pub fn on_threads<R: Send>(work: impl FnOnce() -> R + Send) -> Result<R> {
    GLOBAL.install(work)
}

/// Returns the number of threads that everything runs on which has no others, and starts them.
///
/// # Errors
///
/// [`Error::Limit`] where the system grants no such number of threads.
pub fn count() -> Result<usize> {
    GLOBAL.threads()
}

/// Starts the threads that everything runs on, unless Abide or the program that uses it started them before.
///
/// # Errors
///
/// [`Error::Limit`] where the system grants no such number of threads.
pub fn start() -> Result<()> {
    count().map(drop)
}

/// Calls both, maybe at the same time: on the threads of the pool that this is called in, else on those that everything
/// runs on, and one after the other where there are none.
pub fn join(first: impl FnOnce() + Send, second: impl FnOnce() + Send) {
    let (mut first, mut second) = (Some(first), Some(second));
    join_work(&mut || first.take().map_or((), |work| work()), &mut || {
        second.take().map_or((), |work| work())
    });
}

/// Does [`join`]'s work.
fn join_work(first: Work<'_>, second: Work<'_>) {
    // Another thread may take the second one.
    let (first, second) = (|| standard(first), || standard(second));
    if rayon::current_thread_index().is_some() {
        rayon::join(first, second);
        return;
    }
    match GLOBAL.made() {
        Ok(made) => drop(within(made, || rayon::join(first, second))),
        Err(_) => {
            first();
            second();
        }
    }
}

/// Bytes of address space that a thread takes as it starts: its stack, and what Rust and the system put
/// beside it.
const OF_A_THREAD: u64 = (2 << 20) + (128 << 10);

/// Bytes that are left to everything else.
const OF_THE_REST: u64 = 8 << 20;

/// Starts one of rayon's threads, the first after a look at the address space; not called where a program has
/// started its own.
fn spawn(thread: ThreadBuilder, wanted: usize) -> io::Result<()> {
    if thread.index() == 0 {
        check(wanted, memory::room_for_addresses()).map_err(io::Error::other)?;
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
        _ if threads > MANY => Err(format!("more than {MANY} threads of one pool are not started")),
        _ => Ok(()),
    }
}

/// The most threads of a pool. Several thousand more would use up the pieces into which the system can divide memory (65 530
/// on Linux, four for each thread), and the next small stack would end the process.
const MANY: usize = 8192;

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
        assert!(check(MANY, None).is_ok() && check(MANY + 1, None).is_err());
    }

    /// What a parent made is not used, and not waited for.
    #[test]
    fn a_process_makes_threads_of_its_own() {
        let pool = Pool::new(2).unwrap();
        // As after a fork: the number is that of another process.
        let parents = Made { process: Process::of_another(), threads: Ok((None, 3)) };
        let own = pool.made.swap(Box::into_raw(Box::new(parents)), Ordering::AcqRel);
        assert_eq!(pool.install(rayon::current_num_threads), Ok(2));
        let global = Pool { make: Make::Global, made: AtomicPtr::new(null_mut()) };
        let parents = Made { process: Process::of_another(), threads: Ok((None, 3)) };
        global.made.store(Box::into_raw(Box::new(parents)), Ordering::Release);
        assert_eq!(global.install(rayon::current_num_threads), Ok(3));
        // SAFETY: it was made by the pool, and nobody else has it.
        drop(unsafe { Box::from_raw(own) });
    }
}
