//! The loops of a program: what they read and write, which wait for which, and what a group of them moves.

use super::set::{MOST, Set};
use crate::error::{Error, Result};

/// Bytes of a value.
const VALUE: u64 = 8;

/// A loop over the cells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loop {
    /// The numbers of the arrays that it reads.
    pub reads: Vec<usize>,
    /// The numbers of the arrays that it writes.
    pub writes: Vec<usize>,
}

/// The loops of a program in their order, and the arrays that a fused kernel can hold on the chip.
#[derive(Debug, Clone)]
pub struct Loops {
    /// The arrays that each loop reads, writes, and either.
    reads: Vec<Set>,
    writes: Vec<Set>,
    touched: Vec<Set>,
    /// The loops that read and write each array.
    readers: Vec<Set>,
    writers: Vec<Set>,
    /// The loops that wait for each loop, but those that wait for one of them as well.
    next: Vec<Set>,
    /// The loops that share an array with each loop.
    neighbours: Vec<Set>,
    capacity: usize,
}

impl Loops {
    /// Gathers loops. `capacity` is the most arrays that a group of several loops may touch.
    ///
    /// A loop waits for an earlier one that writes what it reads or writes, or reads what it writes: arrays are not
    /// renamed.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] beyond [`MOST`] loops or arrays, and where there is no loop.
    pub fn new(loops: &[Loop], capacity: usize) -> Result<Loops> {
        let arrays =
            loops.iter().flat_map(|own| own.reads.iter().chain(&own.writes)).max().map_or(0, |most| most + 1);
        for (what, asked) in
            [("loops of a program to be fused", loops.len()), ("arrays of a program to be fused", arrays)]
        {
            if asked > MOST {
                return Err(Error::limit(what, asked, MOST, "fuse the program in parts"));
            }
        }
        if loops.is_empty() {
            return Err(Error::limit("loops of a program to be fused", 0, "at least 1", "give loops"));
        }
        let reads: Vec<Set> = loops.iter().map(|own| own.reads.iter().copied().collect()).collect();
        let writes: Vec<Set> = loops.iter().map(|own| own.writes.iter().copied().collect()).collect();
        let touched: Vec<Set> = reads.iter().zip(&writes).map(|(reads, writes)| reads.or(writes)).collect();
        let all = 0..loops.len();
        let loops_of =
            |sets: &[Set], array: usize| all.clone().filter(|&own| sets[own].has(array)).collect::<Set>();
        let waits = |later: usize, earlier: usize| {
            writes[earlier].meets(&touched[later]) || reads[earlier].meets(&writes[later])
        };
        let direct: Vec<Set> = all
            .clone()
            .map(|earlier| (earlier + 1..loops.len()).filter(|&later| waits(later, earlier)).collect())
            .collect();
        // What waits for a loop that waits is left out: it waits all the same.
        let mut reached = direct.clone();
        for earlier in all.clone().rev() {
            reached[earlier] =
                direct[earlier].iter().fold(direct[earlier], |set, later| set.or(&reached[later]));
        }
        let next = direct
            .iter()
            .map(|own| own.iter().fold(*own, |set, later| set.without(&reached[later])))
            .collect();
        let neighbours = all
            .clone()
            .map(|own| {
                all.clone().filter(|&other| other != own && touched[own].meets(&touched[other])).collect()
            })
            .collect();
        Ok(Loops {
            readers: (0..arrays).map(|array| loops_of(&reads, array)).collect(),
            writers: (0..arrays).map(|array| loops_of(&writes, array)).collect(),
            reads,
            writes,
            touched,
            next,
            neighbours,
            capacity,
        })
    }

    /// Returns the number of loops.
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Returns whether there is no loop, which never is.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Returns the bytes that the loops move one by one, for each cell.
    pub fn unfused(&self) -> u64 {
        (0..self.len()).filter_map(|own| self.bytes(&Set::of(own))).sum()
    }

    /// Returns the loops that share an array with a loop.
    pub(super) fn neighbours(&self, own: usize) -> &Set {
        &self.neighbours[own]
    }

    /// Returns the loops, of whatever group, that wait for one of a group directly.
    pub(super) fn next_of(&self, group: &Set) -> Set {
        group.iter().fold(Set::default(), |set, own| set.or(&self.next[own]))
    }

    /// Returns groups in an order in which they can run, of several the one with the first loop before the others;
    /// `None` if there is no order.
    pub(super) fn ordered(&self, groups: &[Set]) -> Option<Vec<Vec<usize>>> {
        let mut left: Vec<(Set, Set)> = groups.iter().map(|group| (*group, self.next_of(group))).collect();
        let mut ordered = Vec::new();
        while !left.is_empty() {
            let is_free = |group: &Set| left.iter().all(|(other, next)| other == group || !next.meets(group));
            let ready =
                (0..left.len()).filter(|&at| is_free(&left[at].0)).min_by_key(|&at| left[at].0.first())?;
            ordered.push(left.swap_remove(ready).0.iter().collect());
        }
        Some(ordered)
    }

    /// Returns the bytes that a group moves for each cell: arrays that it reads before it writes them, and arrays that
    /// it writes and whose last value is read outside or is the program's. `None` where several loops touch more
    /// arrays than fit, or are not joined by arrays that they share.
    pub(super) fn bytes(&self, group: &Set) -> Option<u64> {
        let (mut loaded, mut written, mut touched) = (Set::default(), Set::default(), Set::default());
        for own in group.iter() {
            loaded = loaded.or(&self.reads[own].without(&written));
            written = written.or(&self.writes[own]);
            touched = touched.or(&self.touched[own]);
        }
        if group.len() > 1 && (touched.len() > self.capacity || !self.is_joined(group)) {
            return None;
        }
        let stored = written.iter().filter(|&array| self.is_needed(array, group)).count();
        Some(VALUE * (loaded.len() + stored) as u64)
    }

    /// Returns whether a value that a group writes last is read outside before it is written again, or stays.
    fn is_needed(&self, array: usize, group: &Set) -> bool {
        let Some(last) = self.writers[array].and(group).last() else { return false };
        let later = |loops: &Set| loops.above(last).without(group);
        let Some(rewritten) = later(&self.writers[array]).first() else { return true };
        later(&self.readers[array]).first().is_some_and(|reader| reader <= rewritten)
    }

    /// Returns whether all loops of a group are joined by arrays that they share.
    fn is_joined(&self, group: &Set) -> bool {
        let Some(first) = group.first() else { return true };
        let (mut joined, mut edge) = (Set::of(first), Set::of(first));
        while let Some(own) = edge.first() {
            edge.remove(own);
            let fresh = self.neighbours[own].and(group).without(&joined);
            joined = joined.or(&fresh);
            edge = edge.or(&fresh);
        }
        joined == *group
    }
}
