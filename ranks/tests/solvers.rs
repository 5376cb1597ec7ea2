//! Systems on several ranks have the bits of one device: every method, preconditioner and kind of matrix, both types, odd
//! sizes, uneven cuts; and a fabric that fails ends them with an error within the deadline.

mod common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_core::solver::{
    Bounds, Chebyshev, Exhausted, Gmres, GridOperator, Jacobi, LinearSession, Matrix, Method, Parameters,
    PipelinedCg, Preconditioning, Report, SolveOptions, SolverError,
};
use abide_core::sparse::{Triplets, arrow, hpcg, laplacian, laplacian_2d, random_spd, trefethen};
use abide_core::{Array, Backend, Boundaries, Boundary, DType, Error, LinearStencil, Shape, catalogue};
use abide_cpu::CpuBackend;
use abide_ranks::{Device, Ranked};
use common::faulty::{Fault, connector};
use common::ranked;

const DEADLINE: Duration = Duration::from_millis(400);

fn noise(len: usize, seed: u64, dtype: DType) -> Array {
    let mut random = fastrand::Rng::with_seed(seed);
    Array::from_fn(dtype, len, |_| 2.0 * random.f64() - 1.0)
}

/// Makes a matrix that is not symmetric: rows of one to some twenty entries anywhere, one dense row and one dense column.
fn ragged(n: usize, dtype: DType) -> Matrix {
    let mut random = fastrand::Rng::with_seed(n as u64);
    let mut triplets = Triplets::new(n, n).unwrap();
    for i in 0..n {
        triplets.push(i, i, 3.0 + random.f64()).unwrap();
        triplets.push(n / 2, i, 0.5 / n as f64).unwrap();
        triplets.push(i, n / 3, 0.1 * random.f64()).unwrap();
        for _ in 0..i % 19 {
            triplets.push(i, random.usize(0..n), 0.2 * random.f64() - 0.1).unwrap();
        }
    }
    triplets.into_csr().unwrap().cast(dtype).unwrap().into()
}

fn grid(stencil: LinearStencil, extents: &[usize], boundary: Boundary, dtype: DType) -> Matrix {
    let shape = Shape::new(extents).unwrap();
    GridOperator::new(stencil, shape, Boundaries::all(boundary), dtype).unwrap().into()
}

/// Stored matrices of several patterns, and operators that are never stored, of two and three axes and of one.
fn matrices(dtype: DType) -> Vec<(&'static str, Matrix)> {
    let linear = |name| catalogue::linear(name).unwrap();
    let zero = Boundary::Constant(0.0);
    vec![
        ("laplacian2d", laplacian_2d(41, 37, dtype).unwrap().into()),
        ("hpcg", hpcg(11, 13, 9, dtype).unwrap().into()),
        ("trefethen", trefethen(1301, dtype).unwrap().into()),
        ("random", random_spd(1205, 9001, 4, dtype).unwrap().into()),
        ("arrow", arrow(1111, dtype).unwrap().into()),
        ("ragged", ragged(1407, dtype)),
        ("operator in 1D", grid(laplacian(1).unwrap(), &[1237], zero, dtype)),
        ("operator in 2D", grid(laplacian(2).unwrap(), &[43, 39], zero, dtype)),
        ("operator in 3D", grid(laplacian(3).unwrap(), &[13, 11, 9], zero, dtype)),
        ("2d9pt, periodic", grid(linear("2d9pt"), &[37, 35], Boundary::Periodic, dtype)),
        ("3d13pt, periodic", grid(linear("3d13pt"), &[11, 13, 10], Boundary::Periodic, dtype)),
        ("3d27pt, mirror", grid(linear("3d27pt"), &[12, 11, 9], Boundary::Mirror, dtype)),
        ("2d5pt, fixed", grid(linear("2d5pt"), &[37, 41], Boundary::Fixed, dtype)),
        ("2d5pt, reflect", grid(linear("2d5pt"), &[301, 5], Boundary::Reflect, dtype)),
    ]
}

