//! Right-hand sides at the ends of a type's range.

use abide::solve::{Matrix, Precision, SolverError, named, random_vector, true_residual};
use abide::{Array, DType, Solve};

use crate::solvers::subject::{Subject, Way, tolerance};
use crate::solvers::systems::shifted;

fn times(array: &Array, power: i32) -> Array {
    let half = [power / 2, power - power / 2].map(|power| 2.0_f64.powi(power));
    Array::from_fn(array.dtype(), array.len(), |i| array.get(i).unwrap() * half[0] * half[1])
}

/// A system with `2^k b` has the iterates of that with `b` times 2^k: residuals neither vanish nor overflow.
pub fn powers_of_two_change_exponents_alone(subject: &Subject) {
    let mut cases: Vec<(Precision, DType, [i32; 4])> = Vec::new();
    for dtype in subject.dtypes() {
        let powers = if dtype == DType::F32 { [-100, -66, 64, 110] } else { [-900, -530, 530, 1000] };
        cases.push((Precision::Plain(dtype), dtype, powers));
        if dtype == DType::F64 {
            cases.push((Precision::Mixed, dtype, powers));
        }
    }
    for (precision, dtype, powers) in cases {
        let matrix = Matrix::from(shifted(&[9, 11], 0.7, abide::Boundary::Constant(0.0), dtype));
        let (b, guess) = (random_vector(dtype, 99, 1).unwrap(), random_vector(dtype, 99, 2).unwrap());
        for method in subject.sampled(subject.methods()) {
            let way = Way::new(method, tolerance(DType::F32));
            let mut system = Solve::new(matrix.clone())
                .method(method)
                .precision(precision)
                .parameters(way.parameters())
                .on(&subject.opened)
                .open()
                .unwrap();
            for first in [Array::zeros(dtype, 99).unwrap(), guess.clone()] {
                let mut expected = first.clone();
                let report = system.solve_from(&b, &mut expected).unwrap();
                for power in powers {
                    let what = format!("{} {method} {} 2^{power}", subject.name, precision.name());
                    let mut x = times(&first, power);
                    let own = system.solve_from(&times(&b, power), &mut x);
                    let own = own.unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert!(x.same_bits(&times(&expected, power)), "{what}");
                    assert_eq!(own.iterations, report.iterations, "{what}");
                    let scale = Array::F64(own.history.clone());
                    assert!(scale.same_bits(&times(&Array::F64(report.history.clone()), power)), "{what}");
                    let truth = true_residual(&matrix, &times(&b, power), &x).unwrap();
                    assert!(truth > 0.0 && truth <= 10.0 * own.threshold, "{what}: {truth:e}");
                }
            }
        }
    }
}

/// The loss is reported where the solution leaves the range.
pub fn solutions_below_the_range_are_errors(subject: &Subject) {
    for dtype in subject.dtypes() {
        let matrix = Matrix::from(named::matrix("laplacian2d:9x10", dtype).unwrap());
        let power = if dtype == DType::F32 { -143 } else { -1070 };
        let b = times(&random_vector(dtype, 90, 1).unwrap(), power);
        for method in subject.able(&["cg", "bicgstab", "gmres"]) {
            let error = subject.solve(&matrix, &b, &Way::new(method, 1e-5)).unwrap_err();
            assert!(
                matches!(error, SolverError::OutOfRange { .. }),
                "{} {method} {dtype}: {error}",
                subject.name
            );
            assert!(error.to_string().contains("multiply b by a number"), "{error}");
        }
    }
}
