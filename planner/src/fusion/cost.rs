//! The cost of groups, asked for again and again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::loops::Loops;
use super::objective::Objective;
use super::set::{MOST, Set};

/// How often the cost of a group was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evaluations {
    /// All questions.
    pub asked: u64,
    /// Those whose answer was not known yet.
    pub computed: u64,
}

impl std::ops::AddAssign for Evaluations {
    fn add_assign(&mut self, other: Evaluations) {
        self.asked += other.asked;
        self.computed += other.computed;
    }
}

/// The cost of a group that must not be; sums of as many as there can be groups stay numbers.
pub const NEVER: u64 = u64::MAX / (2 * MOST as u64);

/// A hasher for [`Set`]: multiplications mix the words into all bits.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        // A set hashes its words at once.
        for word in bytes.chunks(8) {
            let mut whole = [0; 8];
            whole[..word.len()].copy_from_slice(word);
            self.write_u64(u64::from_ne_bytes(whole));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// Answers what groups of loops cost, and remembers.
pub struct Costs<'a> {
    objective: &'a dyn Objective,
    known: HashMap<Set, u64, BuildHasherDefault<Mixer>>,
    pub evaluations: Evaluations,
}

impl<'a> Costs<'a> {
    pub fn new(objective: &'a dyn Objective) -> Costs<'a> {
        Costs { objective, known: HashMap::default(), evaluations: Evaluations::default() }
    }

    pub fn loops(&self) -> &'a Loops {
        self.objective.loops()
    }

    /// Returns what a group costs; 0 for no loops, and [`NEVER`] where it must not be.
    pub fn of(&mut self, group: &Set) -> u64 {
        self.evaluations.asked += 1;
        if let Some(&known) = self.known.get(group) {
            return known;
        }
        self.evaluations.computed += 1;
        let cost = if group.is_empty() {
            0
        } else {
            self.objective.cost(group).map_or(NEVER, |cost| cost.min(NEVER))
        };
        self.known.insert(*group, cost);
        cost
    }
}
