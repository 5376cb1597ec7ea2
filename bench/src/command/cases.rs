//! What `bench chip`, `bench planner` and `bench programs` share: they go through a list of problems, print a row for each, and keep it in
//! a file.

use abide::backend::{self, Opened};
use abide::io::Targets;
use abide::program::Problem;
use abide::{Choice, Error, Execution, Fuse, Result};
use abide_console::{Ended, Ending, print, print_report};
use clap::Args;
use serde_json::json;

use super::helpers::{is_helper, serve, with_helpers};
use super::record::{Columns, Machine};
use super::rows::Rows;
use super::runs::Runs;
use super::{choose, is_refusal, judge, progress_bar, reason};
use crate::{Case, Settings, Wanted, Way, words};

/// The arguments.
#[derive(Args)]
pub struct Cases {
    /// auto, cpu, wgpu or cuda; auto takes CUDA, else a hardware adapter of wgpu, else the CPU
    #[arg(long, default_value = "auto")]
    backend: Choice,

    #[command(flatten)]
    rows: Rows,

    /// Leave out domains of more cells
    #[arg(long, value_name = "N")]
    most_cells: Option<usize>,

    /// Seconds of a timed run [default: 0.3; 0.05 with --quick]
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,

    #[command(flatten)]
    runs: Runs,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// What an item measures.
pub trait Work {
    /// Returns the cells of its domain.
    fn cells(&self) -> usize;

    /// Returns the problem whose kernels are compiled in advance; `None` where the kernels belong to no problem.
    fn problem(&self) -> Option<&Problem>;
}

impl Work for Problem {
    fn cells(&self) -> usize {
        self.shape.cells()
    }

    fn problem(&self) -> Option<&Problem> {
        Some(self)
    }
}

/// A problem, how it runs, and the words that name both in a table.
pub struct Item<W = Problem> {
    pub problem: W,
    pub way: Way,
    pub words: [String; 4],
}

impl Item {
    /// Returns the items of cases that run as the backend finds best.
    pub fn of(cases: &[Case]) -> Result<Vec<Item>> {
        let way = Way { fuse: Fuse::Auto, execution: Execution::Auto };
        let item = |case: &Case| {
            let problem = case.problem()?;
            Ok(Item { words: words(&problem), problem, way })
        };
        cases.iter().map(item).collect()
    }
}

/// A problem's line, how it reads, and what is wrong with it.
pub struct Measured<L> {
    pub line: L,
    pub text: String,
    pub faults: Vec<String>,
}

impl Cases {
    /// Measures the items one after the other. `wanted` names their kernels, `header` stands above the rows, and `tail`
    /// returns the summary of all lines.
    pub fn execute<L: Columns, W: Work + Sync>(
        &self,
        mut items: Vec<Item<W>>,
        header: &str,
        wanted: impl Fn(&Opened, &Item<W>) -> Wanted + Sync,
        mut measure: impl FnMut(&Opened, &Item<W>, &Settings) -> Result<Measured<L>>,
        tail: impl Fn(&[L]) -> String,
    ) -> Ended {
        let settings = self.settings().map_err(Ending::usage)?;
        let mut targets = Targets::default();
        self.rows.target(&mut targets);
        targets.check()?;
        items.retain(|item| {
            self.rows.ask_for(&item.words) && self.most_cells.is_none_or(|most| item.problem.cells() <= most)
        });
        // What helpers know is counted among the problems alone.
        items.sort_by_key(|item| item.problem.problem().is_none());
        if items.is_empty() {
            let reason = "no row has all these words";
            let change = "give words as they stand in the table: 2d5pt, 64x64, f32, fixed";
            return Err(Ending::usage(Error::invalid("--only", reason, change)));
        }
        let (opened, notes) = choose(self.backend, |_| None)?;
        if is_helper() {
            let problems: Vec<&Problem> = items.iter().filter_map(|item| item.problem.problem()).collect();
            serve(&opened, &problems, |number| wanted(&opened, &items[number]));
            return Ok(());
        }
        let machine = Machine::of(&opened);
        let mut lines: Vec<L> = self.rows.kept(&machine)?;
        let is_missing = |item: &Item<W>| lines.iter().all(|line| line.words() != item.words);
        let (numbers, items): (Vec<usize>, Vec<&Item<W>>) =
            items.iter().enumerate().filter(|(_, item)| is_missing(item)).unzip();
        let problems = numbers.into_iter().zip(&items);
        let rows: Vec<(usize, &Problem)> =
            problems.filter_map(|(number, item)| Some((number, item.problem.problem()?))).collect();
        if !self.json {
            print(&(machine.title(&notes) + "\n" + header))?;
        }
        let (mut remarks, mut holds, mut missing) = (Vec::new(), true, Vec::new());
        remarks.push(format!("runs: {} of {} s", settings.repeats, settings.seconds));
        let bar = progress_bar(items.len());
        let mut row = |number: usize| -> Result<(), Ending> {
            let item = items[number];
            let name = item.words.join(" ");
            bar.set_message(name.clone());
            let text = match measure(&opened, item, &settings) {
                Ok(Measured { line, text, faults }) if faults.is_empty() => {
                    lines.push(line);
                    text
                }
                Ok(Measured { text, faults, .. }) => {
                    holds = false;
                    remarks.push(format!("WRONG: {name}: {}", faults.join("; ")));
                    text + &faults.iter().map(|fault| format!("    WRONG: {fault}\n")).collect::<String>()
                }
                Err(error) => {
                    holds &= is_refusal(&error);
                    remarks.push(format!("{name} {}", reason(&error)));
                    let refused = is_refusal(&error);
                    missing.push(json!({ "problem": name, "refused": refused, "reason": error.to_string() }));
                    format!("{name}  {}\n", reason(&error))
                }
            };
            if !self.json {
                bar.suspend(|| print(&text))?;
            }
            self.rows.write(&machine, &remarks, &lines)?;
            bar.inc(1);
            Ok(())
        };
        with_helpers(&opened, &rows, |number| wanted(&opened, items[number]), &mut row)?;
        (rows.len()..items.len()).try_for_each(row)?;
        bar.finish_and_clear();
        let ended = judge(holds);
        if self.json {
            let reported = json!({ "machine": machine, "holds": holds, "rows": lines, "missing": missing });
            return print_report(&reported, ended);
        }
        print(&tail(&lines))?;
        ended
    }

    /// Returns the devices that the backend of choice could be asked for: its own by number, or groups of threads.
    pub fn devices(&self) -> usize {
        let counted = |name: &str| backend::count(name).unwrap_or(0);
        let found = match self.backend {
            Choice::Named(name) => counted(name),
            Choice::Auto => backend::names().map(counted).find(|&found| found > 0).unwrap_or(0),
        };
        match found {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            found => found,
        }
    }

    fn settings(&self) -> Result<Settings> {
        let base = if self.runs.quick { Settings::quick() } else { Settings::default() };
        let repeats = self.runs.repeats()?;
        let seconds = self.seconds.unwrap_or(base.seconds);
        if !(seconds > 0.0 && seconds <= 60.0) {
            return Err(Error::limit(
                "seconds of a timed run",
                seconds,
                "above 0, 60 at most",
                "give another",
            ));
        }
        Ok(Settings { repeats, seconds, ..base })
    }
}
