//! The loops of a program: what they read and write, which wait for which, and what a group of them moves.

use abide_core::program::ordered;
use abide_core::{Error, Result};

use super::graph::{Access, Graph, Holds, Kind};
use super::set::{MOST, Set};

/// Bytes of a value.
const VALUE: u64 = 8;

/// The most arrays of a group where a device's shared memory and rates are not known.
pub const USUAL_ARRAYS: usize = 12;

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
    /// The loops that share an array with each loop, in a way that lets them be fused.
    neighbours: Vec<Set>,
    /// What each loop reduces to: no other loop of its group touches that.
    results: Vec<Set>,
    /// The loops over cells; others move nothing.
    moving: Set,
    /// The arrays of cells; others take no room and move nothing.
    sized: Set,
    /// The arrays whose last value stays.
    kept: Set,
    value_bytes: u64,
    capacity: usize,
}

impl Loops {
    /// Gathers loops. `capacity` is the most arrays that a group of several loops may touch.
    ///
    /// A loop waits for an earlier one that writes what it reads or writes, or reads what it writes: arrays are not
    /// renamed. All arrays are kept.
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
        let reads = loops.iter().map(|own| own.reads.iter().copied().collect()).collect();
        let writes = loops.iter().map(|own| own.writes.iter().copied().collect()).collect();
        Loops::with(reads, writes, arrays, capacity)
    }

    /// Gathers the loops of a program's graph.
    ///
    /// Loops at points, and those of scalars, move nothing. Neither does an array that holds a scalar.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where there is no loop.
    pub fn of(graph: &Graph, capacity: usize) -> Result<Loops> {
        let all = 0..graph.loops.len();
        let arrays = |own: usize, counts: &dyn Fn(&Access) -> bool| -> Set {
            graph.loops[own].accesses.iter().filter(|access| counts(access)).map(|a| a.array).collect()
        };
        // What is written in part is read as well: the rest of it stays.
        let reads: Vec<Set> =
            all.clone().map(|own| arrays(own, &|access| access.reads.is_some() || access.keeps)).collect();
        let writes: Vec<Set> = all.clone().map(|own| arrays(own, &|access| access.writes)).collect();
        let is = |own: &usize, kinds: &[Kind]| kinds.contains(&graph.loops[*own].kind);
        let mut loops = Loops::with(reads, writes, graph.arrays.len(), capacity)?;
        for own in all.clone() {
            loops.neighbours[own] =
                all.clone().filter(|&other| other != own && graph.are_kin(own, other)).collect();
            if is(&own, &[Kind::Reduce]) {
                loops.results[own] = loops.writes[own];
            }
        }
        loops.moving = all.filter(|own| is(own, &[Kind::Update, Kind::Reduce])).collect();
        let arrays = || graph.arrays.iter().enumerate();
        loops.sized = arrays().filter(|(_, array)| array.holds != Holds::Scalar).map(|(at, _)| at).collect();
        loops.kept = arrays().filter(|(_, array)| array.is_kept).map(|(at, _)| at).collect();
        loops.value_bytes = graph.value_bytes as u64;
        Ok(loops)
    }

    fn with(reads: Vec<Set>, writes: Vec<Set>, arrays: usize, capacity: usize) -> Result<Loops> {
        let count = reads.len();
        if count == 0 {
            return Err(Error::limit("loops of a program to be fused", 0, "at least 1", "give loops"));
        }
        let touched: Vec<Set> = reads.iter().zip(&writes).map(|(reads, writes)| reads.or(writes)).collect();
        let all = 0..count;
        let loops_of =
            |sets: &[Set], array: usize| all.clone().filter(|&own| sets[own].has(array)).collect::<Set>();
        let waits = |later: usize, earlier: usize| {
            writes[earlier].meets(&touched[later]) || reads[earlier].meets(&writes[later])
        };
        let direct: Vec<Set> = all
            .clone()
            .map(|earlier| (earlier + 1..count).filter(|&later| waits(later, earlier)).collect())
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
            results: vec![Set::default(); count],
            moving: all.collect(),
            sized: (0..arrays).collect(),
            kept: (0..arrays).collect(),
            value_bytes: VALUE,
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
        (0..self.len()).map(|own| self.traffic(&Set::of(own))).sum()
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
        let all: Vec<(Set, Set)> = groups.iter().map(|group| (*group, self.next_of(group))).collect();
        let found = ordered(all, |(later, _), (_, next)| next.meets(later), |(group, _)| group.first())?;
        Some(found.into_iter().map(|(group, _)| group.iter().collect()).collect())
    }

    /// Returns the bytes that a group moves for each cell. `None` where the group must not be ([`Loops::may_be`]).
    pub(super) fn bytes(&self, group: &Set) -> Option<u64> {
        self.may_be(group).then(|| self.traffic(group))
    }

    /// Returns whether loops can be a group: a single one always, several where they touch no more arrays than fit, are
    /// joined by arrays that they share, and where none touches what another reduces all cells to.
    pub fn may_be(&self, group: &Set) -> bool {
        let touched = || group.iter().fold(Set::default(), |set, own| set.or(&self.touched[own]));
        let is_apart = |own: usize| {
            let results = &self.results[own];
            results.is_empty()
                || group.iter().all(|other| other == own || !self.touched[other].meets(results))
        };
        group.len() == 1
            || touched().and(&self.sized).len() <= self.capacity
                && group.iter().all(is_apart)
                && self.is_joined(group)
    }

    /// Returns the bytes that a group moves for each cell: arrays that it reads before it writes them, and arrays that
    /// it writes and whose last value is read outside or stays.
    pub fn traffic(&self, group: &Set) -> u64 {
        let (loaded, stored) = self.moved(group);
        self.value_bytes * (loaded.len() + stored.len()) as u64
    }

    /// Returns the arrays that a group loads, and those that it stores.
    pub fn moved(&self, group: &Set) -> (Set, Set) {
        let (mut loaded, mut written) = (Set::default(), Set::default());
        for own in group.and(&self.moving).iter() {
            loaded = loaded.or(&self.reads[own].without(&written));
            written = written.or(&self.writes[own]);
        }
        let stored = written.and(&self.sized).iter().filter(|&array| self.is_needed(array, group)).collect();
        (loaded.and(&self.sized), stored)
    }

    /// Returns whether a value that a group writes last is read outside before it is written again, or stays.
    fn is_needed(&self, array: usize, group: &Set) -> bool {
        let Some(last) = self.writers[array].and(group).last() else { return false };
        let later = |loops: &Set| loops.above(last).without(group);
        let reader = later(&self.readers[array]).first();
        match later(&self.writers[array]).first() {
            Some(rewritten) => reader.is_some_and(|reader| reader <= rewritten),
            None => reader.is_some() || self.kept.has(array),
        }
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
