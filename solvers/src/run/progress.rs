//! The progress of an iteration towards the solution, judged by what its method reduces.

use abide_core::Real;
use abide_core::solver::Measure;

/// The progress of a run.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    measure: Measure,
    least_share: f64,
    /// The most iterations without progress; `None` for no limit.
    stagnation: Option<usize>,
    /// The least residual; for energies, the true residual that the last start left.
    least: f64,
    /// The iteration of the least residual; for energies, the first iteration of the stretch.
    since: usize,
    /// The energy that the stretch has taken off.
    stretch: f64,
    /// The energy that was taken off before the stretch.
    before: f64,
}

impl Progress {
    pub fn new<T: Real>(measure: Measure, stagnation: Option<usize>) -> Progress {
        let (least_share, stagnation) =
            (Measure::least_share(T::DTYPE), stagnation.map(|stagnation| stagnation.max(1)));
        Progress {
            measure,
            least_share,
            stagnation,
            least: f64::INFINITY,
            since: 0,
            stretch: 0.0,
            before: 0.0,
        }
    }

    /// Records that an iteration has taken off this much energy.
    pub fn gained(&mut self, energy: f64) {
        self.stretch += energy;
    }

    /// Returns whether the run has stagnated, given an iterate's number and residual.
    pub fn is_over(&mut self, iteration: usize, residual: f64) -> bool {
        match self.measure {
            Measure::Residual => {
                if residual < self.least {
                    (self.least, self.since) = (residual, iteration);
                }
                self.stagnation.is_some_and(|stagnation| iteration - self.since >= stagnation)
            }
            Measure::Energy => {
                if self.stagnation.is_none_or(|stagnation| iteration - self.since < stagnation) {
                    return false;
                }
                let whole = self.before + self.stretch;
                // A sum that overflows or underflows says nothing.
                let is_over = whole.is_finite() && self.stretch < self.least_share * whole;
                (self.since, self.stretch, self.before) = (iteration, 0.0, whole);
                is_over
            }
        }
    }

    /// Returns whether another start at `x` can gain no more, because the last start has not halved the true
    /// residual, whose norm is now `norm`.
    pub fn is_settled(&mut self, norm: f64) -> bool {
        let is_settled = norm > 0.5 * self.least;
        self.least = norm;
        is_settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residuals_that_fall_no_more_end_a_run() {
        let mut progress = Progress::new::<f64>(Measure::Residual, Some(3));
        let reported: Vec<bool> = [4.0, 3.0, 5.0, 3.0, 2.0, 2.0, 2.0, 2.0]
            .iter()
            .enumerate()
            .map(|(k, &residual)| progress.is_over(k, residual))
            .collect();
        assert_eq!(reported, [false, false, false, false, false, false, false, true]);
        let mut endless = Progress::new::<f64>(Measure::Residual, None);
        assert!((0..10_000).all(|k| !endless.is_over(k, 1.0)));
    }

    #[test]
    fn energies_below_rounding_end_a_run_and_rising_residuals_do_not() {
        let ends = |share: f64| {
            let mut progress = Progress::new::<f64>(Measure::Energy, Some(10));
            (0..60).position(|k| {
                if k > 0 {
                    progress.gained(if k <= 10 { 1.0 } else { share });
                }
                progress.is_over(k, k as f64)
            })
        };
        assert_eq!(ends(1e-20), None);
        // Each stretch takes off ten times 1e-34, of 10 in all.
        assert_eq!(ends(1e-34), Some(20));
        assert_eq!(ends(f64::INFINITY), None);
    }

    #[test]
    fn starts_go_on_while_they_halve_the_residual() {
        let mut progress = Progress::new::<f64>(Measure::Energy, Some(10));
        assert!(!progress.is_settled(1.0) && !progress.is_settled(0.4) && progress.is_settled(0.3));
    }
}
