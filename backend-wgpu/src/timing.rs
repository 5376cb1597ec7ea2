//! The time that work took: by the device's own clock where it has one, else by the wall clock.

use abide_core::Result;
use web_time::Instant;

use crate::gpu::Gpu;

/// Two points in the device's time.
pub(crate) struct Clock {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    readable: wgpu::Buffer,
    nanoseconds: f64,
}

const BYTES: u64 = 16;

impl Clock {
    /// Returns the device's clock, if it has one.
    pub async fn new(gpu: &Gpu) -> Result<Option<Clock>> {
        let nanoseconds = f64::from(gpu.queue.get_timestamp_period());
        if !gpu.adapter.timestamps || nanoseconds <= 0.0 {
            return Ok(None);
        }
        let descriptor =
            wgpu::QuerySetDescriptor { label: Some("clock"), ty: wgpu::QueryType::Timestamp, count: 2 };
        let queries = gpu.checked("making the clock", || gpu.device.create_query_set(&descriptor)).await?;
        let [on_device, on_host] = [
            wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
            wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        ];
        let resolved = gpu.buffer("clock", BYTES, on_device).await?;
        let readable = gpu.buffer("clock", BYTES, on_host).await?;
        Ok(Some(Clock { queries, resolved, readable, nanoseconds }))
    }

    /// Asks to note the beginning of a pass, its end, or both.
    pub fn writes(&self, [begin, end]: [bool; 2]) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        (begin || end).then_some(wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: begin.then_some(0),
            end_of_pass_write_index: end.then_some(1),
        })
    }

    /// Makes both points readable, after the pass whose end was noted.
    pub fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        encoder.resolve_query_set(&self.queries, 0..2, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.readable, 0, BYTES);
    }

    /// Returns the seconds between the two points, once the work is done; by the wall clock since `begun`
    /// where the device's clock makes no sense.
    pub async fn seconds(&self, gpu: &Gpu, begun: Instant) -> Result<f64> {
        let wall = begun.elapsed().as_secs_f64();
        let ticks: Vec<u64> = gpu.map(&self.readable, BYTES, bytemuck::pod_collect_to_vec).await?;
        let seconds = match ticks[..] {
            [begin, end] => end.wrapping_sub(begin) as f64 * self.nanoseconds * 1e-9,
            _ => wall,
        };
        Ok(if seconds > 0.0 && seconds <= wall { seconds } else { wall })
    }
}
