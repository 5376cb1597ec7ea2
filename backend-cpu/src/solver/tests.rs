//! The threaded products, reductions and solves against the reference, bit for bit.

use std::ops::ControlFlow;

use abide_core::backend::{BatchSystem, LinearBackend};
use abide_core::solver::{GridOperator, Matrix, Method, Parameters, Preconditioning, SolveOptions};
use abide_core::sparse::{Csr, Triplets};
use abide_core::{Array, Boundaries, Boundary, DType, LinearStencil, Real, Shape, catalogue};
use abide_solvers::sparse::{hpcg, laplacian_2d, laplacian_3d, trefethen};
use abide_solvers::{Engine, Serial};

use super::{Threads, threaded_operator};
use crate::CpuBackend;

fn noise(len: usize, seed: u64, dtype: DType) -> Array {
    let mut random = fastrand::Rng::with_seed(seed);
    Array::from_fn(dtype, len, |_| 2.0 * random.f64() - 1.0)
}

/// Makes a square matrix with empty rows, one dense row and one dense column.
fn ragged(n: usize, dtype: DType) -> Csr {
    let mut random = fastrand::Rng::with_seed(n as u64);
    let mut triplets = Triplets::new(n, n).unwrap();
    for i in 0..n {
        triplets.push(n / 2, i, random.f64() + 0.1).unwrap();
        triplets.push(i, n / 3, random.f64() + 0.1).unwrap();
        for _ in 0..if i % 7 == 0 { 0 } else { i % 5 } {
            triplets.push(i, random.usize(0..n), random.f64() - 0.5).unwrap();
        }
    }
    triplets.into_csr().unwrap().cast(dtype).unwrap()
}

fn same_product<T: Real>(matrix: &Matrix, what: &str) {
    let (plain, threaded) = (matrix.operator::<T>().unwrap(), threaded_operator::<T>(matrix).unwrap());
    let x = noise(matrix.rows(), 3, T::DTYPE);
    let x = T::slice(&x).unwrap();
    let (mut expected, mut got) = (vec![T::ONE; matrix.rows()], vec![T::from_f64(2.0); matrix.rows()]);
    plain.apply(x, &mut expected);
    threaded.apply(x, &mut got);
    assert!(T::into_array(got).same_bits(&T::into_array(expected)), "{what}");
    assert_eq!(plain.diagonal(), threaded.diagonal(), "{what}");
}

#[test]
fn stored_products_have_the_references_bits() {
    for dtype in [DType::F32, DType::F64] {
        let matrices = [
            ("2d", laplacian_2d(101, 97, dtype).unwrap()),
            ("3d", laplacian_3d(17, 19, 23, dtype).unwrap()),
            ("hpcg", hpcg(13, 15, 17, dtype).unwrap()),
            ("trefethen", trefethen(2000, dtype).unwrap()),
            ("ragged", ragged(5001, dtype)),
            ("wide offsets", ragged(33, dtype).with_wide_offsets()),
        ];
        for (name, matrix) in matrices {
            match dtype {
                DType::F32 => same_product::<f32>(&matrix.into(), name),
                DType::F64 => same_product::<f64>(&matrix.into(), name),
            }
        }
    }
}

