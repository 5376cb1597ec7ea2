//! MINRES on symmetric systems of any definiteness.

use abide_core::solver::{Gmres, SolverError};

use super::{Dense, conforms, difference, random, solved, uniform};
use crate::method::Minres;
use crate::precondition::{Diagonal, Identity, Preconditioner};
use crate::solver::Solver;

#[test]
fn conform() {
    conforms::<f64>(&Minres, true);
    conforms::<f32>(&Minres, true);
}

/// A symmetric matrix with eigenvalues of both signs, about as many of each, and a positive diagonal where `shift` is above 1.
fn indefinite(n: usize, shift: f64) -> Dense<f64> {
    let values = uniform(n * n, 21);
    Dense::from_fn(n, |i, j| {
        let (low, high) = (i.min(j), i.max(j));
        values[low * n + high] * if i == j { 0.1 } else { 1.0 } + if i == j { shift } else { 0.0 }
    })
}

/// In exact arithmetic the residuals are GMRES's, which has another recurrence and keeps all vectors.
#[test]
fn residuals_are_those_of_gmres() {
    for shift in [0.0, 1.5] {
        let n = 40;
        let (a, b) = (indefinite(n, shift), random::<f64>(n, 4));
        let (x, report) = solved(&Minres, &a, &mut Identity, &b, 1e-9).unwrap();
        let (_, other) = solved(&Gmres { restart: n }, &a, &mut Identity, &b, 1e-9).unwrap();
        assert!(difference(&x, &a.direct(&b)) < 1e-6, "shift {shift}");
        for (k, (own, other)) in report.history.iter().zip(&other.history).enumerate().take(25) {
            assert!((own - other).abs() <= 1e-6 * report.norm, "shift {shift}, {k}: {own:e} {other:e}");
        }
        assert!(report.history.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-12)));
        assert!(report.iterations.abs_diff(other.iterations) <= 3 * n, "{}", report.iterations);
    }
}

/// The residual that is recurred with a preconditioner is the true one.
#[test]
fn with_a_preconditioner_the_residual_is_the_true_one() {
    let n = 60;
    let scale = |k: usize| 10.0_f64.powf(3.0 * k as f64 / n as f64);
    let plain = indefinite(n, 2.0);
    let a = Dense::from_fn(n, |i, j| plain.entries[i * n + j] * (scale(i) * scale(j)).sqrt());
    let b = random::<f64>(n, 9);
    let mut m = Diagonal::new(&a).unwrap();
    let (x, report) = solved(&Minres, &a, &mut m, &b, 1e-8).unwrap();
    assert!(difference(&x, &a.direct(&b)) < 1e-5);
    let (last, truth) = (*report.history.last().unwrap(), report.true_residual.unwrap());
    assert!((last - truth).abs() < 1e-2 * report.threshold.max(truth), "{last:e} {truth:e}");
    let (_, without) = solved(&Minres, &a, &mut Identity, &b, 1e-8).unwrap();
    assert!(report.iterations < without.iterations, "{} {}", report.iterations, without.iterations);
}

/// Singular systems that have a solution are solved; of others the part that no x reaches is left.
#[test]
fn singular_systems() {
    let n = 30;
    let chain = Dense::<f64>::from_fn(n, |i, j| match i.abs_diff(j) {
        0 => f64::from(u8::from(i > 0)) + f64::from(u8::from(i + 1 < n)),
        1 => -1.0,
        _ => 0.0,
    });
    let mut b = random::<f64>(n, 2);
    let mean = b.iter().sum::<f64>() / n as f64;
    b.iter_mut().for_each(|value| *value -= mean);
    let (_, report) = solved(&Minres, &chain, &mut Identity, &b, 1e-10).unwrap();
    assert!(report.true_residual.unwrap() <= 1e-9 * report.norm);
    b.iter_mut().for_each(|value| *value += 0.1);
    let error = solved(&Minres, &chain, &mut Identity, &b, 1e-10).unwrap_err();
    let left = 0.1 * (n as f64).sqrt();
    // Beyond the space that b spans rounding alone goes on.
    let least = error.history()[..n].iter().copied().fold(f64::INFINITY, f64::min);
    assert!((least - left).abs() < 1e-6, "{least} {left}: {error}");
}

/// Where the inverse is not positive definite, the run says so.
#[test]
fn an_indefinite_preconditioner_is_found() {
    let a = Dense::<f64>::diagonal_of(&[1.0, -2.0, 3.0]);
    let mut m = Diagonal::new(&a).unwrap();
    let error = solved(&Minres, &a, &mut m, &[0.1, 1.0, 0.1], 1e-8).unwrap_err();
    assert!(matches!(error, SolverError::Indefinite { quantity: "(r, M^-1 r)", .. }), "{error}");
    let (x, report) = solved(&Minres, &a, &mut Identity, &[1.0, -2.0, 3.0], 1e-12).unwrap();
    assert!(report.iterations <= 3 && difference(&x, &[1.0, 1.0, 1.0]) < 1e-12);
    let solver: &dyn Solver<f64> = &Minres;
    assert_eq!((solver.name(), Preconditioner::<f64>::name(&Identity)), ("minres", "none"));
}
