//! `abide solve`.

mod history;
mod report;
mod system;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use abide::io::{Staged, check_target, npy};
use abide::solve::{Method, Parameters, Precision, Preconditioning, SolveCache, SolverError, true_residual};
use abide::sparse::market;
use abide::{Array, Choice, Error, Result, Shape, Solve as Described};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use self::report::Told;
use self::system::{RightHandSide, Source};
use super::Outcome;

const EXAMPLES: &str = "\
Examples:
  abide solve A.mtx --output x.mtx
  abide solve A.mtx.gz --rhs b.mtx --method gmres:50 --preconditioner jacobi --tolerance 1e-10
  abide solve --matrix laplacian2d:1000x999 --rhs random:7 --history h.csv --plot h.svg
  abide solve --operator laplacian3d --size 128x128x128 --dtype mixed --output u.npy
  abide solve --operator 3d7pt --size 64x64x64 --boundary periodic --method bicgstab --json

Matrices by name: laplacian2d:NxN, laplacian3d:NxNxN, hpcg:NxNxN, trefethen:N, random:ROWS:ENTRIES[:SEED], arrow:N.
Operators: laplacian1d, laplacian2d, laplacian3d, hpcg, and the linear stencils of `abide list` with their own weights.

Ctrl-C ends a solve after the current iterations: the iterate is written and reported, the exit status is 130.";

/// The arguments of `solve`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Solve {
    #[command(flatten)]
    source: Source,

    /// The right-hand side: a .mtx, .mtx.gz or .npy file, ones, or random:SEED (uniform in -1 to 1)
    #[arg(long, value_name = "SOURCE", default_value = "ones")]
    rhs: RightHandSide,

    /// cg, cg-single, cg-pipelined, bicgstab, gmres[:RESTART], chebyshev or jacobi[:WEIGHT] [default: cg where the
    /// matrix is symmetric with a positive diagonal, else gmres]
    #[arg(long)]
    method: Option<Method>,

    /// none, jacobi, block-jacobi[:ROWS] or chebyshev[:DEGREE]
    #[arg(long, default_value = "none")]
    preconditioner: Preconditioning,

    /// Stop when the residual's norm is at most this times the right-hand side's
    #[arg(long, default_value = "1e-8", value_name = "T", allow_negative_numbers = true)]
    tolerance: f64,

    /// Iterations at most
    #[arg(long, default_value = "10000", value_name = "N")]
    max_iterations: usize,

    /// Seconds at most
    #[arg(long, value_name = "S", value_parser = seconds)]
    time_limit: Option<Duration>,

    /// f32, f64, or mixed: iterations in f32, corrected in f64
    #[arg(long, default_value = "f64")]
    dtype: Precision,

    /// auto, cpu, wgpu or cuda; auto takes the first that is there and has solvers
    #[arg(long, default_value = "auto")]
    backend: Choice,

    /// What a persistent solver keeps on the chip: auto, none, vectors, matrix or mixed
    #[arg(long, default_value = "auto")]
    cache: SolveCache,

    /// A file for the solution: .mtx or .npy
    #[arg(long, value_name = "FILE", value_parser = solution_file)]
    output: Option<PathBuf>,

    /// A file for the residual of every iteration
    #[arg(long, value_name = "FILE.csv")]
    history: Option<PathBuf>,

    /// A picture of the residual by iteration
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<Duration> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| Error::invalid(format!("time `{text}`"), "not a number of seconds", "write it like 2.5"))
}

fn solution_file(text: &str) -> Result<PathBuf> {
    let path = PathBuf::from(text);
    if matches!(path.extension().and_then(|e| e.to_str()), Some("mtx" | "npy")) {
        return Ok(path);
    }
    Err(Error::file(path, "no format of solutions has this extension", "name it .mtx or .npy"))
}

