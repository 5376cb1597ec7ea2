//! BiCGStab's breakdowns.

use abide::DType;
use abide::solve::{Matrix, Method, random_vector};

use crate::solvers::subject::{Subject, Way};
use crate::solvers::systems::{convective, verify};

/// With central differences and little diffusion the matrix is nearly skew, so dot products of the method come to
/// the level of rounding, or to 0.
pub fn bicgstab_starts_anew_where_it_breaks_down(subject: &Subject) {
    if !subject.dtypes().contains(&DType::F64) {
        return;
    }
    let (mut restarts, mut failed) = (0, Vec::new());
    for &cell in if crate::has_all_cases(subject.name) { &[8.0, 30.0, 100.0][..] } else { &[30.0] } {
        for peclet in [[0.0, cell], [0.7 * cell, 0.7 * cell], [0.3 * cell, 0.95 * cell]] {
            let matrix = Matrix::from(convective(&[16, 16], peclet, DType::F64));
            for b in [abide::solve::ones_vector(DType::F64, 256), random_vector(DType::F64, 256, 7)] {
                let b = b.unwrap();
                match subject.solve(&matrix, &b, &Way::new(Method::BiCgStab, 1e-8)) {
                    Ok((x, report)) => {
                        verify("convective", &matrix, &b, &x, 1e-8, 300.0);
                        assert_eq!(report.history.len(), report.iterations + 1);
                        restarts += report.restarts;
                    }
                    Err(error) => failed.push(format!("{peclet:?}: {error}")),
                }
            }
        }
    }
    assert!(restarts > 0 && failed.len() <= 2, "{}: {restarts} restarts, {failed:?}", subject.name);
}
