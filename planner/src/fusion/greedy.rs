//! The greedy yardstick.

use super::Found;
use super::cost::Costs;
use super::grouping::Grouping;
use super::objective::Objective;

/// Unites, from single loops on, group after group with the one that saves most, in program order and until no union
/// saves anything.
pub fn greedy(objective: &dyn Objective) -> Found {
    let mut costs = Costs::new(objective);
    let mut grouping = Grouping::alone(&mut costs);
    let mut number = 0;
    while number < grouping.len() {
        if grouping.unite(number, &mut costs) {
            number = 0;
        } else {
            number += 1;
        }
    }
    Found::of(&grouping, objective.loops(), costs.evaluations)
}
