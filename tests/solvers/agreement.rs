//! Runs agree with each other to the bit, and backends in the number of iterations.

use abide::solve::{Matrix, Method, SolveCache, SolverError, random_vector};
use abide::{Boundary, Error};

use crate::solvers::subject::{Subject, Way, tolerance};
use crate::solvers::systems::{random_definite, shifted, verify};

fn systems(dtype: abide::DType) -> [Matrix; 3] {
    let grid = shifted(&[19, 23], 0.3, Boundary::Constant(0.0), dtype);
    [grid.assemble().unwrap().into(), grid.into(), random_definite(611, 11, true, dtype).into()]
}

/// Returns how many iterations earlier or later another order of sums may end a method. BiCGStab's residual
/// jumps, and with it the iteration at which the residual happens to fall below a threshold.
pub fn slack(method: Method, iterations: usize) -> usize {
    2 + if method == Method::BiCgStab { iterations / 8 } else { 0 }
}

/// Returns what rounding in f32 adds to that slack. There pipelined CG's long recurrences lose the true
/// residual on a matrix with a dense row, and have to start anew from the iterate.
fn drift(method: Method, dtype: abide::DType, iterations: usize) -> usize {
    let is_drifting = matches!(method, Method::PipelinedCg(_)) && dtype == abide::DType::F32;
    if is_drifting { iterations / 2 } else { 0 }
}

pub fn two_runs_have_the_same_bits_and_the_references_iterations(subject: &Subject) {
    let reference = Subject {
        name: "reference",
        opened: abide::backend::Opened::new(abide::backend::Kind::Cpu, abide_cpu::CpuBackend::reference()),
    };
    let methods = subject.methods();
    for (dtype, is_turn) in subject.types_by_turns() {
        for (system, matrix) in systems(dtype).into_iter().enumerate() {
            let b = random_vector(dtype, matrix.rows(), 12).unwrap();
            for (number, &method) in methods.iter().enumerate() {
                let preconditioners = subject.preconditioners().into_iter().enumerate();
                for (_, preconditioner) in preconditioners.filter(|(at, _)| is_turn(system + number + at)) {
                    let way = Way { preconditioner, ..Way::new(method, tolerance(dtype)) };
                    let what = format!("{} {method} {preconditioner} {dtype}", subject.name);
                    let mut system = subject.describe(&matrix, &way).open().unwrap();
                    let one = system.solve(&b).unwrap();
                    // Solved again in the same session, and in another session.
                    let others = [
                        system.solve(&b).unwrap(),
                        subject.describe(&matrix, &way).open().unwrap().solve(&b).unwrap(),
                    ];
                    for other in others {
                        assert!(one.x.same_bits(&other.x), "{what}: solutions differ");
                        assert_eq!(one.report.history, other.report.history, "{what}");
                    }
                    let own = one.report.iterations;
                    let expected = reference.solve(&matrix, &b, &way).unwrap().1.iterations;
                    let close =
                        own.abs_diff(expected) <= slack(method, expected) + drift(method, dtype, expected);
                    assert!(close, "{what}: {own} iterations, the reference has {expected}");
                }
            }
        }
    }
}

pub fn every_cache_gives_a_solution(subject: &Subject) {
    for dtype in subject.dtypes() {
        for matrix in systems(dtype) {
            let b = random_vector(dtype, matrix.rows(), 14).unwrap();
            for &cache in SolveCache::ALL {
                for method in subject.sampled([Method::Cg, Method::SingleReductionCg]) {
                    let way = Way { cache, ..Way::new(method, tolerance(dtype)) };
                    let what = format!("{} {method} cache {cache} {dtype}", subject.name);
                    match subject.solve(&matrix, &b, &way) {
                        Ok((x, _)) => verify(&what, &matrix, &b, &x, way.relative, 100.0),
                        // A cache that is too small for the plan asked for is refused by name.
                        Err(SolverError::Invalid(Error::Limit { .. } | Error::Unsupported { .. })) => {}
                        Err(error) => panic!("{what}: {error}"),
                    }
                }
            }
        }
    }
}
