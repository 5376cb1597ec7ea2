//! What processes send each other: bytes, and after them what they are for.

use abide_core::communicator::{Tag, What};
use abide_core::slabs::Side;

use super::wire::MOST;

/// Bytes at a message's end that say what it is for: channel, kind, round or number, bytes that are still to come.
const TRAILER: usize = 32;

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message of a communicator.
    Tagged(Tag),
    /// The sender's end of the channel is no more.
    Gone,
    /// The sender has aborted this channel; the bytes are its reason.
    Aborted,
    /// The sender's process ends, with an exit status; the bytes are its reason where it failed.
    Closing {
        /// The exit status.
        status: u8,
        /// Whether it failed only because another process had.
        follows: bool,
    },
}

/// A message, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub channel: u64,
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

impl Message {
    /// Returns the MPI messages that carry this message: one, unless it exceeds the length of an MPI message.
    pub fn messages(self) -> Vec<Vec<u8>> {
        self.split(MOST - TRAILER)
    }

    fn split(self, most: usize) -> Vec<Vec<u8>> {
        let (code, number) = match self.kind {
            Kind::Tagged(Tag { round, what: What::Planes(Side::Low) }) => (0, round),
            Kind::Tagged(Tag { round, what: What::Planes(Side::High) }) => (1, round),
            Kind::Tagged(Tag { round, what: What::Gathered }) => (2, round),
            Kind::Gone => (3, 0),
            Kind::Aborted => (4, 0),
            Kind::Tagged(Tag { round, what: What::Taken(Side::Low) }) => (6, round),
            Kind::Tagged(Tag { round, what: What::Taken(Side::High) }) => (7, round),
            Kind::Tagged(Tag { round, what: What::Entries }) => (8, round),
            Kind::Closing { status, follows } => (5, u64::from(status) + (u64::from(follows) << 8)),
        };
        let close = |mut bytes: Vec<u8>, left: usize| {
            for number in [self.channel, code, number, left as u64] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            bytes
        };
        if self.bytes.len() <= most {
            return vec![close(self.bytes, 0)];
        }
        let parts = self.bytes.chunks(most).enumerate();
        parts.map(|(at, part)| close(part.to_vec(), self.bytes.len() - at * most - part.len())).collect()
    }
}

/// The parts of a message that has not come whole, from one sender. Its parts come in order, and nothing between them.
#[derive(Default)]
pub struct Begun(Vec<u8>);

impl Begun {
    /// Adds a message, and returns the message where this was its last part.
    pub fn add(&mut self, mut bytes: Vec<u8>) -> Result<Option<Message>, String> {
        let Some(at) = bytes.len().checked_sub(TRAILER) else {
            return Err(format!("a message of {} bytes came, which is none of Abide's", bytes.len()));
        };
        let mut numbers = [0_u64; 4];
        for (number, bytes) in numbers.iter_mut().zip(bytes[at..].as_chunks::<8>().0) {
            *number = u64::from_le_bytes(*bytes);
        }
        bytes.truncate(at);
        let [channel, code, number, left] = numbers;
        let whole = match self.0.is_empty() {
            true => bytes,
            false => {
                self.0.extend_from_slice(&bytes);
                std::mem::take(&mut self.0)
            }
        };
        if left > 0 {
            self.0 = whole;
            return Ok(None);
        }
        let tagged = |what| Kind::Tagged(Tag { round: number, what });
        let kind = match code {
            0 => tagged(What::Planes(Side::Low)),
            1 => tagged(What::Planes(Side::High)),
            2 => tagged(What::Gathered),
            3 => Kind::Gone,
            4 => Kind::Aborted,
            5 => Kind::Closing { status: (number & 0xff) as u8, follows: number >> 8 != 0 },
            6 => tagged(What::Taken(Side::Low)),
            7 => tagged(What::Taken(Side::High)),
            8 => tagged(What::Entries),
            _ => {
                return Err(
                    "a message came that this version of Abide does not know: start one version".to_owned()
                );
            }
        };
        Ok(Some(Message { channel, kind, bytes: whole }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_back_whole_also_in_parts() {
        let tag = |what| Kind::Tagged(Tag { round: 1 << 40, what });
        let kinds = [
            tag(What::Planes(Side::Low)),
            tag(What::Planes(Side::High)),
            tag(What::Gathered),
            tag(What::Taken(Side::Low)),
            tag(What::Taken(Side::High)),
            tag(What::Entries),
            Kind::Gone,
            Kind::Aborted,
            Kind::Closing { status: 130, follows: false },
            Kind::Closing { status: 0, follows: true },
        ];
        let mut begun = Begun::default();
        for (channel, kind) in kinds.into_iter().enumerate() {
            for length in [0, 1, 6, 7, 13, 14, 15] {
                let bytes: Vec<u8> = (0..length).collect();
                let message = Message { channel: channel as u64, kind, bytes };
                let messages = message.clone().split(7);
                assert_eq!(messages.len(), usize::from(length).div_ceil(7).max(1));
                let mut come: Vec<_> = messages.into_iter().map(|part| begun.add(part).unwrap()).collect();
                assert_eq!(come.pop(), Some(Some(message)));
                assert!(come.iter().all(Option::is_none));
            }
        }
        assert!(begun.add(vec![0; 9]).is_err());
    }
}
