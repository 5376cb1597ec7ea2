//! The backends under test, and a way to solve on them.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use abide::backend::{Opened, open};
use abide::solve::{Matrix, Method, Parameters, Precision, Preconditioning, Report, SolveCache, SolverError};
use abide::{Array, DType, Error, Result, Solve};

/// Backends that have solvers. A backend in this list that says that it has none fails.
const SOLVING: &[&str] = &["cpu", "cuda", "wgpu"];

/// A backend that is present and solves.
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// The backend.
    pub opened: Opened,
}

/// Runs a check on a backend, or reports the backend as skipped.
pub fn check(name: &'static str, check: fn(&Subject)) {
    match open(name) {
        Ok(opened) if opened.backend.linear().is_none() => {
            assert!(!SOLVING.contains(&name), "{name} has lost its solvers");
            say(name, "it has no linear solvers");
        }
        Ok(opened) => check(&Subject { name, opened }),
        Err(Error::Unavailable { reason, .. }) => {
            let required = std::env::var("ABIDE_REQUIRE").unwrap_or_default();
            let required = required.split(',').any(|word| word.trim() == name);
            assert!(!required, "{name} is required and absent: {reason}");
            say(name, &reason);
        }
        Err(error) => panic!("{name} is there but does not open: {error}"),
    }
}

/// Reports something as skipped by name, once.
fn say(name: &str, reason: &str) {
    static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
        // Past the test runner's capture, so that it is seen without asking.
        let _ = writeln!(std::io::stdout().lock(), "skipped: {name}: {reason}");
    }
}

/// A way to solve a system.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub method: Method,
    pub preconditioner: Preconditioning,
    pub cache: SolveCache,
    pub relative: f64,
}

impl Way {
    pub fn new(method: Method, relative: f64) -> Way {
        Way { method, preconditioner: Preconditioning::None, cache: SolveCache::Auto, relative }
    }

    pub fn parameters(&self) -> Parameters {
        Parameters { relative: self.relative, iterations: 20_000, stagnation: None, ..Parameters::DEFAULT }
    }
}

/// Returns the tolerance that a type can meet: f32's residual cannot fall to 1e-10.
pub fn tolerance(dtype: DType) -> f64 {
    if dtype == DType::F32 { 1e-4 } else { 1e-10 }
}

impl Subject {
    /// Returns the types that the device computes in. All devices compute in f32; a device without f64 must
    /// say so.
    pub fn dtypes(&self) -> Vec<DType> {
        let probe = |dtype: DType| {
            let matrix = abide::solve::named::matrix("laplacian2d:3x3", dtype).unwrap();
            match Solve::new(matrix).method(Method::Cg).on(&self.opened).open() {
                Ok(_) => true,
                Err(SolverError::Invalid(Error::Unsupported { reason, .. })) if dtype == DType::F64 => {
                    say(&format!("{} in f64", self.name), &reason);
                    false
                }
                Err(error) => panic!("{} in {dtype}: {error}", self.name),
            }
        };
        [DType::F32, DType::F64].into_iter().filter(|&dtype| probe(dtype)).collect()
    }

    /// Returns the types, each with a question whether a case of this number is of its turn: cases take turns in the types. Every
    /// eighth turn is taken where the backend does not have all cases.
    pub fn types_by_turns(
        &self,
    ) -> impl Iterator<Item = (DType, impl Fn(usize) -> bool + Copy + Send + Sync)> {
        let dtypes = self.dtypes();
        let count = dtypes.len();
        let turns = if crate::has_all_cases(self.name) { count } else { 8 * count };
        dtypes
            .into_iter()
            .enumerate()
            .map(move |(own, dtype)| (dtype, move |case: usize| case % turns == own))
    }

    /// Returns all cases, or an eighth where the backend does not have all.
    pub fn sampled<T>(&self, cases: impl IntoIterator<Item = T>) -> Vec<T> {
        crate::sampled(self.name, cases)
    }

    /// Returns those of `methods` that the backend has; it must refuse the others by name.
    pub fn able(&self, methods: &[&str]) -> Vec<Method> {
        let matrix: Matrix = abide::solve::named::matrix("laplacian2d:3x3", DType::F32).unwrap().into();
        let has = |method: &Method| match self.describe(&matrix, &Way::new(*method, 1e-3)).open() {
            Ok(_) => true,
            Err(SolverError::Invalid(Error::Unsupported { reason, .. }))
                if reason.contains(method.name()) =>
            {
                say(&format!("{} {method}", self.name), &reason);
                false
            }
            Err(error) => panic!("{} {method}: {error}", self.name),
        };
        methods.iter().map(|name| name.parse().unwrap()).filter(has).collect()
    }

    /// Returns all methods that the backend has.
    pub fn methods(&self) -> Vec<Method> {
        self.able(&abide::solve::METHODS)
    }

    /// Returns all preconditioners that the backend has.
    pub fn preconditioners(&self) -> Vec<Preconditioning> {
        let all: &[Preconditioning] =
            if self.name == "cpu" { &Preconditioning::ALL } else { &Preconditioning::OF_KERNELS };
        all.to_vec()
    }

    /// Describes a solve on this backend.
    pub fn describe(&self, matrix: &Matrix, way: &Way) -> Solve {
        Solve::new(matrix.clone())
            .method(way.method)
            .preconditioner(way.preconditioner)
            .cache(way.cache)
            .precision(Precision::Plain(matrix.dtype()))
            .parameters(way.parameters())
            .on(&self.opened)
    }

    /// Solves from 0.
    pub fn solve(&self, matrix: &Matrix, b: &Array, way: &Way) -> Result<(Array, Report), SolverError> {
        let solution = self.describe(matrix, way).open()?.solve(b)?;
        Ok((solution.x, solution.report))
    }

    /// Solves from 0 with these parameters, with an observer that counts.
    pub fn solve_with(
        &self,
        matrix: &Matrix,
        b: &Array,
        way: &Way,
        parameters: &Parameters,
    ) -> Result<Report, SolverError> {
        let mut x = Array::zeros(matrix.dtype(), matrix.rows())?;
        let mut system = self.describe(matrix, way).open()?;
        system.solve_with(b, &mut x, parameters, &mut |_, _| ControlFlow::Continue(()))
    }
}
