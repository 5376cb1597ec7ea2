//! The order-of-execution graph: which loop waits for which, and why.

use super::graph::{Graph, Holds};
use super::set::Set;

/// The precedences between the loops of a [`Graph`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The direct precedences, by the earlier loop and then the later one.
    pub edges: Vec<Precedence>,
    /// The loops that wait for each loop, directly or by way of others.
    after: Vec<Set>,
}

/// A loop that waits for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precedence {
    /// The loop that goes first.
    pub from: usize,
    /// The loop that waits.
    pub to: usize,
    /// The arrays for which it waits, each with the reason.
    pub causes: Vec<(usize, Cause)>,
    /// Whether no path by way of other loops says the same.
    pub is_needed: bool,
}

/// The reason why a loop waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// It reads what the other writes (RAW).
    Flow,
    /// It writes what the other reads (WAR).
    Anti,
    /// It writes what the other writes (WAW).
    Output,
}

impl Cause {
    /// Returns the usual name.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Flow => "RAW",
            Cause::Anti => "WAR",
            Cause::Output => "WAW",
        }
    }
}

impl Order {
    /// Returns the order of a graph's loops.
    pub fn of(graph: &Graph) -> Order {
        Order::by(graph, |_| true)
    }

    /// Returns the order that only some causes make.
    pub(super) fn by(graph: &Graph, counts: impl Fn(Cause) -> bool) -> Order {
        let count = graph.loops.len();
        let mut causes: Vec<Vec<Vec<(usize, Cause)>>> = vec![vec![Vec::new(); count]; count];
        for array in 0..graph.arrays.len() {
            let (mut writer, mut readers): (Option<usize>, Vec<usize>) = (None, Vec::new());
            for (own, access) in graph.touching(array) {
                let mut wait = |from: usize, cause: Cause| {
                    if from != own && counts(cause) {
                        causes[from][own].push((array, cause));
                    }
                };
                if access.reads.is_some() || access.keeps {
                    writer.into_iter().for_each(|from| wait(from, Cause::Flow));
                }
                if access.writes {
                    readers.drain(..).for_each(|from| wait(from, Cause::Anti));
                    writer.into_iter().for_each(|from| wait(from, Cause::Output));
                    writer = Some(own);
                }
                if access.reads.is_some() {
                    readers.push(own);
                }
            }
        }
        let mut after = vec![Set::default(); count];
        for from in (0..count).rev() {
            after[from] = (from + 1..count)
                .filter(|&to| !causes[from][to].is_empty())
                .fold(Set::default(), |set, to| set.or(&Set::of(to)).or(&after[to]));
        }
        let mut edges = Vec::new();
        for (from, row) in causes.into_iter().enumerate() {
            let next: Set = (0..count).filter(|&to| !row[to].is_empty()).collect();
            let beyond = next.iter().fold(Set::default(), |set, to| set.or(&after[to]));
            let direct = row.into_iter().enumerate().filter(|(_, causes)| !causes.is_empty());
            edges.extend(direct.map(|(to, mut causes)| {
                causes.sort_unstable_by_key(|&(array, cause)| (cause, array));
                causes.dedup_by_key(|(array, _)| *array);
                Precedence { from, to, causes, is_needed: !beyond.has(to) }
            }));
        }
        Order { edges, after }
    }

    /// Returns the loops that wait for a loop, directly or by way of others.
    pub fn after(&self, own: usize) -> &Set {
        &self.after[own]
    }

    /// Returns whether a loop waits for another, directly or by way of others.
    pub fn waits(&self, later: usize, earlier: usize) -> bool {
        self.after[earlier].has(later)
    }

    /// Returns the precedences that no path by way of other loops says.
    pub fn needed(&self) -> impl Iterator<Item = &Precedence> {
        self.edges.iter().filter(|edge| edge.is_needed)
    }

    /// Returns whether a group holds every loop on a path between two of its loops (1.3).
    pub fn is_convex(&self, group: &Set) -> bool {
        let after = group.iter().fold(Set::default(), |set, own| set.or(&self.after[own]));
        after.without(group).iter().all(|outside| !self.after[outside].meets(group))
    }
}

impl Graph {
    /// Returns, for each name of which values need more than one array once they are renamed, how many more: a
    /// value takes over an array where all who touch what the array holds come before anyway. The loops keep
    /// only the precedences of values that they read.
    ///
    /// A loop that reads a field around the cell and writes it needs a spare array in any case; where it is the only
    /// one to write the name, none is counted here.
    pub fn spares(&self) -> Vec<(String, usize)> {
        let order = Order::by(self, |cause| cause == Cause::Flow);
        let mut names: Vec<(&str, Holds)> = Vec::new();
        for array in self.arrays.iter().filter(|array| array.holds != Holds::Scalar) {
            if !names.contains(&(&*array.name, array.holds)) {
                names.push((&array.name, array.holds));
            }
        }
        let mut spares = Vec::new();
        for (name, holds) in names {
            let is_own =
                |array: &usize| (&*self.arrays[*array].name, self.arrays[*array].holds) == (name, holds);
            let values: Vec<usize> = (0..self.arrays.len()).filter(is_own).collect();
            // The values that lie in each array so far.
            let mut arrays: Vec<Vec<usize>> = Vec::new();
            for &value in &values {
                let writer = self.touching(value).find(|(_, access)| access.writes).map(|(own, _)| own);
                let is_over = |old: usize| {
                    writer.is_some_and(|writer| {
                        let before = |own: usize| own == writer || order.waits(writer, own);
                        !self.arrays[old].is_kept && self.touching(old).all(|(own, _)| before(own))
                    })
                };
                match arrays.iter_mut().find(|held| held.iter().all(|&old| is_over(old))) {
                    Some(held) => held.push(value),
                    None => arrays.push(vec![value]),
                }
            }
            if arrays.len() > 1 {
                spares.push((name.to_owned(), arrays.len() - 1));
            }
        }
        spares
    }
}
