//! The backends under test, what may be skipped, and how closely each backend must agree with the reference.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use abide::backend::{Opened, open};
use abide::catalogue;
use abide::{
    Array, Boundaries, Boundary, CachePolicy, DType, Depth, Error, Execution, Options, Plan, Problem,
    Program, Result, Session, Shape, Start, Tune,
};

/// A backend that is present.
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// The backend.
    pub opened: Opened,
    /// Whether the device computes in f64, once this has been tried.
    f64: OnceLock<bool>,
}

/// Runs a check on a backend, or reports the backend as skipped.
pub fn check(name: &'static str, check: fn(&Subject) -> Result<()>) {
    match open(name) {
        Ok(opened) => {
            if let Err(error) = check(&Subject::of(name, opened)) {
                panic!("{name}: {error}");
            }
        }
        Err(Error::Unavailable { reason, .. }) => skip(name, &reason),
        Err(error) => panic!("{name} is there but does not open: {error}"),
    }
}

/// Reports something as skipped by name, once, or fails where `ABIDE_REQUIRE` names it.
pub fn skip(name: &str, reason: &str) {
    static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let required = std::env::var("ABIDE_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|word| word.trim() == name), "{name} is required and absent: {reason}");
    if REPORTED.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned()) {
        // Past the test runner's capture, so that it is seen without asking.
        let _ = writeln!(std::io::stdout().lock(), "skipped: {name}: {reason}");
    }
}

impl Subject {
    /// Pairs a backend with its name.
    pub fn of(name: &'static str, opened: Opened) -> Subject {
        Subject { name, opened, f64: OnceLock::new() }
    }

    /// Returns whether the device computes in a type. All devices compute in f32; a device without f64 must
    /// say so.
    pub fn has(&self, dtype: DType) -> bool {
        dtype == DType::F32 || *self.f64.get_or_init(|| self.computes_in_f64())
    }

    fn computes_in_f64(&self) -> bool {
        let probe = entry("1d3pt", &[64], DType::F64, Boundary::Fixed).and_then(|problem| {
            let plan = self.opened.backend.plan(&problem, &Options::default())?;
            self.opened.backend.open(&problem, &plan, fields(&problem, 1)?).map(drop)
        });
        match probe {
            Ok(()) => true,
            Err(Error::Unsupported { reason, .. }) => {
                skip(&format!("{} in f64", self.name), &reason);
                false
            }
            Err(error) => panic!("{} in f64: {error}", self.name),
        }
    }

    /// Returns the types that the device computes in.
    pub fn dtypes(&self) -> Vec<DType> {
        [DType::F32, DType::F64].into_iter().filter(|&dtype| self.has(dtype)).collect()
    }

    /// Returns whether the backend promises the reference's bits for correctly rounded operators.
    pub fn is_exact(&self) -> bool {
        self.name != "wgpu"
    }

    /// Returns whether the longest checks have all their cases here.
    pub fn has_all_cases(&self) -> bool {
        crate::has_all_cases(self.name)
    }

    /// Returns all cases, or an eighth where the backend does not have all.
    pub fn sampled<T>(&self, cases: impl IntoIterator<Item = T>) -> Vec<T> {
        crate::sampled(self.name, cases)
    }

