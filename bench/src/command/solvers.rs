//! `abide bench solvers`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use abide::io::Targets;
use abide::solve::{
    GridOperator, Matrix, Method, Precision, Preconditioning, SolveCache, SolverError, named,
};
use abide::{Boundaries, Boundary, Choice, DType, Error, Result, Shape, Solve};
use abide_console::{Ended, Ending, once, print, print_report};
use clap::Args;
use serde_json::json;

use super::record::{Machine, significant};
use super::runs::Runs;
use super::{choose, judge, progress_bar};
use crate::solving::{Row, Settings, measure};

const EXAMPLES: &str = "\
Examples:
  abide bench solvers
  abide bench solvers --matrix 1138_bus.mtx --matrix trefethen:2000 --method cg --method cg-single
  abide bench solvers --matrix hpcg:64x64x64 --cache none --cache mixed --csv results.csv

A row: the median time of an iteration over the runs, ± the one farthest from it: what solves of a fixed number of \
iterations take more than solves of half as many, so that it does not depend on the number; what a solve takes beside \
its iterations, to launch and to load what stays on the chip; the iterations to the tolerance; and what these left of the right-hand side, |b − Ax| / |b|, computed in f64 \
on the CPU. Bound: what the plan's bytes take at the memory's bandwidth, over the time measured. A residual that is \
not what the solver said is told below the row, and the command fails.";

/// The matrices of the table, small ones first; the last has a dense row. The first two have the size of
/// SuiteSparse's 1138_bus and bcsstk13.
const MATRICES: [&str; 9] = [
    "random:1138:4054",
    "random:2003:83883",
    "trefethen:2000",
    "laplacian2d:300x300",
    "laplacian2d:1000x999",
    "hpcg:64x64x64",
    "laplacian3d:100x100x100",
    "hpcg:104x104x104",
    "arrow:1000000",
];

/// The operator of the table that is not stored.
const OPERATOR: &str = "laplacian2d/1000x999";

/// The arguments of `bench solvers`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Solvers {
    /// auto, cpu, wgpu or cuda; auto takes the first that is there and has solvers
    #[arg(long, default_value = "auto")]
    backend: Choice,

    /// A .mtx or .mtx.gz file, or a matrix by name as in `abide solve`; may be given several times [default:
    /// nine generated ones]
    #[arg(long = "matrix", value_name = "FILE|NAME")]
    matrices: Vec<String>,

    /// A stencil that is never stored, with its domain, as in laplacian2d/1000x999; values beyond are 0
    /// [default with no --matrix: that one]
    #[arg(long = "operator", value_name = "NAME/NxN")]
    operators: Vec<String>,

    /// The methods [default: cg]
    #[arg(long = "method")]
    methods: Vec<Method>,

    /// The preconditioner
    #[arg(long, default_value = "none")]
    preconditioner: Preconditioning,

    /// What stays on the chip: auto, none, vectors, matrix or mixed [default: auto]
    #[arg(long = "cache")]
    caches: Vec<SolveCache>,

    /// f32, f64 or mixed [default: f64]
    #[arg(long = "dtype")]
    dtypes: Vec<Precision>,

    /// Iterations of a timed solve at most [default: as many as take 0.3 s, but no more than 8 times those to
    /// the tolerance]
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    #[command(flatten)]
    runs: Runs,

    /// Print as JSON
    #[arg(long)]
    json: bool,

    /// A file for the table; each row is in it as soon as it is measured
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
}

/// One system of the table.
#[derive(Clone)]
enum Case {
    Stored(String),
    Free { name: String, shape: Shape },
}

impl Case {
    fn name(&self) -> String {
        match self {
            Case::Stored(name) => {
                Path::new(name).file_name().map_or(name.clone(), |n| n.to_string_lossy().into_owned())
            }
            Case::Free { name, shape } => format!("{name}/{shape} matrix-free"),
        }
    }

    fn matrix(&self, dtype: DType) -> Result<Matrix> {
        match self {
            Case::Stored(name) if is_file(name) => Ok(abide::solve::read_matrix(name, dtype)?.into()),
            Case::Stored(name) => Ok(named::matrix(name, dtype)?.into()),
            Case::Free { name, shape } => {
                let zero = Boundaries::all(Boundary::Constant(0.0));
                Ok(GridOperator::new(named::operator(name)?, *shape, zero, dtype)?.into())
            }
        }
    }
}

