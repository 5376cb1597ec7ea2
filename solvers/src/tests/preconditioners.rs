//! Preconditioners against their definitions, and with every method.

use crate::method;
use abide_core::Real;
use abide_core::solver::{
    Bounds, Chebyshev, Gmres, Jacobi, METHODS, Operator, PRECONDITIONERS, Parameters, PipelinedCg,
};

use super::stationary::chebyshev_polynomial;
use super::{Dense, Laplacian2d, difference, energy_norm, laplacian_bounds, random, solved};
use crate::engine::Serial;
use crate::method::{BiCgStab, Cg, SingleReductionCg};
use crate::precondition::{BlockDiagonal, ChebyshevPolynomial, Diagonal, Identity, Preconditioner};
use crate::registry::preconditioner;
use crate::solver::Solver;

fn applied<T: Real>(m: &mut dyn Preconditioner<T>, r: &[T]) -> Vec<T> {
    // The earlier contents of z must not matter.
    let mut z = vec![T::from_f64(f64::NAN); r.len()];
    m.apply(&Serial, r, &mut z);
    z
}

#[test]
fn block_jacobi_solves_with_its_blocks() {
    for n in [1, 5, 8, 23] {
        let a = Dense::<f64>::random_nonsymmetric(n, 11);
        let r = random::<f64>(n, 12);
        for size in [1, 3, 8, 100] {
            let blocks =
                Dense::<f64>::from_fn(
                    n,
                    |i, j| if i / size == j / size { a.entries[i * n + j] } else { 0.0 },
                );
            let z = applied(&mut BlockDiagonal::new(&a, size).unwrap(), &r);
            assert!(difference(&z, &blocks.direct(&r)) < 1e-12, "n = {n}, size = {size}");
        }
    }
    // A zero on the diagonal is no obstacle to a block.
    let a = Dense::<f64>::from_fn(2, |i, j| [[0.0, 2.0], [4.0, 0.0]][i][j]);
    assert_eq!(applied(&mut BlockDiagonal::new(&a, 2).unwrap(), &[2.0, 4.0]), [1.0, 1.0]);
    let error = BlockDiagonal::new(&a, 1).unwrap_err().to_string();
    assert!(error.contains("the diagonal block of rows 0 to 0"), "{error}");
    assert!(BlockDiagonal::new(&a, 0).is_err());
    let error = BlockDiagonal::<f64>::new(&Laplacian2d { rows: 2, columns: 2 }, 2).unwrap_err().to_string();
    assert!(error.contains("does not know its blocks"), "{error}");
}

#[test]
fn the_inverse_of_a_symmetric_block_is_symmetric() {
    let n = 9;
    let a = Dense::<f64>::random_spd(n, 2);
    let mut m = BlockDiagonal::new(&a, n).unwrap();
    let columns: Vec<Vec<f64>> = (0..n)
        .map(|j| applied(&mut m, &(0..n).map(|i| if i == j { 1.0 } else { 0.0 }).collect::<Vec<_>>()))
        .collect();
    for i in 0..n {
        for j in 0..n {
            assert_eq!(columns[i][j].to_bits(), columns[j][i].to_bits());
        }
    }
}

#[test]
fn the_chebyshev_polynomial_is_the_one_of_the_definition() {
    // On an eigenvector to t, 1 - t s(t) = T_k((centre - t) / half) / T_k(centre / half), k = degree + 1.
    let (low, high) = (0.5, 3.5);
    let (centre, half) = ((high + low) / 2.0, (high - low) / 2.0);
    let values: Vec<f64> = (0..20).map(|i| 0.1 + 0.17 * f64::from(i)).collect();
    let a = Dense::<f64>::diagonal_of(&values);
    let inside = |k: usize, x: f64| {
        if x.abs() <= 1.0 { (k as f64 * x.acos()).cos() } else { chebyshev_polynomial(k, x) }
    };
    for degree in 0..8 {
        let mut m = ChebyshevPolynomial::new(&a, None, Bounds::new(low, high).unwrap(), degree).unwrap();
        for (z, t) in applied(&mut m, &[1.0; 20]).into_iter().zip(&values) {
            // All t lie below the upper bound, so that the argument is above -1.
            let exact =
                inside(degree + 1, (centre - t) / half) / chebyshev_polynomial(degree + 1, centre / half);
            assert!((1.0 - t * z - exact).abs() < 1e-12, "{degree} {t}: {} {exact}", 1.0 - t * z);
        }
    }
    // Scaled: with D = A the operator is the identity, and the interval a point: exact at degree 0.
    let scale = Diagonal::new(&a).unwrap();
    let mut m = ChebyshevPolynomial::new(&a, Some(scale), Bounds::new(1.0, 1.0).unwrap(), 3).unwrap();
    for (z, t) in applied(&mut m, &[1.0; 20]).into_iter().zip(&values) {
        assert!((z - 1.0 / t).abs() < 1e-12 / t, "{t}: {z}");
    }
}

