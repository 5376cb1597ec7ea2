//! Conjugate gradients on the systems of the target table: µs per iteration for every configuration of the
//! method and cache policy, and for every layout that the planner considers.
//!
//! `krylov [SYSTEM [ITERATIONS [METHOD]]]`: systems whose name contains `SYSTEM`, by default all; another
//! method, such as `gmres:50`. Without a device: the layouts for an H200, and the compiler's report of each.

use std::ops::ControlFlow;

use abide_core::backend::LinearBackend;
use abide_core::solver::{
    GridOperator, Matrix, Method, Parameters, PipelinedCg, SolveCache, SolveOptions, SolvePlan, SolverError,
};
use abide_core::sparse::Triplets;
use abide_core::{Array, Backend, Boundaries, Boundary, DType, DeviceSpec, LinearStencil, Result, Shape};
use abide_cuda::{CudaBackend, Nvrtc, fit_solver, target};
use abide_solvers::plan::krylov::{configurations, plan_krylov, plan_krylov_configuration};
use abide_solvers::sparse::{arrow, hpcg, laplacian_2d, laplacian_3d, trefethen};

/// Makes a symmetric, diagonally dominant matrix with about `entries` entries, whose row lengths are skewed:
/// most columns are near the diagonal, some anywhere.
fn skewed(rows: usize, entries: usize) -> Result<Matrix> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut all = Triplets::new(rows, rows)?;
    let mut diagonal = vec![1.0; rows];
    for _ in 0..(entries - rows) / 2 {
        // Squared, so that low numbers have longer rows.
        let row = ((random.f64() * random.f64()) * rows as f64) as usize;
        let reach = if random.usize(0..10) == 0 { rows } else { 64 };
        let column = (row + 1 + random.usize(0..reach)) % rows;
        if column != row {
            let value = -random.f64();
            all.push(row, column, value)?;
            all.push(column, row, value)?;
            diagonal[row] -= value;
            diagonal[column] -= value;
        }
    }
    for (row, value) in diagonal.into_iter().enumerate() {
        all.push(row, row, value)?;
    }
    Ok(all.into_csr()?.into())
}

