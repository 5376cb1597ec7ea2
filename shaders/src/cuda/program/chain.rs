//! The kernels of chains: stages that go over few values each, one after another in one launch.

use std::collections::HashSet;

use abide_core::plan::Chain;
use abide_core::program::{Boxes, Indices, Launch, Storage, around};
use abide_core::{Error, Problem, Result};

use super::kinds::boxed;
use super::stages::{Body, Entry};
use super::{KernelLaunch, Numbered, Part, ProgramKernels};
use crate::text::Text;

const CHAIN: &str = include_str!("../../../kernels/cuda/program/chain.cuh");
const CHAIN_REDUCE: &str = include_str!("../../../kernels/cuda/program/chain_reduce.cuh");

/// The most bytes of a kernel's arguments on every device.
const ARGUMENT_BYTES: usize = 4096;

/// What the arguments have behind the buffers.
const OTHER_ARGUMENTS: usize = 5;

/// A kernel of a chain.
#[derive(Debug, Clone)]
pub struct ChainKernel {
    /// The stages of its launches, in order.
    pub stages: Vec<Vec<usize>>,
    /// The kernel, on one block or a cluster.
    pub kernel: KernelLaunch,
}

/// What a device is given at a time.
#[derive(Debug, Clone, Copy)]
pub enum Launched<'a> {
    /// The kernels of a stage or group.
    Group(&'a Launch),
    /// A chain, by its number, for these launches.
    Chain(usize, &'a [Launch]),
}

impl Launched<'_> {
    /// Returns the numbers of the stages.
    pub fn stages(&self) -> Vec<usize> {
        match self {
            Launched::Group(launch) => launch.stages.clone(),
            Launched::Chain(_, launches) => {
                launches.iter().flat_map(|launch| launch.stages.clone()).collect()
            }
        }
    }
}

impl ProgramKernels {
    /// Returns the launches of a step with those of each chain together.
    pub fn launched<'a>(&'a self, launches: &'a [Launch]) -> Vec<Launched<'a>> {
        let (mut all, mut left) = (Vec::with_capacity(launches.len()), launches);
        while let Some((first, others)) = left.split_first() {
            let begins = |chain: &ChainKernel| {
                let stages = left.iter().map(|launch| &launch.stages);
                chain.stages.len() <= left.len() && chain.stages.iter().eq(stages.take(chain.stages.len()))
            };
            match self.chains.iter().position(begins) {
                Some(number) => {
                    let (own, others) = left.split_at(self.chains[number].stages.len());
                    all.push(Launched::Chain(number, own));
                    left = others;
                }
                None => {
                    all.push(Launched::Group(first));
                    left = others;
                }
            }
        }
        all
    }

    /// Returns the numbers of the buffers that a chain's launches name, slot by slot.
    pub fn buffers_of(&self, launches: &[Launch]) -> Vec<Option<usize>> {
        let own = launches.iter().filter_map(|launch| Some(self.of(launch)?.buffers(launch)));
        own.flatten().collect()
    }
}

/// A stage of a chain: the number of its struct, and the buffers that it names.
struct Link<'a> {
    body: &'a Body,
    number: usize,
    /// The place of its first buffer among those of the chain.
    first: usize,
    slots: usize,
    /// All that it computes or takes along.
    all: Indices,
}

