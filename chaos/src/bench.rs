//! The ground that all trials share: the command, its undisturbed results, and room to work.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

#[cfg(target_os = "linux")]
use crate::start::Start;
use crate::works::{Peace, WORKS, Work};

/// The least time that any start of the command is given before it counts as hung.
const DEADLINE: Duration = Duration::from_secs(60);

/// The ground that all trials share.
pub struct Bench {
    /// The workspace's folder.
    pub root: PathBuf,
    pub binary: PathBuf,
    /// The folder for the trials' own folders; those of failed trials stay.
    pub folder: PathBuf,
    peace: Vec<Peace>,
    /// The least limit of addresses under which the command can say its version, in bytes.
    pub least_memory: u64,
    /// The least number of open files with which the command can say its version.
    pub least_files: u64,
}

impl Bench {
    /// Empties the trials' folder and runs every work undisturbed.
    pub fn new(root: &Path, binary: &Path) -> Result<Bench> {
        let folder = &root.join("target").join("chaos");
        clear(folder)?;
        let undisturbed = folder.join("undisturbed");
        let mut peace = Vec::new();
        for work in WORKS {
            let found = Peace::of(work, binary, &undisturbed.join(work.name))?;
            println!(
                "{:<12} {:>6.0} ms undisturbed, {} files",
                work.name,
                found.time.as_secs_f64() * 1e3,
                found.files.len()
            );
            peace.push(found);
        }
        clear(&undisturbed)?;
        let mut bench = Bench {
            root: root.to_owned(),
            binary: binary.to_owned(),
            folder: folder.to_owned(),
            peace,
            least_memory: 0,
            least_files: 0,
        };
        #[cfg(target_os = "linux")]
        {
            use crate::start::Limit;
            bench.least_memory = bench.least(Limit::Memory, 1 << 16, 1 << 34)?;
            bench.least_files = bench.least(Limit::Files, 1, 256)?;
        }
        fs::create_dir_all(&bench.folder).with_context(|| format!("cannot make {}", folder.display()))?;
        bench.binary = bench.binary.canonicalize().context("cannot find the command")?;
        Ok(bench)
    }

    /// Returns the works with the files that they leave undisturbed.
    pub fn works(&self) -> impl Iterator<Item = (&'static Work, &Peace)> {
        WORKS.iter().zip(&self.peace)
    }

    /// Returns how long a start of a work may take.
    pub fn deadline(&self, peace: &Peace) -> Duration {
        DEADLINE + 20 * peace.time
    }

    /// Finds the least value of a limit, in multiples of `grain` below `most`, under which the command can
    /// say its version.
    #[cfg(target_os = "linux")]
    fn least(&self, limit: crate::start::Limit, grain: u64, most: u64) -> Result<u64> {
        let logs = tempfile::tempdir().context("cannot make a temporary folder")?;
        let works = |value: u64| -> Result<bool> {
            let start = Start::of("--version").within(limit, value);
            // A process that cannot even begin does not say its version either.
            let Ok(running) = start.spawn(&self.binary, logs.path(), logs.path()) else { return Ok(false) };
            Ok(running.finish(DEADLINE)?.status.success())
        };
        let (mut low, mut high) = (0, most / grain);
        while low + 1 < high {
            let middle = low.midpoint(high);
            if works(middle * grain)? { high = middle } else { low = middle }
        }
        Ok(high * grain)
    }
}

/// Removes a folder with all its contents, if it exists.
fn clear(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot clear {}", folder.display()))
        }
        _ => Ok(()),
    }
}
