//! Batches: where there are as many members as threads or more, each member on one thread, and the threads
//! take members as they become free. Fewer members run one after another on all threads.

use std::sync::Arc;
use std::time::Instant;

use abide_core::backend::{Advance, Members};
use abide_core::plan::{Order, is_too_small_to_choose, plan_cpu, plan_members};
use abide_core::{Array, Backend, DeviceSpec, Error, Options, Plan, Problem, Result, Session};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::backend::CpuBackend;

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
        // All members together have all of the machine.
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
        let open = |problem: &Problem, plan: &Plan, fields| self.open(problem, plan, fields);
        let members = Members::open(problem, plan, fields, open)?;
        Ok(Box::new(match plan.batch.map(|batch| batch.order) {
            Some(Order::AtOnce) => members.advancing(at_once(self.pool())),
            _ => members,
        }))
    }
}

/// Returns the way to advance members on all threads of a pool, or on rayon's global ones.
fn at_once(pool: Option<Arc<ThreadPool>>) -> Box<Advance> {
    Box::new(move |sessions, steps| {
        let begun = Instant::now();
        let mut all = || sessions.par_iter_mut().try_for_each(|session| session.advance(steps).map(drop));
        match &pool {
            Some(pool) => pool.install(all)?,
            None => all()?,
        }
        Ok(begun.elapsed().as_secs_f64())
    })
}
