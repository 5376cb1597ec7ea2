//! `abide bench planner`.

use std::fs::File;
use std::path::PathBuf;

use abide::{Error, Result};
use abide_console::Ended;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::cases::{Cases, Item, Measured};
use super::record::{Columns, significant};
use crate::{Case, Regret, Wanted, regret, tried};

const EXAMPLES: &str = "\
Examples:
  abide bench planner --only 2d5pt 64x64,256x256
  abide bench planner --csv planner.csv --append --plans plans.csv
  abide bench planner --backend cpu --most-cells 100000 --quick

Regret is the time of the planner's choice over that of the fastest plan: 1 where it chose best. Every execution, cache \
policy and depth that the backend has is timed once; the two fastest and the choice are then timed in turn, and the \
states that they leave are compared to the bit. The problems are those of `abide bench chip`, large domains under every \
boundary, and sixty random ones, always the same.";

/// The regret up to which the planner's choice is as good as the best.
const SLIGHT: f64 = 1.1;

/// The arguments of `bench planner`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Planner {
    #[command(flatten)]
    cases: Cases,

    /// A file for all plans that were tried, each with the planner's estimate and the time of its one run; lines are added
    /// to those that it has
    #[arg(long, value_name = "FILE.csv")]
    plans: Option<PathBuf>,
}

/// A plan that was tried.
#[derive(Serialize)]
struct Tried<'a> {
    problem: &'a str,
    domain: &'a str,
    dtype: &'a str,
    boundary: &'a str,
    plan: &'a str,
    estimated_us: f64,
    us: f64,
    recipe: String,
}

/// The times of the planner's choice and of the best plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    problem: String,
    domain: String,
    dtype: String,
    boundary: String,
    chosen: String,
    best: String,
    chosen_us: f64,
    best_us: f64,
    regret: f64,
}

impl Columns for Line {
    const NAMES: &'static [&'static str] =
        &["problem", "domain", "dtype", "boundary", "chosen", "best", "chosen_us", "best_us", "regret"];
    const COMMAND: &'static str = "abide bench planner";

    fn words(&self) -> [String; 4] {
        [&self.problem, &self.domain, &self.dtype, &self.boundary].map(String::clone)
    }
}

impl Planner {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        let header = format!(
            "{:<20}{:>12}{:>5}{:>12}{:>11}{:>11}{:>8}  plans\n",
            "problem", "domain", "type", "boundary", "chosen µs", "best µs", "regret"
        );
        let measured = |opened: &_, item: &Item, settings: &_| {
            let found = regret(opened, &item.problem, settings)?;
            self.keep(item, &found)?;
            let [name, domain, dtype, boundary] = item.words.clone();
            let ratio = found.regret();
            let plans = match found.chosen == found.best {
                true => format!("{} is the best of {}", found.chosen, found.looked.len()),
                false => format!("{}; best of {}: {}", found.chosen, found.looked.len(), found.best),
            };
            let text = format!(
                "{name:<20}{domain:>12}{dtype:>5}{boundary:>12}{:>11.2}{:>11.2}{ratio:>8.2}  {plans}\n",
                1e6 * found.chosen_seconds,
                1e6 * found.best_seconds,
            );
            let line = Line {
                problem: name,
                domain,
                dtype,
                boundary,
                chosen: found.chosen,
                best: found.best,
                chosen_us: significant(1e6 * found.chosen_seconds),
                best_us: significant(1e6 * found.best_seconds),
                regret: significant(ratio),
            };
            Ok(Measured { line, text, faults: found.faults })
        };
        let wanted =
            |opened: &_, item: &Item| Wanted { plans: tried(opened, &item.problem), any_steps: false };
        self.cases.execute(Item::of(&Case::planner()?)?, &header, wanted, measured, verdict)
    }

    /// Adds the plans that were tried to their file.
    fn keep(&self, item: &Item, found: &Regret) -> Result<()> {
        let Some(path) = &self.plans else { return Ok(()) };
        let failed = |e: &dyn std::fmt::Display| {
            Error::file(path, e.to_string(), "name a file that can be written, or leave --plans out")
        };
        let file = File::options().create(true).append(true).open(path).map_err(|e| failed(&e))?;
        let is_new = file.metadata().map_err(|e| failed(&e))?.len() == 0;
        let mut lines = csv::WriterBuilder::new().has_headers(is_new).from_writer(file);
        let [problem, domain, dtype, boundary] = &item.words;
        for looked in &found.looked {
            let recipe = looked.recipe.as_ref().and_then(|recipe| serde_json::to_string(recipe).ok());
            let line = Tried {
                problem,
                domain,
                dtype,
                boundary,
                plan: &looked.plan,
                estimated_us: significant(1e6 * looked.estimated_seconds),
                us: significant(1e6 * looked.seconds),
                recipe: recipe.unwrap_or_default(),
            };
            lines.serialize(line).map_err(|e| failed(&e))?;
        }
        lines.flush().map_err(|e| failed(&e))
    }
}

/// Returns how good all choices were, in one sentence.
fn verdict(lines: &[Line]) -> String {
    let slight = lines.iter().filter(|line| line.regret <= SLIGHT).count();
    let worst = lines.iter().max_by(|a, b| a.regret.total_cmp(&b.regret));
    let worst = worst.map_or_else(String::new, |line| {
        format!("; the largest regret: {:.2}, {}", line.regret, line.words().join(" "))
    });
    let percent = 100.0 * (SLIGHT - 1.0);
    format!("\nproblems: {}; within {percent:.0} % of the best: {slight}{worst}\n", lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_counts_and_names_the_worst() {
        let line = |domain: &str, regret: f64| Line {
            problem: "2d5pt".to_owned(),
            domain: domain.to_owned(),
            dtype: "f32".to_owned(),
            boundary: "fixed".to_owned(),
            chosen: "a".to_owned(),
            best: "b".to_owned(),
            chosen_us: regret,
            best_us: 1.0,
            regret,
        };
        let text = verdict(&[line("64x64", 1.0), line("32x32", 3.3), line("96x96", 1.1)]);
        assert_eq!(
            text,
            "\nproblems: 3; within 10 % of the best: 2; the largest regret: 3.30, 2d5pt 32x32 f32 fixed\n"
        );
        assert_eq!(verdict(&[]), "\nproblems: 0; within 10 % of the best: 0\n");
    }
}
