//! Random programs with scalars, temporaries and points by the kernels of their plain forms, without a GPU: the bits of the
//! reference.
#![cfg(target_os = "linux")]

use std::sync::Arc;

use abide_core::backend::Backend;
use abide_core::catalogue;
use abide_core::domain::Sides;
use abide_core::plan::streaming::warp;
use abide_core::program::{Centring, Clock, Definition, Probe, Record};
use abide_core::{
    Array, Boundaries, Boundary, DType, Depth, DeviceSpec, Execution, Options, Plan, Problem, Shape, Start,
};
use abide_cpu::CpuBackend;
use abide_emulator::{Compiler, Launch, all, replaced};
use abide_planner::streaming::warp::plan_configuration;
use abide_random::cases::cases;
use abide_random::timed;

use crate::common::{self, by_parts, part};

/// Seeds of which about a third make a program that has a plain form.
const SEEDS: std::ops::Range<u64> = 0..60;

/// Returns the planner's own choice, and passes of two and three steps.
fn ways() -> [Options; 3] {
    let own = Options::default();
    let deep = |depth| Options { execution: Execution::Streaming, depth: Depth::Steps(depth), ..own };
    [own, deep(2), deep(3)]
}

fn said(error: abide_core::Error) -> String {
    error.to_string()
}

/// Runs the plain form of a problem by a device's plan, and by passes of one step as remainders do. The error describes what is
/// wrong.
fn run(compiler: &Compiler, whole: &Problem, start: &[Array], options: &Options) -> Result<(), String> {
    let clock = Clock::on_device(whole, true);
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
    plans.try_for_each(|plan| check(compiler, whole, start, (&plain, clock.clone()), &plan, &[]))
}

fn check(
    compiler: &Compiler,
    whole: &Problem,
    start: &[Array],
    (problem, clock): (&Problem, Option<Clock>),
    plan: &Plan,
    changes: &[(&str, &str)],
) -> Result<(), String> {
    let steps = 2 * u64::from(plan.depth.max(1));
    let text = replaced(&abide_shaders::cuda::kernel(problem, plan).map_err(said)?, changes)?;
    let launch = Launch::compile(compiler, problem, plan, 900, steps, &text)?;
    let mut expected = start.to_vec();
    abide_cpu::reference::advance(whole, &mut expected, steps).map_err(said)?;
    let varying = clock.map_or(Vec::new(), |mut clock| clock.varying(steps));
    let result = launch.run(start, [&problem.parameters, &varying], 0)?;
    let wrong = |(expected, found): (&Array, &Vec<u8>)| expected.as_bytes() != found;
    if let Some(field) = expected.iter().zip(&result).position(wrong) {
        return Err(format!("field {field} has other bits by {:?}", plan.schedule));
    }
    match problem.noted.is_empty() {
        true => Ok(()),
        false => check_noted(whole, start, problem, steps, &launch.noted()?)
            .map_err(|why| format!("{why} by {:?}", plan.schedule)),
    }
}

/// Compares what a kernel noted with what the definition records.
fn check_noted(
    whole: &Problem,
    start: &[Array],
    problem: &Problem,
    steps: u64,
    noted: &[f64],
) -> Result<(), String> {
    let reference = CpuBackend::reference();
    let plan = reference.plan(whole, &Options::default()).map_err(said)?;
    let mut session = reference.open(whole, &plan, start.to_vec()).map_err(said)?;
    session.advance(steps).map_err(said)?;
    let (rows, count) = (session.take_rows().map_err(said)?, problem.noted.len());
    assert_eq!(noted.len() as u64, steps * count as u64);
    for (step, row) in rows.iter().filter(|(step, _)| *step > 0) {
        let found = &noted[(step as usize - 1) * count..step as usize * count];
        for ((probe, expected), found) in problem.noted.iter().zip(&row[row.len() - count..]).zip(found) {
            // Kernels that keep no held cells note nothing of them: the host knows their values.
            let is_known = found.is_nan() && problem.is_held(probe.field, probe.index);
            if expected.to_bits() != found.to_bits() && !is_known {
                let name = probe.name(&problem.program);
                return Err(format!("{name} after step {step} is {found}, not {expected},"));
            }
        }
    }
    Ok(())
}

