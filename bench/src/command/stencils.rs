//! `abide bench stencils`.

use std::path::PathBuf;
use std::str::FromStr;

use abide::catalogue;
use abide::io::Targets;
use abide::program::Problem;
use abide::{Boundaries, Boundary, Choice, DType, Error, Result, Shape};
use abide_console::RunOptions;
use abide_console::{Ended, Ending, print, print_report};
use clap::Args;
use serde_json::json;

use super::helpers::{is_helper, serve, with_helpers};
use super::record::{Columns as _, Line, Machine};
use super::rows::Rows;
use super::runs::Runs;
use super::{choose, is_refusal, judge, progress_bar, reason, roofline, table};
use crate::{Check, Domain, Row, STENCILS, Settings, Wanted, measure, problem, stepwise, words};

const EXAMPLES: &str = "\
Examples:
  abide bench stencils
  abide bench stencils --stencil 2d5pt 3d7pt --dtype f64 --domains all --baseline
  abide bench stencils --stencil 2d5pt --size 3072x3072 --cache registers --steps 1000
  abide bench stencils --csv results.csv --plot roofline.svg
  abide bench stencils --stencil 2d5pt --domains large --boundary fixed,mirror --csv r.csv --append

Domains, two axes and three: on-chip 2304x2304 and 128x192x256, large 8352x8352 and 512x512x512; unfriendly, of \
extents that no tile divides, 2311x2297 and 127x193x251, 8191x8209 and 509x521x503.

Every cell of the domain counts once a step. A rate is the median of the runs, ± the one farthest from it. Ceiling: a \
multiply-add a point at the device's peak. Peak: what the plan projects from the device's bandwidths.

Each run begins from the same random values. Afterwards, --verify full compares all cells: a few steps with the CPU's, \
all timed runs with each other, and the state they left with that of a launch per step (--execution stepwise). A \
difference is told below the row, and the command fails.";

/// The arguments of `bench stencils`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Stencils {
    /// auto, cpu, wgpu or cuda; auto takes CUDA, else a hardware adapter of wgpu, else the CPU
    #[arg(long, default_value = "auto")]
    backend: Choice,

    /// The stencils [default: the thirteen of two and three axes in `abide list`]
    #[arg(long = "stencil", value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    stencils: Vec<String>,

    /// f32 or f64 [default: both]
    #[arg(long = "dtype", num_args = 1.., value_delimiter = ',')]
    dtypes: Vec<DType>,

    /// on-chip, large, unfriendly or all [default: on-chip,large]
    #[arg(long, num_args = 1.., value_delimiter = ',', conflicts_with = "sizes")]
    domains: Vec<Domains>,

    /// Extents instead of those domains, slowest axis first, as in 3072x3072
    #[arg(long = "size", value_name = "NxN", num_args = 1.., value_delimiter = ',')]
    sizes: Vec<Shape>,

    /// Boundaries at all sides: fixed, periodic, mirror, clamp, constant=C, … [default: fixed]
    #[arg(long = "boundary", value_name = "KIND", num_args = 1.., value_delimiter = ',')]
    boundaries: Vec<Boundary>,

    /// Steps of a timed run [default: as many as take 0.3 s, 100 at least]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,

    #[command(flatten)]
    runs: Runs,

    /// Time a launch per step too, and print by what factor the plan is faster
    #[arg(long)]
    baseline: bool,

    #[command(flatten)]
    run_options: RunOptions,

    /// What to compare after timing: full, sampled (the CPU's few steps alone) or off
    #[arg(long, default_value = "full")]
    verify: Check,

    /// Print as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    rows: Rows,

    /// A file for the roofline
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

/// One word of `--domains`.
#[derive(Clone)]
struct Domains(Vec<Domain>);

impl FromStr for Domains {
    type Err = Error;

    fn from_str(text: &str) -> Result<Domains> {
        Ok(Domains(match text {
            "all" => Domain::ALL.to_vec(),
            "unfriendly" => vec![Domain::UnfriendlyOnChip, Domain::UnfriendlyLarge],
            name => {
                let known = Domain::ALL.iter().map(|domain| domain.name()).chain(["unfriendly", "all"]);
                vec![name.parse().map_err(|_| Error::unknown("domain", name, known))?]
            }
        }))
    }
}

