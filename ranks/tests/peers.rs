//! Processes whose devices solve jointly by themselves: they gather over the communicator, and the first process
//! decides for all. Each process has the whole solution, and one that fails ends all. Here the processes are threads.
//! Their devices are stand-ins that solve the whole system, of which only their own rows count.

use crate::common;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use abide_core::backend::{LinearBackend, LinearPeer, LinearSession, Observe};
use abide_core::communicator::{Communicator, Endpoint};
use abide_core::solver::{
    Exhausted, Matrix, Method, Parameters, RankSolve, Report, SolveOptions, SolvePlan, SolverError,
};
use abide_core::{Array, Backend, DType, DeviceSpec, Error, Options, Plan, Problem, Result, Session};
use abide_cpu::CpuBackend;
use abide_ranks::threads::{Threads, threads};
use abide_ranks::{CommunicatorFactory, Device, Ranked};
use abide_solvers::sparse::laplacian_2d;
use abide_solvers::{Decision, cut_rows, row_unit};
use common::solving::{noise, open, told};

const DEADLINE: Duration = Duration::from_millis(400);

/// What a process's device does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// It has other residuals than the others.
    Differs,
    /// Its launch of this number fails.
    Fails(usize),
    /// From its launch of this number on it says nothing any more, and goes on waiting.
    Silent(usize),
}

/// A device whose solves are the reference's, one launch an iteration.
struct Stand(CpuBackend, Fault);

impl Backend for Stand {
    fn name(&self) -> &'static str {
        "stand"
    }
    fn device(&self) -> &DeviceSpec {
        self.0.device()
    }
    fn driver(&self) -> String {
        self.0.driver()
    }
    fn plan(&self, problem: &Problem, options: &Options) -> Result<Plan> {
        self.0.plan(problem, options)
    }
    fn open(&self, problem: &Problem, plan: &Plan, fields: Vec<Array>) -> Result<Box<dyn Session>> {
        self.0.open(problem, plan, fields)
    }
    fn linear(&self) -> Option<&dyn LinearBackend> {
        Some(self)
    }
}

impl LinearBackend for Stand {
    fn plan_solve(&self, matrix: &Matrix, options: &SolveOptions) -> Result<SolvePlan> {
        Ok(SolvePlan { backend: "stand", ..self.0.plan_solve(matrix, options)? })
    }
    fn open_solver(
        &self,
        _: &Matrix,
        _: &SolvePlan,
        _: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        panic!("a peer was opened as if it were alone")
    }
    fn peer(&self) -> Option<&dyn LinearPeer> {
        Some(self)
    }
}

impl LinearPeer for Stand {
    fn plan_peers(&self, matrix: &Matrix, options: &SolveOptions, count: usize) -> Result<SolvePlan> {
        let mut plan = self.plan_solve(matrix, options)?;
        let (rows, unit) = (matrix.rows(), row_unit(options));
        let count = count.min(rows.div_ceil(unit));
        if count > 1 {
            plan.ranks = cut_rows(rows, unit, &vec![1; count]);
        }
        Ok(plan)
    }

    fn open_peer(
        &self,
        matrix: &Matrix,
        plan: &SolvePlan,
        options: &SolveOptions,
        endpoint: Endpoint,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        let rank = endpoint.rank();
        let all = endpoint.all_gather_bytes(&[rank as u8])?;
        assert_eq!(all, (0..plan.ranks.len()).map(|rank| vec![rank as u8]).collect::<Vec<_>>());
        let inner = self.0.open_solver(matrix, &self.0.plan_solve(matrix, options)?, options)?;
        let rows = plan.ranks[rank].clone();
        Ok(Box::new(Part { inner, plan: plan.clone(), rank, rows, endpoint, fault: self.1 }))
    }
}

struct Part {
    inner: Box<dyn LinearSession>,
    plan: SolvePlan,
    rank: usize,
    rows: std::ops::Range<usize>,
    endpoint: Endpoint,
    fault: Fault,
}

