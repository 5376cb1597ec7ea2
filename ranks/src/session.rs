//! The session of all ranks.
//!
//! All ranks are threads of this process, or some are, and other processes have the others: then all processes make the same
//! calls in the same order, each advances its own ranks, and what is read goes over the communicator to all of them.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use abide_core::backend::{Fields, Part, RankReport, check_field, check_values, check_window, window_of};
use abide_core::communicator::{Communicator, RankFailure};
use abide_core::floating::standard;
use abide_core::plan::Exchanging;
use abide_core::process::{Process, lost};
use abide_core::slabs::Slabs;
use abide_core::{Array, Error, Plan, Problem, Result, Session};

use crate::answer::Answer;
use crate::rank::Rank;

/// What a rank's thread is asked to do.
type Order = Box<dyn FnOnce(&mut Rank) + Send>;

/// A rank's thread. It ends when its orders do.
struct Worker {
    rank: usize,
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

/// A problem in progress on several devices. What is read, it reads from the ranks that own it; what is written, it writes
/// wherever a slab holds it.
pub struct DistributedSession {
    backend: &'static str,
    problem: Problem,
    plan: Plan,
    slabs: Slabs,
    /// This process's ranks.
    workers: Vec<Worker>,
    /// Planes of each field in the slab of each of them.
    held: Vec<Vec<usize>>,
    remaining: u64,
    /// Why the ranks stopped for good.
    stopped: Option<Error>,
    /// The process that has the ranks' threads.
    process: Process,
}

/// The initial fields of a session.
pub enum Initial<'a> {
    /// All fields of the whole domain.
    Whole(Vec<Array>),
    /// Fields of which the planes of this process's slabs alone are made.
    Made(&'a mut dyn Fields),
}

/// Opens the session of a rank on its device, with the slab's fields.
pub type Open = Box<dyn FnOnce(&Problem, Vec<Array>) -> Result<Box<dyn Session>> + Send>;

impl DistributedSession {
    /// Opens a session for each of this process's ranks, by the functions and at the ends of a communicator given, in the order of
    /// ranks.
    pub fn open(
        backend: &'static str,
        problem: &Problem,
        plan: &Plan,
        slabs: Slabs,
        fields: Initial<'_>,
        ranks: Vec<(Open, Box<dyn Communicator>)>,
    ) -> Result<DistributedSession> {
        let numbers: Vec<usize> = ranks.iter().map(|(_, communicator)| communicator.rank()).collect();
        let parts: Vec<Problem> =
            numbers.iter().map(|&rank| slabs.problem(rank, problem)).collect::<Result<_>>()?;
        let planes = |problem: &Problem, field: usize| problem.extents_of(field)[slabs.axis];
        let names = problem.program.fields().len();
        let held: Vec<Vec<usize>> =
            parts.iter().map(|part| (0..names).map(|field| planes(part, field)).collect()).collect();
        let mut own: Vec<Vec<Array>> = parts.iter().map(|_| Vec::new()).collect();
        let mut of_ranks = |field: usize, part: &mut dyn FnMut(usize, usize) -> Result<Array>| {
            for ((&rank, held), own) in numbers.iter().zip(&held).zip(&mut own) {
                own.push(part(rank, held[field])?);
            }
            Ok::<(), Error>(())
        };
        match fields {
            Initial::Whole(fields) => {
                for (field, values) in fields.into_iter().enumerate() {
                    // Each field is dropped once all slabs have their part of it.
                    let all = planes(problem, field);
                    of_ranks(field, &mut |rank, held| slabs.part(rank, &values, all, held))?;
                }
            }
            Initial::Made(fields) => {
                for field in 0..names {
                    let all = planes(problem, field);
                    let plane = problem.values_of(field) / all.max(1);
                    of_ranks(field, &mut |rank, held| {
                        let own = slabs.own(rank, all);
                        let read = |planes| fields.planes(field, planes, &own);
                        slabs.gathered(rank, problem.dtype, plane, all, held, read)
                    })?;
                }
                fields.finish()?;
            }
        }
        let shares: Vec<_> =
            numbers.iter().zip(&parts).map(|(&rank, part)| slabs.shares(rank, problem, part)).collect();
        let mut workers = Vec::new();
        let mut opened = Vec::new();
        for (((part, fields), shares), (open, communicator)) in
            parts.into_iter().zip(own).zip(shares).zip(ranks)
        {
            let (reply, replied) = channel();
            let (orders, inbox) = channel::<Order>();
            let (own, number) = (slabs.clone(), communicator.rank());
            let exchange = plan.ranks.as_ref().map_or(Exchanging::Auto, |ranks| ranks.exchange);
            let name = format!("abide-rank-{number}");
            let work = move || {
                let rank = match standard(|| open(&part, fields)) {
                    Ok(session) => Rank::new(backend, &own, &part, shares, exchange, session, communicator),
                    Err(error) => Err(abort(communicator, error)),
                };
                match rank {
                    Ok(mut rank) => {
                        // Whoever asked is there until all have answered.
                        let _ = reply.send(Ok(()));
                        inbox.into_iter().for_each(|order| standard(|| order(&mut rank)));
                    }
                    Err(stopped) => drop(reply.send(Err(stopped))),
                }
            };
            let thread = thread::Builder::new().name(name).spawn(work).map_err(|error| {
                let limit = format!("what the system grants ({error})");
                Error::limit("threads of ranks", slabs.slabs.len(), limit, "take fewer devices")
            })?;
            workers.push(Worker { rank: number, orders: Some(orders), thread: Some(thread) });
            opened.push((number, replied));
        }
        collect(backend, opened)?;
        let (problem, plan) = (problem.clone(), plan.clone());
        let process = Process::current();
        Ok(DistributedSession {
            backend,
            problem,
            plan,
            slabs,
            held,
            workers,
            remaining: 0,
            stopped: None,
            process,
        })
    }

