//! The session of all ranks that solve one system.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_core::backend::{LinearSession, Observe};
use abide_core::communicator::{CommError, Communicator, Endpoint};
use abide_core::solver::{Exhausted, Parameters, RankSolve, Report, SolvePlan, SolverError};
use abide_core::{Array, DType, Error, Result};
use abide_solvers::{check_lengths, check_types};

use super::concurrent::{Ended, together};
use crate::factory::CommunicatorFactory;

/// A system whose rows are divided among ranks. Each solve connects them anew, so that one that failed spoils no other.
pub struct RankedSolver {
    backend: &'static str,
    plan: SolvePlan,
    kind: Kind,
    factory: Arc<dyn CommunicatorFactory>,
    /// This process's ranks.
    ranks: Vec<Rank>,
    /// Seconds of each rank of all processes since the last report: in total, and the part spent exchanging and
    /// waiting.
    seconds: Vec<[f64; 2]>,
    /// Why no solve is possible any more.
    stopped: Option<SolverError>,
}

struct Rank {
    rows: Range<usize>,
    session: Box<dyn LinearSession>,
    endpoint: Endpoint,
}

/// How the session of a rank solves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By messages of its rank: the session gets its part of the vectors, and calls its observer at each iterate.
    Messages,
    /// By joint work of the devices: the session gets whole vectors and updates its own rows. It receives the decision
    /// of the first rank's observer itself.
    PeerPuts,
}

impl Kind {
    /// Returns what reports call the exchange.
    fn word(self) -> &'static str {
        match self {
            Kind::Messages => "messages",
            Kind::PeerPuts => "stores",
        }
    }
}

/// What opens the session of a rank, over the rank's endpoint.
pub type Opening<'a> = Box<dyn FnOnce(&Endpoint) -> Result<Box<dyn LinearSession>, SolverError> + Send + 'a>;

/// How a solve ended on a rank, with the report of this rank, or with the reports of all ranks where other processes
/// have some.
struct Solved {
    outcome: Result<Report, SolverError>,
    reported: Vec<Reported>,
}

/// A rank's report on a solve.
struct Reported {
    /// The last word of its observer.
    word: u8,
    /// Bytes that are equal on ranks whose solves went the same way: whether it converged, and each residual.
    way: Vec<u8>,
    /// Seconds in total, and the part spent exchanging and waiting.
    seconds: [f64; 2],
    /// Its part of the iterate.
    x: Array,
}

/// The first rank's word after each iterate: what its clock and the caller's function decide, all ranks do.
const GO_ON: u8 = 0;
const STOP: u8 = 1;
const TOO_LATE: u8 = 2;

