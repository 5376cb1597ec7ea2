//! How much work goes into a submission: as much as the device takes some 60 ms for, by the clock.
//!
//! Less, and the device waits for the host; more, and a desktop drawn by the same device freezes, or the
//! system resets a device that seems to hang (after two seconds on Windows).

use abide_core::Plan;

/// What a submission should take, in seconds.
const TARGET: f64 = 0.06;

/// What the first submission should take by the plan's estimate, which may be far too low.
const FIRST: f64 = TARGET / 32.0;

/// A submission grows at most so many times over the one before.
const GROWTH: u64 = 8;

/// The most dispatches of a submission: the host records each.
const DISPATCHES: u64 = 1 << 14;

/// The rounds of the next submission.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pace {
    rounds: u64,
    most: u64,
}

impl Pace {
    /// Before anything was measured: by a plan's estimate, for rounds of this many dispatches.
    pub fn new(plan: &Plan, dispatches: usize) -> Pace {
        let round = plan.estimated_seconds.max(plan.project(1).seconds) * f64::from(plan.depth.max(1));
        let most = (DISPATCHES / dispatches.max(1) as u64).max(1);
        Pace { rounds: ((FIRST / round.max(1e-9)) as u64).clamp(1, most), most }
    }

    /// The rounds of the next submission.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Learns from a submission of `rounds` rounds that took `seconds`. One of fewer than it might have had
    /// says nothing of what a device takes for many: it only ever makes the next one smaller.
    pub fn learn(&mut self, rounds: u64, seconds: f64) {
        let fitting = (TARGET / seconds.max(1e-9) * rounds as f64) as u64;
        if rounds >= self.rounds || fitting < self.rounds {
            self.rounds = fitting.min(GROWTH * self.rounds).clamp(1, self.most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Submissions of a device that takes `a_round` seconds for a round and `each` beside.
    fn submissions(a_round: f64, each: f64) -> Vec<f64> {
        let mut pace = Pace { rounds: 1, most: DISPATCHES };
        let mut all = Vec::new();
        for _ in 0..12 {
            let seconds = pace.rounds() as f64 * a_round + each;
            all.push(seconds);
            pace.learn(pace.rounds(), seconds);
        }
        all
    }

    #[test]
    fn submissions_soon_take_what_they_should() {
        for (a_round, each) in [(7e-6, 1e-4), (25e-6, 2e-4), (1e-3, 1e-3), (0.02, 0.0)] {
            let all = submissions(a_round, each);
            assert!(all.iter().all(|&seconds| seconds <= 0.1), "{all:?}");
            assert!(all[7..].iter().all(|&seconds| seconds >= 0.03), "{all:?}");
        }
        // A round that takes longer than a submission should is one by itself.
        assert!(submissions(0.7, 0.0).iter().all(|&seconds| seconds == 0.7));
    }

    #[test]
    fn a_short_rest_makes_no_submission_longer() {
        let mut pace = Pace { rounds: 100, most: DISPATCHES };
        pace.learn(1, 1e-5);
        assert_eq!(pace.rounds(), 100);
        pace.learn(1, 0.01);
        assert_eq!(pace.rounds(), 6);
    }
}
