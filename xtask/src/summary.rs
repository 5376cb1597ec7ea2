//! Counts of the test runners' results, and the table at the end.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// The results that the test runners of one or more programs reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
    /// Tests that are marked to be ignored.
    pub ignored: u64,
    /// Backends or tools that were absent, each once: `name: reason`.
    pub skipped: Vec<String>,
}

impl Counts {
    /// Takes one line of a runner's output into account.
    pub fn read(&mut self, line: &str) {
        if let Some(results) = line.trim_start().strip_prefix("test result: ") {
            let count = |what: &str| {
                let words: Vec<&str> =
                    results.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
                words
                    .windows(2)
                    .find(|pair| pair[1] == what)
                    .and_then(|pair| pair[0].parse().ok())
                    .unwrap_or(0u64)
            };
            self.passed += count("passed");
            self.failed += count("failed");
            self.ignored += count("ignored");
        }
        if let Some((_, skipped)) = line.split_once("skipped: ")
            && !self.skipped.iter().any(|known| known == skipped)
        {
            self.skipped.push(skipped.to_owned());
        }
    }

    fn add(&mut self, other: &Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        for skipped in &other.skipped {
            if !self.skipped.contains(skipped) {
                self.skipped.push(skipped.clone());
            }
        }
    }
}

/// One step of a task and its outcome.
#[derive(Debug, Clone)]
pub struct Step {
    /// The name.
    pub name: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// The time it took.
    pub time: Duration,
    /// The results that its test runners reported.
    pub counts: Counts,
}

/// Formats the table of all steps; the last line is `N passed, N failed`.
///
/// A step that failed without a failing test (a lint, a build, a crash) counts as one failure, so that the
/// last line never says 0 failed of a task that failed.
pub fn summary(steps: &[Step]) -> String {
    let mut text = String::from("\n");
    let mut all = Counts::default();
    for step in steps {
        let verdict = if step.ok { "ok" } else { "FAILED" };
        let tests = match &step.counts {
            Counts { passed: 0, failed: 0, .. } => String::new(),
            counts => format!("{} passed, {} failed", counts.passed, counts.failed),
        };
        let line = format!("{:<28} {:>7.1} s  {verdict:<7}{tests}", step.name, step.time.as_secs_f64());
        let _ = writeln!(text, "{}", line.trim_end());
        all.add(&step.counts);
        if !step.ok && step.counts.failed == 0 {
            all.failed += 1;
        }
    }
    if all.ignored > 0 {
        let _ = writeln!(text, "{} ignored", all.ignored);
    }
    for skipped in &all.skipped {
        let _ = writeln!(text, "skipped: {skipped}");
    }
    let _ = writeln!(text, "{} passed, {} failed", all.passed, all.failed);
    text
}

/// Runs a command, shows its output and counts the test results in it.
pub fn counted(command: &mut Command, counts: &mut Counts) -> Result<bool> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start the tests")?;
    let Some(output) = child.stdout.take() else { bail!("the tests have no output") };
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("cannot read the tests' output")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        counts.read(&line);
    }
    Ok(child.wait().context("the tests were interrupted")?.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_are_counted() {
        let mut counts = Counts::default();
        counts.read(
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.00s",
        );
        counts.read("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        counts.read("test a ... ok");
        for _ in 0..2 {
            counts.read("skipped: cuda: no driver");
        }
        assert_eq!(
            counts,
            Counts { passed: 15, failed: 2, ignored: 1, skipped: vec!["cuda: no driver".to_owned()] }
        );
    }

    #[test]
    fn a_failed_step_without_tests_is_a_failure() {
        let step = |ok, counts| Step { name: "lints".to_owned(), ok, time: Duration::ZERO, counts };
        let tests = Counts { passed: 4, ..Counts::default() };
        assert!(
            summary(&[step(false, Counts::default()), step(true, tests.clone())])
                .ends_with("\n4 passed, 1 failed\n")
        );
        assert!(summary(&[step(true, tests)]).ends_with("\n4 passed, 0 failed\n"));
    }
}
