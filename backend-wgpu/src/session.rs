//! A problem in progress: its kernels, and the loop that submits many steps at once.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use abide_core::backend::{check_field, check_fields, check_values};
use abide_core::{Array, DType, Error, Plan, Problem, Result, Session};
use abide_shaders::wgsl::{self, Kernel};
use web_time::Instant;

use crate::NAME;
use crate::blocking::block_on;
use crate::fields::Fields;
use crate::gpu::{Gpu, Submission};
use crate::pace::Pace;
use crate::pass::{Pass, Uniforms};
use crate::timing::Clock;

/// The operation that an error while stepping names.
const RUNNING: &str = "running steps";

/// A session on a wgpu device, whose steps and transfers can be awaited.
///
/// The methods of [`Session`] block until they are done, which nothing may in a browser; the methods that end
/// in `_async` do the same for callers that await them. A future that is dropped before its end leaves values
/// of which nothing is known.
///
/// The session works in rounds. A round is one step, with a dispatch for each stage; or as many steps as the
/// plan is deep, in one dispatch.
pub struct WgpuSession {
    gpu: Arc<Gpu>,
    problem: Problem,
    plan: Plan,
    fields: Fields,
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

impl WgpuSession {
    /// Compiles, allocates and loads.
    pub(crate) async fn open(
        gpu: Arc<Gpu>,
        problem: &Problem,
        plan: &Plan,
        kernels: &[Kernel],
        fields: Vec<Array>,
    ) -> Result<WgpuSession> {
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
        let session = WgpuSession {
            gpu,
            problem,
            plan,
            fields: buffers,
            uniforms,
            passes,
            shorter: None,
            clock,
            rounds: 0,
            pace,
        };
        session.load_parameters().await?;
        for (field, values) in fields.iter().enumerate() {
            session.fields.write(&session.gpu, field, 0, values).await?;
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

    /// Records and submits rounds, of which the last `fewer` are of fewer steps; the `first` and the `last`
    /// submission of a call note the time.
    async fn submit(&self, rounds: u64, fewer: u64, first: bool, last: bool) -> Result<Submission> {
        let gpu = &self.gpu;
        let record = || {
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut recording = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some("steps"),
                timestamp_writes: self.clock.as_ref().and_then(|clock| clock.writes(first, last)),
            });
            for round in 0..rounds {
                let is_whole = round < rounds - fewer;
                let passes = if is_whole { &self.passes[..] } else { self.for_fewer() };
                passes.iter().for_each(|pass| pass.record(&mut recording, self.rounds + round, is_whole));
            }
            drop(recording);
            if let Some(clock) = self.clock.as_ref().filter(|_| last) {
                clock.resolve(&mut encoder);
            }
            gpu.queue.submit([encoder.finish()])
        };
        gpu.submit(RUNNING, record).await
    }

    /// Advances as [`Session::advance`] does, without blocking.
    pub async fn advance_async(&mut self, steps: u64) -> Result<f64> {
        if steps == 0 {
            return Ok(0.0);
        }
        let depth = u64::from(self.plan.depth.max(1));
        let rest = steps % depth;
        if rest > 0 {
            // The rest is below the depth, which is 32-bit.
            self.uniforms.set_fewer(&self.gpu, rest as u32).await?;
            self.prepare_shorter().await?;
        }
        let total = steps.div_ceil(depth);
        let begun = Instant::now();
        let (mut left, mut done) = (total, begun);
        let mut running = VecDeque::new();
        while left > 0 || !running.is_empty() {
            // Two submissions are under way at a time, so that the device need not wait for the host.
            if left > 0 && running.len() < 2 {
                let now = self.pace.rounds().min(left);
                let (submitted, is_last) = (Instant::now(), left == now);
                let submission =
                    self.submit(now, u64::from(is_last && rest > 0), left == total, is_last).await?;
                self.rounds += now;
                left -= now;
                running.push_back((submission, submitted, now));
            } else if let Some((submission, submitted, count)) = running.pop_front() {
                self.gpu.finished(RUNNING, submission).await?;
                let taken = done.max(submitted).elapsed().as_secs_f64();
                done = Instant::now();
                self.pace.learn(count, taken);
            }
        }
        match &self.clock {
            Some(clock) => clock.seconds(&self.gpu, begun).await,
            None => Ok(begun.elapsed().as_secs_f64()),
        }
    }

    /// Reads as [`Session::read`] does, without blocking.
    pub async fn read_async(&mut self, field: usize) -> Result<Array> {
        check_number("field", field, self.problem.program.fields().len())?;
        self.fields.read(&self.gpu, &self.problem, field, self.rounds).await
    }

    /// Reads as [`Session::read_window`] does, without blocking.
    pub async fn read_window_async(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
    ) -> Result<Array> {
        check_number("field", field, self.problem.program.fields().len())?;
        self.fields.read_window(&self.gpu, &self.problem, field, self.rounds, low, high).await
    }

    /// Writes as [`Session::write`] does, without blocking.
    pub async fn write_async(&mut self, field: usize, values: &Array) -> Result<()> {
        check_number("field", field, self.problem.program.fields().len())?;
        check_field(&self.problem, field, values)?;
        self.fields.write(&self.gpu, field, self.rounds, values).await
    }

    /// Writes as [`Session::write_window`] does, without blocking.
    pub async fn write_window_async(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        check_number("field", field, self.problem.program.fields().len())?;
        check_values(&self.problem, field, low, high, values)?;
        self.fields.write_window(&self.gpu, &self.problem, field, self.rounds, [low, high], values).await
    }

    /// Counts as [`Session::non_finite`] does, without blocking.
    pub async fn non_finite_async(&mut self, field: usize) -> Result<u64> {
        check_number("field", field, self.problem.program.fields().len())?;
        self.fields.non_finite(&self.gpu, &self.problem, field, self.rounds).await
    }

    /// Sets a parameter as [`Session::set_parameter`] does, without blocking.
    pub async fn set_parameter_async(&mut self, parameter: usize, value: f64) -> Result<()> {
        check_number("parameter", parameter, self.problem.parameters.len())?;
        self.problem.parameters[parameter] = value;
        self.load_parameters().await
    }
}

impl Session for WgpuSession {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        block_on(self.advance_async(steps))
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        block_on(self.read_async(field))
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        block_on(self.read_window_async(field, low, high))
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        block_on(self.write_async(field, values))
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        block_on(self.write_window_async(field, low, high, values))
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        block_on(self.non_finite_async(field))
    }

    fn device_buffer(&self, field: usize) -> Option<Box<dyn Any>> {
        check_number("field", field, self.problem.program.fields().len()).ok()?;
        match self.fields.pieces(field, self.rounds, 0) {
            [whole] => Some(Box::new(whole.clone())),
            _ => None,
        }
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        block_on(self.set_parameter_async(parameter, value))
    }
}

fn check_number(what: &str, number: usize, count: usize) -> Result<()> {
    if number < count {
        return Ok(());
    }
    Err(Error::limit(
        format!("number of a {what}, counted from 0"),
        number,
        format!("below {count}"),
        format!("name a {what} of the program"),
    ))
}

/// Checks that the device can compute with a type's values.
pub(crate) fn check_type(gpu: &Gpu, dtype: DType) -> Result<()> {
    if dtype == DType::F32 || gpu.adapter.f64 {
        return Ok(());
    }
    Err(Error::unsupported(
        format!("backend {}", NAME),
        format!("{} does not compute in f64 through {}", gpu.adapter.name, gpu.adapter.interface),
        "use --dtype f32, another adapter or another backend",
    ))
}
