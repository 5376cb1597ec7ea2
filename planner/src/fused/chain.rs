//! Which stages are chained: groups that follow each other and go over few values each, as one launch of few blocks.

use std::ops::Range;

use abide_core::device::Capability;
use abide_core::plan::Chain;
use abide_core::plan::fused::{Group, Partition};
use abide_core::program::{Boxes, StageKind, around, is_renamed};
use abide_core::{DeviceSpec, Problem};

use crate::estimate::bytes_alone;

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

/// The buffers of all stages of a chain that a kernel's arguments have room for.
const MOST_SLOTS: usize = 480;

/// Seconds from one stage of a chain to the next: loads, a barrier and stores that nothing hides.
const LINK_SECONDS: f64 = 1.0e-6;

/// The same where one block computes alone.
const ALONE_SECONDS: f64 = 0.5e-6;

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
        let is_update = own.does == StageKind::Update;
        (own.points.is_empty() || !is_update) && values(problem, boxes, stage) <= self.most
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
        StageKind::Update => own.writes.iter().map(|&name| boxes.buffers[name].len()).max().unwrap_or(0),
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
            let (mut room, mut end, mut launched) = (MOST_SLOTS, place, 0);
            let mut is_alone = true;
            while let Some(group) = groups.get(end).filter(|group| links.takes_group(problem, boxes, group)) {
                let Some(left) = room.checked_sub(slots(problem, group)) else { break };
                let is_name = matches!(*group.stages, [stage] if is_renamed(problem, boxes, stage));
                is_alone &=
                    is_name || group.stages.iter().all(|&stage| values(problem, boxes, stage) <= links.alone);
                (room, end, launched) = (left, end + 1, launched + usize::from(!is_name));
            }
            if launched > 1 {
                let blocks = if is_alone { 1 } else { links.blocks };
                all.push(Chain {
                    step,
                    groups: place..end,
                    blocks,
                    threads: links.threads,
                    alone: links.alone,
                });
            }
            place = end.max(place + 1);
        }
    }
    all
}

/// Returns the seconds of a group in a chain.
pub fn link_seconds(problem: &Problem, boxes: &Boxes, chain: &Chain, group: &Group) -> f64 {
    let seconds = |&stage: &usize| {
        let bytes = bytes_alone(problem, boxes, &problem.program.stages()[stage]);
        match values(problem, boxes, stage) <= chain.alone {
            true => ALONE_SECONDS,
            false => LINK_SECONDS + bytes / (chain.blocks as f64 * BLOCK_BYTES_PER_SECOND),
        }
    };
    group.stages.iter().map(seconds).sum()
}
