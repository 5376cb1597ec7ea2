//! `abide bench` and `abide evaluate`.

mod cases;
mod chip;
mod evaluate;
mod features;
mod functions;
mod gas;
mod helpers;
mod labels;
mod multigrid;
mod planner;
mod portable;
mod programs;
mod record;
mod roofline;
mod rows;
mod runs;
mod scaling;
mod search;
mod solvers;
mod stencils;
mod table;

use std::path::PathBuf;

use abide::backend::{self, Kind, Opened};
use abide::io::{Staged, Targets};
use abide::{Choice, Error, Result};
use abide_console::{Ended, Ending, once, print, print_report};
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

pub use evaluate::Evaluate;

/// The arguments of `bench`.
#[derive(Args)]
pub struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Time the linear stencils, set their rates against the hardware's limits, and compare the results to
    /// the bit
    Stencils(Box<stencils::Stencils>),
    /// Time small domains, models and stencils that a chip can hold, and compare the results to the bit
    Chip(chip::Chip),
    /// Time properties of real-gas mixtures, and hold them to the CPU's
    Gas(gas::Gas),
    /// Time the planner's choice against every other execution, cache policy and depth, on problems of all kinds
    Planner(planner::Planner),
    /// Time stencils with one feature more: a scalar, a boundary, a source, probes, a reduction
    Features(features::Features),
    /// Time whole programs with their stages by themselves and in groups, and compare the results to the bit
    Programs(programs::Programs),
    /// Time iterations of the solvers on matrices of several kinds and sizes, and check their solutions
    Solvers(Box<solvers::Solvers>),
    /// Count and time the iterations of both multigrids on diffusion problems of every kind
    Multigrid(multigrid::Multigrid),
    /// Time several steps at once against one, on wgpu and the CPU, and hold the results to the CPU's
    Portable(portable::Portable),
    /// Search for the groups of a program's loops that move the fewest bytes when each becomes one kernel
    Search(search::Search),
    /// Time the elementary functions, beside the platform's own
    Functions(functions::Functions),
    /// Time stencils on several devices beside one, and compare the results to the bit
    Scaling(scaling::Scaling),
    /// Draw the roofline of results that --csv wrote
    Roofline(Roofline),
}

impl Bench {
    /// Measures or draws.
    pub fn execute(&self) -> Ended {
        match &self.what {
            What::Stencils(args) => args.execute(),
            What::Chip(args) => args.execute(),
            What::Gas(args) => args.execute(),
            What::Planner(args) => args.execute(),
            What::Features(args) => args.execute(),
            What::Programs(args) => args.execute(),
            What::Solvers(args) => args.execute(),
            What::Multigrid(args) => args.execute(),
            What::Portable(args) => args.execute(),
            What::Search(args) => args.execute(),
            What::Functions(args) => args.execute(),
            What::Scaling(args) => args.execute(),
            What::Roofline(args) => args.execute(),
        }
    }
}

/// Returns the backend to be measured, with notes on the backends passed over: the one asked for, or the
/// first that is present, is no software driver and lacks nothing.
fn choose(choice: Choice, lacks: impl Fn(&Opened) -> Option<&'static str>) -> Result<(Opened, Vec<String>)> {
    let names = match choice {
        Choice::Named(name) => return Ok((backend::open(name)?, Vec::new())),
        Choice::Auto => backend::names(),
    };
    let mut notes = Vec::new();
    for name in names {
        match backend::open(name) {
            Ok(opened) if opened.kind == Kind::Software => {
                notes.push(format!("auto: {name} has a software driver only"));
            }
            Ok(opened) => match lacks(&opened) {
                Some(what) => notes.push(format!("auto: {name} {what}")),
                None => return Ok((opened, notes)),
            },
            Err(error @ Error::Unavailable { .. }) => notes.push(format!("auto: {error}")),
            Err(error) => return Err(error),
        }
    }
    Err(Error::Unavailable { backend: "auto", reason: notes.join("; ") })
}

/// Draws how many of the rows are done, on a terminal only.
fn progress_bar(rows: usize) -> ProgressBar {
    let bar = ProgressBar::new(rows as u64);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len}  {msg}  {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// The arguments of `bench roofline`.
#[derive(Args)]
struct Roofline {
    /// Results of `abide bench stencils --csv` on one device
    #[arg(required = true, value_name = "FILE.csv")]
    results: Vec<PathBuf>,

    /// The picture
    #[arg(long, value_name = "FILE.svg")]
    output: PathBuf,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Roofline {
    fn execute(&self) -> Ended {
        once("results", self.results.iter().map(|path| path.display()))?;
        let mut targets = Targets::default();
        targets.output(&self.output);
        self.results.iter().for_each(|path| targets.input(path, Vec::new()));
        targets.check()?;
        let records =
            self.results.iter().map(|path| record::read::<record::Line>(path)).collect::<Result<Vec<_>>>()?;
        let mut marks = Vec::new();
        for (record, path) in records.iter().zip(&self.results) {
            if record.machine.device != records[0].machine.device {
                let message =
                    format!("its device is {}, not {}", record.machine.device, records[0].machine.device);
                return Err(Error::file(path, message, "draw the results of one device").into());
            }
            // An error in a line of a file is no error of the arguments.
            let of = |line| {
                roofline::Mark::of(line).map_err(|e| Error::file(path, e, "mend the line or leave it out"))
            };
            marks.extend(record.lines.iter().map(of).collect::<Result<Vec<_>>>()?);
        }
        let svg = roofline::draw(&records[0].machine, &marks)?;
        write(&self.output, &svg)?;
        if self.json {
            return print_report(&json!({ "files": [&self.output] }), Ok(()));
        }
        Ok(print(&format!("wrote {}\n", self.output.display()))?)
    }
}

/// Returns whether an error says that the backend cannot run a problem, as one of a type that its device does not
/// have; that is no fault.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Unsupported { .. })
}

/// Returns why a problem has no rate.
fn reason(error: &Error) -> String {
    format!("{}: {error}", if is_refusal(error) { "refused" } else { "FAILED" })
}

/// Returns the ending of a benchmark by whether its results hold.
fn judge(hold: bool) -> Ended {
    if hold {
        Ok(())
    } else {
        Err(Ending::refuted("what was measured is not right, or could not be measured"))
    }
}

/// Writes a text to a file, replacing it as a whole.
fn write(path: &std::path::Path, text: &str) -> Result<()> {
    use std::io::Write;
    Staged::new(path)?.fill(|out| out.write_all(text.as_bytes()))?.commit()
}
