//! A launch per stage of any program: each stage over all its values, in the buffers of a [`Storage`]. Launches
//! that depend on each other only through nearby rows sweep the rows in one pass (`group`), those of several steps too (`deep`).

mod deep;
mod field_rows;
mod group;
mod phases;
mod points;
mod reduce;
mod sweep;
#[cfg(test)]
mod tests;
mod transform;

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use abide_core::backend::{LaunchTime, Turns, check_field, check_values, check_window, rows_of, write_rows};
use abide_core::communicator::Endpoint;
use abide_core::expr::{Constant, Dag, Node};
use abide_core::floating::standard;
use abide_core::plan::Cpu;
use abide_core::program::{
    Boxes, Buffer, Groups, Indices, Launch, Launches, Once, Probe, Reduction, Rows, StageKind, Storage,
    Transforms, Watch,
};
use abide_core::reduction::leaf;
use abide_core::slabs::Share;
use abide_core::{Array, Error, Plan, Problem, Real, Result, Session, memory};

use self::deep::{Deep, deep};
use self::field_rows::FieldRows;
use self::group::{Finder, Group, SIZES, Sizes};
use self::phases::Phase;
use self::sweep::{Sweep, Work};
use self::transform::Lines;
use crate::bytecode::Bytecode;
use crate::count;
use crate::in_place::HostBuffer;
use crate::shared::Shared;
use crate::threads::{Pool, on};

/// A stage, prepared for all its launches.
enum Stage {
    /// New values of fields and temporaries.
    Update(Bytecode),
    /// New values of fields at points.
    Points(Dag),
    /// A reduction to the scalar of this number.
    Reduce(Bytecode, Reduction, usize),
    /// The scalar of this number.
    Scalar(Dag, usize),
    /// A field's lines, transformed.
    Transform,
}

/// A run of launches on all threads of a pool.
pub struct Launched<T> {
    field_rows: FieldRows,
    plan: Plan,
    pool: Option<Arc<Pool>>,
    chunk: usize,
    /// Whether sums of additions are turned into multiply-adds.
    fused: bool,
    /// The stages, in which parameters are constants.
    stages: Vec<Stage>,
    /// The matrices of the stages' transforms, as they follow from the parameters, and for each stage as it takes them.
    transforms: Transforms,
    lines: Vec<Option<Lines<T>>>,
    /// Whether a parameter has changed since the stages were prepared.
    is_stale: bool,
    boxes: Boxes,
    storage: Storage,
    /// The groups of launches of each of the storage's steps.
    groups: Vec<Vec<Group>>,
    /// The passes over several steps that begin at each of the storage's steps.
    deep: Vec<Vec<Deep>>,
    /// What groups are made for; `None` where each launch is alone.
    sizes: Option<Sizes>,
    buffers: Vec<Vec<T>>,
    /// The parameters, and then the computed scalars: f64 whatever the type of the fields.
    scalars: Vec<f64>,
    /// The same values rounded once to the type of the fields, which stages of fields read.
    rounded: Vec<T>,
    /// The steps done since `storage` was made.
    steps: u64,
    /// How far a step with loops has come.
    phase: Phase,
    /// Steps of the last advance that were not done.
    remaining: u64,
    watch: Watch,
    works: Vec<Work<T>>,
    together: Option<SlabReductions>,
}

/// What a session on a slab has to reduce with all ranks.
struct SlabReductions {
    /// The share of each stage.
    shares: Vec<Option<Share>>,
    endpoint: Endpoint,
}

impl SlabReductions {
    fn of(&self, stage: usize) -> Option<(&Share, &Endpoint)> {
        Some((self.shares.get(stage)?.as_ref()?, &self.endpoint))
    }
}