    /// Returns every way to run a problem that the backend has, or a fifth of them where it does not have all cases, by the
    /// problem; there is at least one.
    pub fn variants(&self, problem: &Problem) -> Vec<Options> {
        let persistent = CachePolicy::ALL.iter().flat_map(|&cache| {
            let depths = [Depth::Auto, Depth::Steps(2)];
            depths.map(|depth| Options {
                execution: Execution::Persistent,
                cache,
                depth,
                tune: Tune::Off,
                ..Options::default()
            })
        });
        // Plans that a user's earlier tuning found are no part of the test.
        let own = Options { tune: Tune::Off, ..Options::default() };
        let stepwise = Options { execution: Execution::Stepwise, ..own };
        // Where the bits are promised, every depth counts. Elsewhere one depth beside the backend's own
        // choice is enough, because a software driver takes longer to compile a kernel than to run it.
        let depths: &[u32] = if self.is_exact() { &[2, 3, 5] } else { &[3] };
        let depths = [Depth::Auto].into_iter().chain(depths.iter().copied().map(Depth::Steps));
        let several = depths.flat_map(|depth| {
            [Execution::Overlapped, Execution::Streaming].map(|execution| Options { execution, depth, ..own })
        });
        let all = [own, stepwise].into_iter().chain(persistent).chain(several);
        // Ways that lead to the same plan are one way.
        let mut plans = Vec::new();
        let mut is_new = |plan: &Plan| {
            !plans.contains(plan) && {
                plans.push(plan.clone());
                true
            }
        };
        let able: Vec<Options> =
            all.filter(|options| self.plan(problem, options).is_some_and(|plan| is_new(&plan))).collect();
        assert!(!able.is_empty(), "{}: no way to run {}", self.name, describe(problem));
        if self.has_all_cases() {
            return able;
        }
        let first = describe(problem).bytes().map(usize::from).sum::<usize>() % able.len().min(5);
        able.into_iter().skip(first).step_by(5).collect()
    }

    /// Returns the plan for these options, where there is one. Only a limit of the device or the backend may
    /// forbid it.
    fn plan(&self, problem: &Problem, options: &Options) -> Option<Plan> {
        match self.opened.backend.plan(problem, options) {
            Ok(plan) => Some(plan),
            Err(Error::Limit { .. } | Error::Unsupported { .. }) => None,
            Err(error) => panic!("{}: planning {}: {error}", self.name, describe(problem)),
        }
    }

    /// Returns the number of steps, at least `least`, that exercises every part of a plan. After a first
    /// step, a kernel that takes many steps per pass takes one whole pass, one pass of half as many steps
    /// that remainders run in, and so on down to a single step.
    fn steps(&self, problem: &Problem, options: &Options, least: u64) -> Result<u64> {
        let depth = u64::from(self.opened.backend.plan(problem, options)?.depth);
        let passes =
            std::iter::successors(Some(depth), |depth| Some(depth / 2)).take_while(|&depth| depth > 0);
        Ok(if depth > 1 { least.max(1 + passes.sum::<u64>()) } else { least })
    }

    /// Returns the fields after `steps` steps. The first step is a call of its own, so that the state between
    /// calls counts too.
    pub fn run(
        &self,
        problem: &Problem,
        options: &Options,
        fields: &[Array],
        steps: u64,
    ) -> Result<Vec<Array>> {
        let plan = self.opened.backend.plan(problem, options)?;
        let mut session = self.opened.backend.open(problem, &plan, fields.to_vec())?;
        let first = steps.min(1);
        session.advance(first)?;
        session.advance(steps - first)?;
        read(session.as_mut(), fields.len())
    }

    /// Runs a problem in several ways and compares each result with the reference.
    ///
    /// A backend that promises the reference's bits must have them at the end, after `steps` steps, or more
    /// where a kernel takes many steps per pass. A backend that promises a bound must keep it in every step,
    /// from its own values before the step, and must have the same bits at the end of a run in parts.
    pub fn compare(&self, problem: &Problem, ways: &[Options], fields: &[Array], steps: u64) -> Result<()> {
        if self.is_exact() {
            let mut by_steps: BTreeMap<u64, Vec<Options>> = BTreeMap::new();
            for &options in ways {
                by_steps.entry(self.steps(problem, &options, steps)?).or_default().push(options);
            }
            let (mut expected, mut done, mut runs) = (fields.to_vec(), 0, Vec::new());
            for (steps, ways) in by_steps {
                abide_cpu::reference::advance(problem, &mut expected, steps - done)?;
                done = steps;
                runs.extend(ways.into_iter().map(|way| (way, steps, expected.clone())));
            }
            return each(&runs, |(options, steps, expected)| {
                let results = self.run(problem, options, fields, *steps)?;
                self.check(problem, options, *steps, fields, &results, expected);
                Ok(())
            });
        }
        for options in ways {
            let plan = self.opened.backend.plan(problem, options)?;
            let mut session = self.opened.backend.open(problem, &plan, fields.to_vec())?;
            for _ in 0..steps {
                self.check_step(problem, options, session.as_mut())?;
            }
            let one_by_one = read(session.as_mut(), fields.len())?;
            let in_parts = self.run(problem, options, fields, steps)?;
            let same = in_parts.iter().zip(&one_by_one).all(|(a, b)| a.same_bits(b));
            assert!(same, "{}: the parts of a run change its bits: {}", self.name, words(problem, options));
        }
        Ok(())
    }