impl LinearSession for Part {
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
        let Part { inner, endpoint, fault, rows, .. } = self;
        let decision = Decision::new(endpoint.rank());
        let mut observe = decision.observer(observe);
        let mut failed = None;
        let mut launched = |iteration: usize, residual: f64| {
            let mut launch = || {
                match *fault {
                    Fault::Fails(at) if at == iteration => {
                        return Err(Error::device("stand", "a launch", "it failed").into());
                    }
                    Fault::Silent(at) if at == iteration => endpoint.until(|| Ok(false))?,
                    _ => {}
                }
                let mut looks = 0;
                endpoint.until(|| {
                    looks += 1;
                    Ok(looks > 2)
                })?;
                decision.told(endpoint, || Ok(observe(iteration, residual)))
            };
            launch().unwrap_or_else(|error: SolverError| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        };
        let mut outcome = inner.solve(b, x, parameters, &mut launched);
        if let Some(error) = failed {
            return Err(error);
        }
        if let (Fault::Differs, Ok(report)) = (*fault, &mut outcome) {
            report.history[1] += 1e-3;
        }
        // Only the own rows count: the rest is overwritten.
        match x {
            Array::F32(x) => {
                x.iter_mut().enumerate().filter(|(at, _)| !rows.contains(at)).for_each(|(_, x)| *x = f32::NAN)
            }
            Array::F64(x) => {
                x.iter_mut().enumerate().filter(|(at, _)| !rows.contains(at)).for_each(|(_, x)| *x = f64::NAN)
            }
        }
        outcome
    }

    fn take_ranks(&mut self) -> Vec<RankSolve> {
        let (rank, rows) = (self.rank, self.rows.clone());
        vec![RankSolve {
            rank,
            rows,
            exchange: "stores",
            seconds: 3.0,
            exchange_seconds: 1.0,
            efficiency: 0.75,
        }]
    }
}

/// A process among others: it has one end of each communicator.
struct Process {
    rank: usize,
    size: usize,
    /// The ends of others that a communicator was made for, by the communicator's number.
    hub: Arc<Mutex<Vec<Vec<Option<Threads>>>>>,
    next: Mutex<usize>,
}

impl CommunicatorFactory for Process {
    fn connect(&self, ranks: usize) -> Result<Vec<Box<dyn Communicator>>> {
        assert_eq!(ranks, self.size);
        let (mut communicators, mut number) = (self.hub.lock().unwrap(), self.next.lock().unwrap());
        if communicators.len() == *number {
            communicators.push(threads(ranks, DEADLINE).into_iter().map(Some).collect());
        }
        let end = communicators[*number][self.rank].take().unwrap();
        *number += 1;
        Ok(vec![Box::new(end)])
    }

    fn processes(&self) -> Option<usize> {
        Some(self.size)
    }
}

/// Does the same in `faults.len()` processes, one of which has a fault, and returns the result of each.
fn everywhere<R: Send>(faults: &[Fault], work: impl Fn(usize, Ranked) -> R + Sync) -> Vec<R> {
    let (hub, size) = (Arc::default(), faults.len());
    thread::scope(|scope| {
        let start = |(rank, &fault): (usize, &Fault)| {
            let (hub, work) = (Arc::clone(&hub), &work);
            scope.spawn(move || {
                let device: Arc<dyn Backend> = Arc::new(Stand(CpuBackend::reference(), fault));
                let own = device.clone();
                let make = move |ranks| Ok(vec![Device { backend: own.clone(), weight: 1 }; ranks]);
                let process = Process { rank, size, hub, next: Mutex::new(0) };
                work(rank, Ranked::new(device, size, make).unwrap().connected(process))
            })
        };
        let all: Vec<_> = faults.iter().enumerate().map(start).collect();
        all.into_iter().map(|process| process.join().unwrap()).collect()
    })
}

fn system() -> (Matrix, SolveOptions, Array) {
    let matrix = Matrix::from(laplacian_2d(71, 67, DType::F64).unwrap());
    let b = noise(matrix.rows(), 5, DType::F64);
    (matrix, SolveOptions::with_method(Method::Cg), b)
}