impl<T: Real> Launched<T> {
    /// Prepares the stages and takes over the fields, whose number and sizes have been checked. Sums of
    /// additions are turned into multiply-adds if `fused` says so (see [`Bytecode::new`]).
    pub fn open(
        problem: &Problem,
        plan: &Plan,
        cpu: &Cpu,
        pool: Option<Arc<Pool>>,
        fused: bool,
        watch: Watch,
        fields: Vec<Vec<T>>,
    ) -> Result<Self> {
        let boxes = Boxes::of(problem)?;
        let storage = Storage::of(problem, &boxes)?;
        let stages = stages_of::<T>(problem, fused);
        let transforms = Transforms::of(problem)?;
        let lines = transform::all(problem, &transforms)?;
        // A plan's fields can be changed by any caller, and scratch grows with both.
        let (threads, chunk) = (cpu.threads.clamp(1, 4096), cpu.chunk.clamp(1, 1 << 16));
        let works = works_of(problem, &boxes, &stages, threads, chunk)?;
        let mut buffers = fields;
        for kind in &storage.buffers[buffers.len()..] {
            buffers.push(zeros(kind)?);
        }
        let scalars = problem.parameters.iter().chain(&problem.scalars);
        let scalars: Vec<f64> = scalars.copied().collect();
        let rounded = scalars.iter().map(|&value| T::from_f64(value)).collect();
        let field_rows = FieldRows::new(problem, &boxes);
        let sizes = cpu.fuse.then_some(SIZES);
        let (groups, deep) = groups_of(&field_rows, &boxes, &storage, &stages, threads, sizes);
        Ok(Launched {
            field_rows,
            plan: plan.clone(),
            pool,
            chunk,
            fused,
            stages,
            transforms,
            lines,
            is_stale: false,
            boxes,
            storage,
            groups,
            deep,
            sizes,
            buffers,
            scalars,
            rounded,
            steps: 0,
            phase: Phase { once: Once::of(problem), ..Phase::default() },
            remaining: 0,
            watch,
            works,
            together: None,
        })
    }

    /// Carries out steps; `times` takes the time of each group of launches where it is asked for.
    fn steps(&mut self, steps: u64, mut times: Option<&mut Vec<LaunchTime>>) -> Result<()> {
        self.remaining = steps;
        self.refresh()?;
        self.watch.begin();
        let has_loops = self.field_rows.problem.program.has_loops();
        while self.remaining > 0 && self.watch.goes_on() {
            if has_loops {
                self.step_with_loops()?;
                self.remaining -= 1;
                self.note()?;
                continue;
            }
            let place = self.storage.place(self.steps);
            let due = self.watch.until_due(self.field_rows.problem.first_step + self.steps);
            let most = if times.is_some() { 1 } else { self.remaining.min(due.unwrap_or(u64::MAX)) };
            let deep = self.deep[place].iter().find(|deep| deep.steps <= most);
            let (steps, deep) = match deep {
                Some(deep) => (deep.steps, Some(deep.number)),
                None => (1, None),
            };
            self.launch(place, deep, times.as_deref_mut())?;
            self.steps += steps;
            self.remaining -= steps;
            self.note()?;
        }
        Ok(())
    }

