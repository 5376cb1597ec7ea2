//! The persistent kernel of a program, and its schedule: the tasks of the steps that repeat, and who waits for whom.

use std::ops::Range;

use abide_core::expr::Tap;
use abide_core::plan::PersistentProgram;
use abide_core::plan::fused::Fused;
use abide_core::program::{Boxes, Indices, Launch, Launches, StageKind, Storage, around, uses_scalar};
use abide_core::{Boundary, Error, Problem, Result};

use super::group::GroupBody;
use super::stages::{Body, Entry};
use super::{KernelLaunch, Part, ProgramKernels, StepEnd};
use crate::cuda::constant;
use crate::program::Grid;
use crate::program::waits::{Access, Reach, Task, Thing, waits};
use crate::text::Text;

const PERSISTENT: &str = include_str!("../../../kernels/cuda/program/persistent.cuh");

/// The name of the persistent kernel of a program.
pub const STEPS_ENTRY: &str = "program_steps";

/// The most waits of a schedule, and the most tasks times blocks: each takes 8 bytes at the most.
const MOST: usize = 1 << 26;

/// Writes the kernel; returns the names of the kernels whose work it does, by their numbers.
pub(super) fn write(
    text: &mut Text,
    plan: &PersistentProgram,
    bodies: &[(Body, Vec<&str>)],
    groups: &[(GroupBody, Vec<&str>)],
    end: Option<&StepEnd>,
) -> Vec<String> {
    let (mut names, mut cases): (Vec<String>, Vec<String>) = Default::default();
    let mut add = |name: String, statement: String| {
        cases.push(format!("case {}: {statement} break;", names.len()));
        names.push(name);
    };
    for (number, (body, _)) in bodies.iter().enumerate() {
        for entry in body.entries {
            let call = entry.call(number, "tile");
            let statement = match entry {
                // The next tile is joined in the same shared memory.
                Entry::Reduce | Entry::Tail => format!("{call} __syncthreads();"),
                Entry::Scalar => format!("if (threadIdx.x == 0) {call}"),
                _ => call,
            };
            add(format!("{entry}_{number}"), statement);
        }
    }
    for (number, (group, _)) in groups.iter().enumerate() {
        // The next tile has its rows in the same shared memory.
        add(format!("group_{number}"), format!("{} __syncthreads();", group.call(number, "tile")));
    }
    if let Some(end) = end {
        add(end.kernel.entry.clone(), end.call().to_owned());
    }
    text.blank();
    constant(text, "BLOCKS", plan.blocks);
    constant(text, "BLOCKS_PER_MULTIPROCESSOR", plan.blocks_per_multiprocessor);
    constant(text, "STEP_BEGINS", names.len());
    text.push(
        "__device__ __forceinline__ void perform(unsigned kernel, const Arguments& arguments, unsigned tile)",
    );
    text.push("{");
    text.push("switch (kernel) {");
    cases.iter().for_each(|case| text.push(case));
    text.push("}");
    text.push("}");
    text.file(PERSISTENT);
    names
}

/// What blocks go through in the steps of a storage that repeat, or in those before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSchedule {
    /// Of each task, the number of what is done and of its tiles: the kernel's `Task`.
    pub tasks: Vec<[u32; 2]>,
    /// The buffers that each task names, slot by slot.
    pub buffers: Vec<Vec<Option<usize>>>,
    /// Of each task and block, its first wait; and the end of the last.
    pub first: Vec<u32>,
    /// The block that is awaited, and how many tasks ago it did what has to be done: the kernel's `Wait`.
    pub waits: Vec<[u32; 2]>,
    /// Of each step, its first task; and the end of the last.
    begins: Vec<usize>,
}

impl TaskSchedule {
    /// Returns the schedule through some of a storage's steps, which come again and again or once.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where there are too many tasks and waits; [`Error::Invalid`] where the kernels are not those of the
    /// plan.
    pub fn new(
        problem: &Problem,
        boxes: &Boxes,
        storage: &Storage,
        steps: Range<usize>,
        kernels: &ProgramKernels,
        plan: &PersistentProgram,
    ) -> Result<TaskSchedule> {
        let repeats = steps.start == storage.repeated;
        let writer = Writer { problem, boxes, kernels, plan };
        let mut schedule = TaskSchedule {
            tasks: Vec::new(),
            buffers: Vec::new(),
            first: vec![0],
            waits: Vec::new(),
            begins: vec![0],
        };
        let mut tasks = Vec::new();
        for step in &storage.steps[steps] {
            writer.step(step, &mut schedule, &mut tasks)?;
            schedule.begins.push(schedule.tasks.len());
        }
        let within = |what: &str, count: usize| match count <= MOST {
            true => Ok(()),
            false => Err(Error::limit(what, count, MOST, "use --execution stepwise")),
        };
        within("tasks of all blocks of a persistent kernel", schedule.tasks.len() * plan.blocks)?;
        for of_block in waits(&tasks, plan.blocks, repeats).into_iter().flatten() {
            schedule.waits.extend(of_block.iter().map(|wait| [wait.block as u32, wait.back as u32]));
            schedule.first.push(schedule.waits.len() as u32);
        }
        within("waits of all blocks of a persistent kernel", schedule.waits.len())?;
        Ok(schedule)
    }

