//! A solve, run as C++ and held against the reference.

use std::time::Instant;

use abide_core::reduction;
use abide_core::solver::plan::krylov::{Configuration, Division, Krylov, Slabs};
use abide_core::solver::{Matrix, Method, Parameters, Report, SolveOptions, SolverError, Status};
use abide_core::{Array, DType, DeviceSpec, Real};
use abide_emulator::{Compiler, Solver};
use abide_solvers::plan::krylov::plan_krylov_configuration;
use abide_solvers::{Serial, build_preconditioner, solver};

use crate::handed::hand_over;

/// A solve that is emulated.
#[derive(Clone)]
pub struct Case {
    pub name: &'static str,
    pub matrix: Matrix,
    pub options: SolveOptions,
    pub configuration: Configuration,
    /// Bytes of a block's shared memory, where it shall have less than an H200, and no last-level cache.
    pub shared: Option<usize>,
}

impl Case {
    pub fn parameters(&self) -> Parameters {
        let relative = if self.matrix.dtype() == DType::F32 { 1e-4 } else { 1e-9 };
        Parameters { relative, iterations: 1500, ..Parameters::default() }
    }

    /// Returns a right-hand side without symmetry.
    pub fn right(&self) -> Array {
        let mut random = fastrand::Rng::with_seed(5);
        Array::from_fn(self.matrix.dtype(), self.matrix.rows(), |_| random.f64() - 0.3)
    }

    /// Returns the layout that the planner makes of the configuration.
    pub fn layout(&self) -> Result<Krylov, String> {
        let mut device = DeviceSpec::preset("h200").map_err(|error| error.to_string())?;
        device.multiprocessors = self.configuration.blocks;
        if let Some(bytes) = self.shared {
            device.shared_bytes_per_block = bytes;
            // What does not stay there is streamed.
            device.l2_bytes = 0;
        }
        let plan = plan_krylov_configuration(&self.matrix, &device, &self.options, &self.configuration);
        Ok(plan.map_err(|error| error.to_string())?.krylov().cloned().ok_or("no layout")?)
    }

    /// Compiles the kernel with some words replaced, and puts the system beside it.
    pub fn compile(&self, compiler: &Compiler, changes: &[(&str, &str)]) -> Result<Solver, String> {
        let layout = self.layout()?;
        let mut solver = Solver::compile(compiler, &self.matrix, &self.options, layout, None, changes)?;
        hand_over(&mut solver, &[(&self.matrix, self.right())], &self.options, &self.parameters())?;
        Ok(solver)
    }

    /// Returns the reference's report and solution.
    pub fn reference(&self) -> Result<(Report, Vec<f64>), String> {
        let (ended, x) = reference(&self.matrix, &self.options, &self.right(), &self.parameters())?;
        Ok((ended.map_err(|error| error.to_string())?, x))
    }

    /// Returns whether the kernel does all that the reference does, in the same order: sums have one tree, and
    /// a row's products are added one after the other where they are one thread's.
    fn has_the_references_bits(&self) -> bool {
        let is_in_order = matches!(
            self.configuration.division,
            Division::Sliced { .. } | Division::Stencil | Division::Split { lanes: 1 }
        );
        let is_whole = self.configuration.spread.is_none();
        // The norm of GMRES's newest vector follows from its projections.
        is_in_order && is_whole && !matches!(self.options.method, Method::Gmres(_))
    }

