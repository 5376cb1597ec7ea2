//! Singular matrices.

use abide::solve::{Matrix, Method, Nullspace, Parameters, SolverError, random_vector, true_residual};
use abide::sparse::Triplets;
use abide::{Array, Boundary};

use crate::solvers::subject::{Subject, Way, tolerance};
use crate::solvers::systems::{random_dominant, shifted};

fn mean(array: &Array) -> f64 {
    array.to_f64().iter().sum::<f64>() / array.len() as f64
}

/// Pure Neumann problems: `b` must add up to 0, and is made to.
pub fn a_null_space_of_constants_is_taken_away(subject: &Subject) {
    let methods = subject.able(&["cg", "cg-single", "bicgstab", "gmres:200"]);
    for dtype in subject.dtypes() {
        for boundary in [Boundary::Mirror, Boundary::Periodic] {
            let operator = shifted(&[9, 11], 0.0, boundary, dtype);
            // One of the matrices is stored.
            let matrix = match boundary {
                Boundary::Mirror => Matrix::from(operator.assemble().unwrap()),
                _ => operator.into(),
            };
            // A mean of 2, and a part that adds up to 0.
            let noise = random_vector(dtype, 99, 8).unwrap();
            let b = Array::from_fn(dtype, 99, |i| 2.0 + noise.get(i).unwrap());
            let middle = mean(&b);
            let projected = Array::from_fn(dtype, 99, |i| b.get(i).unwrap() - middle);
            for &method in subject.sampled(&methods) {
                let what = format!("{} {method} {dtype} {boundary}", subject.name);
                let way = Way::new(method, tolerance(dtype));
                // Three times as many as the matrix has rows: no method that can end has not by then.
                let parameters = Parameters { iterations: 300, ..way.parameters() };
                let mut system = subject.describe(&matrix, &way).parameters(parameters).open().unwrap();
                let mut x = Array::zeros(dtype, 99).unwrap();
                let error = system.solve_from(&b, &mut x).unwrap_err();
                assert!(matches!(error, SolverError::Inconsistent { .. }), "{what}: {error}");
                let words = error.to_string();
                assert!(words.contains("its rows add up to 0, so must b"), "{words}");
                // The iterates grow without bound; the one that is left is no worse than the first guess.
                let first = b.to_f64().iter().map(|v| v * v).sum::<f64>().sqrt();
                let left = true_residual(&matrix, &b, &x).unwrap();
                assert!(x.magnitude() < 1e3 && left < 1.0001 * first, "{what}: {:e}, {left}", x.magnitude());
                let mut system =
                    subject.describe(&matrix, &way).nullspace(Nullspace::Constant).open().unwrap();
                let mut x = random_vector(dtype, 99, 9).unwrap();
                system.solve_from(&b, &mut x).unwrap_or_else(|error| panic!("{what}: {error}"));
                let norm = projected.to_f64().iter().map(|v| v * v).sum::<f64>().sqrt();
                let residual = true_residual(&matrix, &projected, &x).unwrap();
                assert!(residual <= 10.0 * way.relative * norm, "{what}: {residual:e}");
                assert!(mean(&x).abs() <= 1e-5, "{what}: {}", mean(&x));
                // Nothing is left of a constant.
                let constant = Array::from_fn(dtype, 99, |_| 0.1);
                assert_eq!(system.solve(&constant).unwrap().x.magnitude(), 0.0, "{what}");
            }
        }
        let regular = Matrix::from(shifted(&[9, 11], 0.1, Boundary::Mirror, dtype));
        let way = Way::new(Method::Cg, 1e-3);
        let refused = subject.describe(&regular, &way).nullspace(Nullspace::Constant).open().err();
        let words = refused.expect("no null space").to_string();
        assert!(words.contains("row 0 of the matrix adds up to"), "{words}");
    }
}

/// Two equations have one left side and two right ones.
pub fn gmres_keeps_the_better_iterate(subject: &Subject) {
    for dtype in subject.dtypes() {
        let n = 40;
        let regular = random_dominant(n, 11, dtype);
        let mut triplets = Triplets::new(n, n).unwrap();
        for row in 0..n {
            for (column, value) in regular.row(if row == n - 1 { 0 } else { row }) {
                triplets.push(row, column, value).unwrap();
            }
        }
        let matrix = Matrix::from(triplets.into_csr().unwrap().cast(dtype).unwrap());
        let b = random_vector(dtype, n, 12).unwrap();
        let least = (b.get(0).unwrap() - b.get(n - 1).unwrap()).abs() / 2.0_f64.sqrt();
        for method in subject.able(&["gmres:30", "gmres:40"]) {
            let mut system = subject.describe(&matrix, &Way::new(method, 1e-5)).open().unwrap();
            let mut x = Array::zeros(dtype, n).unwrap();
            let error = system.solve_from(&b, &mut x).unwrap_err();
            let what = format!("{} {method} {dtype}: {error}", subject.name);
            let truth = true_residual(&matrix, &b, &x).unwrap();
            let norm = b.to_f64().iter().map(|v| v * v).sum::<f64>().sqrt();
            assert!(truth >= 0.999 * least && truth <= 1.001 * norm, "{what}: {truth:e}, {least:e}");
            // Short cycles lower the residual slowly, and stagnate there.
            let is_whole = method == "gmres:40".parse().unwrap();
            assert!(!is_whole || x.magnitude() < 1e4, "{what}: {:e}", x.magnitude());
            let reported = error.report().and_then(|report| report.true_residual).expect("a true residual");
            assert!((reported / truth - 1.0).abs() < 1e-3, "{what}: {reported:e}, {truth:e}");
            let words = error.to_string();
            assert!(!words.contains("2.2e-16"), "{words}");
        }
        let full = subject.solve(&matrix, &b, &Way::new("gmres:40".parse().unwrap(), 1e-5)).unwrap_err();
        assert!(full.to_string().contains("singular"), "{} {dtype}: {full}", subject.name);
    }
}
