//! Matrices for the emulated solvers: small, each with a property that some product or layout is for.

use abide_core::solver::{GridOperator, Matrix};
use abide_core::sparse::Triplets;
use abide_core::{Boundaries, Boundary, DType, LinearStencil, Shape};

pub fn stencil(extents: &[usize], boundaries: &str) -> Matrix {
    let taps = [([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.5), ([0, 1], -1.0), ([1, 0], -1.0)];
    let boundaries = Boundaries::parse(boundaries, Boundary::Constant(0.0)).unwrap();
    let stencil = LinearStencil::new("shifted", &taps).unwrap();
    GridOperator::new(stencil, Shape::new(extents).unwrap(), boundaries, DType::F64).unwrap().into()
}

/// Makes a symmetric, diagonally dominant matrix with one dense row and column, and short rows of unequal
/// length.
pub fn arrow(rows: usize) -> Matrix {
    let mut entries = Triplets::new(rows, rows).unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    let dense = rows / 3;
    for row in 0..rows {
        entries.push(row, row, if row == dense { rows as f64 } else { 9.0 }).unwrap();
        if row != dense {
            entries.push(row, dense, -0.5).unwrap();
            entries.push(dense, row, -0.5).unwrap();
        }
        let column = random.usize(0..rows);
        if column != row && column != dense && row != dense && column > row {
            entries.push(row, column, -1.0).unwrap();
            entries.push(column, row, -1.0).unwrap();
        }
    }
    entries.into_csr().unwrap().into()
}

/// Makes a diagonally dominant matrix of short rows, and long ones that fill two thirds of their columns,
/// every second one only among the first third; symmetric where `mirrored`.
pub fn long_rows(rows: usize, long: &[usize], mirrored: bool, dtype: DType) -> Matrix {
    let mut entries = Triplets::new(rows, rows).unwrap();
    let mut diagonal: Vec<f64> = (0..rows).map(|row| 1.0 + (row % 5) as f64).collect();
    let mut push = |row: usize, column: usize, value: f64| {
        entries.push(row, column, value).unwrap();
        diagonal[row] += value.abs();
        if mirrored {
            entries.push(column, row, value).unwrap();
            diagonal[column] += value.abs();
        }
    };
    for row in 0..rows - 1 {
        push(row, row + 1, -1.0);
    }
    for (number, &row) in long.iter().enumerate() {
        let reach = if number % 2 == 0 { rows } else { rows / 3 };
        let columns = (0..reach).filter(|column| (column * 7 + row) % 3 != 0 && column.abs_diff(row) > 1);
        columns.filter(|column| !long[..=number].contains(column)).for_each(|column| push(row, column, 0.25));
    }
    for (row, value) in diagonal.into_iter().enumerate() {
        entries.push(row, row, value).unwrap();
    }
    entries.into_csr().unwrap().cast(dtype).unwrap().into()
}

/// Makes the matrix of convection and diffusion on a plane, upwind: not symmetric.
pub fn wind(extents: [usize; 2], dtype: DType) -> Matrix {
    let [height, width] = extents;
    let mut entries = Triplets::new(height * width, height * width).unwrap();
    for y in 0..height {
        for x in 0..width {
            let row = y * width + x;
            let mut push = |there: bool, column: usize, value: f64| {
                if there {
                    entries.push(row, column, value).unwrap();
                }
            };
            push(y > 0, row.wrapping_sub(width), -1.9);
            push(x > 0, row.wrapping_sub(1), -1.4);
            push(true, row, 5.4 + (row % 5) as f64);
            push(x + 1 < width, row + 1, -1.0);
            push(y + 1 < height, row + width, -1.0);
        }
    }
    Matrix::from(entries.into_csr().unwrap()).cast(dtype).unwrap()
}

/// Makes a random symmetric diagonally dominant matrix with a dense row and column, whose diagonal is as
/// uneven as the other rows' sums.
pub fn hub(rows: usize, dtype: DType) -> Matrix {
    let mut random = fastrand::Rng::with_seed(11);
    let mut entries = Triplets::new(rows, rows).unwrap();
    let (mut diagonal, hub) = (vec![0.0; rows], random.usize(0..rows));
    for row in 0..rows {
        let mut near = vec![(hub, 0.2 * random.f64())];
        for _ in 0..random.usize(0..4) {
            near.push((random.usize(0..rows), random.f64() - 0.6));
        }
        for (column, value) in near.into_iter().filter(|&(column, _)| column != row) {
            entries.push(row, column, value).unwrap();
            entries.push(column, row, value).unwrap();
            diagonal[row] += value.abs();
            diagonal[column] += value.abs();
        }
    }
    for (row, sum) in diagonal.into_iter().enumerate() {
        entries.push(row, row, sum + 0.3 + random.f64()).unwrap();
    }
    entries.into_csr().unwrap().cast(dtype).unwrap().into()
}
