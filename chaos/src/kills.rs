//! `kill -9` at any moment, again and again, until the work is done.

use anyhow::Result;

use crate::trial::{Leaves, Trial, signal};

/// Number of ends after which a work is left undisturbed.
const ENDS: u32 = 6;

/// Kills a work, goes on from its checkpoint, or begins anew where it has none, until it reaches its end.
pub fn kill(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    for end in 0..=ENDS {
        let done = if end > 0 && work.goes_on() { trial.steps_done(&place) } else { None };
        let start = done.map_or_else(|| work.start(), |done| work.rest(done));
        let mut running = trial.start(&start, &place)?;
        let delay = trial.moment(peace);
        if end < ENDS && running.until(delay)?.is_none() {
            running.child.kill()?;
        }
        let ending = running.finish(trial.bench.deadline(peace))?;
        if ending.status.success() {
            trial.check_end(&ending, &start);
            return trial.check_files(work, peace, &place, Leaves::All, done.is_some());
        }
        // Where there are no signals, a killed process has a status of its own.
        let killed = if cfg!(unix) { signal(ending.status) == Some(9) && !ending.late } else { !ending.late };
        if !killed {
            trial.check_end(&ending, &start);
            trial.succeeded(&ending);
            return Ok(());
        }
        trial.kills += 1;
        trial.note_delay(delay);
        trial.check_files(work, peace, &place, Leaves::Pieces, done.is_some())?;
    }
    Ok(())
}
