//! Systems that cannot be solved: each kind has its own error, and nothing hangs.

use abide::solve::{Matrix, Method, Parameters, Preconditioning, SolverError, named, random_vector};
use abide::sparse::Triplets;
use abide::{Array, Boundaries, Boundary, DType, Error};

use crate::solvers::subject::{Subject, Way};
use crate::solvers::systems::shifted;

fn matrix(rows: usize, columns: usize, entries: &[(usize, usize, f64)], dtype: DType) -> Matrix {
    let mut triplets = Triplets::new(rows, columns).unwrap();
    for &(i, j, value) in entries {
        triplets.push(i, j, value).unwrap();
    }
    triplets.into_csr().unwrap().cast(dtype).unwrap().into()
}

/// Returns the error of opening or solving with a random right-hand side.
fn error(subject: &Subject, matrix: &Matrix, method: Method) -> SolverError {
    let b = random_vector(matrix.dtype(), matrix.rows(), 15).unwrap();
    let way = Way::new(method, 1e-3);
    // The largest of these systems has 90 rows.
    let parameters = Parameters { iterations: 2000, ..way.parameters() };
    match subject.describe(matrix, &way).parameters(parameters).open().and_then(|mut system| system.solve(&b))
    {
        Err(error) => error,
        Ok(solution) => panic!("{} {method}: it was solved: {:?}", subject.name, solution.report),
    }
}

pub fn matrices_that_cannot_be_solved_have_their_own_errors(subject: &Subject) {
    for dtype in subject.dtypes() {
        for method in subject.methods() {
            let fails = |matrix: &Matrix| error(subject, matrix, method);
            let wide = matrix(2, 3, &[(0, 0, 1.0), (1, 1, 1.0)], dtype);
            assert!(fails(&wide).to_string().contains("2 rows and 3 columns"));
            assert!(fails(&matrix(0, 0, &[], dtype)).to_string().contains("no rows"));
            let nan = matrix(2, 2, &[(0, 0, 1.0), (1, 1, f64::NAN)], dtype);
            assert!(fails(&nan).to_string().contains("row 1, column 1"), "{}", fails(&nan));
            let empty_row = matrix(3, 3, &[(0, 0, 1.0), (2, 2, 1.0)], dtype);
            assert_eq!(fails(&empty_row), SolverError::Singular { row: 1 });
            let zero_row = matrix(2, 2, &[(0, 0, 1.0), (1, 0, 0.0)], dtype);
            assert_eq!(fails(&zero_row), SolverError::Singular { row: 1 });
            if method.needs_definite() {
                let skewed = matrix(2, 2, &[(0, 0, 2.0), (0, 1, 1.0), (1, 0, -1.0), (1, 1, 2.0)], dtype);
                let name = method.name();
                let expected =
                    SolverError::NotSymmetric { method: name, row: 1, column: 0, value: -1.0, mirror: 1.0 };
                assert_eq!(fails(&skewed), expected);
                let one_sided = matrix(2, 2, &[(0, 0, 2.0), (0, 1, 1.0), (1, 1, 2.0)], dtype);
                assert!(matches!(fails(&one_sided), SolverError::NotSymmetric { .. }));
                let negative = matrix(2, 2, &[(0, 0, 2.0), (1, 1, -2.0)], dtype);
                assert_eq!(fails(&negative), SolverError::NotPositive { method: name, row: 1, value: -2.0 });
                // The eigenvalues are 1 + 2 and 1 - 2: only the iteration can notice it.
                let indefinite = matrix(2, 2, &[(0, 0, 1.0), (0, 1, 2.0), (1, 0, 2.0), (1, 1, 1.0)], dtype);
                assert!(
                    matches!(fails(&indefinite), SolverError::Indefinite { .. }),
                    "{}",
                    fails(&indefinite)
                );
                // The stencil of a fixed boundary is not symmetric, whatever its taps.
                let fixed = Matrix::from(shifted(&[8, 9], 0.5, Boundary::Fixed, dtype));
                assert!(matches!(fails(&fixed), SolverError::NotSymmetric { .. }));
            }
        }
        // A constant beyond the boundary is no part of a linear operator.
        let taps = named::operator("laplacian1d").unwrap();
        let ones = Boundaries::all(Boundary::Constant(1.0));
        let affine = abide::solve::GridOperator::new(taps, "9".parse().unwrap(), ones, dtype);
        assert!(affine.unwrap_err().to_string().contains("right-hand side"));
    }
}