impl RankedSolver {
    /// Opens the session of each of this process's ranks, at its end of a communicator.
    pub fn open(
        backend: &'static str,
        plan: &SolvePlan,
        kind: Kind,
        ranks: Vec<(Box<dyn Communicator>, Opening<'_>)>,
        factory: Arc<dyn CommunicatorFactory>,
    ) -> Result<RankedSolver, SolverError> {
        let count = plan.ranks.len();
        let mut endpoints = Vec::with_capacity(ranks.len());
        for (end, open) in ranks {
            let rank = end.rank();
            let Some(rows) = plan.ranks.get(rank).cloned() else {
                return Err(Error::limit("rank", rank, count, "plan with these processes").into());
            };
            endpoints.push((Endpoint::new(backend, end), (rows, open)));
        }
        let open = |endpoint: &Endpoint, (rows, open): (Range<usize>, Opening<'_>)| {
            Ok(Rank { rows, session: open(endpoint)?, endpoint: endpoint.clone() })
        };
        let ranks = together(backend, endpoints, open).map_err(|ended| ended.error)?;
        let seconds = vec![[0.0; 2]; count];
        Ok(RankedSolver { backend, plan: plan.clone(), kind, factory, ranks, seconds, stopped: None })
    }
}

/// Returns the ends of this process's ranks of a new communicator: of all, unless each process has one.
pub fn ends(factory: &dyn CommunicatorFactory, ranks: usize) -> Result<Vec<Box<dyn Communicator>>> {
    let ends = factory.connect(ranks)?;
    if factory.processes().is_none() && ends.len() != ranks {
        return Err(Error::limit("ranks of one process", ranks, ends.len(), "connect as many as there are"));
    }
    Ok(ends)
}

/// What a rank is given for a solve: the vectors or its parts of them, and the first one the caller's function.
struct Task<'r, 'o> {
    rank: &'r mut Rank,
    kind: Kind,
    b: Cow<'r, Array>,
    x: Array,
    observe: Option<&'r mut Observe<'o>>,
}

impl Task<'_, '_> {
    /// Solves for the rank's part of `x`. An outcome with a report is that of all ranks; an error is this one's.
    fn solve(
        mut self,
        endpoint: &Endpoint,
        parameters: &Parameters,
        limit: Option<(Instant, Duration)>,
        is_part: bool,
    ) -> Result<Solved, SolverError> {
        let (begun, kind) = (Instant::now(), self.kind);
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
            word = match kind {
                Kind::Messages => endpoint.broadcast(own).unwrap_or(STOP),
                Kind::PeerPuts => own,
            };
            if word == GO_ON { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let outcome = self.rank.session.solve(&self.b, &mut self.x, parameters, &mut observe);
        // Devices that solve jointly report how long they waited.
        let own = self.rank.session.take_ranks().first().map(|own| (own.seconds, own.exchange_seconds));
        let seconds = match own {
            Some((computing, exchanging)) => [computing + exchanging, exchanging],
            None => [begun.elapsed().as_secs_f64(), endpoint.take_seconds()],
        };
        if let Some(failure) = endpoint.failed() {
            return Err(failure.error.into());
        }
        let outcome = match outcome {
            Err(error) if error.report().is_none() => return Err(error),
            outcome => outcome,
        };
        let x = match kind {
            Kind::Messages => self.x,
            Kind::PeerPuts => self.x.part(self.rank.rows.clone())?,
        };
        let own = Reported { word, way: way(&outcome), seconds, x };
        if !is_part {
            return Ok(Solved { outcome, reported: vec![own] });
        }
        let when = "the end of a solve";
        let all = endpoint.all_gather_at(when, &own.bytes()).map_err(|failure| failure.error)?;
        let reported = all.iter().map(|bytes| Reported::of(bytes, own.x.dtype())).collect::<Option<_>>();
        let reported = reported.ok_or_else(|| {
            let other = CommError::Failed("a rank told something else".to_owned());
            endpoint.failure(when, "all ranks", other).error
        })?;
        Ok(Solved { outcome, reported })
    }
}

impl Reported {
    fn bytes(&self) -> Vec<u8> {
        let length = (self.way.len() as u64).to_le_bytes();
        let seconds = self.seconds.map(f64::to_le_bytes);
        [&[self.word], &length[..], &self.way, seconds.as_flattened(), self.x.as_bytes()].concat()
    }

