//! Low-rank factors of a symmetric positive definite table.

/// Returns the columns of `L` with `L Lᵀ` equal to a matrix of ones on the diagonal, to within `tolerance` at every
/// entry, by Cholesky's decomposition with complete pivoting (Higham, Accuracy and Stability of Numerical
/// Algorithms, 2nd ed., section 10.3). What is left after each column is positive semidefinite, so that no entry of
/// it is larger than the largest on its diagonal.
pub fn factors(size: usize, entry: impl Fn(usize, usize) -> f64, tolerance: f64) -> Vec<Vec<f64>> {
    let mut left: Vec<f64> = (0..size).map(|i| entry(i, i)).collect();
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut pivots: Vec<usize> = Vec::new();
    while columns.len() < size {
        // The first of the largest, so that the factors follow from the table alone.
        let Some(pivot) = (0..size)
            .filter(|i| !pivots.contains(i))
            .reduce(|best, i| if left[i] > left[best] { i } else { best })
            .filter(|&pivot| left[pivot] > tolerance)
        else {
            break;
        };
        let root = left[pivot].sqrt();
        pivots.push(pivot);
        let column = (0..size).map(|i| match i {
            i if i == pivot => root,
            i if pivots.contains(&i) => 0.0,
            i => columns.iter().fold(entry(i, pivot), |sum, c| (-c[i]).mul_add(c[pivot], sum)) / root,
        });
        let column: Vec<f64> = column.collect();
        for (left, value) in left.iter_mut().zip(&column) {
            *left = (-value).mul_add(*value, *left);
        }
        columns.push(column);
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_table_has_few_factors() {
        let mass = |i: usize| 2.0 + 0.8 * i as f64;
        let entry = |i: usize, j: usize| {
            if i == j { 1.0 } else { (2.0 * (mass(i) * mass(j)).sqrt() / (mass(i) + mass(j))).sqrt() }
        };
        let columns = factors(53, entry, 1e-15);
        assert!(columns.len() < 17, "{}", columns.len());
        for i in 0..53 {
            for j in 0..53 {
                let product: f64 = columns.iter().map(|c| c[i] * c[j]).sum();
                assert!((product - entry(i, j)).abs() < 2e-15, "{i} {j}: {:e}", product - entry(i, j));
            }
        }
    }
}
