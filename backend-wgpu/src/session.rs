//! A problem in progress: its kernels, and the loop that submits many steps at once.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use abide_core::backend::{check_field, check_fields};
use abide_core::{Array, DType, Error, Plan, Problem, Result, Session};
use abide_shaders::wgsl::{self, Binding, Kernel};

use crate::NAME;
use crate::fields::Fields;
use crate::gpu::Gpu;
use crate::timing::Clock;

/// The most dispatches of a submission.
const DISPATCHES: u64 = 256;
/// How long a submission should take at most, in seconds: systems stop a device that seems to hang.
const SUBMISSION_SECONDS: f64 = 0.1;

/// A stage's kernel, ready to run.
struct Pass {
    pipeline: wgpu::ComputePipeline,
    /// Its buffers after an even and after an odd number of steps.
    buffers: [wgpu::BindGroup; 2],
    /// Workgroups along the two axes of the grid.
    grid: [u32; 2],
}

/// A session on a wgpu device.
pub(crate) struct WgpuSession {
    gpu: Arc<Gpu>,
    problem: Problem,
    plan: Plan,
    fields: Fields,
    parameters: wgpu::Buffer,
    passes: Vec<Pass>,
    clock: Option<Clock>,
    /// Steps done since the session was opened.
    steps: u64,
    /// Steps of the next submission.
    batch: u64,
}

impl WgpuSession {
    /// Compiles, allocates and loads.
    pub fn open(gpu: Arc<Gpu>, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<WgpuSession> {
        check_fields(problem, &fields)?;
        let kernels = wgsl::kernels(problem, plan)?;
        let buffers = Fields::new(&gpu, problem)?;
        let bytes = wgsl::uniforms(&problem.parameters).len() * problem.dtype.bytes();
        let parameters =
            gpu.buffer("parameters", bytes as u64, wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST)?;
        let mut writes = vec![0; problem.program.fields().len()];
        let mut passes = Vec::with_capacity(kernels.len());
        for (kernel, stage) in kernels.iter().zip(problem.program.stages()) {
            passes.push(pass(&gpu, kernel, &buffers, &parameters, &writes)?);
            stage.writes.iter().for_each(|&field| writes[field] += 1);
        }
        let clock = Clock::new(&gpu)?;
        let (problem, plan) = (problem.clone(), plan.clone());
        let session =
            WgpuSession { gpu, problem, plan, fields: buffers, parameters, passes, clock, steps: 0, batch: 1 };
        session.load_parameters()?;
        for (field, values) in fields.iter().enumerate() {
            session.fields.write(&session.gpu, field, 0, values)?;
        }
        Ok(session)
    }

    fn load_parameters(&self) -> Result<()> {
        let values = wgsl::uniforms(&self.problem.parameters);
        let array = Array::from_fn(self.problem.dtype, values.len(), |i| values[i]);
        let operation = "setting the parameters";
        self.gpu.checked(operation, || {
            self.gpu.queue.write_buffer(&self.parameters, 0, array.as_bytes());
            self.gpu.queue.submit([]);
        })?;
        self.gpu.wait(operation, None)
    }

    /// Records and submits a number of steps; `first` and `last` of a call note the time.
    fn submit(&self, steps: u64, first: bool, last: bool) -> Result<wgpu::SubmissionIndex> {
        let gpu = &self.gpu;
        gpu.checked("running steps", || {
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some("steps"),
                timestamp_writes: self.clock.as_ref().and_then(|clock| clock.writes(first, last)),
            });
            for step in self.steps..self.steps + steps {
                for stage in &self.passes {
                    pass.set_pipeline(&stage.pipeline);
                    pass.set_bind_group(0, &stage.buffers[(step % 2) as usize], &[]);
                    pass.dispatch_workgroups(stage.grid[0], stage.grid[1], 1);
                }
            }
            drop(pass);
            if let Some(clock) = self.clock.as_ref().filter(|_| last) {
                clock.resolve(&mut encoder);
            }
            gpu.queue.submit([encoder.finish()])
        })
    }

    /// The steps of a submission that takes as long as it should, from one that took `seconds` for `steps`.
    fn adapt(&mut self, steps: u64, seconds: f64) {
        let most = (DISPATCHES / self.passes.len().max(1) as u64).max(1);
        let fitting = (SUBMISSION_SECONDS / seconds.max(1e-9) * steps as f64) as u64;
        self.batch = fitting.min(8 * self.batch).clamp(1, most);
    }
}

