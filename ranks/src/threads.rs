//! The communicator of ranks that are threads of one process.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use abide_core::communicator::{CommError, Communicator, ExportedHandle, Tag};

/// How long a rank waits for another by default. All ranks advance about as many planes between two exchanges, so a
/// wait is the difference of their times, which is far shorter.
pub const DEADLINE: Duration = Duration::from_secs(300);

/// How long a rank polls for a handle before it sleeps: waking takes some 50 µs, and short exchanges take no longer. A
/// rank that waits for values sleeps at once, because its cores compute.
const SPINNING: Duration = Duration::from_micros(100);

/// Returns the ends of a communicator for so many ranks, in order, whose waits end after `deadline`.
pub fn threads(size: usize, deadline: Duration) -> Vec<Threads> {
    let shared = Arc::new(Shared { inboxes: (0..size).map(|_| Inbox::default()).collect() });
    (0..size).map(|rank| Threads { rank, deadline, shared: shared.clone() }).collect()
}

/// An end of the communicator; dropping it reports to the others that the rank is gone.
pub struct Threads {
    rank: usize,
    deadline: Duration,
    shared: Arc<Shared>,
}

struct Shared {
    inboxes: Vec<Inbox>,
}

/// The messages for a rank, and the reports of ranks that are gone or aborted.
#[derive(Default)]
struct Inbox {
    held: Mutex<Held>,
    changed: Condvar,
}

/// What a message has.
enum Content {
    Bytes(Vec<u8>),
    ExportedHandles(Vec<ExportedHandle>),
}

