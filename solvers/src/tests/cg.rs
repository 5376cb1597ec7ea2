//! The three forms of conjugate gradients.

use abide_core::solver::{Operator, Parameters, PipelinedCg, SolverError};
use abide_core::{Real, reduction};

use super::{
    Dense, Laplacian2d, conforms, difference, energy_norm, laplacian_bounds, random, solved, uniform,
};
use crate::method::{Cg, SingleReductionCg};
use crate::precondition::{Diagonal, Identity};
use crate::solver::Solver;

fn forms<T: Real>() -> Vec<Box<dyn Solver<T>>> {
    vec![Box::new(Cg), Box::new(SingleReductionCg), Box::new(PipelinedCg::default())]
}

#[test]
fn conform() {
    for solver in forms::<f64>() {
        conforms(&*solver, true);
    }
    for solver in forms::<f32>() {
        conforms(&*solver, true);
    }
}

/// Returns the iterate after `k` iterations.
fn iterate(solver: &dyn Solver<f64>, a: &dyn Operator<f64>, b: &[f64], k: usize) -> Vec<f64> {
    let mut x = vec![0.0; b.len()];
    let parameters = Parameters { relative: 0.0, absolute: 1e-300, iterations: k, ..Parameters::default() };
    let _ = solver.solve(a, b, &mut x, &parameters);
    x
}

#[test]
fn the_error_is_within_the_bound_of_the_condition_number() {
    // |x_k - x|_A <= 2 ((sqrt(kappa) - 1) / (sqrt(kappa) + 1))^k |x_0 - x|_A (Saad, 2nd ed., equation 6.128).
    let n = 60;
    let a = Dense::<f64>::laplacian_1d(n);
    let (low, high) = laplacian_bounds(n);
    let root = (high / low).sqrt();
    let b = random::<f64>(n, 1);
    let exact = a.direct(&b);
    let start = energy_norm(&a, &vec![0.0; n], &exact);
    for solver in forms() {
        let mut last = f64::INFINITY;
        for k in 1..=n {
            let error = energy_norm(&a, &iterate(&*solver, &a, &b, k), &exact);
            let bound = 2.0 * ((root - 1.0) / (root + 1.0)).powi(k as i32) * start;
            assert!(error <= bound, "{} {k}: {error} > {bound}", solver.name());
            // The error also falls in this norm, until rounding.
            assert!(error <= last * (1.0 + 1e-6) || error < 1e-10 * start, "{} {k}", solver.name());
            last = error;
        }
    }
}

#[test]
fn as_many_iterations_as_distinct_eigenvalues() {
    for distinct in [1, 2, 3, 5, 8] {
        let values: Vec<f64> = (0..97).map(|i| 1.0 + (i % distinct) as f64).collect();
        let a = Dense::<f64>::diagonal_of(&values);
        for solver in forms() {
            let (_, report) = solved(&*solver, &a, &mut Identity, &random(97, 2), 1e-10).unwrap();
            assert_eq!(report.iterations, distinct, "{}", solver.name());
            // Jacobi's preconditioner turns a diagonal matrix into the identity.
            let mut m = Diagonal::new(&a).unwrap();
            let (_, report) = solved(&*solver, &a, &mut m, &random(97, 2), 1e-10).unwrap();
            assert_eq!(report.iterations, 1, "{}", solver.name());
        }
    }
}

#[test]
fn indefinite_matrices_and_preconditioners_are_named() {
    for solver in forms::<f64>() {
        for values in [[1.0, -1.0, 2.0], [-1.0, -2.0, -3.0]] {
            let a = Dense::diagonal_of(&values);
            let error = solved(&*solver, &a, &mut Identity, &[1.0, 1.0, 1.0], 1e-6).unwrap_err();
            assert!(matches!(error, SolverError::Indefinite { .. }), "{}: {error}", solver.name());
            assert!(!error.history().is_empty());
            // The diagonal as M makes M^-1 A the identity, but M is indefinite.
            let error =
                solved(&*solver, &a, &mut Diagonal::new(&a).unwrap(), &[1.0, 2.0, 1.0], 1e-6).unwrap_err();
            assert!(matches!(error, SolverError::Indefinite { .. }), "{}: {error}", solver.name());
        }
    }
}

#[test]
fn a_tolerance_below_rounding_is_no_success() {
    // The recurred residual meets 1e-12 in f32; the true one cannot.
    let n = 200;
    let a = Dense::<f32>::laplacian_1d(n);
    for solver in forms::<f32>() {
        let error = solved(&*solver, &a, &mut Identity, &random::<f32>(n, 4), 1e-12).unwrap_err();
        assert!(
            matches!(error, SolverError::Stagnation { .. } | SolverError::NotConverged { .. }),
            "{}: {error}",
            solver.name()
        );
    }
}

