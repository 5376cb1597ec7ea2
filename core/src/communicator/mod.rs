//! How ranks reach each other: the [`Communicator`], and the [`Endpoint`] over it that a rank shares with its session.

mod endpoint;
mod handles;
mod pause;

use std::time::{Duration, Instant};

pub use self::endpoint::{Endpoint, RankFailure};
pub use self::handles::{ExportedHandle, IpcHandle};
pub use self::pause::Pause;
use crate::slabs::Side;

/// What a message is for. A receiver takes the message of a tag, in whatever order messages come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// The exchange, counted from 1 since the session was opened; gathers have a count of their own.
    pub round: u64,
    /// The message's content.
    pub what: What,
}

/// The content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Planes for the halo at this side of the receiver.
    Planes(Side),
    /// Acknowledges that the planes exported at this side of the receiver were copied.
    Taken(Side),
    /// A rank's part of what all ranks gather.
    Gathered,
    /// Entries of a vector that the receiver's rows read.
    Entries,
}

/// The reason why a communicator did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommError {
    /// Nothing came within the deadline.
    #[error("nothing came from rank {from} within {} s", .within.as_secs_f64())]
    Late {
        /// The rank that was waited for.
        from: usize,
        /// The deadline.
        within: Duration,
    },
    /// A rank is no longer there.
    #[error("rank {rank} is gone")]
    Gone {
        /// The rank.
        rank: usize,
    },
    /// A rank has aborted, and so all do.
    #[error("rank {rank} gave up: {reason}")]
    Aborted {
        /// The rank.
        rank: usize,
        /// Its reason.
        reason: String,
    },
    /// Something of the devices did not end within the deadline.
    #[error("it did not end within {} s", .within.as_secs_f64())]
    Stuck {
        /// The deadline.
        within: Duration,
    },
    /// The communicator itself failed.
    #[error("{0}")]
    Failed(String),
}

/// What connects all ranks, as one of them has it.
///
/// Messages are bytes. Sending never waits for the receiver; receiving waits for a deadline at most.
pub trait Communicator: Send {
    /// Returns the rank, counted from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Sends a message to a rank, which may be the sender's own.
    fn send(&mut self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError>;

    /// Returns the message of a tag from a rank, once it is there.
    ///
    /// # Errors
    ///
    /// [`CommError`] after the deadline, or as soon as the rank is gone or any rank has aborted.
    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, CommError>;

    /// Returns whether the ranks share an address space, so that they can export each other what lies in it.
    fn shares_memory(&self) -> bool {
        false
    }

    /// Sends handles as [`Communicator::send`] sends bytes.
    ///
    /// # Errors
    ///
    /// Those of [`Communicator::send`]; [`CommError::Failed`] where ranks do not share memory and a handle is no [`IpcHandle`].
    fn export(&mut self, to: usize, tag: Tag, handles: Vec<ExportedHandle>) -> Result<(), CommError> {
        let apart = || "the ranks do not share memory, so only IPC handles can be exported".to_owned();
        let bytes = handles::packed(handles).ok_or_else(|| CommError::Failed(apart()))?;
        self.send(to, tag, bytes)
    }

    /// Returns the handles of a tag as [`Communicator::receive`] returns bytes.
    fn import(&mut self, from: usize, tag: Tag) -> Result<Vec<ExportedHandle>, CommError> {
        let bytes = self.receive(from, tag)?;
        handles::unpacked(&bytes).ok_or_else(|| CommError::Failed(format!("rank {from} lent something else")))
    }

    /// Checks whether a rank may keep waiting for joint work that the devices began at `since`.
    ///
    /// # Errors
    ///
    /// [`CommError`] after the deadline, or as soon as any rank is gone or has aborted.
    fn check(&mut self, since: Instant) -> Result<(), CommError>;

    /// Aborts all ranks, for a reason: every wait, current or later, returns [`CommError::Aborted`].
    fn abort(&mut self, reason: &str);

    /// Returns the bytes that each rank gives, in the order of ranks. Each rank calls it with the same rounds in order.
    fn all_gather(&mut self, round: u64, own: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let (rank, size, tag) = (self.rank(), self.size(), Tag { round, what: What::Gathered });
        for to in (0..size).filter(|&to| to != rank) {
            self.send(to, tag, own.to_vec())?;
        }
        let part = |from| if from == rank { Ok(own.to_vec()) } else { self.receive(from, tag) };
        (0..size).map(part).collect()
    }

    /// Sends bytes to some ranks, and returns those that come from others: of each as many as `received` says, in its order
    /// (MPI's `neighbor_alltoallv`). Each rank calls it with the same rounds in order.
    ///
    /// # Errors
    ///
    /// The error of one message, after what names the message: `to rank 1`, `from rank 2`.
    fn neighbour_exchange(
        &mut self,
        round: u64,
        sent: Vec<(usize, Vec<u8>)>,
        received: &[(usize, usize)],
    ) -> Result<Vec<Vec<u8>>, (String, CommError)> {
        let tag = Tag { round, what: What::Entries };
        for (to, bytes) in sent {
            self.send(to, tag, bytes).map_err(|error| (format!("to rank {to}"), error))?;
        }
        let receive = |&(from, expected): &(usize, usize)| match self.receive(from, tag) {
            Ok(bytes) if bytes.len() == expected => Ok(bytes),
            Ok(bytes) => {
                let reason = format!("the message has {} bytes in place of {expected}", bytes.len());
                Err((format!("from rank {from}"), CommError::Failed(reason)))
            }
            Err(error) => Err((format!("from rank {from}"), error)),
        };
        received.iter().map(receive).collect()
    }

    /// Returns when all ranks have called it with this round, which is one of [`Communicator::all_gather`]'s.
    fn barrier(&mut self, round: u64) -> Result<(), CommError> {
        self.all_gather(round, &[]).map(drop)
    }
}
