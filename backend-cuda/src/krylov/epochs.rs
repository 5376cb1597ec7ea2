//! The launches of a solve: each for a bounded number of iterations, with the host's tests after it.

use std::ops::{ControlFlow, Range};

use abide_core::solver::{Outcome, Parameters, Report, SolverError, Status};
use abide_core::{Error, Real, Result};
use abide_shaders::cuda::KrylovNumbers;
use abide_shaders::state::State;
use abide_solvers::Run;

use super::packed::PackedSystem;

/// Iterations of a session's first launch; later ones take about [`EPOCH_SECONDS`].
pub(super) const FIRST_EPOCH: u32 = 256;

/// Seconds per launch, about: observers, a limit on time and a display's watchdog wait no longer.
pub(super) const EPOCH_SECONDS: f64 = 0.1;

/// Entries of the history that the device keeps: only those of one launch, so that a high limit on iterations
/// costs no memory.
const HISTORY: u32 = 1 << 20;

/// A loaded system, on one device or several.
pub(super) trait Launches {
    /// Makes room for so many entries of the history.
    fn make_room(&mut self, entries: usize) -> Result<()>;

    /// Prepares a launch until the history is `until` long. Returns the length on which all processes of the launch
    /// agree.
    fn ready(&mut self, until: u32) -> Result<u32> {
        Ok(until)
    }

    /// Launches the kernel until the history is `until` long, and returns its state and seconds. The room for the history
    /// begins with iteration `base`.
    fn launch(
        &mut self,
        run: &Run<'_>,
        base: u32,
        parameters: &Parameters,
        until: u32,
    ) -> Result<(State, Outcome, f64)>;

    /// Passes the launch's final state to the `Run`.
    fn tell<R>(&mut self, tell: impl FnOnce() -> Result<R, SolverError>) -> Result<R, SolverError> {
        tell()
    }

    /// Reads entries of the history, counted in its room.
    fn history(&mut self, entries: Range<usize>) -> Result<Vec<f64>>;

    /// Returns the iterations per second of the last launch; 0 before the first.
    fn rate(&mut self) -> &mut f64;
}

/// Launches until the end of the run, from loaded vectors on.
pub(super) fn run<T: Real>(
    system: &mut impl Launches,
    mut run: Run<'_>,
    parameters: &Parameters,
) -> Result<Report, SolverError> {
    let most = u32::try_from(parameters.iterations).unwrap_or(u32::MAX - 2).min(u32::MAX - 2);
    // A launch's entries, the one before them, which GMRES may still lower, and one beyond them.
    system.make_room(most.min(HISTORY) as usize + 2)?;
    let (mut known, mut seconds) = (0_u32, 0.0);
    loop {
        let epoch = (EPOCH_SECONDS * *system.rate()).clamp(f64::from(FIRST_EPOCH), f64::from(HISTORY)) as u32;
        let (until, base) = (known.saturating_add(epoch).min(most + 1), known.saturating_sub(1));
        let until = system.ready(until)?;
        let (state, outcome, took) = system.launch(&run, base, parameters, until)?;
        seconds += took;
        let new = (state.length.min(until) as usize).saturating_sub(known as usize);
        if new == 0 && outcome.status == Status::Running {
            let message = "a launch ended without an iteration";
            return Err(Error::device("cuda", "running a persistent solver", message).into());
        }
        let first = (known - base) as usize;
        let residuals = if new > 0 { system.history(first..first + new)? } else { Vec::new() };
        known = state.length;
        run.timed(seconds);
        *system.rate() = new as f64 / took.max(1e-6);
        let flow = system.tell(|| run.absorb::<T>("cuda", &outcome, &residuals))?;
        if flow == ControlFlow::Break(()) {
            return run.conclude(state.true_square.sqrt());
        }
    }
}

/// Returns the numbers of a launch, but for the strides of vectors.
pub(super) fn numbers(
    packed: &PackedSystem,
    run: &Run<'_>,
    parameters: &Parameters,
    until: u32,
) -> KrylovNumbers {
    let narrow = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    KrylovNumbers {
        threshold: run.threshold(),
        near: run.threshold() * parameters.drift.max(1.0),
        weight: packed.weight,
        centre: packed.interval[0],
        half: packed.interval[1],
        until,
        most: narrow(parameters.iterations),
        stagnation: parameters.stagnation(),
        replacement: packed.replacement,
        ..KrylovNumbers::default()
    }
}

/// Returns the residuals that bytes of a history are.
pub(super) fn residuals(bytes: &[u8]) -> Vec<f64> {
    bytes.as_chunks::<8>().0.iter().map(|b| f64::from_ne_bytes(*b)).collect()
}
