//! The dispatches of a program's steps: compiled, and their buffers bound.

use std::collections::HashMap;
use std::ops::Range;

use abide_core::{Error, Result};
use abide_shaders::wgsl::{Kernel, Place};

use super::Made;
use super::memory::Memory;
use crate::NAME;
use crate::gpu::{Compiled, Gpu};
use crate::pass::grid;

/// The dispatches of all steps of a storage.
pub struct Dispatches {
    all: Vec<Dispatch>,
    /// Of each step of the storage, in order.
    steps: Vec<Step>,
}

/// The dispatches of a step.
struct Step {
    all: Vec<usize>,
    /// Those of each launch; one that ends the step may follow.
    launches: Vec<Range<usize>>,
}

struct Dispatch {
    pipeline: wgpu::ComputePipeline,
    buffers: wgpu::BindGroup,
    /// Workgroups along the two axes of the grid.
    grid: [u32; 2],
}

impl Dispatches {
    /// Compiles the kernels and binds the buffers of every launch; launches of the same kernel on the same
    /// buffers share what is bound.
    pub async fn new(gpu: &Gpu, made: &Made, memory: &Memory) -> Result<Dispatches> {
        let kernels = &made.kernels.kernels;
        let mut compiled = Vec::with_capacity(kernels.len());
        for kernel in kernels {
            compiled.push(gpu.compiled(kernel).await?);
        }
        let mut known: HashMap<(usize, Vec<Option<usize>>), usize> = HashMap::new();
        let mut asked: Vec<(usize, Vec<Option<usize>>)> = Vec::new();
        let mut number = |kernel: usize, buffers: Vec<Option<usize>>| {
            *known.entry((kernel, buffers)).or_insert_with_key(|key| {
                asked.push(key.clone());
                asked.len() - 1
            })
        };
        let mut steps = Vec::with_capacity(made.storage.steps.len());
        for step in &made.storage.steps {
            let (mut own, mut launches) = (Vec::new(), Vec::with_capacity(step.launches.len()));
            own.extend(made.kernels.turns.get(&step.number).map(|&turn| number(turn, Vec::new())));
            for launch in &step.launches {
                let (kernels, buffers) = made.kernels.dispatches(launch);
                let first = own.len();
                own.extend(kernels.iter().map(|&kernel| number(kernel, buffers.clone())));
                launches.push(first..own.len());
            }
            own.extend(made.kernels.until.map(|until| number(until, Vec::new())));
            steps.push(Step { all: own, launches });
        }
        let mut all = Vec::with_capacity(asked.len());
        for (kernel, buffers) in asked {
            let dispatch = Dispatch::new(gpu, &kernels[kernel], &compiled[kernel], &buffers, memory).await?;
            all.push(dispatch);
        }
        Ok(Dispatches { all, steps })
    }

    /// Returns the largest number of dispatches of a step.
    pub fn of_a_step(&self) -> usize {
        self.steps.iter().map(|step| step.all.len()).max().unwrap_or(0)
    }

    /// Records a step of the storage.
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>, step: usize) {
        self.record_all(pass, &self.steps[step].all);
    }

    /// Records one launch of a step of the storage, by its number in the step; the number after the last one is that
    /// of what ends the step.
    pub fn record_launch(&self, pass: &mut wgpu::ComputePass<'_>, step: usize, launch: usize) {
        let Step { all, launches } = &self.steps[step];
        let end = launches.last().map_or(0, |last| last.end);
        let own = launches.get(launch).cloned().unwrap_or(end..all.len());
        self.record_all(pass, &all[own]);
    }

    fn record_all(&self, pass: &mut wgpu::ComputePass<'_>, dispatches: &[usize]) {
        for &number in dispatches {
            let Dispatch { pipeline, buffers, grid } = &self.all[number];
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, buffers, &[]);
            pass.dispatch_workgroups(grid[0], grid[1], 1);
        }
    }
}

impl Dispatch {
    /// Binds the buffers of a kernel, given by their numbers slot by slot.
    async fn new(
        gpu: &Gpu,
        kernel: &Kernel<Place>,
        compiled: &Compiled,
        buffers: &[Option<usize>],
        memory: &Memory,
    ) -> Result<Dispatch> {
        let operation = "binding buffers";
        let mut entries = Vec::with_capacity(kernel.bindings.len());
        for (number, place) in kernel.bindings.iter().enumerate() {
            let buffer = match *place {
                Place::Scalars(_) => &memory.scalars,
                Place::Leaves => &memory.leaves,
                Place::Matrices => &memory.matrices,
                Place::Slot(slot, _) => {
                    let own = buffers.get(slot).copied().flatten();
                    let missing = || format!("{} has no buffer at slot {slot}", kernel.name);
                    memory.buffer(own.ok_or_else(|| Error::device(NAME, operation, missing()))?)
                }
            };
            entries
                .push(wgpu::BindGroupEntry { binding: number as u32, resource: buffer.as_entire_binding() });
        }
        let Compiled { layout, pipeline } = compiled;
        let group = || {
            gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout,
                entries: &entries,
            })
        };
        Ok(Dispatch {
            pipeline: pipeline.clone(),
            buffers: gpu.checked(operation, group).await?,
            grid: grid(kernel.workgroups, gpu.limits.max_compute_workgroups_per_dimension)?,
        })
    }
}
