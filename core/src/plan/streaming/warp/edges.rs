//! Kernels of slabs that give their outermost planes to their neighbours while they make them.

use std::ops::Range;

use serde::Serialize;

use crate::plan::{Plan, Schedule};

/// What a slab's kernel stores: the planes that are its own, of which it stores the outermost into the memory of its neighbours,
/// too. Halos are theirs to store, so that each pass finds what its neighbours made in the pass before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Edges {
    /// The own planes, as the slab numbers them.
    pub own: Range<usize>,
    /// How many of them, the first and the last, are given to the neighbours below and above.
    pub given: [usize; 2],
}

impl Plan {
    /// Returns the same streaming plan for a slab whose kernel gives planes to its neighbours; `None` of other plans. Passes of one
    /// launch do not, because they would have to wait for those of other devices; nor do planes of one row, whose kernels have no
    /// registers left for it (19 to 28 % slower on an H200).
    pub fn giving(&self, edges: Edges) -> Option<Plan> {
        let mut plan = self.clone();
        let Schedule::WarpStreaming(streaming) = &mut plan.schedule else { return None };
        let planes = plan.shape.padded()[0];
        if streaming.chained || planes == 1 || edges.own.end > planes || edges.own.is_empty() {
            return None;
        }
        let own = edges.own.len();
        if streaming.fill > 0 {
            // A window costs as much as its planes.
            let plane = |cost: usize| cost / (planes + streaming.fill);
            streaming.window_costs = streaming.window_costs.map(|cost| plane(cost) * (own + streaming.fill));
            streaming.shares = streaming.shares.min(streaming.tiles.iter().product::<usize>() * own);
        } else if streaming.window_costs.iter().any(|&shares| shares > own) {
            return None;
        }
        streaming.edges = Some(edges);
        Some(plan)
    }

    /// Returns the streaming plan for the slab of another one: it gives the same planes, with a launch for each pass, or none. `None`
    /// where it cannot.
    pub fn giving_as(self, other: &Plan) -> Option<Plan> {
        match other.warp_streaming().and_then(|streaming| streaming.edges.as_ref()) {
            Some(edges) => self.unchained().unwrap_or(self).giving(edges.clone()),
            None => Some(self),
        }
    }
}
