//! `abide bench multigrid`.

use std::fmt::Write as _;
use std::path::PathBuf;

use abide::io::Targets;
use abide::{Choice, Error};
use abide_console::{Ended, print, print_report};
use clap::Args;
use serde_json::json;

use super::record::Machine;
use super::runs::Runs;
use super::{choose, judge, progress_bar};
use crate::multigrid::{Problem, Row, TOLERANCE, problems};

const EXAMPLES: &str = "\
Examples:
  abide bench multigrid
  abide bench multigrid --size 128 --only bubbles --csv results.csv

Fourteen diffusion problems by finite volumes in f64, each solved by conjugate gradients to a residual of 1e-8 with both multigrids: \
`multigrid` is a solve in a step, which knows the grid and makes its coarser ones anew in each solve, on the backend; `amg` is of the \
assembled matrix, on the CPU, and has its set-up once for a matrix. Factor: by how much an iteration reduces the residual, in the \
geometric mean. A problem that a method does not solve within 300 iterations is marked and is no failure: the table says which method \
suits what. A residual that is not what the solver said is one.";

/// The arguments of `bench multigrid`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Multigrid {
    /// cpu, cuda or wgpu for the solves in a step, or auto: the first that is present
    #[arg(long, default_value = "auto", value_name = "NAME")]
    backend: Choice,

    /// Cells along an axis in three dimensions, a quarter of those in two; 8 at least
    #[arg(long, default_value_t = 64, value_name = "N")]
    size: usize,

    /// Only problems whose names have this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    #[command(flatten)]
    runs: Runs,

    /// Print as JSON
    #[arg(long)]
    json: bool,

    /// A file for the table
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
}

impl Multigrid {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        let repeats = self.runs.repeats()?;
        if !(8..=512).contains(&self.size) {
            return Err(Error::limit("cells along an axis", self.size, "8 to 512", "take 64").into());
        }
        let mut targets = Targets::default();
        self.csv.iter().for_each(|path| targets.rewritten(path, None));
        targets.check()?;
        let chosen: Vec<Problem> = problems(self.size)
            .into_iter()
            .filter(|problem| self.only.as_ref().is_none_or(|text| problem.name.contains(text.as_str())))
            .collect();
        if chosen.is_empty() {
            let known = problems(8).into_iter().map(|problem| problem.name);
            let text = self.only.as_deref().unwrap_or_default();
            return Err(Error::unknown("problem", text, known).into());
        }
        let (opened, notes) = choose(self.backend, |_| None)?;
        let machine = Machine::of(&opened);
        if !self.json {
            print(&machine.title(&notes))?;
            print(&format!(
                "\n{:<30}{:>9}  {:<11}{:<6}{:>11}{:>8}{:>11}{:>7}{:>11}{:>10}\n",
                "problem",
                "cells",
                "method",
                "on",
                "iterations",
                "factor",
                "ms",
                "± %",
                "set-up ms",
                "residual"
            ))?;
        }
        let named = Choice::Named(opened.backend.name());
        let (mut rows, bar) = (Vec::new(), progress_bar(2 * chosen.len()));
        for problem in &chosen {
            bar.set_message(problem.name);
            let methods: [&dyn Fn() -> Result<Row, Error>; 2] =
                [&|| problem.in_a_step(named, repeats), &|| {
                    problem.by_amg(repeats).map_err(|error| match error {
                        abide::solve::SolverError::Invalid(error) => error,
                        other => Error::invalid("the solve", other.to_string(), "report it, with the size"),
                    })
                }];
            for solve in methods {
                let row = solve()?;
                if !self.json {
                    bar.suspend(|| print(&line(&row)))?;
                }
                rows.push(row);
                bar.inc(1);
            }
        }
        bar.finish_and_clear();
        if let Some(path) = &self.csv {
            super::write(path, &csv(&machine, &rows))?;
        }
        let holds = rows.iter().all(Row::holds);
        if self.json {
            let report = json!({ "machine": machine, "tolerance": TOLERANCE, "rows": rows, "notes": notes });
            return print_report(&report, judge(holds));
        }
        judge(holds)
    }
}

fn line(row: &Row) -> String {
    let mark = if row.converged() { "" } else { "  not converged" };
    format!(
        "{:<30}{:>9}  {:<11}{:<6}{:>11}{:>8.3}{:>11.2}{:>7.1}{:>11.1}{:>10.1e}{mark}\n",
        row.problem,
        row.cells,
        row.method,
        row.backend,
        row.iterations,
        row.factor,
        row.milliseconds,
        row.spread_percent,
        row.setup_milliseconds,
        row.true_residual,
    )
}

/// Returns the file's text.
fn csv(machine: &Machine, rows: &[Row]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    for (key, value) in machine.comments() {
        let _ = writeln!(text, "# {key} {value}");
    }
    text += "problem,cells,method,backend,iterations,factor,milliseconds,spread_percent,setup_milliseconds,true_residual\n";
    for row in rows {
        let _ = writeln!(
            text,
            "\"{}\",{},{},{},{},{:.4},{:.3},{:.1},{:.1},{:.2e}",
            row.problem,
            row.cells,
            row.method,
            row.backend,
            row.iterations,
            row.factor,
            row.milliseconds,
            row.spread_percent,
            row.setup_milliseconds,
            row.true_residual
        );
    }
    text
}
