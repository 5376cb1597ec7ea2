//! `abide bench gas`.

use abide::Fuse;
use abide::{Error, Execution, Result};
use abide_console::{Ended, Ending};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::cases::{Cases, Item, Measured};
use super::record::{Columns, significant};
use crate::{GasCase, Wanted, Way, measure_gas};

const EXAMPLES: &str = "\
Examples:
  abide bench gas --csv gas.csv
  abide bench gas --backend cpu --points 131072 --only 10
  abide bench gas --backend cuda --only slides
  abide bench gas --backend cuda --points 4194304 --only 53 dense loops,jammed-4-shared

Density, enthalpy, heat capacity, speed of sound, viscosity and conductivity of mixtures of 10, 33 and 53 species at random \
states, without interaction parameters (kij zero) and with those of all pairs (kij dense), with sums over species written out \
(straight-line), and as loops, which a CPU does not keep, of one point or of several (jammed). Points that share loops, \
turns of double sums that do, and where tables lie are the planner's choice (loops, jammed), or as the word says \
(loops-constant, jammed-4-shared, loops-rows-8-shared; one turn after another without -rows). A rate is the median of \
runs over all points, ms the time of one pass over them. Some of the results are compared with the CPU's.

The case slides is no mixture: a kernel that stores a result for each pair of 64 species, whose bits must be the CPU's.";

/// The arguments of `bench gas`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Gas {
    #[command(flatten)]
    cases: Cases,

    /// Points that are computed at once [default: 1048576; 245760 of slides]
    #[arg(long, value_name = "N")]
    points: Option<usize>,
}

/// The rate of a mixture's properties.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    case: String,
    species: usize,
    kij: String,
    dtype: String,
    /// How sums over species become instructions.
    lowering: String,
    /// How components lie in memory.
    layout: String,
    points_per_s: f64,
    share_of_f64_peak: Option<f64>,
    registers: Option<usize>,
    spill_bytes: Option<usize>,
}

impl Columns for Line {
    const NAMES: &'static [&'static str] = &[
        "case",
        "species",
        "kij",
        "dtype",
        "lowering",
        "layout",
        "points_per_s",
        "share_of_f64_peak",
        "registers",
        "spill_bytes",
    ];
    const COMMAND: &'static str = "abide bench gas";

    fn words(&self) -> [String; 4] {
        [self.case.clone(), self.species.to_string(), self.kij.clone(), self.lowering.clone()]
    }
}

/// Each component is a field of its own.
const LAYOUT: &str = "SoA";

fn words(case: &GasCase) -> [String; 4] {
    let kij = match case.is_interacting {
        Some(true) => "dense",
        Some(false) => "zero",
        None => "-",
    };
    [case.name().to_owned(), case.species.to_string(), kij.to_owned(), case.way()]
}

impl Gas {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        if self.points == Some(0) {
            return Err(Ending::usage(Error::limit("--points", 0, "1 at least", "give more")));
        }
        let header = format!(
            "{:<12}{:>8}{:>7}{:>24}{:>8}{:>14}{:>10}{:>7}{:>9}{:>11}{:>7}\n",
            "case",
            "species",
            "kij",
            "lowering",
            "layout",
            "points/s",
            "ms",
            "± %",
            "of peak",
            "registers",
            "spill"
        );
        let cases = GasCase::all()?;
        let item = |case: &GasCase| -> Result<Item> {
            let way = Way { fuse: Fuse::Auto, execution: Execution::Stepwise };
            Ok(Item {
                problem: case.problem(self.points.unwrap_or_else(|| case.points()))?,
                way,
                words: words(case),
            })
        };
        let items = cases.iter().map(item).collect::<Result<Vec<_>>>()?;
        let of = |item: &Item| cases.iter().find(|case| words(case) == item.words);
        let wanted = |opened: &_, item: &Item| {
            let options = of(item).map_or_else(|| item.way.options(), GasCase::options);
            Wanted::of(opened, &item.problem, &[options])
        };
        let measured = |opened: &_, item: &Item, settings: &_| {
            let case = of(item)
                .ok_or_else(|| Error::unknown("case", item.words.join(" "), ["properties", "slides"]))?;
            let row = measure_gas(opened, case, &item.problem, settings)?;
            let [registers, spill_bytes] = [0, 1].map(|number| row.compiled.map(|compiled| compiled[number]));
            let line = Line {
                case: case.name().to_owned(),
                species: case.species,
                kij: item.words[2].clone(),
                dtype: item.problem.dtype.to_string(),
                lowering: item.words[3].clone(),
                layout: LAYOUT.to_owned(),
                points_per_s: significant(row.points_per_s),
                share_of_f64_peak: row.share_of_f64_peak.map(significant),
                registers,
                spill_bytes,
            };
            let or_dash =
                |value: Option<usize>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
            let share =
                line.share_of_f64_peak.map_or_else(|| "-".to_owned(), |s| format!("{:.1} %", 100.0 * s));
            let text = format!(
                "{:<12}{:>8}{:>7}{:>24}{:>8}{:>14.4e}{:>10.3}{:>7.1}{share:>9}{:>11}{:>7}\n",
                line.case,
                line.species,
                line.kij,
                line.lowering,
                line.layout,
                row.points_per_s,
                1e3 * item.problem.shape.cells() as f64 / row.points_per_s,
                row.spread_percent,
                or_dash(registers),
                or_dash(spill_bytes),
            );
            Ok(Measured { line, text, faults: row.faults })
        };
        self.cases.execute(items, &header, wanted, measured, |lines| format!("\nrows: {}\n", lines.len()))
    }
}
