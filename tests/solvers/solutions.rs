//! Every method, every preconditioner, both types: the residual meets the tolerance, and the solution is a
//! direct solver's.

use abide::solve::{Matrix, Method, Precision, Preconditioning, SolverError, named, random_vector};
use abide::{Boundary, DType, Solve};

use crate::solvers::parallel::each;
use crate::solvers::subject::{Subject, Way, tolerance};
use crate::solvers::systems::{arrow, random_definite, shifted, stored, verify, windy};

/// Returns symmetric, well-conditioned systems, which suit every method, each with a bound of its condition
/// number.
fn gentle(dtype: DType) -> Vec<(&'static str, Matrix, f64)> {
    let zero = Boundary::Constant(0.0);
    vec![
        ("grid", shifted(&[19, 29], 0.5, zero, dtype).assemble().unwrap().into(), 17.0),
        ("grid, not stored", shifted(&[13, 43], 0.5, zero, dtype).into(), 17.0),
        ("ring, not stored", shifted(&[18, 29], 0.5, Boundary::Periodic, dtype).into(), 17.0),
        ("arrow", arrow(300, dtype).into(), 300.0),
        ("shuffled", random_definite(601, 3, false, dtype).into(), 60.0),
        ("one row", random_definite(1, 4, false, dtype).into(), 1.0),
        ("two rows", random_definite(2, 4, true, dtype).into(), 60.0),
    ]
}

pub fn every_method_and_preconditioner_solves(subject: &Subject) {
    let methods: Vec<(usize, Method)> = subject.methods().into_iter().enumerate().collect();
    for (dtype, is_turn) in subject.types_by_turns() {
        for (system, (name, matrix, condition)) in gentle(dtype).into_iter().enumerate() {
            let b = random_vector(dtype, matrix.rows(), 5).unwrap();
            each(&methods, |&(number, method)| {
                let preconditioners = subject.preconditioners().into_iter().enumerate();
                for (_, preconditioner) in preconditioners.filter(|(at, _)| is_turn(system + number + at)) {
                    let what = format!("{} {name} {dtype} {method} {preconditioner}", subject.name);
                    let way = Way { preconditioner, ..Way::new(method, tolerance(dtype)) };
                    let (x, report) =
                        subject.solve(&matrix, &b, &way).unwrap_or_else(|error| panic!("{what}: {error}"));
                    verify(&what, &matrix, &b, &x, way.relative, condition);
                    assert_eq!(report.history.len(), report.iterations + 1, "{what}");
                    assert!(report.history[report.iterations] <= report.threshold, "{what}");
                    assert!(report.true_residual.unwrap() <= 10.0 * report.threshold, "{what}");
                    assert_eq!(report.method, method.name(), "{what}");
                }
            });
        }
    }
}

pub fn krylov_methods_solve_harder_systems(subject: &Subject) {
    let systems = [
        ("laplacian2d:31x29", 400.0),
        ("hpcg:7x6x5", 70.0),
        ("laplacian3d:7x9x8", 80.0),
        ("trefethen:300", 4000.0),
    ];
    let methods = ["cg", "cg-single", "cg-pipelined", "minres", "bicgstab", "gmres:80"];
    for (dtype, is_turn) in subject.types_by_turns() {
        for (system, (name, condition)) in systems.into_iter().enumerate() {
            let matrix: Matrix = named::matrix(name, dtype).unwrap().into();
            let b = random_vector(dtype, matrix.rows(), 6).unwrap();
            for (number, method) in subject.able(&methods).into_iter().enumerate() {
                let preconditioners =
                    [Preconditioning::None, Preconditioning::Jacobi].into_iter().enumerate();
                for (_, preconditioner) in preconditioners.filter(|(at, _)| is_turn(system + number + at)) {
                    let what = format!("{} {name} {dtype} {method} {preconditioner}", subject.name);
                    // In f32 these are resolved only to the type's rounding times the condition number.
                    let relative = if dtype == DType::F32 { 1e-3 } else { 1e-9 };
                    let way = Way { preconditioner, ..Way::new(method, relative) };
                    let (x, _) =
                        subject.solve(&matrix, &b, &way).unwrap_or_else(|error| panic!("{what}: {error}"));
                    verify(&what, &matrix, &b, &x, relative, condition);
                }
            }
        }
    }
}

pub fn nonsymmetric_systems_are_solved(subject: &Subject) {
    for dtype in subject.dtypes() {
        let free = windy(&[17, 26], dtype);
        for matrix in [Matrix::from(free.assemble().unwrap()), free.into()] {
            let b = random_vector(dtype, matrix.rows(), 7).unwrap();
            let methods = subject.able(&["bicgstab", "gmres", "gmres:5", "jacobi"]).into_iter();
            let preconditioners = &Preconditioning::ALL[..3];
            let ways = methods.flat_map(|method| preconditioners.iter().map(move |by| (method, *by)));
            for (method, preconditioner) in subject.sampled(ways) {
                let what = format!("{} windy {dtype} {method} {preconditioner}", subject.name);
                let way = Way { preconditioner, ..Way::new(method, tolerance(dtype)) };
                let (x, _) =
                    subject.solve(&matrix, &b, &way).unwrap_or_else(|error| panic!("{what}: {error}"));
                verify(&what, &matrix, &b, &x, way.relative, 40.0);
            }
        }
    }
}