fn methods() -> Vec<Method> {
    vec![
        Method::Cg,
        Method::SingleReductionCg,
        Method::PipelinedCg(PipelinedCg { replacement: 7 }),
        Method::BiCgStab,
        Method::Gmres(Gmres { restart: 5 }),
        Method::Gmres(Gmres { restart: 300 }),
        Method::Chebyshev(Chebyshev::default()),
        Method::Chebyshev(Chebyshev { bounds: Some(Bounds::new(0.3, 11.0).unwrap()) }),
        Method::Jacobi(Jacobi { weight: 0.7 }),
    ]
}

const PRECONDITIONERS: [Preconditioning; 5] = [
    Preconditioning::None,
    Preconditioning::Jacobi,
    Preconditioning::BlockJacobi { size: 8 },
    Preconditioning::BlockJacobi { size: 3 },
    Preconditioning::Chebyshev { degree: 2 },
];

fn open(
    backend: &dyn Backend,
    matrix: &Matrix,
    options: &SolveOptions,
) -> Result<Box<dyn LinearSession>, SolverError> {
    let linear = backend.linear().unwrap();
    let plan = linear.plan_solve(matrix, options)?;
    linear.open_solver(matrix, &plan, options)
}

/// What a solve did, without its times; all numbers to the bit.
fn told(outcome: Result<Report, SolverError>) -> String {
    let plain = |report: &mut Report| {
        (report.seconds, report.iteration_seconds) = (0.0, 0.0);
        report.ranks.clear();
    };
    match outcome {
        Ok(mut report) => {
            plain(&mut report);
            format!("{report:?}")
        }
        Err(mut error) => {
            if let Some(report) = error.report_mut() {
                plain(report);
            }
            format!("{error:?}")
        }
    }
}

fn solve(session: &mut dyn LinearSession, b: &Array, x: &mut Array, parameters: &Parameters) -> String {
    told(session.solve(b, x, parameters, &mut |_, _| ControlFlow::Continue(())))
}

/// Checks that ranks solve as the definition does: the outcome, each residual and each value of the solution.
fn assert_same(what: &str, matrix: &Matrix, options: &SolveOptions, ranked: &Ranked, ranks: usize) {
    let what = format!(
        "{what}, {} {:?}, {} ranks, {}",
        options.method.name(),
        options.preconditioner,
        ranks,
        matrix.dtype()
    );
    let parameters = Parameters { relative: 1e-5, iterations: 17, ..Parameters::DEFAULT };
    let mut one = match open(&CpuBackend::reference(), matrix, options) {
        Ok(session) => session,
        Err(error) => {
            let several = open(ranked, matrix, options).err().map(|several| several.to_string());
            assert_eq!(several, Some(error.to_string()), "{what}");
            return;
        }
    };
    let mut several = open(ranked, matrix, options).unwrap();
    let own = &several.plan().ranks;
    assert_eq!(own.len(), if ranks > 1 { ranks } else { 0 }, "{what}: {own:?}");
    let (b, mut x) = (noise(matrix.rows(), 5, matrix.dtype()), noise(matrix.rows(), 6, matrix.dtype()));
    let mut other = x.clone();
    // The second solve begins where the first has ended.
    for _ in 0..2 {
        let expected = solve(&mut *one, &b, &mut x, &parameters);
        assert_eq!(solve(&mut *several, &b, &mut other, &parameters), expected, "{what}");
        assert!(x.same_bits(&other), "{what}: the solution");
    }
}

/// Backends of one to four ranks, some of unequal weights.
fn backends() -> Vec<(Ranked, usize)> {
    let weights: [&[usize]; 5] = [&[1], &[1, 1], &[1, 3], &[2, 1, 1], &[1, 2, 1, 1]];
    weights.into_iter().map(|weights| (ranked(weights), weights.len())).collect()
}

