//! Counting values that are NaN or infinite where they lie.

use abide_core::{DType, Result};
use abide_shaders::wgsl;

use crate::gpu::{Compiled, Gpu};
use crate::pass::grid;

const COUNTING: &str = "counting values that are not finite";

/// Counts the values of a type that are NaN or infinite in the first bytes of each of some buffers.
pub(crate) async fn non_finite(
    gpu: &Gpu,
    dtype: DType,
    buffers: impl Iterator<Item = (&wgpu::Buffer, u64)>,
) -> Result<u64> {
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let count = gpu.buffer("a count", 4, usage).await?;
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    let staging = gpu.buffer("reading a count", 4, usage).await?;
    let mut sum = 0;
    for (buffer, bytes) in buffers.filter(|&(_, bytes)| bytes > 0) {
        let kernel = wgsl::count(dtype, bytes as usize / dtype.bytes());
        let Compiled { layout, pipeline } = gpu.compiled(&kernel).await?;
        let [groups, _] = grid(kernel.workgroups, gpu.limits.max_compute_workgroups_per_dimension)?;
        let values = wgpu::BufferBinding { buffer, offset: 0, size: std::num::NonZeroU64::new(bytes) };
        // A count of 32 bits is enough for a buffer that one kernel can bind.
        gpu.run(COUNTING, || {
            let entry = |binding, resource| wgpu::BindGroupEntry { binding, resource };
            let bound = gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &layout,
                entries: &[
                    entry(0, wgpu::BindingResource::Buffer(values)),
                    entry(1, count.as_entire_binding()),
                ],
            });
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.clear_buffer(&count, 0, None);
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &bound, &[]);
            pass.dispatch_workgroups(groups, 1, 1);
            drop(pass);
            encoder.copy_buffer_to_buffer(&count, 0, &staging, 0, 4);
            gpu.queue.submit([encoder.finish()])
        })
        .await?;
        let own = gpu.map(&staging, 4, |bytes| bytes.try_into().map(u32::from_ne_bytes).unwrap_or(0)).await?;
        sum += u64::from(own);
    }
    Ok(sum)
}