/// Returns probes of all fields: at corners, in the middle and where the seed says, some twice.
fn probes(problem: &Problem, seed: u64) -> Vec<Probe> {
    let (mut rng, extents) = (fastrand::Rng::with_seed(seed), problem.shape.padded());
    let fields = problem.program.fields().len();
    let ends = [[0; 3], extents.map(|extent| extent - 1), extents.map(|extent| extent / 2)];
    let drawn: Vec<[usize; 3]> = (0..5).map(|_| extents.map(|extent| rng.usize(0..extent))).collect();
    // Several of a line, as receivers are.
    let line = |number: usize| [extents[0] / 3, extents[1] / 3, (2 * number + 1) % extents[2]];
    let line: Vec<[usize; 3]> = (0..40).map(line).collect();
    let places = ends.iter().chain(&drawn).chain(&drawn[..1]).chain(&line);
    places.map(|&index| Probe { field: rng.usize(0..fields), index }).collect()
}

/// Returns a problem that records probes after each step.
fn probed(mut problem: Problem, seed: u64) -> Problem {
    problem.record = Some(Record::new(&problem.program, 1, probes(&problem, seed)));
    problem
}

/// Kernels of several steps note the values of probes after each: of random programs, of plain stencils, at all boundaries, in
/// passes and on the chip.
fn probes_are_noted_after_each_step(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let mut cases: Vec<(Problem, Vec<Array>, Options)> = Vec::new();
    let mut add = |problem: Problem, start: Vec<Array>, seed: u64| {
        let problem = probed(problem, seed);
        problem.check().unwrap();
        assert!(Clock::on_device(&problem, false).is_none());
        cases.extend(ways().map(|way| (problem.clone(), start.clone(), way)));
    };
    for (seed, (problem, start)) in (100..150).filter_map(|seed| Some((seed, timed::problem(seed).ok()?))) {
        if Clock::on_device(&problem, true).is_some() && problem.shape.cells() > 60 {
            add(problem, start, seed);
        }
    }
    let boundaries = ["fixed", "periodic", "mirror", "constant=0.5", "y=fixed,x=periodic", "y=clamp,x=fixed"];
    for (number, boundary) in boundaries.into_iter().enumerate() {
        let (name, extents) = [
            ("2d5pt", &[61, 131][..]),
            ("gray-scott", &[23, 67]),
            ("wave", &[45, 200]),
            ("3d7pt", &[9, 21, 67]),
            // More planes than kernels look ahead for.
            ("2d5pt", &[211, 67]),
            ("gray-scott", &[23, 67]),
        ][number];
        let boundary = if extents.len() == 3 { "periodic" } else { boundary };
        let dtype = [DType::F32, DType::F64][number % 2];
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        let mut problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
        problem.set_boundaries(Boundaries::parse(boundary, Boundary::Fixed).unwrap());
        let random = |seed| Start::Random { seed, low: 0.1, high: 0.9 };
        let start = (0..problem.program.fields().len())
            .map(|field| random(field as u64).fill(&problem.shape, dtype).unwrap());
        let start = start.collect();
        add(problem, start, number as u64);
    }
    assert!(cases.len() > 20, "{}", cases.len());
    all(&part(&cases, is_other), |(problem, start, options)| {
        let words =
            format!("{} {} {:?}, {options:?}", problem.program.name(), problem.shape, problem.boundaries);
        run(&compiler, problem, start, options).map_err(|why| format!("{words}: {why}"))
    });
}

by_parts!(
    random_programs_have_the_bits_of_the_reference,
    planes_are_chosen_in_every_schedule,
    probes_are_noted_after_each_step,
    single_sides_are_chosen_in_passes,
    conditions_of_coefficients_are_bits,
    random_numbers_have_the_bits_of_the_reference,
);

