//! A communicator that delays, reorders, alters or drops messages, falls silent, or loses a rank.

use std::thread;
use std::time::{Duration, Instant};

use abide_core::communicator::{CommError, Communicator, Tag};
use abide_ranks::threads::{Threads, threads};

/// What goes wrong at one rank's end, from a round on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Every message takes a while.
    Delay,
    /// Messages are held back until the rank waits, and then sent in the opposite order.
    Reorder,
    /// One message never arrives.
    Drop,
    /// One message arrives without its last byte.
    Shorten,
    /// No message is sent any more, and no report of that either.
    Silence,
    /// The rank's thread ends as by a fault of its own.
    Panic,
}

struct Faulty {
    inner: Threads,
    fault: Fault,
    round: u64,
    held: Vec<(usize, Tag, Vec<u8>)>,
    is_done: bool,
}

impl Faulty {
    fn release(&mut self) -> Result<(), CommError> {
        while let Some((to, tag, bytes)) = self.held.pop() {
            self.inner.send(to, tag, bytes)?;
        }
        Ok(())
    }
}

impl Communicator for Faulty {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn send(&mut self, to: usize, tag: Tag, mut bytes: Vec<u8>) -> Result<(), CommError> {
        if tag.round < self.round {
            return self.inner.send(to, tag, bytes);
        }
        match self.fault {
            Fault::Delay => thread::sleep(Duration::from_millis(2)),
            Fault::Reorder => {
                self.held.push((to, tag, bytes));
                return Ok(());
            }
            Fault::Drop if !std::mem::replace(&mut self.is_done, true) => return Ok(()),
            Fault::Shorten if !std::mem::replace(&mut self.is_done, true) => drop(bytes.pop()),
            Fault::Silence => return Ok(()),
            Fault::Panic => std::panic::resume_unwind(Box::new("a rank's fault")),
            Fault::Drop | Fault::Shorten => {}
        }
        self.inner.send(to, tag, bytes)
    }

    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, CommError> {
        self.release()?;
        self.inner.receive(from, tag)
    }

    fn check(&mut self, since: Instant) -> Result<(), CommError> {
        self.release()?;
        self.inner.check(since)
    }

    fn abort(&mut self, reason: &str) {
        self.inner.abort(reason);
    }
}

/// Connects ranks of which the second has the fault from a round on.
pub fn factory(
    fault: Fault,
    round: u64,
    deadline: Duration,
) -> impl Fn(usize) -> Vec<Box<dyn Communicator>> + Send + Sync {
    move |ranks: usize| {
        let end = |end: Threads| -> Box<dyn Communicator> {
            match end.rank() {
                1 => Box::new(Faulty { inner: end, fault, round, held: Vec::new(), is_done: false }),
                _ => Box::new(end),
            }
        };
        threads(ranks, deadline).into_iter().map(end).collect()
    }
}