    /// Returns the first task of some steps from one of the schedule's on, and how many tasks they are.
    pub fn span(&self, step: usize, steps: u64) -> (u32, u64) {
        let count = self.begins.len() - 1;
        let (rounds, rest) = (steps / count as u64, (steps % count as u64) as usize);
        let tasks = |step: usize| self.begins[step + 1] - self.begins[step];
        let rest: usize = (step..step + rest).map(|step| tasks(step % count)).sum();
        (self.begins[step] as u32, rounds * self.tasks.len() as u64 + rest as u64)
    }

    /// Returns the most steps of one launch: blocks count their tasks in 32 bits.
    pub fn most_steps(&self) -> u64 {
        u64::from(u32::MAX / 2) / (self.tasks.len() as u64).max(1)
    }
}

/// A schedule while it is made.
struct Writer<'a> {
    problem: &'a Problem,
    boxes: &'a Boxes,
    kernels: &'a ProgramKernels,
    plan: &'a PersistentProgram,
}

impl Writer<'_> {
    /// Adds the tasks of a step.
    fn step(&self, step: &Launches, schedule: &mut TaskSchedule, tasks: &mut Vec<Task>) -> Result<()> {
        let missing = || Error::invalid("plan", "its kernels are others", "make a plan for this problem");
        let mut add = |kernel: usize, buffers: Vec<Option<usize>>, task: Task| {
            schedule.tasks.push([kernel as u32, task.grid.count() as u32]);
            schedule.buffers.push(buffers);
            tasks.push(task);
        };
        let number = |launch: &KernelLaunch| {
            self.kernels.performed.iter().position(|name| *name == launch.entry).ok_or_else(missing)
        };
        if self.kernels.may_stop {
            let grid = Grid { blocks: [1, 1, self.plan.blocks], ..Grid::single() };
            add(self.kernels.performed.len(), Vec::new(), anywhere(grid, vec![reads(Thing::Progress)]));
        }
        for launch in &step.launches {
            let group = self.kernels.of(launch).ok_or_else(missing)?;
            let mut made = launch.made.iter().zip(&launch.writes);
            let moves = made.any(|(&name, target)| launch.reads[name] != *target);
            for kernel in group.launches.iter().filter(|kernel| !kernel.carries || moves) {
                add(number(kernel)?, group.buffers(launch), self.task(launch, kernel));
            }
        }
        if let Some(end) = &self.kernels.end {
            let buffers = end.buffers(step);
            let mut accesses: Vec<Access> = self.tested().into_iter().map(reads).collect();
            accesses.extend(buffers.iter().flatten().map(|&buffer| reads(Thing::Buffer(buffer))));
            accesses.push(makes(Thing::Progress));
            add(number(&end.kernel)?, buffers, anywhere(Grid::single(), accesses));
        }
        Ok(())
    }

    /// Returns the scalars that the end of a step looks at.
    fn tested(&self) -> Vec<Thing> {
        let problem = self.problem;
        let recorded = problem.record.iter().flat_map(|record| record.scalars.iter().copied());
        let until = problem.until.map(|until| until.scalar);
        let marked = problem.marks.map(|marks| marks.scalar);
        let first = problem.program.parameters().len();
        recorded.chain(until).chain(marked).map(|number| Thing::Scalar(first + number)).collect()
    }

    fn task(&self, launch: &Launch, kernel: &KernelLaunch) -> Task {
        let stage = &self.problem.program.stages()[launch.stage()];
        let mut accesses = self.scalars(launch);
        match &kernel.part {
            Part::Tiles(grid) | Part::Joined(grid, _) => self.tiles(launch, grid),
            Part::Carried(grid) => {
                accesses = self.moved(launch, grid, Some([[0; 2]; 3]), true);
                Task { grid: grid.clone(), own: self.own(launch), accesses }
            }
            Part::Points => {
                accesses.extend(stage.dag.taps().filter_map(|tap| self.buffer(launch, tap)));
                let grid = Grid { blocks: [1, 1, kernel.blocks], ..Grid::single() };
                accesses.extend(self.moved(launch, &grid, None, true));
                anywhere(grid, accesses)
            }
            Part::Rows | Part::Leaves(_) => {
                let scalar = self.reduced(launch).map(|scalar| makes(Thing::Scalar(scalar)));
                anywhere(Grid::single(), scalar.into_iter().chain([makes(Thing::Leaves)]).collect())
            }
            Part::Scalar => {
                accesses.extend(stage.does.scalar().map(|scalar| makes(Thing::Scalar(scalar))));
                anywhere(Grid::single(), accesses)
            }
            // A persistent kernel transforms nothing.
            Part::Lines | Part::End | Part::Chain(_) => anywhere(Grid::single(), accesses),
        }
    }

    /// Returns the access to all of the buffer of a tap.
    fn buffer(&self, launch: &Launch, tap: Tap) -> Option<Access> {
        launch.reads[usize::from(tap.field)].map(|buffer| reads(Thing::Buffer(buffer)))
    }

    /// Returns the accesses to the scalars in a launch's formulas and boundaries.
    fn scalars(&self, launch: &Launch) -> Vec<Access> {
        let program = &self.problem.program;
        let first = program.parameters().len();
        let used = |number: &usize| {
            launch.stages.iter().any(|&stage| uses_scalar(self.problem, &program.stages()[stage], *number))
        };
        let all = first..first + program.scalars().len();
        all.filter(used).map(|number| reads(Thing::Scalar(number))).collect()
    }

    /// Returns the scalar that a launch reduces to.
    fn reduced(&self, launch: &Launch) -> Option<usize> {
        launch.stages.iter().find_map(|&stage| match self.problem.program.stages()[stage].does {
            StageKind::Reduce(_, _, scalar) => Some(scalar),
            _ => None,
        })
    }

    /// Returns the box around all that a launch computes or takes along.
    fn own(&self, launch: &Launch) -> Indices {
        let computed = launch.stages.iter().flat_map(|&stage| &self.boxes.stages[stage]).cloned();
        let made = launch.made.iter().map(|&name| self.held(name));
        let all: Vec<Indices> = computed.chain(made).collect();
        around(&all).unwrap_or([0..0, 0..0, 0..0])
    }

    /// Returns the box of all values of a field or temporary.
    fn held(&self, name: usize) -> Indices {
        let buffer = &self.boxes.buffers[name];
        buffer.indices()
    }

    fn reach(&self, name: usize, by: [[isize; 2]; 3]) -> Reach {
        let is_field = name < self.problem.program.fields().len();
        let boundaries = is_field.then(|| self.problem.boundaries_of(name));
        let is_periodic =
            |axis: usize| boundaries.is_some_and(|all| all.0[axis].contains(&Boundary::Periodic));
        Reach { by, held: self.held(name), is_periodic: [0, 1, 2].map(is_periodic) }
    }

    /// Returns the accesses to the old and the new buffers of what a launch makes; those at any place leave others as they
    /// were.
    fn moved(&self, launch: &Launch, grid: &Grid, by: Option<[[isize; 2]; 3]>, keeps: bool) -> Vec<Access> {
        let mut accesses = Vec::new();
        for (&name, &target) in launch.made.iter().zip(&launch.writes) {
            let reach = by.map(|by| self.reach(name, by));
            if let Some(source) = launch.reads[name].filter(|_| keeps) {
                accesses.push(Access { reach: reach.clone(), ..reads(Thing::Buffer(source)) });
            }
            let held = self.held(name);
            let covers = reach.is_some()
                && (0..3).all(|axis| {
                    let end = grid.first[axis] + (grid.blocks[axis] * grid.tile[axis]) as isize;
                    grid.first[axis] <= held[axis].start && end >= held[axis].end
                });
            let own = by.map(|_| self.reach(name, [[0; 2]; 3]));
            let made = |buffer| Access { reach: own, covers, ..makes(Thing::Buffer(buffer)) };
            accesses.extend(target.map(made));
        }
        accesses
    }

    /// Returns the task of a stage or group that is computed tile by tile.
    fn tiles(&self, launch: &Launch, grid: &Grid) -> Task {
        let program = &self.problem.program;
        let fused = self.plan.tiles.partition.all().find(|group| group.stages == launch.stages);
        let fused = fused.and_then(|group| group.fused.as_ref());
        let mut reached: Vec<Option<[[isize; 2]; 3]>> = vec![None; self.boxes.buffers.len()];
        let mut reach = |name: usize, beyond: [[usize; 2]; 3], offset: [isize; 3]| {
            let by = [0, 1, 2].map(|axis| {
                let [low, high] = beyond[axis].map(|by| by as isize);
                [offset[axis] - low, offset[axis] + high]
            });
            let known = reached[name].get_or_insert(by);
            for (known, by) in known.iter_mut().zip(by) {
                *known = [known[0].min(by[0]), known[1].max(by[1])];
            }
        };
        for &number in &launch.stages {
            let stage = &program.stages()[number];
            let beyond = member(fused, number).unwrap_or_default();
            for tap in stage.dag.taps() {
                reach(usize::from(tap.field), beyond, tap.offset.map(|by| by as isize));
            }
            // What a stage does not compute it takes along.
            stage.writes.iter().for_each(|&name| reach(name, beyond, [0; 3]));
        }
        let mut accesses = self.scalars(launch);
        for (name, by) in reached.iter().enumerate() {
            if let (Some(by), Some(buffer)) = (by, launch.reads[name]) {
                accesses.push(Access { reach: Some(self.reach(name, *by)), ..reads(Thing::Buffer(buffer)) });
            }
        }
        accesses.extend(self.moved(launch, grid, Some([[0; 2]; 3]), false));
        accesses.extend(self.reduced(launch).map(|_| makes(Thing::Leaves)));
        Task { grid: grid.clone(), own: self.own(launch), accesses }
    }
}