impl Solve {
    /// Solves, writes and reports.
    pub fn execute(&self) -> Result<Outcome> {
        self.check_files()?;
        let system = self.source.load(self.dtype.dtype())?;
        let parameters = Parameters {
            relative: self.tolerance,
            iterations: self.max_iterations,
            time: self.time_limit,
            ..Parameters::DEFAULT
        };
        let mut described = Described::new(system.matrix)
            .preconditioner(self.preconditioner)
            .cache(self.cache)
            .parameters(parameters)
            .precision(self.dtype)
            .backend(self.backend);
        if let Some(method) = self.method {
            described = described.method(method);
        }
        let mut opened = match described.open() {
            Ok(opened) => opened,
            Err(SolverError::Invalid(error)) => return Err(error),
            Err(error) => return self.refuse(&error),
        };
        // Only now is there known to be memory for it.
        let b = self.rhs.load(self.dtype.dtype(), opened.matrix().rows())?;

        let interrupted = Arc::new(AtomicBool::new(false));
        super::run::watch_interrupts(interrupted.clone())?;
        let mut line = Line::new();
        let mut x = Array::zeros(b.dtype(), b.len())?;
        let outcome = opened.solve_observed(&b, &mut x, &mut |iteration, residual| {
            line.show(iteration, residual);
            if interrupted.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        line.clear();
        let (report, error) = match outcome {
            Ok(report) => (report, None),
            Err(SolverError::Invalid(error)) => return Err(error),
            Err(error) => match error.report().cloned() {
                Some(report) => (report, Some(error)),
                None => return self.refuse(&error),
            },
        };
        let files = self.write(&system.shape, &x, &report, error.as_ref())?;
        let told = Told {
            name: &system.name,
            precision: self.dtype,
            opened: &opened,
            report: &report,
            true_residual: true_residual(opened.matrix(), &b, &x)?,
            norm: true_residual(opened.matrix(), &b, &Array::zeros(b.dtype(), b.len())?)?,
            error: error.as_ref(),
            files: &files,
        };
        if self.json {
            super::print_json(&told.json())?;
        } else {
            super::print(&told.text())?;
        }
        Ok(match error {
            None => Outcome::Done,
            Some(SolverError::Stopped { .. }) => Outcome::Interrupted,
            Some(error) => {
                eprintln!("error: {error}");
                Outcome::Failed
            }
        })
    }

    /// A matrix that the method is not for.
    fn refuse(&self, error: &SolverError) -> Result<Outcome> {
        if self.json {
            super::print_json(&serde_json::json!({ "converged": false, "error": error.to_string() }))?;
        }
        eprintln!("error: {error}");
        Ok(Outcome::Failed)
    }

    /// What can be checked of the files before the solve.
    fn check_files(&self) -> Result<()> {
        let mut paths: Vec<&Path> =
            [&self.output, &self.history, &self.plot].into_iter().flatten().map(|p| &**p).collect();
        paths.iter().try_for_each(|path| check_target(path))?;
        paths.sort();
        match paths.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Error::file(pair[0], "two outputs have this name", "give each its own")),
            None => Ok(()),
        }
    }

    /// Writes what was asked for: the solution only where there is one or the user ended the run, the history always.
    fn write(
        &self,
        shape: &Shape,
        x: &Array,
        report: &abide::solve::Report,
        error: Option<&SolverError>,
    ) -> Result<Vec<String>> {
        let mut staged = Vec::new();
        let usable = error.is_none_or(|error| matches!(error, SolverError::Stopped { .. }));
        if let Some(path) = self.output.as_ref().filter(|_| usable) {
            let file = if path.extension().is_some_and(|e| e == "npy") {
                npy::write(path, shape, x)?
            } else {
                Staged::new(path)?.fill(|out| market::write_vector(x, out))?
            };
            staged.push((path, file));
        }
        if let Some(path) = &self.history {
            let text = history::csv(report);
            staged.push((path, Staged::new(path)?.fill(|out| std::io::Write::write_all(out, text.as_bytes()))?));
        }
        if let Some(path) = &self.plot {
            let svg = history::plot(report)?;
            staged.push((path, Staged::new(path)?.fill(|out| std::io::Write::write_all(out, svg.as_bytes()))?));
        }
        // Only when all of them are complete does the first replace what was there.
        staged.into_iter().map(|(path, file)| file.commit().map(|()| path.display().to_string())).collect()
    }
}

/// The live line, on a terminal only.
struct Line {
    bar: ProgressBar,
    shown: Option<Instant>,
}

impl Line {
    fn new() -> Line {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
            bar.set_style(style);
        }
        Line { bar, shown: None }
    }

    /// Ten times a second at most: an iteration may take microseconds.
    fn show(&mut self, iteration: usize, residual: f64) {
        if self.shown.is_none_or(|shown| shown.elapsed() >= Duration::from_millis(100)) {
            self.shown = Some(Instant::now());
            self.bar.set_message(format!("iteration {iteration}, residual {residual:.3e}"));
            self.bar.tick();
        }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
