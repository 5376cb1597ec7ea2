//! A system on the device: its buffers, and its phases ready to be recorded.

use std::collections::HashMap;

use abide_core::plan::Dispatches;
use abide_core::plan::krylov::Vector;
use abide_core::solver::Matrix;
use abide_core::{Array, DType, Error, Real, Result};
use abide_shaders::wgsl::krylov::{
    CALL_WORDS, Fixed, MOST_GROUPS, Phase, RING, SUMS, Script, Status, TASK_NUMBERS, TASK_WORDS, Use, Work,
};

use super::image::Image;
use super::modules::Entries;
use super::outcome::state_bytes;
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
pub(super) struct Steps {
    pub begin: Vec<Step>,
    pub turn: Vec<Step>,
    pub mend: Vec<Step>,
    pub refresh: Vec<Step>,
    pub check: Vec<Step>,
}

/// What does not change in a solve, as the kernels' `Task` has it.
pub(super) struct Task {
    pub rows: u32,
    pub size: u32,
    pub most: u32,
    pub patience: u32,
    pub factors: u32,
    pub limit: f64,
    pub near: f64,
    pub weight: f64,
}

/// The buffers and phases of a system.
pub(super) struct System {
    dtype: DType,
    layout: Dispatches,
    fixed: HashMap<u32, wgpu::Buffer>,
    vectors: Vec<(Vector, wgpu::Buffer)>,
    readable: Option<wgpu::Buffer>,
    pub steps: Steps,
}

impl System {
    /// Allocates, loads, binds.
    pub fn new(
        gpu: &Gpu,
        matrix: &Matrix,
        layout: &Dispatches,
        image: &Image,
        (script, entries): (&Script, &Entries),
    ) -> Result<System> {
        let dtype = matrix.dtype();
        let calls = Calls::new(gpu, dtype, script, image);
        let (uniform, storage) = (wgpu::BufferUsages::UNIFORM, wgpu::BufferUsages::STORAGE);
        let copied = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::COPY_SRC;
        let make = |label: &str, bytes: usize, usage| gpu.buffer(label, bytes.max(16) as u64, usage | copied);
        let real = dtype.bytes();
        let state = make("a solver's state", state_bytes(dtype), storage)?;
        let mut fixed = HashMap::from([
            (Fixed::Task.binding(), make("a solver's task", 4 * TASK_WORDS + TASK_NUMBERS * real, uniform)?),
            (Fixed::Call.binding(), make("a solver's calls", calls.bytes.len(), uniform)?),
            (Fixed::Course.binding(), state.clone()),
            (Fixed::State.binding(), state),
            (Fixed::Partials.binding(), make("a solver's sums", SUMS * MOST_GROUPS * real, storage)?),
            (Fixed::History.binding(), make("a solver's history", RING * real, storage)?),
            (Fixed::RightHandSide.binding(), make("a right-hand side", matrix.rows() * real, storage)?),
        ]);
        let mut loaded: Vec<(Fixed, &str, &[u8])> = vec![
            (Fixed::Call, "a solver's calls", &calls.bytes),
            (Fixed::Factors, "a solver's factors", image.factors.as_bytes()),
            (Fixed::Inverses, "block-Jacobi's inverses", image.inverses.as_bytes()),
        ];
        if let Matrix::Stored(stored) = matrix {
            loaded.extend([
                (Fixed::Offsets, "a matrix's offsets", bytemuck::cast_slice(&image.offsets)),
                (Fixed::Columns, "a matrix's columns", bytemuck::cast_slice(stored.indices())),
                (Fixed::Values, "a matrix's values", stored.values().as_bytes()),
            ]);
        }
        for (part, label, bytes) in loaded {
            if let std::collections::hash_map::Entry::Vacant(place) = fixed.entry(part.binding()) {
                place.insert(make(label, bytes.len(), storage)?);
            }
            load(gpu, &fixed[&part.binding()], bytes)?;
        }
        let mut vectors = Vec::new();
        for vector in script.vectors() {
            let label = format!("a solver's vector {}", vector.name().to_lowercase());
            let buffer = make(&label, matrix.rows() * real, storage)?;
            if vector == Vector::Inverse {
                load(gpu, &buffer, image.inverse.as_bytes())?;
            }
            vectors.push((vector, buffer));
        }
        let none = Steps { begin: vec![], turn: vec![], mend: vec![], refresh: vec![], check: vec![] };
        let mut system = System { dtype, layout: layout.clone(), fixed, vectors, readable: None, steps: none };
        let bound = |phases: &[Phase]| {
            phases.iter().map(|phase| system.bound(gpu, phase, entries, &calls)).collect::<Result<Vec<_>>>()
        };
        let steps = Steps {
            begin: bound(&script.begin)?,
            turn: bound(&script.turn)?,
            mend: bound(&script.mend)?,
            refresh: bound(&script.refresh)?,
            check: bound(&script.check)?,
        };
        system.steps = steps;
        Ok(system)
    }