#[test]
fn matrix_free_products_have_the_references_bits_and_the_stored_matrixs_values() {
    let boundaries = [
        Boundaries::all(Boundary::Constant(0.0)),
        Boundaries::all(Boundary::Fixed),
        Boundaries::all(Boundary::Periodic),
        Boundaries::all(Boundary::Mirror),
        Boundaries::parse("y=periodic,x-=mirror,x+=constant=0", Boundary::Fixed).unwrap(),
    ];
    let domains: [(&str, &[usize]); 6] = [
        ("1d3pt", &[1031]),
        ("2d5pt", &[37, 1101]),
        ("2ds25pt", &[13, 7]),
        ("2d9pt", &[150, 3]),
        ("3d7pt", &[11, 13, 29]),
        ("3d27pt", &[9, 40, 70]),
    ];
    for (name, extents) in domains {
        for boundaries in boundaries {
            for dtype in [DType::F32, DType::F64] {
                let stencil = catalogue::linear(name).unwrap();
                let operator =
                    GridOperator::new(stencil, Shape::new(extents).unwrap(), boundaries, dtype).unwrap();
                let stored = operator.assemble().unwrap();
                let matrix = Matrix::from(operator);
                let what = format!("{name} {extents:?} {boundaries:?} {dtype}");
                match dtype {
                    DType::F32 => same_product::<f32>(&matrix, &what),
                    DType::F64 => same_product::<f64>(&matrix, &what),
                }
                let x = noise(matrix.rows(), 4, dtype);
                let expected = stored.matvec(&x).unwrap();
                let mut got = Array::zeros(dtype, matrix.rows()).unwrap();
                match (&x, &mut got) {
                    (Array::F32(x), Array::F32(y)) => threaded_operator::<f32>(&matrix).unwrap().apply(x, y),
                    (Array::F64(x), Array::F64(y)) => threaded_operator::<f64>(&matrix).unwrap().apply(x, y),
                    _ => unreachable!("both have the type asked for"),
                }
                let worst = got.scaled_ulp_distance(&expected, 1.0).unwrap();
                assert!(worst < 40.0, "{what}: {worst}");
            }
        }
    }
}

#[test]
fn reductions_and_updates_have_the_references_bits() {
    for len in [0, 1, 1023, 1025, 16 * 1024, 16 * 1024 + 1, 100_003] {
        let engine = Threads::<f64>::new(None, len).unwrap();
        let [a, b, c] = [1, 2, 3].map(|seed| noise(len, seed, DType::F64).to_f64());
        let pairs: [(&[f64], &[f64]); 3] = [(&a, &b), (&b, &b), (&a, &c)];
        assert_eq!(engine.dots(pairs).map(f64::to_bits), Serial.dots(pairs).map(f64::to_bits), "{len}");
        let (mut one, mut other) = ([a.clone(), b.clone()], [a.clone(), b.clone()]);
        let f = |[x, y]: [f64; 2], [z]: [f64; 1]| [x + 0.3 * z, y - x * z];
        let [x, y] = &mut one;
        engine.update([x, y], [&c], f);
        let [x, y] = &mut other;
        Serial.update([x, y], [&c], f);
        assert_eq!(one, other, "{len}");
        let (mut one, mut other) = (vec![0.0; len], vec![0.0; len]);
        let fill = |start: usize, out: &mut [f64]| {
            out.iter_mut().enumerate().for_each(|(i, v)| *v = (start * i) as f64)
        };
        engine.chunks(&mut one, 7, fill);
        Serial.chunks(&mut other, 7, fill);
        assert_eq!(one, other, "{len}");
    }
}

