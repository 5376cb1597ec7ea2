//! Signals that ask the command to end or to wait.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::start::Running;
use crate::trial::{Begun, Leaves, Trial, short, signal};
use crate::works::{CHECKPOINT, Peace, Work};

/// Tries Ctrl-C.
pub fn interrupt(trial: &mut Trial<'_>) -> Result<()> {
    ask(trial, Signal::SIGINT)
}

/// Tries the signal that a system sends when it shuts down, or a batch queue whose time is up.
pub fn terminate(trial: &mut Trial<'_>) -> Result<()> {
    ask(trial, Signal::SIGTERM)
}

/// Tries the signal that a terminal sends when its window is closed.
pub fn hang_up(trial: &mut Trial<'_>) -> Result<()> {
    ask(trial, Signal::SIGHUP)
}

/// Returns the status that shells report for a command that a signal ended.
fn status_of(asked: Signal) -> i32 {
    128 + asked as i32
}

/// Asks a work to end at a random moment.
fn ask(trial: &mut Trial<'_>, asked: Signal) -> Result<()> {
    let Begun { work, peace, place, start, mut running, delay } = trial.begin()?;
    if running.until(delay)?.is_none() {
        send(&running, asked)?;
        trial.kills += 1;
        trial.note_delay(delay);
    }
    let ending = running.finish(trial.bench.deadline(peace))?;
    trial.check_end(&ending, &start);
    if ending.status.success() {
        return trial.check_files(work, peace, &place, Leaves::All, false);
    }
    // Before its first step the work has nothing to write and nothing to report.
    let is_reported = ending.status.code() == Some(status_of(asked));
    let begun = !ending.output.is_empty() || trial.is_new(CHECKPOINT, &place);
    if is_reported && begun {
        trial.check_files(work, peace, &place, Leaves::Stopped, false)?;
        if work.goes_on() {
            check_outputs(trial, work, peace, &place)?;
            trial.check_resumes(work, peace, &place)?;
        }
        return Ok(());
    }
    let early = is_reported || signal(ending.status) == Some(asked as i32);
    trial.hold(early || ending.late, || format!("it ended with {}, not {}", ending.status, status_of(asked)));
    trial.check_files(work, peace, &place, if early { Leaves::Either } else { Leaves::Abandoned }, false)
}

/// Checks that the outputs of a stopped run are those of its checkpoint.
fn check_outputs(trial: &mut Trial<'_>, work: &Work, peace: &Peace, place: &Path) -> Result<()> {
    let own = trial.folder.join("shown");
    fs::create_dir_all(&own)?;
    if fs::copy(place.join(CHECKPOINT), own.join(CHECKPOINT)).is_err() {
        trial.fail("the stopped run has no checkpoint");
        return Ok(());
    }
    let ending = trial.run_to_end(&work.show(), &own, peace)?;
    trial.succeeded(&ending);
    for name in work.finals().filter(|name| !name.ends_with(".gif")) {
        let (stopped, shown) = (fs::read(place.join(name)), fs::read(own.join(name)));
        let same = matches!((stopped, shown), (Ok(a), Ok(b)) if a == b);
        trial.hold(same, || format!("{name} of the stopped run is not what its checkpoint holds"));
    }
    fs::remove_dir_all(&own).with_context(|| format!("cannot remove {}", own.display()))
}

/// Asks twice, which ends a work at once: without its results, and without half of one.
pub fn twice(trial: &mut Trial<'_>) -> Result<()> {
    let asked = if trial.random.bool() { Signal::SIGINT } else { Signal::SIGTERM };
    let Begun { work, peace, place, start, mut running, delay } = trial.begin()?;
    if running.until(delay)?.is_none() {
        send(&running, asked)?;
        sleep(Duration::from_micros(trial.random.u64(0..20_000)));
        // The work may have ended by then.
        if running.until(Duration::ZERO)?.is_none() {
            send(&running, asked)?;
        }
        trial.kills += 1;
        trial.note_delay(delay);
    }
    let ending = running.finish(trial.bench.deadline(peace))?;
    trial.check_end(&ending, &start);
    if ending.status.success() {
        return trial.check_files(work, peace, &place, Leaves::All, false);
    }
    let is_reported =
        ending.status.code() == Some(status_of(asked)) || signal(ending.status) == Some(asked as i32);
    let words = short(&ending.words);
    trial.hold(is_reported || ending.late, || {
        format!("it ended with {}, not {}: {words}", ending.status, status_of(asked))
    });
    trial.check_files(work, peace, &place, Leaves::Abandoned, false)?;
    if work.goes_on() { trial.check_resumes(work, peace, &place) } else { Ok(()) }
}

/// Halts a work for a while, as a laptop does that sleeps, or a queue that makes room.
pub fn halt(trial: &mut Trial<'_>) -> Result<()> {
    let Begun { work, peace, place, start, mut running, delay } = trial.begin()?;
    if running.until(delay)?.is_none() {
        send(&running, Signal::SIGSTOP)?;
        sleep(Duration::from_millis(trial.random.u64(10..400)));
        send(&running, Signal::SIGCONT)?;
    }
    let ending = running.finish(trial.bench.deadline(peace))?;
    trial.check_end(&ending, &start);
    trial.succeeded(&ending);
    trial.check_files(work, peace, &place, Leaves::All, false)
}

/// Sends a signal to a process that nobody has waited for yet, so that its number is still its own.
/// Sends Ctrl-C.
pub fn interrupted(running: &Running) -> Result<()> {
    send(running, Signal::SIGINT)
}

fn send(running: &Running, what: Signal) -> Result<()> {
    let id = i32::try_from(running.child.id()).context("a process without a number")?;
    kill(Pid::from_raw(id), what).with_context(|| format!("cannot send {what}"))
}