pub fn vectors_that_do_not_fit_are_refused(subject: &Subject) {
    let dtype = DType::F32;
    let matrix = Matrix::from(shifted(&[6, 7], 0.5, Boundary::Constant(0.0), dtype));
    for method in subject.methods() {
        let mut system = subject.describe(&matrix, &Way::new(method, 1e-3)).open().unwrap();
        let long = random_vector(dtype, 43, 1).unwrap();
        let right = random_vector(dtype, 42, 1).unwrap();
        let error = system.solve(&long).unwrap_err().to_string();
        assert!(error.contains("vector b") && error.contains("43 values"), "{error}");
        let error = system.solve_from(&right, &mut long.clone()).unwrap_err().to_string();
        assert!(error.contains("vector x") && error.contains("43 values"), "{error}");
        let error = system.solve(&right.cast(DType::F64).unwrap()).unwrap_err().to_string();
        assert!(error.contains("f64") && error.contains("f32"), "{error}");
        for bad in [f64::NAN, f64::INFINITY] {
            let mut b = right.clone();
            if let Array::F32(values) = &mut b {
                values[17] = bad as f32;
            }
            let error = system.solve(&b).unwrap_err();
            assert!(matches!(error, SolverError::NotFinite { .. }), "{method}: {error}");
            let words = error.to_string();
            assert!(words.contains("b is not finite at row 17"), "{method}: {words}");
            let error = system.solve_from(&right, &mut b).unwrap_err().to_string();
            assert!(error.contains("x is not finite at row 17"), "{method}: {error}");
        }
        // The session is still usable.
        system.solve(&right).unwrap();
    }
    let way = Way { preconditioner: Preconditioning::BlockJacobi { size: 0 }, ..Way::new(Method::Cg, 1e-3) };
    let error = subject.describe(&matrix, &way).open().err().expect("blocks of no rows").to_string();
    assert!(error.contains("at least 1"), "{error}");
}

pub fn breakdowns_are_errors(subject: &Subject) {
    for dtype in subject.dtypes() {
        // The matrix is singular with full rows: the right-hand side has a part that no x reaches.
        let ring = Matrix::from(shifted(&[9, 10], 0.0, Boundary::Periodic, dtype));
        for method in subject.sampled(subject.methods()) {
            let found = error(subject, &ring, method);
            // Chebyshev's method may end with the estimate of its interval, before there is a right-hand side
            // or a residual.
            let is_estimate =
                matches!((method, &found), (Method::Chebyshev(_), SolverError::Indefinite { .. }));
            assert!(
                is_estimate || matches!(found, SolverError::Inconsistent { .. }),
                "{} {method} {dtype}: {found}",
                subject.name
            );
            assert!(!found.history().is_empty() || matches!(method, Method::Chebyshev(_)), "{found:?}");
        }
        // The matrix is a rotation: the first product is orthogonal to the residual.
        let rotation = matrix(2, 2, &[(0, 1, 1.0), (1, 0, -1.0)], dtype);
        let found = error(subject, &rotation, Method::BiCgStab);
        assert!(matches!(found, SolverError::Breakdown { .. }), "{found}");
        // A diagonal with a zero cannot scale.
        let way = Way { preconditioner: Preconditioning::Jacobi, ..Way::new(Method::BiCgStab, 1e-3) };
        let b = random_vector(dtype, 2, 1).unwrap();
        let found = subject.solve(&rotation, &b, &way).unwrap_err();
        assert!(matches!(&found, SolverError::Invalid(Error::Invalid { .. })), "{found}");
        assert!(found.to_string().contains("row 0"), "{found}");
    }
}
