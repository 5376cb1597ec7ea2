//! Groups of stages that are passes of a streaming kernel: each is a launch of a plain problem, between the other launches.

use abide_core::plan::Plan;
use abide_core::plan::fused::Partition;
use abide_core::program::{Boxes, Launch, Repeated, Storage};
use abide_core::{Array, DType, DeviceSpec, Problem};
use abide_planner::fused::plan_pass;
use abide_shaders::cuda::{program_scalars, source};

use super::{Ended, Program, array, held, loaded, rows, said, scatter};
use crate::schedule::{Own, Script, add};
use crate::{Compiler, Launch as Launched};

/// The compute capability times 100 that passes are compiled for.
const ARCHITECTURE: u32 = 800;

/// A pass, compiled.
pub struct Pass {
    stages: Vec<usize>,
    repeated: Repeated,
    launch: Launched,
}

/// Compiles the passes of a partition.
pub fn compiled(compiler: &Compiler, problem: &Problem, partition: &Partition) -> Result<Vec<Pass>, String> {
    let device = DeviceSpec::preset("h200").map_err(said)?;
    let boxes = Boxes::of(problem).map_err(said)?;
    let passes = partition.all().filter_map(|group| Some((&group.stages, group.pass.as_ref()?)));
    let pass = |(stages, pass): (&Vec<usize>, _)| {
        let planned = plan_pass(problem, &boxes, &device, stages, pass);
        let (repeated, plan): (Repeated, Plan) = planned.ok_or("stages of a pass do not repeat a formula")?;
        let text = source(&repeated.problem, &plan).map_err(said)?.text;
        let steps = stages.len() as u64;
        let launch = Launched::compile(compiler, &repeated.problem, &plan, ARCHITECTURE, steps, &text)?;
        Ok(Pass { stages: stages.clone(), repeated, launch })
    };
    passes.map(pass).collect()
}

/// The device's memory between two launches.
struct Contents {
    buffers: Vec<Vec<u8>>,
    scalars: Vec<u8>,
}

impl Program<'_> {
    /// Returns what has become of a run, as [`Program::run`] does, of a program without what ends its steps.
    pub(super) fn run_with_passes(
        &self,
        problem: &Problem,
        storage: &Storage,
        start: &[Array],
        steps: u64,
        seed: usize,
    ) -> Result<Ended, String> {
        if self.kernels.end.is_some() || self.persistent.is_some() {
            return Err("passes are launches of a program that has no record and no condition".to_owned());
        }
        let mut contents =
            Contents { buffers: loaded(storage, start, problem.dtype), scalars: program_scalars(problem) };
        let mut waiting: Vec<Launch> = Vec::new();
        for launch in (0..steps).flat_map(|step| &storage.launches(step).launches) {
            match self.passes.iter().find(|pass| pass.stages == launch.stages) {
                Some(pass) => {
                    self.launch_all(&mut contents, problem, storage, &mut waiting, seed)?;
                    pass.run(&mut contents, storage, launch, seed)?;
                }
                None => waiting.push(launch.clone()),
            }
        }
        self.launch_all(&mut contents, problem, storage, &mut waiting, seed)?;
        let fields = storage
            .fields_after(steps)
            .iter()
            .map(|&number| held(&storage.buffers[number], problem.dtype, &contents.buffers[number]));
        let count = problem.parameters.len() + problem.scalars.len();
        let scalars = array(DType::F64, &contents.scalars[..count * size_of::<f64>()]).to_f64();
        Ok(Ended {
            fields: fields.collect(),
            scalars: scalars[problem.parameters.len()..].to_vec(),
            recorded: Vec::new(),
            progress: Vec::new(),
        })
    }

    /// Carries out launches that wait, none of which is a pass.
    fn launch_all(
        &self,
        contents: &mut Contents,
        problem: &Problem,
        storage: &Storage,
        waiting: &mut Vec<Launch>,
        seed: usize,
    ) -> Result<(), String> {
        let mut script: Vec<u8> = Vec::new();
        add(&mut script, contents.buffers.len() as u64);
        for bytes in contents.buffers.iter().chain([&contents.scalars]) {
            add(&mut script, bytes.len() as u64);
            script.extend(bytes);
        }
        // No rows of a record, no mark.
        // Programs in passes transform nothing.
        for number in [self.kernels.leaves as u64, 0, 0, 0, f64::NAN.to_bits()] {
            add(&mut script, number);
        }
        let launches = Script { split: problem, storage, kernels: &self.kernels, entries: &self.entries };
        let all = self.kernels.launched(waiting);
        launches.add_each(&mut script, all.into_iter().map(Own::Launch))?;
        waiting.clear();
        self.emulation.write("launches", script)?;
        self.emulation.run([seed])?;
        let result = self.emulation.read("result")?;
        let mut rest = &*result;
        for bytes in contents.buffers.iter_mut().chain([&mut contents.scalars]) {
            let (own, others) = rest.split_at(bytes.len());
            bytes.copy_from_slice(own);
            rest = others;
        }
        Ok(())
    }
}

impl Pass {
    fn run(
        &self,
        contents: &mut Contents,
        storage: &Storage,
        launch: &Launch,
        seed: usize,
    ) -> Result<(), String> {
        let problem = &self.repeated.problem;
        let [before, behind] = self.repeated.buffers(launch).ok_or("a field of a pass has no buffer")?;
        let field =
            |&number: &usize| held(&storage.buffers[number], problem.dtype, &contents.buffers[number]);
        let start: Vec<Array> = before.iter().map(field).collect();
        let results = self.launch.run(&start, [&problem.parameters, &[]], seed)?;
        for (result, &number) in results.iter().zip(&behind) {
            scatter(&mut contents.buffers[number], rows(&storage.buffers[number], problem.dtype), result);
        }
        Ok(())
    }
}