#[test]
fn every_method_solves_with_every_preconditioner() {
    fn all<T: Real>(tolerance: f64, allowed: f64) {
        for n in [1, 10, 67] {
            // Rows of scales from 1 to 100, tied to their neighbours.
            let scales: Vec<f64> = (0..n).map(|i| 10.0_f64.powf((i % 5) as f64 / 2.0)).collect();
            let a = Dense::<T>::from_fn(n, |i, j| {
                let tie = match i.abs_diff(j) {
                    0 => 2.0,
                    1 => -0.9,
                    _ => 0.0,
                };
                tie * (scales[i] * scales[j]).sqrt()
            });
            let b = random::<T>(n, 20);
            let exact = a.direct(&b);
            let diagonal = || Diagonal::new(&a).unwrap();
            // D^-1 A has its eigenvalues in 1 ± 0.9.
            let bounds = Bounds::new(0.1, 1.9).unwrap();
            let mut preconditioners: Vec<Box<dyn Preconditioner<T> + '_>> = vec![
                Box::new(Identity),
                Box::new(diagonal()),
                Box::new(BlockDiagonal::new(&a, 4).unwrap()),
                Box::new(ChebyshevPolynomial::new(&a, Some(diagonal()), bounds, 4).unwrap()),
            ];
            let solvers: [&dyn Solver<T>; 7] = [
                &Cg,
                &SingleReductionCg,
                &PipelinedCg::default(),
                &BiCgStab,
                &Gmres::default(),
                &Chebyshev::default(),
                &Jacobi::default(),
            ];
            for solver in solvers {
                let mut unpreconditioned = 0;
                for m in &mut preconditioners {
                    let name = format!("{} with {}, n = {n}", solver.name(), m.name());
                    let (x, report) =
                        solved(solver, &a, m, &b, tolerance).unwrap_or_else(|e| panic!("{name}: {e}"));
                    assert!(difference(&x, &exact) < allowed, "{name}: {}", difference(&x, &exact));
                    if m.is_identity() {
                        unpreconditioned = report.iterations;
                    } else {
                        assert!(report.iterations <= unpreconditioned, "{name}: {}", report.iterations);
                    }
                }
            }
        }
    }
    all::<f64>(1e-10, 1e-8);
    all::<f32>(1e-5, 1e-3);
}

#[test]
fn a_polynomial_lowers_the_condition_number_as_it_should() {
    // The eigenvalues of M^-1 A are within 1 ± 1 / T_k(sigma), k = degree + 1; CG's bound in the energy norm
    // follows.
    let a = Laplacian2d { rows: 40, columns: 40 };
    let exact = random::<f64>(1600, 3);
    let mut b = vec![0.0; 1600];
    a.apply(&exact, &mut b);
    let start = energy_norm(&a, &[0.0; 1600], &exact);
    let (low, high) = laplacian_bounds(40);
    let bounds = Bounds::new(2.0 * low, 2.0 * high).unwrap();
    let sigma = (high + low) / (high - low);
    for degree in [0, 1, 3, 7] {
        let least = chebyshev_polynomial(degree + 1, sigma);
        let root = ((least + 1.0) / (least - 1.0)).sqrt();
        let rate = (root - 1.0) / (root + 1.0);
        let iterations = (5e-9_f64.ln() / rate.ln()).ceil() as usize;
        for solver in [&Cg as &dyn Solver<f64>, &SingleReductionCg, &PipelinedCg::default()] {
            let mut m = ChebyshevPolynomial::new(a, None, bounds, degree).unwrap();
            for iterations in [iterations / 4, iterations / 2, iterations] {
                let parameters = Parameters { relative: 1e-14, iterations, ..Parameters::default() };
                let mut x = vec![0.0; 1600];
                let _ = solver.solve_on(&Serial, &a, &mut m, &b, &mut x, &parameters);
                let error = energy_norm(&a, &x, &exact);
                let bound = 2.0 * rate.powi(iterations as i32) * start;
                assert!(
                    error <= bound,
                    "{}, degree {degree}, {iterations}: {error:e} {bound:e}",
                    solver.name()
                );
            }
        }
    }
}

#[test]
fn every_name_is_known() {
    let a = Laplacian2d { rows: 12, columns: 17 };
    let b = random::<f64>(204, 3);
    let mut reference = None;
    for name in METHODS {
        let solver = method::<f64, Serial>(name).unwrap();
        assert_eq!(solver.name(), name);
        for preconditioner_name in PRECONDITIONERS.into_iter().filter(|&name| name != "block-jacobi") {
            let mut m = preconditioner(preconditioner_name, &Serial, &a).unwrap();
            assert_eq!(m.name(), preconditioner_name);
            let (x, _) = solved(&*solver, &a, &mut m, &b, 1e-9)
                .unwrap_or_else(|e| panic!("{preconditioner_name}: {e}"));
            let reference = reference.get_or_insert_with(|| x.clone());
            assert!(difference(&x, reference) < 1e-6, "{name} with {preconditioner_name}");
        }
    }
    let dense = Dense::<f64>::random_spd(20, 1);
    assert_eq!(preconditioner("block-jacobi", &Serial, &dense).unwrap().name(), "block-jacobi");
    let error = method::<f64, Serial>("symmlq").err().unwrap().to_string();
    assert!(error.contains("`symmlq`") && error.contains("cg-pipelined"), "{error}");
    let error = preconditioner::<f64, _>("ssor", &Serial, &a).err().unwrap().to_string();
    assert!(error.contains("`ssor`") && error.contains("block-jacobi"), "{error}");
}
