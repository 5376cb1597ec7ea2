//! The loop that submits many rounds of dispatches at once.

use std::collections::VecDeque;

use abide_core::Result;
use web_time::Instant;

use crate::gpu::{Gpu, Submission};
use crate::pace::Pace;
use crate::timing::Clock;

/// The operation that an error while stepping names.
const RUNNING: &str = "running steps";

/// What is done round by round, counted from 0.
pub(crate) trait Rounds {
    /// Adds the dispatches of a round to a pass.
    fn record(&self, pass: &mut wgpu::ComputePass<'_>, round: u64);

    /// Returns how many rounds follow these until something is to be copied.
    fn until_copied(&self, _rounds: u64) -> u64 {
        u64::MAX
    }

    /// Copies what is due after so many rounds.
    fn copy(&self, _encoder: &mut wgpu::CommandEncoder, _rounds: u64) {}
}

impl<F: Fn(&mut wgpu::ComputePass<'_>, u64)> Rounds for F {
    fn record(&self, pass: &mut wgpu::ComputePass<'_>, round: u64) {
        self(pass, round);
    }
}

/// Records and submits `total` rounds, waits for them, and returns the seconds that the device took.
pub(crate) async fn run(
    gpu: &Gpu,
    clock: Option<&Clock>,
    pace: &mut Pace,
    total: u64,
    all: &impl Rounds,
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
            let submission = submit(gpu, clock, [is_first, is_last], rounds, all).await?;
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
    all: &impl Rounds,
) -> Result<Submission> {
    let commands = || {
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut round = rounds.start;
        while round < rounds.end {
            let (begun, until) = (round, all.until_copied(round));
            round = begun.saturating_add(until).min(rounds.end);
            let is_noted = [is_first && begun == rounds.start, is_last && round == rounds.end];
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
                label: Some("steps"),
                timestamp_writes: clock.and_then(|clock| clock.writes(is_noted)),
            });
            (begun..round).for_each(|round| all.record(&mut pass, round));
            drop(pass);
            if round - begun == until {
                all.copy(&mut encoder, round);
            }
        }
        if let Some(clock) = clock.filter(|_| is_last) {
            clock.resolve(&mut encoder);
        }
        gpu.queue.submit([encoder.finish()])
    };
    gpu.submit(RUNNING, commands).await
}