fn is_file(name: &str) -> bool {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    Path::new(name).extension().is_some_and(|extension| extension == "mtx")
}

fn operator(text: &str) -> Result<Case> {
    let parts = text.split_once('/').and_then(|(name, size)| Some((name.to_owned(), size.parse().ok()?)));
    let (name, shape) = parts.ok_or_else(|| {
        Error::invalid(
            format!("operator `{text}`"),
            "it is no name with a size",
            "write it like laplacian2d/1000x999",
        )
    })?;
    Ok(Case::Free { name, shape })
}

/// A system that could not be measured.
struct Missing {
    label: String,
    error: SolverError,
}

/// The results of the systems so far.
struct Results {
    machine: Machine,
    repeats: usize,
    rows: Vec<Row>,
    missing: Vec<Missing>,
}

impl Solvers {
    /// Measures, prints, writes.
    pub fn execute(&self) -> Ended {
        let settings = self.settings().map_err(Ending::usage)?;
        let cases = self.cases()?;
        let mut targets = Targets::default();
        self.csv.iter().for_each(|path| targets.rewritten(path, None));
        self.matrices
            .iter()
            .filter(|name| is_file(name))
            .for_each(|name| targets.input(name.as_ref(), Vec::new()));
        targets.check()?;
        let (opened, notes) = choose(self.backend, |opened| {
            opened.backend.linear().is_none().then_some("has no linear solvers")
        })?;
        let machine = Machine::of(&opened);
        let mut results =
            Results { machine, repeats: settings.repeats, rows: Vec::new(), missing: Vec::new() };
        if !self.json {
            print(&results.title(&notes))?;
        }
        let or = |given: &[Method]| if given.is_empty() { vec![Method::Cg] } else { given.to_vec() };
        let methods = or(&self.methods);
        let caches = if self.caches.is_empty() { vec![SolveCache::Auto] } else { self.caches.clone() };
        let plain = Precision::Plain(DType::F64);
        let dtypes = if self.dtypes.is_empty() { vec![plain] } else { self.dtypes.clone() };
        let bar = progress_bar(cases.len() * dtypes.len() * methods.len() * caches.len());
        for case in &cases {
            for &precision in &dtypes {
                bar.set_message(case.name());
                let matrix = case.matrix(precision.dtype())?;
                for &method in &methods {
                    for &cache in &caches {
                        let solve = Solve::new(matrix.clone())
                            .method(method)
                            .preconditioner(self.preconditioner)
                            .cache(cache)
                            .precision(precision)
                            .on(&opened);
                        let text = match measure(&case.name(), solve, &settings) {
                            Ok(row) => results.add(row),
                            Err(error) => {
                                let label = format!("{} {} {method} {cache}", case.name(), precision.name());
                                results.miss(label, error)
                            }
                        };
                        if !self.json {
                            bar.suspend(|| print(&text))?;
                        }
                        if let Some(path) = &self.csv {
                            super::write(path, &results.csv())?;
                        }
                        bar.inc(1);
                    }
                }
            }
        }
        bar.finish_and_clear();
        let ended = judge(results.hold());
        if self.json { print_report(&results.json(), ended) } else { ended }
    }

    fn settings(&self) -> Result<Settings> {
        once("--matrix", &self.matrices)?;
        once("--operator", &self.operators)?;
        once("--method", &self.methods)?;
        once("--cache", &self.caches)?;
        once("--dtype", self.dtypes.iter().map(|dtype| dtype.name()))?;
        let repeats = self.runs.repeats()?;
        if self.iterations == Some(0) {
            return Err(Error::limit(
                "iterations of a timed solve",
                0,
                "at least 1",
                "give more, or leave it out",
            ));
        }
        let seconds = if self.runs.quick { 0.03 } else { 0.3 };
        Ok(Settings { seconds, repeats, iterations: self.iterations, ..Settings::default() })
    }

    /// Returns the systems asked for, or all of the table; names are checked before anything is measured.
    fn cases(&self) -> Result<Vec<Case>> {
        let mut cases: Vec<Case> = self.matrices.iter().cloned().map(Case::Stored).collect();
        for text in &self.operators {
            cases.push(operator(text)?);
        }
        if cases.is_empty() {
            cases = MATRICES.iter().map(|name| Case::Stored((*name).to_owned())).collect();
            cases.push(operator(OPERATOR)?);
        }
        for case in &cases {
            match case {
                Case::Stored(name) if is_file(name) => {
                    std::fs::metadata(name).map_err(|e| Error::file(name, e, "give a file that exists"))?;
                }
                Case::Stored(name) => named::check(name)?,
                Case::Free { name, .. } => drop(named::operator(name)?),
            }
        }
        Ok(cases)
    }
}

