//! `abide bench chip`.

use abide::Options;
use abide_console::Ended;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::cases::{Cases, Item, Measured};
use super::record::{Columns, significant};
use crate::{Case, Row, Wanted, measure, stepwise};

const EXAMPLES: &str = "\
Examples:
  abide bench chip --only 2d5pt f32
  abide bench chip --csv chip.csv --append
  abide bench chip --backend wgpu --quick

Small domains of 2d5pt and 3d7pt, models of 512x512 to 1536x1536, and the thirteen stencils on 2304x2304 or 128x192x256. \
Every cell of the domain counts once a step. A rate is the median of the runs from the same random values, verified as \
`abide bench stencils` does: a few steps with the CPU's, all runs with each other, and with a launch per step.";

/// The arguments of `bench chip`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Chip {
    #[command(flatten)]
    cases: Cases,
}

/// A rate on a domain that a chip can hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    problem: String,
    domain: String,
    dtype: String,
    boundary: String,
    execution: String,
    gcells_per_s: f64,
    spread_percent: f64,
}

impl Columns for Line {
    const NAMES: &'static [&'static str] =
        &["problem", "domain", "dtype", "boundary", "execution", "gcells_per_s", "spread_percent"];
    const COMMAND: &'static str = "abide bench chip";

    fn words(&self) -> [String; 4] {
        [&self.problem, &self.domain, &self.dtype, &self.boundary].map(String::clone)
    }
}

impl Line {
    fn of(row: &Row) -> Line {
        let [problem, domain, dtype, boundary] = row.words();
        Line {
            problem,
            domain,
            dtype,
            boundary,
            execution: row.execution.to_string(),
            gcells_per_s: significant(row.gcells_per_s),
            spread_percent: (100.0 * row.spread_percent).round() / 100.0,
        }
    }
}

impl Chip {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        let header = format!(
            "{:<18}{:>12}{:>5}{:>10}{:>10}{:>7}  plan\n",
            "problem", "domain", "type", "boundary", "GCells/s", "± %"
        );
        let measured = |opened: &_, item: &Item, settings: &_| {
            let row = measure(opened, &item.problem, settings)?;
            let line = Line::of(&row);
            let text = format!(
                "{:<18}{:>12}{:>5}{:>10}{:>10.2}{:>7.1}  {}\n",
                line.problem,
                line.domain,
                line.dtype,
                line.boundary,
                row.gcells_per_s,
                row.spread_percent,
                row.plan
            );
            Ok(Measured { line, text, faults: row.checked.map(|checked| checked.faults).unwrap_or_default() })
        };
        let wanted =
            |opened: &_, item: &Item| Wanted::of(opened, &item.problem, &[Options::default(), stepwise()]);
        self.cases.execute(Item::of(&Case::chip()?)?, &header, wanted, measured, |lines| {
            format!("\nrows: {}\n", lines.len())
        })
    }
}
