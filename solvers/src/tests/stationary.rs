//! Jacobi's method and Chebyshev iteration, whose rates are known exactly.

use crate::estimate_bounds;
use abide_core::solver::{Bounds, Chebyshev, Jacobi, Parameters, SolverError};

use super::{Dense, Laplacian2d, conforms, laplacian_bounds, random, solved};
use crate::engine::Serial;
use crate::precondition::{Diagonal, Identity};
use crate::solver::Solver;

#[test]
fn conform() {
    // Dense::random_spd lies in [1, 1 + 4], and its diagonal in [1, 2]: bounds that hold with and without
    // Jacobi's preconditioner.
    let chebyshev = Chebyshev { bounds: Some(Bounds::new(0.4, 6.0).unwrap()) };
    conforms::<f64>(&chebyshev, true);
    conforms::<f32>(&chebyshev, true);
    // The bounds are estimated.
    conforms::<f64>(&Chebyshev::default(), true);
    conforms::<f32>(&Chebyshev::default(), true);
    let jacobi = Jacobi { weight: 0.3 };
    conforms::<f64>(&jacobi, true);
    conforms::<f32>(&jacobi, true);
}

/// Returns the Chebyshev polynomial of the first kind, for x >= 1.
pub(super) fn chebyshev_polynomial(k: usize, x: f64) -> f64 {
    (k as f64 * x.acosh()).cosh()
}

#[test]
fn chebyshev_reaches_its_bound() {
    let n = 60;
    let a = Dense::<f64>::laplacian_1d(n);
    let (low, high) = laplacian_bounds(n);
    let bounds = Some(Bounds::new(low, high).unwrap());
    let sigma = (high + low) / (high - low);
    let (_, report) = solved(&Chebyshev { bounds }, &a, &mut Identity, &random(n, 1), 1e-8).unwrap();
    for (k, residual) in report.history.iter().enumerate() {
        let bound = report.history[0] / chebyshev_polynomial(k, sigma);
        assert!(*residual <= bound * (1.0 + 1e-9), "{k}: {residual} > {bound}");
    }
    // An eigenvector to the least eigenvalue is damped by 1 / T_k exactly: the polynomial has its maximum
    // there.
    let b: Vec<f64> = (1..=n).map(|i| (i as f64 * std::f64::consts::PI / (n as f64 + 1.0)).sin()).collect();
    let (_, report) = solved(&Chebyshev { bounds }, &a, &mut Identity, &b, 1e-6).unwrap();
    for (k, residual) in report.history.iter().enumerate() {
        let exact = report.history[0] / chebyshev_polynomial(k, sigma);
        assert!((residual - exact).abs() <= 1e-7 * exact, "{k}: {residual} {exact}");
    }
}

#[test]
fn jacobi_has_the_rate_of_its_spectral_radius() {
    // On the lowest eigenvector every iteration multiplies the residual by 1 - weight (1 - cos(pi / (n +
    // 1))).
    let n = 21;
    let a = Dense::<f64>::laplacian_1d(n);
    let angle = std::f64::consts::PI / (n as f64 + 1.0);
    let b: Vec<f64> = (1..=n).map(|i| (i as f64 * angle).sin()).collect();
    for weight in [1.0, 2.0 / 3.0] {
        let factor = 1.0 - weight * (1.0 - angle.cos());
        let (_, report) = solved(&Jacobi { weight }, &a, &mut Identity, &b, 1e-5).unwrap();
        for (k, residual) in report.history.iter().enumerate() {
            let exact = report.history[0] * factor.powi(k as i32);
            assert!((residual - exact).abs() <= 1e-8 * exact, "{k}: {residual} {exact}");
        }
        let predicted = (1e-5_f64.ln() / factor.ln()).ceil() as usize;
        assert_eq!(report.iterations, predicted);
        // Jacobi's method is Richardson's with Jacobi's preconditioner.
        let mut m = Diagonal::new(&a).unwrap();
        let (_, other) = solved(&Jacobi { weight }, &a, &mut m, &b, 1e-5).unwrap();
        assert_eq!(report.history, other.history);
    }
}

