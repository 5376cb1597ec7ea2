//! Systems on several ranks that cannot be solved end as on one device, and a communicator that fails ends them with an error within
//! the deadline that names the rank; never a hang.

use crate::common;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use abide_core::backend::LinearSession;
use abide_core::solver::{
    Gmres, Jacobi, Matrix, Method, Parameters, Preconditioning, SolveOptions, SolverError,
};
use abide_core::sparse::Triplets;
use abide_core::{Array, Backend, DType, Error};
use abide_cpu::CpuBackend;
use abide_ranks::{Device, Ranked};
use abide_solvers::sparse::laplacian_2d;
use common::faulty::{Fault, factory};
use common::solving::{PRECONDITIONERS, assert_same, noise, open, solve};
use common::{assert_held_up_by_rank_1, ranked};

const DEADLINE: Duration = Duration::from_millis(400);

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

fn faulty(fault: Fault, round: u64) -> Ranked {
    ranked(&[1, 1, 1]).connected(factory(fault, round, DEADLINE))
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
            assert_held_up_by_rank_1(&error, DEADLINE);
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
    // A silent rank may reach its own deadline before the others reach theirs, and be gone.
    let silence = &["nothing came from rank 1", "rank 1 is gone"][..];
    for (fault, says) in [(Fault::Silence, silence), (Fault::Panic, &["its thread has ended"])] {
        let begun = Instant::now();
        let error = open(&faulty(fault, 3), &matrix, &options).err().unwrap().to_string();
        assert!(says.iter().any(|words| error.contains(words)), "{error}");
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
    fn linear(&self) -> Option<&dyn abide_core::backend::LinearBackend> {
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

impl abide_core::backend::LinearBackend for Alone {
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

/// Devices that solve jointly by themselves, and report what they are handed.
struct Team;

impl abide_core::backend::LinearDeviceGroup for Team {
    fn plan_solve(
        &self,
        matrix: &Matrix,
        options: &SolveOptions,
    ) -> abide_core::Result<abide_core::solver::SolvePlan> {
        use abide_core::backend::LinearBackend as _;
        let plan = common::cpu().plan_solve(matrix, options)?;
        Ok(abide_core::solver::SolvePlan { ranks: vec![0..1, 1..plan.rows], ..plan })
    }

    fn open_solver(
        &self,
        _: &Matrix,
        plan: &abide_core::solver::SolvePlan,
        _: &SolveOptions,
    ) -> Result<Box<dyn LinearSession>, SolverError> {
        let reason = format!("it was handed {:?}", plan.ranks);
        Err(abide_core::Error::invalid("the team", reason, "ask ranks").into())
    }
}

#[test]
fn devices_that_solve_by_themselves_are_handed_the_system() {
    let make = |_| Err(abide_core::Error::invalid("ranks", "they were asked for", "ask the team"));
    let two = Ranked::new(Arc::new(common::cpu()), 2, make).unwrap().with_team(Arc::new(Team));
    let (matrix, options) = system();
    let error = open(&two, &matrix, &options).err().unwrap().to_string();
    assert!(error.contains("it was handed [0..1, 1.."), "{error}");
}
