//! A program's launches from their plan to the fields.

mod passes;

use abide_core::backend::window_of;
use abide_core::plan::fused::Partition;
use abide_core::plan::{Execution, Fuse, Options, PersistentProgram, Schedule};
use abide_core::program::{Boxes, Buffer, Groups, Storage, Transforms};
use abide_core::{Array, DType, DeviceSpec, Lowering, Problem};
use abide_planner::plan;
use abide_shaders::cuda::{
    ProgramKernels, buffer_pitch, persistent_kernels, pitched_bytes, program_kernels, program_scalars,
};

use crate::schedule::{Script, add};
use crate::{Compiler, Emulation, Kernel, replaced};

/// The kernels of a problem, compiled.
pub struct Program<'a> {
    emulation: Emulation,
    problem: &'a Problem,
    /// The problem whose stages the kernels are of: some may be in parts.
    split: Problem,
    kernels: ProgramKernels,
    groups: Groups,
    /// The reductions that are made at the end of the step before.
    carried: Vec<usize>,
    /// The kernels' names, in the order of the program's table.
    entries: Vec<String>,
    /// The plan of a persistent kernel.
    persistent: Option<PersistentProgram>,
    /// The groups that are passes of a streaming kernel.
    passes: Vec<passes::Pass>,
}

/// How a problem's stages become kernels.
#[derive(Default)]
pub struct Form {
    /// Times the indices that a thread computes along the axis y, less one.
    pub more_rows: usize,
    /// The groups that stages are fused into.
    pub partition: Option<Partition>,
    /// The blocks of one persistent kernel.
    pub blocks: Option<usize>,
    /// How loops of formulas become text.
    pub lowering: Lowering,
}

/// Task schedules of a persistent kernel: one for the steps before the repetition, and one for the repeated steps.
const SCHEDULES: usize = 2;

/// Words of the kernels' `Progress`.
const PROGRESS: usize = 7;

/// The end of a run.
pub struct Ended {
    /// The program's fields.
    pub fields: Vec<Array>,
    /// The program's scalars.
    pub scalars: Vec<f64>,
    /// The values of all rows of the record.
    pub recorded: Vec<f64>,
    /// The kernels' `Progress`.
    pub progress: Vec<u64>,
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl<'a> Program<'a> {
    /// Compiles a problem's kernels with some words replaced. A thread computes `rows` indices along the axis
    /// y.
    ///
    /// # Errors
    ///
    /// The problem has no such kernels, their text has not the words, or what the compiler says.
    pub fn compile(
        compiler: &Compiler,
        problem: &'a Problem,
        rows: usize,
        changes: &[(&str, &str)],
    ) -> Result<Program<'a>, String> {
        Program::compile_as(compiler, problem, Form { more_rows: rows - 1, ..Form::default() }, changes)
    }

