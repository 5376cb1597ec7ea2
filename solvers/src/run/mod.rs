//! The parts that all methods share: checks of the arguments, the stopping tests, the history.

mod progress;

use std::time::Instant;

use abide_core::backend::Observe;
use abide_core::solver::{Exhausted, Measure, Operator, Parameters, Profile, Quantity, Report, SolverError};
use abide_core::{DType, Error, Real, Result, memory};

use self::progress::Progress;
use crate::engine::Engine;
use crate::precondition::Preconditioner;

/// Entries of the history that are reserved before the loop. Most runs never need more, and a limit of a
/// thousand million iterations does not cost their memory.
const HISTORY: usize = 1 << 16;

/// A run of one method, from its arguments to its report: the stopping tests and the history that all
/// backends share.
///
/// A backend whose loop runs elsewhere begins with [`Run::open`], passes the residuals that come back to
/// [`Run::converged_norm`] in order, and ends with [`Run::conclude`] or one of the errors.
pub struct Run<'p> {
    parameters: &'p Parameters,
    observe: Option<&'p mut Observe<'p>>,
    started: Instant,
    clock: Clock,
    report: Report,
    progress: Progress,
}

/// The clock that counts the seconds of the iterations.
enum Clock {
    /// The run's own, from when the first residual was known.
    Own(Option<Instant>),
    /// The clock of the code that has the loop.
    Elsewhere,
}

/// The beginning of a run, by its arguments.
pub enum Begin<'p> {
    /// `b = 0`: `x` is set to 0 and this is the report.
    Zero(Report),
    /// A system to iterate on.
    Iterate(Run<'p>),
}

