//! The device memory of a program that is not plain: a buffer per entry of a [`Storage`], all scalars, and
//! the leaves of reductions.

use abide_core::program::{Buffer, Storage, Transforms};
use abide_core::{DType, Result};
use abide_shaders::numbers;
use abide_shaders::wgsl::{self, ScalarLayout};

use super::Made;
use crate::gpu::Gpu;
use crate::transfers::{Staging, Stored};

/// Buffers on the device.
pub struct Memory {
    dtype: DType,
    buffers: Vec<Allocation>,
    /// Whether the run has ended, the steps done, the parameters, and then the computed scalars.
    pub scalars: wgpu::Buffer,
    /// Where they lie.
    pub layout: ScalarLayout,
    /// How many scalars there are.
    count: usize,
    /// The leaves of reductions.
    pub leaves: wgpu::Buffer,
    /// The matrices of transforms as kernels have them, and as they follow from the parameters.
    pub matrices: wgpu::Buffer,
    transforms: Transforms,
    /// Whether a parameter has changed since they were made.
    pub are_matrices_stale: bool,
}

/// A buffer of a storage.
struct Allocation {
    memory: wgpu::Buffer,
    buffer: Buffer,
}

impl Allocation {
    async fn new(gpu: &Gpu, buffer: &Buffer, dtype: DType) -> Result<Allocation> {
        let bytes = (buffer.len() * dtype.bytes()) as u64;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        Ok(Allocation { memory: gpu.buffer("a field", bytes, usage).await?, buffer: buffer.clone() })
    }
}

impl Memory {
    /// Allocates all that a problem needs, and loads its scalars. The fields have no values yet.
    pub async fn new(gpu: &Gpu, made: &Made) -> Result<Memory> {
        let problem = &made.problem;
        let dtype = problem.dtype;
        let mut buffers = Vec::with_capacity(made.storage.buffers.len());
        for buffer in &made.storage.buffers {
            buffers.push(Allocation::new(gpu, buffer, dtype).await?);
        }
        let layout = made.layout;
        let bytes = wgsl::scalars(problem, layout);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let scalars = gpu.buffer("scalars", bytes.len() as u64, usage).await?;
        let leaf_bytes = (made.kernels.leaves.max(1) * dtype.bytes()) as u64;
        let leaves = gpu.buffer("leaves of reductions", leaf_bytes, wgpu::BufferUsages::STORAGE).await?;
        let count = problem.parameters.len() + problem.scalars.len();
        let matrix_bytes = (made.kernels.matrices.values.max(1) * dtype.bytes()) as u64;
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let matrices = gpu.buffer("matrices of transforms", matrix_bytes, usage).await?;
        let transforms = Transforms::of(problem)?;
        let memory = Memory {
            dtype,
            buffers,
            scalars,
            layout,
            count,
            leaves,
            matrices,
            transforms,
            are_matrices_stale: false,
        };
        memory.load(gpu, 0, &bytes).await?;
        memory.load_matrices(gpu, made).await?;
        Ok(memory)
    }

    /// Makes those matrices anew that a parameter has changed.
    pub async fn renew_matrices(&mut self, gpu: &Gpu, made: &Made) -> Result<()> {
        if std::mem::take(&mut self.are_matrices_stale) && self.transforms.renew(&made.problem)? {
            self.load_matrices(gpu, made).await?;
        }
        Ok(())
    }

    async fn load_matrices(&self, gpu: &Gpu, made: &Made) -> Result<()> {
        let bytes = made.kernels.matrices.bytes(&made.problem, &self.transforms)?;
        if bytes.is_empty() {
            return Ok(());
        }
        let write = || {
            gpu.queue.write_buffer(&self.matrices, 0, &bytes);
            gpu.queue.submit([])
        };
        gpu.run("loading matrices", write).await
    }

    /// Returns a buffer of the storage by its number.
    pub fn buffer(&self, number: usize) -> &wgpu::Buffer {
        &self.buffers[number].memory
    }

    /// Returns the values of a buffer of the storage, by its number.
    pub fn stored(&self, number: usize) -> Stored<'_> {
        let Allocation { memory, buffer } = &self.buffers[number];
        self.whole(memory, buffer.extents)
    }

    fn whole<'a>(&self, memory: &'a wgpu::Buffer, extents: [usize; 3]) -> Stored<'a> {
        Stored { pieces: std::slice::from_ref(memory), piece_bytes: u64::MAX, extents, dtype: self.dtype }
    }

    /// Replaces bytes of the scalars from `at` on.
    async fn load(&self, gpu: &Gpu, at: usize, bytes: &[u8]) -> Result<()> {
        let write = || {
            gpu.queue.write_buffer(&self.scalars, at as u64, bytes);
            gpu.queue.submit([])
        };
        gpu.run("setting the scalars", write).await
    }

    /// Sets one of the scalars, whose number has been checked.
    pub async fn set_scalar(&self, gpu: &Gpu, number: usize, value: f64) -> Result<()> {
        for (at, one) in self.layout.value(number, value) {
            self.load(gpu, at, one.as_bytes()).await?;
        }
        Ok(())
    }

    /// Sets whether the run has ended, and the steps done.
    pub async fn set_progress(&self, gpu: &Gpu, progress: [u32; 2]) -> Result<()> {
        self.load(gpu, 0, bytemuck::bytes_of(&progress)).await
    }

    /// Returns whether the run has ended, and the steps done.
    pub async fn progress(&self, gpu: &Gpu, staging: &mut Staging) -> Result<[u32; 2]> {
        let mut progress = [0; 2];
        let scalars = self.whole(&self.scalars, [1; 3]);
        staging.fetch(gpu, scalars, 0, bytemuck::bytes_of_mut(&mut progress)).await?;
        Ok(progress)
    }

    /// Returns the parameters, and then the computed scalars.
    pub async fn scalars(&self, gpu: &Gpu, staging: &mut Staging) -> Result<Vec<f64>> {
        let mut bytes = vec![0; self.layout.kept_at(self.count)];
        staging.fetch(gpu, self.whole(&self.scalars, [1; 3]), 0, &mut bytes).await?;
        Ok(numbers(self.layout.kept(), &bytes[self.layout.kept_at(0)..]).collect())
    }

    /// Moves the fields, of which some share a buffer, to the first buffers of another storage, one for each.
    /// `names` are the buffers in which they lie. Nothing has changed where memory is missing.
    pub async fn unalias(&mut self, gpu: &Gpu, names: &[usize], storage: &Storage) -> Result<()> {
        let kinds: Vec<&Buffer> = self.buffers.iter().map(|known| &known.buffer).collect();
        let from = storage.taken(&kinds, names);
        let mut fresh = Vec::new();
        for (buffer, _) in storage.buffers.iter().zip(&from).filter(|(_, from)| from.is_none()) {
            fresh.push(Allocation::new(gpu, buffer, self.dtype).await?);
        }
        let mut fresh = fresh.into_iter();
        let mut old: Vec<Option<Allocation>> = self.buffers.drain(..).map(Some).collect();
        let all = from.iter().map(|from| from.and_then(|from| old[from].take()).or_else(|| fresh.next()));
        self.buffers = all.flatten().collect();
        let copies = || {
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for (field, &name) in names.iter().enumerate() {
                let source = from.iter().position(|&from| from == Some(name));
                if let Some(source) = source.filter(|&source| source != field) {
                    let [to, source] = [field, source].map(|number| self.buffer(number));
                    encoder.copy_buffer_to_buffer(source, 0, to, 0, source.size());
                }
            }
            gpu.queue.submit([encoder.finish()])
        };
        gpu.run("copying fields", copies).await
    }
}