    /// Compares the kernel with the reference, in several orders of its lanes and cuts of its iterations.
    pub fn check(&self, compiler: &Compiler) -> Result<(), String> {
        let begun = Instant::now();
        let (report, expected) = self.reference().map_err(|why| format!("the reference: {why}"))?;
        let program = self.compile(compiler, &[])?;
        if self.configuration.spread.is_some() && program.layout().spread_rows.is_empty() {
            return Err("no row is spread".to_owned());
        }
        let outcome = program.run(1, 0)?;
        let iterations = outcome.history.len().saturating_sub(1);
        if outcome.status != Status::Converged {
            return Err(format!(
                "status {:?}, quantity {:?}, {iterations} iterations",
                outcome.status, outcome.quantity
            ));
        }
        // The convergence of BiCGStab depends on rounding more than that of the others.
        let slack = if self.options.method.name() == "bicgstab" { 2 + report.iterations / 10 } else { 2 };
        if iterations.abs_diff(report.iterations) > slack {
            return Err(format!("{iterations} iterations, the reference takes {}", report.iterations));
        }
        let parameters = self.parameters();
        if outcome.true_residual.is_nan() || outcome.true_residual > report.threshold * parameters.drift {
            return Err(format!(
                "a true residual of {:e}, the threshold is {:e}",
                outcome.true_residual, report.threshold
            ));
        }
        let norm = |x: &[f64]| reduction::dot(x, x).sqrt();
        let difference: Vec<f64> = outcome.x.iter().zip(&expected).map(|(a, b)| a - b).collect();
        if norm(&difference) > 2e3 * parameters.relative * norm(&expected) {
            return Err(format!(
                "a solution that differs by {:e} of {:e}",
                norm(&difference),
                norm(&expected)
            ));
        }
        if self.has_the_references_bits() {
            let bits = |all: &[f64]| all.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            let same_history = match self.matrix.dtype() {
                // The device takes the roots of f32 in f64.
                DType::F32 => iterations == report.iterations,
                DType::F64 => bits(&outcome.history) == bits(&report.history),
            };
            if !same_history || bits(&outcome.x) != bits(&expected) {
                return Err("other bits than the reference's".to_owned());
            }
        }
        for (seed, chunk) in [(2, 0), (3, 9)] {
            if program.run(seed, chunk)? != outcome {
                return Err(format!("other bits in order {seed}, {chunk} iterations a launch"));
            }
        }
        let (kept, all) = program
            .layout()
            .shares
            .iter()
            .fold((0, 0), |sum, s| (sum.0 + s.cached_entries, sum.1 + s.entries + s.spread_entries));
        println!(
            "{}: {iterations} iterations ({} by the reference), {kept} of {all} entries kept, {:?}, {:.1} s",
            self.name,
            report.iterations,
            program
                .layout()
                .vectors
                .iter()
                .map(|(vector, home)| format!("{vector:?}/{home:?}"))
                .collect::<Vec<_>>(),
            begun.elapsed().as_secs_f64()
        );
        Ok(())
    }
}

impl Case {
    /// Holds the bits of several slabs to those of one with the same product and another number of blocks, where the
    /// reference sums rows in another order.
    pub fn check_on_one_slab(&self, compiler: &Compiler) -> Result<(), String> {
        if self.has_the_references_bits() {
            return Ok(());
        }
        let slabs = self.compile(compiler, &[])?.run(1, 0)?;
        let configuration = Configuration { slabs: Slabs::default(), blocks: 3, ..self.configuration };
        let one = Case { configuration, ..self.clone() }.compile(compiler, &[])?.run(1, 0)?;
        if slabs == one { Ok(()) } else { Err("other bits than on one slab".to_owned()) }
    }

    /// Checks that the kernel without some of its words is found to be wrong: it fails, or has other bits in
    /// some order of the lanes.
    pub fn misses(&self, compiler: &Compiler, change: (&str, &str)) -> Result<(), String> {
        let right = self.compile(compiler, &[])?.run(1, 0)?;
        let program = self.compile(compiler, &[change])?;
        let found = (1..=20).find(|&seed| program.run(seed, 0).map_or(true, |outcome| outcome != right));
        let seed = found.ok_or_else(|| format!("{} has the same bits without: {}", self.name, change.0))?;
        println!("{} without {}: found in order {seed}", self.name, change.0);
        Ok(())
    }
}

/// Returns how the reference ends, and its last iterate.
pub fn reference(
    matrix: &Matrix,
    options: &SolveOptions,
    right: &Array,
    parameters: &Parameters,
) -> Result<(Result<Report, SolverError>, Vec<f64>), String> {
    match matrix.dtype() {
        DType::F32 => reference_of::<f32>(matrix, options, right, parameters),
        DType::F64 => reference_of::<f64>(matrix, options, right, parameters),
    }
    .map_err(|error| error.to_string())
}

fn reference_of<T: Real>(
    matrix: &Matrix,
    options: &SolveOptions,
    right: &Array,
    parameters: &Parameters,
) -> Result<(Result<Report, SolverError>, Vec<f64>), SolverError> {
    let operator = matrix.operator::<T>()?;
    let mut m = build_preconditioner(&options.preconditioner, &Serial, operator.clone())?;
    let b = T::slice(right).unwrap_or_default();
    let mut x = vec![T::ZERO; b.len()];
    let solver = solver::<T, Serial>(&options.method);
    let ended = solver.solve_on(&Serial, &operator, &mut m, b, &mut x, parameters);
    Ok((ended, x.iter().map(|x| x.to_f64()).collect()))
}

/// A solve with a right-hand side and limits of its own.
pub struct End {
    pub case: Case,
    pub right: Array,
    pub parameters: Parameters,
}

impl End {
    fn compile(&self, compiler: &Compiler) -> Result<Solver, String> {
        let mut solver = self.case.compile(compiler, &[])?;
        let system = (&self.case.matrix, self.right.clone());
        hand_over(&mut solver, &[system], &self.case.options, &self.parameters)?;
        Ok(solver)
    }

