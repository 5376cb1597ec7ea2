//! Processes as ranks, over the MPI of the system: `mpirun -np 4 abide run …`.
//!
//! All processes make the same calls in the same order. Each has one rank, and a session reads what other ranks own over
//! the communicator, so that all processes have the same values. Messages are bytes of the host.

mod message;
mod progress;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use abide_core::communicator::{CommError, Communicator, Tag};
use abide_core::{Error, Result};

use self::message::{Kind, Message};
use self::progress::{ProgressEngine, is_late};
use self::wire::Wire;
use crate::factory::CommunicatorFactory;

pub use self::progress::Closing;

/// What launchers set for each process that they start: Open MPI, MPICH and its kin, PMIx, Slurm. Some need a second, which
/// a shell inside an allocation does not have.
const LAUNCHERS: [&[&str]; 4] =
    [&["OMPI_COMM_WORLD_SIZE"], &["PMI_SIZE"], &["PMIX_RANK"], &["SLURM_NTASKS", "SLURM_PROCID"]];

/// How long a process that failed waits for the others to end, before it ends them.
const ENDING: Duration = Duration::from_secs(5);

/// Returns whether an MPI launcher started this process.
pub fn is_launched() -> bool {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    LAUNCHERS.iter().any(|names| names.iter().all(is_set))
}

/// The processes of one launch, seen from one of them.
#[derive(Clone)]
pub struct Processes {
    progress: Arc<ProgressEngine>,
    /// The end over which processes agree outside of sessions, and its rounds.
    own: Arc<Mutex<(Mpi, u64)>>,
    rank: usize,
    size: usize,
}

impl Processes {
    /// Initialises MPI; `None` where there is one process alone, and MPI has ended again. `deadline` is how long waits last.
    ///
    /// # Errors
    ///
    /// MPI's own words, and where it does not allow calls from any thread.
    pub fn join(deadline: Duration) -> Result<Option<Processes>, String> {
        let wire = Wire::new()?;
        if wire.size < 2 {
            return Ok(None);
        }
        let (rank, size, progress) = (wire.rank, wire.size, Arc::new(ProgressEngine::new(wire)));
        let own = Mpi::new(&progress, deadline);
        Ok(Some(Processes { progress, own: Arc::new(Mutex::new((own, 0))), rank, size }))
    }

    /// Returns this process's number, counted from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of processes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns this process's end of a new communicator. All processes call it as often.
    pub fn connect(&self, deadline: Duration) -> Mpi {
        Mpi::new(&self.progress, deadline)
    }

    /// Returns the bytes that each process gives, in the order of ranks. All processes call it as often.
    ///
    /// # Errors
    ///
    /// Those of [`Communicator::receive`].
    pub fn gather(&self, own: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let mut end = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let (communicator, round) = &mut *end;
        *round += 1;
        communicator.all_gather(*round, own)
    }

    /// Returns text that differs between processes that share no cores: the machine's name and the cores that the
    /// process may run on, where the system lists them.
    pub fn cores(&self) -> String {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let cores = status.lines().find(|line| line.starts_with("Cpus_allowed_list:"));
        format!("{} {}", self.host(), cores.unwrap_or_default())
    }

    /// Returns the name of the process's machine, as MPI has it.
    pub fn host(&self) -> String {
        // Every call into MPI holds the lock on the progress engine.
        let _held = self.progress.lock();
        wire::host()
    }

    /// Reports to the others how this process ends, and returns how each process ends once all have reported. Where a
    /// process failed, `None` stands for each that did not report within five seconds. Without a failure it waits for
    /// all, however long: one of them may be writing files, and where one dies the launcher ends the others.
    pub fn close(&self, status: u8, reason: &str) -> Vec<Option<Closing>> {
        let mut held = self.progress.lock();
        held.poll();
        let follows = held.follows();
        held.tell(0, Kind::Closing { status, follows }, reason);
        drop(held);
        let mut begun = None;
        self.progress.wait(|held| {
            let is_bad = held.closings.iter().flatten().any(|own| own.status != 0);
            let begun = is_bad.then(|| *begun.get_or_insert_with(Instant::now));
            let is_over = held.closings.iter().all(Option::is_some);
            (is_over || begun.is_some_and(|begun| is_late(begun, ENDING))).then(|| held.closings.clone())
        })
    }