fn random_programs_have_the_bits_of_the_reference(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let has_form =
        |seed| timed::problem(seed).is_ok_and(|(problem, _)| Clock::on_device(&problem, true).is_some());
    let drawn: Vec<(u64, Options)> =
        SEEDS.filter(|&seed| has_form(seed)).flat_map(|seed| ways().map(|way| (seed, way))).collect();
    let has_own = |problem: Problem| problem.sides.iter().any(|sides| *sides != Sides::default());
    let own_boundaries =
        drawn.iter().filter(|(seed, _)| timed::problem(*seed).is_ok_and(|(p, _)| has_own(p)));
    assert!(own_boundaries.count() > 4, "too few have boundaries of single fields");
    all(&part(&drawn, is_other), |(seed, options)| {
        let (problem, start) = timed::problem(*seed).map_err(said)?;
        run(&compiler, &problem, &start, options).map_err(|why| format!("seed {seed}, {options:?}: {why}"))
    });
}

/// Random numbers in passes of several steps, whose halos draw those of the cells that they stand for.
fn random_numbers_have_the_bits_of_the_reference(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let noisy: Vec<_> = cases().unwrap().into_iter().filter(|case| case.name.starts_with("noisy")).collect();
    let all_ways: Vec<_> = noisy.iter().flat_map(|case| ways().map(|way| (case, way))).collect();
    let own: Vec<_> = match is_other {
        // Two axes, periodic, of f64; three, fixed, of f32.
        false => vec![all_ways[3 * 2 + 1], all_ways[3 * 5 + 2]],
        true => all_ways,
    };
    all(&own, |(case, options)| {
        assert!(Clock::on_device(&case.problem, true).is_some(), "{} has no plain form", case.name);
        run(&compiler, &case.problem, &case.start, options)
            .map_err(|why| format!("{}, {options:?}: {why}", case.name))
    });
}

/// Formulas that choose in some planes: from their results alone, from other values, and both; beside cells that are held, and in
/// planes that ghost planes show.
fn planes_are_chosen_in_every_schedule(is_other: bool) {
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
    all(&part(&cases, is_other), |(problem, options)| {
        let start = |seed| Start::Random { seed, low: 0.1, high: 0.9 }.fill(&problem.shape, problem.dtype);
        let start = [start(1).map_err(said)?, start(2).map_err(said)?];
        let words = format!("{} {:?}, {options:?}", problem.shape, problem.boundaries);
        run(&compiler, problem, &start, options).map_err(|why| format!("{words}: {why}"))
    });
}

/// Ghost cells of one side show others with a sign or hold a value, which kernels choose in the cells beside it. Sums begin with
/// the tap that arrives first, so that what is chosen of it is carried on.
fn single_sides_are_chosen_in_passes(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let define = |axes: usize, radius: i32| {
        let mut p = Definition::new("sides", axes);
        p.field("u", Centring::CELL).field("v", Centring::CELL);
        p.step().stage("both", |s| {
            let (u, v) = (s.field("u"), s.field("v"));
            let far = (0..axes).fold(0.25 * v.here(), |sum, axis| {
                sum + 0.0625 * (u.along(axis, -radius) - s.coord(axis) * 0.01 + u.along(axis, radius))
            });
            s.set("u", u.here() + 0.1 * u.laplacian() + far);
            s.set("v", v.along(0, -1) * 0.5 + v.along(axes - 1, 1) * 0.25);
        });
        Arc::new(p.build().unwrap())
    };
    let mut cases: Vec<(Problem, Options)> = Vec::new();
    let sides: [(usize, i32, &[&str]); 3] = [
        (2, 1, &["y-", "y+", "x-", "x+", "y", "x"]),
        (2, 2, &["y-", "y+", "x"]),
        (3, 1, &["z-", "z+", "y", "x"]),
    ];
    for (axes, radius, sides) in sides {
        let program = define(axes, radius);
        for (number, side) in sides.iter().enumerate() {
            for (turn, kind) in ["-mirror", "-reflect", "constant=0.375"].into_iter().enumerate() {
                let extents = if axes == 2 { &[37, 141][..] } else { &[9, 13, 70] };
                let dtype = [DType::F32, DType::F64][(number + turn) % 2];
                let mut problem = Problem::new(program.clone(), Shape::new(extents).unwrap(), dtype).unwrap();
                let other = if turn == 1 { Boundary::Reflect } else { Boundary::Mirror };
                let own = Boundaries::parse(&format!("{side}={kind}"), other).unwrap();
                if turn < 2 {
                    problem.set_boundaries(own);
                } else {
                    // All schedules have one number beyond a side; a field's own is chosen.
                    problem.set_boundaries(Boundaries::all(Boundary::Clamp));
                    problem.sides = vec![Sides::default(); 2];
                    problem.sides[0] =
                        Sides::all(Boundaries::parse(&format!("{side}={kind}"), Boundary::Clamp).unwrap());
                }
                assert!(Clock::on_device(&problem, true).is_some(), "{side}={kind}");
                let [own, passes, _] = ways();
                let passes = Options { depth: Depth::Steps(2 + (turn as u32) % 2), ..passes };
                cases.extend([own, passes].map(|way| (problem.clone(), way)));
            }
        }
    }
    all(&part(&cases, is_other), |(problem, options)| {
        let start = |seed| Start::Random { seed, low: 0.1, high: 0.9 }.fill(&problem.shape, problem.dtype);
        let start = [start(1).map_err(said)?, start(2).map_err(said)?];
        let words = format!("{} {:?}, {options:?}", problem.shape, problem.boundaries);
        run(&compiler, problem, &start, options).map_err(|why| format!("{words}: {why}"))
    });
}

