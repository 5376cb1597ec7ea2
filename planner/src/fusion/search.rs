//! The grouping genetic algorithm (Falkenauer, J. Heuristics 2, 1996): genes are groups.
//!
//! Several populations evolve apart, each from a seed of its own, and hand their best on in a ring. A child takes over
//! groups of one parent in place of those of the other that have the same loops; what is left behind is inserted again
//! where it saves most. Populations know nothing of threads, so the result depends on the seed alone.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Found;
use super::cost::{Costs, Evaluations};
use super::grouping::Grouping;
use super::objective::Objective;
use super::set::Set;

/// Populations that evolve apart.
const ISLANDS: usize = 8;

/// Partitions of a population.
const POPULATION: usize = 12;

/// Children of each population between two exchanges.
const CHILDREN: usize = 12;

/// The partitions from which each parent is the best.
const TOURNAMENT: usize = 2;

/// How long a search lasts, and from where it begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// The seed of all random choices.
    pub seed: u64,
    /// Exchanges without anything better after which the search ends.
    pub stagnation: usize,
    /// Groups whose cost is asked for, after which the search ends at the next exchange.
    pub evaluations: u64,
}

impl Default for Search {
    fn default() -> Search {
        Search { seed: 1, stagnation: 30, evaluations: 8_000_000 }
    }
}

/// Does a piece of work for each number below the first argument, in any order and on any threads.
pub type Spread<'a> = &'a (dyn Fn(usize, &(dyn Fn(usize) + Sync)) + 'a);

/// Searches for the cheapest partition. The populations are the work that is `spread` over threads. `goes_on` is asked at
/// every exchange; where it ends a search, the result also depends on when.
pub fn search(
    objective: &dyn Objective,
    settings: &Search,
    spread: Spread<'_>,
    mut goes_on: impl FnMut() -> bool,
) -> Found {
    let mut seeds = fastrand::Rng::with_seed(settings.seed);
    let island =
        |_| Mutex::new(Island { costs: Costs::new(objective), random: seeds.fork(), all: Vec::new() });
    let islands: Vec<Mutex<Island<'_>>> = (0..ISLANDS).map(island).collect();
    spread(ISLANDS, &|own| held(&islands[own]).begin());
    let (mut best, mut stale) = (u64::MAX, 0);
    loop {
        let now = islands.iter().map(|island| held(island).all[0].cost()).min().unwrap_or(u64::MAX);
        stale = if now < best { 0 } else { stale + 1 };
        best = best.min(now);
        let asked: u64 = islands.iter().map(|island| held(island).costs.evaluations.asked).sum();
        if stale >= settings.stagnation || asked >= settings.evaluations || !goes_on() {
            break;
        }
        spread(ISLANDS, &|own| held(&islands[own]).evolve());
        let leaders: Vec<Grouping> = islands.iter().map(|island| held(island).all[0].clone()).collect();
        for (island, leader) in islands.iter().zip(leaders.into_iter().cycle().skip(ISLANDS - 1)) {
            held(island).welcome(leader);
        }
    }
    let mut evaluations = Evaluations::default();
    islands.iter().for_each(|island| evaluations += held(island).costs.evaluations);
    let leaders = islands.iter().map(|island| held(island).all[0].clone());
    let found = leaders.min_by_key(|grouping| (grouping.cost(), grouping.len()));
    let found = found.unwrap_or_else(|| Grouping::alone(&mut Costs::new(objective)));
    Found::of(&found, objective.loops(), evaluations)
}

/// Does all work in turn on this thread.
pub fn in_turn(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).for_each(work);
}

/// Takes a population for itself; one thread at a time has it.
fn held<'m, 'a>(island: &'m Mutex<Island<'a>>) -> MutexGuard<'m, Island<'a>> {
    island.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A population, the best first.
struct Island<'a> {
    costs: Costs<'a>,
    random: fastrand::Rng,
    all: Vec<Grouping>,
}

impl Island<'_> {
    fn begin(&mut self) {
        for _ in 0..POPULATION {
            let mut grouping = Grouping::alone(&mut self.costs);
            grouping.improve(&mut self.costs, &mut self.random);
            self.all.push(grouping);
        }
        self.all.sort_by_key(Grouping::cost);
    }

    fn evolve(&mut self) {
        for _ in 0..CHILDREN {
            let mut child = self.parent().clone();
            if self.random.u8(..4) > 0 {
                let genes = self.genes();
                child.inject(&genes, &mut self.costs);
            }
            self.mutate(&mut child);
            child.improve(&mut self.costs, &mut self.random);
            self.welcome(child);
        }
    }

    /// Returns the best of a few.
    fn parent(&mut self) -> &Grouping {
        let chosen = (0..TOURNAMENT).map(|_| self.random.usize(..self.all.len())).min().unwrap_or(0);
        &self.all[chosen]
    }

    /// Returns some of a parent's groups of several loops: neighbours in the order in which they run.
    fn genes(&mut self) -> Vec<Set> {
        let parent = self.parent();
        let mut groups: Vec<Set> = parent.groups().filter(|group| group.len() > 1).copied().collect();
        groups.sort_by_key(Set::first);
        if groups.is_empty() {
            return groups;
        }
        let first = self.random.usize(..groups.len());
        let count = 1 + self.random.usize(..groups.len().div_ceil(2));
        groups.iter().cycle().skip(first).take(count).copied().collect()
    }

    /// Dissolves a few groups that share arrays.
    fn mutate(&mut self, child: &mut Grouping) {
        let loops = self.costs.loops();
        let mut own = self.random.usize(..loops.len());
        for _ in 0..self.random.usize(..4) {
            child.dissolve_around(own, &mut self.costs);
            let near: Vec<usize> = loops.neighbours(own).iter().collect();
            if let Some(&next) = near.get(self.random.usize(..near.len().max(1))) {
                own = next;
            }
        }
    }

    /// Takes a partition in at its place, in place of the worst, unless it is here already.
    fn welcome(&mut self, grouping: Grouping) {
        let cost = grouping.cost();
        let at = self.all.partition_point(|other| other.cost() < cost);
        let is_known = self.all[at..]
            .iter()
            .take_while(|other| other.cost() == cost)
            .any(|other| other.is_same(&grouping));
        if at < self.all.len() && !is_known {
            self.all.pop();
            self.all.insert(at, grouping);
        }
    }
}