#[derive(Default)]
struct Held {
    messages: Vec<(usize, Tag, Content)>,
    gone: Vec<usize>,
    aborted: Option<(usize, String)>,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Held> {
        // Nothing is ever half changed.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Held)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

impl Threads {
    fn post(&self, to: usize, tag: Tag, content: Content) -> Result<(), CommError> {
        let inbox = self.shared.inboxes.get(to).ok_or(CommError::Gone { rank: to })?;
        inbox.change(|held| held.messages.push((self.rank, tag, content)));
        Ok(())
    }

    /// Returns the content of a message once it has arrived. It polls for the duration `spins`, and then sleeps.
    fn take(&self, from: usize, tag: Tag, spins: Duration) -> Result<Content, CommError> {
        let begun = Instant::now();
        let inbox = &self.shared.inboxes[self.rank];
        let mut held = inbox.lock();
        loop {
            if let Some(at) = held.messages.iter().position(|(rank, own, _)| *rank == from && *own == tag) {
                return Ok(held.messages.swap_remove(at).2);
            }
            // Checked before the reports of others: of several waits that end at the same time, the first to begin is
            // the cause.
            let Some(left) = self.deadline.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) else {
                return Err(CommError::Late { from, within: self.deadline });
            };
            if let Some((rank, reason)) = held.aborted.clone() {
                return Err(CommError::Aborted { rank, reason });
            }
            if held.gone.contains(&from) {
                return Err(CommError::Gone { rank: from });
            }
            if begun.elapsed() < spins {
                drop(held);
                std::hint::spin_loop();
                held = inbox.lock();
                continue;
            }
            held = inbox.changed.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The error for a message that has a handle in place of bytes, or bytes in place of a handle.
fn other_content(from: usize) -> CommError {
    CommError::Failed(format!("rank {from} hands planes on in another way"))
}

impl Communicator for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.inboxes.len()
    }

    fn send(&mut self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        self.post(to, tag, Content::Bytes(bytes))
    }

    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, CommError> {
        match self.take(from, tag, Duration::ZERO)? {
            Content::Bytes(bytes) => Ok(bytes),
            Content::ExportedHandles(_) => Err(other_content(from)),
        }
    }

    fn shares_memory(&self) -> bool {
        true
    }

    fn export(&mut self, to: usize, tag: Tag, handles: Vec<ExportedHandle>) -> Result<(), CommError> {
        self.post(to, tag, Content::ExportedHandles(handles))
    }

    fn import(&mut self, from: usize, tag: Tag) -> Result<Vec<ExportedHandle>, CommError> {
        match self.take(from, tag, SPINNING)? {
            Content::ExportedHandles(handles) => Ok(handles),
            Content::Bytes(_) => Err(other_content(from)),
        }
    }

    fn check(&mut self, since: Instant) -> Result<(), CommError> {
        let held = self.shared.inboxes[self.rank].lock();
        if since.elapsed() >= self.deadline {
            return Err(CommError::Stuck { within: self.deadline });
        }
        match (&held.aborted, held.gone.first()) {
            (Some((rank, reason)), _) => Err(CommError::Aborted { rank: *rank, reason: reason.clone() }),
            (None, Some(&rank)) => Err(CommError::Gone { rank }),
            (None, None) => Ok(()),
        }
    }

    fn abort(&mut self, reason: &str) {
        // All at the same time: a rank that had read the reason would be gone for one that had not.
        let mut all: Vec<_> = self.shared.inboxes.iter().map(Inbox::lock).collect();
        for held in &mut all {
            // The first reason is the cause of all others.
            held.aborted.get_or_insert_with(|| (self.rank, reason.to_owned()));
        }
        drop(all);
        self.shared.inboxes.iter().for_each(|inbox| inbox.changed.notify_all());
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        for inbox in &self.shared.inboxes {
            inbox.change(|held| held.gone.push(self.rank));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use abide_core::communicator::What;
    use abide_core::slabs::Side;

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);

    fn tag(round: u64) -> Tag {
        Tag { round, what: What::Planes(Side::Low) }
    }

    #[test]
    fn messages_are_taken_by_their_tag_in_any_order() {
        let mut ends = threads(2, SHORT);
        for round in [3, 1, 2] {
            ends[0].send(1, tag(round), vec![round as u8]).unwrap();
        }
        for round in [1, 2, 3] {
            assert_eq!(ends[1].receive(0, tag(round)), Ok(vec![round as u8]));
        }
        let other = Tag { what: What::Planes(Side::High), ..tag(1) };
        ends[0].send(1, other, vec![9]).unwrap();
        assert_eq!(ends[1].receive(0, tag(1)), Err(CommError::Late { from: 0, within: SHORT }));
        assert_eq!(ends[1].receive(0, other), Ok(vec![9]));
    }

    #[test]
    fn all_ranks_gather_and_meet() {
        let ends = threads(3, DEADLINE);
        let run = |mut end: Threads| {
            thread::spawn(move || {
                end.barrier(0).unwrap();
                end.all_gather(1, &[end.rank() as u8; 2]).unwrap()
            })
        };
        for ran in ends.into_iter().map(run).collect::<Vec<_>>() {
            assert_eq!(ran.join().unwrap(), [[0; 2], [1; 2], [2; 2]]);
        }
    }

    #[test]
    fn a_wait_ends_where_a_rank_is_gone_or_gives_up() {
        let mut ends = threads(3, DEADLINE);
        let (mut last, mut middle, mut first) =
            (ends.pop().unwrap(), ends.pop().unwrap(), ends.pop().unwrap());
        let waiting = thread::spawn(move || first.receive(2, tag(1)));
        // What was sent before is still there.
        last.send(1, tag(1), vec![1]).unwrap();
        drop(last);
        assert_eq!(waiting.join().unwrap(), Err(CommError::Gone { rank: 2 }));
        assert_eq!(middle.receive(2, tag(1)), Ok(vec![1]));
        assert_eq!(middle.receive(2, tag(2)), Err(CommError::Gone { rank: 2 }));

        let mut ends = threads(2, DEADLINE);
        let (mut last, mut first) = (ends.pop().unwrap(), ends.pop().unwrap());
        let waiting = thread::spawn(move || first.receive(1, tag(1)));
        last.abort("no memory");
        last.abort("again");
        assert_eq!(
            waiting.join().unwrap(),
            Err(CommError::Aborted { rank: 1, reason: "no memory".to_owned() })
        );
    }
}