/// A problem without a rate.
struct Missing {
    problem: Problem,
    error: Error,
}

/// The results of the problems so far.
struct Results {
    machine: Machine,
    settings: Settings,
    /// The lines that the file has already.
    kept: Vec<Line>,
    rows: Vec<Row>,
    missing: Vec<Missing>,
}

impl Stencils {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        let settings = self.settings().map_err(Ending::usage)?;
        let problems = self.problems().map_err(Ending::usage)?;
        let mut targets = Targets::default();
        self.rows.target(&mut targets);
        self.plot.iter().for_each(|path| targets.output(path));
        targets.check()?;
        let (opened, notes) = choose(self.backend, |_| None)?;
        let options = [settings.options, stepwise()];
        let wanted = |problem: &Problem| Wanted::of(&opened, problem, &options);
        if is_helper() {
            let problems: Vec<&Problem> = problems.iter().collect();
            serve(&opened, &problems, |number| wanted(problems[number]));
            return Ok(());
        }
        let machine = Machine::of(&opened);
        let kept: Vec<Line> = self.rows.kept(&machine)?;
        let mut results = Results { machine, settings, kept, rows: Vec::new(), missing: Vec::new() };
        if !self.json {
            print(&results.title(&notes))?;
            print(&table::header(self.baseline))?;
        }
        let is_kept = |problem: &&Problem| results.kept.iter().any(|line| line.words() == words(problem));
        let rows: Vec<(usize, &Problem)> =
            problems.iter().enumerate().filter(|(_, problem)| !is_kept(problem)).collect();
        let bar = progress_bar(rows.len());
        let row = |number: usize| -> Result<(), Ending> {
            let (_, problem) = rows[number];
            bar.set_message(name_of(problem));
            match measure(&opened, problem, &settings) {
                Ok(row) => results.rows.push(row),
                Err(error) => results.missing.push(Missing { problem: problem.clone(), error }),
            }
            if !self.json {
                bar.suspend(|| print(&results.last(problem, self.baseline)))?;
            }
            let lines = results.lines();
            self.rows.write(&results.machine, &results.remarks(), &lines)?;
            bar.inc(1);
            Ok(())
        };
        with_helpers(&opened, &rows, |number| wanted(rows[number].1), row)?;
        bar.finish_and_clear();
        if let (Some(path), false) = (&self.plot, results.lines().is_empty()) {
            let marks = results.lines().iter().map(roofline::Mark::of).collect::<Result<Vec<_>>>()?;
            super::write(path, &roofline::draw(&results.machine, &marks)?)?;
        }
        let ended = judge(results.hold());
        if self.json {
            return print_report(&results.json(), ended);
        }
        print(&table::best(&results.rows))?;
        print(&results.verdict())?;
        ended
    }

    fn settings(&self) -> Result<Settings> {
        let base = if self.runs.quick { Settings::quick() } else { Settings::default() };
        let repeats = self.runs.repeats()?;
        if self.steps == Some(0) {
            return Err(Error::limit(
                "steps of a timed run",
                0,
                "at least 1",
                "give more, or leave --steps out",
            ));
        }
        let (options, check) = (self.run_options.options(), self.verify);
        Ok(Settings { options, steps: self.steps, repeats, check, baseline: self.baseline, ..base })
    }

    /// Returns the problems by stencil, type and domain, each once, even where groups of domains overlap.
    fn problems(&self) -> Result<Vec<Problem>> {
        let named: Vec<&str> = self.stencils.iter().map(String::as_str).collect();
        let stencils = if named.is_empty() { STENCILS.to_vec() } else { named };
        let dtypes = if self.dtypes.is_empty() { vec![DType::F64, DType::F32] } else { self.dtypes.clone() };
        let mut domains: Vec<Domain> = self.domains.iter().flat_map(|group| group.0.clone()).collect();
        if domains.is_empty() {
            domains = vec![Domain::OnChip, Domain::Large];
        }
        let boundaries =
            if self.boundaries.is_empty() { vec![Boundary::Fixed] } else { self.boundaries.clone() };
        let mut problems: Vec<Problem> = Vec::new();
        for stencil in stencils {
            let axes = catalogue::find(stencil)?.dimensions.clone();
            let shapes = if self.sizes.is_empty() {
                domains.iter().map(|domain| domain.shape(*axes.end())).collect::<Result<Vec<_>>>()?
            } else {
                // With all stencils, those without such a size are left out; each stencil that was asked for
                // must have it.
                let fits = |shape: &&Shape| !self.stencils.is_empty() || axes.contains(&shape.dimensions());
                self.sizes.iter().filter(fits).copied().collect()
            };
            for dtype in &dtypes {
                for (shape, boundary) in
                    shapes.iter().flat_map(|shape| boundaries.iter().map(move |own| (shape, own)))
                {
                    let mut problem = problem(stencil, *shape, *dtype)?;
                    problem.boundaries = Boundaries::all(*boundary);
                    problem.check()?;
                    let own = words(&problem);
                    if self.rows.ask_for(&own) && problems.iter().all(|known| words(known) != own) {
                        problems.push(problem);
                    }
                }
            }
        }
        if problems.is_empty() {
            let reason = "no stencil has so many axes, or no row all words of --only";
            let change = "give extents of two or three axes, and words as they stand in the table";
            return Err(Error::invalid("the rows", reason, change));
        }
        Ok(problems)
    }
}