    /// Binds a phase's buffers; an error where it has more than the adapter lets a kernel have.
    fn bound(&self, gpu: &Gpu, phase: &Phase, entries: &Entries, calls: &Calls) -> Result<Step> {
        let compiled = entries.get(phase.entry).ok_or_else(|| {
            Error::invalid(format!("phase {} of a solver", phase.entry), "it was not compiled", "open the system anew")
        })?;
        let fixed = phase.fixed.iter().map(|&part| {
            let buffer = &self.fixed[&part.binding()];
            let resource = match part {
                Fixed::Call => wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer,
                    offset: calls.offset(phase),
                    size: std::num::NonZeroU64::new(calls.size),
                }),
                _ => buffer.as_entire_binding(),
            };
            wgpu::BindGroupEntry { binding: part.binding(), resource }
        });
        let vectors = phase.uses.iter().filter_map(|used: &Use| {
            let resource = self.vector(used.vector)?.as_entire_binding();
            Some(wgpu::BindGroupEntry { binding: used.role.binding(), resource })
        });
        let bindings: Vec<_> = fixed.chain(vectors).collect();
        let buffers = gpu.checked("binding buffers", || {
            gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(phase.entry),
                layout: &compiled.layout,
                entries: &bindings,
            })
        })?;
        let workgroups = match phase.work {
            Work::Vectors => self.layout.groups,
            Work::Product => self.layout.product_groups,
            Work::Scalars => 1,
        };
        Ok(Step { pipeline: compiled.pipeline.clone(), buffers, workgroups: workgroups as u32 })
    }

    fn vector(&self, vector: Vector) -> Option<&wgpu::Buffer> {
        self.vectors.iter().find(|(own, _)| *own == vector).map(|(_, buffer)| buffer)
    }

    /// A buffer that is no vector.
    pub fn fixed(&self, part: Fixed) -> &wgpu::Buffer {
        &self.fixed[&part.binding()]
    }

    /// Records that all vectors but the iterate, which the host loads, begin at 0.
    pub fn clear(&self, encoder: &mut wgpu::CommandEncoder) {
        let kept = [Vector::X, Vector::Inverse];
        for (_, buffer) in self.vectors.iter().filter(|(vector, _)| !kept.contains(vector)) {
            encoder.clear_buffer(buffer, 0, None);
        }
    }

    /// Loads a system's vectors, its task and its first state.
    pub fn load<T: Real>(&self, gpu: &Gpu, b: &[T], x: &[T], task: &Task, state: &[u8]) -> Result<()> {
        let numbers = Array::from_fn(self.dtype, TASK_NUMBERS, |k| [task.limit, task.near, task.weight][k]);
        let (groups, product_groups) = (self.layout.groups as u32, self.layout.product_groups as u32);
        let words = [task.rows, groups, product_groups, task.size, task.most, task.patience, task.factors, 0];
        let bytes = [bytemuck::cast_slice::<u32, u8>(&words), numbers.as_bytes()].concat();
        load(gpu, self.fixed(Fixed::Task), &bytes)?;
        load(gpu, self.fixed(Fixed::Course), state)?;
        load(gpu, self.fixed(Fixed::RightHandSide), T::into_array(b.to_vec()).as_bytes())?;
        match self.vector(Vector::X) {
            Some(buffer) => load(gpu, buffer, T::into_array(x.to_vec()).as_bytes()),
            None => Ok(()),
        }
    }

    /// Reads the iterate back.
    pub fn read<T: Real>(&mut self, gpu: &Gpu, x: &mut [T]) -> Result<()> {
        let bytes = x.len() * self.dtype.bytes();
        if self.readable.is_none() {
            let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
            self.readable = Some(gpu.buffer("reading x", bytes.min(CHUNK) as u64, usage)?);
        }
        let (Some(from), Some(readable)) = (self.vector(Vector::X), &self.readable) else { return Ok(()) };
        let each = CHUNK / self.dtype.bytes();
        for (number, part) in x.chunks_mut(each).enumerate() {
            let bytes = (part.len() * self.dtype.bytes()) as u64;
            gpu.checked("reading x", || {
                let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                encoder.copy_buffer_to_buffer(from, (number * CHUNK) as u64, readable, 0, bytes.next_multiple_of(4));
                gpu.queue.submit([encoder.finish()]);
            })?;
            let values = gpu.map(readable, bytes, |mapped| match self.dtype {
                DType::F32 => Array::F32(bytemuck::pod_collect_to_vec(mapped)),
                DType::F64 => Array::F64(bytemuck::pod_collect_to_vec(mapped)),
            })?;
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

/// The kernels' `Call` of every kind of phase, each where a uniform binding may begin.
struct Calls {
    kinds: Vec<(Status, usize)>,
    stride: usize,
    size: u64,
    bytes: Vec<u8>,
}

impl Calls {
    fn new(gpu: &Gpu, dtype: DType, script: &Script, image: &Image) -> Calls {
        let mut kinds = Vec::new();
        for phase in script.phases() {
            if !kinds.contains(&(phase.when, phase.step)) {
                kinds.push((phase.when, phase.step));
            }
        }
        let size = (4 * CALL_WORDS + 2 * dtype.bytes()).next_multiple_of(16);
        let stride = size.max(gpu.limits.min_uniform_buffer_offset_alignment as usize);
        let mut bytes = vec![0; kinds.len() * stride];
        for (&(when, step), place) in kinds.iter().zip(bytes.chunks_mut(stride)) {
            let factors = image.steps.get(step).copied().unwrap_or_default();
            place[..4].copy_from_slice(&(when as u32).to_ne_bytes());
            let numbers = Array::from_fn(dtype, 2, |k| factors[k]);
            let end = 4 * CALL_WORDS + numbers.as_bytes().len();
            place[4 * CALL_WORDS..end].copy_from_slice(numbers.as_bytes());
        }
        Calls { kinds, stride, size: size as u64, bytes }
    }

    fn offset(&self, phase: &Phase) -> u64 {
        let kind = (phase.when, phase.step);
        let number = self.kinds.iter().position(|&other| other == kind).unwrap_or_default();
        (number * self.stride) as u64
    }
}

/// Loads bytes into a buffer, not all at once: what was written waits on the host until the device has taken it.
fn load(gpu: &Gpu, buffer: &wgpu::Buffer, bytes: &[u8]) -> Result<()> {
    for (number, part) in bytes.chunks(CHUNK).enumerate() {
        gpu.checked("loading a system", || gpu.queue.write_buffer(buffer, (number * CHUNK) as u64, part))?;
        if bytes.len() > CHUNK {
            gpu.checked("loading a system", || gpu.queue.submit([]))?;
            gpu.wait("loading a system", None)?;
        }
    }
    Ok(())
}