pub fn symmetric_systems_of_any_definiteness_are_solved(subject: &Subject) {
    for dtype in subject.dtypes() {
        for boundary in subject.sampled([Boundary::Constant(0.0), Boundary::Periodic, Boundary::Mirror]) {
            let free = shifted(&[21, 34], -1.3, boundary, dtype);
            let (assembled, free): (Matrix, Matrix) = (free.assemble().unwrap().into(), free.into());
            for (matrix, preconditioner) in
                [(assembled, Preconditioning::Jacobi), (free, Preconditioning::None)]
            {
                let b = random_vector(dtype, matrix.rows(), 11).unwrap();
                let what = format!("{} {boundary} {dtype} {preconditioner}", subject.name);
                let way = Way { preconditioner, ..Way::new(Method::Minres, tolerance(dtype)) };
                let (x, report) =
                    subject.solve(&matrix, &b, &way).unwrap_or_else(|error| panic!("{what}: {error}"));
                verify(&what, &matrix, &b, &x, way.relative, 5000.0);
                // With a preconditioner another norm of it falls; in f32 Lanczos' vectors lose their orthogonality.
                let falls = report.history.windows(2).all(|pair| pair[1] <= 1.01 * pair[0]);
                let is_free = dtype == DType::F32 || preconditioner != Preconditioning::None;
                assert!(falls || is_free, "{what}: the residual rises");
                let cg = subject.solve(&matrix, &b, &Way::new(Method::Cg, tolerance(dtype)));
                assert!(matches!(cg, Err(SolverError::Indefinite { .. })), "{what}: {cg:?}");
            }
        }
    }
}

pub fn operators_are_solved_as_their_stored_matrices(subject: &Subject) {
    for dtype in subject.dtypes() {
        for boundary in subject.sampled([Boundary::Constant(0.0), Boundary::Periodic, Boundary::Mirror]) {
            let operator = shifted(&[21, 34], 0.2, boundary, dtype);
            let (assembled, free): (Matrix, Matrix) = (operator.assemble().unwrap().into(), operator.into());
            let b = random_vector(dtype, free.rows(), 8).unwrap();
            for method in [Method::Cg, Method::BiCgStab] {
                let way = Way::new(method, tolerance(dtype));
                let [one, other] = [&assembled, &free].map(|matrix| {
                    let (x, report) = subject.solve(matrix, &b, &way).unwrap();
                    verify(&format!("{boundary} {method} {dtype}"), matrix, &b, &x, way.relative, 41.0);
                    report.iterations
                });
                // Where taps fall on the same entry, the stored entry is rounded once more.
                let slack = crate::solvers::agreement::slack(method, one);
                assert!(
                    one.abs_diff(other) <= slack,
                    "{boundary} {method} {dtype}: {one} and {other} iterations"
                );
            }
        }
        // Rows that a fixed boundary keeps are the identity's, so the matrix is not symmetric.
        let fixed = shifted(&[12, 13], 0.2, Boundary::Fixed, dtype);
        let matrix = Matrix::from(fixed);
        let b = random_vector(dtype, matrix.rows(), 9).unwrap();
        let way = Way::new(Method::BiCgStab, tolerance(dtype));
        let (x, _) = subject.solve(&matrix, &b, &way).unwrap();
        verify("fixed", &matrix, &b, &x, way.relative, 100.0);
        assert!(!stored(&matrix).is_symmetric());
    }
}

pub fn mixed_precision_reaches_f64(subject: &Subject) {
    let relative = 1e-12;
    let systems = [("laplacian2d:23x21", 700.0), ("trefethen:201", 2000.0), ("hpcg:7x6x5", 70.0)];
    let methods = subject.able(&["cg", "cg-single", "cg-pipelined", "minres", "bicgstab", "gmres:60"]);
    let ways = systems.iter().flat_map(|system| methods.iter().map(move |&method| (*system, method)));
    for ((name, condition), method) in subject.sampled(ways) {
        let matrix: Matrix = named::matrix(name, DType::F64).unwrap().into();
        let b = random_vector(DType::F64, matrix.rows(), 10).unwrap();
        let way = Way::new(method, relative);
        let mut system = Solve::new(matrix.clone())
            .method(way.method)
            .preconditioner(Preconditioning::Jacobi)
            .precision(Precision::Mixed)
            .parameters(way.parameters())
            .on(&subject.opened)
            .open()
            .unwrap();
        let solution =
            system.solve(&b).unwrap_or_else(|error| panic!("{} {name} {method}: {error}", subject.name));
        let what = format!("{} mixed {name} {method}", subject.name);
        verify(&what, &matrix, &b, &solution.x, relative, condition);
        let report = solution.report;
        assert_eq!(report.history.len(), report.iterations + 1, "{what}");
        assert!(report.true_residual.unwrap() <= report.threshold, "{what}");
        // A solve in f32 alone comes nowhere near this accuracy.
        assert_eq!(system.plan().dtype, DType::F32, "{what}");
    }
}
