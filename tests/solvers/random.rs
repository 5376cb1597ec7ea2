//! Random systems of random size.

use abide::solve::{Matrix, Preconditioning, random_vector};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::solvers::subject::{Subject, Way, tolerance};
use crate::solvers::systems::{random_definite, random_dominant, verify};

fn runner(subject: &Subject) -> TestRunner {
    let has_all = std::env::var_os("ABIDE_ALL").is_some() && crate::has_all_cases(subject.name);
    let cases = if has_all { 40 } else { 10 };
    TestRunner::new_with_rng(
        Config { cases, failure_persistence: None, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    )
}

/// Returns sizes, small ones as often as large ones.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![1_usize..40, 40_usize..600, 600_usize..5000]
}

pub fn random_definite_systems_are_solved(subject: &Subject) {
    let dtypes = subject.dtypes();
    let methods = subject.methods();
    let preconditioners = subject.preconditioners();
    let which = 0..preconditioners.len();
    let case = (size(), any::<u64>(), any::<bool>(), 0..dtypes.len(), 0..methods.len(), which);
    runner(subject)
        .run(&case, |(n, seed, dense, dtype, method, preconditioner)| {
            let dtype = dtypes[dtype];
            let matrix = Matrix::from(random_definite(n, seed, dense, dtype));
            let b = random_vector(dtype, n, seed).unwrap();
            let (method, preconditioner) = (methods[method], preconditioners[preconditioner]);
            let way = Way { preconditioner, ..Way::new(method, tolerance(dtype)) };
            let what =
                format!("{} n {n} seed {seed} {dense} {method} {preconditioner} {dtype}", subject.name);
            let (x, _) =
                subject.solve(&matrix, &b, &way).map_err(|e| TestCaseError::fail(format!("{what}: {e}")))?;
            // By Gershgorin's theorem the eigenvalues lie between 0.3 and twice the largest diagonal entry, a
            // hub's.
            let largest = crate::solvers::systems::stored(&matrix).diagonal().unwrap().magnitude();
            verify(&what, &matrix, &b, &x, way.relative, 2.0 * largest / 0.3);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}

pub fn random_nonsymmetric_systems_are_solved(subject: &Subject) {
    let dtypes = subject.dtypes();
    let methods = subject.able(&["bicgstab", "gmres", "gmres:7", "jacobi"]);
    let case = (size(), any::<u64>(), 0..dtypes.len(), 0..methods.len(), 0..3_usize);
    runner(subject)
        .run(&case, |(n, seed, dtype, method, preconditioner)| {
            let dtype = dtypes[dtype];
            let matrix = Matrix::from(random_dominant(n, seed, dtype));
            let b = random_vector(dtype, n, seed).unwrap();
            let preconditioner = Preconditioning::ALL[preconditioner];
            let way = Way { preconditioner, ..Way::new(methods[method], tolerance(dtype)) };
            let what =
                format!("{} n {n} seed {seed} {} {preconditioner} {dtype}", subject.name, methods[method]);
            let (x, _) =
                subject.solve(&matrix, &b, &way).map_err(|e| TestCaseError::fail(format!("{what}: {e}")))?;
            verify(&what, &matrix, &b, &x, way.relative, 100.0);
            Ok(())
        })
        .unwrap_or_else(|error| panic!("{error}"));
}
