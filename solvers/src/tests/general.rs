//! The methods for nonsymmetric matrices.

use abide_core::reduction;
use abide_core::solver::{Gmres, Operator, SolverError};

use super::{Dense, conforms, difference, random, solved};
use crate::method::BiCgStab;
use crate::precondition::Identity;
use crate::solver::Solver;

#[test]
fn conform() {
    conforms::<f64>(&BiCgStab, false);
    conforms::<f32>(&BiCgStab, false);
    for restart in [8, 30] {
        conforms::<f64>(&Gmres { restart }, false);
        conforms::<f32>(&Gmres { restart }, false);
    }
}

/// The cyclic shift: GMRES makes no progress before step n (Saad and Schultz; Greenbaum, Pták and Strakoš
/// 1996).
fn shift(n: usize) -> Dense<f64> {
    Dense::from_fn(n, |i, j| if i == (j + 1) % n { 1.0 } else { 0.0 })
}

#[test]
fn gmres_on_the_cyclic_shift() {
    let n = 12;
    let a = shift(n);
    let mut b = vec![0.0; n];
    b[0] = 1.0;
    let (x, report) = solved(&Gmres { restart: n }, &a, &mut Identity, &b, 1e-12).unwrap();
    assert_eq!(report.iterations, n);
    assert_eq!(report.history[..n], vec![1.0; n]);
    assert!(difference(&x, &a.direct(&b)) < 1e-12);
    // Restarted before step n, GMRES stands still, and says so after one cycle.
    let error = solved(&Gmres { restart: n - 1 }, &a, &mut Identity, &b, 1e-12).unwrap_err();
    assert!(matches!(error, SolverError::Stagnation { .. }) && error.history().len() == n, "{error}");
}

#[test]
fn gmres_minimises_the_residual_over_the_krylov_space() {
    // Against the normal equations of min |b - A K y|, K = [b, A b, A^2 b, ...], by the direct solver.
    let n = 20;
    let a = Dense::<f64>::random_nonsymmetric(n, 3);
    let b = random::<f64>(n, 4);
    let (_, report) = solved(&Gmres::default(), &a, &mut Identity, &b, 1e-3).unwrap();
    let mut krylov = vec![b.clone()];
    for k in 1..=4 {
        let mut next = vec![0.0; n];
        a.apply(&krylov[k - 1], &mut next);
        krylov.push(next);
        let gram = Dense::<f64>::from_fn(k, |i, j| reduction::dot(&krylov[i + 1], &krylov[j + 1]));
        let y = gram.direct(&(0..k).map(|i| reduction::dot(&krylov[i + 1], &b)).collect::<Vec<_>>());
        let r: Vec<f64> =
            (0..n).map(|i| b[i] - (0..k).map(|j| y[j] * krylov[j + 1][i]).sum::<f64>()).collect();
        let least = reduction::dot(&r, &r).sqrt();
        assert!(
            (report.history[k] - least).abs() < 1e-9 * report.history[0],
            "{k}: {} {least}",
            report.history[k]
        );
    }
    // The residual of GMRES never rises.
    assert!(report.history.windows(2).all(|pair| pair[1] <= pair[0] * (1.0 + 1e-14)));
}

#[test]
fn gmres_is_exact_after_as_many_steps_as_the_minimal_polynomial_has() {
    for distinct in [1, 2, 4] {
        // A non-normal matrix with `distinct` eigenvalues, each in diagonal blocks: similar to a diagonal
        // one.
        let values: Vec<f64> = (0..40).map(|i| 1.0 + (i % distinct) as f64).collect();
        let a = Dense::<f64>::diagonal_of(&values);
        let (_, report) = solved(&Gmres::default(), &a, &mut Identity, &random(40, 5), 1e-11).unwrap();
        assert_eq!(report.iterations, distinct);
    }
}

