//! Timing of solvers: microseconds per iteration, from runs of two fixed numbers of iterations, beside one
//! solve that is checked.

pub mod scaling;

use std::ops::ControlFlow;

use abide::solve::{Precision, Solve, System, random_vector, true_residual};
use abide::{Array, DType, Error};
use abide_core::solver::{Exhausted, Matrix, Method, Parameters, SolvePlan, SolverError};
use serde::Serialize;

use crate::rates;

/// Settings of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Seconds that a timed run should take.
    pub seconds: f64,
    /// Number of timed runs; the row has their median.
    pub repeats: usize,
    /// Iterations of a solve that is timed; unless given, chosen by the convergence.
    pub iterations: Option<usize>,
    /// The tolerance of the solve that is checked, relative to the right-hand side. Unless given, chosen by
    /// the type: 1e-8, or 1e-5 in f32.
    pub tolerance: Option<f64>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { seconds: 0.3, repeats: 5, iterations: None, tolerance: None }
    }
}

/// Seconds of solves before the first that is timed.
pub const WARM: f64 = 0.3;

/// The measurement of one system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The matrix's name.
    pub matrix: String,
    /// `f32`, `f64` or `mixed`.
    pub dtype: &'static str,
    /// Rows of the matrix.
    pub rows: usize,
    /// Entries stored, or for a stencil its taps times its cells.
    pub nnz: usize,
    /// The method.
    pub method: Method,
    /// The data that stays on the chip.
    pub cache: &'static str,
    /// The median of the runs: the time that an iteration adds to a solve, whatever the solve's length.
    pub us_per_iteration: f64,
    /// The time of a solve beside its iterations, also a median: launching, and loading the data that stays
    /// on the chip. `None` where it is smaller than the spread of the runs.
    pub us_per_solve: Option<f64>,
    /// Distance from the median to the farthest run, in percent of the median.
    pub spread_percent: f64,
    /// Iterations of a timed solve.
    pub timed_iterations: usize,
    /// Iterations to the tolerance.
    pub iterations: usize,
    /// The residual after these iterations, computed in f64 apart from the solver, over the norm of the
    /// right-hand side.
    pub true_residual: f64,
    /// The tolerance.
    pub tolerance: f64,
    /// Microseconds that the plan's bytes take at the device's memory bandwidth; 0 where everything stays on
    /// the chip or the bandwidth is not known.
    pub us_by_bandwidth: f64,
    /// The plan that ran.
    pub plan: SolvePlan,
}

impl Row {
    /// Returns whether the true residual is as small as the solver said, up to the drift that the solver
    /// allows.
    pub fn holds(&self) -> bool {
        self.true_residual <= Parameters::DEFAULT.drift * self.tolerance
    }
}

