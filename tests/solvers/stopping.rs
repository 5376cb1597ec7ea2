//! When a solve ends, and what it tells then.

use std::ops::ControlFlow;
use std::time::Duration;

use abide::solve::{Exhausted, Matrix, Method, Parameters, SolverError, named, random_vector};
use abide::{Array, DType};

use crate::subject::{Subject, Way};

fn system() -> (Matrix, Array) {
    let matrix: Matrix = named::matrix("laplacian2d:33x34", DType::F32).unwrap().into();
    let b = random_vector(DType::F32, matrix.rows(), 16).unwrap();
    (matrix, b)
}

pub fn limits_end_a_solve_with_its_history(subject: &Subject) {
    let (matrix, b) = system();
    for method in subject.methods() {
        let way = Way::new(method, 1e-5);
        let few = Parameters { relative: 0.0, absolute: 1e-30, iterations: 3, ..Parameters::DEFAULT };
        match subject.solve_with(&matrix, &b, &way, &few) {
            Err(SolverError::NotConverged { limit: Exhausted::Iterations, report }) => {
                assert_eq!((report.iterations, report.history.len()), (3, 4), "{method}");
                assert!(report.iteration_seconds > 0.0 && report.iteration_seconds <= report.seconds, "{method}");
            }
            other => panic!("{} {method}: {other:?}", subject.name),
        }
        let none = Parameters { time: Some(Duration::ZERO), ..few.clone() };
        match subject.solve_with(&matrix, &b, &way, &none) {
            Err(SolverError::NotConverged { limit: Exhausted::Time, report }) => {
                assert!(!report.history.is_empty(), "{method}");
            }
            other => panic!("{} {method}: {other:?}", subject.name),
        }
        let bad = Parameters { relative: -1.0, ..few };
        let refused = subject.solve_with(&matrix, &b, &way, &bad);
        assert!(matches!(refused, Err(SolverError::Invalid(_))), "{method}: {refused:?}");
        // A right-hand side of zeros has the solution of zeros.
        let zero = Array::zeros(DType::F32, b.len()).unwrap();
        let (x, report) = subject.solve(&matrix, &zero, &way).unwrap();
        assert!(x.same_bits(&zero) && report.iterations == 0, "{method}");
    }
    // A tolerance beyond f32 is no success.
    let way = Way::new(Method::Cg, 1e-9);
    let beyond = Parameters { relative: 1e-9, iterations: 5000, ..Parameters::DEFAULT };
    let outcome = subject.solve_with(&matrix, &b, &way, &beyond);
    assert!(matches!(outcome, Err(SolverError::Stagnation { .. })), "{outcome:?}");
}

pub fn an_observer_sees_every_iterate_and_may_stop(subject: &Subject) {
    let (matrix, b) = system();
    for method in subject.methods() {
        let way = Way::new(method, 1e-3);
        let mut system = subject.describe(&matrix, &way).open().unwrap();
        let mut seen = Vec::new();
        let mut x = Array::zeros(DType::F32, b.len()).unwrap();
        let report = system.solve_observed(&b, &mut x, &mut |iteration, residual| {
            seen.push((iteration, residual));
            ControlFlow::Continue(())
        });
        let report = report.unwrap();
        let numbers: Vec<usize> = seen.iter().map(|seen| seen.0).collect();
        assert_eq!(numbers, (0..=report.iterations).collect::<Vec<_>>(), "{method}");
        // GMRES may lower the last to the true residual.
        assert!(seen[..report.iterations].iter().zip(&report.history).all(|(seen, r)| seen.1 == *r), "{method}");

        let mut x = Array::zeros(DType::F32, b.len()).unwrap();
        let outcome = system.solve_observed(&b, &mut x, &mut |iteration, _| {
            if iteration >= 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match outcome {
            Err(SolverError::Stopped { report }) => {
                assert_eq!((report.iterations, report.history.len()), (4, 5), "{method}");
                assert_eq!(x.non_finite(), 0, "{method}");
            }
            other => panic!("{} {method}: {other:?}", subject.name),
        }
    }
}

pub fn first_guesses_count(subject: &Subject) {
    let (matrix, b) = system();
    for method in [Method::Cg, Method::SingleReductionCg, Method::BiCgStab] {
        let mut system = subject.describe(&matrix, &Way::new(method, 1e-4)).open().unwrap();
        let solution = system.solve(&b).unwrap();
        let mut x = solution.x.clone();
        let again = system.solve_from(&b, &mut x).unwrap();
        assert!(again.iterations <= 2, "{method}: {}", again.iterations);
        assert!(solution.report.iterations > 20, "{method}");
    }
}
