//! The amount of work in a submission: as much as takes the device some 60 ms by the clock.
//!
//! With less, the device waits for the host. With more, a desktop drawn by the same device freezes, or the
//! system resets a device that seems to hang (after two seconds on Windows).

use abide_core::Plan;

/// The seconds that a submission should take.
const TARGET: f64 = 0.06;

/// The seconds that the first submission should take by the plan's estimate, which may be far too low.
const FIRST: f64 = TARGET / 32.0;

/// The factor by which a submission may at most be larger than the one before.
const GROWTH: u64 = 8;

/// The most dispatches of a submission, because the host records each.
const DISPATCHES: u64 = 1 << 14;

/// The number of rounds of the next submission, and the most that it may have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pace {
    rounds: u64,
    most: u64,
}

impl Pace {
    /// Returns the pace before anything was measured: by a plan's estimate, for rounds of `dispatches`
    /// dispatches.
    pub fn new(plan: &Plan, dispatches: usize) -> Pace {
        let round = plan.estimated_seconds.max(plan.project(1).seconds) * f64::from(plan.depth.max(1));
        let most = (DISPATCHES / dispatches.max(1) as u64).max(1);
        Pace { rounds: ((FIRST / round.max(1e-9)) as u64).clamp(1, most), most }
    }

    /// Returns the rounds of the next submission.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Learns from a submission of `rounds` rounds that took `seconds`. A submission of fewer rounds than
    /// allowed says nothing of the time that a device takes for many: it only ever makes the next one
    /// smaller.
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

    /// Returns the seconds of submissions to a device that takes `a_round` seconds per round and `each`
    /// beside.
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
        // A round that takes longer than a submission should is a submission by itself.
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
