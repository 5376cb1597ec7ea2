//! A communicator that delays, reorders, alters or drops messages, falls silent, or loses a rank: the same bits, or an error
//! within the deadline that names rank, exchange and planes; never a hang.

use crate::common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_core::program::{Centring, Definition, Reduction};
use abide_core::{Boundaries, Boundary, DType, Error, Options, Problem, Session, Shape};
use abide_cpu::CpuBackend;
use abide_ranks::Ranked;
use common::faulty::{Fault, factory};
use common::{assert_held_up_by_rank_1, fields, open, problem, ranked};

const DEADLINE: Duration = Duration::from_millis(400);

/// Returns three ranks of which the second has the fault from the third exchange on.
fn faulty(fault: Fault) -> Ranked {
    ranked(&[1, 1, 1]).every(2).connected(factory(fault, 3, DEADLINE))
}

fn wave(boundary: Boundary) -> Problem {
    let mut problem = problem("wave", &[45, 17], DType::F32);
    problem.boundaries = Boundaries::all(boundary);
    problem
}

#[test]
fn late_and_disordered_messages_change_nothing() {
    for boundary in [Boundary::Fixed, Boundary::Periodic] {
        for fault in [Fault::Delay, Fault::Reorder] {
            common::assert_same(&wave(boundary), &faulty(fault), &Options::default(), 20);
        }
    }
}

/// Returns the error of a run in which a rank has a fault, after which the session must be as dead as it says.
fn error_of(fault: Fault) -> String {
    error_in(fault, &wave(Boundary::Periodic))
}

fn error_in(fault: Fault, problem: &Problem) -> String {
    let begun = Instant::now();
    let mut session = open(&faulty(fault), problem, &Options::default());
    let error = session.advance(20).unwrap_err();
    assert!(matches!(error, Error::Device { backend: "cpu", .. }), "{error:?}");
    assert_eq!(session.read(0).unwrap_err(), error, "a session of slabs of several steps");
    assert_eq!(session.advance(1).unwrap_err(), error);
    drop(session);
    assert!(begun.elapsed() < 5 * DEADLINE, "{:?}", begun.elapsed());
    error.to_string()
}

#[test]
fn a_lost_message_ends_all_ranks_within_the_deadline() {
    for fault in [Fault::Drop, Fault::Silence] {
        let error = error_of(fault);
        let says = ["of 3, exchange 3: planes u ", ", w ", "from rank 1 at the"];
        assert!(says.iter().all(|words| error.contains(words)), "{error}");
        assert_held_up_by_rank_1(&error, DEADLINE);
    }
}

#[test]
fn a_short_message_is_refused() {
    let error = error_of(Fault::Shorten);
    assert!(error.contains("exchange 3: planes") && error.contains("bytes too few"), "{error}");
}

#[test]
fn a_lost_rank_ends_all_others_at_once() {
    for problem in [wave(Boundary::Periodic), summed()] {
        let begun = Instant::now();
        let error = error_in(Fault::Panic, &problem);
        assert!(error.contains("rank 1") && error.contains("its thread has ended"), "{error}");
        assert!(begun.elapsed() < DEADLINE, "{:?}", begun.elapsed());
    }
}

/// A program that gathers a sum in each step.
fn summed() -> Problem {
    let mut p = Definition::new("summed", 2);
    p.field("u", Centring::CELL).boundary(Boundary::Periodic).scalar("sum", None, "sum of all cells");
    p.step()
        .reduce("sum", Reduction::Sum, Centring::CELL, |s| s.field("u").here())
        .stage("steer", |s| s.set("u", 0.5 * s.field("u").along(0, 1) + 1e-3 * s.param("sum")));
    Problem::new(Arc::new(p.build().unwrap()), Shape::new(&[45, 17]).unwrap(), DType::F32).unwrap()
}

/// What is gathered within steps is waited for as exchanges are: late, disordered, lost and short.
#[test]
fn reductions_end_with_an_error_as_exchanges_do() {
    for fault in [Fault::Delay, Fault::Reorder] {
        common::assert_same(&summed(), &faulty(fault), &Options::default(), 12);
    }
    for fault in [Fault::Drop, Fault::Silence] {
        let error = error_in(fault, &summed());
        assert!(error.contains("of 3, gather 3: parts of a reduction"), "{error}");
        assert_held_up_by_rank_1(&error, DEADLINE);
    }
    let error = error_in(Fault::Shorten, &summed());
    assert!(error.contains("gather 3: parts of a reduction") && error.contains("rank 1 gave "), "{error}");
}

#[test]
fn a_rank_that_cannot_begin_ends_all() {
    struct Refusing(CpuBackend);
    impl abide_core::Backend for Refusing {
        fn name(&self) -> &'static str {
            "cpu"
        }
        fn device(&self) -> &abide_core::DeviceSpec {
            self.0.device()
        }
        fn driver(&self) -> String {
            self.0.driver()
        }
        fn plan(&self, problem: &Problem, options: &Options) -> abide_core::Result<abide_core::Plan> {
            self.0.plan(problem, options)
        }
        fn open(
            &self,
            _: &Problem,
            _: &abide_core::Plan,
            _: Vec<abide_core::Array>,
        ) -> abide_core::Result<Box<dyn Session>> {
            Err(Error::limit("memory for a slab", 1, 0, "take more devices"))
        }
    }
    let make = |ranks: usize| {
        let device = |rank: usize| -> abide_core::Result<abide_ranks::Device> {
            let own = CpuBackend::with_threads(1)?;
            let backend: Arc<dyn abide_core::Backend> =
                if rank == 1 { Arc::new(Refusing(own)) } else { Arc::new(own) };
            Ok(abide_ranks::Device { backend, weight: 1 })
        };
        (0..ranks).map(device).collect()
    };
    let backend = Ranked::new(Arc::new(common::cpu()), 2, make).unwrap();
    let problem = wave(Boundary::Mirror);
    let plan = abide_core::Backend::plan(&backend, &problem, &Options::default()).unwrap();
    let error = abide_core::Backend::open(&backend, &problem, &plan, fields(&problem)).err().unwrap();
    assert_eq!(error, Error::limit("memory for a slab", 1, 0, "take more devices"));
}
