//! The exhaustive yardstick.

use abide_core::{Error, Result};

use super::Found;
use super::cost::{Costs, NEVER};
use super::objective::Objective;
use super::set::Set;

/// The most loops whose partitions are all tried: there are 115 975 of ten.
pub const MOST_LOOPS: usize = 10;

/// Tries every partition and returns the cheapest.
///
/// # Errors
///
/// [`Error::Limit`] beyond [`MOST_LOOPS`].
pub fn exhaustive(objective: &dyn Objective) -> Result<Found> {
    let loops = objective.loops();
    if loops.len() > MOST_LOOPS {
        let change = "take the search for more";
        return Err(Error::limit("loops whose partitions are all tried", loops.len(), MOST_LOOPS, change));
    }
    let mut all = All { costs: Costs::new(objective), groups: Vec::new(), best: (NEVER, Vec::new()) };
    all.place(0);
    let (cost, groups) = all.best;
    Ok(Found::new(cost, groups, loops, all.costs.evaluations))
}

struct All<'a> {
    costs: Costs<'a>,
    groups: Vec<Set>,
    best: (u64, Vec<Vec<usize>>),
}

impl All<'_> {
    /// Puts a loop and all later ones into every group, and into one of its own.
    fn place(&mut self, own: usize) {
        if own == self.costs.loops().len() {
            let cost = self.groups.iter().map(|group| self.costs.of(group)).sum::<u64>();
            if cost < self.best.0
                && let Some(ordered) = self.costs.loops().ordered(&self.groups)
            {
                self.best = (cost, ordered);
            }
            return;
        }
        for number in 0..self.groups.len() {
            self.groups[number].insert(own);
            self.place(own + 1);
            self.groups[number].remove(own);
        }
        self.groups.push(Set::of(own));
        self.place(own + 1);
        self.groups.pop();
    }
}
