//! `abide bench programs`.

use abide_console::Ended;
use clap::Args;
use serde::{Deserialize, Serialize};

use super::cases::{Cases, Item, Measured};
use super::record::{Columns, significant};
use crate::{Case, Wanted, Way, measure_program, words};

const EXAMPLES: &str = "\
Examples:
  abide bench programs --only cloverleaf 960x960
  abide bench programs --csv programs.csv --append
  abide bench programs --backend cpu --only 960x960 off,auto

CloverLeaf in two and three dimensions from its own start, with its stages by themselves and in groups (--fuse), and as \
one persistent kernel (--execution persistent). A time \
per step is the median of runs that go on one after the other. The fields after ten steps are compared to the bit with \
those of the stages by themselves. The column of bytes through the device's memory is for a profiler's figure.";

/// The arguments of `bench programs`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Programs {
    #[command(flatten)]
    cases: Cases,
}

/// A program's time per step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    program: String,
    domain: String,
    dtype: String,
    fuse: String,
    groups: Option<f64>,
    ms_per_step: f64,
    planned_bytes_per_cell: f64,
    dram_bytes_per_cell: Option<f64>,
    spread_percent: f64,
}

impl Columns for Line {
    const NAMES: &'static [&'static str] = &[
        "program",
        "domain",
        "dtype",
        "fuse",
        "groups",
        "ms_per_step",
        "planned_bytes_per_cell",
        "dram_bytes_per_cell",
        "spread_percent",
    ];
    const COMMAND: &'static str = "abide bench programs";

    fn words(&self) -> [String; 4] {
        [&self.program, &self.domain, &self.dtype, &self.fuse].map(String::clone)
    }
}

impl Programs {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        let header = format!(
            "{:<15}{:>14}{:>5}{:>11}{:>8}{:>12}{:>7}{:>9}  plan\n",
            "program", "domain", "type", "fuse", "groups", "ms a step", "± %", "B a cell"
        );
        let mut items = Vec::new();
        for case in Case::programs()? {
            for way in Way::all() {
                let problem = case.problem()?;
                let [program, domain, dtype, _] = words(&problem);
                items.push(Item { problem, way, words: [program, domain, dtype, way.name().to_owned()] });
            }
        }
        let measured = |opened: &_, item: &Item, settings: &_| {
            let row = measure_program(opened, &item.problem, item.way, settings)?;
            let [program, domain, dtype, fuse] = item.words.clone();
            let groups = row.groups.map_or_else(|| "-".to_owned(), |groups| groups.to_string());
            let text = format!(
                "{program:<15}{domain:>14}{dtype:>5}{fuse:>11}{groups:>8}{:>12.3}{:>7.1}{:>9.0}  {}\n",
                row.ms_per_step, row.spread_percent, row.planned_bytes_per_cell, row.plan
            );
            let line = Line {
                program,
                domain,
                dtype,
                fuse,
                groups: row.groups,
                ms_per_step: significant(row.ms_per_step),
                planned_bytes_per_cell: significant(row.planned_bytes_per_cell),
                dram_bytes_per_cell: None,
                spread_percent: (100.0 * row.spread_percent).round() / 100.0,
            };
            Ok(Measured { line, text, faults: row.faults })
        };
        let wanted = |opened: &_, item: &Item| Wanted::of(opened, &item.problem, &[item.way.options()]);
        self.cases.execute(items, &header, wanted, measured, |lines| format!("\nrows: {}\n", lines.len()))
    }
}
