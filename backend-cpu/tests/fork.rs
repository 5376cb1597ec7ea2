//! A process that was forked after a run makes threads of its own, and has the same bits.
#![cfg(unix)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_core::backend::LinearBackend;
use abide_core::solver::{Matrix, Method, Parameters, SolveOptions};
use abide_core::{Array, Backend, Boundaries, Boundary, DType, Options, Problem, Session, Shape, catalogue};
use abide_cpu::{CpuBackend, variants};
use abide_solvers::sparse::laplacian_2d;

/// Has a child do some work, which must hold; returns whether it ended so in time.
fn child(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child uses nothing but this thread and what Abide starts anew, and ends without unwinding.
    let number = unsafe { libc::fork() };
    if number == 0 {
        let held = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
        // SAFETY: it ends the process, without what the test's own end would do.
        unsafe { libc::_exit(if held { 0 } else { 1 }) };
    }
    let begun = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: it waits for the child made above.
        match unsafe { libc::waitpid(number, &mut status, libc::WNOHANG) } {
            0 if begun.elapsed() > Duration::from_secs(60) => {
                // SAFETY: as above.
                unsafe { libc::kill(number, libc::SIGKILL) };
            }
            0 => std::thread::sleep(Duration::from_millis(5)),
            _ => return status == 0,
        }
    }
}

fn problem() -> (Problem, Vec<Array>) {
    let program = Arc::new(catalogue::find("2d5pt").unwrap().program(2).unwrap());
    let mut problem = Problem::new(program, Shape::new(&[300, 200]).unwrap(), DType::F64).unwrap();
    problem.boundaries = Boundaries::all(Boundary::Mirror);
    (problem, vec![Array::from_fn(DType::F64, 60_000, |i| (i % 31) as f64 / 7.0)])
}

fn open(backend: &CpuBackend, options: &Options) -> Box<dyn Session> {
    let (problem, fields) = problem();
    let plan = backend.plan(&problem, options).unwrap();
    backend.open(&problem, &plan, fields).unwrap()
}

fn run(session: &mut dyn Session) -> Array {
    session.advance(5).unwrap();
    session.read(0).unwrap()
}

fn solve(backend: &CpuBackend) -> Array {
    let matrix = Matrix::from(laplacian_2d(150, 150, DType::F64).unwrap());
    let options = SolveOptions::with_method(Method::Cg);
    let plan = backend.plan_solve(&matrix, &options).unwrap();
    let mut session = backend.open_solver(&matrix, &plan, &options).unwrap();
    let mut x = Array::zeros(DType::F64, matrix.rows()).unwrap();
    let b = Array::from_fn(DType::F64, matrix.rows(), |i| 1.0 + (i % 5) as f64);
    session.solve(&b, &mut x, &Parameters::DEFAULT, &mut |_, _| std::ops::ControlFlow::Continue(())).unwrap();
    x
}

#[test]
fn children_run_and_solve_with_the_bits_of_their_parent() {
    for backend in [CpuBackend::new(), CpuBackend::with_threads(2).unwrap()] {
        for options in variants() {
            let expected = run(&mut *open(&backend, &options));
            let mut before = open(&backend, &options);
            assert!(child(|| {
                let anew = run(&mut *open(&backend, &options));
                // What was opened before the fork goes on, too, and is dropped.
                let old = run(&mut *before);
                drop(before);
                anew.same_bits(&expected) && old.same_bits(&expected)
            }));
        }
        let expected = solve(&backend);
        assert!(child(|| solve(&backend).same_bits(&expected)));
        // Children of children.
        assert!(child(|| solve(&backend).same_bits(&expected)
            && child(|| solve(&CpuBackend::new()).same_bits(&expected)
                && child(|| solve(&backend).same_bits(&expected)))));
        assert!(solve(&backend).same_bits(&expected));
        assert!(child(|| {
            drop(backend);
            true
        }));
    }
}
