//! Linear solvers at sizes and lengths that the suite of all backends does not reach, against the CPU's
//! reference.

use crate::common;

use std::ops::ControlFlow;

use abide_core::backend::LinearBackend;
use abide_core::solver::{
    Exhausted, GridOperator, Jacobi, Matrix, Method, Parameters, Preconditioning, Report, SolveOptions,
    SolverError,
};
use abide_core::sparse::Triplets;
use abide_core::{Array, Backend, Boundaries, Boundary, DType, LinearStencil, Shape};
use abide_cpu::CpuBackend;
use common::backend;

/// Solves from 0; returns the report, an error's too, and the last iterate.
fn solve(
    on: &dyn Backend,
    matrix: &Matrix,
    options: &SolveOptions,
    b: &Array,
    parameters: &Parameters,
) -> (Report, Array) {
    let linear = on.linear().unwrap();
    let plan = linear.plan_solve(matrix, options).unwrap();
    let mut session = linear.open_solver(matrix, &plan, options).unwrap();
    let mut x = Array::zeros(matrix.dtype(), matrix.rows()).unwrap();
    match session.solve(b, &mut x, parameters, &mut |_, _| ControlFlow::Continue(())) {
        Ok(report) => (report, x),
        Err(error) => (error.report().unwrap_or_else(|| panic!("{error}")).clone(), x),
    }
}

fn random(dtype: DType, n: usize) -> Array {
    let mut random = fastrand::Rng::with_seed(17);
    Array::from_fn(dtype, n, |_| random.f64() - 0.5)
}

/// Checks for as many iterations, and for residuals and iterates that differ by rounding alone.
fn compare(what: &str, (own, x): &(Report, Array), (reference, expected): &(Report, Array), bound: f64) {
    assert_eq!(own.history.len(), reference.history.len(), "{what}");
    // The rounding of b - A x, where the two nearly cancel.
    let rounding = 1e-6 * reference.history[0];
    for (k, (own, expected)) in own.history.iter().zip(&reference.history).enumerate() {
        assert!(
            (own - expected).abs() <= bound * expected + rounding,
            "{what}: residual {k} is {own:e}, not {expected:e}"
        );
    }
    let scale = expected.to_f64().iter().fold(0.0_f64, |most, v| most.max(v.abs()));
    for (i, (own, expected)) in x.to_f64().iter().zip(expected.to_f64()).enumerate() {
        assert!((own - expected).abs() <= bound * scale, "{what}: x[{i}] is {own:e}, not {expected:e}");
    }
}

/// Makes a matrix of rows of about `width` entries, strictly dominant, with one long row that belongs to the
/// last workgroup's last turn.
fn banded(n: usize, width: usize, dtype: DType) -> Matrix {
    let mut triplets = Triplets::new(n, n).unwrap();
    for row in 0..n {
        triplets.push(row, row, width as f64 + 1.0).unwrap();
        (1..width).for_each(|k| triplets.push(row, (row + k * k) % n, -0.7).unwrap());
    }
    (0..2000).for_each(|k| triplets.push(n - 2, k * 7, 1e-3).unwrap());
    triplets.into_csr().unwrap().cast(dtype).unwrap().into()
}

