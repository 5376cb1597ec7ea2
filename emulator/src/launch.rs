//! One launch of a plan's kernel, from its text to the fields.

use abide_core::plan::Schedule;
use abide_core::plan::resident::Exchange;
use abide_core::{Array, DType, Plan, Problem};
use abide_shaders::cuda::Noted;

use crate::{Compiler, Emulation, Kernel};

/// A launch of a plan's kernel, compiled.
pub struct Launch {
    emulation: Emulation,
    dtype: DType,
    cells: usize,
    noted: Noted,
    /// The tables by which the kernel finds what it notes.
    tables: [Vec<i32>; 4],
}

impl Launch {
    /// Compiles the launch of a plan for an architecture from the kernel's text, for `steps` steps: whole passes where it
    /// streams, one where it launches its only stage.
    ///
    /// # Errors
    ///
    /// The plan has several launches, or what the compiler says.
    pub fn compile(
        compiler: &Compiler,
        problem: &Problem,
        plan: &Plan,
        architecture: u32,
        steps: u64,
        text: &str,
    ) -> Result<Launch, String> {
        let (blocks, threads, shared) = match &plan.schedule {
            Schedule::WarpStreaming(s) => (s.shares, s.threads_per_block(), s.shared_bytes),
            Schedule::Persistent(p) => (p.blocks, p.threads_per_block(), p.shared_bytes),
            // Of a batch a block for each member.
            Schedule::Resident(r) => (r.blocks() * plan.members(), r.threads_per_block(), r.shared_bytes),
            Schedule::Stepwise(s) if problem.program.stages().len() == 1 => (
                s.launched(problem.shape.padded()),
                s.threads_per_block(),
                s.shared_bytes[0] + s.table_bytes(0),
            ),
            _ => {
                return Err(
                    "the plan is of several launches, or neither streams nor stays on the chip".to_owned()
                );
            }
        };
        // Each stage that writes a field of a persistent kernel swaps the field's buffers; each pass of a
        // streaming kernel swaps those of all fields that change; a resident kernel swaps none.
        let passes = steps / u64::from(plan.depth.max(1));
        let flipped = (0..problem.program.fields().len()).map(|field| {
            let stages =
                problem.program.stages().iter().filter(|stage| stage.writes.contains(&field)).count() as u64;
            let swaps = match &plan.schedule {
                Schedule::Persistent(_) => stages * steps,
                Schedule::Resident(_) => 0,
                _ => u64::from(stages > 0) * passes,
            };
            if swaps % 2 == 1 { "true" } else { "false" }
        });
        let mut kernel = Kernel::new(text, include_str!("../hosts/launch.cc"));
        kernel.launched([blocks, threads, shared], architecture);
        kernel.define("FLIPPED", flipped.collect::<Vec<_>>().join(","));
        let program = &problem.program;
        kernel
            .define("VARYING_VALUES", program.varying().len() as u64 * program.stages().len() as u64 * steps);
        kernel.define("STEPS_NOTED", steps);
        let ends: Vec<String> = problem.program.arrays().iter().map(|array| array.end.to_string()).collect();
        kernel.define("ARRAY_ENDS", ends.join(","));
        match plan.schedule {
            Schedule::WarpStreaming(_) => kernel.define("PASSES", passes),
            Schedule::Stepwise(_) => kernel.define("STAGE", 1),
            _ => kernel.define("STEPS", steps),
        };
        if plan.resident().is_some() {
            kernel.define("RESIDENT", 1);
        }
        if let Some(resident) = plan.resident().filter(|resident| resident.exchange == Exchange::Tagged) {
            kernel.define("EXCHANGES_LAUNCHED", resident.exchanges_in(steps));
        }
        if plan.is_at_once() {
            kernel.define("MEMBERS_LAUNCHED", plan.members());
        }
        let noted = Noted::of(problem);
        kernel.define("NOTED_VALUES", noted.columns() as u64);
        let emulation = kernel.compile(compiler)?;
        let tables = noted.tables(problem, plan);
        Ok(Launch { emulation, dtype: problem.dtype, cells: plan.cells(), noted, tables })
    }

    /// Returns the bytes of each field after a launch whose lanes take turns in the order that the seed
    /// gives. Of a batch, fields and parameters have those of all members, one after another. `varying` has the values of the
    /// parameters that vary, in each stage of each step.
    ///
    /// # Errors
    ///
    /// What the launch says where lanes wait for ever, or store where they may not.
    pub fn run(
        &self,
        start: &[Array],
        [parameters, varying]: [&[f64]; 2],
        seed: usize,
    ) -> Result<Vec<Vec<u8>>, String> {
        let fields: Vec<u8> = start.iter().flat_map(|field| field.as_bytes().iter().copied()).collect();
        let bytes = |values: &[f64]| -> Vec<u8> {
            match self.dtype {
                DType::F32 => values.iter().flat_map(|&value| (value as f32).to_ne_bytes()).collect(),
                DType::F64 => values.iter().flat_map(|value| value.to_ne_bytes()).collect(),
            }
        };
        self.emulation.write("fields", fields)?;
        self.emulation.write("parameters", bytes(parameters))?;
        self.emulation.write("varying", bytes(varying))?;
        for (name, words) in ["cells", "firsts", "lines", "columns"].iter().zip(&self.tables) {
            self.emulation
                .write(name, words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>())?;
        }
        self.emulation.run([seed])?;
        let result = self.emulation.read("result")?;
        Ok(result.chunks(self.cells * self.dtype.bytes()).map(<[u8]>::to_vec).collect())
    }
    /// Returns the values that the kernel noted in the last run, those of the problem after each step.
    ///
    /// # Errors
    ///
    /// What reading them meets.
    pub fn noted(&self) -> Result<Vec<f64>, String> {
        let bytes = self.emulation.read("noted")?;
        Ok(match self.dtype {
            DType::F32 => self.noted.gathered(bytes.as_chunks().0, |value| f32::from_ne_bytes(value).into()),
            DType::F64 => self.noted.gathered(bytes.as_chunks().0, f64::from_ne_bytes),
        })
    }
}