#[test]
fn every_solve_has_the_references_bits_on_any_number_of_threads() {
    let star = [([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.5), ([0, 1], -1.0), ([1, 0], -1.0)];
    let star = LinearStencil::new("star", &star).unwrap();
    let zero = Boundaries::all(Boundary::Constant(0.0));
    let shape = Shape::new(&[131, 133]).unwrap();
    for (parity, dtype) in [DType::F32, DType::F64].into_iter().enumerate() {
        let operator = GridOperator::new(star.clone(), shape, zero, dtype).unwrap();
        let matrices = [Matrix::from(operator.assemble().unwrap()), Matrix::from(operator)];
        for (turn, matrix) in matrices.into_iter().enumerate() {
            let b = noise(matrix.rows(), 9, dtype);
            for (row, method) in Method::all().into_iter().enumerate() {
                // Each method with each preconditioner has both types, one of them of a stored matrix.
                for preconditioner in
                    Preconditioning::ALL.into_iter().skip((row + parity + turn) % 2).step_by(2)
                {
                    let options = SolveOptions { preconditioner, ..SolveOptions::with_method(method) };
                    let solve = |backend: CpuBackend| {
                        let plan = backend.plan_solve(&matrix, &options).unwrap();
                        let mut session = backend.open_solver(&matrix, &plan, &options).unwrap();
                        let mut x = Array::zeros(dtype, b.len()).unwrap();
                        let mut seen = Vec::new();
                        let report = session.solve(
                            &b,
                            &mut x,
                            &Parameters { relative: 1e-4, ..Parameters::DEFAULT },
                            &mut |_, r| {
                                seen.push(r);
                                ControlFlow::Continue(())
                            },
                        );
                        let report = report
                            .unwrap_or_else(|error| panic!("{method} {preconditioner} {dtype}: {error}"));
                        // GMRES may lower the last entry to the true residual.
                        let last = report.iterations;
                        assert_eq!((seen.len(), &seen[..last]), (last + 1, &report.history[..last]));
                        (x, report.history)
                    };
                    let reference = solve(CpuBackend::reference());
                    for threads in [1, 3] {
                        let other = solve(CpuBackend::with_threads(threads).unwrap());
                        let same = other.0.same_bits(&reference.0) && other.1 == reference.1;
                        assert!(same, "{method} {preconditioner} {dtype} {threads} threads");
                    }
                }
            }
        }
    }
}

#[test]
fn a_plan_for_another_system_is_refused() {
    let backend = CpuBackend::new();
    let [one, other] = [20, 21].map(|n| Matrix::from(laplacian_2d(n, n, DType::F64).unwrap()));
    let options = SolveOptions::default();
    let plan = backend.plan_solve(&one, &options).unwrap();
    let error = backend.open_solver(&other, &plan, &options).err().unwrap().to_string();
    assert!(error.contains("400 rows") && error.contains("441 rows"), "{error}");
    let single = CpuBackend::with_threads(1).unwrap().plan_solve(&one, &options).unwrap();
    assert_eq!(single.synchronisation, abide_core::solver::SolveSync::None);
}

#[test]
fn a_batch_has_the_bits_of_its_systems_alone() {
    let options = SolveOptions::with_method(Method::Cg);
    let parameters = Parameters { relative: 1e-9, ..Parameters::DEFAULT };
    // Same pattern, other values: the diagonal grows, except that one system's is negative.
    let laplacian = laplacian_2d(19, 23, DType::F64).unwrap();
    let system = |number: usize| {
        let mut triplets = Triplets::new(laplacian.rows(), laplacian.columns()).unwrap();
        for row in 0..laplacian.rows() {
            for (column, value) in laplacian.row(row) {
                let shift = if number == 5 { -9.0 } else { 0.1 * number as f64 };
                triplets.push(row, column, if row == column { value + shift } else { value }).unwrap();
            }
        }
        Matrix::from(triplets.into_csr().unwrap())
    };
    let matrices: Vec<Matrix> = (0..23).map(system).collect();
    let rights: Vec<Array> = (0..23).map(|number| noise(laplacian.rows(), number, DType::F64)).collect();
    let solved = |backend: &CpuBackend| {
        let mut solutions = vec![Array::zeros(DType::F64, laplacian.rows()).unwrap(); 23];
        let systems = matrices.iter().zip(&rights).zip(&mut solutions);
        let mut systems: Vec<_> = systems.map(|((matrix, b), x)| BatchSystem { matrix, b, x }).collect();
        let reports = backend.solve_batch(&mut systems, &options, &parameters).unwrap();
        (solutions, reports)
    };
    let (expected, _) = solved(&CpuBackend::reference());
    let (got, reports) = solved(&CpuBackend::new());
    for (number, report) in reports.iter().enumerate() {
        assert_eq!(report.is_err(), number == 5, "system {number}: {report:?}");
        assert!(got[number].same_bits(&expected[number]), "system {number}");
        if number != 5 {
            let mut alone = Array::zeros(DType::F64, laplacian.rows()).unwrap();
            let backend = CpuBackend::new();
            let plan = backend.plan_solve(&matrices[number], &options).unwrap();
            let mut session = backend.open_solver(&matrices[number], &plan, &options).unwrap();
            let report = session
                .solve(&rights[number], &mut alone, &parameters, &mut |_, _| ControlFlow::Continue(()));
            assert_eq!(report.unwrap().iterations, reports[number].as_ref().unwrap().iterations);
            assert!(alone.same_bits(&got[number]), "system {number} alone");
        }
    }
}