#[test]
fn breakdowns_are_named() {
    // (r, A r) = 0 for a skew matrix: BiCGStab divides by it in its first iteration; GMRES does not.
    let skew = Dense::<f64>::from_fn(2, |i, j| [[0.0, 1.0], [-1.0, 0.0]][i][j]);
    let error = solved(&BiCgStab, &skew, &mut Identity, &[1.0, 2.0], 1e-10).unwrap_err();
    assert!(matches!(error, SolverError::Breakdown { quantity: "(r~, A M^-1 p)", .. }), "{error}");
    assert_eq!(error.history(), [5.0_f64.sqrt()]);
    let (x, _) = solved(&Gmres::default(), &skew, &mut Identity, &[1.0, 2.0], 1e-10).unwrap();
    assert!(difference(&x, &[-2.0, 1.0]) < 1e-14);
    // A singular matrix whose range does not hold b.
    let singular = Dense::<f64>::diagonal_of(&[1.0, 0.0]);
    for solver in [&Gmres::default() as &dyn Solver<f64>, &BiCgStab] {
        let error = solved(solver, &singular, &mut Identity, &[0.0, 1.0], 1e-10).unwrap_err();
        assert!(matches!(error, SolverError::Breakdown { .. }), "{}: {error}", solver.name());
    }
}

#[test]
fn indefinite_symmetric_systems_are_solved() {
    let values: Vec<f64> =
        (0..50).map(|i| if i % 3 == 0 { -1.0 - i as f64 / 50.0 } else { 1.0 + i as f64 / 50.0 }).collect();
    let a = Dense::<f64>::diagonal_of(&values);
    let b = random::<f64>(50, 6);
    for solver in [&Gmres { restart: 50 } as &dyn Solver<f64>, &BiCgStab] {
        let (x, _) = solved(solver, &a, &mut Identity, &b, 1e-10).unwrap();
        assert!(difference(&x, &a.direct(&b)) < 1e-8, "{}", solver.name());
    }
}

#[test]
fn restarted_gmres_and_bicgstab_on_convection_and_diffusion() {
    // The upwind scheme on a line: nonsymmetric, an M-matrix.
    let n = 90;
    let a = Dense::<f64>::from_fn(n, |i, j| {
        if i == j {
            2.5
        } else if i == j + 1 {
            -1.5
        } else if j == i + 1 {
            -1.0
        } else {
            0.0
        }
    });
    let b = random::<f64>(n, 7);
    let exact = a.direct(&b);
    for solver in [&Gmres { restart: 25 } as &dyn Solver<f64>, &BiCgStab] {
        let (x, report) = solved(solver, &a, &mut Identity, &b, 1e-11).unwrap();
        assert!(difference(&x, &exact) < 1e-8, "{}", solver.name());
        assert!(report.iterations > 25, "{}", solver.name());
    }
    assert!(matches!(
        solved(&Gmres { restart: 0 }, &a, &mut Identity, &b, 1e-6),
        Err(SolverError::Invalid(_))
    ));
}

#[test]
fn the_basis_stays_orthogonal() {
    // Eigenvalues from 1e-12 to 1: classical Gram–Schmidt done once loses the basis, and with it the true
    // residual.
    let n = 100;
    let values: Vec<f64> = (0..n).map(|i| 10.0_f64.powf(-12.0 * i as f64 / (n as f64 - 1.0))).collect();
    let a = Dense::<f64>::diagonal_of(&values);
    // A solution of size 1, so that a residual of 1e-14 can be had.
    let b: Vec<f64> = random::<f64>(n, 31).iter().zip(&values).map(|(x, value)| x * value).collect();
    let (_, report) = solved(&Gmres { restart: n }, &a, &mut Identity, &b, 1e-14).unwrap();
    assert!(report.iterations <= n, "{}", report.iterations);
    let (recurred, fresh) = (report.history.last().unwrap(), report.true_residual.unwrap());
    assert!(
        (fresh - recurred).abs() < 0.1 * report.threshold,
        "{recurred:e} {fresh:e} of {:e}",
        report.threshold
    );
}
