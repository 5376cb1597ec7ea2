//! The session of all ranks that solve a system together.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_core::solver::{
    Exhausted, LinearSession, Observe, Parameters, RankSolve, Report, RowSlab, SolveOptions, SolvePlan,
    SolverError, check_lengths, check_types,
};
use abide_core::{Array, Error, Result};

use super::slabs;
use super::together::{Ended, together};
use crate::backend::Device;
use crate::connector::Connector;
use crate::fabric::Fabric;
use crate::line::{Line, SharedLine};

/// A system whose rows are divided among ranks. Each solve connects them anew, so that one that failed spoils no other.
pub struct RankedSolver {
    backend: &'static str,
    plan: SolvePlan,
    connector: Arc<dyn Connector>,
    ranks: Vec<Rank>,
    /// Why no solve is possible any more.
    stopped: Option<SolverError>,
}

struct Rank {
    rows: Range<usize>,
    session: Box<dyn LinearSession>,
    line: SharedLine,
    /// Seconds of all, and of exchanging and waiting among them.
    seconds: [f64; 2],
}

/// The first rank's word after each iterate: what its clock and the caller's function decide, all ranks do.
const GO_ON: u8 = 0;
const STOP: u8 = 1;
const TOO_LATE: u8 = 2;

impl RankedSolver {
    /// Opens a session of each rank's slab on its device.
    pub fn open(
        backend: &'static str,
        plan: &SolvePlan,
        options: &SolveOptions,
        ranks: Vec<(Device, Arc<RowSlab>)>,
        connector: Arc<dyn Connector>,
    ) -> Result<RankedSolver, SolverError> {
        let ends = ends(&*connector, ranks.len())?.into_iter();
        let lines = ends.map(|end| SharedLine::new(Line::new(backend, end)));
        let count = ranks.len();
        let open = |line: &SharedLine, (device, slab): (Device, Arc<RowSlab>)| {
            let slabs = slabs(&*device.backend, count)?;
            let session = slabs.open_slab(&slab, plan, options, Box::new(line.clone()))?;
            Ok(Rank { rows: slab.rows(), session, line: line.clone(), seconds: [0.0; 2] })
        };
        let ranks = together(backend, lines.zip(ranks).collect(), open).map_err(|ended| ended.error)?;
        Ok(RankedSolver { backend, plan: plan.clone(), connector, ranks, stopped: None })
    }
}

/// Returns an end of a new fabric for each rank.
fn ends(connector: &dyn Connector, ranks: usize) -> Result<Vec<Box<dyn Fabric>>> {
    let ends = connector.connect(ranks)?;
    if ends.len() != ranks {
        return Err(Error::limit("ranks of one process", ranks, ends.len(), "connect as many as there are"));
    }
    Ok(ends)
}

/// What a rank is given for a solve: its parts of the vectors, and the first one the caller's function.
struct Task<'r, 'o> {
    rank: &'r mut Rank,
    b: Array,
    x: Array,
    observe: Option<&'r mut Observe<'o>>,
}

