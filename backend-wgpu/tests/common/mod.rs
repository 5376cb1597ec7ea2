//! Helpers that the tests on a device share.

pub mod pair;
pub mod random;

use std::sync::Arc;

use abide_core::backend::Backend;
use abide_core::{Array, Boundaries, Boundary, DType, Options, Problem, Program, Result, Session, Shape};
use abide_wgpu::{WgpuBackend, ulp_bound_per_step_of};

/// Returns whether all cases run, as `cargo xtask test --full` asks for, or a part of those that take a software driver long.
pub fn is_whole() -> bool {
    std::env::var_os("ABIDE_ALL").is_some()
}

/// Returns a case in so many, unless all run.
pub fn sampled<T>(cases: impl IntoIterator<Item = T>, each: usize) -> impl Iterator<Item = T> {
    let is_chosen = move |number| is_whole() || abide_random::is_one_in(each, number);
    cases.into_iter().enumerate().filter(move |&(number, _)| is_chosen(number)).map(|(_, case)| case)
}

/// Returns the backend, or nothing where there is no adapter, which is a failure where `ABIDE_REQUIRE` names
/// wgpu.
pub fn backend() -> Option<WgpuBackend> {
    match WgpuBackend::new() {
        Ok(backend) => Some(backend),
        Err(reason) => {
            println!("skipped: wgpu: {reason}");
            let required = std::env::var("ABIDE_REQUIRE").unwrap_or_default();
            assert!(!required.contains("wgpu"), "ABIDE_REQUIRE={required}, but {reason}");
            None
        }
    }
}

/// Returns a problem with one boundary text for all axes.
pub fn problem(program: Program, extents: &[usize], dtype: DType, boundary: &str) -> Result<Problem> {
    let mut problem = Problem::new(Arc::new(program), Shape::new(extents)?, dtype)?;
    problem.set_boundaries(Boundaries::parse(boundary, Boundary::Fixed)?);
    problem.check()?;
    Ok(problem)
}

/// Returns values of every field, in 0…1: whole numbers for the game of life, and below 0.1 for a
/// conductivity, so that it stays stable.
pub fn values(problem: &Problem, seed: u64) -> Vec<Array> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let whole = problem.program.name() == "life";
    let mut value = |most: f64| if whole { f64::from(rng.bool()) } else { most * rng.f64() };
    let cells = problem.shape.cells();
    let most = |name: &String| if name == "kappa" { 0.1 } else { 1.0 };
    problem
        .program
        .fields()
        .iter()
        .map(|name| Array::from_fn(problem.dtype, cells, |_| value(most(name))))
        .collect()
}

/// Reads all fields as they are.
pub fn read_all(session: &mut dyn Session, problem: &Problem) -> Vec<Array> {
    (0..problem.program.fields().len()).map(|field| session.read(field).unwrap()).collect()
}

/// Returns the largest difference of two states in units in the last place at `magnitude`.
pub fn distance(a: &[Array], b: &[Array], magnitude: f64) -> f64 {
    a.iter().zip(b).map(|(a, b)| a.scaled_ulp_distance(b, magnitude).unwrap()).fold(0.0, f64::max)
}

pub fn magnitude(fields: &[Array]) -> f64 {
    fields.iter().map(Array::magnitude).fold(0.0, f64::max)
}

/// Steps a problem and checks each step against the reference, from the same old values, within the stated
/// bound. Then does all steps again in one call, and finds the same bits. Returns the largest difference and
/// the bound.
pub fn check(backend: &WgpuBackend, problem: &Problem, fields: &[Array], steps: u64) -> [f64; 2] {
    let plan = backend.plan(problem, &Options::default()).unwrap();
    check_plan(backend, problem, &plan, fields, steps)
}

pub fn check_plan(
    backend: &WgpuBackend,
    problem: &Problem,
    plan: &abide_core::Plan,
    fields: &[Array],
    steps: u64,
) -> [f64; 2] {
    let what = format!(
        "{} on {} {}, {}",
        problem.program.name(),
        problem.shape,
        problem.dtype,
        problem.boundaries.describe(problem.shape.dimensions())
    );
    let mut session =
        backend.open(problem, plan, fields.to_vec()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (mut worst, mut stated) = (0.0f64, 0.0f64);
    let mut old = fields.to_vec();
    for step in 0..steps {
        session.advance(1).unwrap();
        let new = read_all(session.as_mut(), problem);
        let mut expected = old.clone();
        abide_cpu::reference::advance(problem, &mut expected, 1).unwrap();
        let scale = magnitude(&old).max(magnitude(&expected)).max(0.5);
        let bound = ulp_bound_per_step_of(problem, scale);
        let off = distance(&new, &expected, scale);
        assert!(off <= bound, "{what}: step {step} is off by {off}, the bound is {bound}");
        (worst, stated) = (worst.max(off), stated.max(bound));
        old = new;
    }
    for (field, values) in fields.iter().enumerate() {
        session.write(field, values).unwrap();
    }
    session.advance(steps).unwrap();
    let again = read_all(session.as_mut(), problem);
    assert!(
        again.iter().zip(&old).all(|(a, b)| a.same_bits(b)),
        "{what}: {steps} steps at once differ from one by one"
    );
    [worst, stated]
}
