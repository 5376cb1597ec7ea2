//! Which stages are chained: groups that follow each other and go over few values each, as one launch of few blocks.

use std::ops::Range;

use abide_core::device::Capability;
use abide_core::plan::fused::{Group, Partition};
use abide_core::plan::{Carrier, Chain};
use abide_core::program::{Boxes, StageKind, around, is_renamed};
use abide_core::reduction::{MANY_LEAVES, leaf};
use abide_core::{DeviceSpec, Problem};

use crate::estimate::{bytes_alone, instructions};

/// How a device runs chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Links {
    /// Blocks of a chain, a cluster where they are several.
    pub blocks: usize,
    /// Threads of a block.
    pub threads: usize,
    /// The most values of a stage that is chained.
    pub most: usize,
    /// The most values of a stage that one block computes alone.
    pub alone: usize,
}

/// Blocks of a cluster that every device with clusters can hold.
const CLUSTER: usize = 8;

/// Threads of a block: each has 128 registers then.
const THREADS: usize = 512;

/// Values of a stage for each thread at the most, of a cluster and of a block by itself: with more of them all multiprocessors are
/// faster, in spite of the launch. Measured on an H200 with coarse grids in two and three dimensions and shallow water.
const OF_CLUSTER: usize = 1;
const OF_BLOCK: usize = 2;

/// The instructions of a stage that several blocks compute: longer formulas take longer than their launch.
const MOST_INSTRUCTIONS: f64 = 240.0;

/// The buffers of all stages of a chain that a kernel's arguments have room for.
const MOST_SLOTS: usize = 480;

/// Seconds from one stage of a chain to the next: loads, a barrier and stores that nothing hides.
const LINK_SECONDS: f64 = 0.6e-6;

/// The same where one block computes alone.
const ALONE_SECONDS: f64 = 0.4e-6;

/// Bytes a second that a block reads and writes in the last-level cache.
const BLOCK_BYTES_PER_SECOND: f64 = 60e9;

impl Links {
    /// Returns how a device runs chains; `None` where it cannot.
    pub fn of(device: &DeviceSpec) -> Option<Links> {
        if !device.has(Capability::Warps) || device.threads_per_block < THREADS {
            return None;
        }
        Some(match device.has(Capability::Clusters) {
            true => Links {
                blocks: CLUSTER,
                threads: THREADS,
                most: CLUSTER * THREADS * OF_CLUSTER,
                alone: THREADS * OF_CLUSTER,
            },
            false => {
                Links { blocks: 1, threads: THREADS, most: THREADS * OF_BLOCK, alone: THREADS * OF_BLOCK }
            }
        })
    }

    /// Returns whether a stage goes over few enough values to be chained.
    pub fn takes(&self, problem: &Problem, boxes: &Boxes, stage: usize) -> bool {
        let own = &problem.program.stages()[stage];
        let count = values(problem, boxes, stage);
        let is_short = count <= self.alone || instructions(own, problem.dtype) <= MOST_INSTRUCTIONS;
        (own.sweeps() || matches!(own.does, StageKind::Scalar(_))) && count <= self.most && is_short
    }

    fn takes_group(&self, problem: &Problem, boxes: &Boxes, group: &Group) -> bool {
        let is_single = group.fused.is_none() && group.pass.is_none();
        is_single && group.stages.iter().all(|&stage| self.takes(problem, boxes, stage))
    }
}

/// Returns the values that a stage goes over: those that it computes and takes along, or reduces.
fn values(problem: &Problem, boxes: &Boxes, stage: usize) -> usize {
    let own = &problem.program.stages()[stage];
    let of_box = |indices: &[Range<isize>; 3]| indices.iter().map(ExactSizeIterator::len).product::<usize>();
    match own.does {
        StageKind::Scalar(_) => 1,
        StageKind::Reduce(..) => around(&boxes.stages[stage]).map_or(0, |all| of_box(&all)),
        StageKind::Update | StageKind::Transform(_) => {
            own.writes.iter().map(|&name| boxes.buffers[name].len()).max().unwrap_or(0)
        }
    }
}

