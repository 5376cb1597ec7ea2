//! The planes that a rank hands to its neighbours, and those that it gets.

use std::ops::Range;

use super::Slabs;

/// A side of a slab along the slowest axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Where the index is low.
    Low,
    /// Where it is high.
    High,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Side; 2] = [Side::Low, Side::High];

    /// Returns the opposite side.
    pub fn other(self) -> Side {
        match self {
            Side::Low => Side::High,
            Side::High => Side::Low,
        }
    }
}

/// What a rank exchanges at one side. Planes are the slab's own indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// The side.
    pub side: Side,
    /// The rank there.
    pub neighbour: usize,
    /// The fields, each with the outermost own planes, which become the neighbour's halo, and with the planes of the halo,
    /// which the neighbour owns.
    pub fields: Vec<Edge>,
}

/// The planes of a field at a side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The field's number.
    pub field: usize,
    /// The planes that are sent.
    pub sent: Range<usize>,
    /// The planes that are received.
    pub received: Range<usize>,
}

impl Slabs {
    /// Returns what a rank exchanges every [`Slabs::depth`] steps: nothing at an outer side, and no field that is read
    /// nowhere beyond its own plane.
    pub fn exchanges(&self, rank: usize) -> Vec<Exchange> {
        let slab = &self.slabs[rank];
        let (begin, end) = (slab.halo[0], slab.halo[0] + slab.own.len());
        let edge = |side: Side, field: usize| {
            let planes = self.reach[field];
            let (sent, received) = match side {
                Side::Low => (begin..begin + planes, begin - planes..begin),
                Side::High => (end - planes..end, end..end + planes),
            };
            Edge { field, sent, received }
        };
        let at = |side: Side| {
            let neighbour = self.neighbour(rank, side as usize)?;
            let fields = (0..self.reach.len()).filter(|&field| self.reach[field] > 0);
            let fields: Vec<Edge> = fields.map(|field| edge(side, field)).collect();
            (!fields.is_empty()).then_some(Exchange { side, neighbour, fields })
        };
        Side::BOTH.into_iter().filter_map(at).collect()
    }
}