/// Returns the indices that a group computes beyond a tile for one of its stages.
fn member(fused: Option<&Fused>, stage: usize) -> Option<[[usize; 2]; 3]> {
    fused?.members.iter().find(|member| member.stage == stage).map(|member| member.beyond)
}

/// Returns the access to any place of a thing.
fn reads(thing: Thing) -> Access {
    Access { thing, makes: false, covers: false, reach: None }
}

/// Returns the access that makes a thing anew.
fn makes(thing: Thing) -> Access {
    Access { makes: true, covers: true, ..reads(thing) }
}

/// Returns a task whose tiles have no places.
fn anywhere(grid: Grid, accesses: Vec<Access>) -> Task {
    Task { grid, own: [0..1, 0..1, 0..1], accesses }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use abide_core::plan::{Execution, Fuse, Options};
    use abide_core::{DType, DeviceSpec, Shape, catalogue};
    use abide_planner::plan;

    use super::*;
    use crate::cuda::persistent_kernels;

    /// A block of CloverLeaf waits for a few others; the join of a reduction's leaves waits for all, once a step.
    #[test]
    fn a_block_waits_for_those_around_it() {
        let device = DeviceSpec::preset("h200").unwrap();
        for (extent, fuse) in [(960, Fuse::Off), (960, Fuse::Greedy), (3840, Fuse::Greedy)] {
            let shape = Shape::new(&[extent, extent]).unwrap();
            let program = Arc::new(catalogue::cloverleaf().unwrap());
            let problem = Problem::new(program, shape, DType::F64).unwrap();
            let options = Options { execution: Execution::Persistent, fuse, ..Options::default() };
            let plan = plan(&problem, &device, &options).unwrap();
            let own = plan.persistent_program().unwrap();
            let boxes = Boxes::of(&problem).unwrap();
            let storage = Storage::of_groups(&problem, &boxes, &own.tiles.partition.groups()).unwrap();
            let kernels = persistent_kernels(&problem, own).unwrap();
            let steps = storage.repeated..storage.steps.len();
            let count = steps.len();
            let begun = std::time::Instant::now();
            let schedule = TaskSchedule::new(&problem, &boxes, &storage, steps, &kernels, own).unwrap();
            let (tasks, waits) = (schedule.tasks.len(), schedule.waits.len());
            println!(
                "{extent} {fuse}: {count} steps, {tasks} tasks of {} blocks, {waits} waits, {:.2} s",
                own.blocks,
                begun.elapsed().as_secs_f64()
            );
            let of_block = |task: usize, block: usize| {
                let place = task * own.blocks + block;
                (schedule.first[place + 1] - schedule.first[place]) as usize
            };
            let most = |task: usize| (0..own.blocks).map(|block| of_block(task, block)).max().unwrap();
            let for_all = (0..tasks).filter(|&task| most(task) + 1 == own.blocks).count();
            assert_eq!(for_all, count, "only the reduction waits for all");
            let mean = waits as f64 / (tasks * own.blocks) as f64;
            assert!(mean < 24.0, "{mean}");
            // A launch begins at any step and counts through the round.
            let whole = schedule.span(0, 5 * count as u64);
            assert_eq!(whole, (0, 5 * tasks as u64));
            let parts: u64 = (0..count).map(|step| schedule.span(step, 1).1).sum();
            assert_eq!(parts, tasks as u64);
            assert_eq!(schedule.span(count - 1, count as u64).1, tasks as u64);
        }
    }
}
