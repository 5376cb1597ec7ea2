//! Random programs with scalars, temporaries and points by the kernels of their plain forms, without a GPU: the bits of the
//! reference.
#![cfg(target_os = "linux")]

use std::sync::Arc;

use abide_core::domain::Sides;
use abide_core::plan::streaming::warp;
use abide_core::program::{Centring, Clock, Definition};
use abide_core::{
    Array, Boundaries, Boundary, DType, Depth, DeviceSpec, Execution, Options, Plan, Problem, Shape, Start,
};
use abide_emulator::{Compiler, Launch, all};
use abide_planner::streaming::warp::plan_configuration;
use abide_random::timed;

use crate::common;

/// Seeds of which about a third make a program that has a plain form.
const SEEDS: std::ops::Range<u64> = 0..60;

/// Returns the planner's own choice, and passes of two steps.
fn ways() -> [Options; 2] {
    let own = Options::default();
    [own, Options { execution: Execution::Streaming, depth: Depth::Steps(2), ..own }]
}

fn said(error: abide_core::Error) -> String {
    error.to_string()
}

/// Runs the plain form of a problem by a device's plan, and by passes of one step as remainders do. The error describes what is
/// wrong.
fn run(compiler: &Compiler, whole: &Problem, start: &[Array], options: &Options) -> Result<(), String> {
    let clock = Clock::on_device(whole);
    let (plain, rest) = match &clock {
        Some(clock) => (clock.plain().clone(), clock.at_rest()),
        None => (whole.clone(), whole.clone()),
    };
    let device = DeviceSpec::preset("h200").map_err(said)?;
    // A device that has no such plan says why; a launch per stage needs no other kernels than a plain problem.
    let Ok(plan) = abide_planner::plan(&rest, &device, options) else { return Ok(()) };
    let single = plan.warp_streaming().and_then(|stream| {
        let configuration = warp::Configuration { depth: 1, ..stream.configuration() };
        plan_configuration(&plain, &device, &configuration)
    });
    let mut plans = [Some(plan), single].into_iter().flatten().filter(|plan| plan.stepwise().is_none());
    plans.try_for_each(|plan| check(compiler, whole, start, &plain, clock.clone(), &plan))
}

fn check(
    compiler: &Compiler,
    whole: &Problem,
    start: &[Array],
    problem: &Problem,
    clock: Option<Clock>,
    plan: &Plan,
) -> Result<(), String> {
    let steps = 2 * u64::from(plan.depth.max(1));
    let text = abide_shaders::cuda::kernel(problem, plan).map_err(said)?;
    let launch = Launch::compile(compiler, problem, plan, 900, steps, &text)?;
    let mut expected = start.to_vec();
    abide_cpu::reference::advance(whole, &mut expected, steps).map_err(said)?;
    let varying = clock.map_or(Vec::new(), |mut clock| clock.varying(steps));
    let result = launch.run(start, [&problem.parameters, &varying], 0)?;
    let wrong = |(expected, found): (&Array, &Vec<u8>)| expected.as_bytes() != found;
    match expected.iter().zip(&result).position(wrong) {
        Some(field) => Err(format!("field {field} has other bits by {:?}", plan.schedule)),
        None => Ok(()),
    }
}

#[test]
fn random_programs_have_the_bits_of_the_reference() {
    let Some(compiler) = common::compiler() else { return };
    let has_form = |seed| timed::problem(seed).is_ok_and(|(problem, _)| Clock::on_device(&problem).is_some());
    let drawn: Vec<(u64, Options)> =
        SEEDS.filter(|&seed| has_form(seed)).flat_map(|seed| ways().map(|way| (seed, way))).collect();
    let has_own = |problem: Problem| problem.sides.iter().any(|sides| *sides != Sides::default());
    let own_boundaries =
        drawn.iter().filter(|(seed, _)| timed::problem(*seed).is_ok_and(|(p, _)| has_own(p)));
    assert!(own_boundaries.count() > 4, "too few have boundaries of single fields");
    all(&drawn, |(seed, options)| {
        let (problem, start) = timed::problem(*seed).map_err(said)?;
        run(&compiler, &problem, &start, options).map_err(|why| format!("seed {seed}, {options:?}: {why}"))
    });
}

/// Formulas that choose in some planes: from their results alone, from other values, and both; beside cells that are held, and in
/// planes that ghost planes show.
#[test]
fn planes_are_chosen_in_every_schedule() {
    let Some(compiler) = common::compiler() else { return };
    let define = |kind: usize, extents: &[usize]| {
        let mut p = Definition::new("planes", extents.len());
        p.field("u", Centring::CELL).field("v", Centring::CELL);
        p.step().stage("planes", |s| {
            let (u, v) = (s.field("u"), s.field("v"));
            let new = u.here() + 0.1 * u.laplacian();
            let other = if kind == 0 { new + v.here() } else { u.along(0, 1) - s.coord(0) };
            let new = s.coord(0).eq(4.0).select(other, if kind == 2 { new * 0.5 } else { new });
            s.set("u", s.coord(0).eq(0.0).select(new + 2.0, new));
        });
        p.build()
    };
    let mut cases: Vec<(Problem, Options)> = Vec::new();
    for (number, boundary) in [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror].into_iter().enumerate()
    {
        for (axes, extents) in [&[23, 67][..], &[9, 11, 35]].into_iter().enumerate() {
            let program = define((number + axes) % 3, extents).unwrap();
            let dtype = [DType::F32, DType::F64][axes];
            let mut problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
            problem.set_boundaries(Boundaries::all(boundary));
            cases.extend(ways().map(|way| (problem.clone(), way)));
        }
    }
    all(&cases, |(problem, options)| {
        let start = |seed| Start::Random { seed, low: 0.1, high: 0.9 }.fill(&problem.shape, problem.dtype);
        let start = [start(1).map_err(said)?, start(2).map_err(said)?];
        let words = format!("{} {:?}, {options:?}", problem.shape, problem.boundaries);
        run(&compiler, problem, &start, options).map_err(|why| format!("{words}: {why}"))
    });
}