#[test]
fn the_forms_have_one_history_of_residuals() {
    // There is one Krylov space and one sequence of iterates: until rounding, within 1 %; and as many
    // iterations, within 3 %.
    let a = Laplacian2d { rows: 30, columns: 31 };
    let b = random::<f64>(930, 8);
    let mut m = Diagonal::new(&a).unwrap();
    let (x, reference) = solved(&Cg, &a, &mut m, &b, 1e-10).unwrap();
    for solver in forms::<f64>() {
        let (y, report) = solved(&*solver, &a, &mut m, &b, 1e-10).unwrap();
        let name = solver.name();
        assert!(difference(&y, &x) < 1e-8, "{name}");
        assert!(report.iterations.abs_diff(reference.iterations) * 100 <= 3 * reference.iterations, "{name}");
        for (k, (one, other)) in reference.history.iter().zip(&report.history).enumerate() {
            if *one > 1e-7 * reference.history[0] {
                assert!((one - other).abs() <= 0.01 * one, "{name}, iteration {k}: {one:e} {other:e}");
            }
        }
    }
}

#[test]
fn replacement_restores_the_accuracy_of_the_pipelined_form() {
    // CG has the solution after n steps, up to rounding, so the true residual is measured there over the norm
    // of b.
    for n in [150, 300] {
        let a = Dense::<f64>::laplacian_1d(n);
        let b = random::<f64>(n, 9);
        let reached = |solver: &dyn Solver<f64>| {
            let x = iterate(solver, &a, &b, n);
            let mut ax = vec![0.0; n];
            a.apply(&x, &mut ax);
            let r: Vec<f64> = b.iter().zip(&ax).map(|(b, ax)| b - ax).collect();
            (reduction::dot(&r, &r) / reduction::dot(&b, &b)).sqrt()
        };
        let (plain, without, with) = (
            reached(&Cg),
            reached(&PipelinedCg { replacement: 0 }),
            reached(&PipelinedCg { replacement: 10 }),
        );
        assert!(without > 300.0 * plain, "n = {n}, nothing to restore: {without:e} {plain:e}");
        assert!(with < 0.01 * without, "n = {n}: {with:e} {without:e}");
        // A lost residual is not called a success, nor is the matrix blamed: the run starts anew, and takes
        // longer.
        let (_, report) = solved(&PipelinedCg { replacement: 0 }, &a, &mut Identity, &b, 1e-11).unwrap();
        assert!(report.iterations > n + 1, "{}", report.iterations);
        assert!(report.true_residual.unwrap() <= Parameters::DEFAULT.drift * report.threshold);
        let (_, report) = solved(&PipelinedCg { replacement: 10 }, &a, &mut Identity, &b, 1e-11).unwrap();
        assert!(report.iterations <= n + 1);
    }
}

#[test]
fn a_definite_matrix_is_never_called_indefinite() {
    // Far beyond the attainable accuracy, where the recurred (p, A p) of a definite matrix comes out
    // negative.
    fn run<T: Real>() {
        for n in [5, 10, 20, 50, 100] {
            for (k, a) in [Dense::<T>::laplacian_1d(n), Dense::random_spd(n, 40)].iter().enumerate() {
                for scale in [1.0, 1e-10] {
                    let b: Vec<T> =
                        uniform(n, n as u64).into_iter().map(|b| T::from_f64(scale * b)).collect();
                    for solver in forms::<T>() {
                        if let Err(error) = solved(&*solver, a, &mut Identity, &b, 1e-60) {
                            let name = format!("{}, system {k}, n = {n}", solver.name());
                            assert!(!matches!(error, SolverError::Indefinite { .. }), "{name}: {error}");
                        }
                    }
                }
            }
        }
    }
    run::<f64>();
    run::<f32>();
}

/// The residual of the 1D Laplacian with a right-hand side of ones rises until the last iterations, so it
/// says nothing of progress.
#[test]
fn a_residual_that_rises_for_long_is_no_stagnation() {
    let n = 600;
    let a = Dense::<f64>::laplacian_1d(n);
    for solver in forms::<f64>() {
        let parameters = Parameters { relative: 1e-8, stagnation: Some(7), ..Parameters::default() };
        let mut x = vec![0.0; n];
        let report = solver.solve(&a, &vec![1.0; n], &mut x, &parameters).unwrap();
        let least = report.history.iter().enumerate().filter(|(k, _)| k + 50 < report.iterations);
        assert!(least.clone().all(|(_, residual)| *residual >= report.history[0]), "{}", solver.name());
        assert!(report.iterations.abs_diff(n / 2) <= 3, "{}: {}", solver.name(), report.iterations);
    }
}

/// A threshold of 0 cannot be met: once residuals are below rounding, more iterations change nothing, and the
/// run ends as stagnated.
#[test]
fn energies_below_rounding_end_a_run_without_a_threshold() {
    let a = Dense::<f64>::laplacian_1d(40);
    // Pipelined CG computes its residual afresh on the way, at rounding's own level.
    let recurring = forms::<f64>().into_iter().filter(|solver| solver.name() != "cg-pipelined");
    for solver in recurring {
        let parameters =
            Parameters { relative: 0.0, absolute: 0.0, stagnation: Some(30), ..Parameters::default() };
        let error = solver.solve(&a, &random::<f64>(40, 9), &mut vec![0.0; 40], &parameters).unwrap_err();
        let name = solver.name();
        let ends = matches!(error, SolverError::Stagnation { .. } | SolverError::Breakdown { .. });
        assert!(ends && error.history().len() > 60, "{name}: {error}");
        assert!(error.history().last().is_some_and(|residual| *residual < 1e-14), "{name}: {error}");
    }
}