/// Masks and other conditions of coefficients alone, of one stage and of several, at all boundaries: levels follow each other, or
/// are a plane apart.
fn conditions_of_coefficients_are_bits(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    all(&part(masked(), is_other), |case| check_masked(&compiler, case, &[]));
}

/// What asks the wrong bits is found.
#[test]
#[ignore = "kernels for each defect: minutes"]
fn defects_of_conditions_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let defects = [
        (
            "the age of a plane",
            "constexpr int BIT = (lag<LEVEL>() + D) * MASK_BITS + Y * OWN_X + X;",
            "constexpr int BIT = lag<LEVEL>() * MASK_BITS + Y * OWN_X + X;",
        ),
        (
            "the bits of a cell",
            "constexpr int BIT = (lag<LEVEL>() + D) * MASK_BITS + Y * OWN_X + X;",
            "constexpr int BIT = (lag<LEVEL>() + D) * MASK_BITS + Y * OWN_X;",
        ),
    ];
    let cases: Vec<Masked> =
        masked().into_iter().filter(|(_, options, _)| options.depth == Depth::Steps(3)).collect();
    all(&defects, |&(what, words, instead)| {
        let is_found = |case: &Masked| {
            check_masked(&compiler, case, &[(words, instead)]).is_err_and(|why| !why.contains("has 0 times"))
        };
        if cases.iter().any(is_found) { Ok(()) } else { Err(format!("the bits are right without {what}")) }
    });
}

/// A problem with conditions, a way to run it, and whether its levels are a plane apart or not where the plan's are not or are.
type Masked = (Problem, Options, bool);

fn masked() -> Vec<Masked> {
    let define = |axes: usize, has_several: bool| {
        let mut p = Definition::new("masks", axes);
        for name in ["u", "v", "wall", "k"] {
            p.field(name, Centring::CELL);
        }
        p.parameter("least", 0.5, "a bound");
        let mut step = p.step();
        step.stage("first", |s| {
            let (u, wall, k) = (s.field("u"), s.field("wall").here(), s.field("k").here());
            s.only_where(wall.gt(s.param("least")));
            s.set(
                "u",
                u.here() + (wall + k).lt(1.25).select(s.constant(0.1), s.constant(0.05)) * u.laplacian(),
            );
        });
        if has_several {
            step.stage("second", |s| {
                let (u, v) = (s.field("u"), s.field("v"));
                s.only_where(s.field("k").here().gt(0.3));
                s.set("v", v.here() * 0.5 + v.along(0, 1) * 0.25 - u.along(axes - 1, -1) * 0.125);
            });
        }
        Arc::new(p.build().unwrap())
    };
    let mut cases = Vec::new();
    for (number, boundary) in Boundary::each_plain(0.375).into_iter().enumerate() {
        for (axes, extents) in [(2, &[37, 141][..]), (3, &[9, 13, 70])] {
            let dtype = [DType::F32, DType::F64][(number + axes) % 2];
            let program = define(axes, number % 2 == 1);
            let mut problem = Problem::new(program, Shape::new(extents).unwrap(), dtype).unwrap();
            problem.set_boundaries(Boundaries::all(boundary));
            let [own, passes, deep] = ways();
            cases.extend([
                (problem.clone(), own, false),
                (problem.clone(), passes, true),
                (problem, deep, false),
            ]);
        }
    }
    cases
}

