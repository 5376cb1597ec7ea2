//! Random programs with scalars, temporaries and points by the kernels of their plain forms, without a GPU: the bits of the
//! reference.
#![cfg(target_os = "linux")]

use abide_core::plan::streaming::warp;
use abide_core::program::Clock;
use abide_core::{Array, Depth, DeviceSpec, Execution, Options, Plan, Problem};
use abide_emulator::{Compiler, Launch, all};
use abide_planner::streaming::warp::plan_configuration;
use abide_random::timed;

use crate::common;

/// Seeds of which about a third make a program that has a plain form.
const SEEDS: std::ops::Range<u64> = 0..60;

fn said(error: abide_core::Error) -> String {
    error.to_string()
}

/// Runs the plain form of a problem by a device's plan, and by passes of one step as remainders do. The error describes what is
/// wrong.
fn run(compiler: &Compiler, seed: u64, options: &Options) -> Result<(), String> {
    let (whole, start) = timed::problem(seed).map_err(said)?;
    let clock = Clock::on_device(&whole).ok_or("no plain form")?;
    let device = DeviceSpec::preset("h200").map_err(said)?;
    // A device that has no such plan says why; a launch per stage needs no other kernels than a plain problem.
    let Ok(plan) = abide_planner::plan(&clock.at_rest(), &device, options) else { return Ok(()) };
    let single = plan.warp_streaming().and_then(|stream| {
        let configuration = warp::Configuration { depth: 1, ..stream.configuration() };
        plan_configuration(clock.plain(), &device, &configuration)
    });
    let plans = [Some(plan), single].into_iter().flatten().filter(|plan| plan.stepwise().is_none());
    plans.map(|plan| check(compiler, &whole, &start, clock.clone(), &plan)).collect()
}

fn check(
    compiler: &Compiler,
    whole: &Problem,
    start: &[Array],
    mut clock: Clock,
    plan: &Plan,
) -> Result<(), String> {
    let problem = clock.plain().clone();
    let steps = 2 * u64::from(plan.depth.max(1));
    let text = abide_shaders::cuda::kernel(&problem, plan).map_err(said)?;
    let launch = Launch::compile(compiler, &problem, plan, 900, steps, &text)?;
    let mut expected = start.to_vec();
    abide_cpu::reference::advance(whole, &mut expected, steps).map_err(said)?;
    let result = launch.run(start, [&problem.parameters, &clock.varying(steps)], 0)?;
    let wrong = |(expected, found): (&Array, &Vec<u8>)| expected.as_bytes() != found;
    match expected.iter().zip(&result).position(wrong) {
        Some(field) => Err(format!("field {field} has other bits by {:?}", plan.schedule)),
        None => Ok(()),
    }
}

#[test]
fn random_programs_have_the_bits_of_the_reference() {
    let Some(compiler) = common::compiler() else { return };
    let own = Options::default();
    let deep = Options { execution: Execution::Streaming, depth: Depth::Steps(2), ..own };
    let has_form = |seed| timed::problem(seed).is_ok_and(|(problem, _)| Clock::on_device(&problem).is_some());
    let drawn: Vec<(u64, Options)> =
        SEEDS.filter(|&seed| has_form(seed)).flat_map(|seed| [(seed, own), (seed, deep)]).collect();
    all(&drawn, |(seed, options)| {
        run(&compiler, *seed, options).map_err(|why| format!("seed {seed}, {options:?}: {why}"))
    });
}
