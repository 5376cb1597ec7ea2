//! Processes as ranks: the command started several times by an MPI launcher, with the feature `mpi`.
//!
//! Without the feature, or where nobody has called [`join`], there is one process, and it is the first.

#[cfg(all(feature = "mpi", feature = "cuda"))]
mod gpus;

use super::{Devices, Opened};
use crate::{Error, Result};

/// How a process is to end, once all processes have reported how they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closed {
    /// Whether this process is the one that prints how the run ended.
    pub tells: bool,
    /// The exit status: the process's own, or that of one that failed.
    pub status: u8,
}

/// Returns whether this process is the first, which prints and writes files.
pub fn is_first() -> bool {
    rank() == 0
}

/// Returns the devices that a run asks for, which must be as many as the processes where there are several.
///
/// # Errors
///
/// [`Error::Limit`] for another number, [`Error::Unsupported`] for devices that are named.
pub(super) fn check(devices: Devices) -> Result<Devices> {
    let processes = count();
    if processes == 1 {
        return Ok(devices);
    }
    let devices = match devices {
        Devices::All => return Ok(Devices::Count(processes)),
        Devices::Count(devices) if devices == processes => return Ok(Devices::Count(devices)),
        Devices::Count(devices) => devices,
        Devices::These(_) => {
            let reason = format!("{devices} were asked for of {processes} processes, which have one each");
            return Err(Error::unsupported("--device-list", reason, "leave it out"));
        }
    };
    Err(Error::limit(
        format!(
            "devices of {processes} processes, which have one each (--devices or {})",
            super::DEVICES_VARIABLE
        ),
        devices,
        processes,
        format!("leave the number out, or start {devices} processes (mpirun -np {devices})"),
    ))
}

pub(crate) use self::imp::gather;
pub(super) use self::imp::open_on;
pub use self::imp::{close, count, end, join, rank};

#[cfg(not(feature = "mpi"))]
mod imp {
    use super::{Closed, Devices, Opened, Result};

    /// Joins the processes that a launcher started; without the feature `mpi` there are none.
    ///
    /// # Errors
    ///
    /// None.
    pub fn join() -> Result<()> {
        Ok(())
    }

    /// Returns the number of processes.
    pub fn count() -> usize {
        1
    }

    /// Returns this process's number, counted from 0.
    pub fn rank() -> usize {
        0
    }

    /// Reports to other processes how this one ends; there are none.
    pub fn close(status: u8, _reason: &str) -> Closed {
        Closed { tells: true, status }
    }

    /// Ends what connects the processes.
    pub fn end(_status: u8) {}

    /// Returns the bytes that each process gives; there is one.
    pub(crate) fn gather(own: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![own.to_vec()])
    }

    pub(crate) fn open_on(_name: &str, _devices: &Devices) -> Result<Option<Opened>> {
        Ok(None)
    }
}

#[cfg(feature = "mpi")]
mod imp {
    use std::sync::{Arc, OnceLock};

    use abide_core::backend::Backend;
    use abide_ranks::mpi::{Processes, is_launched};
    use abide_ranks::threads::DEADLINE;
    use abide_ranks::{Device, Ranked};

    use super::{Closed, Devices, Opened, Result};
    use crate::Error;
    use crate::backend::Kind;

    static JOINED: OnceLock<Processes> = OnceLock::new();

