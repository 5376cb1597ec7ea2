//! The command as a user meets it: arguments in, files, words and exit status out. All tests use the CPU's
//! backend.

mod bad_input;
mod batch;
mod bench;
mod devices;
mod endings;
mod endless;
mod files;
mod formulas;
mod gas;
mod manual;
mod memory;
mod models;
mod new;
mod others;
mod record;
mod results;
mod resumed;
mod run;
mod solve;
mod targets;
mod trust;
mod tutorial;
mod words;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use abide::io::{Loaded, npy};
use abide::{Array, Shape};
use tempfile::TempDir;

/// A folder for one test, in which the command runs.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_abide"));
        command.current_dir(self.0.path()).args(line.split_whitespace());
        with_own_signals(&mut command);
        command
    }

    /// Runs the command, and returns what it wrote to standard output; it must succeed.
    fn works(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert!(output.status.success(), "abide {line}: {}", words(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs the command, which must fail with an error that says all of `reasons`, and change no file.
    fn fails(&self, line: &str, reasons: &[&str]) {
        let before = self.contents();
        let output = self.command(line).output().unwrap();
        let words = words(&output);
        assert!(!output.status.success(), "abide {line} works: {words}");
        assert!(output.status.code().is_some(), "abide {line} was killed: {words}");
        assert!(words.starts_with("error: "), "abide {line}: {words}");
        assert!(!words.contains("panicked"), "abide {line}: {words}");
        for reason in reasons {
            assert!(words.contains(reason), "abide {line}: {words} does not say {reason}");
        }
        assert_eq!(self.contents(), before, "abide {line} changed files");
    }

    /// Returns every file of the folder with its contents.
    fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = std::fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file());
        let mut contents: Vec<_> = files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        contents.sort();
        contents
    }

    /// Returns the names of the folder's files.
    fn names(&self) -> Vec<String> {
        self.contents()
            .iter()
            .map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect()
    }

    fn write(&self, name: &str, extents: &[usize], values: &Array) {
        npy::write(&self.path(name), &Shape::new(extents).unwrap(), values).unwrap().commit().unwrap();
    }

    fn read(&self, name: &str) -> Loaded {
        npy::read(&self.path(name)).unwrap()
    }
}

/// Has a command begin with the system's own answers to signals, whatever the tests themselves inherited: under `nohup`,
/// or behind an `&` of a shell, some are ignored, and a command keeps that.
fn with_own_signals(command: &mut Command) {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let restore = || {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE] {
                // SAFETY: no handler is installed. `signal` may be called between `fork` and `exec`.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: what runs in the child before `exec` takes no lock and no memory.
        unsafe { command.pre_exec(restore) };
    }
    #[cfg(not(unix))]
    let _ = command;
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns values that look random and are the same everywhere.
fn noise(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..len).map(|_| next()).collect()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn exists(path: &Path) -> bool {
    path.try_exists().unwrap()
}