    /// Advances by one step and compares the result with the reference's step from the same values.
    pub fn check_step(&self, problem: &Problem, options: &Options, session: &mut dyn Session) -> Result<()> {
        let before = read(session, problem.program.fields().len())?;
        session.advance(1)?;
        let after = read(session, before.len())?;
        let mut expected = before.clone();
        abide_cpu::reference::advance(problem, &mut expected, 1)?;
        self.check(problem, options, 1, &before, &after, &expected);
        Ok(())
    }

    /// Runs a problem in several ways and compares each result with the expected fields. Where the backend
    /// promises a bound per step, the program must magnify no difference.
    pub fn compare_with(
        &self,
        problem: &Problem,
        ways: &[Options],
        fields: &[Array],
        steps: u64,
        expected: &[Array],
    ) -> Result<()> {
        each(ways, |options| {
            let results = self.run(problem, options, fields, steps)?;
            self.check(problem, options, steps, fields, &results, expected);
            Ok(())
        })
    }

    fn check(
        &self,
        problem: &Problem,
        options: &Options,
        steps: u64,
        before: &[Array],
        results: &[Array],
        expected: &[Array],
    ) {
        let magnitude = before.iter().chain(expected).map(largest).fold(0.0, f64::max);
        let allowed = self.bound(problem, magnitude) * steps as f64 * ulp(magnitude, problem.dtype);
        for (field, (result, expected)) in results.iter().zip(expected).enumerate() {
            if let Some(fault) = difference(problem, result, expected, allowed) {
                let name = &problem.program.fields()[field];
                panic!("{}: {steps} steps of {}, field {name}: {fault}", self.name, words(problem, options));
            }
        }
        assert_eq!(results.len(), expected.len());
    }

    /// Returns the units in the last place of the largest magnitude by which one step may differ from the
    /// reference's; 0 means the same bits.
    fn bound(&self, problem: &Problem, magnitude: f64) -> f64 {
        match self.is_exact() {
            true => 0.0,
            false => {
                let bound = abide_wgpu::ulp_bound_per_step_of(problem, magnitude);
                assert!(bound.is_finite(), "no bound is stated for {}", describe(problem));
                bound
            }
        }
    }
}

/// Checks each item on as many threads as there are cores, because compiling takes long. The first error is
/// returned, a panic passed on.
pub fn each<T: Sync>(items: &[T], check: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let turns = || -> Result<()> {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(item)?;
        }
        Ok(())
    };
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        // This thread works too, and works alone where there is one item.
        let others: Vec<_> = (1..cores.min(items.len())).map(|_| scope.spawn(turns)).collect();
        let own = turns();
        let joined =
            others.into_iter().map(|other| other.join().unwrap_or_else(|why| std::panic::resume_unwind(why)));
        joined.fold(own, |so_far, other| so_far.and(other))
    })
}

/// Reads all fields of a session.
pub fn read(session: &mut dyn Session, fields: usize) -> Result<Vec<Array>> {
    (0..fields).map(|field| session.read(field)).collect()
}

