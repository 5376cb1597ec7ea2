//! Sums that are defined as trees, so that the threads of a team can share a sum and get the same bits as a single
//! thread.
//!
//! A tree sum of L lanes has L partial sums: lane l adds the terms l, l + L, l + 2L, … of its turns to −0, in this order.
//! Then neighbours are joined, lanes 0 and 1, 2 and 3, …, then these pairs, and so on: the tree of all reductions. A lane
//! without terms is −0, which changes nothing that it is added to. A tree of one lane is a sum one after another.

use super::loops::Turns;
use super::{Expr, Graph, Index, Item, Looped};
use crate::error::Error;

/// The most lanes of a tree sum: the threads of a warp.
pub const MAX_LANES: usize = 32;

impl Turns {
    /// Returns the lanes of a tree sum over these turns; 1 of turns one after another.
    pub fn lanes(self) -> usize {
        usize::from(self.lanes)
    }

    /// Returns how often a lane's value joins others' before it is all of them.
    pub fn levels(self) -> usize {
        self.lanes().ilog2() as usize
    }
}

impl Graph {
    /// Returns sums of terms as trees of `lanes` lanes, a power of two up to [`MAX_LANES`]; of one lane, the terms of ascending
    /// indices are added to −0. `add` gives each sum plus its terms of an index.
    pub fn tree_sums<'g, const K: usize>(
        &'g self,
        lanes: usize,
        turns: impl Into<Turns>,
        add: impl FnOnce(Index<'g>, [Expr<'g>; K]) -> [Expr<'g>; K],
    ) -> [Expr<'g>; K] {
        let turns = turns.into();
        if !lanes.is_power_of_two() || lanes > MAX_LANES {
            let limit = format!("a power of two up to {MAX_LANES}");
            let change = "choose as many as a team has threads";
            self.fail(Error::limit("lanes of a tree sum", lanes, limit, change));
            return [self.constant(f64::NAN); K];
        }
        self.repeat(Turns { lanes: lanes as u8, ..turns }, [self.constant(-0.0); K], add)
    }

    /// Returns a sum of terms as a tree of `lanes` lanes ([`Graph::tree_sums`]).
    pub fn tree_sum<'g>(
        &'g self,
        lanes: usize,
        turns: impl Into<Turns>,
        term: impl FnOnce(Index<'g>) -> Expr<'g>,
    ) -> Expr<'g> {
        let [sum] = self.tree_sums(lanes, turns, |i, [sum]| [sum + term(i)]);
        sum
    }

    /// Returns a sum of products as a tree of `lanes` lanes ([`Graph::tree_sums`]): each product is one fused multiply-add onto
    /// its lane's sum before it.
    pub fn tree_sum_of_products<'g>(
        &'g self,
        lanes: usize,
        turns: impl Into<Turns>,
        factors: impl FnOnce(Index<'g>) -> [Expr<'g>; 2],
    ) -> Expr<'g> {
        let [sum] = self.tree_sums(lanes, turns, |i, [sum]| {
            let [a, b] = factors(i);
            [a.mul_add(b, sum)]
        });
        sum
    }
}

impl Looped {
    /// Returns of each loop whether the threads of a team share its turns: tree sums of as many lanes, and loops that carry
    /// nothing, whose turns only store. Within one that is shared a thread goes through loops alone.
    pub fn shared(&self, team: usize) -> Vec<bool> {
        let mut shared = vec![false; self.loops.len()];
        let mut items: Vec<Item> = self.body.clone();
        while let Some(item) = items.pop() {
            let Item::Loop(number) = item else { continue };
            let each = &self.loops[usize::from(number)];
            match each.turns.lanes() == team || each.carried.is_empty() {
                true => shared[usize::from(number)] = true,
                false => items.extend(&each.body),
            }
        }
        shared
    }
}

/// Joins what lanes have made, in their order: neighbours first, then pairs of them. `None` of no lanes.
pub(super) fn joined<V>(lanes: impl Iterator<Item = V>, mut join: impl FnMut(V, V) -> V) -> Option<V> {
    let mut before: Vec<V> = Vec::new();
    for (lane, mut value) in lanes.enumerate() {
        // As many blocks as the number of the lane ends in ones are complete with it.
        for _ in 0..lane.trailing_ones() {
            if let Some(other) = before.pop() {
                value = join(other, value);
            }
        }
        before.push(value);
    }
    before.pop()
}
