//! How a rank waits that has to look again and again.

use std::thread;
use std::time::{Duration, Instant};

/// Pauses between two looks that grow with the wait: a message of a neighbour in step comes within microseconds, and its answer
/// may be waited for in turn, so that a pause adds an eighth at most. A rank that waits for longer leaves its core to
/// others. It sleeps and never yields: where others are busy, who yields gets its core back only milliseconds later.
pub struct Pause {
    since: Option<Instant>,
    most: Duration,
}

impl Default for Pause {
    fn default() -> Self {
        Pause { since: None, most: Duration::from_millis(1) }
    }
}

impl Pause {
    /// Returns short pauses, for waits during which a device has nothing to do.
    pub fn short() -> Pause {
        Pause { since: None, most: Duration::from_micros(50) }
    }

    /// Pauses once more.
    pub fn pause(&mut self) {
        const SPINNING: Duration = Duration::from_micros(100);
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        match waited < SPINNING {
            true => std::hint::spin_loop(),
            false => thread::sleep((waited / 8).min(self.most)),
        }
    }
}
