//! `abide bench portable`: the gain of taking several steps at once where there is no NVIDIA GPU.

use std::path::PathBuf;

use abide::backend::{self, Kind, Opened};
use abide::catalogue;
use abide::io::Targets;
use abide::program::Problem;
use abide::{Boundaries, Boundary, DType, Error, Execution, Options, Result, Tune};
use abide_console::{Ended, once, print, print_report};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use serde::Serialize;
use serde_json::json;

use super::judge;
use crate::{Check, Row, Settings, measure};

const EXAMPLES: &str = "\
Examples:
  abide bench portable
  abide bench portable --backend wgpu --tune full --csv benches/results/h200-vulkan.csv
  abide bench portable --most-cells 300000 --quick

A ratio is the rate over that of a launch per step (--execution stepwise) in the same run of the command, boundary fixed. \
Each rate is the median of the runs, and every cell of the domain counts once a step. All cells of some steps are \
compared with the CPU's, within the backend's bound, unless --verify off leaves that out.";

/// The backends that run anywhere, and what is measured on each.
const BACKENDS: [(&str, &[Case]); 2] = [("wgpu", ON_WGPU), ("cpu", ON_CPU)];

/// A stencil, its type and extents, and the target ratio.
type Case = (&'static str, DType, &'static [usize], f64);

/// Cases for a data centre's GPU over Vulkan.
const ON_WGPU: &[Case] = &[
    ("2d5pt", DType::F32, &[512, 512], 8.0),
    ("2d5pt", DType::F32, &[1024, 1024], 4.0),
    ("2d5pt", DType::F32, &[2304, 2304], 3.0),
    ("2d5pt", DType::F32, &[8192, 8192], 2.5),
    ("2d9pt", DType::F32, &[2304, 2304], 2.5),
    ("2d25pt", DType::F32, &[2304, 2304], 2.5),
    ("3d7pt", DType::F32, &[256, 256, 256], 1.6),
    ("gray-scott", DType::F32, &[1024, 1024], 3.0),
    ("2d5pt", DType::F64, &[2304, 2304], 2.0),
];

/// Cases for two cores.
const ON_CPU: &[Case] = &[
    ("2d5pt", DType::F64, &[8192, 8192], 2.6),
    ("2d5pt", DType::F64, &[2304, 2304], 1.3),
    ("2d5pt", DType::F64, &[512, 512], 1.15),
    ("3d7pt", DType::F64, &[384, 384, 384], 1.5),
    ("gray-scott", DType::F64, &[2048, 2048], 2.0),
];

/// The arguments of `bench portable`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Portable {
    /// wgpu or cpu [default: those that are here]
    #[arg(long = "backend", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    backends: Vec<String>,

    /// Leave out domains of more cells
    #[arg(long, value_name = "N")]
    most_cells: Option<usize>,

    /// Whether plans are timed first: off, kept, quick or full
    #[arg(long, default_value = "kept")]
    tune: Tune,

    /// What to compare after timing: sampled, a few steps with the CPU's (its own, on one thread: minutes on
    /// large domains), or off
    #[arg(long, default_value = "sampled", value_parser = PossibleValuesParser::new(["sampled", "off"]).try_map(|name| name.parse::<Check>()))]
    verify: Check,

    /// Short runs, for a look instead of a result to quote
    #[arg(long)]
    quick: bool,

    /// Print as JSON
    #[arg(long)]
    json: bool,

    /// A file for the table
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
}

/// A line of the file: the quoted numbers of a measurement.
#[derive(Serialize)]
struct Line<'a> {
    backend: &'a str,
    device: &'a str,
    stencil: &'a str,
    dtype: DType,
    domain: String,
    steps: u64,
    gcells_per_s: f64,
    ratio_to_one_step: f64,
}

/// A measurement, or the reason why there is none.
struct Measurement {
    backend: &'static str,
    device: String,
    problem: Problem,
    target: f64,
    row: Result<Row>,
}

