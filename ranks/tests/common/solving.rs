//! Systems, and what several ranks make of them beside one device.

use std::ops::ControlFlow;

use abide_core::backend::LinearSession;
use abide_core::solver::{
    GridOperator, Matrix, Parameters, Preconditioning, Report, SolveOptions, SolverError,
};
use abide_core::sparse::Triplets;
use abide_core::{Array, Backend, Boundaries, Boundary, DType, LinearStencil, Shape, catalogue};
use abide_cpu::CpuBackend;
use abide_ranks::Ranked;
use abide_solvers::sparse::{arrow, hpcg, laplacian, laplacian_2d, random_spd, trefethen};

/// All preconditioners, one of them with blocks that no leaf has a whole number of.
pub const PRECONDITIONERS: [Preconditioning; 5] = [
    Preconditioning::None,
    Preconditioning::Jacobi,
    Preconditioning::BlockJacobi { size: 8 },
    Preconditioning::BlockJacobi { size: 3 },
    Preconditioning::Chebyshev { degree: 2 },
];

pub fn noise(len: usize, seed: u64, dtype: DType) -> Array {
    let mut random = fastrand::Rng::with_seed(seed);
    Array::from_fn(dtype, len, |_| 2.0 * random.f64() - 1.0)
}

/// Makes a matrix that is not symmetric: rows of one to some twenty entries anywhere, one dense row and one dense column.
pub fn ragged(n: usize, dtype: DType) -> Matrix {
    let mut random = fastrand::Rng::with_seed(n as u64);
    let mut triplets = Triplets::new(n, n).unwrap();
    for i in 0..n {
        triplets.push(i, i, 3.0 + random.f64()).unwrap();
        triplets.push(n / 2, i, 0.5 / n as f64).unwrap();
        triplets.push(i, n / 3, 0.1 * random.f64()).unwrap();
        for _ in 0..i % 19 {
            triplets.push(i, random.usize(0..n), 0.2 * random.f64() - 0.1).unwrap();
        }
    }
    triplets.into_csr().unwrap().cast(dtype).unwrap().into()
}

pub fn grid(stencil: LinearStencil, extents: &[usize], boundary: Boundary, dtype: DType) -> Matrix {
    let shape = Shape::new(extents).unwrap();
    GridOperator::new(stencil, shape, Boundaries::all(boundary), dtype).unwrap().into()
}

/// Stored matrices of several patterns, and operators that are never stored, of two and three axes and of one.
pub fn matrices(dtype: DType) -> Vec<(&'static str, Matrix)> {
    let linear = |name| catalogue::linear(name).unwrap();
    let zero = Boundary::Constant(0.0);
    vec![
        ("laplacian2d", laplacian_2d(41, 37, dtype).unwrap().into()),
        ("hpcg", hpcg(11, 13, 9, dtype).unwrap().into()),
        ("trefethen", trefethen(1301, dtype).unwrap().into()),
        ("random", random_spd(1205, 9001, 4, dtype).unwrap().into()),
        ("arrow", arrow(1111, dtype).unwrap().into()),
        ("ragged", ragged(1407, dtype)),
        ("operator in 1D", grid(laplacian(1).unwrap(), &[1237], zero, dtype)),
        ("operator in 2D", grid(laplacian(2).unwrap(), &[43, 39], zero, dtype)),
        ("operator in 3D", grid(laplacian(3).unwrap(), &[13, 11, 9], zero, dtype)),
        ("2d9pt, periodic", grid(linear("2d9pt"), &[37, 35], Boundary::Periodic, dtype)),
        ("3d13pt, periodic", grid(linear("3d13pt"), &[11, 13, 10], Boundary::Periodic, dtype)),
        ("3d27pt, mirror", grid(linear("3d27pt"), &[12, 11, 9], Boundary::Mirror, dtype)),
        ("2d5pt, fixed", grid(linear("2d5pt"), &[37, 41], Boundary::Fixed, dtype)),
        ("2d5pt, reflect", grid(linear("2d5pt"), &[301, 5], Boundary::Reflect, dtype)),
    ]
}

pub fn open(
    backend: &dyn Backend,
    matrix: &Matrix,
    options: &SolveOptions,
) -> Result<Box<dyn LinearSession>, SolverError> {
    let linear = backend.linear().unwrap();
    let plan = linear.plan_solve(matrix, options)?;
    linear.open_solver(matrix, &plan, options)
}

/// What a solve did, without its times; all numbers to the bit.
pub fn told(outcome: Result<Report, SolverError>) -> String {
    let plain = |report: &mut Report| {
        (report.seconds, report.iteration_seconds) = (0.0, 0.0);
        report.ranks.clear();
    };
    match outcome {
        Ok(mut report) => {
            plain(&mut report);
            format!("{report:?}")
        }
        Err(mut error) => {
            if let Some(report) = error.report_mut() {
                plain(report);
            }
            format!("{error:?}")
        }
    }
}

pub fn solve(session: &mut dyn LinearSession, b: &Array, x: &mut Array, parameters: &Parameters) -> String {
    told(session.solve(b, x, parameters, &mut |_, _| ControlFlow::Continue(())))
}

/// Checks that ranks solve as the definition does: the outcome, each residual and each value of the solution.
pub fn assert_same(what: &str, matrix: &Matrix, options: &SolveOptions, ranked: &Ranked, ranks: usize) {
    let what = format!(
        "{what}, {} {:?}, {} ranks, {}",
        options.method.name(),
        options.preconditioner,
        ranks,
        matrix.dtype()
    );
    let parameters = Parameters { relative: 1e-5, iterations: 12, ..Parameters::DEFAULT };
    let mut one = match open(&CpuBackend::reference(), matrix, options) {
        Ok(session) => session,
        Err(error) => {
            let several = open(ranked, matrix, options).err().map(|several| several.to_string());
            assert_eq!(several, Some(error.to_string()), "{what}");
            return;
        }
    };
    let mut several = open(ranked, matrix, options).unwrap();
    let own = &several.plan().ranks;
    assert_eq!(own.len(), if ranks > 1 { ranks } else { 0 }, "{what}: {own:?}");
    let (b, mut x) = (noise(matrix.rows(), 5, matrix.dtype()), noise(matrix.rows(), 6, matrix.dtype()));
    let mut other = x.clone();
    // The second solve begins where the first has ended.
    for _ in 0..2 {
        let expected = solve(&mut *one, &b, &mut x, &parameters);
        assert_eq!(solve(&mut *several, &b, &mut other, &parameters), expected, "{what}");
        assert!(x.same_bits(&other), "{what}: the solution");
    }
}
