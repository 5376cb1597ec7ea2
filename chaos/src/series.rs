//! Files of which a run makes one after another: frames, and the lines of a record.

use std::fs;

use anyhow::Result;

use crate::disk::Mounted;
use crate::signals::interrupted;
use crate::start::{Start, peace as undisturbed};
use crate::trial::{Trial, short};
use crate::works::CHECKPOINT;

/// Interrupts after which a work is left undisturbed.
const ENDS: u32 = 3;

/// Interrupts a run with frames at any moment, goes on from its checkpoint, and again: the frames are those of the run in
/// one piece, to the byte and by their names.
pub fn frames(trial: &mut Trial<'_>) -> Result<()> {
    let place = trial.place();
    let works: Vec<_> = trial.bench.works().filter(|(work, _)| work.outputs.contains("--frames")).collect();
    let (work, peace) = works[trial.number % works.len()];
    for end in 0..=ENDS {
        let done = trial.steps_done(&place);
        let start = done.map_or_else(|| work.start(), |done| work.rest(done));
        let mut running = trial.start(&start, &place)?;
        let delay = trial.moment(peace);
        if end < ENDS && running.until(delay)?.is_none() {
            interrupted(&running)?;
            trial.kills += 1;
            trial.note_delay(delay);
        }
        let ending = running.finish(trial.bench.deadline(peace))?;
        trial.check_end(&ending, &start);
        if ending.status.success() {
            break;
        }
    }
    for (name, whole) in peace.files.iter().filter(|(name, _)| !name.ends_with(".gif")) {
        let found = fs::read(place.join(name)).ok();
        trial.hold(found.as_ref() == Some(whole), || {
            format!("{name} is not that of the run in one piece: {:?} bytes", found.map(|bytes| bytes.len()))
        });
    }
    for entry in fs::read_dir(&place)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        trial.hold(peace.files.contains_key(&name), || format!("{name} is none of the run in one piece"));
    }
    let whole = trial.steps_done(&place) == Some(work.steps);
    trial.hold(whole, || format!("{CHECKPOINT} is not that of the end"));
    Ok(())
}

/// A run that records a line of some values after each step.
const RECORD: &str = "run heat --backend cpu --size 31x33 --input random:3 --steps 4000 --record r.csv --record-every 1 \
                      --probe u@3,4 --probe u@15,16 --probe u@30,32";

/// Records on a disk that has room for a part of the lines, or for none.
pub fn record(trial: &mut Trial<'_>) -> Result<()> {
    let (_, peace) = trial.work();
    let (place, own) = (trial.place(), trial.folder.join("undisturbed"));
    undisturbed(&Start::of(RECORD), &trial.bench.binary, &own)?;
    let whole = fs::read(own.join("r.csv"))?;
    let disk = Mounted::new(&place, "size=64m")?;
    let old = trial.random.bool().then(|| b"what was in r.csv before\n".to_vec());
    if let Some(old) = &old {
        fs::write(place.join("r.csv"), old)?;
    }
    // A file system in memory gives room by pages; a page is there for the old file at least.
    let pages = 1 + trial.random.u64(0..whole.len() as u64 / 4096 + 1);
    let options = format!("size={}", 4096 * pages);
    disk.change(nix::mount::MsFlags::empty(), &options)?;
    trial.remark(format!("mount -t tmpfs -o {options} tmpfs {}", place.display()));
    let ending = trial.run_to_end(&Start::of(RECORD), &place, peace)?;
    let found = fs::read(place.join("r.csv")).ok();
    let is_whole = found.as_ref() == Some(&whole);
    trial.hold(ending.status.success() == is_whole, || {
        format!("{} with {:?} bytes of {}", ending.status, found.as_ref().map(Vec::len), whole.len())
    });
    if !ending.status.success() {
        let is_named = ending.words.contains("r.csv");
        trial.hold(is_named, || format!("its words do not name r.csv: {}", short(&ending.words)));
        // Rows before the fault stay, each of them whole.
        let holds = match &found {
            None => old.is_none(),
            Some(found) => {
                Some(found) == old.as_ref() || (whole.starts_with(found) && found.ends_with(b"\n"))
            }
        };
        trial.hold(holds, || {
            format!("r.csv has {:?} bytes, and no whole lines", found.map(|bytes| bytes.len()))
        });
    }
    for entry in fs::read_dir(&place)? {
        let name = entry?.file_name();
        trial.hold(name == "r.csv", || format!("{} is left behind", name.display()));
    }
    trial.keep_copy(&place)
}
