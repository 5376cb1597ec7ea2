//! The bandwidth of device memory, which no interface reports: measured by copying.

use abide_core::Result;
use abide_shaders::wgsl;
use async_lock::Mutex;
use web_time::Instant;

use crate::gpu::{Compiled, Gpu};

/// The seconds of a submission that is long enough, and the most copies of a submission.
const ENOUGH_SECONDS: f64 = 0.02;
const MOST_COPIES: u32 = 256;

/// The bandwidths measured in this process, by adapter.
static MEASURED: Mutex<Vec<(String, f64)>> = Mutex::new(Vec::new());

/// Returns the combined bytes per second to and from device memory, measured once per process and adapter.
pub(crate) async fn bandwidth(gpu: &Gpu) -> Result<f64> {
    let key = format!("{} {} {}", gpu.adapter.name, gpu.adapter.interface, gpu.adapter.driver);
    // Locked while measuring: two measurements at once would slow each other down.
    let mut measured = MEASURED.lock().await;
    if let Some((_, rate)) = measured.iter().find(|(known, _)| *known == key) {
        return Ok(*rate);
    }
    let rate = measure(gpu).await?;
    measured.push((key, rate));
    Ok(rate)
}

/// Measures the best of three copies between two buffers too large for a cache, or smaller ones where the
/// device has no room. A kernel copies, because what drivers copy buffers with may be far slower.
async fn measure(gpu: &Gpu) -> Result<f64> {
    let most: u64 = match gpu.adapter.interface.as_str() {
        _ if gpu.adapter.is_software() => 32 << 20,
        // A page is one of many, and a phone has little memory to give it.
        "webgpu" => 64 << 20,
        _ => 256 << 20,
    };
    let limits = &gpu.limits;
    let mut bytes = most.min(limits.max_buffer_size).min(limits.max_storage_buffer_binding_size) / 16 * 16;
    let pair = async |bytes| {
        let buffer = || gpu.buffer("a copy", bytes, wgpu::BufferUsages::STORAGE);
        Ok::<_, abide_core::Error>([buffer().await?, buffer().await?])
    };
    let pair = loop {
        match pair(bytes).await {
            Ok(pair) => break pair,
            Err(_) if bytes > 1 << 20 => bytes /= 2,
            Err(error) => return Err(error),
        }
    };
    let kernel = wgsl::copy(bytes);
    let Compiled { layout, pipeline } = gpu.compiled(&kernel).await?;
    let entries = [0, 1].map(|number| wgpu::BindGroupEntry {
        binding: number as u32,
        resource: pair[number].as_entire_binding(),
    });
    let bound = gpu.checked("binding buffers", || {
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &entries,
        })
    });
    let bound = bound.await?;
    let seconds = async |copies: u32| {
        let begun = Instant::now();
        gpu.run("measuring the memory's bandwidth", || {
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &bound, &[]);
            (0..copies).for_each(|_| pass.dispatch_workgroups(kernel.workgroups as u32, 1, 1));
            drop(pass);
            gpu.queue.submit([encoder.finish()])
        })
        .await?;
        Ok::<_, abide_core::Error>(begun.elapsed().as_secs_f64())
    };
    // The first copy also pays for clearing the buffers. After it, a submission has so many copies that its
    // own cost does not count.
    seconds(1).await?;
    let mut copies = 1;
    while copies < MOST_COPIES && seconds(copies).await? < ENOUGH_SECONDS {
        copies *= 4;
    }
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        best = best.min(seconds(copies).await? / f64::from(copies));
    }
    pair.iter().for_each(wgpu::Buffer::destroy);
    Ok(2.0 * bytes as f64 / best.max(1e-9))
}
