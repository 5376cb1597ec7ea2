//! Systems on several ranks have the bits of one device: every method, preconditioner and kind of matrix, both types, odd
//! sizes, uneven cuts.

use crate::common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use abide_core::backend::LinearSession;
use abide_core::solver::{
    Bounds, Chebyshev, Exhausted, Gmres, Jacobi, Matrix, Method, Parameters, PipelinedCg, Preconditioning,
    SolveOptions, SolverError,
};
use abide_core::{Array, Backend, Boundary, DType};
use abide_cpu::CpuBackend;
use abide_ranks::{Device, Ranked};
use abide_solvers::sparse::{hpcg, laplacian, laplacian_2d, random_spd};
use common::ranked;
use common::solving::{PRECONDITIONERS, assert_same, grid, matrices, noise, open, told};

fn methods() -> Vec<Method> {
    vec![
        Method::Cg,
        Method::SingleReductionCg,
        Method::PipelinedCg(PipelinedCg { replacement: 7 }),
        Method::Minres,
        Method::BiCgStab,
        Method::Gmres(Gmres { restart: 5 }),
        Method::Gmres(Gmres { restart: 300 }),
        Method::Chebyshev(Chebyshev::default()),
        Method::Chebyshev(Chebyshev { bounds: Some(Bounds::new(0.3, 11.0).unwrap()) }),
        Method::Jacobi(Jacobi { weight: 0.7 }),
    ]
}

/// Backends of one to four ranks, some of unequal weights.
fn backends() -> Vec<(Ranked, usize)> {
    let weights: [&[usize]; 5] = [&[1], &[1, 1], &[1, 3], &[2, 1, 1], &[1, 2, 1, 1]];
    weights.into_iter().map(|weights| (ranked(weights), weights.len())).collect()
}

#[test]
fn every_method_has_the_same_bits_on_every_matrix() {
    let backends = backends();
    // The next cut is taken in turn.
    let mut cuts = backends.iter().cycle();
    for (parity, dtype) in [DType::F32, DType::F64].into_iter().enumerate() {
        for (name, matrix) in matrices(dtype) {
            for (row, method) in methods().into_iter().enumerate() {
                // Each method on a matrix, and each preconditioner on it, has both types.
                let own = PRECONDITIONERS.into_iter().skip((row + parity) % 2).step_by(2);
                for (preconditioner, (ranked, ranks)) in own.zip(&mut cuts) {
                    let options = SolveOptions { preconditioner, ..SolveOptions::with_method(method) };
                    let ranks = match preconditioner {
                        // Blocks of three rows are whole where 768 rows are.
                        Preconditioning::BlockJacobi { size: 3 } => matrix.rows().div_ceil(768).min(*ranks),
                        _ => *ranks,
                    };
                    assert_same(name, &matrix, &options, ranked, ranks);
                }
            }
        }
    }
}

#[test]
fn conjugate_gradients_have_the_same_bits_with_every_cut() {
    let matrices = [
        ("laplacian2d", laplacian_2d(71, 69, DType::F64).unwrap().into()),
        ("operator", grid(laplacian(3).unwrap(), &[17, 19, 15], Boundary::Constant(0.0), DType::F32)),
    ];
    for (name, matrix) in matrices {
        for weights in [&[1, 1, 1][..], &[1, 9], &[9, 1], &[5, 1, 1, 3], &[1, 1, 1, 1], &[3, 7, 2]] {
            for method in [Method::Cg, Method::BiCgStab] {
                assert_same(
                    name,
                    &matrix,
                    &SolveOptions::with_method(method),
                    &ranked(weights),
                    weights.len(),
                );
            }
        }
    }
}

/// Rows and lines that the threads of a rank share, sums of more than one piece, and cuts in the middle of long lines.
#[test]
fn threads_of_a_rank_share_its_rows() {
    let make = |ranks: usize| {
        let device = |rank: usize| {
            let backend: Arc<dyn Backend> = Arc::new(CpuBackend::with_threads(1 + rank % 2)?);
            Ok(Device { backend, weight: 1 + rank })
        };
        (0..ranks).map(device).collect()
    };
    let three = Ranked::new(Arc::new(common::cpu()), 3, make).unwrap();
    let zero = Boundary::Constant(0.0);
    let matrices: [(&str, Matrix); 6] = [
        ("hpcg", hpcg(31, 33, 35, DType::F64).unwrap().into()),
        ("random", random_spd(70_001, 400_001, 3, DType::F32).unwrap().into()),
        ("3D", grid(laplacian(3).unwrap(), &[37, 41, 43], zero, DType::F64)),
        ("3D, periodic", grid(laplacian(3).unwrap(), &[43, 37, 45], Boundary::Periodic, DType::F32)),
        ("short lines", grid(laplacian(2).unwrap(), &[11_003, 7], Boundary::Mirror, DType::F64)),
        ("long lines", grid(laplacian(2).unwrap(), &[5, 20_003], zero, DType::F32)),
    ];
    for (name, matrix) in matrices {
        for method in [Method::BiCgStab, Method::Gmres(Gmres { restart: 4 })] {
            assert_same(name, &matrix, &SolveOptions::with_method(method), &three, 3);
        }
    }
}

