//! Steps of a simulation, and the report on them.

use std::ffi::c_void;
use std::ops::ControlFlow;

use abide::RunReport;
use abide::backend::Pace;
use abide_core::floating::kept;

use super::{AbideSimulation, State, with};
use crate::status::AbideStatus;

/// The report on a run.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct AbideReport {
    /// Steps done.
    pub steps: u64,
    /// Steps asked for; more than `steps` only where a condition or the observer ended the run.
    pub steps_asked: u64,
    /// Cells of the domain, of a batch summed over its members.
    pub cells: u64,
    /// Seconds that the device took.
    pub seconds: f64,
    /// Cells times steps per second, in 10⁹.
    pub gcells_per_s: f64,
    /// Bytes to and from device memory by the plan's model.
    pub bytes_moved: f64,
    /// The least bytes possible.
    pub bytes_least: f64,
    /// The rate over the rate that the plan projects as the peak.
    pub share_of_projected_peak: f64,
    /// 0. Later versions may use it.
    pub reserved: [f64; 8],
}

impl AbideReport {
    fn of(report: &RunReport) -> AbideReport {
        AbideReport {
            steps: report.steps,
            steps_asked: report.steps_asked,
            cells: report.cells,
            seconds: report.seconds,
            gcells_per_s: report.gcells_per_s,
            bytes_moved: report.bytes_moved,
            bytes_least: report.bytes_least,
            share_of_projected_peak: report.share_of_projected_peak,
            reserved: [0.0; 8],
        }
    }
}

impl State {
    /// Keeps the report on a run, and hands it out where it is asked for.
    fn reported(&mut self, done: RunReport, asked: Option<&mut AbideReport>) {
        if let Some(asked) = asked {
            *asked = AbideReport::of(&done);
        }
        self.report = Some(done);
    }
}

/// A function that sees the steps done since the start and the seconds of the run so far, and ends the run by any other
/// value than 0. It must return: no exception and no `longjmp` may leave it. On the simulation that runs it may call nothing.
pub type AbideObserver = Option<unsafe extern "C" fn(user: *mut c_void, step: u64, seconds: f64) -> i32>;

/// Advances, and reports where `report` is not null. A run whose condition (`until`) comes to hold ends there. Many short
/// runs cost what a long one costs.
///
/// # Safety
///
/// `simulation` is a handle; `report` is null or points to a report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_run(
    simulation: *mut AbideSimulation,
    steps: u64,
    report: *mut AbideReport,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let done = state.simulation.run(steps)?;
            state.reported(done, report.as_mut());
            Ok(())
        })
    }
}

/// Advances in stretches that end at the multiples of `every` steps (0: some tenths of a second) and calls `observe` after
/// each, with `user` as its first argument.
///
/// # Safety
///
/// As of `abide_simulation_run`; `observe` is null or a function that may be called with `user`, in the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_run_observed(
    simulation: *mut AbideSimulation,
    steps: u64,
    every: u64,
    observe: AbideObserver,
    user: *mut c_void,
    report: *mut AbideReport,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let pace = Pace { every: (every > 0).then_some(every), ..Pace::default() };
            let done = state.simulation.run_with(steps, pace, |running| {
                let (step, seconds) = (running.step(), running.progress().seconds);
                let ends = observe.is_some_and(|observe| kept(|| observe(user, step, seconds)) != 0);
                Ok(if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
            state.reported(done, report.as_mut());
            Ok(())
        })
    }
}

/// Advances without a report: the least that a call can cost. `seconds`, where it is not null, gets the seconds that the
/// device took.
///
/// # Safety
///
/// `simulation` is a handle; `seconds` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_advance(
    simulation: *mut AbideSimulation,
    steps: u64,
    seconds: *mut f64,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let took = state.simulation.advance(steps)?;
            if let Some(seconds) = seconds.as_mut() {
                *seconds = took;
            }
            Ok(())
        })
    }
}
