//! Times in the past and in the future, and clocks that jump.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use anyhow::Result;

use crate::trial::Trial;

const DAY: u64 = 86_400;

/// Tries files that were written long ago, or will be written in the future.
pub fn file_times(trial: &mut Trial<'_>) -> Result<()> {
    let (work, peace) = trial.work();
    let place = trial.place();
    trial.seed_all(work, peace, &place)?;
    for entry in fs::read_dir(&place)? {
        let days = Duration::from_secs(DAY * trial.random.u64(0..80_000));
        let time = SystemTime::UNIX_EPOCH + days;
        File::options().write(true).open(entry?.path())?.set_modified(time)?;
    }
    trial.works(&work.start(), &place, work, peace)?;
    if work.goes_on() { trial.check_resumes(work, peace, &place) } else { Ok(()) }
}

#[cfg(target_os = "linux")]
pub use linux::{can_jump, can_offset, jumps, offset};

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::fs;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use anyhow::{Context as _, Result};

    use crate::bench::Bench;
    use crate::trial::{Leaves, Trial};

    /// Returns the words that start a command with a clock of its own, by util-linux.
    fn shifted(seconds: u64) -> Vec<OsString> {
        let seconds = seconds.to_string();
        let words =
            ["unshare", "--time", "--fork", "--kill-child", "--monotonic", &seconds, "--boottime", &seconds];
        words.map(OsString::from).to_vec()
    }

    /// Checks that the system grants clocks of one's own.
    pub fn can_offset(_: &Bench) -> Result<(), String> {
        let words = shifted(1000);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("true").stderr(Stdio::piped()).stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("unshare: {error}"))?;
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if output.status.success() { Ok(()) } else { Err(words) }
    }

    /// Tries a system that has been up for any length of time.
    pub fn offset(trial: &mut Trial<'_>) -> Result<()> {
        let (work, peace) = trial.work();
        let place = trial.place();
        trial.seed(work, peace, &place)?;
        let mut start = work.start();
        start.through = shifted(1 << trial.random.u32(0..33));
        trial.works(&start, &place, work, peace)
    }

    /// Finds the library that stands between programs and the clock, from Debian's package libfaketime.
    fn library() -> Option<PathBuf> {
        let folders = fs::read_dir("/usr/lib").ok()?.flatten().map(|entry| entry.path());
        let places = folders.chain(["/usr/lib".into(), "/usr/local/lib".into()]);
        places.map(|folder| folder.join("faketime").join("libfaketime.so.1")).find(|path| path.exists())
    }

    /// Checks that clocks can be made to jump here.
    pub fn can_jump(_: &Bench) -> Result<(), String> {
        library().map(drop).ok_or_else(|| "libfaketime is not here; Debian's package is faketime".to_owned())
    }

    /// Tries a clock that is set again and again during the run, forwards and backwards.
    pub fn jumps(trial: &mut Trial<'_>) -> Result<()> {
        let (work, peace) = trial.work();
        let place = trial.place();
        trial.seed(work, peace, &place)?;
        let library = library().context("libfaketime has gone")?;
        let clock = trial.folder.join("clock");
        fs::write(&clock, "+0\n")?;
        let start = work
            .start()
            .with("LD_PRELOAD", library)
            .with("FAKETIME_TIMESTAMP_FILE", &clock)
            .with("FAKETIME_NO_CACHE", "1")
            // The monotonic clock stays as it is, because nothing sets it in a running system.
            .with("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let mut running = trial.start(&start, &place)?;
        let mut time = Duration::ZERO;
        loop {
            time += Duration::from_millis(trial.random.u64(1..40));
            if running.until(time)?.is_some() || time > trial.bench.deadline(peace) {
                break;
            }
            fs::write(&clock, format!("{:+}d\n", trial.random.i64(-9000..9000)))?;
        }
        let ending = running.finish(trial.bench.deadline(peace))?;
        trial.check_end(&ending, &start);
        trial.succeeded(&ending);
        trial.check_files(work, peace, &place, Leaves::All, false)
    }
}
