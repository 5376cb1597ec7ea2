//! The kernels of programs that are not plain: one or two per stage or group of stages, the same ones for those
//! that do the same; or one persistent kernel, which does the work of all of them.
//!
//! The text depends on the problem and the tile alone, and not on the buffers that a launch is given. So any
//! assignment of buffers ([`abide_core::program::Storage`]) runs on the same kernels.

mod chain;
mod end;
mod group;
mod kinds;
mod persistent;
#[cfg(test)]
mod quotients;
mod stages;
mod transform;
mod turns;

use std::collections::{BTreeSet, HashMap};

use abide_core::plan::fused::{COPIES_AHEAD, Group};
use abide_core::plan::{PersistentProgram, Stepwise};
use abide_core::program::{Boxes, Launch, StageKind, made, outlasts};
use abide_core::reduction::leaf;
use abide_core::{DType, Error, Problem, Program, Result, Stage};

use self::group::GroupBody;
use self::kinds::triple;
use self::stages::{Body, Entry, Joined};
use super::pitch::pitched_values;
use super::quotients::QUOTIENTS;
use super::{COPIES, Cuda, DEVICE, FUNCTIONS, RANDOM, TREE, constant};
use crate::program::matrices::Matrices;
use crate::program::{Distinct, Grid, Kinds, Slot};
use crate::text::Text;
use crate::{boundary, functions};

pub use self::chain::{ChainKernel, Launched};
pub use self::end::StepEnd;
pub use self::persistent::{STEPS_ENTRY, TaskSchedule};
pub use self::turns::LoopKernels;

const PROGRAM: &str = include_str!("../../kernels/cuda/program/program.cuh");
const REDUCE: &str = include_str!("../../kernels/cuda/program/reduce.cuh");
const GROUP: &str = include_str!("../../kernels/cuda/program/group.cuh");
const LOADS: &str = include_str!("../../kernels/cuda/program/loads.cuh");
const GROUP_REDUCE: &str = include_str!("../../kernels/cuda/program/group_reduce.cuh");

/// The kernels of a problem.
#[derive(Debug, Clone)]
pub struct ProgramKernels {
    /// The text of all of them.
    pub text: String,
    /// Of each group of stages, by their numbers.
    pub groups: HashMap<Vec<usize>, StageKernels>,
    /// Those of chains, whose stages have no kernels of their own.
    pub chains: Vec<ChainKernel>,
    /// The buffers that a kernel's arguments name; the addresses of the scalars as stages of fields read them, the
    /// leaves, the progress, the record's rows, the scalars in f64 and the matrices follow them.
    pub slots: usize,
    /// The values of the leaves of reductions.
    pub leaves: usize,
    /// The matrices of transforms.
    pub matrices: Matrices,
    /// The kernel that ends each step, where the run may end or halt there, or has a record.
    pub end: Option<StepEnd>,
    /// The kernels between the turns of loops, where a condition ends one.
    pub loops: Option<LoopKernels>,
    /// The names of the kernels whose work a persistent kernel does, by their numbers there; empty where each is a kernel
    /// of its own.
    pub performed: Vec<String>,
    /// Whether a condition may end or halt the run, or end a loop.
    pub may_stop: bool,
}

impl ProgramKernels {
    /// Returns the kernels of a launch.
    pub fn of(&self, launch: &Launch) -> Option<&StageKernels> {
        self.groups.get(&launch.stages)
    }
}

/// The kernels of a stage or group, and what their arguments name.
#[derive(Debug, Clone)]
pub struct StageKernels {
    /// The kernels, in order; none for a stage without a result.
    pub launches: Vec<KernelLaunch>,
    /// What each of the first slots names.
    pub slots: Vec<Slot>,
}

/// A kernel and its grid, which has one axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelLaunch {
    /// The kernel's name.
    pub entry: String,
    /// The number of blocks.
    pub blocks: usize,
    /// Threads of a block.
    pub threads: usize,
    /// Bytes of shared memory that a block asks for at its launch.
    pub shared_bytes: usize,
    /// Whether all that it does is to take values along to other buffers, so that a launch whose outputs stay
    /// where they are leaves it out.
    pub carries: bool,
    /// What the blocks go over.
    pub(crate) part: Part,
}