    /// Joins the processes that an MPI launcher started, if it started several: from now on runs are of all of them, and
    /// each must make the same calls. Called once, by the main thread, which also calls [`close`] and [`end`].
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] where MPI does not start.
    pub fn join() -> Result<()> {
        if !is_launched() || JOINED.get().is_some() {
            return Ok(());
        }
        let joined =
            Processes::join(DEADLINE).map_err(|reason| Error::Unavailable { backend: "mpi", reason })?;
        if let Some(processes) = joined {
            JOINED.get_or_init(|| processes);
        }
        Ok(())
    }

    /// Returns the number of processes.
    pub fn count() -> usize {
        JOINED.get().map_or(1, Processes::size)
    }

    /// Returns this process's number, counted from 0.
    pub fn rank() -> usize {
        JOINED.get().map_or(0, Processes::rank)
    }

    /// Reports to the other processes how this one ends, and why if it failed, and waits for the reports of all. The
    /// lowest rank that failed by itself prints its error.
    pub fn close(status: u8, reason: &str) -> Closed {
        let Some(processes) = JOINED.get() else { return Closed { tells: true, status } };
        let all = processes.close(status, reason);
        let mut failed: Vec<_> =
            all.iter().enumerate().filter_map(|(rank, own)| Some((rank, own.as_ref()?))).collect();
        failed.retain(|(_, own)| own.status != 0);
        match failed.iter().min_by_key(|(rank, own)| (own.follows, *rank)) {
            None => Closed { tells: processes.rank() == 0, status },
            Some((teller, own)) => Closed {
                tells: *teller == processes.rank(),
                status: if status == 0 { own.status } else { status },
            },
        }
    }

    /// Ends MPI; where a process did not say how it ends, ends all of them.
    pub fn end(status: u8) {
        if let Some(processes) = JOINED.get() {
            processes.end(status);
        }
    }

    /// Returns the bytes that each process gives, in the order of ranks. All call it alike.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where another process is gone or has given up.
    pub(crate) fn gather(own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let fail = |reason: String| Error::device("mpi", "comparing what all processes have read", reason);
        match JOINED.get() {
            Some(processes) => processes.gather(own).map_err(|broken| fail(broken.to_string())),
            None => Ok(vec![own.to_vec()]),
        }
    }

    /// Opens the backend whose ranks are the processes; `None` where there is one.
    pub(crate) fn open_on(name: &str, devices: &Devices) -> Result<Option<Opened>> {
        let Some(processes) = JOINED.get() else { return Ok(None) };
        let Devices::Count(devices) = super::check(devices.clone())? else { return Ok(None) };
        let (kind, single, weights) = match name {
            "cpu" => cpu(processes)?,
            #[cfg(feature = "cuda")]
            "cuda" => super::gpus::gpu(processes)?,
            _ => {
                return Err(Error::unsupported(
                    format!("backend {name}"),
                    format!("{} processes were started, and it runs in one", processes.size()),
                    "use --backend cuda or cpu, or start one process",
                ));
            }
        };
        let own = single.clone();
        // All ranks are planned as this one is; each opens its own alone.
        let make = move |ranks: usize| {
            let device = |&weight: &usize| Device { backend: own.clone(), weight };
            Ok(weights.iter().take(ranks).map(device).collect())
        };
        let ranked = Ranked::new(single, devices, make)?.connected(processes.clone());
        Ok(Some(Opened::new(kind, ranked)))
    }

    /// What a process opens: the kind of its device, the device, and the weights of all processes.
    pub(super) type Own = (Kind, Arc<dyn Backend>, Vec<usize>);

    /// Opens the process's part of the machine's threads.
    fn cpu(processes: &Processes) -> Result<Own> {
        abide_cpu::start_threads()?;
        let threads = threads(processes)?;
        let own = threads.get(processes.rank()).copied().unwrap_or(1);
        Ok((Kind::Cpu, Arc::new(abide_cpu::CpuBackend::with_threads(own)?), threads))
    }

    /// Returns the threads of each process: those that its cores have, divided among all processes that may run on the same
    /// cores.
    fn threads(processes: &Processes) -> Result<Vec<usize>> {
        let own = format!("{} {}", rayon::current_num_threads(), processes.cores());
        let fail = |reason: &str| Error::device("mpi", "dividing threads among processes", reason);
        let all = processes.gather(own.as_bytes()).map_err(|broken| fail(&broken.to_string()))?;
        divided(&all)
            .ok_or_else(|| fail("a process did not tell its threads; start all with one version of Abide"))
    }

    /// Divides threads among processes that say the same of their number and cores, one each at least.
    fn divided(all: &[Vec<u8>]) -> Option<Vec<usize>> {
        let same = |own: &[u8], others: &[Vec<u8>]| others.iter().filter(|&other| other[..] == *own).count();
        let share = |(rank, own): (usize, &Vec<u8>)| {
            let threads: usize = str::from_utf8(own).ok()?.split(' ').next()?.parse().ok()?;
            let (before, among) = (same(own, &all[..rank]), same(own, all));
            Some((threads / among + usize::from(before < threads % among)).max(1))
        };
        all.iter().enumerate().map(share).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn processes_on_the_same_cores_share_the_threads() {
            let all = |words: &[&str]| {
                divided(&words.iter().map(|own| own.as_bytes().to_vec()).collect::<Vec<_>>())
            };
            assert_eq!(all(&["8 a 0-7", "8 a 0-7", "8 a 0-7", "4 b 0-3"]), Some(vec![3, 3, 2, 4]));
            assert_eq!(all(&["1 a 0", "1 a 1", "1 a 1"]), Some(vec![1, 1, 1]));
            assert_eq!(all(&["8 a", ""]), None);
        }
    }
}
