//! A program's launches from their plan to the fields, run as C++.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use abide_core::backend::window_of;
use abide_core::plan::fused::Partition;
use abide_core::plan::{Execution, Fuse, Options, PersistentProgram, Schedule};
use abide_core::program::{Boxes, Buffer, Groups, Storage};
use abide_core::{Array, DType, DeviceSpec, Problem};
use abide_planner::plan;
use abide_shaders::cuda::{
    KernelLaunch, ProgramKernels, TaskSchedule, buffer_pitch, persistent_kernels, pitched_values,
    program_kernels, program_scalars,
};

use crate::rig;

/// The files that stand for CUDA, and the program.
const FILES: [(&str, &str); 3] = [
    ("lanes.h", include_str!("lanes.h")),
    ("cuda.h", include_str!("cuda.h")),
    ("main.cc", include_str!("program.cc")),
];

/// The kernels of a problem, compiled as a program in a folder of its own.
pub struct Program<'a> {
    folder: tempfile::TempDir,
    problem: &'a Problem,
    /// The problem whose stages the kernels are of: some may be in parts.
    split: Problem,
    kernels: ProgramKernels,
    groups: Groups,
    /// The kernels' names, in the order of the program's table.
    entries: Vec<String>,
    /// The plan of a persistent kernel.
    persistent: Option<PersistentProgram>,
}

/// How a problem's stages become kernels.
#[derive(Default)]
pub struct Form {
    /// Times the indices that a thread computes along the axis y, less one.
    pub more_rows: usize,
    pub partition: Option<Partition>,
    /// The blocks of one persistent kernel.
    pub blocks: Option<usize>,
}

/// Words of shared memory in persistent kernels, whose blocks run side by side.
const OWN: [(&str, &str); 2] = [
    ("__shared__ Arguments arguments;", "auto& arguments = emulated::own<Arguments>();"),
    ("__shared__ real rows[WARPS][WARP];", "auto& rows = emulated::own<real[WARPS][WARP]>();"),
];

/// Task schedules of a persistent kernel: one for the steps before the repetition, and one for the repeated steps.
const SCHEDULES: usize = 2;

/// Words of the kernels' `Progress`.
const PROGRESS: usize = 5;

/// The end of a run.
pub struct Ended {
    pub fields: Vec<Array>,
    pub scalars: Vec<f64>,
    /// The values of all rows of the record.
    pub recorded: Vec<f64>,
    /// The kernels' `Progress`.
    pub progress: Vec<u64>,
}

/// Compilers that run at once; each takes a processor and much memory.
const AT_ONCE: usize = 2;

