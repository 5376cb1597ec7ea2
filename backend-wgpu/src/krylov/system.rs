//! A system on the device: its buffers, and its phases ready to be recorded.

use abide_core::solver::plan::Dispatches;
use abide_core::solver::plan::krylov::Vector;
use abide_core::solver::{Matrix, Status};
use abide_core::{Array, DType, Error, Real, Result};
use abide_shaders::wgsl::krylov::{
    Call, Fixed, MOST_GROUPS, Phase, RING, SUMS, Script, Task, Work, triangle_numbers,
};

use super::modules::Entries;
use super::outcome::{fresh, state_bytes};
use super::packed::PackedSystem;
use crate::gpu::Gpu;

/// The most bytes that move between host and device at once.
const CHUNK: usize = 32 << 20;

/// A phase with its buffers bound.
pub(super) struct Step {
    pipeline: wgpu::ComputePipeline,
    buffers: wgpu::BindGroup,
    workgroups: u32,
}

/// The phases of a script.
#[derive(Default)]
pub(super) struct Steps {
    pub begin: Vec<Step>,
    pub turn: Vec<Step>,
    pub mend: Vec<Step>,
    pub refresh: Vec<Step>,
    pub check: Vec<Step>,
}

/// The buffers and phases of a system.
pub(super) struct System {
    dtype: DType,
    layout: Dispatches,
    fixed: Vec<(Fixed, wgpu::Buffer)>,
    vectors: Vec<(Vector, wgpu::Buffer)>,
    /// The buffer through which the iterate comes to the host.
    readable: wgpu::Buffer,
    pub steps: Steps,
}

impl System {
    /// Allocates and loads the buffers, and binds them to the phases.
    pub async fn new(
        gpu: &Gpu,
        matrix: &Matrix,
        layout: &Dispatches,
        packed: &PackedSystem,
        (script, entries): (&Script, &Entries),
    ) -> Result<System> {
        let (dtype, real) = (matrix.dtype(), matrix.dtype().bytes());
        let calls = Calls::new(gpu, dtype, script, packed);
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let readable = gpu.buffer("reading x", (matrix.rows() * real).min(CHUNK) as u64, usage).await?;
        let (fixed, vectors, steps) = (Vec::new(), Vec::new(), Steps::default());
        let mut system = System { dtype, layout: layout.clone(), fixed, vectors, readable, steps };
        let state = system.add(gpu, Fixed::StopTest, "a solver's state", state_bytes(dtype)).await?;
        let triangle = triangle_numbers(script.basis.saturating_sub(1)) * real;
        let triangle = system.add(gpu, Fixed::Triangle, "GMRES's least-squares problem", triangle).await?;
        // The same two buffers, for phases that only read them.
        system.fixed.extend([(Fixed::State, state), (Fixed::Coefficients, triangle)]);
        for (part, label, bytes) in [
            (Fixed::Task, "a solver's task", Task::size(dtype)),
            (Fixed::Partials, "a solver's sums", SUMS.max(script.basis) * MOST_GROUPS * real),
            (Fixed::Basis, "GMRES's basis", script.basis * matrix.rows() * real),
            (Fixed::History, "a solver's history", RING * real),
            (Fixed::RightHandSide, "a right-hand side", matrix.rows() * real),
        ] {
            system.add(gpu, part, label, bytes).await?;
        }
        let mut loaded: Vec<(Fixed, &str, &[u8])> = vec![
            (Fixed::Call, "a solver's calls", &calls.bytes),
            (Fixed::Factors, "a solver's factors", packed.factors.as_bytes()),
            (Fixed::Inverses, "block-Jacobi's inverses", packed.inverses.as_bytes()),
        ];
        if let Matrix::Stored(stored) = matrix {
            loaded.extend([
                (Fixed::Offsets, "a matrix's offsets", bytemuck::cast_slice(&packed.offsets)),
                (Fixed::Columns, "a matrix's columns", bytemuck::cast_slice(stored.indices())),
                (Fixed::Values, "a matrix's values", stored.values().as_bytes()),
            ]);
        }
        for (part, label, bytes) in loaded {
            load(gpu, &system.add(gpu, part, label, bytes.len()).await?, bytes).await?;
        }
        for vector in script.vectors() {
            let label = format!("a solver's vector {}", vector.name().to_lowercase());
            let buffer = storage(gpu, &label, matrix.rows() * real, wgpu::BufferUsages::STORAGE).await?;
            if vector == Vector::Inverse {
                load(gpu, &buffer, packed.inverse.as_bytes()).await?;
            }
            system.vectors.push((vector, buffer));
        }
        let bind = |phases: &[Phase]| -> Result<Vec<Step>> {
            phases.iter().map(|phase| system.bound(gpu, phase, entries, &calls)).collect()
        };
        let parts = [&script.begin, &script.turn, &script.mend, &script.refresh, &script.check];
        let bound = gpu.checked("binding buffers", || parts.map(|phases| bind(phases))).await?;
        let [begin, turn, mend, refresh, check] = bound;
        system.steps = Steps { begin: begin?, turn: turn?, mend: mend?, refresh: refresh?, check: check? };
        Ok(system)
    }