fn check_masked(
    compiler: &Compiler,
    (problem, options, apart): &Masked,
    changes: &[(&str, &str)],
) -> Result<(), String> {
    let device = DeviceSpec::preset("h200").map_err(said)?;
    let start = |seed| Start::Random { seed, low: 0.1, high: 0.9 }.fill(&problem.shape, problem.dtype);
    let mut start =
        [1, 2, 3, 4].map(start).into_iter().collect::<abide_core::Result<Vec<_>>>().map_err(said)?;
    // In some planes conditions hold everywhere, in others nowhere.
    for (field, [holding, failing]) in [(2, [0.9, 0.1]), (3, [0.32, 1.2])] {
        let planes = problem.shape.extents()[0];
        let of_plane = problem.shape.cells() / planes;
        start[field] =
            Array::from_fn(problem.dtype, problem.shape.cells(), |i| match 3 * (i / of_plane) / planes {
                0 => holding,
                1 => start[field].get(i).unwrap_or(0.0),
                _ => failing,
            });
    }
    let words = format!("{} {:?}, {options:?}", problem.shape, problem.boundaries);
    let plan = abide_planner::plan(problem, &device, options).map_err(said)?;
    let plan = match plan.warp_streaming().filter(|_| *apart) {
        Some(stream) => {
            let configuration = warp::Configuration { lag: !stream.lag, ..stream.configuration() };
            plan_configuration(problem, &device, &configuration).unwrap_or(plan)
        }
        None => plan,
    };
    if plan.warp_streaming().is_some() {
        let text = abide_shaders::cuda::kernel(problem, &plan).map_err(said)?;
        assert!(!text.contains("MASKS = 0;"), "{words}");
    }
    check(compiler, problem, &start, (problem, None), &plan, changes).map_err(|why| format!("{words}: {why}"))
}

/// Ghost rows before the domain that show rows of the next strip, which no formula taps: both sides of both axes across, strips of
/// two rows.
#[test]
fn ghost_rows_show_rows_of_other_strips() {
    let Some(compiler) = common::compiler() else { return };
    let device = DeviceSpec::preset("h200").unwrap();
    let cases: Vec<(i32, &str)> = [-2, 2]
        .into_iter()
        .flat_map(|by| ["reflect", "mirror", "-reflect"].map(|boundary| (by, boundary)))
        .collect();
    all(&cases, |&(by, boundary)| {
        let mut p = Definition::new("one side", 3);
        p.field("u", Centring::CELL);
        p.step().stage("far", |s| {
            let u = s.field("u");
            s.set("u", 0.5 * u.here() + 0.25 * u.along(1, by) + 0.125 * u.along(2, by));
        });
        let shape = Shape::new(&[7, 24, 70]).map_err(said)?;
        let mut problem =
            Problem::new(Arc::new(p.build().map_err(said)?), shape, DType::F64).map_err(said)?;
        problem.set_boundaries(Boundaries::parse(boundary, Boundary::Fixed).map_err(said)?);
        let start = vec![
            Start::Random { seed: 5, low: -1.0, high: 1.0 }.fill(&problem.shape, DType::F64).map_err(said)?,
        ];
        let options =
            Options { execution: Execution::Streaming, depth: Depth::Steps(3), ..Options::default() };
        let clock = Clock::on_device(&problem, true);
        let plain = clock.as_ref().map_or_else(|| problem.clone(), |clock| clock.plain().clone());
        let plan = abide_planner::plan(&plain, &device, &options).map_err(said)?;
        let Some(stream) = plan.warp_streaming() else { return Err("the plan does not stream".to_owned()) };
        let configuration =
            warp::Configuration { cells_per_thread: [2, 2], warps: 12, ..stream.configuration() };
        let plan = plan_configuration(&plain, &device, &configuration).ok_or("no such windows")?;
        check(&compiler, &problem, &start, (&plain, clock), &plan, &[])
            .map_err(|why| format!("{boundary}, {by}: {why}"))
    });
}
