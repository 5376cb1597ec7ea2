//! Compiled kernels: kept in memory by their text, so that sessions of one plan compile once; and on disk,
//! where the interface hands them out, so that the next process does not compile at all.

use std::path::PathBuf;
use std::sync::PoisonError;

use abide_core::{Error, Result};
use abide_shaders::wgsl::{self, Access, Bound, Kernel};

use crate::NAME;
use crate::adapter::Adapter;
use crate::gpu::{Compiled, Gpu};

/// The most kernels kept in memory. Beyond that number all are dropped, and kernels in use are compiled again.
const MOST: usize = 256;

impl Gpu {
    /// Returns a kernel, compiled unless it was compiled before.
    pub async fn compiled<B: Bound>(&self, kernel: &Kernel<B>) -> Result<Compiled> {
        let known = self.kernels.lock().unwrap_or_else(PoisonError::into_inner).get(&kernel.text).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // Without holding the lock, so that other threads can compile other kernels.
        let compiled = compile(self, kernel).await?;
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if kernels.len() >= MOST {
            kernels.clear();
        }
        kernels.insert(kernel.text.clone(), compiled.clone());
        Ok(compiled)
    }
}

async fn compile<B: Bound>(gpu: &Gpu, kernel: &Kernel<B>) -> Result<Compiled> {
    let entry = |(number, binding): (usize, &B)| wgpu::BindGroupLayoutEntry {
        binding: number as u32,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer {
            ty: match binding.access() {
                Access::Uniform | Access::UniformOfDispatch => wgpu::BufferBindingType::Uniform,
                Access::Read => wgpu::BufferBindingType::Storage { read_only: true },
                Access::Write => wgpu::BufferBindingType::Storage { read_only: false },
            },
            has_dynamic_offset: binding.access() == Access::UniformOfDispatch,
            min_binding_size: None,
        },
        count: None,
    };
    let entries: Vec<_> = kernel.bindings.iter().enumerate().map(entry).collect();
    let label = Some(kernel.name.as_str());
    let mut kept = Kept::of(gpu, kernel);
    let compiled = gpu.checked("compiling", || {
        let device = &gpu.device;
        kept.load(device);
        let source = wgpu::ShaderSource::Wgsl(kernel.text.as_str().into());
        let layout =
            device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        // SAFETY: kernels check their own accesses. The index of a cell is used only where the cell lies in
        // the domain. The index of a tap, or of a plane on its way, is clamped to the domain (`source` in
        // domain.wgsl). The index of a tile's slot counts through the tile; that of a window's slot lies at
        // most as far from the thread's own as the slots are padded; and a formula cannot index. The
        // buffers of a field hold the whole domain that the text was made for, and its pieces are as
        // the text divides it. Stages of programs that are not plain store and tap directly only within the
        // boxes of what a buffer holds; other taps ask the boundary as often as the farthest index asked for
        // needs to come inside. Rows of a group's rings count around, and within a row a stage reads at most as far
        // beside the thread's own place as others of the group have computed. The leaves of reductions have
        // room for each tile, and as many again. Loops count up to constants, to the steps of a round or to the
        // last of a share's planes. Divisors are constants above zero; there are no ray queries or meshes.
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
                // Every slot of a tile or ring is set before it is read; values that are read beside a window's
                // slots reach no cell that is kept.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: kept.cache.as_ref(),
        });
        Compiled { layout, pipeline }
    });
    let compiled = compiled.await;
    kept.save();
    compiled.map_err(|error| match error {
        Error::Device { message, .. } => {
            Error::Compile { backend: NAME, target: format!("WGSL on {}", gpu.adapter.name), log: message }
        }
        other => other,
    })
}

/// A driver's compilation of a kernel, kept in a file named by the text and the device.
struct Kept {
    folder: Option<PathBuf>,
    name: String,
    found: Option<Vec<u8>>,
    cache: Option<wgpu::PipelineCache>,
}

impl Kept {
    fn of<B>(gpu: &Gpu, kernel: &Kernel<B>) -> Kept {
        let hands_out = gpu.device.features().contains(wgpu::Features::PIPELINE_CACHE);
        let folder = if hands_out { abide_tuning::folder("pipelines") } else { None };
        let Adapter { name, interface, driver, .. } = &gpu.adapter;
        let name = abide_tuning::key(&[name, interface, driver, &kernel.text]);
        let found = folder.as_ref().and_then(|folder| abide_tuning::find(folder, &name));
        Kept { folder, name, found, cache: None }
    }

    /// Hands the driver its earlier compilation, if there is one.
    fn load(&mut self, device: &wgpu::Device) {
        if self.folder.is_some() {
            let descriptor =
                wgpu::PipelineCacheDescriptor { label: None, data: self.found.as_deref(), fallback: true };
            // SAFETY: the data are what `save` wrote for this device, driver and kernel, as their digest
            // shows, in a folder that is the user's alone. The data's own header is checked against the
            // device besides.
            self.cache = Some(unsafe { device.create_pipeline_cache(&descriptor) });
        }
    }

    /// Keeps the driver's compilation, unless it was kept before.
    fn save(&self) {
        if let (Some(folder), Some(cache), None) = (&self.folder, &self.cache, &self.found)
            && let Some(data) = cache.get_data()
        {
            abide_tuning::keep(folder, &self.name, &data);
        }
    }
}
