//! `abide solve`.

mod history;
mod report;
mod system;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use abide::backend::processes;
use abide::io::{Batch, Staged, Targets, Written, npy};
use abide::solve::{
    Gmres, Method, Nullspace, Parameters, Precision, Preconditioning, SolveCache, SolverError,
};
use abide::sparse::market;
use abide::{Array, Choice, Error, ErrorKind, Result, Shape, Solve as Described};
use abide_console::headings::{ITERATIONS, OUTPUT, PLANNING};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use self::report::Reported;
use self::system::{RightHandSide, Source};
use super::devices_chosen::DeviceArguments;
use super::{Ended, Ending, complain, print_report, signals};

const EXAMPLES: &str = "\
Examples:
  abide solve A.mtx --output x.mtx
  abide solve A.mtx.gz --rhs b.mtx --method gmres:50 --preconditioner jacobi --tolerance 1e-10
  abide solve --matrix laplacian2d:1000x999 --rhs random:7 --history h.csv --plot h.svg
  abide solve --operator laplacian3d --size 128x128x128 --dtype mixed --output u.npy
  abide solve --operator laplacian3d --size 128x128x128 --backend cpu --devices 2
  abide solve --matrix hpcg:104x104x104 --backend cuda --devices 2
  abide solve --operator 3d7pt --size 64x64x64 --boundary periodic --method bicgstab --json

Matrices by name: laplacian2d:NxN, laplacian3d:NxNxN, hpcg:NxNxN, trefethen:N, random:ROWS:ENTRIES[:SEED], arrow:N.
Operators: laplacian1d, laplacian2d, laplacian3d, hpcg, and the linear stencils of `abide list` with their own weights.

Ctrl-C ends a solve after the current iterations: the iterate is written and reported, the exit status is 130; 143 after \
a request to end (SIGTERM). It is 3 where the solve did not converge.";

/// The arguments of `solve`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Solve {
    #[command(flatten)]
    source: Source,

    /// The right-hand side: a .mtx, .mtx.gz or .npy file, ones, or random:SEED (uniform in -1 to 1)
    #[arg(long, value_name = "SOURCE", default_value = "ones")]
    rhs: RightHandSide,

    /// cg, cg-single, cg-pipelined, bicgstab, gmres[:RESTART], chebyshev or jacobi[:WEIGHT] [default: cg
    /// where the matrix is symmetric with a diagonal of one sign, else gmres; gmres too where cg finds the
    /// matrix indefinite]
    #[arg(long, value_parser = method)]
    method: Option<Asked>,

    /// Take the matrix as symmetric without a look at it
    #[arg(long, help_heading = ITERATIONS)]
    assume_symmetric: bool,

    /// The vectors that the matrix takes to 0: none, or constant, whose part is then taken from b and x
    #[arg(long, help_heading = ITERATIONS, default_value = "none")]
    nullspace: Nullspace,

    /// none, jacobi, block-jacobi[:ROWS] or chebyshev[:DEGREE]; on the CPU also ilu and amg[:STRENGTH]
    #[arg(long, default_value = "none")]
    preconditioner: Preconditioning,

    /// Stop when the residual's norm is at most this times the right-hand side's
    #[arg(long, default_value = "1e-8", value_name = "T", value_parser = tolerance, allow_negative_numbers = true)]
    tolerance: f64,

    /// Iterations at most
    #[arg(long, help_heading = ITERATIONS, default_value = "10000", value_name = "N", value_parser = iterations)]
    max_iterations: usize,

    /// Give up when so many iterations in a row bring no progress: no new least residual or, with conjugate
    /// gradients, no more of the error's A-norm than rounding undoes; or off
    #[arg(long, help_heading = ITERATIONS, default_value = "1000", value_name = "N|off")]
    stagnation: Stagnation,

    /// Seconds at most
    #[arg(long, help_heading = ITERATIONS, value_name = "S", value_parser = seconds)]
    time_limit: Option<Duration>,

    /// f32, f64, or mixed: iterations in f32, corrected in f64
    #[arg(long, default_value = "f64")]
    dtype: Precision,

    /// auto, cpu, wgpu or cuda; auto takes the first that is there and has solvers
    #[arg(long, default_value = "auto")]
    backend: Choice,

    #[command(flatten)]
    several: DeviceArguments,

    /// What a persistent solver keeps on the chip: auto, none, vectors, matrix or mixed
    #[arg(long, help_heading = PLANNING, default_value = "auto")]
    cache: SolveCache,

    /// A file for the solution: .mtx or .npy
    #[arg(long, value_name = "FILE", value_parser = solution_file)]
    output: Option<PathBuf>,

    /// A file for the residual of every iteration
    #[arg(long, help_heading = OUTPUT, value_name = "FILE.csv")]
    history: Option<PathBuf>,

    /// A picture of the residual by iteration
    #[arg(long, help_heading = OUTPUT, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Report the plan too, the bytes moved, and the backends that are not here
    #[arg(long, short)]
    verbose: bool,

    /// Print the report as JSON, all of it
    #[arg(long)]
    json: bool,
}