    /// Carries out the launches at a place of the storage, or those of a pass over several steps that begins there.
    fn launch(
        &mut self,
        place: usize,
        deep: Option<usize>,
        mut times: Option<&mut Vec<LaunchTime>>,
    ) -> Result<()> {
        let (launches, groups) = match deep.map(|number| &self.deep[place][number]) {
            Some(deep) => (&deep.launches, std::slice::from_ref(&deep.group)),
            None => (&self.storage.steps[place].launches, &*self.groups[place]),
        };
        for group in groups {
            let begun = times.is_some().then(Instant::now);
            self.field_rows.set_scalars(&self.rounded);
            let buffers: Vec<Shared<'_, T>> = self.buffers.iter_mut().map(|b| Shared::new(b)).collect();
            let sweep = |bytecode, launch: &Launch| Sweep {
                field_rows: &self.field_rows,
                bytecode,
                scalars: &self.rounded,
                chunk: self.chunk,
                reads: launch.reads.iter().map(|read| read.map(|buffer| buffers[buffer])).collect(),
                levels: self.field_rows.levels_of(launch.stage()),
            };
            let task = |launch: &Launch| {
                let Stage::Update(bytecode) = &self.stages[launch.stage()] else { return None };
                let stage = &self.field_rows.problem.program.stages()[launch.stage()];
                sweep(bytecode, launch).task(stage, &self.boxes.stages[launch.stage()], launch, &buffers)
            };
            let own = &launches[group.launches.clone()];
            // A single launch may make a scalar.
            let made = match (own, own.first().map(|launch| &self.stages[launch.stage()])) {
                ([launch], Some(Stage::Update(_))) => {
                    task(launch).iter().for_each(|task| task.run(&mut self.works));
                    None
                }
                ([launch], Some(Stage::Transform)) => {
                    let (stage, own) = (launch.stage(), &self.boxes.stages[launch.stage()][0]);
                    let lines = self.lines.get(stage).and_then(Option::as_ref);
                    lines.iter().for_each(|lines| {
                        lines.transform(&self.field_rows, launch, own, &buffers, &mut self.works);
                    });
                    None
                }
                ([launch], Some(Stage::Points(dag))) => {
                    let stage = &self.field_rows.problem.program.stages()[launch.stage()];
                    points::update(&self.field_rows, stage, dag, &self.rounded, launch, &buffers);
                    None
                }
                ([launch], Some(Stage::Reduce(bytecode, reduction, scalar))) => {
                    let own = &self.boxes.stages[launch.stage()][0];
                    let (sweep, works) = (sweep(bytecode, launch), &mut self.works);
                    let together = self.together.as_ref().and_then(|all| all.of(launch.stage()));
                    let value = match together {
                        Some((share, all)) => sweep.reduce_together(*reduction, own, works, share, all)?,
                        None => sweep.reduce(*reduction, own, works),
                    };
                    Some((*scalar, value.to_f64()))
                }
                ([_], Some(Stage::Scalar(dag, scalar))) => {
                    let mut values = Vec::new();
                    dag.evaluate(&mut values, &self.scalars, [0; 3], |_| f64::NAN);
                    Some((*scalar, values[dag.outputs[0] as usize]))
                }
                _ => {
                    let tasks: Vec<_> = own.iter().filter_map(task).collect();
                    group.run(&tasks, &mut self.works);
                    None
                }
            };
            if let Some((scalar, value)) = made {
                self.scalars[scalar] = value;
                self.rounded[scalar] = T::from_f64(value);
            }
            if let (Some(times), Some(begun)) = (times.as_deref_mut(), begun) {
                let seconds = begun.elapsed().as_secs_f64();
                let mut stages: Vec<usize> = own.iter().map(Launch::stage).collect();
                stages.sort_unstable();
                times.push(LaunchTime { stages, seconds });
            }
        }
        Ok(())
    }

    /// Carries out steps on the threads of the pool.
    fn steps_on_pool(&mut self, steps: u64, times: Option<&mut Vec<LaunchTime>>) -> Result<()> {
        on(self.pool.clone().as_ref(), || self.steps(steps, times))?
    }

    /// Prepares the stages anew if a parameter has changed.
    fn refresh(&mut self) -> Result<()> {
        if self.is_stale {
            let (problem, threads) = (&self.field_rows.problem, self.works.len());
            let stages = stages_of::<T>(problem, self.fused);
            self.works = works_of(problem, &self.boxes, &stages, threads, self.chunk)?;
            (self.groups, self.deep) =
                groups_of(&self.field_rows, &self.boxes, &self.storage, &stages, threads, self.sizes);
            if self.transforms.renew(problem)? {
                self.lines = transform::all(problem, &self.transforms)?;
            }
            (self.stages, self.is_stale) = (stages, false);
        }
        Ok(())
    }

    /// Takes note of the step that was just done.
    fn note(&mut self) -> Result<()> {
        let problem = &self.field_rows.problem;
        let now = &self.storage.steps[self.place()].before;
        let scalars = &self.scalars[problem.parameters.len()..];
        let probed = |probe: &Probe| {
            let values = &self.buffers[now[probe.field]];
            Ok(values[probe.position(problem.extents_of(probe.field))].to_f64())
        };
        self.watch.step(problem.first_step + self.steps, |number| scalars[number], probed)
    }

    /// Returns the place in the storage of what comes next.
    fn place(&self) -> usize {
        match self.field_rows.problem.program.has_loops() {
            true => self.phase.place,
            false => self.storage.place(self.steps),
        }
    }

    /// Returns the buffers in which the fields lie.
    fn now(&self) -> &[usize] {
        &self.storage.steps[self.place()].before
    }

    /// Returns the number of the buffer that holds a field.
    fn buffer(&self, field: usize) -> Result<usize> {
        let names = self.field_rows.problem.program.fields();
        let known = self.now().get(field).copied();
        known.ok_or_else(|| Error::unknown("field", field.to_string(), names))
    }