    /// Holds the end of a run to the reference's: its kind, its history, its last iterate.
    pub fn check(&self, compiler: &Compiler) -> Result<(), String> {
        let (ended, x) = reference(&self.case.matrix, &self.case.options, &self.right, &self.parameters)?;
        let (status, quantity) = match &ended {
            Ok(_) => (Status::Converged, None),
            Err(SolverError::NotConverged { .. }) => (Status::Limited, None),
            Err(SolverError::Stagnation { .. }) => (Status::Stagnant, None),
            Err(SolverError::NotFinite { quantity, .. }) => (Status::NotFinite, Some(*quantity)),
            Err(SolverError::Breakdown { quantity, .. }) => (Status::Vanished, Some(*quantity)),
            Err(error) => return Err(format!("the reference: {error}")),
        };
        let history = ended.as_ref().map_or_else(SolverError::history, |report| &report.history);
        let program = self.compile(compiler)?;
        let outcome = program.run(1, 0)?;
        let named = outcome.quantity.words();
        if outcome.status != status || quantity.is_some_and(|quantity| quantity != named) {
            return Err(format!(
                "status {:?}, {named}; the reference has {status:?}, {quantity:?}",
                outcome.status
            ));
        }
        let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * history[0] || a.to_bits() == b.to_bits();
        let alike =
            |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(*a, *b));
        if !alike(&outcome.history, history) {
            return Err(format!("history {:?}, the reference's is {history:?}", outcome.history));
        }
        // After a breakdown x has no promised value.
        let is_ended = matches!(status, Status::Converged | Status::Limited | Status::Stagnant);
        if is_ended && !alike(&outcome.x, &x) {
            return Err(format!("x is {:?}, the reference's is {x:?}", outcome.x));
        }
        if program.run(2, 4)? != outcome {
            return Err("other bits in launches of 4 iterations".to_owned());
        }
        println!("{}: status {status:?}, {named}, {} iterations", self.case.name, history.len() - 1);
        Ok(())
    }

    /// Compares x as one launch of `iterations` iterations leaves it with the last entry of its history.
    pub fn check_cut(&self, compiler: &Compiler, iterations: usize) -> Result<(), String> {
        let program = self.compile(compiler)?;
        let outcome = program.launch(1, iterations, 1)?.pop().ok_or("no system")?;
        let operator = self.case.matrix.operator::<f64>().map_err(|error| error.to_string())?;
        let mut product = vec![0.0; outcome.x.len()];
        operator.apply(&outcome.x, &mut product);
        let rest: Vec<f64> = self.right.to_f64().iter().zip(&product).map(|(b, ax)| b - ax).collect();
        let (norm, told) =
            (reduction::dot(&rest, &rest).sqrt(), outcome.history.last().copied().unwrap_or(f64::NAN));
        if outcome.status != Status::Running
            || outcome.history.len() != iterations
            || (norm - told).abs() > 1e-9 * told
        {
            let length = outcome.history.len();
            return Err(format!(
                "status {:?}, {length} residuals, {norm:e} where {told:e} is told",
                outcome.status
            ));
        }
        Ok(())
    }
}

/// Solves systems in one batch, and holds each to the bits that it has when solved alone, in several orders
/// of the lanes and cuts of the iterations.
pub fn check_batch(compiler: &Compiler, matrices: &[Matrix], options: &SolveOptions) -> Result<(), String> {
    let device = DeviceSpec::preset("h200").map_err(|error| error.to_string())?;
    let plan = abide_cuda::plan_batch(&matrices[0], &device, options).map_err(|error| error.to_string())?;
    let layout = plan.krylov().cloned().ok_or("no layout")?;
    let parameters = Parameters { relative: 1e-9, ..Parameters::default() };
    let right = |number: usize| {
        Array::from_fn(DType::F64, matrices[0].rows(), |i| ((i * 7 + number) % 11) as f64 - 4.0)
    };
    let mut alone = Vec::new();
    for (number, matrix) in matrices.iter().enumerate() {
        let mut solver = Solver::compile(compiler, matrix, options, layout.clone(), None, &[])?;
        hand_over(&mut solver, &[(matrix, right(number))], options, &parameters)?;
        alone.push(solver.run(1, 0)?);
    }
    if alone.iter().any(|outcome| outcome.status != Status::Converged) {
        return Err("a system does not converge alone".to_owned());
    }
    let mut solver = Solver::compile(compiler, &matrices[0], options, layout, Some(matrices.len()), &[])?;
    let systems: Vec<(&Matrix, Array)> =
        matrices.iter().enumerate().map(|(n, matrix)| (matrix, right(n))).collect();
    hand_over(&mut solver, &systems, options, &parameters)?;
    for (seed, chunk) in [(1, 0), (2, 5)] {
        if solver.run_all(seed, chunk)? != alone {
            return Err(format!("other bits in a batch, order {seed}, {chunk} iterations a launch"));
        }
    }
    println!(
        "{} alone and in a batch: {:?} iterations",
        options.method,
        alone.iter().map(|o| o.history.len() - 1).collect::<Vec<_>>()
    );
    Ok(())
}