fn matrix_free(extents: &[usize]) -> Result<Matrix> {
    let taps = [([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.0), ([0, 1], -1.0), ([1, 0], -1.0)];
    let stencil = LinearStencil::new("2d5pt", &taps)?;
    let boundaries = Boundaries::all(Boundary::Constant(0.0));
    Ok(GridOperator::new(stencil, Shape::new(extents)?, boundaries, DType::F64)?.into())
}

/// A system of the table: its name, the function that makes it, and the µs per iteration that must be reached
/// and that are hoped for, where there are any.
type System = (&'static str, fn() -> Result<Matrix>, Option<[f64; 2]>);

/// The systems; `like` stands for a random matrix of the size of one in a collection.
const SYSTEMS: [System; 10] = [
    ("like-1138_bus", || skewed(1138, 4054), Some([5.0, 1.5])),
    ("like-bcsstk13", || skewed(2003, 83_883), Some([6.0, 2.0])),
    ("trefethen-2000", || Ok(trefethen(2000, DType::F64)?.into()), Some([6.0, 2.0])),
    ("laplacian-300x300", || Ok(laplacian_2d(300, 300, DType::F64)?.into()), Some([7.0, 4.0])),
    ("laplacian-1000x999", || Ok(laplacian_2d(1000, 999, DType::F64)?.into()), Some([40.0, 22.0])),
    ("hpcg-64", || Ok(hpcg(64, 64, 64, DType::F64)?.into()), Some([28.0, 18.0])),
    ("laplacian-100-cubed", || Ok(laplacian_3d(100, 100, 100, DType::F64)?.into()), Some([55.0, 35.0])),
    ("hpcg-104", || Ok(hpcg(104, 104, 104, DType::F64)?.into()), Some([130.0, 105.0])),
    ("matrix-free-1000x999", || matrix_free(&[1000, 999]), Some([20.0, 10.0])),
    // A dense row: kept whole by some configurations, spread by others.
    ("arrow-1000000", || Ok(arrow(1_000_000, DType::F64)?.into()), None),
];

fn methods() -> [Method; 3] {
    [Method::Cg, Method::SingleReductionCg, Method::PipelinedCg(PipelinedCg::default())]
}

/// Returns the median and the spread of µs per iteration of five runs, and the report on the residual of a
/// run to convergence.
fn measured(
    backend: &CudaBackend,
    matrix: &Matrix,
    plan: &SolvePlan,
    options: &SolveOptions,
    iterations: usize,
) -> std::result::Result<String, SolverError> {
    let mut session = backend.open_solver(matrix, plan, options)?;
    let mut random = fastrand::Rng::with_seed(9);
    let b = Array::from_fn(matrix.dtype(), matrix.rows(), |_| random.f64() - 0.5);
    let mut times = Vec::new();
    for _ in 0..6 {
        let mut x = Array::zeros(matrix.dtype(), matrix.rows())?;
        // No tolerance is met, so that the iteration alone is timed.
        let parameters = Parameters {
            relative: 0.0,
            absolute: 0.0,
            iterations,
            stagnation: None,
            ..Parameters::default()
        };
        let outcome = session.solve(&b, &mut x, &parameters, &mut |_, _| ControlFlow::Continue(()));
        // Recurrences may end by breaking down once the residual is exhausted; the iterations until then
        // count.
        let report = match &outcome {
            Ok(report) => report,
            Err(error) => match error.report() {
                Some(report) => report,
                None => return outcome.map(|_| String::new()),
            },
        };
        times.push(report.iteration_seconds * 1e6 / report.iterations.max(1) as f64);
    }
    // The first run has warmed up.
    times.remove(0);
    times.sort_by(f64::total_cmp);
    let mut x = Array::zeros(matrix.dtype(), matrix.rows())?;
    let parameters = Parameters { relative: 1e-8, iterations: 20_000, ..Parameters::default() };
    let report = session.solve(&b, &mut x, &parameters, &mut |_, _| ControlFlow::Continue(()))?;
    let norm = b.to_f64().iter().map(|v| v * v).sum::<f64>().sqrt();
    let kept = session.plan();
    Ok(format!(
        "{:7.2} µs ±{:3.0} %, {:5} iterations to {:.1e} (true {:.1e}); {}, {:?}",
        times[2],
        50.0 * (times[4] - times[0]) / times[2],
        report.iterations,
        report.history.last().copied().unwrap_or(f64::NAN) / norm,
        report.true_residual.unwrap_or(f64::NAN) / norm,
        kept.schedule.describe(),
        kept.compiled.first().map(|compiled| (compiled.registers, compiled.spill_bytes)),
    ))
}

fn reported(nvrtc: &Nvrtc, matrix: &Matrix, plan: &SolvePlan, options: &SolveOptions) -> Result<String> {
    let (plan, cubin) = fit_solver(nvrtc, matrix, plan, options, &target(&plan.device), false)?;
    let said = cubin.report.first().map(|compiled| (compiled.registers, compiled.spill_bytes));
    Ok(format!("{}, {said:?}", plan.schedule.describe()))
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.next().unwrap_or_default();
    let iterations = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(500);
    let method: Option<Method> = arguments.next().map(|name| name.parse()).transpose()?;
    let backend = CudaBackend::new();
    if let Err(reason) = &backend {
        println!("no device ({reason}); for an H200:");
    }
    let device = match &backend {
        Ok(backend) => backend.device().clone(),
        Err(_) => DeviceSpec::preset("h200")?,
    };
    for (name, make, targets) in SYSTEMS.into_iter().filter(|(name, ..)| name.contains(&wanted)) {
        let matrix = make()?;
        let goal =
            targets.map_or_else(String::new, |[must, hoped]| format!("; must {must} µs, go for {hoped} µs"));
        println!("\n{name}: {} rows, {} entries{goal}", matrix.rows(), matrix.nonzeros());
        let line = |words: &str, plan: Result<SolvePlan>, options: &SolveOptions| {
            let said = plan.map_err(SolverError::from).and_then(|plan| match &backend {
                Ok(backend) => measured(backend, &matrix, &plan, options, iterations),
                Err(_) => Ok(reported(&Nvrtc::open()?, &matrix, &plan, options)?),
            });
            match said {
                Ok(said) => println!("  {words:<28}{said}"),
                Err(error) => println!("  {words:<28}{error}"),
            }
        };
        for method in method.map_or_else(|| methods().to_vec(), |method| vec![method]) {
            for cache in [SolveCache::Auto, SolveCache::None, SolveCache::Vectors, SolveCache::Matrix] {
                let options = SolveOptions { cache, ..SolveOptions::with_method(method) };
                line(&format!("{method} {cache}"), plan_krylov(&matrix, &device, &options), &options);
            }
        }
        let options = SolveOptions::with_method(method.unwrap_or(Method::SingleReductionCg));
        for configuration in configurations(&matrix, &device, &options) {
            line(
                &format!("{} configuration", options.method),
                plan_krylov_configuration(&matrix, &device, &options, &configuration),
                &options,
            );
        }
    }
    Ok(())
}
