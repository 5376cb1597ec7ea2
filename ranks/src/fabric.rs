//! What ranks need to reach each other.

use std::time::{Duration, Instant};

use abide_core::backend::{Loan, Parcel};
use abide_core::slabs::Side;

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
    /// The word that the planes lent at this side of the receiver were taken.
    Taken(Side),
    /// A rank's part of what all ranks gather.
    Gathered,
    /// Entries of a vector that the receiver's rows read.
    Entries,
}

/// The reason why a fabric did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
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
    /// A rank has given up, and so all do.
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
    /// The fabric itself failed.
    #[error("{0}")]
    Failed(String),
}

/// Why something cannot be lent.
const APART: &str = "the ranks do not share memory, so only parcels can be lent";

/// A rank's end of what connects all ranks.
///
/// Messages are bytes. Sending never waits for the receiver; receiving waits for a deadline at most.
pub trait Fabric: Send {
    /// Returns the rank, counted from 0.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Sends a message to a rank, which may be the sender's own.
    fn send(&mut self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), Broken>;

    /// Returns the message of a tag from a rank, once it is there.
    ///
    /// # Errors
    ///
    /// [`Broken`] after the deadline, or as soon as the rank is gone or any rank has given up.
    fn receive(&mut self, from: usize, tag: Tag) -> Result<Vec<u8>, Broken>;

    /// Returns whether the ranks share an address space, so that they can lend each other what lies in it.
    fn shares_memory(&self) -> bool {
        false
    }

    /// Sends loans as [`Fabric::send`] sends bytes.
    ///
    /// # Errors
    ///
    /// Those of [`Fabric::send`]; [`Broken::Failed`] where ranks do not share memory and a loan is no [`Parcel`].
    fn lend(&mut self, to: usize, tag: Tag, loans: Vec<Loan>) -> Result<(), Broken> {
        let bytes = packed(loans).ok_or_else(|| Broken::Failed(APART.to_owned()))?;
        self.send(to, tag, bytes)
    }

    /// Returns the loans of a tag as [`Fabric::receive`] returns bytes.
    fn borrow(&mut self, from: usize, tag: Tag) -> Result<Vec<Loan>, Broken> {
        let bytes = self.receive(from, tag)?;
        unpacked(&bytes).ok_or_else(|| Broken::Failed(format!("rank {from} lent something else")))
    }

    /// Returns whether a rank may go on waiting for what devices have done together since then.
    ///
    /// # Errors
    ///
    /// [`Broken`] after the deadline, or as soon as any rank is gone or has given up.
    fn check(&mut self, since: Instant) -> Result<(), Broken>;

    /// Tells all ranks to give up, and why: whoever waits, or begins to, gets [`Broken::Aborted`].
    fn abort(&mut self, reason: &str);

    /// Returns the bytes that each rank gives, in the order of ranks. Each rank calls it with the same rounds in order.
    fn all_gather(&mut self, round: u64, own: &[u8]) -> Result<Vec<Vec<u8>>, Broken> {
        let (rank, size, tag) = (self.rank(), self.size(), Tag { round, what: What::Gathered });
        for to in (0..size).filter(|&to| to != rank) {
            self.send(to, tag, own.to_vec())?;
        }
        let part = |from| if from == rank { Ok(own.to_vec()) } else { self.receive(from, tag) };
        (0..size).map(part).collect()
    }

    /// Returns when all ranks have called it with this round, which is one of [`Fabric::all_gather`]'s.
    fn barrier(&mut self, round: u64) -> Result<(), Broken> {
        self.all_gather(round, &[]).map(drop)
    }
}

/// Returns parcels as one message, each behind its length; `None` where another loan is among them.
fn packed(loans: Vec<Loan>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for loan in loans {
        let Parcel(own) = *loan.downcast::<Parcel>().ok()?;
        bytes.extend_from_slice(&(own.len() as u64).to_le_bytes());
        bytes.extend(own);
    }
    Some(bytes)
}

/// Returns the parcels of a message; `None` where it is none of theirs.
fn unpacked(mut bytes: &[u8]) -> Option<Vec<Loan>> {
    let mut loans: Vec<Loan> = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        let (own, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        loans.push(Box::new(Parcel(own.to_vec())));
        bytes = rest;
    }
    Some(loans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parcels_come_back_as_they_were_packed() {
        let parcels = [vec![], vec![7; 300], vec![1, 2, 3]].map(Parcel);
        let loans = |parcels: &[Parcel]| parcels.iter().map(|own| Box::new(own.clone()) as Loan).collect();
        let bytes = packed(loans(&parcels)).unwrap();
        let back = unpacked(&bytes).unwrap().into_iter().map(|loan| *loan.downcast::<Parcel>().unwrap());
        assert!(back.eq(parcels));
        assert!(unpacked(&bytes[..bytes.len() - 1]).is_none() && unpacked(&[0; 7]).is_none());
        assert!(packed(vec![Box::new(Parcel(vec![1])), Box::new(3_u32)]).is_none());
    }
}
