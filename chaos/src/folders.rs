//! Folders and files that may not be written to, and folders that go away.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nix::mount::MsFlags;

use crate::bench::Bench;
use crate::disk::Mounted;
use crate::memory::{FIRST_USER, give};
use crate::trial::{Begun, Trial};
use crate::works::{CHECKPOINT, Work};

/// Tries a file system that nobody may write to.
pub fn read_only(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    let disk = Mounted::new(&place, "size=64m")?;
    trial.seed(work, peace, &place)?;
    disk.change(MsFlags::MS_RDONLY, "size=64m")?;
    trial.remark("the folder is on a file system that is mounted read-only");
    let success = trial.works_or_says_why(&work.start(), &place, work, peace)?;
    trial.hold(!success, || "it succeeds where nothing can be written".to_owned());
    trial.keep_copy(&place)
}

/// Tries another user's folder or files.
pub fn foreign(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed_all(work, peace, &place)?;
    let set = |path: &Path, mode: u32| fs::set_permissions(path, Permissions::from_mode(mode));
    let what = match trial.number % 3 {
        0 => {
            // As in the folder for temporary files: only a file's owner may replace it.
            set(&place, 0o1777)?;
            "a sticky folder with files of root"
        }
        1 => {
            set(&place, 0o755)?;
            "a folder of root"
        }
        _ => {
            give(&place, FIRST_USER)?;
            let theirs = one_of(trial, work);
            chown(place.join(&theirs), Some(0), Some(0))?;
            set(&place.join(&theirs), 0o444)?;
            "a file of root in a folder of one's own"
        }
    };
    trial.remark(what);
    let mut start = work.start();
    start.user = Some(FIRST_USER);
    trial.works_or_says_why(&start, &place, work, peace).map(drop)
}

/// Returns one of the files that a work writes at its end.
fn one_of(trial: &mut Trial<'_>, work: &Work) -> String {
    let mut names: Vec<&str> = work.finals().collect();
    if work.goes_on() {
        names.push(CHECKPOINT);
    }
    names[trial.random.usize(0..names.len())].to_owned()
}

/// Makes a file immutable, or ordinary again.
fn immutable(path: &Path, on: bool) -> Result<()> {
    let mut command = Command::new("chattr");
    command.arg(if on { "+i" } else { "-i" }).arg(path).stderr(Stdio::null());
    let status = command.status().context("cannot start chattr")?;
    ensure!(status.success(), "chattr cannot change {}", path.display());
    Ok(())
}

/// Checks that files can be made immutable here.
pub fn can_fix(bench: &Bench) -> Result<(), String> {
    let path = bench.folder.join("immutable");
    fs::write(&path, "").map_err(|error| error.to_string())?;
    let able =
        immutable(&path, true).and_then(|()| immutable(&path, false)).map_err(|error| format!("{error:#}"));
    let _ = fs::remove_file(&path);
    able
}

/// Tries a file that not even root may replace.
pub fn fixed(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed_all(work, peace, &place)?;
    let path = place.join(one_of(trial, work));
    immutable(&path, true)?;
    trial.remark(format!("chattr +i {}", path.display()));
    let success = trial.works_or_says_why(&work.start(), &place, work, peace);
    // Whatever the outcome, the folder must be removable.
    immutable(&path, false)?;
    let success = success?;
    trial.hold(!success, || format!("it succeeds though {} cannot be written", path.display()));
    Ok(())
}

/// Tries a folder that is removed on the way, or a folder that takes a file's place.
pub fn vanishing(trial: &mut Trial<'_>) -> Result<()> {
    let Begun { work, peace, place, start, mut running, delay } = trial.begin()?;
    let taken = trial.random.bool().then(|| one_of(trial, work));
    let ended = running.until(delay)?.is_some();
    let mut removed = false;
    if let (Some(name), false) = (&taken, ended) {
        let path = place.join(name);
        // The command may put its file there between these two calls; then the run was not disturbed.
        removed = fs::remove_file(&path).is_ok();
        let _ = fs::create_dir(&path);
        trial.remark(format!("after {:.4} s: rm -f {name}; mkdir {name}", delay.as_secs_f64()));
        trial.forget(name);
    } else if !ended {
        // Files that the command writes meanwhile fill the folder again; the next turn removes them too.
        while place.exists() {
            let _ = fs::remove_dir_all(&place);
        }
        trial.remark(format!("after {:.4} s: rm -rf {}", delay.as_secs_f64(), place.display()));
    }
    let ending = running.finish(trial.bench.deadline(peace))?;
    trial.check_end(&ending, &start);
    if let Some(path) = taken.map(|name| place.join(name))
        && path.is_dir()
    {
        fs::remove_dir(&path)?;
        // A run that succeeds had written the file before it was removed here.
        if removed && ending.status.success() {
            return Ok(());
        }
    }
    if place.exists() { trial.worked_or_said_why(&ending, &place, work, peace).map(drop) } else { Ok(()) }
}
