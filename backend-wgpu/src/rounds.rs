//! The loop that submits many rounds of dispatches at once.

use std::collections::VecDeque;

use abide_core::Result;
use web_time::Instant;

use crate::gpu::{Gpu, Submission};
use crate::pace::Pace;
use crate::timing::Clock;

/// The operation that an error while stepping names.
const RUNNING: &str = "running steps";

/// Records and submits `total` rounds, waits for them, and returns the seconds that the device took. `record`
/// adds the dispatches of a round, counted from 0, to a pass.
pub(crate) async fn run(
    gpu: &Gpu,
    clock: Option<&Clock>,
    pace: &mut Pace,
    total: u64,
    record: impl Fn(&mut wgpu::ComputePass<'_>, u64),
) -> Result<f64> {
    let begun = Instant::now();
    let (mut left, mut done) = (total, begun);
    let mut running = VecDeque::new();
    while left > 0 || !running.is_empty() {
        // Two submissions are under way at a time, so that the device need not wait for the host.
        if left > 0 && running.len() < 2 {
            let now = pace.rounds().min(left);
            let (submitted, is_first, is_last) = (Instant::now(), left == total, left == now);
            let rounds = total - left..total - left + now;
            let submission = submit(gpu, clock, [is_first, is_last], rounds, &record).await?;
            left -= now;
            running.push_back((submission, submitted, now));
        } else if let Some((submission, submitted, count)) = running.pop_front() {
            gpu.finished(RUNNING, submission).await?;
            let taken = done.max(submitted).elapsed().as_secs_f64();
            done = Instant::now();
            pace.learn(count, taken);
        }
    }
    match clock {
        Some(clock) => clock.seconds(gpu, begun).await,
        None => Ok(begun.elapsed().as_secs_f64()),
    }
}

/// Records and submits some rounds; the first and the last submission of a run note the time.
async fn submit(
    gpu: &Gpu,
    clock: Option<&Clock>,
    [is_first, is_last]: [bool; 2],
    rounds: std::ops::Range<u64>,
    record: &impl Fn(&mut wgpu::ComputePass<'_>, u64),
) -> Result<Submission> {
    let commands = || {
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut recording = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some("steps"),
            timestamp_writes: clock.and_then(|clock| clock.writes(is_first, is_last)),
        });
        rounds.for_each(|round| record(&mut recording, round));
        drop(recording);
        if let Some(clock) = clock.filter(|_| is_last) {
            clock.resolve(&mut encoder);
        }
        gpu.queue.submit([encoder.finish()])
    };
    gpu.submit(RUNNING, commands).await
}
