//! The findings of a campaign.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

/// A trial in which a check failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The folder with the trial's remains.
    pub folder: PathBuf,
    /// The checks that failed.
    pub what: Vec<String>,
    /// The command lines started, for a shell.
    pub lines: Vec<OsString>,
}

/// The tally of a scenario.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub name: &'static str,
    pub runs: u64,
    pub kills: u64,
    /// Temporary files that kills left.
    pub left: u64,
    /// Ends because the system refused a little memory.
    pub starved: u64,
    pub failures: Vec<Failure>,
    /// The reason why the scenario was not run.
    pub skipped: Option<String>,
}

impl Tally {
    /// Makes an empty tally.
    pub fn of(name: &'static str) -> Tally {
        Tally { name, ..Tally::default() }
    }

    /// Adds the tally of one trial.
    pub fn add(&mut self, other: Tally) {
        self.runs += other.runs;
        self.kills += other.kills;
        self.left += other.left;
        self.starved += other.starved;
        self.failures.extend(other.failures);
    }
}

/// Number of failures per scenario that are listed with their command lines; of others only the folders are
/// listed.
const LISTED: usize = 5;

/// Formats the findings: the failures with the lines that repeat them, and a table.
pub fn report(tallies: &[Tally]) -> String {
    let mut text = String::new();
    for tally in tallies {
        for failure in tally.failures.iter().take(LISTED) {
            let _ = writeln!(text, "\n{}: {}", tally.name, failure.what.join("\n  and "));
            for line in &failure.lines {
                let _ = writeln!(
                    text,
                    "  {}",
                    line.display().to_string().escape_debug().to_string().replace("\\'", "'")
                );
            }
            let _ = writeln!(text, "  kept: {}", failure.folder.display());
        }
        for failure in tally.failures.iter().skip(LISTED) {
            let _ = writeln!(
                text,
                "\n{}: also {}: {}",
                tally.name,
                failure.folder.display(),
                failure.what.join("; ")
            );
        }
    }
    let _ =
        writeln!(text, "\n{:<14} {:>7} {:>7} {:>7} {:>7}", "scenario", "trials", "kills", "held", "failed");
    for tally in tallies {
        let failed = tally.failures.len() as u64;
        let (name, runs, kills) = (tally.name, tally.runs, tally.kills);
        let _ = match &tally.skipped {
            Some(why) => write!(text, "{name:<14} skipped: {why}"),
            None => write!(text, "{name:<14} {runs:>7} {kills:>7} {:>7} {failed:>7}", runs - failed),
        };
        if tally.left > 0 {
            let _ = write!(text, "  {} temporary files left by kills", tally.left);
        }
        if tally.starved > 0 {
            let _ = write!(text, "  {} starved", tally.starved);
        }
        text.push('\n');
    }
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let (runs, kills) = (sum(|tally| tally.runs), sum(|tally| tally.kills));
    let failed = sum(|tally| tally.failures.len() as u64);
    let _ = writeln!(text, "{runs} trials, {kills} kills, {failed} failed");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_come_with_what_repeats_them() {
        let failure = Failure {
            folder: "/t/kill-3".into(),
            what: vec!["u.npy is half".into()],
            lines: vec!["( cd /t )".into()],
        };
        let failed = Tally { runs: 4, kills: 7, left: 2, failures: vec![failure], ..Tally::of("kill") };
        let skipped = Tally { skipped: Some("no mounts".into()), ..Tally::of("full-disk") };
        let text = report(&[failed, skipped]);
        for part in [
            "kill: u.npy is half",
            "( cd /t )",
            "kept: /t/kill-3",
            "full-disk      skipped: no mounts",
            "2 temporary",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(text.ends_with("4 trials, 7 kills, 1 failed\n"));
    }
}