    /// Does the same in any form. Groups' blocks have 256 threads at most.
    ///
    /// # Errors
    ///
    /// As [`Program::compile`].
    pub fn compile_as(
        compiler: &Compiler,
        problem: &'a Problem,
        form: Form,
        changes: &[(&str, &str)],
    ) -> Result<Program<'a>, String> {
        let device = DeviceSpec::preset("h200").map_err(said)?;
        let execution = form.blocks.map_or(Execution::Stepwise, |_| Execution::Persistent);
        let options = Options { fuse: Fuse::Off, execution, lowering: form.lowering, ..Options::default() };
        let mut schedule = plan(problem, &device, &options).map_err(said)?.schedule;
        let tiles = match &mut schedule {
            Schedule::Stepwise(tiles) => tiles,
            Schedule::PersistentProgram(persistent) => &mut persistent.tiles,
            other => return Err(format!("no tiles: {other:?}")),
        };
        tiles.tile[1] *= 1 + form.more_rows;
        if let Some(partition) = form.partition {
            tiles.partition = partition;
        }
        let tiles = tiles.clone();
        let split = tiles.partition.split_problem(problem).map_err(said)?;
        let persistent = match (schedule, form.blocks) {
            (Schedule::PersistentProgram(plan), Some(blocks)) => Some(PersistentProgram { blocks, ..plan }),
            _ => None,
        };
        let kernels = match &persistent {
            Some(plan) => persistent_kernels(&split, plan).map_err(said)?,
            None => program_kernels(&split, &tiles).map_err(said)?,
        };
        let passes = passes::compiled(compiler, &split, &tiles.partition)?;
        let text = replaced(&kernels.text, changes)?;
        let mut entries: Vec<String> = Vec::new();
        let launches = kernels.groups.values().flat_map(|group| &group.launches);
        let loops = kernels.loops.iter().flat_map(|loops| loops.turns.values().chain([&loops.leave]));
        for launch in launches.chain(kernels.end.iter().map(|end| &end.kernel)).chain(loops) {
            if !entries.contains(&launch.entry) {
                entries.push(launch.entry.clone());
            }
        }
        let mut table: String = entries.iter().map(|entry| format!("ENTRY({entry})\n")).collect();
        let mut lanes = [form.blocks.unwrap_or(1), 256];
        for chain in kernels.chains.iter().map(|chain| &chain.kernel) {
            entries.push(chain.entry.clone());
            let Some(slots) = chain.slots_of_chain() else {
                table += &format!("ENTRY({})\n", chain.entry);
                continue;
            };
            table += &format!("CHAIN({}, {slots})\n", chain.entry);
            lanes = [lanes[0].max(chain.blocks), lanes[1].max(chain.threads)];
        }
        let shared = kernels.groups.values().flat_map(|group| &group.launches);
        let shared = shared.map(|launch| launch.shared_bytes).max().unwrap_or(0).max(128);
        let mut kernel = Kernel::new(text, include_str!("../hosts/program.cc"));
        kernel.file("entries.h", table).launched([lanes[0], lanes[1], shared], 800);
        if persistent.is_some() {
            kernel.define("SCHEDULES", SCHEDULES).define("CONSTANT_CACHE", 1);
        }
        let emulation = kernel.compile(compiler)?;
        Ok(Program {
            emulation,
            problem,
            split,
            kernels,
            groups: tiles.partition.groups(),
            carried: tiles.partition.carried,
            entries,
            persistent,
            passes,
        })
    }

    /// Returns what has become of a run after some steps whose lanes take turns in the order that
    /// the seed gives. Launches of `beyond` more steps follow, which a condition has ended.
    ///
    /// # Errors
    ///
    /// What the launches say where lanes wait for ever, or store where they may not.
    pub fn run(&self, start: &[Array], [steps, beyond]: [u64; 2], seed: usize) -> Result<Ended, String> {
        let mut problem = self.split.clone();
        let waiting = problem.scalars.len() - self.carried.len();
        let found = abide_cpu::reference::reduced(self.problem, &self.carried, start).map_err(said)?;
        problem.scalars[waiting..].copy_from_slice(&found);
        let problem = &problem;
        let dtype = problem.dtype;
        let storage = Boxes::of(problem)
            .and_then(|boxes| Storage::of_groups(problem, &boxes, &self.groups))
            .map_err(said)?;
        if !self.passes.is_empty() {
            return self.run_with_passes(problem, &storage, start, steps, seed);
        }
        let mut script: Vec<u8> = Vec::new();
        add(&mut script, storage.buffers.len() as u64);
        for bytes in loaded(&storage, start, dtype) {
            add(&mut script, bytes.len() as u64);
            script.extend(bytes);
        }
        let scalars = program_scalars(problem);
        add(&mut script, scalars.len() as u64);
        script.extend(&scalars);
        add(&mut script, self.kernels.leaves as u64);
        let matrices = Transforms::of(problem)
            .and_then(|all| self.kernels.matrices.bytes(problem, &all))
            .map_err(said)?;
        add(&mut script, matrices.len() as u64);
        script.extend(matrices);
        let first = problem.first_step;
        let (width, due, until_due) = match &problem.record {
            Some(record) => {
                (record.width(), record.due_between(first, first + steps + beyond), record.until_due(first))
            }
            None => (0, 0, 0),
        };
        add(&mut script, due * width as u64);
        add(&mut script, until_due);
        let mark = problem.marks.map_or(f64::NAN, |marks| marks.next(problem.scalars[marks.scalar]));
        add(&mut script, mark.to_bits());
        let launches =
            Script { split: problem, storage: &storage, kernels: &self.kernels, entries: &self.entries };
        let mut now = storage.fields_after(steps);
        match &self.persistent {
            Some(plan) => launches.add_schedules(&mut script, plan, steps + beyond, seed)?,
            None if !problem.program.has_loops() => launches.add_launches(&mut script, steps + beyond)?,
            None => now = launches.add_phases(&mut script, &self.phases(start, steps)?)?,
        }
        self.emulation.write("launches", script)?;
        self.emulation.run([seed])?;
        let result = self.emulation.read("result")?;
        let (mut contents, mut rest) = (Vec::new(), &*result);
        for buffer in &storage.buffers {
            let (own, others) = rest.split_at(pitched_bytes(buffer, dtype));
            contents.push(own);
            rest = others;
        }
        let fields = now.iter().map(|&number| held(&storage.buffers[number], dtype, contents[number]));
        let (scalars, rest) = rest.split_at(scalars.len());
        let count = problem.parameters.len() + problem.scalars.len();
        let scalars = array(DType::F64, &scalars[..count * size_of::<f64>()]).to_f64();
        let (recorded, progress) = rest.split_at(rest.len() - PROGRESS * size_of::<u64>());
        let progress: Vec<u64> = progress
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()))
            .collect();
        let mut recorded = array(DType::F64, recorded).to_f64();
        recorded.truncate(progress[2] as usize * width);
        Ok(Ended {
            fields: fields.collect(),
            scalars: scalars[problem.parameters.len()..][..waiting].to_vec(),
            recorded,
            progress,
        })
    }

    /// Returns the phases that the reference carries out in each step, turn by turn.
    fn phases(&self, start: &[Array], steps: u64) -> Result<Vec<Vec<usize>>, String> {
        let (mut problem, mut fields) = (self.problem.clone(), start.to_vec());
        let step = |_| {
            let places = problem.program.steps();
            let mut found = Vec::new();
            let mut note = |stage: usize, _: &[Array], _: &[f64]| {
                found.extend(places.iter().position(|place| place.start == stage));
            };
            let scalars =
                abide_cpu::reference::run_program(&problem, &mut fields, 1, &mut note).map_err(said)?;
            problem.scalars = scalars;
            problem.first_step += 1;
            Ok(found)
        };
        (0..steps).map(step).collect()
    }

    /// Compares the kernels with the reference after some steps, in several orders of their lanes.
    ///
    /// # Errors
    ///
    /// What differs.
    pub fn check(&self, start: &[Array], steps: u64) -> Result<(), String> {
        self.check_beyond(start, steps, 0)
    }

    /// The same, where launches of more steps follow that a condition has ended.
    ///
    /// # Errors
    ///
    /// What differs.
    pub fn check_beyond(&self, start: &[Array], steps: u64, beyond: u64) -> Result<(), String> {
        let program = &self.problem.program;
        let mut expected = start.to_vec();
        let mut problem = self.problem.clone();
        let mut recorded = Vec::new();
        for _ in 0..steps {
            let known = |_: usize, _: &[Array], _: &[f64]| {};
            problem.scalars =
                abide_cpu::reference::run_program(&problem, &mut expected, 1, known).map_err(said)?;
            problem.first_step += 1;
            let Some(record) =
                problem.record.as_ref().filter(|record| problem.first_step.is_multiple_of(record.every))
            else {
                continue;
            };
            recorded.extend(record.scalars.iter().map(|&number| problem.scalars[number]));
            recorded.extend(record.probes.iter().map(|probe| {
                let window = probe.window();
                let value =
                    window_of(problem.extents_of(probe.field), &expected[probe.field], window[0], window[1]);
                value.ok().and_then(|value| value.get(0)).unwrap_or(f64::NAN)
            }));
        }
        let scalars = problem.scalars;
        for seed in 0..2 {
            let Ended { fields, scalars: computed, recorded: found, progress } =
                self.run(start, [steps, beyond], seed)?;
            if self.kernels.end.is_some() && progress[1] != steps {
                return Err(format!("seed {seed}: {} steps, not {steps}", progress[1]));
            }
            for ((expected, found), name) in expected.iter().zip(&fields).zip(program.fields()) {
                if !found.same_bits(expected) {
                    let first = (0..found.len()).find(|&i| {
                        let pair = [found, expected].map(|array| array.get(i).unwrap_or(0.0));
                        pair[0].to_bits() != pair[1].to_bits() && !pair.iter().all(|value| value.is_nan())
                    });
                    return Err(format!(
                        "seed {seed}: field {name} has not the reference's bits, first at value {first:?}"
                    ));
                }
            }
            let pairs = scalars.iter().zip(&computed);
            let differ = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits() && !(a.is_nan() && b.is_nan());
            if recorded.len() != found.len() || recorded.iter().zip(&found).any(differ) {
                return Err(format!("seed {seed}: recorded {found:?}, the reference has {recorded:?}"));
            }
            if pairs.clone().any(differ) || scalars.len() != computed.len() {
                return Err(format!("seed {seed}: scalars {computed:?}, the reference has {scalars:?}"));
            }
        }
        Ok(())
    }
}

