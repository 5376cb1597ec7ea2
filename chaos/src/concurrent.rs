//! Several processes that write the same files at once, and a reader of these files meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use anyhow::Result;

use crate::checkpoint;
use crate::trial::{Leaves, Trial, signal};
use crate::works::{CHECKPOINT, Peace, Work};

/// Runs two or three processes of one work in one folder; one of them may be killed.
pub fn concurrent(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    let before: BTreeMap<String, Vec<u8>> = work
        .files()
        .into_iter()
        .filter_map(|name| fs::read(place.join(&name)).ok().map(|bytes| (name, bytes)))
        .collect();
    let start = work.start();
    let over = AtomicBool::new(false);
    let (ended, seen) = scope(|threads| {
        let watching = threads.spawn(|| watch(work, peace, &before, &place, &over));
        let ended = run(trial, &place);
        over.store(true, Ordering::Relaxed);
        (ended, watching.join())
    });
    let (endings, killed) = ended?;
    for what in seen.map_err(|_| anyhow::anyhow!("the reader panicked"))? {
        trial.fail(what);
    }
    for ending in &endings {
        if killed && signal(ending.status) == Some(9) {
            trial.kills += 1;
            continue;
        }
        trial.check_end(ending, &start);
        trial.succeeded(ending);
    }
    // The pieces that a killed process leaves may lie among complete files of the others.
    if killed {
        trial.check_files(work, peace, &place, Leaves::Pieces, false)?;
    }
    trial.check_files(work, peace, &place, Leaves::All, false)
}

/// Starts the processes one after the other and waits for all; returns whether one was killed.
fn run(trial: &mut Trial<'_>, place: &Path) -> Result<(Vec<crate::start::Ending>, bool)> {
    let (work, peace) = trial.work();
    let start = work.start();
    let mut running = Vec::new();
    for turn in 0..trial.random.usize(2..4) {
        if turn > 0 {
            let delay = trial.moment(peace) / 2;
            sleep(delay);
        }
        // Each process writes its words to files of its own.
        let logs = trial.folder.join(format!("process{turn}"));
        fs::create_dir_all(&logs)?;
        trial.lines.push(start.line(&trial.bench.binary, place));
        running.push(start.spawn(&trial.bench.binary, place, &logs)?);
    }
    let killed = trial.random.u32(0..3) == 0;
    if killed {
        sleep(trial.moment(peace));
        trial.remark("one of them is killed");
        running[0].child.kill()?;
    }
    let deadline = trial.bench.deadline(peace) * running.len() as u32;
    let endings = running.into_iter().map(|running| running.finish(deadline)).collect::<Result<Vec<_>>>()?;
    Ok((endings, killed))
}

/// Reads all files again and again: at any moment each must be the old file or complete. Returns the files
/// that are neither.
fn watch(
    work: &Work,
    peace: &Peace,
    before: &BTreeMap<String, Vec<u8>>,
    place: &Path,
    over: &AtomicBool,
) -> Vec<String> {
    let mut found = Vec::new();
    while !over.load(Ordering::Relaxed) && found.is_empty() {
        for name in work.finals().chain([CHECKPOINT]) {
            let Ok(bytes) = fs::read(place.join(name)) else { continue };
            if name == CHECKPOINT {
                if let Err(error) = checkpoint::steps(&bytes) {
                    found.push(format!("a reader met a checkpoint that does not load: {error:#}"));
                }
            } else if peace.files.get(name) != Some(&bytes) && before.get(name) != Some(&bytes) {
                found.push(format!("a reader met {name} neither old nor complete: {} bytes", bytes.len()));
            }
        }
        sleep(Duration::from_millis(2));
    }
    found
}