/// Writes the kernels of a partition's chains, whose stages are given with their structs.
pub(super) fn write(
    text: &mut Text,
    problem: &Problem,
    boxes: &Boxes,
    chains: &[Chain],
    (numbered, bodies): (&[Numbered<'_>], &[(Body, Vec<&str>)]),
    (storage, may_stop): (&Storage, bool),
    groups: &dyn Fn(&Chain) -> Vec<Vec<usize>>,
) -> Result<Vec<ChainKernel>> {
    let launched: HashSet<&[usize]> =
        storage.steps.iter().flat_map(|step| &step.launches).map(|launch| &*launch.stages).collect();
    let mut kernels = Vec::new();
    for chain in chains {
        let mut stages = groups(chain);
        stages.retain(|own| launched.contains(&**own));
        let (mut links, mut slots) = (Vec::new(), 0);
        for own in &stages {
            let known = numbered.iter().find(|known| known.stages == own);
            let Some(known) = known else { continue };
            if let Some(number) = known.body {
                let all = all_of(problem, boxes, own);
                let body = &bodies[number].0;
                links.push(Link { body, number, first: slots, slots: known.slots.len(), all });
            }
            slots += known.slots.len();
        }
        let bytes = (slots.max(1) + OTHER_ARGUMENTS) * size_of::<u64>();
        if bytes > ARGUMENT_BYTES {
            let what = format!("bytes of the arguments of a chain of {} stages", stages.len());
            return Err(Error::limit(what, bytes, ARGUMENT_BYTES, "use --fuse off"));
        }
        let kernel = KernelLaunch {
            entry: format!("chain_{}", kernels.len()),
            blocks: chain.blocks,
            threads: chain.threads,
            shared_bytes: 0,
            carries: false,
            part: Part::Chain(slots.max(1)),
        };
        write_kernel(text, chain, &kernel, &links, may_stop);
        kernels.push(ChainKernel { stages, kernel });
    }
    Ok(kernels)
}

/// Writes what all chains' kernels share.
pub(super) fn write_shared(text: &mut Text, reduces: bool) {
    text.file(CHAIN);
    if reduces {
        text.file(CHAIN_REDUCE);
    }
}

/// Returns the box around all that stages compute, take along or reduce.
fn all_of(problem: &Problem, boxes: &Boxes, stages: &[usize]) -> Indices {
    let own = stages.iter().flat_map(|&stage| {
        let kept = problem.program.stages()[stage].writes.iter().map(|&name| boxes.buffers[name].indices());
        boxes.stages[stage].iter().cloned().chain(kept)
    });
    around(&own.collect::<Vec<_>>()).unwrap_or([0..0, 0..0, 0..0])
}

/// What one of a chain's turns does, between two waits.
struct Turn {
    statement: String,
    /// Whether the first block does it alone.
    is_alone: bool,
}

fn write_kernel(text: &mut Text, chain: &Chain, kernel: &KernelLaunch, links: &[Link<'_>], may_stop: bool) {
    let turns: Vec<Turn> = links.iter().flat_map(|link| turns(chain, link)).collect();
    let Part::Chain(slots) = kernel.part else { return };
    let cluster = match chain.blocks {
        1 => String::new(),
        blocks => format!("__cluster_dims__({blocks}, 1, 1) "),
    };
    text.blank();
    text.push(format!(
        "extern \"C\" __global__ void {cluster}__launch_bounds__({}, 1) \
         {}(const __grid_constant__ ChainArguments<{slots}> all)",
        chain.threads, kernel.entry
    ));
    text.push("{");
    if may_stop {
        text.push("if (all.progress->stopped) return;");
    }
    let mut is_first = true;
    for part in turns.chunk_by(|one, other| one.is_alone && other.is_alone) {
        if !std::mem::take(&mut is_first) {
            text.push(format!("meet<{}>();", chain.blocks > 1));
        }
        let is_alone = part[0].is_alone && chain.blocks > 1;
        if is_alone {
            text.push("if (blockIdx.x == 0) {");
        }
        for (number, turn) in part.iter().enumerate() {
            if number > 0 {
                text.push("meet<false>();");
            }
            text.push(&turn.statement);
        }
        if is_alone {
            text.push("}");
        }
    }
    text.push("}");
}

/// Returns what a stage does, part by part.
fn turns(chain: &Chain, link: &Link<'_>) -> Vec<Turn> {
    let Link { body, number, first, slots, all } = link;
    let arguments = format!("linked<{first}, {slots}>(all)");
    let values = all.iter().map(ExactSizeIterator::len).product::<usize>();
    let is_alone = chain.blocks == 1 || values <= chain.alone;
    let (thread, count) = match is_alone {
        true => ("threadIdx.x".to_owned(), chain.threads),
        false => (format!("blockIdx.x * {} + threadIdx.x", chain.threads), chain.blocks * chain.threads),
    };
    let turn = |call: String, is_alone: bool| Turn {
        statement: format!("{{ const Linked arguments = {arguments}; {call} }}"),
        is_alone,
    };
    let over = |function: String| turn(format!("{function}(arguments, {thread}, {count});"), is_alone);
    let join = || turn(format!("join_leaves<Stage{number}, {}>(arguments);", chain.threads), true);
    let each = body.entries.iter().map(|entry| match entry {
        Entry::Update => vec![over(format!("update_box<Stage{number}, {}>", boxed(all)))],
        Entry::Reduce => vec![over(format!("reduce_box<Stage{number}>")), join()],
        Entry::Tail => vec![over(format!("reduce_made_box<Stage{number}>")), join()],
        Entry::Scalar => vec![turn(format!("if (threadIdx.x == 0) {}", entry.call(*number, "0")), true)],
        // Chains have no stages at points, and few leaves, which are joined above.
        Entry::Carry | Entry::Points | Entry::JoinRows | Entry::JoinLeaves => Vec::new(),
    });
    each.flatten().collect()
}