/// A system of few leaves of the tree has fewer ranks, and its plan says so.
#[test]
fn small_systems_have_fewer_ranks() {
    for (rows, ranks) in [(1, 1), (256, 1), (257, 2), (512, 2), (513, 3)] {
        let matrix = grid(laplacian(1).unwrap(), &[rows], Boundary::Constant(0.0), DType::F64);
        let four = ranked(&[1, 1, 1, 1]);
        let options = SolveOptions::default();
        assert_same("small", &matrix, &options, &four, ranks);
        let plan = four.linear().unwrap().plan_solve(&matrix, &options).unwrap();
        assert!(
            plan.notes.iter().any(|note| note.contains(&format!("{ranks} of 4 devices solve"))),
            "{plan}"
        );
    }
}

/// The caller's function, and the time, end all ranks after the same iteration.
#[test]
fn a_run_ends_on_all_ranks_where_the_first_is_told_to() {
    let matrix: Matrix = laplacian_2d(61, 53, DType::F64).unwrap().into();
    let three = ranked(&[1, 2, 1]);
    let options = SolveOptions::default();
    let b = noise(matrix.rows(), 1, DType::F64);
    let mut session = open(&three, &matrix, &options).unwrap();
    let mut one = open(&CpuBackend::reference(), &matrix, &options).unwrap();
    let run = |session: &mut dyn LinearSession| {
        let (mut x, mut seen) = (Array::zeros(DType::F64, b.len()).unwrap(), Vec::new());
        let outcome = session.solve(&b, &mut x, &Parameters::DEFAULT, &mut |iteration, residual| {
            seen.push((iteration, residual.to_bits()));
            if iteration == 6 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(outcome, Err(SolverError::Stopped { .. })), "{outcome:?}");
        (told(outcome), x, seen)
    };
    let (expected, several) = (run(&mut *one), run(&mut *session));
    assert!(expected == several && several.2.len() == 7);
    let parameters = Parameters { time: Some(Duration::ZERO), ..Parameters::DEFAULT };
    let mut x = Array::zeros(DType::F64, b.len()).unwrap();
    let outcome = session.solve(&b, &mut x, &parameters, &mut |_, _| ControlFlow::Continue(()));
    assert!(matches!(outcome, Err(SolverError::NotConverged { limit: Exhausted::Time, .. })), "{outcome:?}");
    let ranks = session.take_ranks();
    assert_eq!(ranks.iter().map(|rank| rank.rows.clone()).collect::<Vec<_>>(), session.plan().ranks);
    assert!(
        ranks.iter().all(|rank| rank.seconds > 0.0 && (0.0..=1.0).contains(&rank.efficiency)),
        "{ranks:?}"
    );
    assert!(session.take_ranks().iter().all(|rank| rank.seconds == 0.0));
}

/// Systems of one backend are solved at the same time, and one within another's observer.
#[test]
fn systems_do_not_wait_for_each_other() {
    let (matrix, options): (Matrix, _) =
        (laplacian_2d(41, 37, DType::F64).unwrap().into(), SolveOptions::default());
    let three = ranked(&[1, 1, 1]);
    let b = noise(matrix.rows(), 1, DType::F64);
    let solution = || {
        let mut session = open(&three, &matrix, &options).unwrap();
        let mut x = Array::zeros(DType::F64, b.len()).unwrap();
        let outcome = session.solve(&b, &mut x, &Parameters::DEFAULT, &mut |_, _| ControlFlow::Continue(()));
        outcome.unwrap();
        x
    };
    let expected = solution();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..4).for_each(|_| assert!(solution().same_bits(&expected))));
        }
    });
    let mut session = open(&three, &matrix, &options).unwrap();
    let mut x = Array::zeros(DType::F64, b.len()).unwrap();
    let mut inner = None;
    let outcome = session.solve(&b, &mut x, &Parameters::DEFAULT, &mut |iteration, _| {
        if iteration == 3 {
            inner = Some(solution());
        }
        ControlFlow::Continue(())
    });
    outcome.unwrap();
    assert!(x.same_bits(&expected) && inner.is_some_and(|inner| inner.same_bits(&expected)));
}

/// A plan whose slabs cut a leaf in two is refused.
#[test]
fn a_plan_with_other_cuts_is_refused() {
    let (matrix, options): (Matrix, _) =
        (laplacian_2d(41, 37, DType::F64).unwrap().into(), SolveOptions::default());
    let two = ranked(&[1, 1]);
    let linear = two.linear().unwrap();
    let plan = linear.plan_solve(&matrix, &options).unwrap();
    let rows = matrix.rows();
    for ranks in [vec![0..700, 700..rows], vec![0..512, 768..rows], vec![0..512, 512..rows - 1]] {
        let plan = abide_core::solver::SolvePlan { ranks, ..plan.clone() };
        let error = linear.open_solver(&matrix, &plan, &options).err().unwrap().to_string();
        assert!(error.contains("cut at multiples of 256"), "{error}");
    }
}
