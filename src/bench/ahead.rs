//! Kernels of coming problems, compiled beside the measurements: a long table waits for a device, not for a
//! compiler.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::backend::{Compiler, Opened};
use crate::program::Problem;
use crate::{Options, Plan};

/// Threads that are left to what is measured.
const LEFT: usize = 2;

/// How many steps the kernels of a problem will do, and in which plans.
pub struct Wanted {
    /// The plans.
    pub plans: Vec<Plan>,
    /// Whether steps may be no whole passes.
    pub any_steps: bool,
}

impl Wanted {
    /// The plans of some options, for any number of steps.
    pub fn of(opened: &Opened, problem: &Problem, options: &[Options]) -> Wanted {
        let plans = options.iter().filter_map(|options| opened.backend.plan(problem, options).ok());
        Wanted { plans: plans.collect(), any_steps: true }
    }
}

/// The problems whose kernels are all there.
struct Ready {
    done: Mutex<Vec<bool>>,
    changed: Condvar,
}

/// Calls `each` with the number of each problem, in order, once the kernels that `wanted` names for it are
/// compiled. They are compiled on all but two of the machine's threads, where the backend has a compiler; a
/// kernel that does not compile is left to `each` to meet. Ends with the first error of `each`.
pub fn compiled_ahead<E>(
    compiler: Option<&dyn Compiler>,
    problems: &[&Problem],
    wanted: impl Fn(usize) -> Wanted + Sync,
    each: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).saturating_sub(LEFT);
    compiled_by(threads, compiler, problems, wanted, each)
}

/// The same on so many threads.
fn compiled_by<E>(
    threads: usize,
    compiler: Option<&dyn Compiler>,
    problems: &[&Problem],
    wanted: impl Fn(usize) -> Wanted + Sync,
    mut each: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    let Some(compiler) = compiler.filter(|_| threads > 0) else {
        return (0..problems.len()).try_for_each(each);
    };
    let ready = Ready { done: Mutex::new(vec![false; problems.len()]), changed: Condvar::new() };
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(problem) = problems.get(number) else { return };
            if !stop.load(Ordering::Relaxed) {
                compile(compiler, problem, &wanted(number), &stop);
            }
            ready.finish(number);
        }
    };
    std::thread::scope(|scope| {
        let spawned = (0..threads.min(problems.len()))
            .filter(|_| std::thread::Builder::new().spawn_scoped(scope, work).is_ok())
            .count();
        let mut run = || {
            for number in 0..problems.len() {
                // Without threads each session compiles for itself.
                if spawned > 0 {
                    ready.wait(number);
                }
                each(number)?;
            }
            Ok(())
        };
        let ended = run();
        stop.store(true, Ordering::Relaxed);
        ended
    })
}

fn compile(compiler: &dyn Compiler, problem: &Problem, wanted: &Wanted, stop: &AtomicBool) {
    for plan in wanted.plans.iter().take_while(|_| !stop.load(Ordering::Relaxed)) {
        // Whoever opens a session for the plan meets the error.
        let _ = compiler.compile(problem, plan, wanted.any_steps);
    }
}

impl Ready {
    fn finish(&self, number: usize) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)[number] = true;
        self.changed.notify_all();
    }

    fn wait(&self, number: usize) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        while !done[number] {
            done = self.changed.wait(done).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Result, bench};

    /// A compiler that notes the extents of what it has compiled, and refuses every other plan.
    #[derive(Default)]
    struct Notes(Mutex<Vec<usize>>);

    impl Compiler for Notes {
        fn compile(&self, problem: &Problem, _: &Plan, any_steps: bool) -> Result<()> {
            assert!(any_steps);
            let mut all = self.0.lock().unwrap();
            all.push(problem.shape.extents()[0]);
            match all.len() % 2 {
                0 => Ok(()),
                _ => Err(crate::Error::unsupported("a compiler", "every other plan", "take the next")),
            }
        }
    }

    #[test]
    fn kernels_are_there_when_their_problem_comes_and_an_error_ends_all() {
        let opened = crate::backend::open("cpu").unwrap();
        assert!(opened.backend.compiler().is_none());
        let problem =
            |n: usize| bench::problem("2d5pt", crate::Shape::new(&[n, 64]).unwrap(), DType::F32).unwrap();
        let problems: Vec<Problem> = (20..50).map(problem).collect();
        let problems: Vec<&Problem> = problems.iter().collect();
        let options = [Options::default(), bench::stepwise()];
        for (threads, with) in [(2, false), (0, true), (1, true), (3, true)] {
            let notes = Notes::default();
            let compiler = with.then_some(&notes as &dyn Compiler);
            let mut seen = Vec::new();
            let wanted = |number: usize| Wanted::of(&opened, problems[number], &options);
            let ended = compiled_by(threads, compiler, &problems, wanted, |number| {
                if with && threads > 0 {
                    let compiled = notes.0.lock().unwrap();
                    assert_eq!(compiled.iter().filter(|&&n| n == 20 + number).count(), 2);
                }
                seen.push(number);
                if number == 12 { Err("enough") } else { Ok(()) }
            });
            assert_eq!((ended, seen), (Err("enough"), (0..=12).collect()));
        }
    }
}
