//! How a rank waits that has to look again and again.

use std::thread;
use std::time::{Duration, Instant};

/// Pauses between two looks that grow with the wait: a message of a neighbour in step comes within microseconds, and its answer
/// may be waited for in turn, so that a pause adds an eighth at most. A rank that waits for longer leaves its core to
/// others. It sleeps and never yields: where others are busy, who yields gets its core back only milliseconds later.
#[derive(Default)]
pub struct Pause(Option<Instant>);

impl Pause {
    /// Pauses once more.
    pub fn pause(&mut self) {
        const SPINNING: Duration = Duration::from_micros(100);
        const MOST: Duration = Duration::from_millis(1);
        let waited = self.0.get_or_insert_with(Instant::now).elapsed();
        match waited < SPINNING {
            true => std::hint::spin_loop(),
            false => thread::sleep((waited / 8).min(MOST)),
        }
    }
}