impl Results {
    fn title(&self, notes: &[String]) -> String {
        self.machine.title(notes)
            + &format!(
                "\n{:<34}{:<6}{:>9}{:>10}  {:<13}{:<9}{:>10}{:>7}{:>8}{:>10}{:>11}{:>11}\n",
                "matrix",
                "type",
                "rows",
                "entries",
                "method",
                "cache",
                "µs/iter",
                "± %",
                "% bound",
                "µs/solve",
                "iterations",
                "residual"
            )
    }

    /// Adds a row, and returns its text in the table.
    fn add(&mut self, row: Row) -> String {
        let bound = match row.us_by_bandwidth {
            us if us > 0.0 => format!("{:.0}", 100.0 * us / row.us_per_iteration),
            _ => "-".to_owned(),
        };
        let mut text = format!(
            "{:<34}{:<6}{:>9}{:>10}  {:<13}{:<9}{:>10.2}{:>7.1}{:>8}{:>10}{:>11}{:>11.1e}\n",
            row.matrix,
            row.dtype,
            row.rows,
            row.nnz,
            row.method,
            row.cache,
            row.us_per_iteration,
            row.spread_percent,
            bound,
            row.us_per_solve.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}")),
            row.iterations,
            row.true_residual,
        );
        if !row.holds() {
            text += &format!("    WRONG: the residual was to be {:.0e}\n", row.tolerance);
        }
        self.rows.push(row);
        text
    }

    /// Notes a system that could not be measured, and returns its text in the table.
    fn miss(&mut self, label: String, error: SolverError) -> String {
        let text = format!("{label}  {}\n", reason(&error));
        self.missing.push(Missing { label, error });
        text
    }

    fn hold(&self) -> bool {
        self.rows.iter().all(Row::holds) && self.missing.iter().all(|missing| is_refusal(&missing.error))
    }

    /// Returns the file's text. Comments name wrong rows, so that nobody takes them for results.
    fn csv(&self) -> String {
        let mut text = String::new();
        let mut comment = |words: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# {}", words.split_whitespace().collect::<Vec<_>>().join(" "));
        };
        for (key, value) in self.machine.comments() {
            comment(format!("{key}: {value}"));
        }
        comment(format!("runs: {}, right-hand side random, residuals in f64 over its norm", self.repeats));
        for row in self.rows.iter().filter(|row| !row.holds()) {
            comment(format!(
                "WRONG: {} {} {}: residual {:e}",
                row.matrix, row.dtype, row.method, row.true_residual
            ));
        }
        for Missing { label, error } in &self.missing {
            comment(format!("{label}: {}", reason(error)));
        }
        text += "matrix,dtype,rows,nnz,method,cache,us_per_iteration,spread_percent,us_per_solve,iterations,true_residual\n";
        for row in self.rows.iter().filter(|row| row.holds()) {
            let Row { matrix, dtype, rows, nnz, method, cache, iterations, .. } = row;
            let [us, spread] = [row.us_per_iteration, row.spread_percent].map(significant);
            let solve = row.us_per_solve.map(|us| significant(us).to_string()).unwrap_or_default();
            let residual = row.true_residual;
            let _ = writeln!(
                text,
                "\"{}\",{dtype},{rows},{nnz},{method},{cache},{us},{spread},{solve},{iterations},{residual:.2e}",
                matrix.replace('"', "\"\"")
            );
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let missing = self.missing.iter().map(|Missing { label, error }| {
            json!({ "system": label, "refused": is_refusal(error), "reason": error.to_string() })
        });
        let missing: Vec<_> = missing.collect();
        json!({
            "machine": self.machine, "repeats": self.repeats, "holds": self.hold(), "rows": self.rows, "missing": missing,
        })
    }
}

/// Returns whether the backend cannot solve the system, or the method is not for this matrix; neither is a
/// fault.
fn is_refusal(error: &SolverError) -> bool {
    matches!(
        error,
        SolverError::Invalid(Error::Unsupported { .. })
            | SolverError::NotSymmetric { .. }
            | SolverError::NotPositive { .. }
    )
}

fn reason(error: &SolverError) -> String {
    format!("{}: {error}", if is_refusal(error) { "refused" } else { "FAILED" })
}
