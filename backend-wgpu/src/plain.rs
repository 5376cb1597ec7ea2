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

/// The steps whose varying parameters are on the device at a time.
const VARYING_STEPS: u64 = 2048;

/// Returns the bytes of the uniform buffer of a dispatch's parameters.
pub(crate) fn uniform_bytes(problem: &Problem, plan: &Plan) -> u64 {
    let varying = vec![0.0; wgsl::levels(problem, plan) * problem.program.varying().len()];
    let values = wgsl::uniforms(&problem.parameters, &varying, problem.dtype).len();
    (values * problem.dtype.bytes()) as u64
}

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
        let dispatches = match problem.program.varying().is_empty() {
            true => 1,
            false => (VARYING_STEPS / u64::from(plan.depth.max(1))).max(1) * kernels.len() as u64,
        };
        let uniforms = Uniforms::new(&gpu, uniform_bytes(problem, plan), dispatches, plan.depth).await?;
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
        if !self.problem.program.varying().is_empty() {
            // They come with each advance.
            return Ok(());
        }
        let values = wgsl::uniforms(&self.problem.parameters, &[], self.problem.dtype);
        let array = Array::from_fn(self.problem.dtype, values.len(), |i| values[i]);
        self.load_uniforms(array.as_bytes()).await
    }

    async fn load_uniforms(&self, bytes: &[u8]) -> Result<()> {
        let load = || {
            self.gpu.queue.write_buffer(&self.uniforms.parameters, 0, bytes);
            self.gpu.queue.submit([])
        };
        self.gpu.run("setting the parameters", load).await
    }

    /// Loads the parameters of each dispatch, whose stages read the values in `read` one after another.
    async fn load_varying(&self, read: &[f64]) -> Result<()> {
        let (problem, stride) = (&self.problem, self.uniforms.parameter_stride as usize);
        let (all, levels) = (problem.parameters.len(), wgsl::levels(problem, &self.plan));
        let numbers = problem.program.varying();
        let mut bytes = Vec::new();
        for stages in read.chunks(levels * all) {
            let varying: Vec<f64> =
                stages.chunks(all).flat_map(|row| numbers.iter().map(|&number| row[number])).collect();
            let values = wgsl::uniforms(&problem.parameters, &varying, problem.dtype);
            bytes.extend_from_slice(Array::from_fn(problem.dtype, values.len(), |i| values[i]).as_bytes());
            bytes.resize(bytes.len().next_multiple_of(stride), 0);
        }
        // What lies behind the last dispatch's is not there.
        bytes.truncate(self.uniforms.parameters.size() as usize);
        self.load_uniforms(&bytes).await
    }

    /// Advances steps as [`PlainSession::advance`] does, while parameters differ from stage to stage: `read` has the values of
    /// all for each step and stage.
    pub async fn advance_by(&mut self, steps: u64, read: &[f64]) -> Result<f64> {
        let depth = u64::from(self.plan.depth.max(1));
        let most = (VARYING_STEPS / depth).max(1) * depth;
        let a_step = read.len() / steps.max(1) as usize;
        let mut seconds = 0.0;
        for read in read.chunks(most as usize * a_step.max(1)) {
            self.load_varying(read).await?;
            seconds += self.advance((read.len() / a_step.max(1)) as u64).await?;
        }
        Ok(seconds)
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
        let stride = self.uniforms.parameter_stride;
        let record = |recording: &mut wgpu::ComputePass<'_>, round: u64| {
            let is_whole = round < whole;
            let passes = if is_whole { passes } else { fewer };
            for (pass, dispatch) in passes.iter().zip(round * passes.len() as u64..) {
                pass.record(recording, before + round, is_whole, (dispatch * stride) as u32);
            }
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
