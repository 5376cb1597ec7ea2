//! CloverLeaf in two and three dimensions, small enough to be emulated.

use abide_random::cases::Case;

use crate::clover::clover;
use crate::deck::{self, Deck};

/// Returns the cases; the tiles of the last lie inside of its domain.
pub fn decks() -> Vec<Case> {
    let decks = [
        (include_str!("../../../tests/cloverleaf/trace13x7/clover.in"), 4),
        (include_str!("../../../tests/cloverleaf/flows7x6x5/clover.in"), 2),
    ];
    let larger = deck::BUILT_IN.replace("x_cells=10", "x_cells=101").replace("y_cells=2", "y_cells=27");
    let decks = decks.into_iter().chain([(&*larger, 2)]);
    let case = |(deck, steps): (&str, u64)| {
        let (problem, start) = clover(&Deck::parse(deck).unwrap()).unwrap();
        Case { name: format!("cloverleaf {}", problem.shape), problem, start, steps }
    };
    decks.map(case).collect()
}