    /// Allocates a buffer that is no vector.
    async fn add(&mut self, gpu: &Gpu, part: Fixed, label: &str, bytes: usize) -> Result<wgpu::Buffer> {
        let usage = if part.is_uniform() { wgpu::BufferUsages::UNIFORM } else { wgpu::BufferUsages::STORAGE };
        let buffer = storage(gpu, label, bytes, usage).await?;
        self.fixed.push((part, buffer.clone()));
        Ok(buffer)
    }

    fn bound(&self, gpu: &Gpu, phase: &Phase, entries: &Entries, calls: &Calls) -> Result<Step> {
        let missing = |what: String| Error::invalid(what, "it was not made", "open the system anew");
        let compiled =
            entries.get(phase.name).ok_or_else(|| missing(format!("phase {} of a solver", phase.name)))?;
        let mut bindings = Vec::with_capacity(phase.fixed.len() + phase.uses.len());
        for &part in &phase.fixed {
            let buffer = self.fixed(part).ok_or_else(|| missing(format!("buffer {part:?} of a solver")))?;
            let resource = match part {
                Fixed::Call => wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: calls.offset(phase),
                    size: std::num::NonZeroU64::new(calls.size),
                }),
                _ => buffer.as_entire_binding(),
            };
            bindings.push(wgpu::BindGroupEntry { binding: part.binding(), resource });
        }
        for used in &phase.uses {
            let buffer =
                self.vector(used.vector).ok_or_else(|| missing(format!("vector {:?}", used.vector)))?;
            let resource = buffer.as_entire_binding();
            bindings.push(wgpu::BindGroupEntry { binding: used.role.binding(), resource });
        }
        let buffers = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(phase.name),
            layout: &compiled.layout,
            entries: &bindings,
        });
        let workgroups = match phase.work() {
            Work::Vectors => self.layout.groups,
            Work::Product => self.layout.product_groups,
            Work::Scalars => 1,
        };
        Ok(Step { pipeline: compiled.pipeline.clone(), buffers, workgroups: workgroups as u32 })
    }

    fn vector(&self, vector: Vector) -> Option<&wgpu::Buffer> {
        self.vectors.iter().find(|(own, _)| *own == vector).map(|(_, buffer)| buffer)
    }

    fn fixed(&self, part: Fixed) -> Option<&wgpu::Buffer> {
        self.fixed.iter().find(|(own, _)| *own == part).map(|(_, buffer)| buffer)
    }

    /// Records that all vectors begin at 0, except the iterate, which the host loads.
    pub fn clear(&self, encoder: &mut wgpu::CommandEncoder) {
        let kept = [Vector::X, Vector::Inverse];
        for (_, buffer) in self.vectors.iter().filter(|(vector, _)| !kept.contains(vector)) {
            encoder.clear_buffer(buffer, 0, None);
        }
    }

    /// Returns the bytes of state and history that [`System::tell`] copies.
    pub fn told_bytes(&self) -> u64 {
        (state_bytes(self.dtype) + RING * self.dtype.bytes()) as u64
    }

    /// Records the copy of the state, and behind it the history, to a buffer that the host can read.
    pub fn tell(&self, encoder: &mut wgpu::CommandEncoder, readable: &wgpu::Buffer) {
        let state = state_bytes(self.dtype) as u64;
        let parts = [(Fixed::StopTest, 0, state), (Fixed::History, state, self.told_bytes() - state)];
        for (part, to, bytes) in parts {
            if let Some(buffer) = self.fixed(part) {
                encoder.copy_buffer_to_buffer(buffer, 0, readable, to, bytes);
            }
        }
    }

    /// Loads a system's vectors, its task and its first state.
    pub async fn load<T: Real>(&self, gpu: &Gpu, b: &[T], x: &[T], task: &Task) -> Result<()> {
        let (groups, product_groups) = (self.layout.groups as u32, self.layout.product_groups as u32);
        let (share, product_share) = (self.layout.share as u32, self.layout.product_share as u32);
        let bytes = Task { groups, product_groups, share, product_share, ..*task }.bytes(self.dtype);
        let (b, x) = (T::into_array(b.to_vec()), T::into_array(x.to_vec()));
        for (buffer, bytes) in [
            (self.fixed(Fixed::Task), &bytes[..]),
            (self.fixed(Fixed::StopTest), &fresh(self.dtype)),
            (self.fixed(Fixed::RightHandSide), b.as_bytes()),
            (self.vector(Vector::X), x.as_bytes()),
        ] {
            if let Some(buffer) = buffer {
                load(gpu, buffer, bytes).await?;
            }
        }
        Ok(())
    }

    /// Reads the iterate back.
    pub async fn read<T: Real>(&self, gpu: &Gpu, x: &mut [T]) -> Result<()> {
        let Some(from) = self.vector(Vector::X) else { return Ok(()) };
        for (number, part) in x.chunks_mut(CHUNK / self.dtype.bytes()).enumerate() {
            let bytes = (part.len() * self.dtype.bytes()) as u64;
            gpu.run("reading x", || {
                let mut encoder =
                    gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                encoder.copy_buffer_to_buffer(from, (number * CHUNK) as u64, &self.readable, 0, bytes);
                gpu.queue.submit([encoder.finish()])
            })
            .await?;
            let collect = |mapped: &[u8]| match self.dtype {
                DType::F32 => Array::F32(bytemuck::pod_collect_to_vec(mapped)),
                DType::F64 => Array::F64(bytemuck::pod_collect_to_vec(mapped)),
            };
            let values = gpu.map(&self.readable, bytes, collect).await?;
            if let Some(values) = T::slice(&values) {
                part.copy_from_slice(values);
            }
        }
        Ok(())
    }
}