impl Session for WgpuSession {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        if steps == 0 {
            return Ok(0.0);
        }
        let begun = Instant::now();
        let (mut left, mut done) = (steps, begun);
        let mut running = VecDeque::new();
        while left > 0 || !running.is_empty() {
            // Two submissions are under way at a time, so that the device need not wait for the host.
            if left > 0 && running.len() < 2 {
                let now = self.batch.min(left);
                let submitted = Instant::now();
                let submission = self.submit(now, left == steps, left == now)?;
                self.steps += now;
                left -= now;
                running.push_back((submission, submitted, now));
            } else if let Some((submission, submitted, count)) = running.pop_front() {
                self.gpu.wait("running steps", Some(submission))?;
                let taken = done.max(submitted).elapsed().as_secs_f64();
                done = Instant::now();
                self.adapt(count, taken);
            }
        }
        match &self.clock {
            Some(clock) => clock.seconds(&self.gpu, begun),
            None => Ok(begun.elapsed().as_secs_f64()),
        }
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        check_number("field", field, self.problem.program.fields().len())?;
        self.fields.read(&self.gpu, &self.problem, field, self.steps)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        check_number("field", field, self.problem.program.fields().len())?;
        self.fields.read_window(&self.gpu, &self.problem, field, self.steps, low, high)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        check_number("field", field, self.problem.program.fields().len())?;
        check_field(&self.problem, &self.problem.program.fields()[field], values)?;
        self.fields.write(&self.gpu, field, self.steps, values)
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        check_number("parameter", parameter, self.problem.parameters.len())?;
        self.problem.parameters[parameter] = value;
        self.load_parameters()
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

/// Compiles a stage's kernel and binds its buffers; `writes` counts the earlier stages that write each field.
fn pass(gpu: &Gpu, kernel: &Kernel, fields: &Fields, parameters: &wgpu::Buffer, writes: &[usize]) -> Result<Pass> {
    let entry = |(number, &binding): (usize, &Binding)| wgpu::BindGroupLayoutEntry {
        binding: number as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: match binding {
                Binding::Parameters => wgpu::BufferBindingType::Uniform,
                Binding::Old(_) => wgpu::BufferBindingType::Storage { read_only: true },
                Binding::New(_) => wgpu::BufferBindingType::Storage { read_only: false },
            },
            has_dynamic_offset: false,
            min_binding_size: None,
        },
        count: None,
    };
    let entries: Vec<_> = kernel.bindings.iter().enumerate().map(entry).collect();
    let label = Some(kernel.name.as_str());
    let (layout, pipeline) = gpu
        .checked("compiling", || {
            let device = &gpu.device;
            let source = wgpu::ShaderSource::Wgsl(kernel.text.as_str().into());
            let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
            // SAFETY: kernels check their own accesses. The index of a cell is used only where the cell lies in the
            // domain, that of a tap is clamped to it (`place` in domain.wgsl), that of a tile's slot counts through the
            // tile, and a formula cannot index. Every field's buffer holds the whole domain that the text was made for. Loops
            // count up to constants; divisors are constants above zero; there are no ray queries or meshes.
            let module = unsafe {
                device.create_shader_module_trusted(
                    wgpu::ShaderModuleDescriptor { label, source },
                    wgpu::ShaderRuntimeChecks::unchecked(),
                )
            };
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label,
                layout: Some(&device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                    label,
                    bind_group_layouts: &[Some(&layout)],
                    immediate_size: 0,
                })),
                module: &module,
                entry_point: Some(wgsl::ENTRY),
                compilation_options: wgpu::PipelineCompilationOptions {
                    // Every slot of a tile is loaded before it is read.
                    zero_initialize_workgroup_memory: false,
                    ..Default::default()
                },
                cache: None,
            });
            (layout, pipeline)
        })
        .map_err(|error| match error {
            Error::Device { message, .. } => {
                Error::Compile { backend: NAME, target: format!("WGSL on {}", gpu.adapter.name), log: message }
            }
            other => other,
        })?;
    let group = |steps: u64| {
        let resource = |(number, &binding): (usize, &Binding)| wgpu::BindGroupEntry {
            binding: number as u32,
            resource: match binding {
                Binding::Parameters => parameters.as_entire_binding(),
                Binding::Old(field) => fields.buffer(field, steps, writes[field]).as_entire_binding(),
                Binding::New(field) => fields.buffer(field, steps, writes[field] + 1).as_entire_binding(),
            },
        };
        let entries: Vec<_> = kernel.bindings.iter().enumerate().map(resource).collect();
        gpu.checked("binding buffers", || {
            gpu.device.create_bind_group(&wgpu::BindGroupDescriptor { label, layout: &layout, entries: &entries })
        })
    };
    let buffers = [group(0)?, group(1)?];
    let grid = grid(kernel.workgroups, gpu.limits.max_compute_workgroups_per_dimension)?;
    Ok(Pass { pipeline, buffers, grid })
}

/// A grid of two axes, neither longer than `most`, that holds this many workgroups with few to spare.
pub(crate) fn grid(workgroups: usize, most: u32) -> Result<[u32; 2]> {
    let most = most.max(1) as usize;
    let rows = workgroups.div_ceil(most).max(1);
    if rows > most {
        return Err(Error::limit(
            "workgroups of a dispatch",
            workgroups,
            most * most,
            "choose a smaller size or another backend",
        ));
    }
    Ok([workgroups.div_ceil(rows) as u32, rows as u32])
}

/// Whether a type's values can be computed by the device.
pub(crate) fn check_type(gpu: &Gpu, dtype: DType) -> Result<()> {
    if dtype == DType::F32 || gpu.adapter.f64 {
        return Ok(());
    }
    Err(Error::Unsupported {
        backend: NAME,
        reason: format!("{} does not compute in f64 through {}", gpu.adapter.name, gpu.adapter.interface),
        change: "use --dtype f32, another adapter or another backend".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_holds_all_workgroups_within_the_limit() {
        for workgroups in [1, 2, 65535, 65536, 65537, 312_500, 1_000_003, 65535 * 65535] {
            let [x, y] = grid(workgroups, 65535).unwrap().map(|n| n as usize);
            assert!(x <= 65535 && y <= 65535 && x * y >= workgroups && x * y - workgroups < y, "{workgroups}: {x} {y}");
        }
        assert!(grid(65535 * 65535 + 1, 65535).is_err());
    }
}
