//! The data-dependency graph of a program: its loops, its arrays, and which loop reads and writes which.

use super::operations::Operations;
use super::set::Set;

/// The loops of a program in their order, and the arrays that they touch.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// The program's name.
    pub name: String,
    /// The number of axes.
    pub dimensions: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// The loops, in program order.
    pub loops: Vec<Node>,
    /// The arrays; in a renamed graph an array is one value of a name.
    pub arrays: Vec<Array>,
    /// Whether each value of a name is an array of its own.
    pub is_renamed: bool,
}

/// A loop: a stage of the program, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The stage's name.
    pub name: String,
    /// The number of the stage in the program.
    pub stage: usize,
    /// The results of the stage that the loop computes, by their places in the formula's outputs.
    pub outputs: Vec<usize>,
    /// The kind of loop.
    pub kind: Kind,
    /// The arrays that it touches, each once.
    pub accesses: Vec<Access>,
    /// Its arithmetic for each cell.
    pub operations: Operations,
}

/// The kind of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// New values of fields and temporaries, over all cells.
    Update,
    /// New values at a few points.
    Points,
    /// A reduction of all cells to a scalar.
    Reduce,
    /// A scalar from scalars; no cell is touched.
    Scalar,
}

/// A loop's use of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The number of the array.
    pub array: usize,
    /// The cells around its own that the loop reads; `None` where it reads none.
    pub reads: Option<Reach>,
    /// Whether the loop writes the array.
    pub writes: bool,
    /// Whether values stay that the loop does not write, so that it waits for those who wrote them.
    pub keeps: bool,
}

/// The cells around its own that a loop reads of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// The furthest below along each of the three axes, 0 at most.
    pub low: [i32; 3],
    /// The furthest above, 0 at least.
    pub high: [i32; 3],
    /// The distinct taps.
    pub taps: usize,
}

impl Reach {
    /// Adds a tap at an offset.
    pub(super) fn take(&mut self, offset: [i32; 3]) {
        for axis in 0..3 {
            self.low[axis] = self.low[axis].min(offset[axis]);
            self.high[axis] = self.high[axis].max(offset[axis]);
        }
        self.taps += 1;
    }

    /// Returns whether only the cell itself is read.
    pub fn is_point(&self) -> bool {
        (self.low, self.high) == ([0; 3], [0; 3])
    }
}

/// What an array holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A field, which lives from step to step.
    Field,
    /// A temporary, which lives inside a step.
    Temporary,
    /// A computed scalar.
    Scalar,
}

/// An array, or one value of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// The name of the field, temporary or scalar.
    pub name: String,
    /// What it holds.
    pub holds: Holds,
    /// The number of loops that had written the name before, where values are renamed; else 0.
    pub version: usize,
    /// Whether it has a value before the first loop, which one of the loops reads.
    pub is_given: bool,
    /// Whether its last value is needed after the last loop.
    pub is_kept: bool,
}

impl Array {
    /// Returns the name, with the number of the value behind a dot unless it is 0.
    pub fn label(&self) -> String {
        match self.version {
            0 => self.name.clone(),
            version => format!("{}.{version}", self.name),
        }
    }
}

/// How loops use an array (§II-B of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// Only read.
    ReadOnly,
    /// Written by one loop, or only in part by others, and read.
    ReadWrite,
    /// Written anew by several loops in turn, and read: its values can be arrays of their own.
    Expandable,
    /// Written, and read by none.
    WriteOnly,
}

impl Use {
    /// All uses.
    pub const ALL: [Use; 4] = [Use::ReadOnly, Use::ReadWrite, Use::Expandable, Use::WriteOnly];

    /// Returns the use in words.
    pub fn name(self) -> &'static str {
        match self {
            Use::ReadOnly => "read-only",
            Use::ReadWrite => "read-write",
            Use::Expandable => "expandable",
            Use::WriteOnly => "write-only",
        }
    }
}

impl Graph {
    /// Returns how a loop uses an array; `None` where it does not.
    pub fn access(&self, own: usize, array: usize) -> Option<&Access> {
        self.loops[own].accesses.iter().find(|access| access.array == array)
    }

    /// Returns the loops that touch an array, in their order.
    pub fn touching(&self, array: usize) -> impl Iterator<Item = (usize, &Access)> {
        (0..self.loops.len()).filter_map(move |own| Some((own, self.access(own, array)?)))
    }

    /// Returns the use of an array.
    pub fn use_of(&self, array: usize) -> Use {
        let is_read = self.touching(array).any(|(_, access)| access.reads.is_some());
        let written = self.touching(array).filter(|(_, access)| access.writes);
        let (all, whole) =
            written.fold((0, 0), |(all, whole), (_, access)| (all + 1, whole + usize::from(!access.keeps)));
        match (is_read, all, whole) {
            (_, 0, _) => Use::ReadOnly,
            (false, ..) => Use::WriteOnly,
            (true, _, 2..) => Use::Expandable,
            (true, ..) => Use::ReadWrite,
        }
    }

    /// Returns the arrays that several loops touch, each with those loops: its sharing set K(D).
    pub fn sharing(&self) -> Vec<(usize, Vec<usize>)> {
        let sets = (0..self.arrays.len())
            .map(|array| (array, self.touching(array).map(|(own, _)| own).collect::<Vec<_>>()));
        sets.filter(|(_, loops)| loops.len() > 1).collect()
    }

    /// Returns the threads that read the same value of an array in a loop, one thread a cell, ThrLD(D→K): as many
    /// as the loop has taps of it, which is exact but at the sides of a block. 0 where the loop does not read it.
    pub fn thread_load(&self, own: usize, array: usize) -> usize {
        self.access(own, array).and_then(|access| access.reads).map_or(0, |reach| reach.taps)
    }

    /// Returns whether fusing two loops can pass values on the chip: they touch the same field or temporary over all
    /// cells, or are scalars' stages that touch the same scalar.
    pub fn are_kin(&self, a: usize, b: usize) -> bool {
        let kinds = [self.loops[a].kind, self.loops[b].kind];
        let of_scalars = kinds == [Kind::Scalar; 2];
        if kinds.contains(&Kind::Points) || kinds.contains(&Kind::Scalar) && !of_scalars {
            return false;
        }
        let counts = |array: usize| (self.arrays[array].holds == Holds::Scalar) == of_scalars;
        self.loops[a]
            .accesses
            .iter()
            .any(|access| counts(access.array) && self.access(b, access.array).is_some())
    }

    /// Returns the degree of kinship of two loops of a group: 1 where they share an array, else the steps of the
    /// shortest chain of loops *of the group* in which each shares one with the next; `None` where there is none
    /// (0 in the paper).
    pub fn kinship(&self, group: &Set, a: usize, b: usize) -> Option<usize> {
        let (mut seen, mut edge, mut degree) = (Set::of(a), Set::of(a), 0);
        while !edge.has(b) {
            let next = group.without(&seen);
            edge = next.iter().filter(|&other| edge.iter().any(|own| self.are_kin(own, other))).collect();
            if edge.is_empty() {
                return None;
            }
            seen = seen.or(&edge);
            degree += 1;
        }
        Some(degree)
    }

    /// Returns a loop's name with its number, as in pictures and tables.
    pub fn title(&self, own: usize) -> String {
        format!("{own} {}", self.loops[own].name)
    }
}