impl Step {
    /// Records the phase.
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.buffers, &[]);
        pass.dispatch_workgroups(self.workgroups, 1, 1);
    }
}

/// The kernels' `Call` of every kind of phase, each at an offset where a uniform binding may begin.
struct Calls {
    kinds: Vec<(Status, usize)>,
    stride: usize,
    size: u64,
    bytes: Vec<u8>,
}

impl Calls {
    fn new(gpu: &Gpu, dtype: DType, script: &Script, packed: &PackedSystem) -> Calls {
        let mut kinds = Vec::new();
        for phase in script.phases() {
            if !kinds.contains(&(phase.when, phase.step)) {
                kinds.push((phase.when, phase.step));
            }
        }
        let size = Call::size(dtype).next_multiple_of(16);
        let stride = size.max(gpu.limits.min_uniform_buffer_offset_alignment as usize);
        let mut bytes = vec![0; kinds.len() * stride];
        for (&(when, step), place) in kinds.iter().zip(bytes.chunks_mut(stride)) {
            let [keep, add] = packed.steps.get(step).copied().unwrap_or_default();
            let call = Call { when: when as u32, unused: 0, keep, add };
            place[..Call::size(dtype)].copy_from_slice(&call.bytes(dtype));
        }
        Calls { kinds, stride, size: size as u64, bytes }
    }

    fn offset(&self, phase: &Phase) -> u64 {
        let kind = (phase.when, phase.step);
        let number = self.kinds.iter().position(|&other| other == kind).unwrap_or_default();
        (number * self.stride) as u64
    }
}

/// Allocates a buffer that can be loaded, cleared and read back.
async fn storage(gpu: &Gpu, label: &str, bytes: usize, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer> {
    let copied = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
    gpu.buffer(label, bytes.max(16) as u64, usage | copied).await
}

/// Loads bytes into a buffer, part by part: written bytes wait on the host until the device has taken them.
async fn load(gpu: &Gpu, buffer: &wgpu::Buffer, bytes: &[u8]) -> Result<()> {
    let operation = "loading a system";
    for (number, part) in bytes.chunks(CHUNK).enumerate() {
        let write = || gpu.queue.write_buffer(buffer, (number * CHUNK) as u64, part);
        if bytes.len() <= CHUNK {
            gpu.checked(operation, write).await?;
            continue;
        }
        gpu.run(operation, || {
            write();
            gpu.queue.submit([])
        })
        .await?;
    }
    Ok(())
}