/// What the blocks of a kernel go over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Tiles, for each of which a stage or group is computed.
    Tiles(Grid),
    /// The same, for leaves of a reduction, which the last block joins.
    Joined(Grid, Grid),
    /// Leaves of all values, which are taken along.
    Carried(Grid),
    /// Points.
    Points,
    /// Rows of the leaves of a reduction.
    Rows,
    /// The leaves of a reduction.
    Leaves(Grid),
    /// A formula of scalars.
    Scalar,
    /// Tiles of transformed lines.
    Lines,
    /// The end of a step, or what stands between the turns of a loop.
    End,
    /// Stages, whose arguments name so many buffers, one after another.
    Chain(usize),
}

impl KernelLaunch {
    /// Returns whether the kernel does nothing but to join leaves of a reduction.
    pub fn joins_leaves(&self) -> bool {
        matches!(self.part, Part::Rows | Part::Leaves(_))
    }

    /// Returns the buffers that a chain's arguments name; `None` if the kernel is of one stage or group.
    pub fn slots_of_chain(&self) -> Option<usize> {
        match self.part {
            Part::Chain(slots) => Some(slots),
            _ => None,
        }
    }

    /// Returns the leaves of a reduction along each axis, which the kernel joins to its scalar; `None` if it joins none.
    pub fn joined_leaves(&self) -> Option<[usize; 3]> {
        match &self.part {
            Part::Leaves(leaves) | Part::Joined(_, leaves) => Some(leaves.blocks),
            _ => None,
        }
    }
}

impl StageKernels {
    /// Returns the numbers of the buffers that a launch of the stage names, slot by slot.
    pub fn buffers(&self, launch: &Launch) -> Vec<Option<usize>> {
        self.slots.iter().map(|slot| slot.buffer(launch)).collect()
    }
}

/// A group of stages, the numbers of the struct of a stage and of a group that it has, and the buffers that it names.
struct Numbered<'a> {
    stages: &'a [usize],
    body: Option<usize>,
    group: Option<usize>,
    slots: Vec<Slot>,
}

/// Returns the kernels of a problem that is not plain, for the tile of its plan. The problem is that whose stages the plan's
/// groups are of (`Partition::split_problem`).
pub fn program_kernels(problem: &Problem, tiles: &Stepwise) -> Result<ProgramKernels> {
    kernels(problem, tiles, None)
}

/// Returns the persistent kernel of a problem that is not plain. Launches then say which tiles there are of what.
pub fn persistent_kernels(problem: &Problem, plan: &PersistentProgram) -> Result<ProgramKernels> {
    kernels(problem, &plan.tiles, Some(plan))
}

