//! A kernel ready to run: compiled, its buffers bound for every state that they can be in.

use abide_core::{Error, Result};
use abide_shaders::wgsl::{Binding, Kernel};

use crate::fields::Fields;
use crate::gpu::{Compiled, Gpu};

/// A stage's kernel, or one for all stages of several steps.
pub(crate) struct Pass {
    pipeline: wgpu::ComputePipeline,
    /// The kernel's buffers after an even and after an odd number of rounds: first for a round of all steps
    /// that the kernel can take, then for one of fewer.
    buffers: [[wgpu::BindGroup; 2]; 2],
    /// Workgroups along the two axes of the grid.
    grid: [u32; 2],
    /// Whether each dispatch has parameters of its own.
    varies: bool,
}

/// The buffers that do not belong to a field.
pub(crate) struct Uniforms {
    /// The problem's parameters; where they vary, those of each dispatch, `parameter_stride` bytes apart.
    pub parameters: wgpu::Buffer,
    /// Bytes of one dispatch's parameters.
    parameter_bytes: u64,
    /// Bytes from one dispatch's parameters to the next's.
    pub parameter_stride: u64,
    /// The steps of a round: all that a kernel can take, and, `stride` bytes behind, fewer.
    pub steps: wgpu::Buffer,
    /// Bytes from the first number of steps to the second.
    pub stride: u64,
}

impl Uniforms {
    /// Allocates room for `parameter_bytes` bytes of parameters, for each of so many dispatches, and sets the steps of a whole
    /// round.
    pub async fn new(gpu: &Gpu, parameter_bytes: u64, dispatches: u64, depth: u32) -> Result<Uniforms> {
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let stride = u64::from(gpu.limits.min_uniform_buffer_offset_alignment).max(16);
        let parameter_stride = parameter_bytes.next_multiple_of(stride);
        let all = (dispatches - 1) * parameter_stride + parameter_bytes;
        let parameters = gpu.buffer("parameters", all, usage).await?;
        let steps = gpu.buffer("steps", stride + 16, usage).await?;
        gpu.checked("setting the steps", || gpu.queue.write_buffer(&steps, 0, &depth.to_ne_bytes())).await?;
        Ok(Uniforms { parameters, parameter_bytes, parameter_stride, steps, stride })
    }

    /// Sets the steps of a round of fewer steps, for submissions that follow.
    pub async fn set_fewer(&self, gpu: &Gpu, steps: u32) -> Result<()> {
        let bytes = steps.to_ne_bytes();
        gpu.checked("setting the steps", || gpu.queue.write_buffer(&self.steps, self.stride, &bytes)).await
    }
}

impl Pass {
    /// Compiles a kernel and binds its buffers; `writes` counts the passes of a round before it that write
    /// each field.
    pub async fn new(
        gpu: &Gpu,
        kernel: &Kernel,
        fields: &Fields,
        uniforms: &Uniforms,
        writes: &[usize],
    ) -> Result<Pass> {
        let Compiled { layout, pipeline } = gpu.compiled(kernel).await?;
        let group = |is_whole: bool, round: u64| {
            let resource = |(number, &binding): (usize, &Binding)| wgpu::BindGroupEntry {
                binding: number as u32,
                resource: match binding {
                    Binding::Parameters | Binding::VaryingParameters => {
                        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                            buffer: &uniforms.parameters,
                            offset: 0,
                            size: std::num::NonZeroU64::new(uniforms.parameter_bytes),
                        })
                    }
                    Binding::Steps => wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                        buffer: &uniforms.steps,
                        offset: if is_whole { 0 } else { uniforms.stride },
                        size: std::num::NonZeroU64::new(16),
                    }),
                    Binding::Old(field, piece) => {
                        fields.pieces(field, round, writes[field])[piece].as_entire_binding()
                    }
                    Binding::New(field, piece) => {
                        fields.pieces(field, round, writes[field] + 1)[piece].as_entire_binding()
                    }
                },
            };
            let entries: Vec<_> = kernel.bindings.iter().enumerate().map(resource).collect();
            gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &layout,
                entries: &entries,
            })
        };
        let groups = || [true, false].map(|is_whole| [0, 1].map(|round| group(is_whole, round)));
        let buffers = gpu.checked("binding buffers", groups).await?;
        let grid = grid(kernel.workgroups, gpu.limits.max_compute_workgroups_per_dimension)?;
        let varies = kernel.bindings.contains(&Binding::VaryingParameters);
        Ok(Pass { pipeline, buffers, grid, varies })
    }

    /// Records the kernel, after a number of rounds, with all the steps it can take or with fewer; its own parameters, where
    /// they vary, lie at byte `parameters`.
    pub fn record(&self, pass: &mut wgpu::ComputePass<'_>, round: u64, is_whole: bool, parameters: u32) {
        pass.set_pipeline(&self.pipeline);
        let offsets: &[u32] = if self.varies { &[parameters] } else { &[] };
        pass.set_bind_group(0, &self.buffers[usize::from(!is_whole)][(round % 2) as usize], offsets);
        pass.dispatch_workgroups(self.grid[0], self.grid[1], 1);
    }
}

/// Returns a grid of two axes, neither longer than `most`, that holds `workgroups` workgroups with few to
/// spare.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_holds_all_workgroups_within_the_limit() {
        for workgroups in [1, 2, 65535, 65536, 65537, 312_500, 1_000_003, 65535 * 65535] {
            let [x, y] = grid(workgroups, 65535).unwrap().map(|n| n as usize);
            assert!(
                x <= 65535 && y <= 65535 && x * y >= workgroups && x * y - workgroups < y,
                "{workgroups}: {x} {y}"
            );
        }
        assert!(grid(65535 * 65535 + 1, 65535).is_err());
    }
}
