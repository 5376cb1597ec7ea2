//! What a solve sends over a rank's endpoint: entries of vectors, and the first rank's word.

use std::time::Instant;

use abide_core::backend::NeighbourExchange;
use abide_core::{Array, DType, Result};

use crate::communicator::{CommError, Communicator, Tag, What};
use crate::endpoint::{Endpoint, SharedEndpoint, array};
use crate::rank::RankFailure;

impl NeighbourExchange for SharedEndpoint {
    fn swap(
        &mut self,
        dtype: DType,
        given: Vec<(usize, Array)>,
        taken: &[(usize, usize)],
    ) -> Result<Vec<Array>> {
        let begun = Instant::now();
        let mut endpoint = self.lock();
        endpoint.rounds += 1;
        let swapped = endpoint.swap(dtype, given, taken);
        endpoint.seconds += begun.elapsed().as_secs_f64();
        swapped.map_err(|stopped| endpoint.keep(stopped))
    }
}

impl Endpoint {
    fn swap(
        &mut self,
        dtype: DType,
        given: Vec<(usize, Array)>,
        taken: &[(usize, usize)],
    ) -> Result<Vec<Array>, RankFailure> {
        let tag = Tag { round: self.rounds, what: What::Entries };
        let stopped = |endpoint: &Endpoint, way: &str, rank: usize, broken: CommError| {
            endpoint.stopped(
                &format!("exchange {}", tag.round),
                &format!("entries of a vector {way} rank {rank}"),
                broken,
            )
        };
        for (to, values) in given {
            let sent = self.communicator.send(to, tag, values.as_bytes().to_vec());
            sent.map_err(|broken| stopped(self, "to", to, broken))?;
        }
        let mut come = Vec::with_capacity(taken.len());
        for &(from, values) in taken {
            let bytes = self.communicator.receive(from, tag).and_then(|bytes| match values * dtype.bytes() {
                expected if bytes.len() == expected => Ok(bytes),
                expected => {
                    let reason = format!("the message has {} bytes in place of {expected}", bytes.len());
                    Err(CommError::Failed(reason))
                }
            });
            come.push(array(dtype, &bytes.map_err(|broken| stopped(self, "from", from, broken))?));
        }
        Ok(come)
    }
}

impl SharedEndpoint {
    /// Connects the rank with the others anew, and discards the former state of the endpoint.
    pub fn connect(&self, backend: &'static str, end: Box<dyn Communicator>) {
        *self.lock() = Endpoint::new(backend, end);
    }

    /// Returns the word of the first rank, for which all others wait; `None` where it did not arrive. The endpoint then
    /// holds the error.
    pub fn first_word(&self, own: u8) -> Option<u8> {
        let begun = Instant::now();
        let mut endpoint = self.lock();
        let word = endpoint.first_word(own);
        endpoint.seconds += begun.elapsed().as_secs_f64();
        match word {
            Ok(word) => Some(word),
            Err(broken) => {
                let when = format!("gather {}", endpoint.gathers - 1);
                let stopped = endpoint.stopped(&when, "whether to go on, from rank 0", broken);
                endpoint.stopped.get_or_insert(stopped);
                None
            }
        }
    }
}

impl Endpoint {
    fn first_word(&mut self, own: u8) -> Result<u8, CommError> {
        // A gather of one rank's part: all ranks count it.
        let tag = Tag { round: self.gathers, what: What::Gathered };
        self.gathers += 1;
        if self.communicator.rank() > 0 {
            return match self.communicator.receive(0, tag)?[..] {
                [word] => Ok(word),
                ref bytes => Err(CommError::Failed(format!("the word of rank 0 has {} bytes", bytes.len()))),
            };
        }
        (1..self.communicator.size()).try_for_each(|to| self.communicator.send(to, tag, vec![own]))?;
        Ok(own)
    }
}