#[test]
fn divergence_is_an_error() {
    // The spectral radius is above 1: the residual has no new least value.
    let a = Dense::<f64>::from_fn(3, |i, j| if i == j { 1.0 } else { 0.9 });
    let error = solved(&Jacobi::default(), &a, &mut Identity, &[1.0, 2.0, -1.0], 1e-6).unwrap_err();
    assert!(matches!(error, SolverError::Stagnation { .. } | SolverError::NotFinite { .. }), "{error}");
    let parameters = Parameters { stagnation: Some(10), ..Parameters::default() };
    let solver: &dyn Solver<f64> = &Jacobi::default();
    let error = solver.solve(&a, &[1.0, 2.0, -1.0], &mut [0.0; 3], &parameters).unwrap_err();
    assert!(matches!(error, SolverError::Stagnation { .. }) && error.history().len() <= 20, "{error}");
}

#[test]
fn arguments_are_refused() {
    for (low, high) in [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (1.0, f64::INFINITY), (f64::NAN, 1.0)] {
        assert!(Bounds::new(low, high).is_err(), "{low} {high}");
    }
    let a = Dense::<f64>::diagonal_of(&[1.0, 0.0]);
    for weight in [0.0, 2.0, f64::NAN] {
        let error =
            solved(&Jacobi { weight }, &Dense::diagonal_of(&[1.0]), &mut Identity, &[1.0], 1e-6).unwrap_err();
        assert!(error.to_string().contains("weight"), "{error}");
    }
    let error = solved(&Jacobi::default(), &a, &mut Identity, &[1.0, 1.0], 1e-6).unwrap_err();
    assert!(error.to_string().contains("the diagonal entry of row 1"), "{error}");
}

#[test]
fn bounds_are_estimated_from_within() {
    // Exhausted, Lanczos' method has the extreme eigenvalues; before, Ritz values lie inside the spectrum.
    let a = Dense::<f64>::laplacian_1d(40);
    let (low, high) = laplacian_bounds(40);
    let exact = estimate_bounds(&Serial, &a, &mut Identity, 1000).unwrap();
    assert!((exact.low() - low).abs() < 1e-9 && (exact.high() - high).abs() < 1e-9, "{exact:?}");
    let a = Laplacian2d { rows: 40, columns: 43 };
    let ((low, high), (low_2, high_2)) = (laplacian_bounds(40), laplacian_bounds(43));
    let (low, high) = (low + low_2, high + high_2);
    let few = estimate_bounds::<f64, _>(&Serial, &a, &mut Identity, 25).unwrap();
    assert!(few.low() >= low && few.high() <= high && few.high() > 0.97 * high, "{few:?} {low} {high}");
    // D = 4 I scales all eigenvalues by a fourth, except for rounding.
    let mut m = Diagonal::<f64>::new(&a).unwrap();
    let scaled = estimate_bounds(&Serial, &a, &mut m, 25).unwrap();
    assert!((4.0 * scaled.high() - few.high()).abs() < 1e-9, "{scaled:?}");
    // A multiple of the identity is a point.
    let point =
        estimate_bounds::<f64, _>(&Serial, &Dense::diagonal_of(&[3.0; 7]), &mut Identity, 25).unwrap();
    assert!((point.low() - 3.0).abs() < 1e-12 && (point.high() - 3.0).abs() < 1e-12, "{point:?}");
    let error =
        estimate_bounds::<f64, _>(&Serial, &Dense::diagonal_of(&[1.0, -2.0]), &mut Identity, 25).unwrap_err();
    assert!(matches!(error, SolverError::Indefinite { .. }), "{error}");
    assert!(estimate_bounds::<f64, _>(&Serial, &a, &mut Identity, 0).is_err());
}
