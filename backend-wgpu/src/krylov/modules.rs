//! Compiled phases, kept by their module's text: systems of one layout and method compile once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use abide_core::{Error, Result};
use abide_shaders::wgsl::krylov::{Phase, Script};

use crate::NAME;
use crate::gpu::Gpu;

/// The most modules kept. Beyond that number all are dropped, and modules in use are compiled again.
const MOST: usize = 256;

/// A compiled entry point, and the way in which its buffers are bound.
#[derive(Clone)]
pub(crate) struct Compiled {
    pub layout: wgpu::BindGroupLayout,
    pub pipeline: wgpu::ComputePipeline,
}

/// The entry points of a module.
pub(crate) type Entries = HashMap<&'static str, Compiled>;

/// The modules of a device.
#[derive(Default)]
pub(crate) struct Modules {
    by_text: Mutex<HashMap<String, Entries>>,
}

impl Modules {
    /// Returns the entry points of a script's phases, compiled unless they were compiled before.
    pub async fn of(&self, gpu: &Gpu, text: &str, script: &Script) -> Result<Entries> {
        let known = self.by_text.lock().unwrap_or_else(PoisonError::into_inner).get(text).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        // Without holding the lock, so that other threads can compile other modules.
        let entries = compile(gpu, text, script).await?;
        let mut by_text = self.by_text.lock().unwrap_or_else(PoisonError::into_inner);
        if by_text.len() >= MOST {
            by_text.clear();
        }
        by_text.insert(text.to_owned(), entries.clone());
        Ok(entries)
    }
}

async fn compile(gpu: &Gpu, text: &str, script: &Script) -> Result<Entries> {
    let mut phases: Vec<&Phase> = Vec::new();
    for phase in script.phases() {
        if !phases.iter().any(|other| other.name == phase.name) {
            phases.push(phase);
        }
    }
    let compiled = gpu.checked("compiling", || {
        let label = Some("solver");
        let source = wgpu::ShaderSource::Wgsl(text.into());
        // SAFETY: phases check their own accesses. Rows are compared with the number of rows, which every
        // vector has; columns of a stored matrix are below it, as `Csr` guarantees, and offsets and lists are
        // made for it by `PackedSystem`; taps are clamped to the domain (`source` in domain.wgsl); shares of sums
        // and the history are counted within their constants. Loops count up to numbers of these buffers;
        // divisors of integers are constants or sizes above zero.
        let module = unsafe {
            let descriptor = wgpu::ShaderModuleDescriptor { label, source };
            gpu.device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked())
        };
        phases.into_iter().map(|phase| (phase.name, pipeline(gpu, &module, phase))).collect()
    });
    compiled.await.map_err(|error| match error {
        Error::Device { message, .. } => {
            Error::Compile { backend: NAME, target: format!("WGSL on {}", gpu.adapter.name), log: message }
        }
        other => other,
    })
}

fn pipeline(gpu: &Gpu, module: &wgpu::ShaderModule, phase: &Phase) -> Compiled {
    let entry = |binding: u32, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
        count: None,
    };
    let storage = |is_written: bool| wgpu::BufferBindingType::Storage { read_only: !is_written };
    let fixed = phase.fixed.iter().map(|fixed| {
        let ty =
            if fixed.is_uniform() { wgpu::BufferBindingType::Uniform } else { storage(fixed.is_written()) };
        entry(fixed.binding(), ty)
    });
    let vectors = phase.uses.iter().map(|used| entry(used.role.binding(), storage(used.role.is_written())));
    let entries: Vec<_> = fixed.chain(vectors).collect();
    let label = Some(phase.name);
    let layout =
        gpu.device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
    let pipeline = gpu.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: Some(&gpu.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        })),
        module,
        entry_point: Some(&phase.entry()),
        compilation_options: wgpu::PipelineCompilationOptions {
            // Threads read only words of workgroup memory that threads wrote.
            zero_initialize_workgroup_memory: false,
            ..Default::default()
        },
        cache: None,
    });
    Compiled { layout, pipeline }
}
