//! Systems on several slabs of one device, and on all devices there are: every method has the bits of one device, in the
//! iterate and in each residual.

use crate::{common, parallel};

use std::ops::ControlFlow;

use abide_core::backend::{LinearBackend, LinearDeviceGroup, Observe};
use abide_core::solver::{
    Chebyshev, Gmres, GridOperator, Jacobi, Matrix, Method, Parameters, PipelinedCg, Preconditioning, Report,
    SolveCache, SolveOptions, SolvePlan, SolverError,
};
use abide_core::{Array, Boundaries, Boundary, DType, LinearStencil, Shape};
use abide_cuda::{CudaBackend, CudaDeviceGroup, device_count};
use abide_solvers::sparse::{arrow, hpcg, laplacian_2d, trefethen};

use common::present;
use parallel::each;

fn stencil(extents: &[usize], boundaries: &str, dtype: DType) -> Matrix {
    let taps = [([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.5), ([0, 1], -1.0), ([1, 0], -1.0)];
    let boundaries = Boundaries::parse(boundaries, Boundary::Constant(0.0)).unwrap();
    let stencil = LinearStencil::new("shifted", &taps).unwrap();
    GridOperator::new(stencil, Shape::new(extents).unwrap(), boundaries, dtype).unwrap().into()
}

fn right(matrix: &Matrix) -> Array {
    let mut random = fastrand::Rng::with_seed(5);
    Array::from_fn(matrix.dtype(), matrix.rows(), |_| random.f64() - 0.3)
}

/// What a solve left: how it ended, every residual, and the iterate.
#[derive(PartialEq)]
struct Left {
    words: String,
    history: Vec<u64>,
    x: Array,
}

fn left(
    session: &mut dyn abide_core::backend::LinearSession,
    matrix: &Matrix,
    observe: &mut Observe<'_>,
) -> Result<Left, SolverError> {
    let relative = if matrix.dtype() == DType::F32 { 1e-4 } else { 1e-9 };
    // No multiple of the launches' iterations, so that some solves end by it.
    let parameters = Parameters { relative, iterations: 700, ..Parameters::default() };
    let mut x = Array::zeros(matrix.dtype(), matrix.rows())?;
    let ended = session.solve(&right(matrix), &mut x, &parameters, observe);
    let bits = |history: &[f64]| history.iter().map(|residual| residual.to_bits()).collect();
    let of = |report: &Report| bits(&report.history);
    let (words, history) = match &ended {
        Ok(report) => ("converged".to_owned(), of(report)),
        Err(error) => match error.report() {
            Some(report) => (error.to_string(), of(report)),
            None => return Err(error.clone()),
        },
    };
    Ok(Left { words, history, x })
}

fn go_on() -> impl FnMut(usize, f64) -> ControlFlow<()> + Send {
    |_, _| ControlFlow::Continue(())
}

fn planned(team: &CudaDeviceGroup, matrix: &Matrix, options: &SolveOptions) -> SolvePlan {
    team.plan_solve(matrix, options).unwrap()
}

/// A matrix and its name, a method and a preconditioner.
struct Case {
    matrix: Matrix,
    words: String,
    options: SolveOptions,
}

/// Returns all cases, or those whose words have `ABIDE_CASE` in them.
fn cases() -> Vec<Case> {
    let matrices = [
        ("laplacian 301×299", Matrix::from(laplacian_2d(301, 299, DType::F64).unwrap())),
        ("hpcg 31×33×35 f32", hpcg(31, 33, 35, DType::F32).unwrap().into()),
        ("trefethen 9001", trefethen(9001, DType::F64).unwrap().into()),
        ("matrix-free 301×299", stencil(&[301, 299], "constant=0", DType::F64)),
        ("matrix-free ring 167×131 f32", stencil(&[167, 131], "y=periodic,x=mirror", DType::F32)),
    ];
    let methods = [
        Method::Cg,
        Method::SingleReductionCg,
        Method::PipelinedCg(PipelinedCg::default()),
        Method::Minres,
        Method::BiCgStab,
        Method::Gmres(Gmres { restart: 20 }),
        Method::Chebyshev(Chebyshev::default()),
        Method::Jacobi(Jacobi::default()),
    ];
    let mut all = Vec::new();
    for (at, (name, matrix)) in matrices.iter().enumerate() {
        for (turn, method) in methods.into_iter().enumerate() {
            let preconditioner = Preconditioning::OF_KERNELS[(at + turn) % 4];
            let options =
                SolveOptions { method, preconditioner, cache: SolveCache::Auto, ..SolveOptions::default() };
            let words = format!("{name}, {method}, {preconditioner}");
            all.push(Case { matrix: matrix.clone(), words, options });
        }
    }
    let only = std::env::var("ABIDE_CASE").unwrap_or_default();
    all.retain(|case| case.words.contains(&only));
    all
}

/// The devices of slabs: one twice and three times, and all that there are.
fn lines() -> Vec<Vec<usize>> {
    let all = (0..device_count().unwrap()).collect::<Vec<_>>();
    let mut lines = vec![vec![0, 0], vec![0, 0, 0]];
    lines.extend((all.len() > 1).then_some(all));
    lines
}

fn team(numbers: &[usize]) -> CudaDeviceGroup {
    CudaDeviceGroup::new(CudaBackend::connected(numbers).unwrap()).unwrap()
}

/// Compiles what the next test runs. Run in several processes, each with its `ABIDE_PART`, this saves minutes.
#[test]
#[ignore = "compiles alone"]
fn the_kernels_of_all_slabs_are_compiled() {
    let Some(single) = present("cuda", CudaBackend::new()) else { return };
    let cases = cases();
    for team in lines().iter().map(|numbers| team(numbers)) {
        each(&cases, |Case { matrix, options, .. }| {
            let alone = single.plan_solve(matrix, options).unwrap();
            drop(single.open_solver(matrix, &alone, options).unwrap());
            drop(team.open_solver(matrix, &planned(&team, matrix, options), options).unwrap());
        });
    }
}

#[test]
fn slabs_have_the_bits_of_one_device() {
    let Some(single) = present("cuda", CudaBackend::new()) else { return };
    let cases = cases();
    for numbers in lines() {
        let team = team(&numbers);
        for Case { matrix, words, options } in &cases {
            let words = format!("{numbers:?}, {words}");
            let alone = single.plan_solve(matrix, options).unwrap();
            let mut one = single.open_solver(matrix, &alone, options).unwrap();
            let expected = left(&mut *one, matrix, &mut go_on()).unwrap();
            let plan = planned(&team, matrix, options);
            assert_eq!(plan.ranks.len(), numbers.len(), "{words}");
            let mut several = team.open_solver(matrix, &plan, options).unwrap();
            // A session solves again, and with the same bits.
            for _ in 0..2 {
                let found = left(&mut *several, matrix, &mut go_on()).unwrap();
                assert_eq!(found.words, expected.words, "{words}");
                assert!(found.history == expected.history, "{words}: other residuals");
                assert!(found.x.same_bits(&expected.x), "{words}: another iterate");
            }
            let ranks = several.take_ranks();
            let rows: Vec<_> = ranks.iter().map(|rank| rank.rows.clone()).collect();
            assert!(rows == plan.ranks && ranks.iter().all(|rank| rank.exchange == "stores"), "{ranks:?}");
        }
        println!("{numbers:?}: {} solves of {} devices", cases.len(), numbers.len());
    }
}

/// A caller's word ends the solve on all devices after the same iteration, and the session goes on solving.
#[test]
fn a_solve_is_ended_from_outside() {
    if present("cuda", CudaBackend::new()).is_none() {
        return;
    }
    let team = team(&[0, 0]);
    let matrix = Matrix::from(laplacian_2d(301, 299, DType::F64).unwrap());
    let options = SolveOptions::with_method(Method::Cg);
    let plan = planned(&team, &matrix, &options);
    let mut session = team.open_solver(&matrix, &plan, &options).unwrap();
    let whole = left(&mut *session, &matrix, &mut go_on()).unwrap();
    let mut stop = |iteration: usize, _: f64| {
        if iteration == 9 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let stopped = left(&mut *session, &matrix, &mut stop).unwrap();
    assert!(stopped.words.contains("stopped after 9"), "{}", stopped.words);
    let again = left(&mut *session, &matrix, &mut go_on()).unwrap();
    assert!(again == whole, "another solve than before it was stopped");
}

/// Rows of very different lengths would have other bits, and are refused by name.
#[test]
fn what_would_have_other_bits_is_refused() {
    if present("cuda", CudaBackend::new()).is_none() {
        return;
    }
    let team = team(&[0, 0]);
    let matrix = Matrix::from(arrow(300_000, DType::F64).unwrap());
    let error = team.plan_solve(&matrix, &SolveOptions::with_method(Method::Cg)).unwrap_err().to_string();
    assert!(error.contains("2 CUDA devices") && error.contains("--devices 1"), "{error}");
}