    /// Gives each field a buffer of its own again, from which the steps go on, if another one shares that of
    /// the field to be written.
    fn part(&mut self, field: usize) -> Result<()> {
        let buffer = self.buffer(field)?;
        if self.now().iter().filter(|&&other| other == buffer).count() == 1 {
            return Ok(());
        }
        let mut problem = self.field_rows.problem.clone();
        problem.first_step += self.steps;
        let phase = self.storage.number(self.place());
        let storage = Storage::from_phase(&problem, &self.boxes, &Groups::alone(&problem.program), phase)?;
        let now = self.now().to_vec();
        let mut own: Vec<Vec<T>> = Vec::with_capacity(storage.buffers.len());
        for (field, &buffer) in now.iter().enumerate() {
            // The last name that means a buffer takes it over; the others get copies.
            own.push(match now[field + 1..].contains(&buffer) {
                true => {
                    let values = &self.buffers[buffer];
                    let mut copy = memory::reserved(values.len(), "a field", SMALLER)?;
                    copy.extend_from_slice(values);
                    copy
                }
                false => std::mem::take(&mut self.buffers[buffer]),
            });
        }
        for kind in &storage.buffers[now.len()..] {
            let spare =
                self.buffers.iter().position(|values| values.len() == kind.len() && !values.is_empty());
            own.push(match spare {
                Some(spare) => std::mem::take(&mut self.buffers[spare]),
                None => zeros(kind)?,
            });
        }
        (self.groups, self.deep) =
            groups_of(&self.field_rows, &self.boxes, &storage, &self.stages, self.works.len(), self.sizes);
        (self.buffers, self.storage, self.steps) = (own, storage, 0);
        self.phase.place = 0;
        self.field_rows.problem = problem;
        Ok(())
    }
}

impl Stage {
    fn bytecode(&self) -> Option<&Bytecode> {
        match self {
            Stage::Update(bytecode) | Stage::Reduce(bytecode, ..) => Some(bytecode),
            Stage::Points(_) | Stage::Scalar(..) | Stage::Transform => None,
        }
    }
}

/// Prepares the stages of a problem. Its parameters become constants of them, so that what is the same for
/// all cells is computed once, and a division by a power of two becomes a product, which rounds alike.
fn stages_of<T: Real>(problem: &Problem, fused: bool) -> Vec<Stage> {
    let stage = |stage: &abide_core::Stage| {
        let mut dag = stage.dag.clone();
        for node in &mut dag.nodes {
            if let Node::Param(number) = *node
                && let Some(&value) = problem.parameters.get(usize::from(number))
            {
                *node = Node::Const(Constant::new(value));
            }
        }
        let dag = dag.simplified(stage.dtype(problem.dtype));
        let bytecode = |dag| Bytecode::new(dag, fused).compiled::<T>();
        match stage.does {
            StageKind::Update if !stage.points.is_empty() => Stage::Points(dag),
            StageKind::Update => Stage::Update(bytecode(&dag)),
            StageKind::Reduce(reduction, _, scalar) => Stage::Reduce(bytecode(&dag), reduction, scalar),
            StageKind::Scalar(scalar) => Stage::Scalar(dag, scalar),
            StageKind::Transform(_) => Stage::Transform,
        }
    };
    problem.program.stages().iter().map(stage).collect()
}

/// Returns the scratch of each thread.
fn works_of<T: Real>(
    problem: &Problem,
    boxes: &Boxes,
    stages: &[Stage],
    threads: usize,
    chunk: usize,
) -> Result<Vec<Work<T>>> {
    let bytecodes: Vec<&Bytecode> = stages.iter().filter_map(Stage::bytecode).collect();
    // The rows of a reduction's leaves begin at the first index, whatever its region leaves out.
    let width = |indices: &Indices| indices[2].len().max(indices[2].end.max(0) as usize);
    let width = boxes.stages.iter().flatten().map(width).max().unwrap_or(0);
    let leaf = leaf(problem.shape.dimensions());
    (0..threads).map(|_| Work::new(&bytecodes, chunk, width, leaf)).collect()
}

/// Returns the groups of launches of each of the storage's steps, and the passes over several steps that begin there.
fn groups_of(
    field_rows: &FieldRows,
    boxes: &Boxes,
    storage: &Storage,
    stages: &[Stage],
    threads: usize,
    sizes: Option<Sizes>,
) -> (Vec<Vec<Group>>, Vec<Vec<Deep>>) {
    let finder = Finder::new(field_rows, boxes, stages, threads, sizes);
    let program = &field_rows.problem.program;
    let groups = |step: &Launches| finder.groups(program.stages(), &step.launches);
    (storage.steps.iter().map(groups).collect(), deep(&finder, program, storage))
}

