//! Reductions over slabs: the subtrees that each rank has, and how all ranks finish the one tree.

use std::ops::Range;

use super::Slabs;
use crate::program::{Problem, Program, Region, Stage, StageKind};
use crate::real::{Array, Real};
use crate::reduction::{Reduction, join_box, join_rows, leaf};

/// A rank's share of a reduction over the whole domain.
///
/// The tree of a reduction ([`reduction`](mod@crate::reduction)) knows no devices. Slabs are cut between its leaves, so each
/// rank has whole *layers* of leaves along the axis that is cut, and of each aligned block of two, four, eight … layers
/// among them the whole subtree. All ranks gather those blocks, and each joins them in the tree's order: the value has the
/// bits that one device finds, and the same on every rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// The rank.
    pub rank: usize,
    /// The axis that is cut, of the three padded ones: the slowest.
    pub axis: usize,
    /// The slab's index of the first plane of the rank's first layer.
    pub begin: usize,
    /// The leaves of the whole tree along each axis.
    pub leaves: [usize; 3],
    /// The layers of each rank, which follow each other and are all; none where a rank has no value of the region and none
    /// before it.
    pub layers: Vec<Range<usize>>,
}

impl Share {
    /// Returns the leaves of a layer.
    fn layer(&self) -> usize {
        self.leaves[self.axis + 1..].iter().product()
    }

    /// Returns the leaves of the rank along each axis.
    pub fn count(&self) -> [usize; 3] {
        let mut count = self.leaves;
        count[self.axis] = self.layers[self.rank].len();
        count
    }

    /// Returns the number of values that each rank gives.
    pub fn values(&self) -> Vec<usize> {
        self.layers.iter().map(|layers| blocks(layers.clone()).count() * self.layer()).collect()
    }

    /// Joins the rank's leaves, in the order of memory, to what it gives: a layer for each of its blocks.
    pub fn join<T: Real>(&self, reduction: Reduction, leaves: &mut [T]) -> Vec<T> {
        let (layer, own) = (self.layer(), self.layers[self.rank].clone());
        let mut given = Vec::new();
        for block in blocks(own.clone()) {
            let from = &mut leaves[(block.start - own.start) * layer..(block.end - own.start) * layer];
            join_rows(reduction, block.len(), layer, from);
            given.extend_from_slice(&from[..layer]);
        }
        given
    }

    /// Returns the value of the whole tree from what all ranks gave, in the order of ranks: as many values each as
    /// [`Share::values`] says.
    pub fn finish<T: Real>(&self, reduction: Reduction, given: &[Array]) -> T {
        let layer = self.layer();
        // Blocks that wait for the one beside them, each smaller than the one before it.
        let mut waiting: Vec<Vec<T>> = Vec::new();
        let join = |low: Vec<T>, high: Vec<T>| -> Vec<T> {
            low.into_iter().zip(high).map(|(low, high)| reduction.join(low, high)).collect()
        };
        for (layers, given) in self.layers.iter().zip(given) {
            let parts = T::slice(given).unwrap_or_default().chunks_exact(layer);
            for (block, part) in blocks(layers.clone()).zip(parts) {
                let (mut number, mut joined) = (block.start / block.len(), part.to_vec());
                // Of two blocks beside each other the second has an odd number.
                while number % 2 == 1
                    && let Some(before) = waiting.pop()
                {
                    joined = join(before, joined);
                    number /= 2;
                }
                waiting.push(joined);
            }
        }
        // What is missing after the last block is neutral.
        let mut values = waiting.into_iter().rev().reduce(|high, low| join(low, high)).unwrap_or_default();
        let mut extents = self.leaves;
        extents[self.axis] = 1;
        join_box(reduction, extents, &mut values)
    }
}

/// Returns the aligned blocks of powers of two of which some layers consist, the largest there are, in order.
pub fn blocks(layers: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = layers.start;
    std::iter::from_fn(move || {
        let left = layers.end.checked_sub(start).filter(|&left| left > 0)?;
        let aligned = if start == 0 { usize::MAX } else { 1 << start.trailing_zeros() };
        let block = start..start + (1 << left.ilog2()).min(aligned);
        start = block.end;
        Some(block)
    })
}

/// Returns the planes between which a program's domain can be cut: a leaf's where it has reductions.
pub fn unit(problem: &Problem) -> usize {
    match reductions(&problem.program).next() {
        Some(_) => leaf(problem.shape.dimensions())[problem.slowest()],
        None => 1,
    }
}

/// Returns the reductions of a program, each with its region.
fn reductions(program: &Program) -> impl Iterator<Item = (usize, &Stage, Region)> {
    program.stages().iter().enumerate().filter_map(|(number, stage)| match stage.does {
        StageKind::Reduce(_, region, _) => Some((number, stage, region)),
        _ => None,
    })
}

impl Slabs {
    /// Returns the planes of a reduction that are a rank's own, of the whole domain.
    fn reduced(&self, rank: usize, problem: &Problem, stage: &Stage, region: Region) -> Range<usize> {
        let all = problem.indices_of(stage, region)[self.axis].clone();
        let own = self.own(rank, all.end.max(0) as usize + region.margins[self.axis][1]);
        let start = own.start.max(all.start.max(0) as usize);
        start..own.end.min(all.end.max(0) as usize).max(start)
    }

    /// Confines the reductions of a slab's problem to the rank's own planes.
    pub(super) fn confine(&self, rank: usize, problem: &Problem, slab: &mut Problem) {
        let first = self.slabs[rank].first();
        let margins = |(number, stage, region): (usize, &Stage, Region)| {
            let own = self.reduced(rank, problem, stage, region);
            let planes = slab.indices_of(stage, region.without(self.axis, 0, 0))[self.axis].end as usize;
            let at = |plane: usize| (plane as isize - first) as usize;
            // A rank without any value of the region leaves all of its planes out.
            let margins = if own.is_empty() { [0, planes] } else { [at(own.start), planes - at(own.end)] };
            (number, margins)
        };
        let all: Vec<(usize, [usize; 2])> = reductions(&slab.program).map(margins).collect();
        let program = std::sync::Arc::make_mut(&mut slab.program);
        for (stage, margins) in all {
            program.set_margins(stage, self.axis, margins);
        }
    }

    /// Returns a rank's share of each reduction, for the stages of `slab`, which [`Slabs::problem`] made; `None` for other
    /// stages.
    pub fn shares(&self, rank: usize, problem: &Problem, slab: &Problem) -> Vec<Option<Share>> {
        let mut shares = vec![None; slab.program.stages().len()];
        let leaf = leaf(problem.shape.dimensions());
        let (ranks, deep) = (self.slabs.len(), leaf[self.axis]);
        // A slab leaves out no reduction, and keeps their order.
        for ((number, ..), (_, stage, region)) in reductions(&slab.program).zip(reductions(&problem.program))
        {
            let all = problem.indices_of(stage, region);
            let leaves = [0, 1, 2].map(|axis| (all[axis].end.max(0) as usize).div_ceil(leaf[axis]));
            let layers = (0..ranks).map(|other| {
                let own = &self.slabs[other].own;
                let end = if other + 1 == ranks { leaves[self.axis] } else { own.end / deep };
                (own.start / deep).min(leaves[self.axis])..end.min(leaves[self.axis])
            });
            shares[number] = Some(Share {
                rank,
                axis: self.axis,
                begin: self.begin(rank),
                leaves,
                layers: layers.collect(),
            });
        }
        shares
    }
}
