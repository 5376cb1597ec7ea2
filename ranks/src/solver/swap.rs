//! What a solve sends over a rank's line: entries of vectors, and the first rank's word.

use std::time::Instant;

use abide_core::solver::Swap;
use abide_core::{Array, DType, Result};

use crate::fabric::{Broken, Fabric, Tag, What};
use crate::line::{Line, SharedLine, array};
use crate::rank::Stopped;

impl Swap for SharedLine {
    fn swap(
        &mut self,
        dtype: DType,
        given: Vec<(usize, Array)>,
        taken: &[(usize, usize)],
    ) -> Result<Vec<Array>> {
        let begun = Instant::now();
        let mut line = self.lock();
        line.rounds += 1;
        let swapped = line.swap(dtype, given, taken);
        line.seconds += begun.elapsed().as_secs_f64();
        swapped.map_err(|stopped| line.keep(stopped))
    }
}

impl Line {
    fn swap(
        &mut self,
        dtype: DType,
        given: Vec<(usize, Array)>,
        taken: &[(usize, usize)],
    ) -> Result<Vec<Array>, Stopped> {
        let tag = Tag { round: self.rounds, what: What::Entries };
        let stopped = |line: &Line, way: &str, rank: usize, broken: Broken| {
            line.stopped(
                &format!("exchange {}", tag.round),
                &format!("entries of a vector {way} rank {rank}"),
                broken,
            )
        };
        for (to, values) in given {
            let sent = self.fabric.send(to, tag, values.as_bytes().to_vec());
            sent.map_err(|broken| stopped(self, "to", to, broken))?;
        }
        let mut come = Vec::with_capacity(taken.len());
        for &(from, values) in taken {
            let bytes = self.fabric.receive(from, tag).and_then(|bytes| match values * dtype.bytes() {
                expected if bytes.len() == expected => Ok(bytes),
                expected => {
                    let reason = format!("the message has {} bytes in place of {expected}", bytes.len());
                    Err(Broken::Failed(reason))
                }
            });
            come.push(array(dtype, &bytes.map_err(|broken| stopped(self, "from", from, broken))?));
        }
        Ok(come)
    }
}

impl SharedLine {
    /// Connects the rank with the others anew. What went over the line before is forgotten.
    pub fn connect(&self, backend: &'static str, end: Box<dyn Fabric>) {
        *self.lock() = Line::new(backend, end);
    }

    /// Returns the word of the first rank, for which all others wait; `None` where it did not come, which the line then
    /// tells.
    pub fn first_word(&self, own: u8) -> Option<u8> {
        let begun = Instant::now();
        let mut line = self.lock();
        let word = line.first_word(own);
        line.seconds += begun.elapsed().as_secs_f64();
        match word {
            Ok(word) => Some(word),
            Err(broken) => {
                let when = format!("gather {}", line.gathers - 1);
                let stopped = line.stopped(&when, "whether to go on, from rank 0", broken);
                line.stopped.get_or_insert(stopped);
                None
            }
        }
    }
}

impl Line {
    fn first_word(&mut self, own: u8) -> Result<u8, Broken> {
        // A gather of one rank's part: all ranks count it.
        let tag = Tag { round: self.gathers, what: What::Gathered };
        self.gathers += 1;
        if self.fabric.rank() > 0 {
            return match self.fabric.receive(0, tag)?[..] {
                [word] => Ok(word),
                ref bytes => Err(Broken::Failed(format!("the word of rank 0 has {} bytes", bytes.len()))),
            };
        }
        (1..self.fabric.size()).try_for_each(|to| self.fabric.send(to, tag, vec![own]))?;
        Ok(own)
    }
}
