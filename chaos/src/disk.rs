//! Disks that fill up while something is written.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::statvfs;

use crate::start::Limit;
use crate::trial::{Leaves, Trial, signal};

/// The system's signal to a process that writes more to a file than its limit allows.
const FILE_TOO_LARGE: i32 = 25;

/// A file system in memory; it is unmounted when this value is dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Mounts a file system over a folder, with options such as `size=64k`.
    pub fn new(place: &Path, options: &str) -> Result<Mounted> {
        mounted(place, MsFlags::empty(), options)?;
        Ok(Mounted(place.to_owned()))
    }

    /// Changes the mount's options.
    pub fn change(&self, flags: MsFlags, options: &str) -> Result<()> {
        mounted(&self.0, MsFlags::MS_REMOUNT | flags, options)
    }
}

fn mounted(place: &Path, flags: MsFlags, options: &str) -> Result<()> {
    let data = CString::new(options)?;
    mount(Some("tmpfs"), place, Some("tmpfs"), flags, Some(data.as_c_str()))
        .with_context(|| format!("cannot mount a file system in memory ({options})"))
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A process that still uses the mount keeps it until it is done.
        let _ = umount2(&self.0, MntFlags::MNT_DETACH);
    }
}

/// Checks that file systems can be mounted here.
pub fn can_mount(folder: &Path) -> Result<(), String> {
    let place = folder.join("mount");
    fs::create_dir_all(&place).map_err(|error| error.to_string())?;
    let able = Mounted::new(&place, "size=64k").map(drop).map_err(|error| format!("{error:#}"));
    let _ = fs::remove_dir(&place);
    able
}

/// Tries a file system with room for a part of the output: of its bytes, or of its files.
pub fn full(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    let disk = Mounted::new(&place, "size=64m")?;
    trial.seed(work, peace, &place)?;
    let there = statvfs(&place)?;
    let used = (there.blocks() - there.blocks_free()) * there.fragment_size();
    let wanted: u64 = peace.files.values().map(|bytes| bytes.len() as u64).sum();
    let options = if trial.random.u32(0..4) == 0 {
        let files = there.files() - there.files_free();
        format!("nr_inodes={}", files + trial.random.u64(0..peace.files.len() as u64 + 2))
    } else {
        format!("size={}", used + trial.random.u64(1..wanted * 3 / 2))
    };
    disk.change(MsFlags::empty(), &options)?;
    trial.remark(format!("mount -t tmpfs -o {options} tmpfs {}", place.display()));
    trial.works_or_says_why(&work.start(), &place, work, peace)?;
    // With room again, the work goes on.
    if work.goes_on() && place.join(crate::works::CHECKPOINT).exists() {
        trial.check_resumes(work, peace, &place)?;
    }
    trial.keep_copy(&place)
}

/// Tries files that may not grow beyond a limit.
pub fn file_size(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed(work, peace, &place)?;
    let largest = peace.files.values().map(|bytes| bytes.len() as u64).max().unwrap_or(0);
    // The command's words go to files too, which fall under the limit.
    let mut start = work.start().within(Limit::FileSize, trial.random.u64(4096..largest.max(4096) * 5 / 4));
    start.quiet_limit = trial.random.bool();
    let ending = trial.run_to_end(&start, &place, peace)?;
    if signal(ending.status) == Some(FILE_TOO_LARGE) && !start.quiet_limit {
        // The system's own way to end a process, as abrupt as kill -9.
        trial.check_files(work, peace, &place, Leaves::Pieces, false)?;
    } else {
        trial.worked_or_said_why(&ending, &place, work, peace)?;
    }
    if work.goes_on() { trial.check_resumes(work, peace, &place) } else { Ok(()) }
}