impl<'p> Run<'p> {
    /// Checks the arguments, reserves the history and finds the threshold.
    pub(super) fn begin<T: Real, E: Engine<T>>(
        method: Profile,
        engine: &E,
        (a, m): (&dyn Operator<T>, &dyn Preconditioner<T, E>),
        b: &[T],
        x: &mut [T],
        parameters: &'p Parameters,
        observe: &'p mut Observe<'_>,
    ) -> Result<Begin<'p>, SolverError> {
        if let Some(rows) = m.rows().filter(|&rows| rows != a.rows()) {
            let reason = format!("it was made for {rows} rows, the matrix has {}", a.rows());
            return Err(Error::invalid(
                format!("preconditioner {}", m.name()),
                reason,
                "make it for this matrix",
            )
            .into());
        }
        Run::open(method, a.rows(), b, x, |b| engine.dot(b, b), parameters, observe)
    }

    /// Checks the arguments of a run on a matrix of `rows` rows, reserves the history and finds the
    /// threshold; `square` is the dot product of a vector with itself.
    pub fn open<T: Real>(
        method: Profile,
        rows: usize,
        b: &[T],
        x: &mut [T],
        square: impl FnOnce(&[T]) -> T,
        parameters: &'p Parameters,
        observe: &'p mut Observe<'_>,
    ) -> Result<Begin<'p>, SolverError> {
        let started = Instant::now();
        check_lengths(rows, b.len(), x.len())?;
        parameters.check()?;
        let room = parameters.iterations.saturating_add(1).min(HISTORY);
        let history = memory::reserved(room, "a solver's history", "allow fewer iterations")?;
        let mut run = Run {
            parameters,
            observe: Some(observe),
            started,
            clock: Clock::Own(None),
            report: Report { history, ..Report::empty(method.name, T::DTYPE) },
            progress: Progress::new::<T>(method.measure, parameters.stagnation),
        };
        let square = square(b).to_f64();
        if !square.is_finite() {
            return Err(run.not_finite(Quantity::RightHandSide));
        }
        let least = if T::DTYPE == DType::F32 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
        if square < least && (square > 0.0 || b.iter().any(|&value| value != T::ZERO)) {
            // A residual smaller than b has no square at all, and would count as 0.
            let reason = "its square underflows";
            return Err(Error::invalid("the right-hand side", reason, "scale the system or use f64").into());
        }
        if square == 0.0 {
            x.fill(T::ZERO);
            run.report.history.push(0.0);
            run.report.true_residual = Some(0.0);
            return Ok(Begin::Zero(run.take()));
        }
        run.report.norm = square.sqrt();
        run.report.threshold = (parameters.relative * run.report.norm).max(parameters.absolute);
        Ok(Begin::Iterate(run))
    }

    /// Makes a run without arguments and history, for the checks of an auxiliary iteration.
    pub(super) fn bare(method: &'static str) -> Run<'static> {
        Run {
            parameters: &Parameters::DEFAULT,
            observe: None,
            started: Instant::now(),
            clock: Clock::Own(None),
            report: Report::empty(method, DType::F64),
            progress: Progress::new::<f64>(Measure::Residual, None),
        }
    }

    /// Returns the threshold of the residual's norm.
    pub fn threshold(&self) -> f64 {
        self.report.threshold
    }

    /// Returns whether a true residual is small enough. If the recurred one was, the true one may exceed the
    /// threshold by the factor `drift`.
    pub(super) fn is_met(&self, norm: f64, recurred: bool) -> bool {
        norm <= self.report.threshold * if recurred { self.parameters.drift.max(1.0) } else { 1.0 }
    }

    /// Lowers the last entry of the history to the true residual, because that can meet the threshold before
    /// the recurred one does.
    pub(super) fn correct(&mut self, norm: f64) {
        if let Some(last) = self.report.history.last_mut() {
            *last = last.min(norm);
        }
    }

    /// Sets the last entry of the history to the true residual.
    pub(super) fn measured(&mut self, norm: f64) {
        if let Some(last) = self.report.history.last_mut() {
            *last = norm;
        }
    }

    /// Sets the last entry of the history to the true residual, when recurrences have lost it and start anew.
    /// Fails if no iteration is left, or if the last such start was of no use.
    pub(super) fn lost(&mut self, norm: f64) -> Result<(), SolverError> {
        self.measured(norm);
        if self.report.iterations >= self.parameters.iterations {
            return Err(self.exhausted(Exhausted::Iterations));
        }
        if self.progress.is_settled(norm) { Err(self.stagnation()) } else { Ok(()) }
    }

    /// Returns an error of an inner run, with this run's report in its place.
    pub(super) fn instead_of(&mut self, mut inner: SolverError) -> SolverError {
        if let Some(report) = inner.report_mut() {
            *report = self.take();
        }
        inner
    }

    /// Records that an iteration has reduced the square of the error's A-norm by `alpha rho` of conjugate
    /// gradients.
    pub(super) fn gained<T: Real>(&mut self, alpha: T, rho: T) {
        self.progress.gained(alpha.to_f64() * rho.to_f64());
    }

    /// Records the residual of the current iterate from its square. Returns `true` when the residual is small
    /// enough, and an error when the run must give up.
    pub fn converged<T: Real>(&mut self, residual_squared: T) -> Result<bool, SolverError> {
        self.converged_norm(residual_squared.to_f64().sqrt())
    }

    /// Does the same as [`converged`](Run::converged), from the norm itself.
    pub fn converged_norm(&mut self, residual: f64) -> Result<bool, SolverError> {
        let iteration = self.report.history.len();
        self.report.iterations = iteration;
        if self.report.history.try_reserve(1).is_err() {
            let change = "allow fewer iterations";
            return Err(Error::limit(
                "a solver's history, in iterations",
                iteration,
                "the memory there is",
                change,
            )
            .into());
        }
        self.report.history.push(residual);
        if !residual.is_finite() {
            return Err(self.not_finite(Quantity::Residual));
        }
        let now = Instant::now();
        if let Clock::Own(first) = &mut self.clock {
            self.report.iteration_seconds = (now - *first.get_or_insert(now)).as_secs_f64();
        }
        let stop = self.observe.as_mut().is_some_and(|observe| observe(iteration, residual).is_break());
        if residual <= self.report.threshold {
            return Ok(true);
        }
        if stop {
            return Err(SolverError::Stopped { report: self.boxed() });
        }
        let is_over = self.progress.is_over(iteration, residual);
        if iteration >= self.parameters.iterations {
            return Err(self.exhausted(Exhausted::Iterations));
        }
        if is_over {
            return Err(self.stagnation());
        }
        if self.parameters.time.is_some_and(|limit| now - self.started >= limit) {
            return Err(self.exhausted(Exhausted::Time));
        }
        Ok(false)
    }

    /// Returns the report of a converged run, after it has computed the true residual into `scratch` and
    /// compared it.
    pub(super) fn finish<T: Real, E: Engine<T>>(
        self,
        engine: &E,
        a: &dyn Operator<T>,
        b: &[T],
        x: &[T],
        scratch: &mut [T],
    ) -> Result<Report, SolverError> {
        residual(engine, a, b, x, scratch);
        self.conclude(engine.dot(scratch, scratch).to_f64().sqrt())
    }

    /// Returns the report of a converged run whose true residual has this norm, or an error if the norm is
    /// not small enough.
    pub fn conclude(mut self, norm: f64) -> Result<Report, SolverError> {
        self.report.true_residual = Some(norm);
        if !norm.is_finite() {
            return Err(self.not_finite(Quantity::TrueResidual));
        }
        if !self.is_met(norm, true) {
            return Err(self.stagnation());
        }
        Ok(self.take())
    }

    /// Sets the type of the iterations, if it differs from that of the right-hand side.
    pub(super) fn iterating_in(mut self, dtype: DType) -> Self {
        self.report.dtype = dtype;
        self
    }

    /// Returns the report so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Sets the seconds that the iterations took, if the loop ran elsewhere and was timed there.
    pub fn timed(&mut self, seconds: f64) {
        (self.clock, self.report.iteration_seconds) = (Clock::Elsewhere, seconds);
    }

    fn take(&mut self) -> Report {
        self.report.seconds = self.started.elapsed().as_secs_f64();
        let (method, dtype) = (self.report.method, self.report.dtype);
        std::mem::replace(&mut self.report, Report::empty(method, dtype))
    }

    fn boxed(&mut self) -> Box<Report> {
        Box::new(self.take())
    }

    /// Returns [`SolverError::Breakdown`] of `quantity`, or `NotFinite` if its value is not a number.
    pub fn breakdown<T: Real>(&mut self, quantity: Quantity, value: T) -> SolverError {
        if !value.is_finite() {
            return self.not_finite(quantity);
        }
        SolverError::Breakdown { quantity: quantity.words(), report: self.boxed() }
    }

    /// Returns `Ok` for a positive value; else the error that says why a symmetric positive definite system
    /// has no such value.
    pub fn positive<T: Real>(&mut self, quantity: Quantity, value: T) -> Result<(), SolverError> {
        if value > T::ZERO && value.is_finite() {
            return Ok(());
        }
        if !value.is_finite() {
            return Err(self.not_finite(quantity));
        }
        // Squares of a residual this small underflow; then 0 says nothing about the matrix.
        let tiny = if T::DTYPE == DType::F32 { 1e-31 } else { 1e-292 };
        let residual = self.report.history.last().copied().unwrap_or(1.0);
        if value == T::ZERO && residual * residual < tiny {
            return Err(self.breakdown(quantity, value));
        }
        Err(SolverError::Indefinite {
            quantity: quantity.words(),
            value: value.to_f64(),
            report: self.boxed(),
        })
    }

    /// Returns `Ok` for a finite value that is not 0; else a breakdown.
    pub fn nonzero<T: Real>(&mut self, quantity: Quantity, value: T) -> Result<(), SolverError> {
        if value != T::ZERO && value.is_finite() {
            return Ok(());
        }
        Err(self.breakdown(quantity, value))
    }

    /// Returns [`SolverError::NotFinite`] of `quantity`.
    pub fn not_finite(&mut self, quantity: Quantity) -> SolverError {
        SolverError::NotFinite { quantity: quantity.words(), row: None, report: self.boxed() }
    }

    /// Returns [`SolverError::Stagnation`].
    pub fn stagnation(&mut self) -> SolverError {
        SolverError::Stagnation { report: self.boxed() }
    }

    /// Returns [`SolverError::NotConverged`].
    pub fn exhausted(&mut self, limit: Exhausted) -> SolverError {
        SolverError::NotConverged { limit, report: self.boxed() }
    }
}

/// Fails unless the vectors of a system have a value for each of its rows; `b` and `x` are their lengths.
pub fn check_lengths(rows: usize, b: usize, x: usize) -> Result<()> {
    match [("b", b), ("x", x)].into_iter().find(|&(_, len)| len != rows) {
        None => Ok(()),
        Some((name, len)) => {
            let reason = format!("{len} values for a matrix of {rows} rows");
            Err(Error::invalid(format!("the vector {name}"), reason, "give one value a row"))
        }
    }
}

/// Fails if a vector of a system holds a value that is not finite: [`SolverError::NotFinite`] with the first
/// such row.
pub fn check_finite<T: Real>(method: Profile, name: &'static str, vector: &[T]) -> Result<(), SolverError> {
    match vector.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        row => {
            let report = Box::new(Report::empty(method.name, T::DTYPE));
            Err(SolverError::NotFinite { quantity: name, row, report })
        }
    }
}

/// Computes `r = b - A x`.
pub(super) fn residual<T: Real, E: Engine<T>>(
    engine: &E,
    a: &dyn Operator<T>,
    b: &[T],
    x: &[T],
    r: &mut [T],
) {
    a.apply(x, r);
    engine.update([r], [b], |[ax], [b]| [b - ax]);
}