/// Returns the buffers that a group's stages name at the most.
fn slots(problem: &Problem, group: &Group) -> usize {
    let stages = group.stages.iter().map(|&stage| &problem.program.stages()[stage]);
    stages.map(|stage| stage.footprint.field_radius.iter().flatten().count() + 2 * stage.writes.len()).sum()
}

/// Returns the chains of a partition: the longest ones of groups that follow each other.
pub fn chains(problem: &Problem, boxes: &Boxes, partition: &Partition, links: &Links) -> Vec<Chain> {
    let mut all = Vec::new();
    for (step, groups) in partition.steps.iter().enumerate() {
        let mut place = 0;
        while place < groups.len() {
            let chain = of_few(problem, boxes, &groups[place..], links)
                .or_else(|| of_reduction(problem, boxes, &groups[place..]));
            let length = chain.map_or(1, |(length, by)| {
                all.push(Chain { step, groups: place..place + length, by });
                length
            });
            place += length;
        }
    }
    all
}

/// Returns how many groups from the first on go over few values, and which blocks carry them out; `None` where they are not several
/// launches.
fn of_few(problem: &Problem, boxes: &Boxes, groups: &[Group], links: &Links) -> Option<(usize, Carrier)> {
    let (mut room, mut length, mut launched, mut is_alone) = (MOST_SLOTS, 0, 0, true);
    for group in groups.iter().take_while(|group| links.takes_group(problem, boxes, group)) {
        let Some(left) = room.checked_sub(slots(problem, group)) else { break };
        let is_name = matches!(*group.stages, [stage] if is_renamed(problem, boxes, stage));
        is_alone &= is_name || group.stages.iter().all(|&stage| values(problem, boxes, stage) <= links.alone);
        (room, length, launched) = (left, length + 1, launched + usize::from(!is_name));
    }
    let blocks = if is_alone { 1 } else { links.blocks };
    let by = Carrier::Blocks { blocks, threads: links.threads, alone: links.alone };
    (launched > 1).then_some((length, by))
}

/// Returns how many groups from the first on are a reduction and formulas of scalars behind it, if its last block joins the leaves.
fn of_reduction(problem: &Problem, boxes: &Boxes, groups: &[Group]) -> Option<(usize, Carrier)> {
    let stages = problem.program.stages();
    let (first, others) = groups.split_first()?;
    let reduction = *first.stages.last()?;
    let is_reduced = matches!(stages[reduction].does, StageKind::Reduce(..));
    let is_single = first.stages.len() == 1 || first.is_tail();
    let region = boxes.stages[reduction].first().filter(|_| is_reduced && is_single)?;
    let leaf = leaf(problem.shape.dimensions());
    let leaves = |axis: usize| (region[axis].end.max(0) as usize).div_ceil(leaf[axis]);
    if (0..3).map(leaves).product::<usize>() >= MANY_LEAVES {
        return None;
    }
    let is_scalar = |group: &&Group| matches!(*group.stages, [stage] if matches!(stages[stage].does, StageKind::Scalar(_)));
    let scalars = others.iter().take_while(is_scalar).count();
    (scalars > 0).then_some((1 + scalars, Carrier::Reduction))
}

/// Returns the seconds of a group in a chain.
pub fn link_seconds(problem: &Problem, boxes: &Boxes, [blocks, alone]: [usize; 2], group: &Group) -> f64 {
    let seconds = |&stage: &usize| {
        let bytes = bytes_alone(problem, boxes, &problem.program.stages()[stage]);
        match values(problem, boxes, stage) <= alone {
            true => ALONE_SECONDS,
            false => LINK_SECONDS + bytes / (blocks as f64 * BLOCK_BYTES_PER_SECOND),
        }
    };
    group.stages.iter().map(seconds).sum()
}
