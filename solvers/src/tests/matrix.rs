//! Matrices as backends take them: stored or not, and checked before anything runs.

use abide_core::Real;
use std::ops::ControlFlow;
use std::sync::Arc;

use abide_core::backend::LinearSession;
use abide_core::solver::{
    Bands, Exhausted, GridOperator, Matrix, Method, Parameters, Place, Resident, SolveOptions, SolvePlan,
    SolveSchedule, SolveTraffic, SolverError,
};
use abide_core::sparse::{Csr, Triplets};
use abide_core::{Array, Boundaries, DType, LinearStencil, Shape, reduction};

use super::uniform;
use crate::engine::Serial;
use crate::refine::Refinement;
use crate::session::EngineSession;
use crate::sparse::{laplacian, laplacian_2d, laplacian_3d, random_spd, trefethen};
use abide_core::domain::Boundary;

fn operator(taps: &[([i32; 2], f64)], extents: &[usize], boundaries: Boundaries) -> GridOperator {
    let stencil = LinearStencil::new("taps", taps).unwrap();
    GridOperator::new(stencil, Shape::new(extents).unwrap(), boundaries, DType::F64).unwrap()
}

/// Taps that equal their mirror images, and taps that do not, under every boundary: the small sample has the
/// symmetry of the whole matrix.
#[test]
fn an_operators_symmetry_is_its_matrixs() {
    let star: &[([i32; 2], f64)] =
        &[([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.5), ([0, 1], -1.0), ([1, 0], -1.0)];
    let slanted: &[([i32; 2], f64)] = &[([-1, -1], -1.0), ([0, 0], 4.0), ([1, 1], -1.0)];
    let leaning: &[([i32; 2], f64)] = &[([0, -1], -1.0), ([0, 0], 4.0), ([0, 1], -2.0)];
    let wide: &[([i32; 2], f64)] = &[([0, -3], -1.0), ([0, 0], 4.0), ([0, 3], -1.0)];
    let mut seen = [0, 0];
    for taps in [star, slanted, leaning, wide] {
        for boundary in
            ["periodic", "mirror", "fixed", "constant=0", "y=mirror,x=periodic", "x-=mirror,x+=constant=0"]
        {
            for extents in [[5, 4], [17, 23], [3, 31]] {
                let boundaries = Boundaries::parse(boundary, Boundary::Constant(0.0)).unwrap();
                let operator = operator(taps, &extents, boundaries);
                let whole = operator.assemble().unwrap().is_symmetric();
                assert_eq!(Matrix::from(operator).is_symmetric().unwrap(), whole, "{boundary} {extents:?}");
                seen[usize::from(whole)] += 1;
            }
        }
    }
    assert!(seen[0] > 15 && seen[1] > 15, "{seen:?}");
}

#[test]
fn asymmetry_is_found_wherever_it_is() {
    let n = 9;
    let base = laplacian_2d(3, 3, DType::F64).unwrap();
    assert_eq!(base.asymmetry(), Ok(None));
    let with = |entries: &[(usize, usize, f64)]| {
        let mut triplets = Triplets::new(n, n).unwrap();
        for row in 0..n {
            for (column, value) in base.row(row) {
                triplets.push(row, column, value).unwrap();
            }
        }
        for &(i, j, value) in entries {
            triplets.push(i, j, value).unwrap();
        }
        triplets.into_csr().unwrap()
    };
    for i in 0..n {
        for j in (0..n).filter(|&j| j != i) {
            let place = with(&[(i, j, 0.5)]).asymmetry().unwrap();
            assert!(place == Some((i, j)) || place == Some((j, i)), "{i} {j}: {place:?}");
            assert_eq!(with(&[(i, j, 0.5), (j, i, 0.5)]).asymmetry(), Ok(None), "{i} {j}");
            // A stored zero is no entry, and rounding is no asymmetry.
            assert_eq!(with(&[(i, j, 0.0)]).asymmetry(), Ok(None), "{i} {j}");
            assert_eq!(with(&[(i, j, 0.5), (j, i, 0.5 + 1e-12)]).asymmetry(), Ok(None), "{i} {j}");
            // What is left where sums cancel is small beside the diagonal's 4.
            assert_eq!(with(&[(i, j, 7e-18)]).asymmetry(), Ok(None), "{i} {j}");
        }
    }
    assert_eq!(trefethen(300, DType::F32).unwrap().asymmetry(), Ok(None));
}

#[test]
fn random_definite_matrices_are() {
    let matrix = random_spd(1138, 4054, 3, DType::F64).unwrap();
    assert_eq!((matrix.rows(), matrix.nnz(), matrix.asymmetry()), (1138, 4054, Ok(None)));
    for row in 0..matrix.rows() {
        let beside: f64 = matrix.row(row).filter(|entry| entry.0 != row).map(|entry| entry.1.abs()).sum();
        assert!(matrix.get(row, row) > beside, "row {row}");
    }
    let lengths = matrix.row_lengths();
    assert!(lengths.max > 10 * lengths.mean() as usize, "skewed: {lengths:?}");
    assert_eq!(matrix, random_spd(1138, 4054, 3, DType::F64).unwrap());
    assert_ne!(matrix, random_spd(1138, 4054, 4, DType::F64).unwrap());
    assert!(random_spd(10, 99, 0, DType::F64).is_err());
    assert_eq!(random_spd(1, 1, 0, DType::F64).unwrap().nnz(), 1);
}

/// Blocks and diagonals of an operator are those of its stored matrix, including folded taps.
#[test]
fn an_operators_blocks_are_its_matrixs() {
    for boundary in
        [Boundary::Periodic, Boundary::Mirror, Boundary::Reflect, Boundary::Fixed, Boundary::Constant(0.0)]
    {
        let shape = Shape::new(&[2, 3, 4]).unwrap();
        let free =
            GridOperator::new(laplacian(3).unwrap(), shape, Boundaries::all(boundary), DType::F64).unwrap();
        let stored = Matrix::from(free.assemble().unwrap()).operator::<f64>().unwrap();
        let free = Matrix::from(free).operator::<f64>().unwrap();
        assert_eq!(free.diagonal(), stored.diagonal(), "{boundary}");
        for (start, size) in [(0, 24), (5, 7), (23, 1)] {
            assert_eq!(free.diagonal_block(start, size), stored.diagonal_block(start, size), "{boundary}");
        }
    }
}

fn stored_session(matrix: &Csr) -> Box<dyn LinearSession> {
    let options = SolveOptions::default();
    let matrix = Matrix::from(matrix.clone());
    let plan = SolvePlan {
        residents: vec![Resident { what: "matrix", place: Place::Memory, bytes: matrix.bytes() }],
        ..SolvePlan::new(
            "serial",
            &abide_core::DeviceSpec::preset("a100").unwrap(),
            &matrix,
            &options,
            SolveTraffic::new(&matrix, &options, 1e6, 0),
            SolveSchedule::Bands(Bands { threads: 1, work: 1 }),
        )
    };
    let operator = matrix.operator::<f32>().unwrap();
    Box::new(EngineSession::open(Serial, operator, plan, &options).unwrap())
}

#[test]
fn refinement_reaches_what_f32_cannot() {
    let matrix = laplacian_3d(9, 10, 11, DType::F64).unwrap();
    let operator = Matrix::from(matrix.clone()).operator::<f64>().unwrap();
    let mut session =
        Refinement::new(Serial, Arc::clone(&operator), stored_session(&matrix.cast(DType::F32).unwrap()))
            .unwrap();
    let b = Array::F64(uniform(990, 4));
    let parameters = Parameters { relative: 1e-13, ..Parameters::default() };
    let mut x = Array::zeros(DType::F64, 990).unwrap();
    let mut seen = 0;
    let mut count = |iteration: usize, _: f64| {
        assert_eq!(iteration, seen);
        seen += 1;
        ControlFlow::Continue(())
    };
    let report = session.solve(&b, &mut x, &parameters, &mut count).unwrap();
    assert_eq!((report.history.len(), seen), (report.iterations + 1, report.iterations + 1));
    let mut product = vec![0.0; 990];
    operator.apply(f64::slice(&x).unwrap(), &mut product);
    let b_values = b.to_f64();
    let residual: Vec<f64> = product.iter().zip(&b_values).map(|(ax, b)| b - ax).collect();
    let (norm, scale) =
        (reduction::dot(&residual, &residual).sqrt(), reduction::dot(&b_values, &b_values).sqrt());
    assert!(norm <= 1e-13 * scale, "{norm:e}");
    assert!((report.true_residual.unwrap() - norm).abs() <= 1e-3 * norm);

    // Limits and the observer count the inner iterations.
    let few = Parameters { iterations: 5, ..parameters.clone() };
    let mut x = Array::zeros(DType::F64, 990).unwrap();
    let error = session.solve(&b, &mut x, &few, &mut |_, _| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, SolverError::NotConverged { limit: Exhausted::Iterations, .. }), "{error}");
    assert_eq!(error.history().len(), 6);
    let stop = &mut |iteration: usize, _: f64| {
        if iteration == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let error = session.solve(&b, &mut x, &parameters, stop).unwrap_err();
    assert!(matches!(error, SolverError::Stopped { .. }) && error.history().len() == 4, "{error}");
    // The session does not take vectors of f32, nor an inner session of another size.
    let wrong = session
        .solve(&b.cast(DType::F32).unwrap(), &mut x, &parameters, &mut |_, _| ControlFlow::Continue(()));
    assert!(matches!(wrong, Err(SolverError::Invalid(_))));
    let other = laplacian_2d(5, 5, DType::F32).unwrap();
    assert!(Refinement::new(Serial, operator, stored_session(&other)).is_err());
}

#[test]
fn traffic_is_counted_by_hand() {
    let matrix = Matrix::from(laplacian_2d(30, 30, DType::F64).unwrap());
    let (bytes, vector) = (matrix.bytes() as f64, 900.0 * 8.0);
    // Conjugate gradients: the matrix is read once; x, r and p are read and written.
    let options = SolveOptions::default();
    let none = SolveTraffic::new(&matrix, &options, 0.0, 0);
    assert_eq!((none.streamed, none.least), (bytes + 6.0 * vector, bytes + 6.0 * vector));
    // Space for a vector saves its two passes; room for all saves all.
    assert_eq!(SolveTraffic::new(&matrix, &options, 0.0, 7200).least, bytes + 4.0 * vector);
    assert_eq!(SolveTraffic::new(&matrix, &options, 0.0, 1 << 30).least, 0.0);
    // BiCGStab: two products, four vectors carried, one consulted.
    let options = SolveOptions::with_method(Method::BiCgStab);
    assert_eq!(SolveTraffic::new(&matrix, &options, 0.0, 0).streamed, 2.0 * bytes + 9.0 * vector);
}

#[test]
fn rounding_a_matrix_makes_no_other_system_of_it() {
    let matrix = |entries: &[(usize, usize, f64)]| {
        let mut triplets = Triplets::new(2, 2).unwrap();
        entries.iter().for_each(|&(row, column, value)| triplets.push(row, column, value).unwrap());
        Matrix::from(triplets.into_csr().unwrap())
    };
    let message = |entries: &[_]| matrix(entries).cast(DType::F32).unwrap_err().to_string();
    let below = message(&[(0, 0, 1.0), (1, 0, 0.0), (1, 1, 1e-300)]);
    assert!(below.contains("row 1 of the matrix") && below.contains("below the range of f32"), "{below}");
    let beyond = message(&[(0, 0, 1.0), (1, 1, 1e300)]);
    assert!(
        beyond.contains("1e300 of row 1, column 1") && beyond.contains("beyond the range of f32"),
        "{beyond}"
    );
    // One small entry beside others is rounding. A row of zeros, and a number that is not finite, do not come
    // from rounding.
    for kept in
        [[(0, 0, 1.0), (0, 1, 1e-300)], [(0, 0, 1.0), (1, 1, 0.0)], [(0, 0, f64::INFINITY), (1, 1, 1.0)]]
    {
        assert!(matrix(&kept).cast(DType::F32).is_ok(), "{kept:?}");
    }
}