/// Describes where and how a result differs from the expected field by more than is allowed; 0 allows no
/// differing bit.
fn difference(problem: &Problem, result: &Array, expected: &Array, allowed: f64) -> Option<String> {
    if result.same_bits(expected) {
        return None;
    }
    if result.len() != expected.len() || result.dtype() != expected.dtype() {
        return Some(format!(
            "{} values of {}, expected {} of {}",
            result.len(),
            result.dtype(),
            expected.len(),
            expected.dtype()
        ));
    }
    let pair = |i: usize| (result.get(i).unwrap_or(f64::NAN), expected.get(i).unwrap_or(f64::NAN));
    let differs = |&i: &usize| {
        let (a, b) = pair(i);
        let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        !(same || (allowed > 0.0 && ((a - b).abs() <= allowed || a == b)))
    };
    let wrong: Vec<usize> = (0..expected.len()).filter(differs).collect();
    let &first = wrong.first()?;
    let (a, b) = pair(first);
    let at = problem.shape.cell(first);
    Some(format!(
        "{} of {} cells, first at {at:?}: {a:e} instead of {b:e}; allowed is {allowed:e}",
        wrong.len(),
        expected.len()
    ))
}

/// Returns the largest finite magnitude of an array.
fn largest(array: &Array) -> f64 {
    array.to_f64().into_iter().filter(|x| x.is_finite()).fold(0.0, |most, x| x.abs().max(most))
}

/// Returns the distance from a value to the next of its type.
fn ulp(value: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from((value as f32).next_up()) - f64::from(value as f32),
        DType::F64 => value.next_up() - value,
    }
}

/// Describes a problem and a way to run it.
fn words(problem: &Problem, options: &Options) -> String {
    let Options { execution, cache, depth, .. } = options;
    format!("{}, execution {execution}, cache {cache}, depth {depth:?}", describe(problem))
}

/// Describes a problem.
pub fn describe(problem: &Problem) -> String {
    let boundaries = problem.boundaries.describe(problem.shape.dimensions());
    format!("{} {} {} {boundaries}", problem.program.name(), problem.shape, problem.dtype)
}

/// Makes the problem of an entry of the catalogue, for as many axes as `extents` has, with a boundary.
pub fn entry(name: &str, extents: &[usize], dtype: DType, boundary: Boundary) -> Result<Problem> {
    let program = catalogue::find(name)?.program(extents.len())?;
    problem(Arc::new(program), extents, dtype, Boundaries::all(boundary))
}

/// Makes the problem of a program on a domain, with the program's own parameters.
pub fn problem(
    program: Arc<Program>,
    extents: &[usize],
    dtype: DType,
    boundaries: Boundaries,
) -> Result<Problem> {
    let mut problem = Problem::unchecked(program, Shape::new(extents)?, dtype);
    problem.set_boundaries(boundaries);
    problem.check()?;
    Ok(problem)
}

/// Sets a parameter of a problem by name.
pub fn with(mut problem: Problem, parameter: &str, value: f64) -> Result<Problem> {
    let number = problem.program.parameter(parameter)?;
    problem.parameters[number] = value;
    Ok(problem)
}

/// Makes random fields in the range that the catalogue's models take.
pub fn fields(problem: &Problem, seed: u64) -> Result<Vec<Array>> {
    let names = problem.program.fields().iter();
    let start = |(number, name): (usize, &String)| {
        let seed = seed + 100 * number as u64;
        let start = match (problem.program.name(), name.as_str()) {
            ("life", _) => Start::Coin { seed, probability: 0.4 },
            // A conductivity beyond 1/6 would grow without bound in 3D.
            (_, "kappa") => Start::Random { seed, low: 0.01, high: 0.15 },
            // So would waves that move faster.
            (_, "velocity") => Start::Random { seed, low: 0.1, high: 0.4 },
            _ => Start::Random { seed, low: -0.4, high: 0.9 },
        };
        start.fill(&problem.shape, problem.dtype)
    };
    names.enumerate().map(start).collect()
}

/// Makes a field from a function of the cell.
pub fn field(problem: &Problem, mut value: impl FnMut([usize; 3]) -> f64) -> Array {
    Array::from_fn(problem.dtype, problem.shape.cells(), |i| value(problem.shape.cell(i)))
}
