//! A partition of loops into groups, and the changes that make it cheaper.

use super::cost::{Costs, NEVER};
use super::loops::Loops;
use super::set::Set;

/// A partition whose groups can run one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Grouping {
    groups: Vec<Gene>,
    /// The group of each loop.
    of: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Gene {
    loops: Set,
    /// The loops, of whatever group, that wait for one of these directly.
    next: Set,
    cost: u64,
}

impl Gene {
    fn new(loops: Set, costs: &mut Costs<'_>) -> Gene {
        Gene { loops, next: costs.loops().next_of(&loops), cost: costs.of(&loops) }
    }
}

impl Grouping {
    /// Returns each loop in a group of its own.
    pub fn alone(costs: &mut Costs<'_>) -> Grouping {
        let all = 0..costs.loops().len();
        Grouping {
            groups: all.clone().map(|own| Gene::new(Set::of(own), costs)).collect(),
            of: all.collect(),
        }
    }

    /// Returns the bytes of all groups.
    pub fn cost(&self) -> u64 {
        self.groups.iter().map(|group| group.cost).sum()
    }

    pub fn groups(&self) -> impl Iterator<Item = &Set> {
        self.groups.iter().map(|group| &group.loops)
    }

    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns whether a group waits for one that waits for it.
    fn is_on_a_cycle(&self, number: usize) -> bool {
        let own = &self.groups[number];
        let mut edge = own.next.without(&own.loops);
        let mut seen = own.loops;
        while let Some(first) = edge.first() {
            let group = &self.groups[self.of[first]];
            if group.next.meets(&own.loops) {
                return true;
            }
            seen = seen.or(&group.loops);
            edge = edge.or(&group.next).without(&seen);
        }
        false
    }

    fn put(&mut self, number: usize, group: Gene) {
        group.loops.iter().for_each(|own| self.of[own] = number);
        self.groups[number] = group;
    }

    /// Removes an empty group.
    fn close(&mut self, number: usize) {
        self.groups.swap_remove(number);
        if let Some(moved) = self.groups.get(number) {
            moved.loops.iter().for_each(|own| self.of[own] = number);
        }
    }

    /// Makes each loop of a group a group of its own.
    fn dissolve(&mut self, number: usize, costs: &mut Costs<'_>) {
        let loops = self.groups[number].loops;
        for own in loops.iter().skip(1) {
            let alone = self.groups.len();
            self.groups.push(Gene::default());
            self.put(alone, Gene::new(Set::of(own), costs));
        }
        if let Some(first) = loops.first() {
            self.put(number, Gene::new(Set::of(first), costs));
        }
    }

    /// Dissolves the group of a loop.
    pub fn dissolve_around(&mut self, own: usize, costs: &mut Costs<'_>) {
        self.dissolve(self.of[own], costs);
    }

    /// Returns whether another partition has the same groups, in whatever order.
    pub fn is_same(&self, other: &Grouping) -> bool {
        self.len() == other.len()
            && self.groups.iter().all(|group| {
                group.loops.first().is_some_and(|own| other.groups[other.of[own]].loops == group.loops)
            })
    }

    /// Takes over groups of another partition, which replace those that have any of their loops; what these leave
    /// behind, and groups that would wait for each other, become groups of single loops.
    pub fn inject(&mut self, groups: &[Set], costs: &mut Costs<'_>) {
        for loops in groups {
            while let Some(number) =
                loops.iter().map(|own| self.of[own]).find(|&number| self.groups[number].loops.len() > 1)
            {
                self.dissolve(number, costs);
            }
            let mut members = loops.iter();
            let Some(first) = members.next() else { continue };
            for own in members {
                let number = self.of[own];
                self.groups[number].loops = Set::default();
                self.close(number);
            }
            let number = self.of[first];
            self.put(number, Gene::new(*loops, costs));
            if self.is_on_a_cycle(number) {
                self.dissolve(number, costs);
            }
        }
    }

    /// Changes the partition for the better until no change of one loop's group, and no union of two groups, is.
    pub fn improve(&mut self, costs: &mut Costs<'_>, random: &mut fastrand::Rng) {
        let mut order: Vec<usize> = (0..self.of.len()).collect();
        loop {
            random.shuffle(&mut order);
            let mut is_better = false;
            for &own in &order {
                is_better |= self.unite(self.of[own], costs) || self.transfer(own, costs);
            }
            if !is_better {
                return;
            }
        }
    }

    /// Returns the groups that share arrays with some loops, without those of one group.
    fn around(&self, loops: &Set, without: usize, all: &Loops) -> Vec<usize> {
        let near = loops.iter().fold(Set::default(), |set, own| set.or(all.neighbours(own)));
        let mut left = near.without(&self.groups[without].loops);
        let mut around = Vec::new();
        while let Some(own) = left.first() {
            let number = self.of[own];
            around.push(number);
            left = left.without(&self.groups[number].loops);
        }
        around
    }

    /// Unites a group with the one that saves most; returns whether there is one.
    pub fn unite(&mut self, number: usize, costs: &mut Costs<'_>) -> bool {
        let own = self.groups[number];
        let mut candidates: Vec<(u64, usize)> = Vec::new();
        for other in self.around(&own.loops, number, costs.loops()) {
            let (apart, union) =
                (own.cost + self.groups[other].cost, own.loops.or(&self.groups[other].loops));
            let together = costs.of(&union);
            if together < apart {
                candidates.push((apart - together, other));
            }
        }
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        for (_, other) in candidates {
            let before = self.groups[other];
            self.put(number, Gene::new(own.loops.or(&before.loops), costs));
            self.groups[other] = Gene::default();
            if !self.is_on_a_cycle(number) {
                self.close(other);
                return true;
            }
            self.put(number, own);
            self.put(other, before);
        }
        false
    }

    /// Moves a loop to the group, or to one of its own, where that saves most; returns whether it was moved.
    fn transfer(&mut self, own: usize, costs: &mut Costs<'_>) -> bool {
        let number = self.of[own];
        let from = self.groups[number];
        if from.loops.len() == 1 {
            return false;
        }
        let mut rest = from.loops;
        rest.remove(own);
        let rest_cost = costs.of(&rest);
        if rest_cost >= NEVER {
            return false;
        }
        // `None` is a group of its own.
        let mut candidates: Vec<(u64, Option<usize>)> = Vec::new();
        let mut offer = |apart: u64, together: u64, to| {
            if together < apart {
                candidates.push((apart - together, to));
            }
        };
        offer(from.cost, rest_cost + costs.of(&Set::of(own)), None);
        for other in self.around(&Set::of(own), number, costs.loops()) {
            let to = &self.groups[other];
            let mut joined = to.loops;
            joined.insert(own);
            offer(from.cost + to.cost, rest_cost + costs.of(&joined), Some(other));
        }
        candidates.sort_unstable_by(|a, b| b.cmp(a));
        for (_, to) in candidates {
            let to = to.unwrap_or_else(|| {
                self.groups.push(Gene::default());
                self.groups.len() - 1
            });
            let before = self.groups[to];
            let mut joined = before.loops;
            joined.insert(own);
            self.put(number, Gene::new(rest, costs));
            self.put(to, Gene::new(joined, costs));
            if !self.is_on_a_cycle(number) && !self.is_on_a_cycle(to) {
                return true;
            }
            self.put(number, from);
            self.put(to, before);
            if before.loops.is_empty() {
                self.close(to);
            }
        }
        false
    }
}