    /// Returns whether other processes have ranks.
    fn is_part(&self) -> bool {
        self.workers.len() < self.slabs.slabs.len()
    }

    /// Has some of this process's ranks do something at the same time, and returns the answer of each. Where one fails,
    /// it aborts the ranks of other processes, which would not learn of the failure otherwise.
    fn ask<R: Send + 'static>(
        &self,
        orders: impl IntoIterator<
            Item = (usize, impl FnOnce(&mut Rank) -> Result<R, RankFailure> + Send + 'static),
        >,
    ) -> Result<Vec<R>> {
        if !self.process.is_current() {
            return Err(lost(format!("a session on {} devices", self.slabs.slabs.len())));
        }
        if let Some(error) = &self.stopped {
            return Err(error.clone());
        }
        let is_part = self.is_part();
        let replies = orders.into_iter().filter_map(|(rank, order)| {
            let worker = self.workers.iter().find(|worker| worker.rank == rank)?;
            let (reply, replied) = channel();
            let order: Order = Box::new(move |rank| {
                let answer = order(rank);
                if let (true, Err(stopped)) = (is_part, &answer) {
                    rank.abort(stopped);
                }
                drop(reply.send(answer));
            });
            // A thread that has ended drops the order, and its reply with it.
            if let Some(orders) = &worker.orders {
                let _ = orders.send(order);
            }
            Some((rank, replied))
        });
        collect(self.backend, replies.collect())
    }

    /// Has some ranks of all processes do something at the same time, and returns what each answers, in order. All processes
    /// give the same ranks orders.
    fn gather<R: Answer>(
        &self,
        what: &'static str,
        orders: Vec<(usize, impl FnOnce(&mut Rank) -> Result<R, RankFailure> + Send + 'static)>,
    ) -> Result<Vec<R>> {
        if !self.is_part() {
            return self.ask(orders);
        }
        let asked: Vec<usize> = orders.iter().map(|(rank, _)| *rank).collect();
        let mut orders = orders;
        // A rank without an order takes part with nothing.
        let all = self.workers.iter().map(|worker| {
            let at = orders.iter().position(|(rank, _)| *rank == worker.rank);
            let order = at.map(|at| orders.swap_remove(at).1);
            let share = move |rank: &mut Rank| {
                let own = order.map(|order| order(rank)).transpose()?;
                rank.gather(what, own.as_ref().map(|own| own.bytes()).as_deref().unwrap_or_default())
            };
            (worker.rank, share)
        });
        let all = self.ask(all.collect::<Vec<_>>())?.into_iter().next().unwrap_or_default();
        let answer = |rank: usize| {
            let answer = all.get(rank).and_then(|bytes| R::of(bytes, self.problem.dtype));
            let (backend, operation) = (self.backend, format!("rank {rank}, {what}"));
            let message =
                "its answer is of another kind; start all processes with the same arguments".to_owned();
            answer.ok_or(Error::Device { backend, operation, message })
        };
        asked.into_iter().map(answer).collect()
    }

    /// Has all of this process's ranks do something.
    fn ask_all<R: Send + 'static>(
        &self,
        order: impl Fn(&mut Rank) -> Result<R, RankFailure> + Clone + Send + 'static,
    ) -> Result<Vec<R>> {
        self.ask(self.workers.iter().map(|worker| (worker.rank, order.clone())))
    }