/// A method, or GMRES with the restart that suits the matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    Method(Method),
    Gmres,
}

impl Asked {
    fn method(self, rows: usize) -> Method {
        match self {
            Asked::Method(method) => method,
            Asked::Gmres => Method::Gmres(Gmres::suited(rows)),
        }
    }
}

fn method(text: &str) -> Result<Asked> {
    Ok(if text == "gmres" { Asked::Gmres } else { Asked::Method(text.parse()?) })
}

/// Iterations without progress at most; `None` for any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stagnation(Option<usize>);

impl std::str::FromStr for Stagnation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match (text, text.parse()) {
            ("off", _) => Ok(Stagnation(None)),
            (_, Ok(iterations)) if iterations > 0 => Ok(Stagnation(Some(iterations))),
            _ => {
                let reason = "neither a whole number of 1 or more nor off";
                Err(Error::invalid(format!("stagnation `{text}`"), reason, "write it like 1000, or off"))
            }
        }
    }
}

fn iterations(text: &str) -> Result<usize> {
    super::whole("iterations", text, 0, "1000")
}

fn tolerance(text: &str) -> Result<f64> {
    text.parse().ok().filter(|t: &f64| t.is_finite() && *t >= 0.0).ok_or_else(|| {
        Error::invalid(
            format!("tolerance `{text}`"),
            "not a finite number of 0 or more",
            "write it like 1e-8",
        )
    })
}

