//! The kernels of chains: stages that go over few values each, one after another in one launch.

use std::collections::HashSet;

use abide_core::plan::Carrier;
use abide_core::plan::fused::Partition;
use abide_core::program::{Boxes, Indices, Launch, Storage, around};
use abide_core::reduction::leaf;
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
                let stages = left.iter().map(|launch| &launch.stages).take(chain.stages.len());
                !chain.stages.is_empty() && chain.stages.iter().eq(stages)
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
    partition: &Partition,
    (numbered, bodies): (&[Numbered<'_>], &[(Body, Vec<&str>)]),
    may_stop: bool,
) -> Result<Vec<ChainKernel>> {
    let storage = Storage::of_groups(problem, boxes, &partition.groups())?;
    let launched: HashSet<&[usize]> =
        storage.steps.iter().flat_map(|step| &step.launches).map(|launch| &*launch.stages).collect();
    let mut kernels: Vec<ChainKernel> = Vec::new();
    for chain in &partition.chains {
        let groups = partition.of_chain(chain).iter().map(|group| &group.stages);
        let stages: Vec<Vec<usize>> = groups.filter(|own| launched.contains(&***own)).cloned().collect();
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
        let entry = format!("chain_{}", kernels.len());
        let kernel = match chain.by {
            Carrier::Blocks { blocks, threads, alone } => {
                let few = Few { blocks, threads, alone };
                write_few(text, few, entry, &links, (slots.max(1), may_stop))?
            }
            Carrier::Reduction => write_reduction(text, entry, &links, may_stop)?,
        };
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

/// The blocks of a chain that goes over few values.
#[derive(Clone, Copy)]
struct Few {
    blocks: usize,
    threads: usize,
    alone: usize,
}

/// Writes the kernel of a chain that a few blocks carry out.
fn write_few(
    text: &mut Text,
    few: Few,
    entry: String,
    links: &[Link<'_>],
    (slots, may_stop): (usize, bool),
) -> Result<KernelLaunch> {
    let bytes = (slots + OTHER_ARGUMENTS) * size_of::<u64>();
    if bytes > ARGUMENT_BYTES {
        let what = format!("bytes of the arguments of a chain of {} stages", links.len());
        return Err(Error::limit(what, bytes, ARGUMENT_BYTES, "use --fuse off"));
    }
    let turns: Vec<Turn> = links.iter().flat_map(|link| turns(few, link)).collect();
    let cluster = match few.blocks {
        1 => String::new(),
        blocks => format!("__cluster_dims__({blocks}, 1, 1) "),
    };
    text.blank();
    text.push(format!(
        "extern \"C\" __global__ void {cluster}__launch_bounds__({}, 1) \
         {entry}(const __grid_constant__ ChainArguments<{slots}> all)",
        few.threads
    ));
    text.push("{");
    if may_stop {
        text.push("if (all.progress->stopped) return;");
    }
    let mut is_first = true;
    for part in turns.chunk_by(|one, other| one.is_alone && other.is_alone) {
        if !std::mem::take(&mut is_first) {
            text.push(format!("meet<{}>();", few.blocks > 1));
        }
        let is_alone = part[0].is_alone && few.blocks > 1;
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
    let (blocks, threads, part) = (few.blocks, few.threads, Part::Chain(slots));
    Ok(KernelLaunch { entry, blocks, threads, shared_bytes: 0, carries: false, part })
}

/// Writes the kernel of a reduction and the formulas of scalars behind it.
fn write_reduction(
    text: &mut Text,
    entry: String,
    links: &[Link<'_>],
    may_stop: bool,
) -> Result<KernelLaunch> {
    let fault = |reason: &str| Error::invalid("a chain of stages", reason, "make a plan for this problem");
    let Some((Link { body, number, .. }, scalars)) = links.split_first() else {
        return Err(fault("it has none"));
    };
    let &[first @ (Entry::Reduce | Entry::Tail)] = body.entries else {
        return Err(fault("its first one has no block that joins all leaves"));
    };
    let threads = leaf(1).iter().product();
    text.blank();
    text.push(format!(
        "extern \"C\" __global__ void __launch_bounds__({threads}) \
         {entry}(const __grid_constant__ Arguments arguments)"
    ));
    text.push("{");
    if may_stop {
        text.push("if (arguments.progress->stopped) return;");
    }
    text.push(format!("if (!{first}<Stage{number}>(arguments, blockIdx.x)) return;"));
    scalars.iter().for_each(|link| text.push(Entry::Scalar.call(link.number, "0")));
    text.push("}");
    let (blocks, part) = (first.blocks(body), first.part(body));
    Ok(KernelLaunch { entry, blocks, threads, shared_bytes: 0, carries: false, part })
}

/// Returns what a stage does, part by part.
fn turns(chain: Few, link: &Link<'_>) -> Vec<Turn> {
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
        // Chains have no stages at points or of lines, and few leaves, which are joined above.
        Entry::Carry | Entry::Points | Entry::Transform | Entry::JoinRows | Entry::JoinLeaves => Vec::new(),
    });
    each.flatten().collect()
}