    fn of(bytes: &[u8], dtype: DType) -> Option<Reported> {
        let (&word, rest) = bytes.split_first()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (way, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        let (seconds, x) = rest.split_first_chunk::<16>()?;
        let [all, exchanging] = *seconds.as_chunks().0 else { return None };
        let seconds = [all, exchanging].map(f64::from_le_bytes);
        Some(Reported { word, way: way.to_vec(), seconds, x: Array::from_bytes(dtype, x) })
    }
}

/// Returns [`Reported::way`] of a solve.
fn way(outcome: &Result<Report, SolverError>) -> Vec<u8> {
    let history = match outcome {
        Ok(report) => &report.history[..],
        Err(error) => error.history(),
    };
    let residuals = history.iter().flat_map(|residual| residual.to_bits().to_le_bytes());
    std::iter::once(u8::from(outcome.is_ok())).chain(residuals).collect()
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
        let is_part = self.ranks.len() < self.plan.ranks.len();
        let ends = ends(&*self.factory, self.plan.ranks.len())?;
        for (rank, end) in self.ranks.iter_mut().zip(ends) {
            rank.endpoint.reconnect(end);
            let (b, own) = match self.kind {
                Kind::Messages => (Cow::Owned(b.part(rank.rows.clone())?), x.part(rank.rows.clone())?),
                Kind::PeerPuts => (Cow::Borrowed(b), x.part(0..x.len())?),
            };
            tasks.push((
                rank.endpoint.clone(),
                Task { rank, kind: self.kind, b, x: own, observe: observe.take() },
            ));
        }
        // Clocks differ, so the first rank's decides.
        let limit = parameters.time.map(|limit| (started, limit));
        let parameters = Parameters { time: None, ..parameters.clone() };
        let solved = together(self.backend, tasks, |endpoint, task: Task<'_, '_>| {
            task.solve(endpoint, &parameters, limit, is_part)
        });
        let solved = match solved {
            Ok(solved) => solved,
            Err(Ended { error, is_lost, .. }) => {
                self.stopped = is_lost.then(|| error.clone());
                return Err(error);
            }
        };
        self.agreed(solved, x)
    }

    fn take_ranks(&mut self) -> Vec<RankSolve> {
        let taken = self.seconds.iter_mut().zip(&self.plan.ranks).enumerate().map(|(rank, (own, rows))| {
            let [all, exchange_seconds] = std::mem::take(own);
            let seconds = (all - exchange_seconds).max(0.0);
            let efficiency = if all > 0.0 { seconds / all } else { 0.0 };
            let (rows, exchange) = (rows.clone(), self.kind.word());
            RankSolve { rank, rows, exchange, seconds, exchange_seconds, efficiency }
        });
        taken.collect()
    }
}

impl RankedSolver {
    /// Assembles the solution from its parts, and returns the outcome, which is the same on all ranks.
    fn agreed(&mut self, solved: Vec<Solved>, x: &mut Array) -> Result<Report, SolverError> {
        let (outcomes, reported): (Vec<_>, Vec<_>) =
            solved.into_iter().map(|own| (own.outcome, own.reported)).unzip();
        let reported: Vec<Reported> = reported.into_iter().flatten().collect();
        // All are looked at before a part of any is put in its place.
        let differs =
            |(own, rows): (&Reported, &Range<usize>)| own.way != reported[0].way || own.x.len() != rows.len();
        if let Some(rank) = reported.iter().zip(&self.plan.ranks).position(differs) {
            let message = "its residuals are not those of rank 0".to_owned();
            let (operation, backend) = (format!("rank {rank}"), self.backend);
            return Err(Error::Device { backend, operation, message }.into());
        }
        for (rank, (own, rows)) in reported.iter().zip(&self.plan.ranks).enumerate() {
            put(x, rows.clone(), &own.x);
            for (all, seconds) in self.seconds[rank].iter_mut().zip(own.seconds) {
                *all += seconds;
            }
        }
        match outcomes.into_iter().next() {
            // Of all ranks' clocks and functions those of the first decide.
            Some(Err(SolverError::Stopped { report })) if reported[0].word == TOO_LATE => {
                Err(SolverError::NotConverged { limit: Exhausted::Time, report })
            }
            Some(outcome) => outcome,
            None => Err(Error::limit("ranks", 0, "at least 1", "plan this system").into()),
        }
    }
}

/// Puts a rank's part of the iterate in its place; both are of the plan's type.
fn put(x: &mut Array, rows: Range<usize>, part: &Array) {
    match (x, part) {
        (Array::F32(x), Array::F32(part)) => x[rows].copy_from_slice(part),
        (Array::F64(x), Array::F64(part)) => x[rows].copy_from_slice(part),
        _ => {}
    }
}