/// More rows than all workgroups take at once, so that each comes round for a second turn.
#[test]
fn workgroups_come_round_again() {
    let Some(wgpu) = backend() else { return };
    let reference = CpuBackend::reference();
    let few = Parameters { relative: 0.0, iterations: 6, ..Parameters::DEFAULT };
    let taps = [([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.5), ([0, 1], -1.0), ([1, 0], -1.0)];
    let stencil = LinearStencil::new("shifted", &taps).unwrap();
    let shape = Shape::new(&[613, 457]).unwrap();
    let free =
        GridOperator::new(stencil, shape, Boundaries::all(Boundary::Constant(0.0)), DType::F32).unwrap();
    for matrix in [Matrix::from(free), banded(270_001, 3, DType::F32), banded(140_003, 6, DType::F32)] {
        let b = random(DType::F32, matrix.rows());
        for method in [Method::BiCgStab, Method::Jacobi(Jacobi::default())] {
            let options = SolveOptions::with_method(method);
            let plan = wgpu.plan_solve(&matrix, &options).unwrap();
            let layout = plan.dispatches().unwrap();
            assert!(layout.product_share > layout.rows() && layout.product_groups > 256, "{plan}");
            let [own, expected] =
                [&wgpu as &dyn Backend, &reference].map(|on| solve(on, &matrix, &options, &b, &few));
            compare(&format!("{method} {} rows", matrix.rows()), &own, &expected, 2e-3);
        }
    }
}

/// More iterations than the device keeps entries of the history.
#[test]
fn a_long_history_comes_back_whole() {
    let Some(wgpu) = backend() else { return };
    let n = 60;
    let mut triplets = Triplets::new(n, n).unwrap();
    for row in 0..n {
        triplets.push(row, row, 2.0).unwrap();
        if row > 0 {
            triplets.push(row, row - 1, -1.0).unwrap();
            triplets.push(row - 1, row, -1.0).unwrap();
        }
    }
    let matrix: Matrix = triplets.into_csr().unwrap().cast(DType::F32).unwrap().into();
    let b = random(DType::F32, n);
    let options = SolveOptions::with_method(Method::Jacobi(Jacobi::default()));
    let long = Parameters { relative: 1e-4, iterations: 20_000, stagnation: None, ..Parameters::DEFAULT };
    let [own, expected] =
        [&wgpu as &dyn Backend, &CpuBackend::reference()].map(|on| solve(on, &matrix, &options, &b, &long));
    assert!(expected.0.iterations > 4200, "{}", expected.0.iterations);
    assert!(own.0.iterations.abs_diff(expected.0.iterations) <= expected.0.iterations / 50);
    assert_eq!(own.0.history.len(), own.0.iterations + 1);
    for (k, (own, expected)) in own.0.history.iter().zip(&expected.0.history).enumerate() {
        assert!((own - expected).abs() <= 0.02 * expected, "residual {k} is {own:e}, not {expected:e}");
    }
}

/// The last block of block-Jacobi is smaller than the others; a block may be the whole matrix.
#[test]
fn blocks_of_any_size_precondition() {
    let Some(wgpu) = backend() else { return };
    let matrix = {
        let n = 131;
        let mut triplets = Triplets::new(n, n).unwrap();
        for row in 0..n {
            triplets.push(row, row, 4.0 + (row % 5) as f64).unwrap();
            (1..4).for_each(|k| triplets.push(row, (row + k * k) % n, -0.8).unwrap());
        }
        Matrix::from(triplets.into_csr().unwrap().cast(DType::F32).unwrap())
    };
    let b = random(DType::F32, matrix.rows());
    let parameters = Parameters { relative: 1e-4, ..Parameters::DEFAULT };
    for size in [1, 7, 64, 131, 500] {
        let options = SolveOptions {
            preconditioner: Preconditioning::BlockJacobi { size },
            ..SolveOptions::with_method(Method::Jacobi(Jacobi::default()))
        };
        let [own, expected] = [&wgpu as &dyn Backend, &CpuBackend::reference()]
            .map(|on| solve(on, &matrix, &options, &b, &parameters));
        if size >= 131 {
            assert_eq!(own.0.iterations, 1, "{size}");
        } else {
            compare(&format!("blocks of {size}"), &own, &expected, 2e-2);
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let Some(wgpu) = backend() else { return };
    let matrix = banded(60_000, 3, DType::F32);
    let refused = |options: SolveOptions| wgpu.plan_solve(&matrix, &options).unwrap_err().to_string();
    let polynomial = Preconditioning::Chebyshev { degree: 1000 };
    let error = refused(SolveOptions { preconditioner: polynomial, ..SolveOptions::default() });
    assert!(error.contains("1000") && error.contains("64"), "{error}");
    let error = refused(SolveOptions::with_method("gmres:1000000".parse().unwrap()));
    assert!(error.contains("GMRES's basis"), "{error}");
}

/// A limit on time ends a solve that would take for ever, soon after the limit.
#[test]
fn a_limit_on_time_is_looked_at_between_submissions() {
    let Some(wgpu) = backend() else { return };
    let matrix = banded(20_000, 3, DType::F32);
    let b = random(DType::F32, matrix.rows());
    let options = SolveOptions::with_method(Method::Jacobi(Jacobi { weight: 1e-6 }));
    let time = Some(std::time::Duration::from_millis(300));
    let parameters = Parameters { relative: 1e-6, iterations: 10_000_000, time, ..Parameters::DEFAULT };
    let plan = wgpu.plan_solve(&matrix, &options).unwrap();
    let mut session = wgpu.open_solver(&matrix, &plan, &options).unwrap();
    let mut x = Array::zeros(DType::F32, matrix.rows()).unwrap();
    let begun = std::time::Instant::now();
    let outcome = session.solve(&b, &mut x, &parameters, &mut |_, _| ControlFlow::Continue(()));
    assert!(matches!(outcome, Err(SolverError::NotConverged { limit: Exhausted::Time, .. })), "{outcome:?}");
    assert!(begun.elapsed().as_secs_f64() < 10.0, "{:?}", begun.elapsed());
    assert_eq!(x.non_finite(), 0);
}