fn name_of(problem: &Problem) -> String {
    let [stencil, domain, dtype, boundary] = words(problem);
    let boundary =
        if boundary == Boundary::Fixed.to_string() { String::new() } else { format!(" {boundary}") };
    format!("{stencil} {dtype} {domain}{boundary}")
}

impl Results {
    fn title(&self, notes: &[String]) -> String {
        self.machine.title(notes) + "\n"
    }

    /// Returns the text of the last problem's result.
    fn last(&self, problem: &Problem, baseline: bool) -> String {
        let missing = self.missing.last().filter(|missing| name_of(&missing.problem) == name_of(problem));
        match (missing, self.rows.last()) {
            (Some(missing), _) => table::missing(
                problem.program.name(),
                problem.dtype,
                &problem.shape.to_string(),
                &reason(&missing.error),
            ),
            (None, Some(row)) => table::row(row, baseline),
            (None, None) => String::new(),
        }
    }

    /// Returns the rates that the file has already, and those that no comparison found wrong.
    fn lines(&self) -> Vec<Line> {
        let measured = self.rows.iter().filter(|row| row.holds()).map(Line::of);
        self.kept.iter().cloned().chain(measured).collect()
    }

    /// Returns the file's comments. They name wrong rates, so that nobody takes them for results.
    fn remarks(&self) -> Vec<String> {
        let Settings { repeats, check, .. } = self.settings;
        let mut remarks = vec![format!("runs: {repeats}, all from the same values; verified: {check}")];
        for row in self.rows.iter().filter(|row| !row.holds()) {
            let faults =
                row.checked.iter().flat_map(|checked| checked.faults.clone()).collect::<Vec<_>>().join("; ");
            remarks.push(format!("WRONG: {} {} {}: {faults}", row.stencil, row.dtype, row.shape));
        }
        remarks.extend(
            self.missing
                .iter()
                .map(|missing| format!("{} {}", name_of(&missing.problem), reason(&missing.error))),
        );
        remarks
    }

    fn json(&self) -> serde_json::Value {
        let Settings { repeats, check, .. } = self.settings;
        let missing = self.missing.iter().map(|missing| {
            let Problem { program, dtype, shape, .. } = &missing.problem;
            let (refused, words) = (is_refusal(&missing.error), missing.error.to_string());
            json!({ "stencil": program.name(), "dtype": dtype, "shape": shape, "refused": refused, "reason": words })
        });
        let missing: Vec<_> = missing.collect();
        json!({
            "machine": self.machine, "repeats": repeats, "verify": check, "holds": self.hold(),
            "rows": self.rows, "missing": missing,
        })
    }

    /// Returns whether there is a row, every row is right, and every missing row was refused.
    fn hold(&self) -> bool {
        !(self.rows.is_empty() && self.kept.is_empty())
            && self.rows.iter().all(Row::holds)
            && self.missing.iter().all(|missing| is_refusal(&missing.error))
    }

