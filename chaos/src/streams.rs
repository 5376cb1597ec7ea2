//! Standard streams that are closed, full or broken, and too few files that may be open at once.

use std::path::Path;

use anyhow::Result;

use crate::start::{Limit, Start, Stream};
use crate::trial::{Leaves, Trial};
use crate::works::{Peace, Work};

const STREAMS: [Stream; 4] = [Stream::Usual, Stream::Closed, Stream::Full, Stream::CommError];

/// Tries a work whose words have nowhere to go: its files are as ever.
pub fn streams(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    let mut start = work.start();
    start.streams = any(trial);
    if trial.random.bool() {
        start.arguments.push("--json".into());
    }
    let ending = trial.run_to_end(&start, &place, peace)?;
    // The command has reason to complain only where its report is lost; a reader that is gone wanted no more.
    let lost = start.streams[1] == Stream::Full;
    let status = ending.status;
    trial.hold(ending.late || status.success() != lost, || {
        format!("{status}, output lost: {lost}: {}", ending.words)
    });
    trial.check_files(work, peace, &place, Leaves::All, false)
}

/// Tries commands with other words to say, errors among them.
pub fn words(trial: &mut Trial<'_>) -> Result<()> {
    const LINES: [(&str, bool); 7] = [
        ("run heat --backend cpu --size 8x8 --steps 1 --output not/there.npy", false),
        ("run heat --backend cpu --size 8x8 --steps", false),
        ("solve not-there.mtx --backend cpu --json", false),
        ("run no-such-model --steps 1", false),
        ("--help", true),
        ("list", true),
        ("plan 2d5pt --device a100", true),
    ];
    let (line, works) = LINES[trial.number % LINES.len()];
    let mut start = Start::of(line);
    start.streams = any(trial);
    let place = trial.place();
    let (_, peace) = trial.work();
    let ending = trial.run_to_end(&start, &place, peace)?;
    let status = ending.status;
    // Output that finds no room may fail a command that works otherwise. No stream makes a command succeed
    // that fails otherwise.
    let lost = start.streams[1] == Stream::Full;
    let holds = status.success() == works || works && lost && status.code().is_some_and(|code| code == 1);
    trial.hold(ending.late || holds, || format!("{status} of `abide {line}`: {}", ending.words));
    none(trial, &place)
}

fn any(trial: &mut Trial<'_>) -> [Stream; 3] {
    let input = if trial.random.bool() { Stream::Usual } else { Stream::Closed };
    let mut output = || STREAMS[trial.random.usize(0..STREAMS.len())];
    [input, output(), output()]
}

/// Checks that the folder has no file.
fn none(trial: &mut Trial<'_>, place: &Path) -> Result<()> {
    let empty = std::fs::read_dir(place)?.next().is_none();
    trial.hold(empty, || "it leaves files".to_owned());
    Ok(())
}

/// Tries a low limit of open files.
pub fn open_files(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace): (&Work, &Peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    let limit = trial.bench.least_files + trial.random.u64(0..12);
    trial.works_or_says_why(&work.start().within(Limit::Files, limit), &place, work, peace).map(drop)
}
