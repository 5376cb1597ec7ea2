//! The rate of a run, over the last half second and over time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use abide::backend::RunReport;

use super::History;

/// The part of the past that the rate is measured over, in seconds of the device.
const RECENT: f64 = 0.5;
/// Time between points of the history.
const INTERVAL: Duration = Duration::from_millis(100);
/// Points of the history: a minute and a half.
const POINTS: usize = 900;

/// The activity of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tempo {
    /// There is no run.
    #[default]
    Empty,
    /// The run waits.
    Paused,
    /// The run advances.
    Running,
    /// The run waits while two ways of running are compared.
    Comparing,
}

/// The state of a run and its rate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// The run's activity.
    pub tempo: Tempo,
    /// Steps done.
    pub step: u64,
    /// The report on the last half second; `None` before the first epoch.
    pub recent: Option<RunReport>,
    /// Seconds since the start, and GCells/s then.
    pub history: Vec<[f64; 2]>,
    /// The computed scalars, from the start of the run on.
    pub scalars: History,
    /// Frames written to a recording in progress.
    pub recorded: Option<u64>,
}

/// Counts epochs.
pub struct Meter {
    epochs: VecDeque<(u64, f64)>,
    history: VecDeque<[f64; 2]>,
    begun: Instant,
    noted: Option<Instant>,
}

impl Meter {
    pub fn new() -> Meter {
        Meter { epochs: VecDeque::new(), history: VecDeque::new(), begun: Instant::now(), noted: None }
    }

    /// Counts an epoch of `steps` steps and `seconds` of the device; `cells` is the domain's size.
    pub fn count(&mut self, steps: u64, seconds: f64, cells: u64) {
        self.epochs.push_back((steps, seconds));
        while self.epochs.len() > 1 && self.epochs.iter().skip(1).map(|e| e.1).sum::<f64>() >= RECENT {
            self.epochs.pop_front();
        }
        let now = Instant::now();
        if self.noted.is_none_or(|noted| now - noted >= INTERVAL) {
            self.noted = Some(now);
            let (steps, seconds) = self.recent();
            if seconds > 0.0 {
                self.history
                    .push_back([self.begun.elapsed().as_secs_f64(), (steps * cells) as f64 / seconds / 1e9]);
            }
            if self.history.len() > POINTS {
                self.history.pop_front();
            }
        }
    }

    /// Forgets the rate, when the way of running changes.
    pub fn forget(&mut self) {
        self.epochs.clear();
    }

    /// Returns the steps and seconds of the last half second.
    pub fn recent(&self) -> (u64, f64) {
        self.epochs.iter().fold((0, 0.0), |(n, t), (steps, seconds)| (n + steps, t + seconds))
    }

    /// Returns the history, oldest first.
    pub fn history(&self) -> Vec<[f64; 2]> {
        self.history.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_of_the_recent_past() {
        let mut meter = Meter::new();
        for _ in 0..100 {
            meter.count(1, 0.1, 1);
        }
        for _ in 0..10 {
            meter.count(4, 0.1, 1);
        }
        let (steps, seconds) = meter.recent();
        assert!((steps as f64 / seconds - 40.0).abs() < 1e-9);
        assert!((0.5..0.7).contains(&seconds), "{seconds}");
        meter.forget();
        assert_eq!(meter.recent(), (0, 0.0));
    }
}