    fn planes(&self, field: usize) -> usize {
        self.problem.extents_of(field)[self.slabs.axis]
    }

    /// Returns for each rank that owns any of a field's planes `asked` those planes, by the slab's indices.
    fn owners(&self, field: usize, asked: Range<usize>) -> Vec<(usize, Range<usize>)> {
        let owned = |rank: usize| {
            let own = self.slabs.own(rank, self.planes(field));
            let range = own.start.max(asked.start)..own.end.min(asked.end);
            let begin = self.slabs.begin(rank);
            (!range.is_empty())
                .then(|| (rank, range.start - own.start + begin..range.end - own.start + begin))
        };
        (0..self.slabs.slabs.len()).filter_map(owned).collect()
    }

    fn check_field_number(&self, field: usize) -> Result<()> {
        let names = self.problem.program.fields();
        names.get(field).map(drop).ok_or_else(|| Error::unknown("field", field.to_string(), names))
    }

    /// Has every rank go on although a condition has ended the run, as it does where a value is written.
    fn go_on(&self) -> Result<()> {
        match self.problem.until {
            Some(_) => self.ask_all(Rank::go_on).map(drop),
            None => Ok(()),
        }
    }
}

/// Aborts all ranks because one could not begin.
fn abort(mut communicator: Box<dyn Communicator>, error: Error) -> RankFailure {
    communicator.abort(&error.to_string());
    error.into()
}

/// Waits for all answers. Of several errors the one that the others followed from is returned.
fn collect<R>(
    backend: &'static str,
    replies: Vec<(usize, Receiver<Result<R, RankFailure>>)>,
) -> Result<Vec<R>> {
    let mut values = Vec::new();
    let mut stopped: Option<RankFailure> = None;
    for (rank, reply) in replies {
        let reply = reply.recv().unwrap_or_else(|_| {
            let operation = format!("rank {rank}");
            let message = "its thread has ended".to_owned();
            Err(Error::Device { backend, operation, message }.into())
        });
        match reply {
            Ok(value) => values.push(value),
            Err(own) if stopped.as_ref().is_none_or(|first| own.is_before(first)) => stopped = Some(own),
            Err(_) => {}
        }
    }
    match stopped {
        Some(stopped) => Err(stopped.error),
        None => Ok(values),
    }
}

impl Session for DistributedSession {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        match self.ask_all(move |rank| rank.advance(steps)) {
            Ok(all) => {
                // All ranks have agreed on both.
                let first = all.first();
                self.remaining = first.map_or(0, |first| first.remaining);
                Ok(first.map_or(0.0, |first| first.seconds))
            }
            Err(error) => {
                // Slabs are no longer of the same step.
                self.stopped = Some(error.clone());
                Err(error)
            }
        }
    }

    fn remaining(&self) -> u64 {
        self.remaining
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        self.check_field_number(field)?;
        self.read_window(field, [0; 3], self.problem.extents_of(field))
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.check_field_number(field)?;
        let window = check_window(self.problem.extents_of(field), low, high)?;
        let axis = self.slabs.axis;
        let owners = self.owners(field, low[axis]..high[axis]).into_iter().map(|(rank, planes)| {
            let (mut low, mut high) = (low, high);
            (low[axis], high[axis]) = (planes.start, planes.end);
            (rank, move |rank: &mut Rank| Ok(rank.session.read_window(field, low, high)?))
        });
        let parts = self.gather("reading a field", owners.collect())?;
        Array::join(self.problem.dtype, window.iter().product(), parts.into_iter().map(Ok))
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        check_field(&self.problem, field, values)?;
        let planes = self.planes(field);
        let mut orders = Vec::new();
        for (worker, held) in self.workers.iter().zip(&self.held) {
            let values = self.slabs.part(worker.rank, values, planes, held[field])?;
            orders.push((worker.rank, move |rank: &mut Rank| Ok(rank.session.write(field, &values)?)));
        }
        self.ask(orders)?;
        self.go_on()
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        let window = check_values(&self.problem, field, low, high, values)?;
        let (axis, planes) = (self.slabs.axis, self.planes(field));
        let mut orders = Vec::new();
        for (worker, held) in self.workers.iter().zip(&self.held) {
            let rank = worker.rank;
            let pieces = self.slabs.pieces(rank, low[axis]..high[axis], planes, held[field]);
            for (from, at) in pieces {
                // The piece within the window's values, and its place in the slab.
                let (mut begin, mut end) = ([0; 3], window);
                (begin[axis], end[axis]) = (from.start - low[axis], from.end - low[axis]);
                let part = window_of(window, values, begin, end)?;
                let (mut low, mut high) = (low, high);
                (low[axis], high[axis]) = (at, at + from.len());
                let order = move |rank: &mut Rank| Ok(rank.session.write_window(field, low, high, &part)?);
                orders.push((rank, order));
            }
        }
        self.ask(orders)?;
        self.go_on()
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        const VALUES: usize = 4 << 20;
        self.check_field_number(field)?;
        let step = (VALUES * self.planes(field) / self.problem.values_of(field).max(1)).max(1);
        let owners = self.owners(field, 0..self.planes(field)).into_iter().map(|(rank, planes)| {
            let order = move |rank: &mut Rank| {
                // Some planes at a time, so that no second slab is held.
                let mut count = 0;
                for start in planes.clone().step_by(step) {
                    let [low, high] = rank.halo.window(field, start..planes.end.min(start + step));
                    count += rank.session.read_window(field, low, high)?.non_finite() as u64;
                }
                Ok(count)
            };
            (rank, order)
        });
        Ok(self.gather("counting values", owners.collect())?.into_iter().sum::<u64>())
    }