#[test]
fn every_method_has_the_same_bits_on_every_matrix() {
    let backends = backends();
    let mut turn = 0;
    for dtype in [DType::F32, DType::F64] {
        for (name, matrix) in matrices(dtype) {
            for method in methods() {
                for preconditioner in PRECONDITIONERS {
                    let options = SolveOptions { preconditioner, ..SolveOptions::with_method(method) };
                    // One cut in turn for each: none of the other numbers has a divisor in common with five.
                    let (ranked, ranks) = &backends[turn % 5];
                    let ranks = if matches!(preconditioner, Preconditioning::BlockJacobi { size: 3 }) {
                        // Blocks of three rows are whole where 768 rows are.
                        matrix.rows().div_ceil(768).min(*ranks)
                    } else {
                        *ranks
                    };
                    assert_same(name, &matrix, &options, ranked, ranks);
                    turn += 1 + usize::from(preconditioner == PRECONDITIONERS[4]);
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

/// What one device finds wrong with a system, several do: by the row's number in the whole system, and without any harm to
/// the solve after it.
#[test]
fn faults_of_a_system_are_told_as_on_one_device() {
    let n = 1000;
    let mut triplets = Triplets::new(n, n).unwrap();
    for i in 0..n {
        if i != 700 {
            triplets.push(i, i, 4.0).unwrap();
        }
        triplets.push(i, (i + 1) % n, 1.0).unwrap();
    }
    let matrix: Matrix = triplets.into_csr().unwrap().into();
    let three = ranked(&[1, 1, 1]);
    for preconditioner in PRECONDITIONERS {
        for method in [Method::Jacobi(Jacobi::default()), Method::BiCgStab, Method::Gmres(Gmres::default())] {
            let options = SolveOptions { preconditioner, ..SolveOptions::with_method(method) };
            let ranks =
                if matches!(preconditioner, Preconditioning::BlockJacobi { size: 3 }) { 2 } else { 3 };
            assert_same("no diagonal", &matrix, &options, &three, ranks);
        }
    }
    let options = SolveOptions::with_method(Method::BiCgStab);
    let mut session = open(&three, &matrix, &options).unwrap();
    let mut one = open(&CpuBackend::reference(), &matrix, &options).unwrap();
    // One rank's part of this right-hand side is not 0, and its square underflows.
    let tiny = Array::from_fn(DType::F64, n, |i| if i == 900 { 1e-300 } else { 0.0 });
    let zero = Array::zeros(DType::F64, n).unwrap();
    let wrong = [Array::zeros(DType::F64, n - 1).unwrap(), Array::zeros(DType::F32, n).unwrap()];
    let nan = Array::from_fn(DType::F64, n, |i| if i == 3 { f64::NAN } else { 1.0 });
    for b in [&tiny, &zero, &wrong[0], &wrong[1], &nan, &noise(n, 1, DType::F64)] {
        let (mut x, mut expected) = (noise(n, 2, DType::F64), noise(n, 2, DType::F64));
        let outcome = solve(&mut *one, b, &mut expected, &Parameters::DEFAULT);
        assert_eq!(solve(&mut *session, b, &mut x, &Parameters::DEFAULT), outcome);
        assert!(x.same_bits(&expected));
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

fn faulty(fault: Fault, round: u64) -> Ranked {
    ranked(&[1, 1, 1]).connected(connector(fault, round, DEADLINE))
}

fn system() -> (Matrix, SolveOptions) {
    (laplacian_2d(41, 37, DType::F64).unwrap().into(), SolveOptions::with_method(Method::BiCgStab))
}

#[test]
fn late_and_disordered_messages_change_nothing() {
    let (matrix, options) = system();
    for fault in [Fault::Delay, Fault::Reorder] {
        assert_same("faulty", &matrix, &options, &faulty(fault, 3), 3);
        let options = SolveOptions { preconditioner: Preconditioning::Chebyshev { degree: 2 }, ..options };
        assert_same("faulty", &matrix, &options, &faulty(fault, 3), 3);
    }
}

/// Returns the error of a solve in which a rank has a fault from a round on.
fn error_of(fault: Fault, round: u64, within: Duration) -> String {
    let (matrix, options) = system();
    let begun = Instant::now();
    let mut session = open(&faulty(fault, round), &matrix, &options).unwrap();
    let (b, mut x) = (noise(matrix.rows(), 1, DType::F64), Array::zeros(DType::F64, matrix.rows()).unwrap());
    let outcome = session.solve(&b, &mut x, &Parameters::DEFAULT, &mut |_, _| ControlFlow::Continue(()));
    let error = outcome.unwrap_err();
    assert!(matches!(error, SolverError::Invalid(Error::Device { backend: "cpu", .. })), "{error:?}");
    assert_eq!(x, Array::zeros(DType::F64, matrix.rows()).unwrap(), "a part of some iterate");
    let again = session.solve(&b, &mut x, &Parameters::DEFAULT, &mut |_, _| ControlFlow::Continue(()));
    assert!(again.is_err());
    drop(session);
    assert!(begun.elapsed() < within, "{fault:?}: {:?}", begun.elapsed());
    error.to_string()
}

#[test]
fn a_lost_message_ends_all_ranks_within_the_deadline() {
    for fault in [Fault::Drop, Fault::Silence] {
        for round in [1, 2, 3, 5] {
            let error = error_of(fault, round, 10 * DEADLINE);
            assert!(error.contains("of 3, ") && error.contains("rank 1"), "{error}");
            assert!(error.contains("nothing came from rank 1 within 0.4 s"), "{error}");
        }
    }
    // The first of all messages from then on is one of entries, or a part of a sum.
    let error = error_of(Fault::Drop, 4, 10 * DEADLINE);
    let says = ["exchange 4: entries of a vector from rank 1", "gather 4: parts of a reduction"];
    assert!(says.iter().any(|words| error.contains(words)), "{error}");
}

#[test]
fn a_short_message_is_refused() {
    let error = error_of(Fault::Shorten, 4, DEADLINE);
    assert!(error.contains("bytes in place of") && error.contains("rank 1"), "{error}");
}

#[test]
fn a_lost_rank_ends_all_others_at_once() {
    let error = error_of(Fault::Panic, 3, DEADLINE);
    assert!(error.contains("rank 1") && error.contains("its thread has ended"), "{error}");
}

/// Making a preconditioner needs all ranks too.
#[test]
fn a_fault_while_a_system_is_opened_ends_all_ranks() {
    let (matrix, options) = system();
    let options = SolveOptions { preconditioner: Preconditioning::Chebyshev { degree: 2 }, ..options };
    for (fault, says) in
        [(Fault::Silence, "nothing came from rank 1"), (Fault::Panic, "its thread has ended")]
    {
        let begun = Instant::now();
        let error = open(&faulty(fault, 3), &matrix, &options).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
        assert!(begun.elapsed() < 5 * DEADLINE, "{:?}", begun.elapsed());
    }
}

/// A backend that solves on one device alone.
struct Alone(CpuBackend);

impl Backend for Alone {
    fn name(&self) -> &'static str {
        "cpu"
    }
    fn device(&self) -> &abide_core::DeviceSpec {
        self.0.device()
    }
    fn driver(&self) -> String {
        self.0.driver()
    }
    fn linear(&self) -> Option<&dyn abide_core::solver::LinearBackend> {
        Some(self)
    }
    fn plan(
        &self,
        problem: &abide_core::Problem,
        options: &abide_core::Options,
    ) -> abide_core::Result<abide_core::Plan> {
        self.0.plan(problem, options)
    }
    fn open(
        &self,
        problem: &abide_core::Problem,
        plan: &abide_core::Plan,
        fields: Vec<Array>,
    ) -> abide_core::Result<Box<dyn abide_core::Session>> {
        self.0.open(problem, plan, fields)
    }
}

impl abide_core::solver::LinearBackend for Alone {
    fn plan_solve(
        &self,
        matrix: &Matrix,
        options: &SolveOptions,
    ) -> abide_core::Result<abide_core::solver::SolvePlan> {
        self.0.plan_solve(matrix, options)
    }
    fn open_solver(
        &self,
        matrix: &Matrix,
        plan: &abide_core::solver::SolvePlan,
        options: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        self.0.open_solver(matrix, plan, options)
    }
}

#[test]
fn backends_that_solve_on_one_device_refuse_more_by_name() {
    let make = |ranks: usize| {
        let device = |_| {
            Ok(Device {
                backend: Arc::new(Alone(CpuBackend::with_threads(1)?)) as Arc<dyn Backend>,
                weight: 1,
            })
        };
        (0..ranks).map(device).collect()
    };
    let two = Ranked::new(Arc::new(Alone(common::cpu())), 2, make).unwrap();
    let (matrix, options) = system();
    let error = open(&two, &matrix, &options).err().unwrap().to_string();
    assert!(error.contains("cpu on 2 devices") && error.contains("one device alone"), "{error}");
}

/// A plan whose slabs cut a leaf in two is refused.
#[test]
fn a_plan_with_other_cuts_is_refused() {
    let (matrix, options) = system();
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