fn kernels(
    problem: &Problem,
    tiles: &Stepwise,
    persistent: Option<&PersistentProgram>,
) -> Result<ProgramKernels> {
    let boxes = Boxes::of(problem)?;
    let program = problem.program.simplified(problem.dtype);
    let partition = &tiles.partition;
    let kinds = Kinds::of(problem, program.stages(), &boxes, partition);
    let matrices = Matrices::of(&program, &boxes);
    let mut bodies: Distinct<'_, Body> = Distinct::default();
    let mut groups: Distinct<'_, GroupBody> = Distinct::default();
    // Groups that do the same may read other fields.
    let mut all: Vec<Numbered<'_>> = Vec::new();
    let joined = if persistent.is_some() { Joined::Task } else { Joined::Within };
    let mut body_of = |numbers: &[usize], joined: Joined| {
        let (stage, own) = (&program.stages()[numbers[0]], &boxes.stages[numbers[0]]);
        let body = match (numbers, stage.does) {
            (&[_, reduction], _) => {
                let (reduced, region) = (&program.stages()[reduction], &boxes.stages[reduction]);
                let stored = outlasts(problem, &boxes, numbers);
                stages::tail(problem, &kinds, [stage, reduced], [own, region], &stored, joined)
            }
            (_, StageKind::Update) if !stage.points.is_empty() => stages::points(problem, &kinds, stage, own),
            (_, StageKind::Update) => stages::update(problem, &kinds, stage, own, tiles),
            (_, StageKind::Reduce(..)) => stages::reduce(problem, &kinds, stage, own, joined),
            (_, StageKind::Scalar(scalar)) => Some(stages::scalar(stage, scalar)),
            (_, StageKind::Transform(_)) => matrices
                .at(numbers[0])
                .and_then(|matrix| transform::body(problem, &kinds, stage, matrix, own)),
        }?;
        let (text, slots) = (String::from(body.text.as_ref()), body.slots.clone());
        Some((bodies.number(&text, body, &stage.name), slots))
    };
    for Group { stages, fused, pass } in partition.all() {
        if all.iter().any(|known| known.stages == stages) {
            continue;
        }
        if pass.is_some() {
            // Its kernel is that of a plain problem, with a text of its own.
            all.push(Numbered { stages, body: None, group: None, slots: Vec::new() });
            continue;
        }
        let Some(fused) = fused else {
            let body = body_of(stages, joined);
            let (number, slots) = body.map_or((None, Vec::new()), |(number, slots)| (Some(number), slots));
            all.push(Numbered { stages, body: number, group: None, slots });
            continue;
        };
        let threads = persistent.map_or(fused.threads, |plan| plan.threads());
        let names = made(&program, stages);
        let body = group::group(problem, &kinds, program.stages(), &boxes, fused, threads, &names);
        let after = if persistent.is_some() { Joined::Task } else { Joined::After };
        let reduced = body.reduced.and_then(|member| body_of(&[fused.members[member].stage], after));
        let (text, slots) = (format!("{reduced:?}{}", body.text.as_ref()), body.slots.clone());
        let reduced = reduced.map(|(number, _)| number);
        let names: Vec<&str> = stages.iter().map(|&stage| &*program.stages()[stage].name).collect();
        let number = groups.number(&text, GroupBody { joined_by: reduced, ..body }, names[0]);
        groups.all[number].1 = names;
        all.push(Numbered { stages, body: reduced, group: Some(number), slots });
    }
    let (bodies, groups) = (bodies.all, groups.all);
    let end = StepEnd::of(problem);
    let slots = all.iter().map(|own| own.slots.len()).chain(end.iter().map(StepEnd::slots));
    let slots = slots.max().unwrap_or(0).max(1);
    let loops = LoopKernels::of(problem);
    let may_end = end.is_some() && (problem.until.is_some() || problem.marks.is_some());
    let may_stop = may_end || loops.is_some();
    let is_reduced = |body: &Body| body.leaves.is_some();
    // Leaves are joined into as many values again.
    let leaves =
        bodies.iter().filter(|(body, _)| is_reduced(body)).map(|(body, _)| 2 * body.leaves().count());
    let leaves = leaves.max().unwrap_or(0);
    // What runs in chains alone needs no kernels of its own.
    let is_chained = |stages: &[usize]| partition.chain_of(stages).is_some();
    let launched_bodies: BTreeSet<usize> =
        all.iter().filter(|own| !is_chained(own.stages)).filter_map(|own| own.body).collect();
    let mut text = head(problem, &boxes, tiles, slots, persistent);
    let exact = exact_functions(&mut text, problem, &program);
    text.file(PROGRAM);
    if bodies.iter().any(|(body, _)| is_reduced(body)) {
        text.file(TREE);
        text.file(REDUCE);
    }
    let transforms = bodies.iter().any(|(body, _)| body.entries.contains(&Entry::Transform));
    if !groups.is_empty() {
        text.file(GROUP);
    }
    let copies = groups.iter().any(|(group, _)| group.copies);
    if copies || transforms {
        let vector = if problem.dtype == DType::F32 { "float4" } else { "double2" };
        text.push(format!("typedef {vector} DeviceVector;"));
        text.file(COPIES);
    }
    if transforms {
        transform::write_shared(&mut text);
    }
    if copies {
        text.push(format!("constexpr int AHEAD = {COPIES_AHEAD};"));
        text.file(LOADS);
    }
    if groups.iter().any(|(group, _)| group.joined_by.is_some()) {
        text.file(GROUP_REDUCE);
    }
    kinds::write(&mut text, &kinds, problem);
    for (number, (body, names)) in bodies.iter().enumerate() {
        text.blank();
        text.push(format!("// {}", names.join(", ")));
        if exact && body.entries.contains(&Entry::Scalar) {
            text.push(format!("namespace {EXACT} {{\nstruct Stage{number} {{"));
            text.push(&body.text);
            text.push(format!("}};\n}}\nusing {EXACT}::Stage{number};"));
        } else {
            text.push(format!("struct Stage{number} {{"));
            text.push(&body.text);
            text.push("};");
        }
        let is_launched = persistent.is_none() && launched_bodies.contains(&number);
        for entry in body.entries.iter().filter(|_| is_launched) {
            text.push(format!(
                "extern \"C\" __global__ void __launch_bounds__({}) \
                 {entry}_{number}(const __grid_constant__ Arguments arguments)",
                entry.threads(tiles)
            ));
            text.push("{");
            if may_stop {
                text.push("if (arguments.progress->stopped) return;");
            }
            text.push(entry.call(number, "blockIdx.x"));
            text.push("}");
        }
    }
    for (number, (group, names)) in groups.iter().enumerate() {
        group.write(&mut text, number, names);
        if persistent.is_none() {
            group.write_kernel(&mut text, number, may_stop);
        }
    }
    let chains = match partition.chains.is_empty() {
        true => Vec::new(),
        false => {
            chain::write_shared(&mut text, bodies.iter().any(|(body, _)| is_reduced(body)));
            chain::write(&mut text, problem, &boxes, partition, (&all, &bodies), may_stop)?
        }
    };
    let launches = |body: Option<usize>, group: Option<usize>| -> Result<Vec<KernelLaunch>> {
        let mut launches: Vec<KernelLaunch> = Vec::new();
        launches.extend(group.map(|number| groups[number].0.launch(number)));
        let entries = body.map_or(&[][..], |number| bodies[number].0.entries).iter();
        // The leaves of a group's reduction are made.
        let joins = |entry: &Entry| matches!(entry, Entry::JoinRows | Entry::JoinLeaves);
        for entry in entries.filter(|entry| group.is_none() || joins(entry)) {
            let number = body.unwrap_or_default();
            launches.push(KernelLaunch {
                entry: format!("{entry}_{number}"),
                blocks: entry.blocks(&bodies[number].0),
                threads: entry.threads(tiles),
                shared_bytes: entry.shared_bytes(&bodies[number].0),
                carries: *entry == Entry::Carry,
                part: entry.part(&bodies[number].0),
            });
        }
        if let Some(launch) = launches.iter().find(|launch| launch.blocks > i32::MAX as usize) {
            return Err(Error::limit("blocks of a launch", launch.blocks, i32::MAX, "choose a smaller size"));
        }
        Ok(launches)
    };
    let launched = all.into_iter().map(|Numbered { stages, body, group, slots }| {
        let body = body.filter(|_| !is_chained(stages));
        Ok((stages.to_vec(), StageKernels { launches: launches(body, group)?, slots }))
    });
    let launched = launched.collect::<Result<_>>()?;
    if let Some(end) = &end {
        end.write(&mut text, problem, &boxes);
        if persistent.is_none() {
            end.write_kernel(&mut text);
        }
    }
    if let Some(loops) = &loops {
        loops.write(&mut text, problem);
    }
    let performed = match persistent {
        Some(plan) => persistent::write(&mut text, plan, &bodies, &groups, end.as_ref()),
        None => Vec::new(),
    };
    Ok(ProgramKernels {
        groups: launched,
        chains,
        text: text.into(),
        slots,
        leaves,
        matrices,
        end,
        loops,
        performed,
        may_stop,
    })
}

