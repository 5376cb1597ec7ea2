//! The command under hostile circumstances, from outside, for any length of time: `cargo xtask chaos`.
//!
//! [`Chaos`] holds a campaign's options. A campaign consists of trials; each starts the command in a folder of its own. A
//! scenario says what a trial does to the command, and what must hold then.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

mod bench;
mod campaign;
mod checkpoint;
mod clocks;
mod complete;
mod concurrent;
mod kills;
mod report;
mod scenarios;
mod start;
mod trial;
mod works;

#[cfg(target_os = "linux")]
mod caches;
#[cfg(target_os = "linux")]
mod devices;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
mod folders;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod models;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod series;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod streams;
#[cfg(target_os = "linux")]
mod surroundings;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;

use bench::Bench;
use campaign::{Campaign, Until};
use report::{Tally, report};
use scenarios::{ALWAYS, SCENARIOS};

/// The options of `cargo xtask chaos`, which say what it does to the command.
#[derive(Args)]
pub struct Chaos {
    /// Only these scenarios [default: all]
    #[arg(value_name = "SCENARIO", value_parser = named)]
    scenarios: Vec<String>,

    /// Go on with passes over the scenarios for so long
    #[arg(long, value_name = "N", conflicts_with = "kills", value_parser = minutes)]
    minutes: Option<Duration>,

    /// Go on, after a pass over the scenarios, with those that kill until there are so many kills
    #[arg(long, value_name = "N")]
    kills: Option<u64>,

    /// What all random choices follow from [default: another one each time]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,

    /// Trials at the same time [default: as many as there are cores]
    #[arg(long, value_name = "J", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,

    /// The command that is tried [default: a release build, made now]
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,

    /// Print the scenarios, what each does and what must hold
    #[arg(long)]
    list: bool,
}

fn minutes(text: &str) -> Result<Duration, String> {
    let minutes =
        text.parse::<f64>().ok().and_then(|minutes| Duration::try_from_secs_f64(60.0 * minutes).ok());
    minutes.ok_or_else(|| "not a number of minutes".to_owned())
}

fn named(text: &str) -> Result<String, String> {
    let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    if names.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(format!("the scenarios are {}", names.join(", ")))
    }
}

impl Chaos {
    /// Describes a campaign of every scenario, again and again for this time.
    pub fn all(time: Duration) -> Chaos {
        let (minutes, scenarios) = (Some(time), Vec::new());
        Chaos { scenarios, minutes, kills: None, seed: None, jobs: None, binary: None, list: false }
    }

    /// Runs the campaign in the workspace's folder `root`; returns whether all checks held. `build` makes the command and
    /// returns its path, where the options name none.
    ///
    /// # Errors
    ///
    /// The command cannot be built or found, its undisturbed runs fail, or a trial cannot be set up.
    pub fn run(&self, root: &Path, build: impl FnOnce() -> Result<PathBuf>) -> Result<bool> {
        if self.list {
            list();
            return Ok(true);
        }
        let binary = match &self.binary {
            // Made absolute, because trials start the command in folders of their own.
            Some(path) => std::path::absolute(path).context("the command's path")?,
            None => build()?,
        };
        let until = match (self.minutes, self.kills) {
            (Some(time), _) => Until::Time(time),
            (None, Some(kills)) => Until::Kills(kills),
            (None, None) => Until::Pass,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = self.jobs.map_or(cores, usize::from);
        let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
        let tallies = campaign(root, &binary, &self.scenarios, until, seed, jobs)?;
        Ok(tallies.iter().all(|tally| tally.failures.is_empty()))
    }
}

/// Runs a short campaign with the same choices each time. Returns the scenarios skipped, and whether all checks held.
///
/// # Errors
///
/// As [`Chaos::run`].
pub fn short(root: &Path, binary: &Path) -> Result<(Vec<String>, bool)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Trials wait for the disk most of their time, so there are more jobs than cores.
    let tallies = campaign(root, binary, &[], Until::Kills(10), 1, 2 * cores)?;
    let skipped =
        tallies.iter().filter_map(|tally| Some(format!("chaos {}: {}", tally.name, tally.skipped.as_ref()?)));
    Ok((skipped.collect(), tallies.iter().all(|tally| tally.failures.is_empty())))
}

/// Runs scenarios, all if none is named, and prints the findings.
fn campaign(
    root: &Path,
    binary: &Path,
    names: &[String],
    until: Until,
    seed: u64,
    jobs: usize,
) -> Result<Vec<Tally>> {
    if !binary.is_file() {
        bail!("{} is no program", binary.display());
    }
    println!("{}, seed {seed}, {jobs} jobs", binary.display());
    let bench = Bench::new(root, binary)?;
    let wanted = SCENARIOS
        .iter()
        .filter(|scenario| names.is_empty() || names.iter().any(|name| name == scenario.name));
    let (mut able, mut skipped) = (Vec::new(), Vec::new());
    for scenario in wanted {
        let ready = scenario
            .run
            .ok_or_else(|| "only on Linux".to_owned())
            .and_then(|run| (run.ready)(&bench).map(|()| run));
        match ready {
            Ok(run) => able.push((scenario, run)),
            Err(why) => skipped.push(Tally { skipped: Some(why), ..Tally::of(scenario.name) }),
        }
    }
    let mut tallies = Campaign { bench: &bench, seed, until, scenarios: able }.run(jobs)?;
    tallies.extend(skipped);
    print!("{}", report(&tallies));
    println!("what must hold: {ALWAYS}");
    Ok(tallies)
}

/// Prints the table of scenarios.
fn list() {
    println!("in all of them: {ALWAYS}\n");
    for scenario in SCENARIOS {
        println!("{:<14} {}", scenario.name, scenario.does);
        if !scenario.holds.is_empty() {
            println!("{:<14} … {}", "", scenario.holds);
        }
    }
}