/// How a solve ended, and the iterate; each process's observer ends it at an iteration of its own.
fn solve(ranked: &Ranked, parameters: &Parameters, ends: usize) -> (String, Array, Vec<RankSolve>) {
    let (matrix, options, b) = system();
    let mut session = open(ranked, &matrix, &options).unwrap();
    let mut x = Array::zeros(DType::F64, matrix.rows()).unwrap();
    let mut last = (String::new(), x.clone(), Vec::new());
    // A session solves again.
    for _ in 0..2 {
        x = Array::zeros(DType::F64, matrix.rows()).unwrap();
        let mut observe = |iteration, _| match iteration < ends {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        let outcome = session.solve(&b, &mut x, parameters, &mut observe);
        last = (told(outcome), x.clone(), session.take_ranks());
    }
    last
}

/// Returns the same of one device.
fn alone(parameters: &Parameters, ends: usize) -> (String, Array) {
    let (matrix, options, b) = system();
    let mut session = open(&CpuBackend::reference(), &matrix, &options).unwrap();
    let mut x = Array::zeros(DType::F64, matrix.rows()).unwrap();
    let mut observe = |iteration, _| match iteration < ends {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    };
    let outcome = session.solve(&b, &mut x, parameters, &mut observe);
    (told(outcome), x)
}

#[test]
fn processes_have_the_solution_of_one_device() {
    let parameters = Parameters { relative: 1e-8, ..Parameters::DEFAULT };
    // Whatever the others' observers say, the first's decides.
    for ends in [[usize::MAX; 3], [11, 99, 3], [usize::MAX, 0, 2]] {
        let expected = alone(&parameters, ends[0]);
        let all = everywhere(&[Fault::None; 3], |rank, ranked| solve(&ranked, &parameters, ends[rank]));
        for (words, x, ranks) in all {
            assert_eq!(words, expected.0);
            assert!(x.same_bits(&expected.1));
            // Twice the seconds that each device reports, of which a quarter are waits.
            assert_eq!(ranks.iter().map(|own| own.rank).collect::<Vec<_>>(), [0, 1, 2]);
            for own in ranks {
                assert_eq!((own.exchange, own.exchange_seconds, own.efficiency), ("stores", 1.0, 0.75));
            }
        }
    }
}

/// The first process's clock ends the solve of all.
#[test]
fn a_limit_on_time_ends_all() {
    let parameters = Parameters { relative: 1e-8, time: Some(Duration::ZERO), ..Parameters::DEFAULT };
    let expected = alone(&parameters, usize::MAX);
    assert!(expected.0.contains(&format!("{:?}", Exhausted::Time)), "{}", expected.0);
    for (words, x, _) in everywhere(&[Fault::None; 2], |_, ranked| solve(&ranked, &parameters, usize::MAX)) {
        assert_eq!(words, expected.0);
        assert!(x.same_bits(&expected.1));
    }
}

#[test]
fn a_device_that_fails_ends_all() {
    let parameters = Parameters { relative: 1e-8, ..Parameters::DEFAULT };
    let words = |faults: [Fault; 3]| {
        everywhere(&faults, |_, ranked| {
            let (words, x, _) = solve(&ranked, &parameters, usize::MAX);
            assert!(x.same_bits(&Array::zeros(DType::F64, x.len()).unwrap()), "a part of some iterate");
            words
        })
    };
    for rank in 0..3 {
        let mut faults = [Fault::None; 3];
        faults[rank] = Fault::Fails(4);
        for (other, words) in words(faults).into_iter().enumerate() {
            let says = if other == rank { "a launch".to_owned() } else { format!("rank {rank}") };
            assert!(words.contains(&says) && words.contains("it failed"), "{words}");
        }
        faults[rank] = Fault::Silent(4);
        // Who reaches the deadline first is gone for the others.
        let silent = words(faults);
        let is_late = |words: &String| words.contains("within 0.4 s");
        assert!(silent.iter().any(is_late), "{silent:?}");
        assert!(silent.iter().all(|words| is_late(words) || words.contains("is gone")), "{silent:?}");
        faults[rank] = Fault::Differs;
        assert!(words(faults).iter().all(|words| words.contains("are not those of rank 0")));
    }
}

/// Processes without rows of their own are refused, with what to change.
#[test]
fn fewer_rows_than_processes_are_refused() {
    let small = Matrix::from(laplacian_2d(5, 7, DType::F64).unwrap());
    let options = SolveOptions::with_method(Method::Cg);
    for error in everywhere(&[Fault::None; 2], |_, ranked| open(&ranked, &small, &options).err().unwrap()) {
        assert!(matches!(error, SolverError::Invalid(Error::Limit { .. })), "{error}");
        assert!(error.to_string().contains("start fewer"), "{error}");
    }
}