const SMALLER: &str = "choose a smaller size or f32";

/// Returns a buffer of zeros; an error where there is not enough memory.
fn zeros<T: Real>(kind: &Buffer) -> Result<Vec<T>> {
    let mut values: Vec<T> = memory::reserved(kind.len(), "a field", SMALLER)?;
    values.resize(kind.len(), T::ZERO);
    Ok(values)
}

impl<T: Real> Launched<T> {
    /// Forgets that a condition has ended the run, and what need not be carried out again, because a field or a parameter is set.
    fn go_on(&mut self) {
        self.watch.go_on();
        self.phase.once.forget();
    }
}

impl<T: Real> Session for Launched<T> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        let begun = Instant::now();
        self.steps_on_pool(steps, None)?;
        Ok(begun.elapsed().as_secs_f64())
    }

    fn time_step(&mut self) -> Result<Vec<LaunchTime>> {
        let mut times = Vec::new();
        self.steps_on_pool(1, Some(&mut times))?;
        Ok(times)
    }

    fn remaining(&self) -> u64 {
        self.remaining
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        let values = &self.buffers[self.buffer(field)?];
        let mut copy = memory::reserved(values.len(), "a field", SMALLER)?;
        copy.extend_from_slice(values);
        Ok(T::into_array(copy))
    }

    fn is_at_mark(&self) -> bool {
        self.watch.is_at_mark()
    }

    fn take_rows(&mut self) -> Result<Rows> {
        Ok(self.watch.take_rows())
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let values = &self.buffers[self.buffer(field)?];
        let extents = self.field_rows.problem.extents_of(field);
        let count = check_window(extents, low, high)?.iter().product();
        let mut window = memory::reserved(count, "a window", "read a smaller window")?;
        rows_of(extents, low, high).for_each(|row| window.extend_from_slice(&values[row]));
        Ok(T::into_array(window))
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        check_field(&self.field_rows.problem, field, values)?;
        self.part(field)?;
        let buffer = self.buffer(field)?;
        if let Some(values) = T::slice(values) {
            self.buffers[buffer].copy_from_slice(values);
        }
        self.go_on();
        Ok(())
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        check_values(&self.field_rows.problem, field, low, high, values)?;
        self.part(field)?;
        let (buffer, extents) = (self.buffer(field)?, self.field_rows.problem.extents_of(field));
        if let Some(values) = T::slice(values) {
            write_rows(extents, &mut self.buffers[buffer], low, high, values);
        }
        self.go_on();
        Ok(())
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        count::non_finite(&self.buffers[self.buffer(field)?], self.pool.as_ref())
    }

    fn device_buffer(&self, field: usize) -> Option<Box<dyn Any>> {
        Some(Box::new(HostBuffer::new(&self.buffers[self.buffer(field).ok()?])))
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        let parameters = &mut self.field_rows.problem.parameters;
        let names = self.field_rows.problem.program.parameters().iter().map(|p| p.name.as_str());
        let known = parameters.get_mut(parameter);
        *known.ok_or_else(|| Error::unknown("parameter", parameter.to_string(), names))? = value;
        self.scalars[parameter] = value;
        self.rounded[parameter] = standard(|| T::from_f64(value));
        self.is_stale = true;
        self.go_on();
        Ok(())
    }

    fn advance_phase(&mut self, turns: u64) -> Result<Turns> {
        let begun = Instant::now();
        let pool = self.pool.clone();
        let (turns, is_over) = on(pool.as_ref(), || {
            self.refresh()?;
            self.turns(turns)
        })??;
        Ok(Turns { turns, is_over, seconds: begun.elapsed().as_secs_f64() })
    }

    fn reduce_together(&mut self, shares: Vec<Option<Share>>, endpoint: Endpoint) -> Result<()> {
        if self.pool.is_none() {
            // A thread that waits for other ranks may be one that they need.
            return Err(Error::unsupported(
                "a program with reductions on several devices",
                "all ranks would share the threads of the process, and wait for each other on them",
                "give each rank a pool of its own",
            ));
        }
        self.together = Some(SlabReductions { shares, endpoint });
        Ok(())
    }

    fn scalars(&mut self) -> Result<Vec<f64>> {
        let parameters = self.field_rows.problem.parameters.len();
        Ok(self.scalars[parameters..].to_vec())
    }
}
