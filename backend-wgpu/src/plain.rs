//! A plain problem in progress: its kernels and fields.

use std::sync::Arc;

use abide_core::backend::check_fields;
use abide_core::{Array, Plan, Problem, Result};
use abide_shaders::wgsl::{self, Kernel};

use crate::fields::Fields;
use crate::gpu::Gpu;
use crate::pace::Pace;
use crate::pass::{Pass, Uniforms};
use crate::rounds;
use crate::timing::Clock;
use crate::transfers::{Staging, Stored};

/// A plain problem in progress.
///
/// The session works in rounds. A round is one step, with a dispatch for each stage; or as many steps as the
/// plan is deep, in one dispatch.
pub(crate) struct PlainSession {
    gpu: Arc<Gpu>,
    pub problem: Problem,
    pub plan: Plan,
    fields: Fields,
    staging: Staging,
    uniforms: Uniforms,
    passes: Vec<Pass>,
    /// The pass for fewer steps than the plan is deep, where `passes` cannot run them; compiled when first
    /// needed.
    shorter: Option<Pass>,
    clock: Option<Clock>,
    /// Rounds done since the session was opened.
    rounds: u64,
    pace: Pace,
}

impl PlainSession {
    /// Compiles, allocates and loads.
    pub async fn open(
        gpu: Arc<Gpu>,
        problem: &Problem,
        plan: &Plan,
        kernels: &[Kernel],
        fields: Vec<Array>,
    ) -> Result<PlainSession> {
        check_fields(problem, &fields)?;
        let stages = problem.program.stages();
        let fields_of_pass: Vec<Vec<usize>> =
            if plan.overlapped().is_some() || plan.portable_streaming().is_some() {
                vec![
                    (0..problem.program.fields().len())
                        .filter(|&field| problem.program.is_written(field))
                        .collect(),
                ]
            } else {
                stages.iter().map(|stage| stage.writes.clone()).collect()
            };
        let piece_cells = kernels.iter().map(|kernel| kernel.piece_cells).min().unwrap_or(usize::MAX);
        let buffers = Fields::new(&gpu, problem, &fields_of_pass, piece_cells).await?;
        let bytes = wgsl::uniforms(&problem.parameters).len() * problem.dtype.bytes();
        let uniforms = Uniforms::new(&gpu, bytes as u64, plan.depth).await?;
        let mut writes = vec![0; problem.program.fields().len()];
        let mut passes = Vec::with_capacity(kernels.len());
        for (kernel, written) in kernels.iter().zip(&fields_of_pass) {
            passes.push(Pass::new(&gpu, kernel, &buffers, &uniforms, &writes).await?);
            written.iter().for_each(|&field| writes[field] += 1);
        }
        let clock = Clock::new(&gpu).await?;
        let pace = Pace::new(plan, passes.len());
        let (problem, plan) = (problem.clone(), plan.clone());
        let session = PlainSession {
            gpu,
            problem,
            plan,
            fields: buffers,
            staging: Staging::default(),
            uniforms,
            passes,
            shorter: None,
            clock,
            rounds: 0,
            pace,
        };
        session.load_parameters().await?;
        for (field, values) in fields.iter().enumerate() {
            session.stored(field).write(&session.gpu, values).await?;
        }
        Ok(session)
    }

    async fn load_parameters(&self) -> Result<()> {
        let values = wgsl::uniforms(&self.problem.parameters);
        let array = Array::from_fn(self.problem.dtype, values.len(), |i| values[i]);
        let load = || {
            self.gpu.queue.write_buffer(&self.uniforms.parameters, 0, array.as_bytes());
            self.gpu.queue.submit([])
        };
        self.gpu.run("setting the parameters", load).await
    }

    /// Returns the passes of a round of fewer steps.
    fn for_fewer(&self) -> &[Pass] {
        self.shorter.as_ref().map_or(&self.passes, std::slice::from_ref)
    }

    /// Compiles the pass that a round of fewer steps needs.
    async fn prepare_shorter(&mut self) -> Result<()> {
        if self.shorter.is_none()
            && let Some(kernel) = wgsl::shorter(&self.problem, &self.plan)?
        {
            // All stages are in this one pass, so no pass writes before it.
            let writes = vec![0; self.problem.program.fields().len()];
            self.shorter = Some(Pass::new(&self.gpu, &kernel, &self.fields, &self.uniforms, &writes).await?);
        }
        Ok(())
    }

    /// Returns the buffers that hold a field's current values.
    pub fn stored(&self, field: usize) -> Stored<'_> {
        self.fields.stored(&self.problem, field, self.rounds)
    }

    /// Advances exactly `steps` steps, of which there are some, and returns the seconds that the device took.
    pub async fn advance(&mut self, steps: u64) -> Result<f64> {
        let depth = u64::from(self.plan.depth.max(1));
        let rest = steps % depth;
        if rest > 0 {
            // The rest is below the depth, which is 32-bit.
            self.uniforms.set_fewer(&self.gpu, rest as u32).await?;
            self.prepare_shorter().await?;
        }
        let (total, whole, before) = (steps.div_ceil(depth), steps / depth, self.rounds);
        let (passes, fewer) = (&self.passes[..], self.for_fewer());
        let record = |recording: &mut wgpu::ComputePass<'_>, round: u64| {
            let is_whole = round < whole;
            let passes = if is_whole { passes } else { fewer };
            passes.iter().for_each(|pass| pass.record(recording, before + round, is_whole));
        };
        let mut pace = self.pace.clone();
        let seconds = rounds::run(&self.gpu, self.clock.as_ref(), &mut pace, total, &record).await?;
        (self.pace, self.rounds) = (pace, before + total);
        Ok(seconds)
    }

    /// Reads a field, whose number has been checked.
    pub async fn read(&mut self, field: usize) -> Result<Array> {
        let stored = self.fields.stored(&self.problem, field, self.rounds);
        self.staging.read(&self.gpu, stored).await
    }

    /// Reads a window of a field, whose number has been checked.
    pub async fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let stored = self.fields.stored(&self.problem, field, self.rounds);
        self.staging.read_window(&self.gpu, stored, low, high).await
    }

    /// Writes a field, whose number and values have been checked.
    pub async fn write(&self, field: usize, values: &Array) -> Result<()> {
        self.stored(field).write(&self.gpu, values).await
    }

    /// Writes a window of a field; both have been checked.
    pub async fn write_window(&self, field: usize, window: [[usize; 3]; 2], values: &Array) -> Result<()> {
        self.stored(field).write_window(&self.gpu, window, values).await
    }

    /// Counts a field's values that are NaN or infinite; its number has been checked.
    pub async fn non_finite(&self, field: usize) -> Result<u64> {
        self.stored(field).non_finite(&self.gpu).await
    }

    /// Sets a parameter, whose number has been checked.
    pub async fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        self.problem.parameters[parameter] = value;
        self.load_parameters().await
    }
}