fn seconds(text: &str) -> Result<Duration> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| {
        Error::invalid(format!("time `{text}`"), "not a number of seconds", "write it like 2.5")
    })
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
    pub fn execute(&self) -> Ended {
        let parameters = Parameters {
            relative: self.tolerance,
            iterations: self.max_iterations,
            time: self.time_limit,
            stagnation: self.stagnation.0,
            ..Parameters::DEFAULT
        };
        parameters.check()?;
        self.check_files()?;
        let system = self.source.load(self.dtype.dtype())?;
        let drift = parameters.drift;
        let method = self.method.map(|asked| asked.method(system.matrix.rows()));
        let mut described = Described::new(system.matrix)
            .assume_symmetric(self.assume_symmetric)
            .nullspace(self.nullspace)
            .preconditioner(self.preconditioner)
            .cache(self.cache)
            .parameters(parameters)
            .precision(self.dtype)
            .backend(self.backend);
        if let Some(devices) = self.several.asked() {
            described = described.devices(devices);
        }
        if let Some(method) = method {
            described = described.method(method);
        }
        let mut opened = match described.open() {
            Ok(opened) => opened,
            Err(error) => return self.refuse(&error),
        };
        // Only now is the machine known to have memory for the right-hand side.
        let b = self.rhs.load(self.dtype.dtype(), opened.matrix().rows())?;

        signals::watch();
        let mut line = Line::new();
        let mut x = Array::zeros(b.dtype(), b.len())?;
        let outcome = opened.solve_observed(&b, &mut x, &mut |iteration, residual| {
            line.show(iteration, residual);
            if signals::received() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        line.clear();
        let (report, error) = match outcome {
            Ok(report) => (report, None),
            Err(error) => match error.report().cloned() {
                Some(report) => (report, Some(error)),
                None => return self.refuse(&error),
            },
        };
        let Written { files, faults } = self.write(&system.shape, &x, &report, error.as_ref());
        // A script must know first of a file that is missing, except after a solve that did not converge.
        let ended = match &error {
            Some(error) if error.kind() == ErrorKind::NotConverged => {
                faults.iter().for_each(|fault| complain(format_args!("error: {fault}")));
                Err(Ending::from(error))
            }
            Some(error) => Ending::unwritten(&faults).and_then(|()| Err(Ending::from(error))),
            None => Ending::unwritten(&faults),
        };
        if !processes::is_first() {
            return ended;
        }
        let reported = Reported {
            name: &system.name,
            precision: self.dtype,
            opened: &opened,
            report: &report,
            true_residual: opened.true_residual(&b, &x)?,
            norm: opened.true_residual(&b, &Array::zeros(b.dtype(), b.len())?)?,
            drift,
            converged: error.is_none(),
            files: &files,
        };
        if self.json {
            return print_report(&reported.json(), ended);
        }
        super::print(&reported.text(self.verbose))?;
        ended
    }

    /// Ends a solve that did not begin.
    fn refuse(&self, error: &SolverError) -> Ended {
        let refused = Err(Ending::from(error));
        // Of several processes, only one prints the error, at the end.
        if self.json && processes::count() == 1 {
            print_report(&serde_json::json!({ "converged": false }), refused)
        } else {
            refused
        }
    }

    /// Checks the files as far as possible before the solve.
    fn check_files(&self) -> Result<()> {
        let mut targets = Targets::default();
        [&self.output, &self.history, &self.plot].into_iter().flatten().for_each(|path| targets.output(path));
        self.source
            .file()
            .into_iter()
            .chain(self.rhs.file())
            .for_each(|path| targets.input(path, Vec::new()));
        targets.check()
    }

    /// Writes the files asked for: the solution only where there is one or the user ended the run, the
    /// history always.
    fn write(
        &self,
        shape: &Shape,
        x: &Array,
        report: &abide::solve::Report,
        error: Option<&SolverError>,
    ) -> Written {
        if !processes::is_first() {
            return Written::default();
        }
        let mut batch = Batch::default();
        let mut add = |path: &PathBuf, file| batch.add(path.display().to_string(), file);
        let text = |path, text: String| {
            Staged::new(path)?.fill(|out| std::io::Write::write_all(out, text.as_bytes()))
        };
        let usable = error.is_none_or(|error| matches!(error, SolverError::Stopped { .. }));
        if let Some(path) = self.output.as_ref().filter(|_| usable) {
            let matrix_market = || Staged::new(path)?.fill(|out| market::write_vector(x, out));
            let is_npy = path.extension().is_some_and(|e| e == "npy");
            add(path, if is_npy { npy::write(path, shape, x) } else { matrix_market() });
        }
        if let Some(path) = &self.history {
            add(path, text(path, history::csv(report)));
        }
        if let Some(path) = &self.plot {
            add(path, history::plot(report).and_then(|svg| text(path, svg)));
        }
        batch.commit()
    }
}

/// The progress line, on a terminal only.
struct Line {
    bar: ProgressBar,
    shown: Option<Instant>,
}

impl Line {
    fn new() -> Line {
        let bar = if processes::is_first() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
            bar.set_style(style);
        }
        Line { bar, shown: None }
    }

    /// Shows at most ten iterations per second, because an iteration may take microseconds.
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
