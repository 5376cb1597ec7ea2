//! The rate of a run, in words.

/// Seconds of the device's time over which a rate is averaged.
const SECONDS: f64 = 0.5;

/// A counter of cells times steps per second of the device's time.
pub struct Rate {
    cells: f64,
    steps: u64,
    seconds: f64,
}

impl Rate {
    /// Makes the rate on a domain of this many cells.
    pub fn new(cells: usize) -> Rate {
        Rate { cells: cells as f64, steps: 0, seconds: 0.0 }
    }

    /// Counts steps that took `seconds`. Returns the rate of all steps since the last rate returned, where
    /// they are enough for a rate.
    pub fn after(&mut self, steps: u64, seconds: f64) -> Option<String> {
        self.steps += steps;
        self.seconds += seconds;
        (self.seconds >= SECONDS).then(|| {
            let rate = self.cells * self.steps as f64 / self.seconds / 1e9;
            (self.steps, self.seconds) = (0, 0.0);
            words(rate)
        })
    }
}

/// Formats a rate with three significant digits, for a GPU as for a software driver.
fn words(gcells_per_s: f64) -> String {
    let decimals = (2.0 - gcells_per_s.max(1e-9).log10().floor()).clamp(0.0, 6.0);
    format!("{gcells_per_s:.*} GCells/s", decimals as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_told_when_it_means_something() {
        let mut rate = Rate::new(1 << 20);
        assert_eq!(rate.after(100, 0.2), None);
        // 300 steps of 2²⁰ cells in 0.6 s.
        assert_eq!(rate.after(200, 0.4).as_deref(), Some("0.524 GCells/s"));
        assert_eq!(rate.after(1, 0.1), None);
    }

    #[test]
    fn slow_and_fast_rates_keep_their_digits() {
        assert_eq!(words(218.4), "218 GCells/s");
        assert_eq!(words(41.26), "41.3 GCells/s");
        assert_eq!(words(0.000_812_3), "0.000812 GCells/s");
        assert_eq!(words(0.0), "0.000000 GCells/s");
    }
}
