//! Batches: where there are as many members as threads or more, each member on one thread, and the threads
//! take members as they become free. Fewer members run one after another on all threads.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use abide_core::backend::{
    Advance, MemberSessions, check_field, check_fields, check_values, check_window, divide,
};
use abide_core::floating::standard;
use abide_core::plan::{Cpu, Order, Schedule};
use abide_core::{
    Array, Backend, DType, DeviceSpec, Error, Options, Plan, Problem, Real, Result, Session, memory,
};
use abide_planner::{is_too_small_to_choose, plan_cpu, plan_members};
use rayon::prelude::*;

use crate::backend::{CpuBackend, doubles, singles};
use crate::count;
use crate::session::Threaded;
use crate::state::State;
use crate::stepwise::has_fused_multiply_add;
use crate::threads::{Pool, on};

impl CpuBackend {
    /// Plans a batch.
    pub(crate) fn plan_batch(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        let threads = self.threads();
        if self.is_reference() || problem.members() < threads {
            return plan_members(problem, Order::InTurn, |member| self.plan(member, options));
        }
        if options.pin {
            return Err(Error::unsupported(
                "backend cpu",
                "pinned threads were asked for, and the members of a batch run on whichever thread is free",
                "leave --pin out",
            ));
        }
        let machine = self.machine(!is_too_small_to_choose(problem, options));
        // What a thread can count on while all others work too.
        let part = |rate: f64| rate / threads as f64;
        let share = DeviceSpec {
            multiprocessors: 1,
            memory_bandwidth: part(machine.memory_bandwidth),
            f32_flops: part(machine.f32_flops),
            f64_flops: part(machine.f64_flops),
            ..machine.clone()
        };
        let mut plan = plan_members(problem, Order::AtOnce, |member| plan_cpu(member, &share, options))?;
        // The members share the whole machine.
        plan.device = machine.clone();
        plan.traffic.flops_per_second *= threads as f64;
        Ok(plan)
    }

    /// Opens a batch.
    pub(crate) fn open_batch(
        &self,
        problem: &Problem,
        plan: &Plan,
        fields: Vec<Array>,
    ) -> Result<Box<dyn Session>> {
        if let (Schedule::Cpu(cpu), true, false) = (&plan.schedule, problem.is_plain(), self.is_reference()) {
            plan.check(problem)?;
            check_fields(problem, &fields)?;
            let own = divide(problem, fields)?.into_iter();
            return Ok(match problem.dtype {
                DType::F32 => Box::new(self.batch(problem, plan, cpu, own.map(singles))?),
                DType::F64 => Box::new(self.batch(problem, plan, cpu, own.map(doubles))?),
            });
        }
        let open = |problem: &Problem, plan: &Plan, fields| self.open(problem, plan, fields);
        let members = MemberSessions::open(problem, plan, fields, open)?;
        Ok(Box::new(match plan.batch.map(|batch| batch.order) {
            Some(Order::AtOnce) => members.advancing(at_once(self.pool())),
            _ => members,
        }))
    }

    fn batch<T: Real>(
        &self,
        problem: &Problem,
        plan: &Plan,
        cpu: &Cpu,
        fields: impl Iterator<Item = Vec<Vec<T>>> + Send,
    ) -> Result<BatchSession<T>> {
        let side_by_side = plan.batch.is_some_and(|batch| batch.order == Order::AtOnce);
        let count = if side_by_side { self.threads().min(problem.members()) } else { 1 };
        let (member, of_member, fused) = (problem.member(0), plan.of_member(), has_fused_multiply_add());
        let worker =
            |_| Threaded::open(&member, &of_member, cpu, self.workers(cpu)?, fused, State::default());
        let workers = (0..count).map(worker).collect::<Result<_>>()?;
        let states = || {
            let states = fields.enumerate().map(|(at, fields)| State::new(&problem.member(at), fields));
            states.collect::<Result<_>>()
        };
        // The threads that will sweep the arrays are the first to touch them.
        let members = on(self.pool().as_ref(), states)??;
        Ok(BatchSession {
            problem: problem.clone(),
            member,
            plan: plan.clone(),
            pool: self.pool(),
            workers,
            members,
        })
    }
}

/// The members of a batch of a plain problem, and the sessions in which they take turns: as many as work side by
/// side. So a member takes no memory but its fields', and what a session needs besides stays in the caches.
struct BatchSession<T> {
    problem: Problem,
    /// The problem of a member, whose parameters are of no account.
    member: Problem,
    plan: Plan,
    pool: Option<Arc<Pool>>,
    workers: Vec<Threaded<T>>,
    members: Vec<State<T>>,
}

/// Advances a member in the place of a session's own domain.
fn take_turn<T: Real>(worker: &mut Threaded<T>, member: &mut State<T>, steps: u64) -> Result<()> {
    std::mem::swap(&mut worker.state, member);
    let done = worker.advance(steps);
    std::mem::swap(&mut worker.state, member);
    done.map(drop)
}

impl<T: Real> BatchSession<T> {
    /// Returns each member, with its part of values that are for all.
    fn parts(&mut self, values: usize) -> impl Iterator<Item = (&mut State<T>, Range<usize>)> {
        let part = values / self.members.len().max(1);
        self.members.iter_mut().enumerate().map(move |(at, state)| (state, at * part..(at + 1) * part))
    }
}

impl<T: Real> Session for BatchSession<T> {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        let begun = Instant::now();
        let waiting = Mutex::new(self.members.iter_mut());
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let turns = |worker: &mut Threaded<T>| {
            std::iter::from_fn(next).try_for_each(|member| take_turn(worker, member, steps))
        };
        match &mut self.workers[..] {
            // One session has all threads to itself.
            [one] => turns(one)?,
            all => on(self.pool.as_ref(), || all.par_iter_mut().try_for_each(turns))??,
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        let all = self.problem.values_of(field) * self.problem.members();
        let mut values = memory::reserved(all, "a field", "choose a smaller batch, a smaller size or f32")?;
        for state in &self.members {
            values.extend_from_slice(state.field(&self.member, field)?);
        }
        Ok(T::into_array(values))
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let window = check_window(self.problem.extents_of(field), low, high)?;
        let all = window.iter().product::<usize>() * self.problem.members();
        let windows = self.members.iter().map(|state| state.window(&self.member, field, low, high));
        Array::join(self.problem.dtype, all, windows)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        check_field(&self.problem, field, values)?;
        let member = self.member.clone();
        self.parts(values.len())
            .try_for_each(|(state, part)| state.write(&member, field, &values.part(part)?))
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        check_values(&self.problem, field, low, high, values)?;
        let member = self.member.clone();
        let mut parts = self.parts(values.len());
        parts.try_for_each(|(state, part)| state.write_window(&member, field, low, high, &values.part(part)?))
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        let count =
            |state: &State<T>| count::non_finite(state.field(&self.member, field)?, self.pool.as_ref());
        self.members.iter().map(count).sum()
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        let set = |state: &mut State<T>| state.set_parameter(&self.member, parameter, value);
        self.members.iter_mut().try_for_each(set)
    }
}

/// Returns the way to advance members on all threads of a pool, or on rayon's global ones.
fn at_once(pool: Option<Arc<Pool>>) -> Box<Advance> {
    Box::new(move |sessions, steps| {
        let begun = Instant::now();
        let advance = |session: &mut Box<dyn Session>| standard(|| session.advance(steps).map(drop));
        on(pool.as_ref(), || sessions.par_iter_mut().try_for_each(advance))??;
        Ok(begun.elapsed().as_secs_f64())
    })
}
