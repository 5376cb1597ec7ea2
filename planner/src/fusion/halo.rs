//! How far beyond a block's own cells each loop of a group is computed: producers are recomputed on the halo that their
//! consumers in the group read (the paper's complex fusion).

use super::graph::{Graph, Reach};
use super::set::Set;

/// Layers of cells around a block, below and above along each axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers {
    /// Layers below.
    pub low: [usize; 3],
    /// Layers above.
    pub high: [usize; 3],
}

impl Layers {
    /// Returns the layers that a loop reads which is computed on these.
    fn read(&self, reach: &Reach) -> Layers {
        Layers {
            low: [0, 1, 2].map(|axis| self.low[axis] + reach.low[axis].unsigned_abs() as usize),
            high: [0, 1, 2].map(|axis| self.high[axis] + reach.high[axis].unsigned_abs() as usize),
        }
    }

    fn or(&self, other: &Layers) -> Layers {
        Layers {
            low: [0, 1, 2].map(|axis| self.low[axis].max(other.low[axis])),
            high: [0, 1, 2].map(|axis| self.high[axis].max(other.high[axis])),
        }
    }

    /// Returns the cells of a block with these layers.
    pub fn cells(&self, block: [usize; 3]) -> usize {
        (0..3).map(|axis| self.low[axis] + block[axis] + self.high[axis]).product()
    }
}

/// The use of arrays inside a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    /// The loops, in order, each with the layers on which it is computed.
    pub loops: Vec<(usize, Layers)>,
    /// The values that loops of the group read.
    pub values: Vec<Passed>,
}

/// A value of an array that loops of a group read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The array.
    pub array: usize,
    /// The loop of the group that makes it; `None` if it is loaded.
    pub from: Option<usize>,
    /// The first and the last loop that read it.
    pub read: [usize; 2],
    /// The layers around the block that are read.
    pub layers: Layers,
    /// Whether some loop reads it at other cells than its own.
    pub is_around: bool,
    /// The loops that read it.
    pub readers: usize,
}

impl Inside {
    /// Looks into a group.
    pub fn of(graph: &Graph, group: &Set) -> Inside {
        let own: Vec<usize> = group.iter().collect();
        let mut loops: Vec<(usize, Layers)> = own.iter().map(|&own| (own, Layers::default())).collect();
        let mut values: Vec<Passed> = Vec::new();
        for at in (0..own.len()).rev() {
            let (reader, layers) = loops[at];
            for access in &graph.loops[reader].accesses {
                let Some(reach) = access.reads else { continue };
                let writes = |earlier: &usize| {
                    graph.access(own[*earlier], access.array).is_some_and(|access| access.writes)
                };
                let producer = (0..at).rev().find(writes);
                let read = layers.read(&reach);
                if let Some(producer) = producer {
                    loops[producer].1 = loops[producer].1.or(&read);
                }
                let from = producer.map(|producer| own[producer]);
                match values.iter_mut().find(|value| (value.array, value.from) == (access.array, from)) {
                    Some(value) => {
                        value.read[0] = reader;
                        value.layers = value.layers.or(&read);
                        value.is_around |= !reach.is_point();
                        value.readers += 1;
                    }
                    None => values.push(Passed {
                        array: access.array,
                        from,
                        read: [reader; 2],
                        layers: read,
                        is_around: !reach.is_point(),
                        readers: 1,
                    }),
                }
            }
        }
        Inside { loops, values }
    }

    /// Returns whether a loop is computed beyond the block's own cells (the paper's complex fusion).
    pub fn has_halo(&self) -> bool {
        self.loops.iter().any(|(_, layers)| *layers != Layers::default())
    }

    /// Returns the values that the group reuses: made in it, or read by several of its loops (the paper's pivot).
    pub fn pivot(&self) -> impl Iterator<Item = &Passed> {
        self.values.iter().filter(|value| value.from.is_some() || value.readers > 1)
    }
}
