//! The end of a solve, and the report then.

use std::ops::ControlFlow;
use std::time::Duration;

use abide::solve::{
    Exhausted, GridOperator, Matrix, Measure, Method, Parameters, SolverError, named, random_vector,
};
use abide::{Array, Boundaries, Boundary, DType, Shape};

use crate::solvers::subject::{Subject, Way};

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
                assert!(
                    report.iteration_seconds > 0.0 && report.iteration_seconds <= report.seconds,
                    "{method}"
                );
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
        // A right-hand side of zeros has a solution of zeros.
        let zero = Array::zeros(DType::F32, b.len()).unwrap();
        let (x, report) = subject.solve(&matrix, &zero, &way).unwrap();
        assert!(x.same_bits(&zero) && report.iterations == 0, "{method}");
    }
    // A tolerance beyond f32 is not met.
    let way = Way::new(Method::Cg, 1e-9);
    let beyond = Parameters { relative: 1e-9, iterations: 5000, ..Parameters::DEFAULT };
    let outcome = subject.solve_with(&matrix, &b, &way, &beyond);
    assert!(matches!(outcome, Err(SolverError::Stagnation { .. })), "{outcome:?}");
}

/// The residual of the 1D Laplacian with a right-hand side of ones rises until the last of n/2 iterations,
/// which is no reason to give up.
pub fn a_residual_that_rises_for_long_is_no_stagnation(subject: &Subject) {
    let system = |n: usize| -> (Matrix, Array) {
        let zero = Boundaries::all(Boundary::Constant(0.0));
        let (operator, shape) = (named::operator("laplacian1d").unwrap(), Shape::new(&[n]).unwrap());
        (
            GridOperator::new(operator, shape, zero, DType::F64).unwrap().into(),
            Array::from_fn(DType::F64, n, |_| 1.0),
        )
    };
    let n = 901;
    let ((matrix, b), (small, _)) = (system(n), system(41));
    let random = random_vector(DType::F64, 41, 5).unwrap();
    if !subject.dtypes().contains(&DType::F64) {
        return;
    }
    for method in subject.methods().into_iter().filter(|method| method.profile().measure == Measure::Energy) {
        let patient = Parameters { relative: 1e-8, stagnation: Some(20), ..Parameters::DEFAULT };
        let report = subject.solve_with(&matrix, &b, &Way::new(method, 1e-8), &patient).unwrap();
        assert!(report.iterations.abs_diff(n / 2) <= 4, "{} {method}: {}", subject.name, report.iterations);
        let rises = report.history[..n / 2 - 50].iter().all(|residual| *residual >= report.history[0]);
        assert!(rises, "{} {method}", subject.name);
        // Without a threshold that can be met, the run ends when rounding undoes the gain of energy.
        // Pipelined CG computes its residual afresh on the way, at the level of rounding, so its run ends by
        // the limit on iterations.
        if matches!(method, Method::PipelinedCg(_)) {
            continue;
        }
        let endless =
            Parameters { relative: 0.0, stagnation: Some(60), iterations: 20_000, ..Parameters::DEFAULT };
        let outcome = subject.solve_with(&small, &random, &Way::new(method, 1e-8), &endless);
        let ends = matches!(outcome, Err(SolverError::Stagnation { .. } | SolverError::Breakdown { .. }));
        assert!(ends, "{} {method}: {outcome:?}", subject.name);
    }
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
        // GMRES may lower the last residual to the true one.
        assert!(
            seen[..report.iterations].iter().zip(&report.history).all(|(seen, r)| seen.1 == *r),
            "{method}"
        );

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
    for method in [Method::Cg, Method::SingleReductionCg, Method::Minres, Method::BiCgStab] {
        let mut system = subject.describe(&matrix, &Way::new(method, 1e-4)).open().unwrap();
        let solution = system.solve(&b).unwrap();
        let mut x = solution.x.clone();
        let again = system.solve_from(&b, &mut x).unwrap();
        assert!(again.iterations <= 2, "{method}: {}", again.iterations);
        assert!(solution.report.iterations > 20, "{method}");
    }
}