    fn scalars(&mut self) -> Result<Vec<f64>> {
        // Each rank finishes every reduction by itself, so all have the same.
        let all = self.ask_all(|rank| Ok(rank.session.scalars()?))?;
        Ok(all.into_iter().next().unwrap_or_default())
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        self.ask_all(move |rank| Ok(rank.session.set_parameter(parameter, value)?))?;
        self.go_on()
    }

    fn most(&mut self, own: f64) -> Result<f64> {
        if !self.is_part() {
            return Ok(own);
        }
        let all = (0..self.slabs.slabs.len()).map(|rank| (rank, move |_: &mut Rank| Ok([own, 0.0])));
        let all = self.gather("the most of all processes", all.collect())?;
        Ok(all.into_iter().map(|[own, _]| own).fold(own, f64::max))
    }

    fn part(&mut self) -> Option<&mut dyn Part> {
        // A process has one rank, so that its planes are one piece.
        (self.is_part() && self.workers.len() == 1).then_some(self as &mut dyn Part)
    }

    fn take_ranks(&mut self) -> Result<Vec<RankReport>> {
        let all = (0..self.slabs.slabs.len()).map(|rank| (rank, |rank: &mut Rank| Ok(rank.take_seconds())));
        let seconds = self.gather("the times of ranks", all.collect())?;
        // All ranks exchange in the same way.
        let first = self.workers.first().map(|own| (own.rank, |rank: &mut Rank| Ok(rank.halo.way().name())));
        let exchange = self.ask(first)?.first().copied().unwrap_or_default();
        let report = |(rank, [seconds, exchange_seconds]): (usize, [f64; 2])| {
            let all = seconds + exchange_seconds;
            let efficiency = if all > 0.0 { seconds / all } else { 0.0 };
            RankReport {
                rank,
                planes: self.slabs.slabs[rank].own.clone(),
                seconds,
                exchange,
                exchange_seconds,
                efficiency,
            }
        };
        Ok(seconds.into_iter().enumerate().map(report).collect())
    }
}

impl Part for DistributedSession {
    fn rank(&self) -> usize {
        self.workers.first().map_or(0, |worker| worker.rank)
    }

    fn own(&self, field: usize) -> Range<usize> {
        self.slabs.own(self.rank(), self.planes(field))
    }

    fn read_planes(&mut self, field: usize, planes: Range<usize>) -> Result<Array> {
        self.check_field_number(field)?;
        let own = self.rank();
        let owners = self.owners(field, planes).into_iter().filter(|(rank, _)| *rank == own);
        let order = owners.map(|(rank, planes)| {
            let order = move |rank: &mut Rank| {
                let [low, high] = rank.halo.window(field, planes);
                Ok(rank.session.read_window(field, low, high)?)
            };
            (rank, order)
        });
        match self.ask(order.collect::<Vec<_>>())?.into_iter().next() {
            Some(values) => Ok(values),
            None => Array::zeros(self.problem.dtype, 0),
        }
    }

    fn gather_bytes(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let bytes = own.to_vec();
        let all = self.ask_all(move |rank| rank.gather("what all processes say of a file", &bytes))?;
        Ok(all.into_iter().next().unwrap_or_default())
    }
}

impl Drop for DistributedSession {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The threads are the parent's, who may just hold what orders end by.
            self.workers.drain(..).for_each(std::mem::forget);
        }
        // All orders end before any thread is waited for.
        self.workers.iter_mut().for_each(|worker| drop(worker.orders.take()));
        for thread in self.workers.iter_mut().filter_map(|worker| worker.thread.take()) {
            // A thread that unwound has said so when it was last asked.
            let _ = thread.join();
        }
    }
}