/// Returns the bytes of each buffer before the first step. What nobody has written is not a number.
fn loaded(storage: &Storage, start: &[Array], dtype: DType) -> Vec<Vec<u8>> {
    let buffers = storage.buffers.iter().enumerate().map(|(number, buffer)| {
        let mut bytes = vec![0xff; pitched_bytes(buffer, dtype)];
        if let Some(field) = storage.first.iter().position(|&first| first == number) {
            let packed = buffer.precision.and_then(|precision| precision.pack(&start[field]).ok());
            let values = packed.as_deref().unwrap_or(start[field].as_bytes());
            scatter(&mut bytes, rows(buffer, dtype), values);
        }
        bytes
    });
    buffers.collect()
}

/// Puts packed rows where a buffer has them, whose rows have so many bytes with and without the space behind.
fn scatter(buffer: &mut [u8], (pitch, row): (usize, usize), packed: &[u8]) {
    let pairs = buffer.chunks_exact_mut(pitch).zip(packed.chunks_exact(row));
    pairs.for_each(|(to, from)| to[..row].copy_from_slice(from));
}

/// Returns a buffer's rows without the space behind them.
fn gather(buffer: &[u8], (pitch, row): (usize, usize)) -> Vec<u8> {
    buffer.chunks_exact(pitch).flat_map(|bytes| &bytes[..row]).copied().collect()
}

/// Returns the bytes of a row with and without the space behind it.
fn rows(buffer: &Buffer, dtype: DType) -> (usize, usize) {
    (buffer_pitch(buffer, dtype) * buffer.bytes(dtype), buffer.extents[2] * buffer.bytes(dtype))
}

/// Returns the values of a buffer.
fn held(buffer: &Buffer, dtype: DType, contents: &[u8]) -> Array {
    let bytes = gather(contents, rows(buffer, dtype));
    let narrow = buffer.precision.and_then(|precision| precision.unpack(&bytes, dtype).ok());
    narrow.unwrap_or_else(|| array(dtype, &bytes))
}

fn array(dtype: DType, bytes: &[u8]) -> Array {
    match dtype {
        DType::F32 => {
            let value = |bytes: &[u8]| f32::from_ne_bytes(bytes.try_into().unwrap_or_default());
            Array::F32(bytes.chunks_exact(4).map(value).collect())
        }
        DType::F64 => {
            let value = |bytes: &[u8]| f64::from_ne_bytes(bytes.try_into().unwrap_or_default());
            Array::F64(bytes.chunks_exact(8).map(value).collect())
        }
    }
}
