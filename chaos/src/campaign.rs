//! A campaign: passes over the scenarios, side by side, until it has reached its end.

use std::fs;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::scope;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fastrand::Rng;

use crate::bench::Bench;
use crate::report::{Failure, Tally};
use crate::scenarios::{Run, Scenario};
use crate::trial::Trial;

/// The end of a campaign; every scenario has at least one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// One pass.
    Pass,
    /// Passes, until the time is up.
    Time(Duration),
    /// After the pass only scenarios that kill, until this many kills.
    Kills(u64),
}

/// Interval between the lines that report the progress of a long campaign.
const REPORT_EVERY: Duration = Duration::from_secs(30);

/// A campaign under way.
pub struct Campaign<'a> {
    pub bench: &'a Bench,
    pub seed: u64,
    pub until: Until,
    /// The scenarios, with the functions that run them here.
    pub scenarios: Vec<(&'static Scenario, Run)>,
}

/// The state shared by the threads that run trials.
struct Shared {
    begun: Instant,
    reported: Instant,
    /// Number of trials handed out, by scenario.
    given: Vec<usize>,
    /// The next place in the list of a pass.
    next: usize,
    tallies: Vec<Tally>,
}

impl Campaign<'_> {
    /// Runs the campaign in `jobs` threads and returns the tally of every scenario.
    pub fn run(&self, jobs: usize) -> Result<Vec<Tally>> {
        // The trials of a pass, with the scenarios taking turns, so that no scenario has all jobs to itself.
        let most = self.scenarios.iter().map(|(scenario, _)| scenario.pass).max().unwrap_or(0);
        let turns =
            (0..most).flat_map(|turn| self.scenarios.iter().map(move |(s, _)| turn < s.pass).enumerate());
        let pass: Vec<usize> = turns.filter(|(_, has)| *has).map(|(number, _)| number).collect();
        let killing: Vec<usize> =
            pass.iter().copied().filter(|&number| self.scenarios[number].0.kills).collect();
        let now = Instant::now();
        let shared = Mutex::new(Shared {
            begun: now,
            reported: now,
            given: vec![0; self.scenarios.len()],
            next: 0,
            tallies: self.scenarios.iter().map(|(scenario, _)| Tally::of(scenario.name)).collect(),
        });
        let broken = AtomicUsize::new(0);
        scope(|threads| {
            // A thread of its own: it and the threads that it starts have file systems of their own.
            threads.spawn(|| {
                apart();
                scope(|threads| {
                    for _ in 0..jobs {
                        threads.spawn(|| self.work(&shared, &pass, &killing, &broken));
                    }
                });
            });
        });
        anyhow::ensure!(broken.into_inner() == 0, "a thread of the campaign came to grief");
        Ok(shared.into_inner().context("a thread of the campaign panicked")?.tallies)
    }

    fn work(&self, shared: &Mutex<Shared>, pass: &[usize], killing: &[usize], broken: &AtomicUsize) {
        loop {
            let Ok(mut state) = shared.lock() else {
                broken.fetch_add(1, Ordering::Relaxed);
                return;
            };
            let Some((which, number)) = self.next(&mut state, pass, killing) else { return };
            drop(state);
            let tally = self.trial(which, number);
            let Ok(mut state) = shared.lock() else { continue };
            state.tallies[which].add(tally);
            if state.reported.elapsed() > REPORT_EVERY {
                state.reported = Instant::now();
                let sum = |of: fn(&Tally) -> u64| state.tallies.iter().map(of).sum::<u64>();
                let (runs, kills, failed) =
                    (sum(|t| t.runs), sum(|t| t.kills), sum(|t| t.failures.len() as u64));
                println!(
                    "{:>6.0} s: {runs} trials, {kills} kills, {failed} failed",
                    state.begun.elapsed().as_secs_f64()
                );
            }
        }
    }

    /// Returns the next scenario and the number of its trial; `None` at the end of the campaign.
    fn next(&self, state: &mut Shared, pass: &[usize], killing: &[usize]) -> Option<(usize, usize)> {
        let turn = state.next;
        let which = if turn < pass.len() {
            pass[turn]
        } else {
            match self.until {
                Until::Time(time) if !pass.is_empty() && state.begun.elapsed() < time => {
                    pass[turn % pass.len()]
                }
                Until::Kills(kills)
                    if !killing.is_empty()
                        && state.tallies.iter().map(|tally| tally.kills).sum::<u64>() < kills =>
                {
                    killing[turn % killing.len()]
                }
                _ => return None,
            }
        };
        state.next += 1;
        let number = state.given[which];
        state.given[which] += 1;
        Some((which, number))
    }

    /// Runs one trial; its folder stays where a check failed.
    fn trial(&self, which: usize, number: usize) -> Tally {
        let (scenario, run) = &self.scenarios[which];
        let name = scenario.name;
        let folder = self.bench.folder.join(format!("{name}-{number}"));
        let mut tally = Tally { runs: 1, ..Tally::of(name) };
        // Seeded by the scenario's name, so that a trial's choices do not depend on which other scenarios
        // run.
        let seed = name.bytes().fold(self.seed.wrapping_add(number as u64), |sum, byte| {
            sum.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(byte)
        });
        let mut failures = Vec::new();
        match Trial::new(self.bench, Rng::with_seed(seed), number, folder.clone()) {
            Ok(mut trial) => {
                if let Err(error) = (run.trial)(&mut trial) {
                    trial.fail(format!("the trial itself failed: {error:#}"));
                }
                tally.kills = trial.kills;
                tally.left = trial.left;
                tally.starved = trial.starved;
                if !trial.failures.is_empty() {
                    keep_lines(&trial);
                }
                failures = trial.failures;
                tally.failures.extend((!failures.is_empty()).then(|| Failure {
                    folder: folder.clone(),
                    what: failures.clone(),
                    lines: trial.lines,
                }));
            }
            Err(error) => {
                failures.push(format!("{error:#}"));
                tally.failures.push(Failure {
                    folder: folder.clone(),
                    what: failures.clone(),
                    lines: Vec::new(),
                });
            }
        }
        if failures.is_empty() {
            // A folder that cannot be removed takes room but does no harm.
            let _ = fs::remove_dir_all(&folder);
        } else {
            println!("{name} {number}: {}", failures.join("; "));
        }
        tally
    }
}

/// Writes the command lines started, byte for byte, into the trial's folder.
fn keep_lines(trial: &Trial<'_>) {
    let written = fs::File::create(trial.folder.join("repeat.sh")).and_then(|mut file| {
        for line in &trial.lines {
            file.write_all(line.as_encoded_bytes())?;
            file.write_all(b"\n")?;
        }
        Ok(())
    });
    if let Err(error) = written {
        println!("cannot write what was started in {}: {error}", trial.folder.display());
    }
}

/// Gives this thread, and the threads that it starts, file systems that nobody else sees: a trial's mounts
/// vanish with them, however the campaign ends. Where the system refuses, nothing can be mounted either.
#[cfg(target_os = "linux")]
fn apart() {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    if unshare(CloneFlags::CLONE_NEWNS).is_ok() {
        let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        let _ = mount(None::<&str>, "/", None::<&str>, flags, None::<&str>);
    }
}

#[cfg(not(target_os = "linux"))]
fn apart() {}