/// The namespace of what computes in f64 among fields of f32.
const EXACT: &str = "of_scalars";

/// Writes the elementary functions of all formulas, and returns whether formulas of scalars are in a type of their own.
/// Those have functions of their own then, in the namespace [`EXACT`], where `real` is f64.
fn exact_functions(text: &mut Text, problem: &Problem, program: &Program) -> bool {
    let is_exact = |stage: &&Stage| stage.dtype(problem.dtype) != problem.dtype;
    let functions = |exact: bool| {
        let stages = program.stages().iter().filter(|stage| is_exact(stage) == exact);
        functions::of(stages.flat_map(|stage| &stage.dag.nodes))
    };
    let [of_fields, of_scalars] = [false, true].map(functions);
    let divides = program.stages().iter().any(|stage| Cuda::of_launch(&stage.dag).at_once);
    if divides || !of_fields.is_empty() || !of_scalars.is_empty() {
        text.file(FUNCTIONS);
    }
    if divides {
        text.file(QUOTIENTS);
    }
    functions::write(text, "", &Cuda::PLAIN, problem.dtype, &of_fields);
    if functions::draws(program) {
        text.file(RANDOM);
    }
    let exact = program.stages().iter().any(|stage| is_exact(&stage));
    if exact {
        text.blank();
        text.push(format!("namespace {EXACT} {{"));
        text.push("typedef double real;");
        functions::write(text, "", &Cuda::PLAIN, DType::F64, &of_scalars);
        text.push("}");
    }
    exact
}