impl Task<'_, '_> {
    /// Solves for the rank's part of `x`. An outcome with a report is that of all ranks; an error is this one's.
    fn solve(
        mut self,
        line: &SharedLine,
        parameters: &Parameters,
        limit: Option<(Instant, Duration)>,
    ) -> Result<(Array, Result<Report, SolverError>), SolverError> {
        let begun = Instant::now();
        let mut word = GO_ON;
        let mut observe = |iteration: usize, residual: f64| {
            let own = self.observe.as_mut().map_or(GO_ON, |observe| {
                let is_late = limit.is_some_and(|(started, limit)| started.elapsed() >= limit);
                match observe(iteration, residual) {
                    ControlFlow::Break(()) => STOP,
                    // The last iteration that is allowed ends by that limit.
                    ControlFlow::Continue(()) if is_late && iteration < parameters.iterations => TOO_LATE,
                    ControlFlow::Continue(()) => GO_ON,
                }
            });
            word = line.first_word(own).unwrap_or(STOP);
            if word == GO_ON { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let outcome = self.rank.session.solve(&self.b, &mut self.x, parameters, &mut observe);
        let line = line.lock();
        self.rank.seconds[0] += begun.elapsed().as_secs_f64();
        self.rank.seconds[1] += line.seconds;
        if let Some(stopped) = &line.stopped {
            return Err(stopped.error.clone().into());
        }
        match outcome {
            Err(SolverError::Stopped { report }) if word == TOO_LATE => {
                Ok((self.x, Err(SolverError::NotConverged { limit: Exhausted::Time, report })))
            }
            Err(error) if error.report().is_none() => Err(error),
            outcome => Ok((self.x, outcome)),
        }
    }
}

impl LinearSession for RankedSolver {
    fn plan(&self) -> &SolvePlan {
        &self.plan
    }

    fn solve(
        &mut self,
        b: &Array,
        x: &mut Array,
        parameters: &Parameters,
        observe: &mut Observe<'_>,
    ) -> Result<Report, SolverError> {
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        check_types(self.plan.dtype, b, x)?;
        check_lengths(self.plan.rows, b.len(), x.len())?;
        let (started, mut observe) = (Instant::now(), Some(observe));
        let mut tasks = Vec::with_capacity(self.ranks.len());
        let ends = ends(&*self.connector, self.ranks.len())?;
        for (rank, end) in self.ranks.iter_mut().zip(ends) {
            rank.line.connect(self.backend, end);
            let (b, own) = (b.part(rank.rows.clone())?, x.part(rank.rows.clone())?);
            tasks.push((rank.line.clone(), Task { rank, b, x: own, observe: observe.take() }));
        }
        // Clocks differ, so the first rank's decides.
        let limit = parameters.time.map(|limit| (started, limit));
        let parameters = Parameters { time: None, ..parameters.clone() };
        let outcomes =
            together(self.backend, tasks, |line, task: Task<'_, '_>| task.solve(line, &parameters, limit));
        let outcomes = match outcomes {
            Ok(outcomes) => outcomes,
            Err(Ended { error, is_lost, .. }) => {
                self.stopped = is_lost.then(|| error.clone());
                return Err(error);
            }
        };
        self.agreed(outcomes, x)
    }

    fn take_ranks(&mut self) -> Vec<RankSolve> {
        let taken = self.ranks.iter_mut().enumerate().map(|(rank, own)| {
            let [all, exchange_seconds] = std::mem::take(&mut own.seconds);
            let seconds = (all - exchange_seconds).max(0.0);
            let efficiency = if all > 0.0 { seconds / all } else { 0.0 };
            let (rows, exchange) = (own.rows.clone(), "messages");
            RankSolve { rank, rows, exchange, seconds, exchange_seconds, efficiency }
        });
        taken.collect()
    }
}

impl RankedSolver {
    /// Puts the parts of the solution together, and returns the outcome, which is the same on all ranks.
    fn agreed(
        &self,
        outcomes: Vec<(Array, Result<Report, SolverError>)>,
        x: &mut Array,
    ) -> Result<Report, SolverError> {
        let mut first: Option<Result<Report, SolverError>> = None;
        for (rank, (own, (part, outcome))) in self.ranks.iter().zip(outcomes).enumerate() {
            match (&mut *x, part) {
                (Array::F32(x), Array::F32(part)) => x[own.rows.clone()].copy_from_slice(&part),
                (Array::F64(x), Array::F64(part)) => x[own.rows.clone()].copy_from_slice(&part),
                // Both are of the plan's type.
                _ => {}
            }
            match &first {
                None => first = Some(outcome),
                Some(first) if !is_same(first, &outcome) => {
                    let (operation, backend) = (format!("rank {rank}"), self.backend);
                    let message = "its residuals are not those of rank 0".to_owned();
                    return Err(Error::Device { backend, operation, message }.into());
                }
                Some(_) => {}
            }
        }
        first.unwrap_or_else(|| Err(Error::limit("ranks", 0, "at least 1", "plan this system").into()))
    }
}

/// Returns whether two ranks went the same way, to the bit of each residual.
fn is_same(one: &Result<Report, SolverError>, other: &Result<Report, SolverError>) -> bool {
    let history = |outcome: &Result<Report, SolverError>| -> Vec<u64> {
        let history = match outcome {
            Ok(report) => &report.history[..],
            Err(error) => error.history(),
        };
        history.iter().map(|residual| residual.to_bits()).collect()
    };
    one.is_ok() == other.is_ok() && history(one) == history(other)
}
