//! How a run is cut into advances.

use std::collections::BTreeMap;

/// The advances of a run: the steps that a device did without a halt in between, each number with how often.
///
/// A run halts where an epoch ends, where a row of a record is due, at marks, and where its caller wants it to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advances(BTreeMap<u64, u64>);

impl Advances {
    /// Returns the advances of a run that never halts.
    pub fn one(steps: u64) -> Advances {
        let mut all = Advances::default();
        all.add(steps, 1);
        all
    }

    /// Returns the advances of a run that halts after every so many steps.
    pub fn halting(steps: u64, every: u64) -> Advances {
        let every = every.max(1);
        let mut all = Advances::default();
        all.add(every, steps / every);
        all.add(steps % every, 1);
        all
    }

    /// Adds an advance of `steps` steps, so many times; one of no step is none.
    pub fn add(&mut self, steps: u64, times: u64) {
        if steps > 0 && times > 0 {
            *self.0.entry(steps).or_default() += times;
        }
    }

    /// Returns the steps of an advance and how often there was one, in ascending order of the steps.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(&steps, &times)| (steps, times))
    }

    /// Returns the total number of steps of all advances.
    pub fn steps(&self) -> u64 {
        self.iter().fold(0, |sum, (steps, times)| steps.saturating_mul(times).saturating_add(sum))
    }

    /// Returns the number of advances.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the steps of the longest advance.
    pub fn longest(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(&steps, _)| steps)
    }

    /// Returns the same steps with a halt after every `most` steps of an advance at the latest.
    pub fn cut(&self, most: u64) -> Advances {
        let mut all = Advances::default();
        for (steps, times) in self.iter() {
            all.add(most.max(1), steps / most.max(1) * times);
            all.add(steps % most.max(1), times);
        }
        all
    }
}
