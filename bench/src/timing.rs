//! Seconds that a session's device takes: warm, repeated, from the same values each time.

use abide::backend::Session;
use abide::{Array, Result};

/// The longest that one call may hold the device, in seconds. A device shared with a display then stays
/// responsive, and a watchdog quiet.
const LONGEST_CALL: f64 = 2.0;

/// The rates of several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// The middle rate, or the mean of the middle two.
    pub median: f64,
    /// Distance from the median to the farthest rate, in percent of the median.
    pub spread_percent: f64,
}

/// Returns median and spread; `None` for no rates.
pub fn rates(all: &[f64]) -> Option<Rates> {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.first()?, sorted.last()?);
    let upper = sorted.len() / 2;
    let median =
        if sorted.len() % 2 == 1 { sorted[upper] } else { 0.5 * (sorted[upper - 1] + sorted[upper]) };
    let farthest = (median - low).max(high - median);
    Some(Rates { median, spread_percent: if median > 0.0 { 100.0 * farthest / median } else { 0.0 } })
}

/// A session and the values from which each of its runs begins.
pub struct Timed<'a> {
    session: Box<dyn Session>,
    start: &'a [Array],
    /// Approximate seconds per step; before [`Timed::calibrate`] the plan's estimate.
    step_seconds: f64,
    /// Runs have a multiple of so many steps.
    unit: u64,
}

impl<'a> Timed<'a> {
    /// Pairs a session with `start`, the initial fields of its problem.
    pub fn new(session: Box<dyn Session>, start: &'a [Array]) -> Timed<'a> {
        let step_seconds = session.plan().estimated_seconds;
        Timed { session, start, step_seconds, unit: 1 }
    }

    /// Lets all runs be whole passes of the plan, so that no kernel for left-over steps is needed.
    pub fn in_whole_passes(mut self) -> Timed<'a> {
        self.unit = u64::from(self.session.plan().depth.max(1));
        self
    }

    /// Returns the steps of a run of about so many.
    pub fn whole(&self, steps: u64) -> u64 {
        steps.max(1).next_multiple_of(self.unit)
    }

    /// Returns the session.
    pub fn session(&mut self) -> &mut dyn Session {
        self.session.as_mut()
    }

    /// Measures how long a step takes, by runs that grow until one takes a fair part of `seconds`; returns
    /// the steps that fill `seconds`, to two digits.
    pub fn calibrate(&mut self, seconds: f64) -> Result<u64> {
        let mut steps = self.unit;
        // The first run may pay for loading on first use.
        self.session.advance(steps)?;
        loop {
            let taken = self.session.advance(steps)?;
            self.step_seconds = taken.max(1e-9) / steps as f64;
            if taken >= 0.25 * seconds || steps >= 1 << 24 {
                return Ok(self.whole(two_digits(seconds / self.step_seconds)));
            }
            let wanted = 0.5 * seconds / self.step_seconds;
            steps = self.whole((wanted as u64).clamp(2 * steps, 16 * steps));
        }
    }

    /// Returns the approximate seconds per step; before [`Timed::calibrate`] the plan's estimate.
    pub fn step_seconds(&self) -> f64 {
        self.step_seconds
    }

    /// Returns the untimed steps before each timed run of `steps`: clocks and caches are then as in the
    /// middle of a long run.
    pub fn warm_up(steps: u64) -> u64 {
        steps.div_ceil(10)
    }

    /// Starts over, warms up, and returns the seconds per step of `steps` more steps.
    pub fn run(&mut self, steps: u64) -> Result<f64> {
        let steps = self.whole(steps);
        self.restart()?;
        self.advance(self.whole(Timed::warm_up(steps)))?;
        self.go_on(steps)
    }

    /// Returns the seconds per step of `steps` more steps, from the values that are there.
    pub fn go_on(&mut self, steps: u64) -> Result<f64> {
        let steps = self.whole(steps);
        Ok(self.advance(steps)? / steps as f64)
    }

    /// Starts over and advances by so many steps.
    pub fn rerun(&mut self, steps: u64) -> Result<()> {
        self.restart()?;
        self.advance(steps).map(drop)
    }

    /// Loads the initial values.
    pub fn restart(&mut self) -> Result<()> {
        self.start.iter().enumerate().try_for_each(|(field, values)| self.session.write(field, values))
    }

    /// Reads all fields.
    pub fn read(&mut self) -> Result<Vec<Array>> {
        (0..self.start.len()).map(|field| self.session.read(field)).collect()
    }

    /// Advances in one call wherever that is short enough, because a persistent kernel loads and stores its
    /// tiles once per call.
    fn advance(&mut self, steps: u64) -> Result<f64> {
        let expected = steps as f64 * self.step_seconds;
        let calls = (expected / LONGEST_CALL).ceil().max(1.0) as u64;
        let most = self.whole(steps.div_ceil(calls));
        let (mut left, mut seconds) = (steps, 0.0);
        while left > 0 {
            let now = most.min(left);
            seconds += self.session.advance(now)?;
            left -= now;
        }
        Ok(seconds)
    }
}

/// Rounds a count up to two significant digits, which read well in a table; at least 1.
fn two_digits(count: f64) -> u64 {
    let count = count.clamp(1.0, 1e15);
    let unit = 10f64.powi((count.log10().floor() as i32 - 1).max(0));
    ((count / unit).ceil() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: the median of an odd number is the middle, of an even number the mean of the middle
    /// two; the spread is that of the run farthest away.
    #[test]
    fn median_and_spread() {
        let close = |rates: Option<Rates>, median: f64, spread: f64| {
            let rates = rates.unwrap();
            assert!(
                (rates.median - median).abs() < 1e-12 && (rates.spread_percent - spread).abs() < 1e-12,
                "{rates:?}"
            );
        };
        close(rates(&[100.0, 90.0, 104.0, 101.0, 99.0]), 100.0, 10.0);
        close(rates(&[4.0, 1.0, 2.0, 3.0]), 2.5, 60.0);
        close(rates(&[7.0]), 7.0, 0.0);
        assert_eq!(rates(&[]), None);
    }

    #[test]
    fn steps_have_two_digits() {
        let expected = [
            (0.0, 1),
            (1.0, 1),
            (9.2, 10),
            (99.0, 99),
            (99.1, 100),
            (101.0, 110),
            (1234.5, 1300),
            (9.99e5, 1_000_000),
        ];
        for (count, steps) in expected {
            assert_eq!(two_digits(count), steps, "{count}");
        }
        assert_eq!(two_digits(f64::INFINITY), 1_000_000_000_000_000);
    }
}