    /// Ends MPI, after [`Processes::close`]; where a process did not report there, it ends all processes at once.
    pub fn end(&self, status: u8) {
        let begun = Instant::now();
        let is_whole = self.progress.wait(|held| {
            let is_whole = held.closings.iter().all(Option::is_some);
            let is_over = !is_whole || held.is_sent() || is_late(begun, ENDING);
            is_over.then_some(is_whole && held.is_sent())
        });
        let mut held = self.progress.lock();
        match is_whole {
            true => held.finalise(),
            false => held.abort_all(status.max(1)),
        }
    }
}

impl CommunicatorFactory for Processes {
    fn connect(&self, ranks: usize) -> Result<Vec<Box<dyn Communicator>>> {
        if ranks != self.size {
            return Err(Error::limit("ranks", ranks, self.size, "take as many ranks as there are processes"));
        }
        let deadline = self.own.lock().unwrap_or_else(PoisonError::into_inner).0.deadline;
        Ok(vec![Box::new(Mpi::new(&self.progress, deadline))])
    }

    fn processes(&self) -> Option<usize> {
        Some(self.size)
    }

    fn of_first(&self, own: Result<u32>, words: &str) -> Result<u32> {
        let given = |own: &u32| [&own.to_le_bytes()[..], words.as_bytes()].concat();
        let all = self.gather(&own.as_ref().map_or_else(|_| Vec::new(), given));
        // The own error is the nearest to the cause.
        own?;
        let fail = |message: String| Error::device("mpi", "agreeing on a plan", message);
        let all = all.map_err(|broken| fail(broken.to_string()))?;
        let mut first = None;
        for (rank, bytes) in all.iter().enumerate() {
            let Some((number, words)) = bytes.split_first_chunk::<4>() else {
                return Err(fail(format!("rank {rank} has none")));
            };
            let (_, others) = *first.get_or_insert((u32::from_le_bytes(*number), words));
            if words != others {
                let [own, others] = [words, others].map(String::from_utf8_lossy);
                let change = "start all processes with the same arguments";
                return Err(fail(format!("rank {rank} runs {own}, rank 0 {others}; {change}")));
            }
        }
        Ok(first.map_or(0, |(number, _)| number))
    }
}

/// A process's end of a communicator over MPI; dropping it reports to the others that the rank is gone.
pub struct Mpi {
    progress: Arc<ProgressEngine>,
    channel: u64,
    deadline: Duration,
    rank: usize,
    size: usize,
}

impl Mpi {
    fn new(progress: &Arc<ProgressEngine>, deadline: Duration) -> Mpi {
        let mut held = progress.lock();
        Mpi { channel: held.open(), rank: held.rank, size: held.size, progress: progress.clone(), deadline }
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn send(&mut self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        self.progress.lock().send(to, Message { channel: self.channel, kind: Kind::Tagged(tag), bytes })
    }

    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, CommError> {
        let begun = Instant::now();
        let (channel, deadline) = (self.channel, self.deadline);
        self.progress.wait(|held| {
            if let Some(bytes) = held.find(channel, from, tag) {
                return Some(Ok(bytes));
            }
            // Checked before the reports of others: of several waits that end at the same time, the first to begin is
            // the cause.
            if is_late(begun, deadline) {
                return Some(Err(CommError::Late { from, within: deadline }));
            }
            held.broken(channel, from).map(Err)
        })
    }

    fn check(&mut self, since: Instant) -> Result<(), CommError> {
        if is_late(since, self.deadline) {
            return Err(CommError::Stuck { within: self.deadline });
        }
        let mut held = self.progress.lock();
        held.poll();
        let broken = (0..self.size).filter(|&rank| rank != self.rank);
        broken.filter_map(|rank| held.broken(self.channel, rank)).next().map_or(Ok(()), Err)
    }

    fn abort(&mut self, reason: &str) {
        self.progress.lock().tell(self.channel, Kind::Aborted, reason);
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.progress.lock().close(self.channel);
    }
}