    fn verdict(&self) -> String {
        let (rows, wrong) = (self.rows.len(), self.rows.iter().filter(|row| !row.holds()).count());
        let failed = self.missing.iter().filter(|missing| !is_refusal(&missing.error)).count();
        let mut text = match self.settings.check {
            Check::Off => format!("\n{rows} measured, not verified"),
            _ if wrong == 0 => format!("\n{rows} measured, verified in every cell ({})", self.settings.check),
            _ => format!("\n{rows} measured, {wrong} of them WRONG"),
        };
        if failed > 0 {
            text += &format!("; {failed} FAILED");
        }
        if self.missing.len() > failed {
            text += &format!("; {} refused", self.missing.len() - failed);
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::record;
    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Stencils,
    }

    fn names(line: &str) -> Vec<String> {
        let words = std::iter::once("bench").chain(line.split_whitespace());
        Line::parse_from(words).args.problems().unwrap().iter().map(name_of).collect()
    }

    #[test]
    fn stencils_types_and_domains_are_crossed() {
        let all = names("");
        assert_eq!(all.len(), 13 * 2 * 2);
        assert_eq!(all[..3], ["2d5pt f64 2304x2304", "2d5pt f64 8352x8352", "2d5pt f32 2304x2304"]);
        assert_eq!(all.last().unwrap(), "poisson f32 512x512x512");
        assert_eq!(names("--domains all").len(), 13 * 2 * 4);
        assert_eq!(names("--stencil 3d7pt --dtype f32 --domains unfriendly on-chip").len(), 3);
        // Each name counts once, however often it is asked for.
        assert_eq!(names("--stencil 3d7pt,3d7pt --dtype f32 f32 --domains large,large,all").len(), 4);
        assert_eq!(names("--size 64x64 --dtype f32").len(), 8, "the stencils of two axes");
        assert_eq!(names("--size 64x64,8x8x8 --dtype f32").len(), 13);
        assert_eq!(names("--stencil 1d3pt --size 99 --dtype f64"), ["1d3pt f64 99"]);
        let boundaries =
            names("--stencil 2d5pt --dtype f32 --size 64x64 --boundary periodic,fixed,constant=1");
        assert_eq!(boundaries, ["2d5pt f32 64x64 periodic", "2d5pt f32 64x64", "2d5pt f32 64x64 constant=1"]);
        assert_eq!(names("--only 2d5pt,3d7pt f32").len(), 2 * 2);
    }

    #[test]
    fn a_wrong_row_fails_the_command_and_is_no_result() {
        let problem = problem("2d5pt", "16x24".parse().unwrap(), DType::F64).unwrap();
        let settings = Settings { steps: Some(3), seconds: 1e-4, ..Settings::quick() };
        let row = measure(&abide::backend::open("cpu").unwrap(), &problem, &settings).unwrap();
        let mut results = Results {
            machine: Machine::default(),
            settings,
            kept: Vec::new(),
            rows: vec![row.clone(), row],
            missing: Vec::new(),
        };
        assert!(results.hold() && results.verdict().contains("2 measured, verified in every cell (full)"));
        results.rows[1].checked.as_mut().unwrap().faults.push("one cell\ndiffers".to_owned());
        assert!(!results.hold());
        assert!(results.verdict().contains("1 of them WRONG"));
        assert!(results.last(&problem, false).contains("WRONG: one cell"));
        assert_eq!(results.json()["holds"], false);
        let csv = record::text(&results.machine, &results.remarks(), &results.lines()).unwrap();
        assert_eq!(csv.lines().filter(|line| line.starts_with("2d5pt,")).count(), 1);
        assert!(csv.contains("\n# WRONG: 2d5pt f64 16x24: one cell differs\n"), "{csv}");

        results.rows.pop();
        let refused = Error::unsupported("backend wgpu", "no f64", "f32");
        results.missing.push(Missing { problem: problem.clone(), error: refused });
        assert!(results.hold() && results.verdict().contains("1 refused"));
        results.missing.push(Missing { problem, error: Error::device("cuda", "launching", "lost") });
        assert!(!results.hold() && results.verdict().contains("1 FAILED"));
    }
}
