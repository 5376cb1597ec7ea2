//! `abide-fuzz`: fuzzes targets in a given number of processes, needs no Rust and no files, and reports its findings.

mod campaign;
mod engine;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use abide_fuzz::{TARGETS, Target, execute, targets};
use anyhow::{Context as _, Result, bail};
use clap::Parser;

/// Names the target of a process that is libFuzzer's loop alone; its arguments are libFuzzer's.
const TARGET_VARIABLE: &str = "ABIDE_FUZZ_TARGET";

#[derive(Parser)]
#[command(name = "abide-fuzz", about = "Fuzzes what Abide reads, and random programs in random plans")]
struct Arguments {
    /// The targets, in turn; all of them where none is named
    targets: Vec<String>,

    /// List the targets
    #[arg(long)]
    list: bool,

    /// Executions of each target, summed over all jobs; without end where neither they nor a time are given
    #[arg(long)]
    runs: Option<u64>,

    /// Minutes for each target
    #[arg(long)]
    minutes: Option<f64>,

    /// The first job's seed; the others count on from it
    #[arg(long, default_value_t = 1)]
    seed: u32,

    /// Processes side by side, which share what they learn; as many as there are cores where it is left out
    #[arg(long)]
    jobs: Option<usize>,

    /// The folder that keeps inputs which take new branches, a folder for each target; thrown away where it
    /// is left out
    #[arg(long)]
    corpus: Option<PathBuf>,

    /// The folder for inputs that go wrong, a folder for each target
    #[arg(long, default_value = "crashes")]
    findings: PathBuf,

    /// Run the target on this file alone, and say how it went
    #[arg(long, conflicts_with_all = ["runs", "minutes", "minimise"])]
    replay: Option<PathBuf>,

    /// Look for a shorter file that goes wrong too, for a minute, and write it beside this one as NAME.min
    #[arg(long, conflicts_with_all = ["runs", "minutes"])]
    minimise: Option<PathBuf>,
}

fn main() -> ExitCode {
    let outcome = match std::env::var(TARGET_VARIABLE) {
        Ok(target) => {
            find(&target).and_then(|target| engine::drive(target, std::env::args().collect())).map(|()| true)
        }
        Err(_) => Arguments::parse().follow(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("abide-fuzz: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn find(name: &str) -> Result<&'static Target> {
    let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    targets::find(name).with_context(|| format!("no target is named `{name}`; known: {}", known.join(", ")))
}

impl Arguments {
    /// Does the work asked for; returns whether nothing was found.
    fn follow(self) -> Result<bool> {
        if self.list {
            TARGETS.iter().for_each(|target| println!("{:<12}{}", target.name, target.what));
            return Ok(true);
        }
        let targets = match self.targets.is_empty() {
            true => TARGETS.iter().collect(),
            false => self.targets.iter().map(|name| find(name)).collect::<Result<Vec<_>>>()?,
        };
        if let Some(file) = self.replay.as_ref().or(self.minimise.as_ref()) {
            let [target] = targets[..] else { bail!("name the file's target") };
            return match self.minimise.is_some() {
                true => campaign::minimise(target, file).map(|()| true),
                false => replay(target, file),
            };
        }
        let jobs =
            self.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |cores| cores.get()));
        let time = self.minutes.map(|minutes| Duration::try_from_secs_f64(60.0 * minutes)).transpose();
        let campaign = campaign::Campaign {
            runs: self.runs,
            time: time.context("so many minutes are no time")?,
            seed: self.seed,
            jobs: jobs.max(1),
            corpus: self.corpus,
            findings: self.findings,
        };
        let mut clean = true;
        for target in targets {
            clean &= campaign.fuzz(target)?;
        }
        Ok(clean)
    }
}

fn replay(target: &Target, file: &std::path::Path) -> Result<bool> {
    let input = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let outcome = execute(target, &input);
    match &outcome {
        Ok(()) => println!("{}: nothing wrong", target.name),
        Err(fault) => println!("{}: {fault}", target.name),
    }
    Ok(outcome.is_ok())
}