/// Solves once to the tolerance, then times solves from 0 with a fixed number of iterations and with half as
/// many. The difference is the time of the iterations alone, without the fixed time of a solve. The
/// right-hand side is random.
///
/// Untimed solves come first until the device has reached its clock, for at least [`WARM`] seconds: short
/// runs alone would be timed at a lower clock.
///
/// A timed solve goes on past the convergence of the first solve by a factor of at most 8, so that no method
/// meets a residual of 0.
///
/// # Errors
///
/// Those of the solver; [`SolverError::Invalid`] for settings without a run.
pub fn measure(name: &str, solve: Solve, settings: &Settings) -> Result<Row, SolverError> {
    if settings.repeats == 0 {
        return Err(Error::limit("timed runs", 0, "at least 1", "give more").into());
    }
    let precision = solve.chosen_precision();
    let tolerance = settings.tolerance.unwrap_or(match precision {
        Precision::Plain(DType::F32) => 1e-5,
        _ => 1e-8,
    });
    let mut system = solve.open()?;
    let rows = system.matrix().rows();
    let b = random_vector(system.matrix().dtype(), rows, 1)?;
    let mut x = Array::zeros(b.dtype(), rows)?;
    let checked =
        Parameters { relative: tolerance, iterations: 100_000, stagnation: None, ..Parameters::DEFAULT };
    let report = system.solve_with(&b, &mut x, &checked, &mut |_, _| ControlFlow::Continue(()))?;
    let zero = Array::zeros(b.dtype(), rows)?;
    let norm = true_residual(system.matrix(), &b, &zero)?;
    let residual = true_residual(system.matrix(), &b, &x)? / norm;

    let method = system.plan().method;
    let beyond = match (method, precision) {
        // These methods go on without a division by something that vanishes. In f32, squares of the residual
        // underflow sooner.
        (Method::Cg | Method::SingleReductionCg, Precision::Plain(DType::F64)) => 8,
        _ => 1,
    };
    let mut wanted = (report.iterations * beyond).clamp(1, 10_000);
    if let Some(asked) = settings.iterations {
        wanted = wanted.min(asked.max(1));
    } else if report.iterations > 0 && report.iteration_seconds > 0.0 {
        let each = report.iteration_seconds / report.iterations as f64;
        wanted = wanted.min((settings.seconds / each).ceil().max(10.0) as usize);
    }
    let mut timed = Timed { system: &mut system, b: &b, zero: &zero, iterations: wanted };
    timed.run(WARM.max(settings.seconds))?;
    let (mut times, mut besides) =
        (Vec::with_capacity(settings.repeats), Vec::with_capacity(settings.repeats));
    for _ in 0..settings.repeats {
        let (iteration, beside) = timed.run(settings.seconds)?;
        times.push(iteration * 1e6);
        besides.push(beside * 1e6);
    }
    let plan = system.plan().clone();
    let (median, spread) = rates(&times).map_or((0.0, 0.0), |rates| (rates.median, rates.spread_percent));
    Ok(Row {
        matrix: name.to_owned(),
        dtype: precision.name(),
        rows,
        nnz: match system.matrix() {
            Matrix::Stored(matrix) => matrix.nnz(),
            Matrix::Stencil(_) => system.matrix().nonzeros(),
        },
        method,
        cache: plan.cache.name(),
        us_per_iteration: median,
        us_per_solve: rates(&besides)
            .map(|rates| rates.median)
            .filter(|&beside| beside > spread / 100.0 * median * wanted as f64),
        spread_percent: spread,
        timed_iterations: wanted,
        iterations: report.iterations,
        true_residual: residual,
        tolerance,
        us_by_bandwidth: 1e6 * plan.seconds_by_bandwidth(),
        plan,
    })
}

/// Solves of a fixed number of iterations.
struct Timed<'a> {
    system: &'a mut System,
    b: &'a Array,
    zero: &'a Array,
    iterations: usize,
}

impl Timed<'_> {
    /// Returns the seconds of all iterations of one solve from 0.
    fn once(&mut self, iterations: usize) -> Result<f64, SolverError> {
        let parameters =
            Parameters { relative: 0.0, absolute: 0.0, iterations, stagnation: None, ..Parameters::DEFAULT };
        let mut x = self.zero.try_clone()?;
        let outcome =
            self.system.solve_with(self.b, &mut x, &parameters, &mut |_, _| ControlFlow::Continue(()));
        match outcome {
            Ok(report) => Ok(report.iteration_seconds),
            Err(SolverError::NotConverged { limit: Exhausted::Iterations, report }) => {
                Ok(report.iteration_seconds)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the seconds per iteration, and of the rest of a solve, over as many solves as fill `seconds`.
    fn run(&mut self, seconds: f64) -> Result<(f64, f64), SolverError> {
        let (long, short) = (self.iterations, self.iterations / 2);
        let (mut of_long, mut of_short, mut solves) = (0.0, 0.0, 0_usize);
        let begun = std::time::Instant::now();
        while solves == 0 || (of_long + of_short < seconds && begun.elapsed().as_secs_f64() < 4.0 * seconds) {
            of_long += self.once(long)?;
            if short > 0 {
                of_short += self.once(short)?;
            }
            solves += 1;
        }
        let (of_long, of_short) = (of_long / solves as f64, of_short / solves as f64);
        let iteration = (of_long - of_short) / (long - short) as f64;
        Ok((iteration, of_long - iteration * long as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide::{Choice, solve::named};

    #[test]
    fn a_row_is_checked_and_timed() {
        let matrix = named::matrix("laplacian2d:20x21", DType::F64).unwrap();
        let settings = Settings { seconds: 1e-3, repeats: 3, ..Settings::default() };
        let row = measure("small", Solve::new(matrix.clone()).backend(Choice::CPU), &settings).unwrap();
        assert_eq!((row.rows, row.nnz, row.method), (420, 2018, Method::Cg));
        assert!(row.holds() && row.us_per_iteration > 0.0 && row.iterations > 20, "{row:?}");
        let wrong = Row { true_residual: 1e-6, ..row };
        assert!(!wrong.holds());
        let none = Settings { repeats: 0, ..settings };
        assert!(measure("small", Solve::new(matrix), &none).is_err());
    }
}
