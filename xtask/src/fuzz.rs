//! `cargo xtask fuzz`: builds the fuzzer so that it counts the branches that an input takes, and runs it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;

use crate::cargo::{cargo, root, succeeds};
use crate::setup;

/// Options by which the compiler counts branches and notes compared values, as libFuzzer reads them. Stable
/// Rust knows these options.
const COUNTING: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Which targets to fuzz and for how long.
#[derive(Args)]
pub struct Fuzz {
    /// The target; all of them in turn where none is named
    target: Option<String>,

    /// Minutes for each target; one where no executions are given either
    #[arg(long)]
    minutes: Option<f64>,

    /// Executions of each target
    #[arg(long)]
    runs: Option<u64>,

    /// Processes side by side, each with its own seed; as many as there are cores where it is left out
    #[arg(long)]
    jobs: Option<usize>,

    /// The first seed
    #[arg(long, default_value_t = 1)]
    seed: u32,

    /// Only build the program, which runs on machines without Rust, and say where it is
    #[arg(long)]
    build: bool,
}

impl Fuzz {
    /// Fuzzes every target for this many minutes.
    pub fn all(minutes: f64) -> Fuzz {
        Fuzz { target: None, minutes: Some(minutes), runs: None, jobs: None, seed: 1, build: false }
    }

    /// Builds and runs; returns whether nothing was found.
    pub fn run(&self) -> Result<bool> {
        setup::cpp()?;
        let program = build()?;
        if self.build {
            println!("{}", program.display());
            return Ok(true);
        }
        let mut command = Command::new(program);
        command.args(&self.target).args(["--seed", &self.seed.to_string()]);
        let minutes = self.minutes.or(self.runs.is_none().then_some(1.0));
        for (option, value) in [
            ("--minutes", minutes.map(|minutes| minutes.to_string())),
            ("--runs", self.runs.map(|runs| runs.to_string())),
            ("--jobs", self.jobs.map(|jobs| jobs.to_string())),
        ] {
            command.args(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        }
        // The corpus learnt is kept for the next time, beside the build's outputs.
        command.arg("--corpus").arg(root().join("target").join("fuzz-corpus"));
        command.arg("--findings").arg(root().join("fuzz").join("crashes"));
        succeeds(&mut command)
    }
}

/// Builds the fuzzer, with a profile and thus a folder of its own, so that no other build counts branches.
fn build() -> Result<PathBuf> {
    let host = host()?;
    // With a target named, programs that run while building are compiled as usual.
    let arguments =
        ["build", "--profile", "fuzz", "--package", "abide-fuzz", "--features", "engine", "--target", &host];
    let flags = COUNTING.join("\u{1f}");
    if !succeeds(cargo(&arguments).env("CARGO_ENCODED_RUSTFLAGS", flags))? {
        anyhow::bail!("the fuzzer does not build; see the messages above");
    }
    let name = format!("abide-fuzz{}", std::env::consts::EXE_SUFFIX);
    Ok(root().join("target").join(&host).join("fuzz").join(name))
}

/// Returns the target that this machine's compiler builds for by default.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc -vV does not name its host")
}