impl Portable {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        once("--backend", &self.backends)?;
        let mut targets = Targets::default();
        self.csv.iter().for_each(|path| targets.rewritten(path, None));
        targets.check()?;
        let settings = self.settings();
        let mut all: Vec<Measurement> = Vec::new();
        for (name, cases) in self.backends()? {
            let opened = match backend::open(name) {
                Ok(opened) => opened,
                Err(Error::Unavailable { reason, .. }) if self.backends.is_empty() => {
                    if !self.json {
                        print(&format!("{name} is not here: {reason}\n"))?;
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if !self.json {
                print(&title(&opened))?;
            }
            for &case in cases {
                let problem = problem(case)?;
                if self.most_cells.is_some_and(|most| problem.shape.cells() > most) {
                    continue;
                }
                let row = measure(&opened, &problem, &settings);
                let device = opened.backend.device().name.clone();
                let measurement =
                    Measurement { backend: opened.backend.name(), device, problem, target: case.3, row };
                if !self.json {
                    print(&measurement.words())?;
                }
                all.push(measurement);
                if let Some(path) = &self.csv {
                    super::write(path, &csv(&all)?)?;
                }
            }
        }
        if all.is_empty() {
            let reason = "no domain is left to measure";
            return Err(Error::invalid("bench portable", reason, "give a larger --most-cells").into());
        }
        let holds = all.iter().all(Measurement::holds);
        let rows: Vec<_> = all.iter().map(Measurement::as_json).collect();
        if self.json {
            print_report(&json!({ "holds": holds, "rows": rows }), judge(holds))
        } else {
            judge(holds)
        }
    }

    fn settings(&self) -> Settings {
        let base = if self.quick { Settings::quick() } else { Settings::default() };
        // Where a backend promises a bound, a launch per step need not have the same bits; so a few steps are
        // checked against the bound instead.
        let options = Options { execution: Execution::Auto, tune: self.tune, ..Options::default() };
        Settings { options, check: self.verify, baseline: true, ..base }
    }

    fn backends(&self) -> Result<Vec<(&'static str, &'static [Case])>> {
        if self.backends.is_empty() {
            return Ok(BACKENDS.to_vec());
        }
        let find = |asked: &String| {
            let found = BACKENDS.into_iter().find(|(name, _)| name == asked);
            found.ok_or_else(|| Error::unknown("portable backend", asked, BACKENDS.map(|(name, _)| name)))
        };
        self.backends.iter().map(find).collect()
    }
}

fn problem((stencil, dtype, extents, _): Case) -> Result<Problem> {
    let program = catalogue::find(stencil)?.program(extents.len())?;
    let mut problem = Problem::new(program.into(), abide::Shape::new(extents)?, dtype)?;
    problem.boundaries = Boundaries::all(Boundary::Fixed);
    Ok(problem)
}

fn title(opened: &Opened) -> String {
    let software = if opened.kind == Kind::Software { ", a software driver" } else { "" };
    format!(
        "{}, {} ({}){software}\n\n{:<11} {:<4} {:>12} {:>8} {:>9} {:>9} {:>7} {:>7}  plan\n",
        opened.backend.device().name,
        opened.backend.name(),
        opened.backend.driver(),
        "stencil",
        "type",
        "domain",
        "steps",
        "GCells/s",
        "one step",
        "ratio",
        "target",
    )
}

impl Measurement {
    fn ratio(&self) -> Option<f64> {
        self.row.as_ref().ok()?.ratio_to_stepwise()
    }

    /// Returns whether the problem was measured and found right, or refused by name, as a type that the
    /// device does not have.
    fn holds(&self) -> bool {
        match &self.row {
            Ok(row) => row.holds(),
            Err(error) => matches!(error, Error::Unsupported { .. } | Error::Limit { .. }),
        }
    }

    fn words(&self) -> String {
        let Problem { program, dtype, shape, .. } = &self.problem;
        let begin = format!("{:<11} {dtype:<4} {:>12}", program.name(), shape.to_string());
        match &self.row {
            Ok(row) => {
                let (one, ratio) = (row.stepwise_gcells_per_s.unwrap_or(0.0), self.ratio().unwrap_or(0.0));
                let mut text = format!(
                    "{begin} {:>8} {:>9.2} {one:>9.2} {ratio:>7.2} {:>7.2}  {}\n",
                    row.steps, row.gcells_per_s, self.target, row.plan
                );
                let faults = row.checked.iter().flat_map(|checked| &checked.faults);
                faults.for_each(|fault| text += &format!("  WRONG: {fault}\n"));
                text
            }
            Err(error) => format!("{begin} {error}\n"),
        }
    }

    fn line(&self) -> Option<Line<'_>> {
        let row = self.row.as_ref().ok().filter(|row| row.holds())?;
        Some(Line {
            backend: self.backend,
            device: &self.device,
            stencil: &row.stencil,
            dtype: row.dtype,
            domain: row.shape.to_string(),
            steps: row.steps,
            gcells_per_s: row.gcells_per_s,
            ratio_to_one_step: self.ratio()?,
        })
    }

    fn as_json(&self) -> serde_json::Value {
        json!({
            "backend": self.backend,
            "device": self.device,
            "target_ratio": self.target,
            "ratio_to_one_step": self.ratio(),
            "holds": self.holds(),
            "row": self.row.as_ref().ok(),
            "error": self.row.as_ref().err().map(ToString::to_string),
        })
    }
}

/// Returns the lines that were found right.
fn csv(all: &[Measurement]) -> Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: &dyn std::fmt::Display| {
        Error::invalid("the table", error.to_string(), "report this as a defect of Abide")
    };
    for line in all.iter().filter_map(Measurement::line) {
        writer.serialize(line).map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    String::from_utf8(bytes).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_a_problem_of_the_fixed_boundary() {
        for (_, cases) in BACKENDS {
            for &case in cases {
                let problem = problem(case).unwrap();
                assert_eq!(problem.boundaries.describe(problem.shape.dimensions()), "fixed");
                assert!(problem.check().is_ok() && case.3 > 1.0);
            }
        }
    }

    #[test]
    fn a_wrong_row_is_no_line_and_fails() {
        let problem = problem(("2d5pt", DType::F64, &[16, 24], 2.0)).unwrap();
        let settings = Settings { steps: Some(3), seconds: 1e-4, baseline: true, ..Settings::quick() };
        let row = measure(&backend::open("cpu").unwrap(), &problem, &settings).unwrap();
        let mut one =
            Measurement { backend: "cpu", device: "a, b".to_owned(), problem, target: 2.0, row: Ok(row) };
        assert!(one.holds());
        let text = csv(std::slice::from_ref(&one)).unwrap();
        let begin = "backend,device,stencil,dtype,domain,steps,gcells_per_s,ratio_to_one_step\ncpu,\"a, b\",2d5pt,f64,16x24,3,";
        assert!(text.starts_with(begin), "{text}");
        if let Ok(row) = &mut one.row {
            row.checked.as_mut().unwrap().faults.push("one cell differs".to_owned());
        }
        assert!(!one.holds() && one.words().contains("WRONG: one cell differs"));
        assert_eq!(csv(&[one]).unwrap(), "");
    }
}
