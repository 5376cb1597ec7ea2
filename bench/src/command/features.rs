//! `abide bench features`.

use std::collections::HashMap;

use abide_console::Ended;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::cases::{Cases, Item, Measured, Work};
use super::record::{Columns, significant};
use crate::{FeatureCase, Wanted, Way, measure_feature};
use abide::program::Problem;
use abide::{Execution, Fuse};

const EXAMPLES: &str = "\
Examples:
  abide bench features --only gray-scott f32
  abide bench features --csv features.csv --append
  abide bench features --backend cpu --only heat-small f64

Stencils as they are (none), with a launch per stage (none-stepwise), and with one feature more. A time per step is the \
median of runs from the same random fields, by the clock on the wall. Fields, scalars and rows after 41 steps are compared to \
the bit with those of a launch per stage. The factor is the time over that of the stencil without the feature; a maximum is \
held to a launch per stage without it.";

/// The arguments of `bench features`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Features {
    #[command(flatten)]
    cases: Cases,
}

/// The time of a step with a feature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    stencil: String,
    domain: String,
    dtype: String,
    feature: String,
    us_per_step: f64,
    factor: Option<f64>,
    estimated_us: f64,
    depth: u32,
    spread_percent: f64,
}

impl Columns for Line {
    const NAMES: &'static [&'static str] = &[
        "stencil",
        "domain",
        "dtype",
        "feature",
        "us_per_step",
        "factor",
        "estimated_us",
        "depth",
        "spread_percent",
    ];
    const COMMAND: &'static str = "abide bench features";

    fn words(&self) -> [String; 4] {
        [&self.stencil, &self.domain, &self.dtype, &self.feature].map(String::clone)
    }
}

/// A case and its problem.
struct Featured {
    case: FeatureCase,
    problem: Problem,
}

impl Work for Featured {
    fn cells(&self) -> usize {
        self.problem.shape.cells()
    }

    fn problem(&self) -> Option<&Problem> {
        Some(&self.problem)
    }
}

impl Features {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        let header = format!(
            "{:<11}{:>12}{:>5}  {:<19}{:>11}{:>8}{:>7}{:>11}  plan\n",
            "stencil", "domain", "type", "feature", "us a step", "factor", "± %", "planned"
        );
        let way = Way { fuse: Fuse::Auto, execution: Execution::Auto };
        let mut items = Vec::new();
        for case in FeatureCase::all() {
            let problem = case.problem()?;
            items.push(Item { words: case.words(), problem: Featured { case, problem }, way });
        }
        let mut without: HashMap<[String; 4], f64> = HashMap::new();
        let measured = |opened: &_, item: &Item<Featured>, settings: &_| {
            let Featured { case, problem } = &item.problem;
            let row = measure_feature(opened, problem, &case.options(), settings)?;
            let [stencil, domain, dtype, feature] = item.words.clone();
            without.insert(item.words.clone(), row.us_per_step);
            let factor = without.get(&case.beside().words()).map(|without| row.us_per_step / without);
            let shown = factor.map_or_else(|| "-".to_owned(), |factor| format!("{factor:.2}"));
            let text = format!(
                "{stencil:<11}{domain:>12}{dtype:>5}  {feature:<19}{:>11.2}{shown:>8}{:>7.1}{:>11.2}  {}\n",
                row.us_per_step, row.spread_percent, row.estimated_us, row.plan
            );
            let line = Line {
                stencil,
                domain,
                dtype,
                feature,
                us_per_step: significant(row.us_per_step),
                factor: factor.map(significant),
                estimated_us: significant(row.estimated_us),
                depth: row.depth,
                spread_percent: (100.0 * row.spread_percent).round() / 100.0,
            };
            Ok(Measured { line, text, faults: row.faults })
        };
        let wanted = |opened: &_, item: &Item<Featured>| {
            Wanted::of(opened, &item.problem.problem, &[item.problem.case.options()])
        };
        self.cases.execute(items, &header, wanted, measured, |lines| format!("\nrows: {}\n", lines.len()))
    }
}
