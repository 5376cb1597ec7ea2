//! Outputs whose names belong to devices and pipes: they are written to or refused, never replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::fcntl::OFlag;
use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;

use crate::bench::Bench;
use crate::trial::{Leaves, Trial};

/// Makes a copy of one of the system's devices, because a program that fails here would destroy the original.
fn node(path: &Path, minor: u64) -> Result<()> {
    mknod(path, SFlag::S_IFCHR, Mode::from_bits_truncate(0o666), makedev(1, minor))
        .with_context(|| format!("cannot make the device {}", path.display()))
}

const NULL: u64 = 3;
const FULL: u64 = 7;

/// Checks that devices can be made, and opened, here.
pub fn can_make(bench: &Bench) -> Result<(), String> {
    let path = bench.folder.join("node");
    let able = node(&path, NULL).and_then(|()| {
        OpenOptions::new().write(true).open(&path).map(drop).context("cannot open a device made here")
    });
    let _ = fs::remove_file(&path);
    able.map_err(|error| format!("{error:#}"))
}

/// Tries a device in the place of an output, or a link to one.
pub fn device(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    let finals: Vec<&str> = work.finals().collect();
    let name = finals[trial.random.usize(0..finals.len())];
    let full = trial.random.bool();
    let linked = trial.random.bool();
    let minor = if full { FULL } else { NULL };
    let path = place.join(name);
    let made = if linked { trial.folder.join("node") } else { path.clone() };
    node(&made, minor)?;
    trial.remark(format!("mknod {} c 1 {minor}", made.display()));
    if linked {
        symlink(&made, &path)?;
        trial.remark(format!("ln -s {} {}", made.display(), path.display()));
    }
    let start = work.start();
    let ending = trial.run_to_end(&start, &place, peace)?;
    let stays = fs::symlink_metadata(&made).is_ok_and(|there| there.file_type().is_char_device());
    trial.hold(stays, || format!("the device {} was replaced", made.display()));
    trial.hold(!linked || path.is_symlink(), || format!("the link {} was replaced", path.display()));
    trial.hold(!(full && ending.status.success()), || "it succeeds though a device has no room".to_owned());
    // Removed first, because a device without an end cannot be read.
    fs::remove_file(&path)?;
    if linked {
        fs::remove_file(&made)?;
    }
    trial.check_files(work, peace, &place, Leaves::Either, false)
}

/// Tries a named pipe in the place of an output.
pub fn pipe(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    let finals: Vec<&str> = work.finals().collect();
    let name = finals[trial.random.usize(0..finals.len())];
    let path = place.join(name);
    mkfifo(&path, Mode::from_bits_truncate(0o666))?;
    trial.remark(format!("mkfifo {}; cat {0} &", path.display()));
    // Open for writing too: the pipe has no end until this is dropped, however often the command opens it.
    let reader =
        OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&path)?;
    let over = AtomicBool::new(false);
    let start = work.start();
    let (ending, came) = scope(|threads| {
        let reading = threads.spawn(|| drain(reader, &over));
        let ending = trial.run_to_end(&start, &place, peace);
        over.store(true, Ordering::Release);
        (ending, reading.join())
    });
    let ending = ending?;
    let came = came.map_err(|_| anyhow::anyhow!("the reader of the pipe panicked"))??;
    let stays = fs::symlink_metadata(&path).is_ok_and(|there| there.file_type().is_fifo());
    trial.hold(stays, || format!("the pipe {name} was replaced"));
    if ending.status.success() {
        let same = peace.files.get(name) == Some(&came);
        trial.hold(same, || format!("{} bytes came through the pipe {name}, and not the file's", came.len()));
    }
    fs::remove_file(&path)?;
    trial.check_files(work, peace, &place, Leaves::Either, false)
}

/// Returns everything that comes through a pipe until `over` is set.
fn drain(mut pipe: File, over: &AtomicBool) -> Result<Vec<u8>> {
    let (mut came, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        // Asked before reading, so that everything written before `over` was set is read.
        let last = over.load(Ordering::Acquire);
        match pipe.read(&mut buffer) {
            Ok(count) => came.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock && last => return Ok(came),
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(Duration::from_millis(1)),
            Err(error) => return Err(error).context("cannot read the pipe"),
        }
    }
}