/// Calls `work` with each item, `AT_ONCE` at once. One failure names all that is wrong.
pub fn all<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<(), String> + Sync) {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let turns = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = work(item) {
                wrong.lock().unwrap().push(why);
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(turns))));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl<'a> Program<'a> {
    /// Compiles a problem's kernels with some words replaced. A thread computes `rows` indices along the axis
    /// y.
    pub fn compile(
        compiler: &[String],
        problem: &'a Problem,
        rows: usize,
        changes: &[(&str, &str)],
    ) -> Result<Program<'a>, String> {
        Program::compile_as(compiler, problem, Form { more_rows: rows - 1, ..Form::default() }, changes)
    }

    /// Does the same in any form. Groups' blocks have 256 threads at most.
    pub fn compile_as(
        compiler: &[String],
        problem: &'a Problem,
        form: Form,
        changes: &[(&str, &str)],
    ) -> Result<Program<'a>, String> {
        let device = DeviceSpec::preset("h200").map_err(said)?;
        let execution = form.blocks.map_or(Execution::Stepwise, |_| Execution::Persistent);
        let options = Options { fuse: Fuse::Off, execution, ..Options::default() };
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
        let mut words: Vec<(&str, &str)> = Vec::new();
        let present = |word: (&'static str, &'static str)| kernels.text.contains(word.0).then_some(word);
        words.extend([rig::SHARED, rig::AHEAD].into_iter().filter_map(present));
        if persistent.is_some() {
            words.extend(rig::FLAGS);
            words.extend(OWN.iter().filter(|(word, _)| kernels.text.contains(word)));
        }
        let text = rig::replaced(&rig::rewritten(&kernels.text, &words)?, changes)?;
        let mut entries: Vec<String> = Vec::new();
        let launches = kernels.groups.values().flat_map(|group| &group.launches);
        for launch in launches.chain(kernels.end.iter().map(|end| &end.kernel)) {
            if !entries.contains(&launch.entry) {
                entries.push(launch.entry.clone());
            }
        }
        let table: String = entries.iter().map(|entry| format!("ENTRY({entry})\n")).collect();
        let folder = tempfile::tempdir().map_err(said)?;
        for (name, content) in FILES.into_iter().chain([("kernel.h", &*text), ("entries.h", &*table)]) {
            std::fs::write(folder.path().join(name), content).map_err(said)?;
        }
        let mut command = rig::Compilation::new(compiler, folder.path(), "launch");
        command.arg("-DTHREADS_LAUNCHED=256");
        command.arg(format!("-DBLOCKS_LAUNCHED={}", form.blocks.unwrap_or(1)));
        if persistent.is_some() {
            command.arg(format!("-DSCHEDULES={SCHEDULES}"));
        }
        let shared = kernels.groups.values().flat_map(|group| &group.launches);
        let shared = shared.map(|launch| launch.shared_bytes).max().unwrap_or(0).max(128);
        command.arg(format!("-DSHARED_BYTES={shared}"));
        command.arg("-DARCHITECTURE=800");
        command.run()?;
        Ok(Program { folder, problem, split, kernels, groups: tiles.partition.groups(), entries, persistent })
    }

    /// Returns what has become of a run after some steps whose lanes take turns in the order that
    /// the seed gives. Launches of `beyond` more steps follow, which a condition has ended.
    pub fn run(&self, start: &[Array], [steps, beyond]: [u64; 2], seed: usize) -> Result<Ended, String> {
        let problem = &self.split;
        let dtype = problem.dtype;
        let storage = Boxes::of(problem)
            .and_then(|boxes| Storage::of_groups(problem, &boxes, &self.groups))
            .map_err(said)?;
        let mut script: Vec<u8> = Vec::new();
        add(&mut script, storage.buffers.len() as u64);
        for (number, buffer) in storage.buffers.iter().enumerate() {
            // What nobody has written is not a number.
            let mut bytes = vec![0xff; pitched_values(buffer, dtype) * dtype.bytes()];
            if let Some(field) = storage.first.iter().position(|&first| first == number) {
                let rows = rows(buffer, dtype);
                let packed = start[field].as_bytes().chunks_exact(rows.1);
                bytes
                    .chunks_exact_mut(rows.0)
                    .zip(packed)
                    .for_each(|(to, from)| to[..rows.1].copy_from_slice(from));
            }
            add(&mut script, bytes.len() as u64);
            script.extend(bytes);
        }
        let scalars = program_scalars(problem);
        add(&mut script, scalars.len() as u64);
        script.extend(&scalars);
        add(&mut script, self.kernels.leaves as u64);
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
        if let Some(plan) = &self.persistent {
            self.add_schedules(&mut script, plan, &storage, steps + beyond, seed)?;
        } else {
            self.add_launches(&mut script, &storage, steps + beyond)?;
        }
        let folder = self.folder.path();
        std::fs::write(folder.join("launches"), script).map_err(said)?;
        rig::succeeds(Command::new(folder.join("launch")).arg(folder).arg(seed.to_string()))?;
        let result = std::fs::read(folder.join("result")).map_err(said)?;
        let (mut contents, mut rest) = (Vec::new(), &*result);
        for buffer in &storage.buffers {
            let (own, others) = rest.split_at(pitched_values(buffer, dtype) * dtype.bytes());
            contents.push(own);
            rest = others;
        }
        let fields = storage.fields_after(steps).iter().map(|&number| {
            let (pitch, row) = rows(&storage.buffers[number], dtype);
            let values: Vec<u8> =
                contents[number].chunks_exact(pitch).flat_map(|bytes| &bytes[..row]).copied().collect();
            array(dtype, &values)
        });
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
            scalars: scalars[problem.parameters.len()..].to_vec(),
            recorded,
            progress,
        })
    }

    /// Adds the launches of some steps to a script.
    fn add_launches(&self, script: &mut Vec<u8>, storage: &Storage, steps: u64) -> Result<(), String> {
        let mut launches: Vec<u64> = Vec::new();
        let mut count = 0;
        let mut launch =
            |kernel: &KernelLaunch, buffers: &[Option<usize>]| {
                let entry = self.entries.iter().position(|entry| *entry == kernel.entry).ok_or("no entry")?;
                launches.extend([entry as u64, kernel.blocks as u64, kernel.threads as u64]);
                launches.extend((0..self.kernels.slots).map(|slot| {
                    buffers.get(slot).copied().flatten().map_or(u64::MAX, |buffer| buffer as u64)
                }));
                count += 1;
                Ok::<(), String>(())
            };
        for step in 0..steps {
            for own in &storage.launches(step).launches {
                let group = self.kernels.of(own).ok_or("no kernels")?;
                group.launches.iter().try_for_each(|kernel| launch(kernel, &group.buffers(own)))?;
            }
            if let Some(end) = &self.kernels.end {
                launch(&end.kernel, &end.buffers(storage.launches(step)))?;
            }
        }
        add(script, count);
        launches.iter().for_each(|&number| add(script, number));
        Ok(())
    }

    /// Adds the schedules of a persistent kernel and its launches, the first of which is of a single step.
    fn add_schedules(
        &self,
        script: &mut Vec<u8>,
        plan: &PersistentProgram,
        storage: &Storage,
        steps: u64,
        seed: usize,
    ) -> Result<(), String> {
        let boxes = Boxes::of(&self.split).map_err(said)?;
        let repeated = storage.repeated;
        let mut schedules = Vec::new();
        for steps in [0..repeated, repeated..storage.steps.len()] {
            let schedule =
                TaskSchedule::new(&self.split, &boxes, storage, steps, &self.kernels, plan).map_err(said)?;
            add(script, schedule.tasks.len() as u64);
            for (task, buffers) in schedule.tasks.iter().zip(&schedule.buffers) {
                task.iter().for_each(|&number| add(script, number.into()));
                for slot in 0..self.kernels.slots {
                    add(
                        script,
                        buffers.get(slot).copied().flatten().map_or(u64::MAX, |buffer| buffer as u64),
                    );
                }
            }
            add(script, schedule.first.len() as u64);
            schedule.first.iter().for_each(|&number| add(script, number.into()));
            add(script, schedule.waits.len() as u64);
            schedule.waits.iter().flatten().for_each(|&number| add(script, number.into()));
            schedules.push(schedule);
        }
        let (mut launches, mut done) = (Vec::new(), 0);
        while done < steps {
            let now = if done == 0 && seed % 2 == 1 { 1 } else { steps - done };
            let (which, place) = match repeated as u64 {
                first if done < first => (0, done as usize),
                first => (1, storage.place(done) - first as usize),
            };
            let now = if which == 0 { now.min(repeated as u64 - done) } else { now };
            let (begin, count) = schedules[which].span(place, now);
            launches.push([which as u64, begin.into(), count]);
            done += now;
        }
        add(script, launches.len() as u64);
        launches.iter().flatten().for_each(|&number| add(script, number));
        Ok(())
    }

    /// Compares the kernels with the reference after some steps, in several orders of their lanes.
    pub fn check(&self, start: &[Array], steps: u64) -> Result<(), String> {
        self.check_beyond(start, steps, 0)
    }

    /// The same, where launches of more steps follow that a condition has ended.
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

fn add(script: &mut Vec<u8>, number: u64) {
    script.extend(number.to_ne_bytes());
}

/// Returns the bytes of a row with and without the space behind it.
fn rows(buffer: &Buffer, dtype: DType) -> (usize, usize) {
    (buffer_pitch(buffer, dtype) * dtype.bytes(), buffer.extents[2] * dtype.bytes())
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