/// Returns the values of all scalars before the first step as a kernel's arguments name them: the parameters, and then the
/// computed scalars, in f64; and, where fields are f32, behind them the same values rounded for stages of fields.
pub fn program_scalars(problem: &Problem) -> Vec<u8> {
    let mut all: Vec<f64> = problem.parameters.iter().chain(&problem.scalars).copied().collect();
    all.resize(all.len().max(1), 0.0);
    let exact = all.iter().flat_map(|value| value.to_ne_bytes());
    let rounded = all.iter().filter(|_| problem.dtype == DType::F32);
    exact.chain(rounded.flat_map(|&value| (value as f32).to_ne_bytes())).collect()
}

/// Returns the types, the boundary kinds and the constants that all stages share.
fn head(
    problem: &Problem,
    boxes: &Boxes,
    tiles: &Stepwise,
    slots: usize,
    persistent: Option<&PersistentProgram>,
) -> Text {
    let mut text = Text::default();
    let real = if problem.dtype == DType::F32 { "float" } else { "double" };
    // Taps reach beyond a buffer before the boundary is asked; leave room below the limit of 32 bits.
    let largest = boxes.buffers.iter().map(|buffer| pitched_values(buffer, problem.dtype)).max();
    let offset = if largest.unwrap_or(0) < (1 << 30) { "int" } else { "long long" };
    text.push(format!("// {} on {} {}", problem.program.name(), problem.shape, problem.dtype));
    text.file(DEVICE);
    text.blank();
    text.push(format!("typedef {real} real;\ntypedef {offset} Offset;"));
    boundary::c(&mut text);
    boundary::c_signs(&mut text);
    text.push(triple("int", "THREADS", tiles.threads));
    text.push(triple("int", "LEAF", leaf(problem.shape.dimensions())));
    constant(&mut text, "SLOTS", slots);
    text.push(format!("constexpr bool PERSISTENT = {};", persistent.is_some()));
    // Whether a launch may change scalars that boundaries have.
    let changes = persistent.is_some() || !tiles.partition.chains.is_empty();
    text.push(format!("constexpr bool SCALARS_CHANGE = {changes};"));
    text
}

/// Returns the sectors of memory with which a tile begins, in values.
fn sector(dtype: DType) -> isize {
    const BYTES: usize = 32;
    (BYTES / dtype.bytes()) as isize
}
