//! Kernels of coming problems, compiled beside the measurements: a long table waits for a device, not for a
//! compiler.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use abide::backend::{Compiler, Opened};
use abide::program::Problem;
use abide::{Options, Plan};

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

    /// Compiles the kernels of one of the plans; of none where there are not so many. An error is left to whoever
    /// opens a session for the plan.
    pub fn compile(&self, compiler: &dyn Compiler, problem: &Problem, plan: usize) {
        if let Some(plan) = self.plans.get(plan) {
            let _ = compiler.compile(problem, plan, self.any_steps);
        }
    }
}

/// Has the kernels of one plan compiled, and kept where sessions find them: of the problem and of its plan in
/// [`Wanted`] by their numbers. Returns whether it can do more.
pub type Worker<'a> = Box<dyn FnMut(usize, usize, &Wanted) -> bool + Send + 'a>;

/// Returns how many workers leave two of the machine's threads to what is measured.
pub fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get()).saturating_sub(LEFT)
}

/// Calls `each` with the number of each problem, in order, once the kernels that `wanted` names for it are
/// compiled by the workers, each on a thread. They take one plan after another in the problems' order, so that
/// the first problem is ready first. What a worker takes and does not do counts as done, and without workers
/// all does: a session compiles for itself what is not there. Ends with the first error of `each`.
pub fn compiled_ahead<E>(
    problems: usize,
    wanted: impl Fn(usize) -> Wanted + Sync,
    workers: Vec<Worker<'_>>,
    mut each: impl FnMut(usize) -> Result<(), E>,
) -> Result<(), E> {
    let state = State { open: vec![0; problems], ..State::default() };
    let (turn, state) = (Mutex::default(), Mutex::new(state));
    let queue = Queue { problems, wanted: &wanted, turn, state, changed: Condvar::new() };
    std::thread::scope(|scope| {
        for worker in workers {
            queue.state().workers += 1;
            // Gone too where no thread can be started.
            let gone = Last(|| queue.change(|state| state.workers -= 1));
            let queue = &queue;
            let work = move || {
                let _gone = gone;
                queue.serve(worker);
            };
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        let _stop = Last(|| queue.change(|state| state.is_over = true));
        (0..problems).try_for_each(|number| {
            queue.wait(number);
            each(number)
        })
    })
}

/// Calls a function when dropped: in a panic too, which else left a thread waiting for ever.
struct Last<F: FnMut()>(F);

impl<F: FnMut()> Drop for Last<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The plans of all problems, one after another.
struct Queue<'a> {
    problems: usize,
    wanted: &'a (dyn Fn(usize) -> Wanted + Sync),
    /// Apart from the state: to plan a problem takes time.
    turn: Mutex<Turn>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The plan that is taken next.
#[derive(Default)]
struct Turn {
    problem: usize,
    plan: usize,
    /// The problem's plans, once they are known.
    wanted: Option<Arc<Wanted>>,
}

#[derive(Default)]
struct State {
    /// Of each problem, the plans that workers have taken and not done.
    open: Vec<usize>,
    /// The problems of which all plans are taken.
    taken: usize,
    /// The workers that take plans.
    workers: usize,
    /// Whether no more plans are to be taken.
    is_over: bool,
}

impl Queue<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.state());
        self.changed.notify_all();
    }

    /// Takes the next plan.
    fn next(&self) -> Option<(usize, usize, Arc<Wanted>)> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while turn.problem < self.problems && !self.state().is_over {
            let (problem, plan) = (turn.problem, turn.plan);
            let wanted = turn.wanted.get_or_insert_with(|| Arc::new((self.wanted)(problem))).clone();
            let (is_there, is_last) = (plan < wanted.plans.len(), plan + 1 >= wanted.plans.len());
            if is_last {
                *turn = Turn { problem: problem + 1, ..Turn::default() };
            } else {
                turn.plan += 1;
            }
            self.change(|state| {
                state.open[problem] += usize::from(is_there);
                state.taken += usize::from(is_last);
            });
            if is_there {
                return Some((problem, plan, wanted));
            }
        }
        None
    }

    fn serve(&self, mut worker: Worker<'_>) {
        while let Some((problem, plan, wanted)) = self.next() {
            let done = Last(|| self.change(|state| state.open[problem] -= 1));
            let goes_on = worker(problem, plan, &wanted);
            drop(done);
            if !goes_on {
                return;
            }
        }
    }

    /// Waits until all plans of a problem are done, or nobody is there to do them.
    fn wait(&self, problem: usize) {
        let waits =
            |state: &mut State| state.workers > 0 && (problem >= state.taken || state.open[problem] > 0);
        drop(self.changed.wait_while(self.state(), waits).unwrap_or_else(PoisonError::into_inner));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use abide::{DType, Result};

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
                _ => Err(abide::Error::unsupported("a compiler", "every other plan", "take the next")),
            }
        }
    }

    fn problem(extent: usize) -> Problem {
        crate::problem("2d5pt", abide::Shape::new(&[extent, 64]).unwrap(), DType::F32).unwrap()
    }

    /// So many plans; which ones does not matter.
    fn plans(count: usize) -> Wanted {
        let opened = abide::backend::open("cpu").unwrap();
        assert!(opened.backend.compiler().is_none());
        Wanted::of(&opened, &problem(20), &vec![Options::default(); count])
    }

    #[test]
    fn kernels_are_there_when_their_problem_comes_and_an_error_ends_all() {
        let problems: Vec<Problem> = (20..50).map(problem).collect();
        for count in [0, 1, 3] {
            let notes = Notes::default();
            let worker = || -> Worker {
                Box::new(|number, plan, wanted| {
                    wanted.compile(&notes, &problems[number], plan);
                    true
                })
            };
            let mut seen = Vec::new();
            let ended = compiled_ahead(
                30,
                |_| plans(2),
                (0..count).map(|_| worker()).collect(),
                |number| {
                    if count > 0 {
                        let compiled = notes.0.lock().unwrap();
                        assert_eq!(compiled.iter().filter(|&&n| n == 20 + number).count(), 2);
                    }
                    seen.push(number);
                    if number == 12 { Err("enough") } else { Ok(()) }
                },
            );
            assert_eq!((ended, seen), (Err("enough"), (0..=12).collect()));
        }
        // There is no such plan.
        let notes = Notes::default();
        plans(2).compile(&notes, &problems[0], 2);
        assert!(notes.0.lock().unwrap().is_empty());
    }

    #[test]
    fn each_plan_is_taken_once_and_the_first_problems_first() {
        let counts = [3, 0, 26, 1, 0, 0, 4, 0];
        for workers in [1, 4] {
            let taken = Mutex::new(Vec::new());
            let worker = || -> Worker {
                Box::new(|number, plan, wanted| {
                    assert_eq!(wanted.plans.len(), counts[number]);
                    taken.lock().unwrap().push((number, plan));
                    true
                })
            };
            let workers = (0..workers).map(|_| worker()).collect::<Vec<_>>();
            let is_one = workers.len() == 1;
            let ended: std::result::Result<(), ()> = compiled_ahead(
                counts.len(),
                |number| plans(counts[number]),
                workers,
                |number| {
                    let own = |taken: &&(usize, usize)| taken.0 == number;
                    assert_eq!(taken.lock().unwrap().iter().filter(own).count(), counts[number]);
                    Ok(())
                },
            );
            assert_eq!(ended, Ok(()));
            let taken = taken.into_inner().unwrap();
            let all = |number: usize| (0..counts[number]).map(move |plan| (number, plan));
            let expected: Vec<(usize, usize)> = (0..counts.len()).flat_map(all).collect();
            assert_eq!(taken.iter().copied().collect::<BTreeSet<_>>(), expected.iter().copied().collect());
            assert_eq!(taken.len(), expected.len());
            assert!(!is_one || taken == expected, "one worker follows the order");
        }
    }

    /// The plans that a worker took and did not do are as good as done, others take the rest, and nobody waits for
    /// workers that are gone.
    #[test]
    fn workers_that_end_early_leave_nobody_waiting() {
        for rounds in [[0, 0], [2, 5], [3, usize::MAX]] {
            let done = Mutex::new(Vec::new());
            let worker = |mut rounds: usize| -> Worker {
                let done = &done;
                Box::new(move |number, _, _| {
                    let does = rounds > 0;
                    rounds -= usize::from(does);
                    if does {
                        done.lock().unwrap().push(number);
                    }
                    does
                })
            };
            let mut seen = Vec::new();
            let workers = rounds.iter().map(|&rounds| worker(rounds)).collect();
            let ended: std::result::Result<(), ()> = compiled_ahead(
                8,
                |_| plans(2),
                workers,
                |number| {
                    seen.push(number);
                    Ok(())
                },
            );
            assert_eq!((ended, seen), (Ok(()), (0..8).collect()));
            let done = done.into_inner().unwrap().len();
            // The worker that stays does all but the plan that the other did not.
            let expected = if rounds[1] == usize::MAX { 12..=16 } else { rounds[0] + rounds[1]..=7 };
            assert!(expected.contains(&done), "{done} of {rounds:?}");
        }
    }

    #[test]
    fn a_worker_that_panics_leaves_nobody_waiting() {
        let seen = Mutex::new(0);
        let all = std::panic::AssertUnwindSafe(|| {
            let worker: Worker = Box::new(|_, _, _| panic!("as asked"));
            compiled_ahead(
                3,
                |_| plans(1),
                vec![worker],
                |_| -> std::result::Result<(), ()> {
                    *seen.lock().unwrap() += 1;
                    Ok(())
                },
            )
        });
        assert!(std::panic::catch_unwind(all).is_err(), "the panic is passed on");
        assert_eq!(seen.into_inner().unwrap(), 3);
    }
}
