//! Times each launch of a program's steps, on any backend whose session times launches separately.

use std::time::{Duration, Instant};

use super::Session;
use crate::error::{Error, Result};

/// The time of a launch.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchTime {
    /// The numbers of the stages that the launch carries out, ascending.
    pub stages: Vec<usize>,
    /// Seconds of the device.
    pub seconds: f64,
}

/// How long launches are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Work before anything counts, in which an idle device reaches its clock.
    pub warm_up: Duration,
    /// The time after which no further round begins, once there are enough.
    pub budget: Duration,
    /// The least and the most rounds, each of all steps of the program's cycle.
    pub rounds: [usize; 2],
}

impl Default for Timing {
    fn default() -> Self {
        let (warm_up, budget) = (Duration::from_millis(300), Duration::from_secs(3));
        Timing { warm_up, budget, rounds: [5, 51] }
    }
}

/// Runs steps of a session and returns the median time of each launch, those of the same stages as one, in the order
/// in which they first run. Launches run in their turn, on the values and behind the kernels of a real step: many write
/// fields where they lie, and one that ran again and again would soon compute with values that no run has.
///
/// # Errors
///
/// [`Error::Unsupported`] where the session does not time launches separately, and the errors of
/// [`Session::time_step`].
pub fn time_launches(session: &mut dyn Session, cycle: usize, timing: &Timing) -> Result<Vec<LaunchTime>> {
    let cycle = cycle.max(1);
    let begun = Instant::now();
    loop {
        for _ in 0..cycle {
            session.time_step()?;
        }
        if begun.elapsed() >= timing.warm_up {
            break;
        }
    }
    let mut samples: Vec<(Vec<usize>, Vec<f64>)> = Vec::new();
    let (begun, [least, most]) = (Instant::now(), timing.rounds);
    for round in 0..most.max(1) {
        if round >= least && begun.elapsed() >= timing.budget {
            break;
        }
        for _ in 0..cycle {
            for LaunchTime { stages, seconds } in session.time_step()? {
                match samples.iter_mut().find(|(known, _)| *known == stages) {
                    Some((_, all)) => all.push(seconds),
                    None => samples.push((stages, vec![seconds])),
                }
            }
        }
    }
    if samples.is_empty() {
        return Err(Error::unsupported(
            "timing groups of stages",
            format!("{} has no launches that can be told apart", session.plan().program),
            "time plans of plain programs with --measured, and groups of programs of several loops",
        ));
    }
    let median = |(stages, mut all): (Vec<usize>, Vec<f64>)| {
        all.sort_by(f64::total_cmp);
        LaunchTime { stages, seconds: all[all.len() / 2] }
    };
    Ok(samples.into_iter().map(median).collect())
}
