//! Launches per stage of plain stencils, run without a GPU: quotients and roots at once, in tiles in shared memory and where taps
//! read device memory, of one plane and of several.
#![cfg(target_os = "linux")]

use crate::common;

use std::sync::Arc;

use abide_core::program::{Centring, Definition};
use abide_core::{
    Array, Boundaries, Boundary, DType, DeviceSpec, Execution, Options, Plan, Problem, Program, Shape,
    catalogue,
};
use abide_emulator::{Compiler, Launch, all};
use abide_planner::plan;

use common::ODD_OPERANDS;

/// A star of quotients and roots, of a field and of a coefficient.
fn divided(dimensions: usize) -> Program {
    let mut p = Definition::new("divided", dimensions);
    p.field("a", Centring::CELL).field("b", Centring::CELL);
    p.step().stage("divided", |s| {
        let (a, b) = (s.field("a"), s.field("b"));
        let others = (0..dimensions).map(|axis| b.here() / a.along(axis, -1));
        let sum = others.reduce(|sum, next| sum + next).unwrap_or_else(|| s.constant(0.0));
        let beside = a.along(dimensions - 1, 1) / b.here();
        s.set("a", beside + a.here() / 3.0 + sum + b.here().sqrt());
    });
    p.build().unwrap()
}

fn planned(problem: &Problem) -> Plan {
    // An H200 of one multiprocessor, whose blocks have several planes in small domains, too.
    let device = DeviceSpec { multiprocessors: 1, ..DeviceSpec::preset("h200").unwrap() };
    plan(problem, &device, &Options { execution: Execution::Stepwise, ..Options::default() }).unwrap()
}

/// Runs a step of a plan's kernel, in which `words` are replaced, and compares its bits with the reference's.
fn check(
    compiler: &Compiler,
    problem: &Problem,
    start: &[Array],
    [words, instead]: [&str; 2],
) -> Result<(), String> {
    let plan = planned(problem);
    let text = abide_shaders::cuda::kernel(problem, &plan).map_err(|error| error.to_string())?;
    if !words.is_empty() && !text.contains(words) {
        return Err(format!("the kernel has no {words}"));
    }
    let launch = Launch::compile(compiler, problem, &plan, 900, 1, &text.replace(words, instead))?;
    let mut expected = start.to_vec();
    abide_cpu::reference::advance(problem, &mut expected, 1).map_err(|error| error.to_string())?;
    let found = launch.run(start, [&problem.parameters, &[]], 0)?;
    for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
        if !Array::from_bytes(problem.dtype, &found).same_bits(expected) {
            let name = &problem.program.fields()[number];
            return Err(format!("{} {}: {name} has not the reference's bits", problem.shape, problem.dtype));
        }
    }
    Ok(())
}

fn starts(problem: &Problem, ordinary: bool) -> Vec<Array> {
    let mut random = fastrand::Rng::with_seed(17);
    let mut drawn = |_| match ordinary || random.u8(..4) > 0 {
        true => 0.5 + random.f64(),
        false => ODD_OPERANDS[random.usize(..ODD_OPERANDS.len())],
    };
    let fields = problem.program.fields().iter();
    fields.map(|_| Array::from_fn(problem.dtype, problem.shape.cells(), &mut drawn)).collect()
}

#[test]
fn quotients_and_roots_have_the_references_bits_in_a_launch_per_stage() {
    let Some(compiler) = common::compiler() else { return };
    // Tiles in shared memory, and taps of device memory.
    let cases: [(&[usize], &str, DType); 4] = [
        (&[1003], "mirror", DType::F32),
        (&[37, 141], "y=fixed,x=periodic", DType::F64),
        (&[7, 19, 45], "z=clamp,y=constant=2,x=fixed", DType::F32),
        (&[7, 19, 45], "z=periodic,y=mirror,x=clamp", DType::F64),
    ];
    all(&cases, |&(extents, boundary, dtype)| {
        let program = Arc::new(divided(extents.len()));
        assert!(program.is_plain());
        let mut problem = Problem::new(program, Shape::new(extents).unwrap(), dtype).unwrap();
        problem.set_boundaries(Boundaries::parse(boundary, Boundary::Fixed).unwrap());
        let start = starts(&problem, false);
        check(&compiler, &problem, &start, ["exact.divide(", "exact.divide("])?;
        if extents.len() < 2 {
            return Ok(());
        }
        let defect = ["if (__builtin_expect(at_once.is_odd(), false))", "if (false)"];
        match check(&compiler, &problem, &start, defect) {
            Err(why) if why.contains("reference's bits") => Ok(()),
            Err(why) => Err(why),
            Ok(()) => Err(format!("{extents:?} {dtype}: odd operands are not found out")),
        }
    });
}

/// Blocks of several planes, at the ends of domains that they do not divide.
#[test]
fn blocks_of_several_planes_have_the_references_bits() {
    let Some(compiler) = common::compiler() else { return };
    let boundaries = ["z=fixed,y=periodic,x=fixed", "z=mirror,y=clamp,x=constant=0.5"];
    all(&boundaries, |&boundary| {
        let program = Arc::new(catalogue::find("acoustic").unwrap().program(3).unwrap());
        let shape = Shape::new(&[19, 26, 45]).unwrap();
        let mut problem = Problem::new(program, shape, DType::F32).unwrap();
        problem.set_boundaries(Boundaries::parse(boundary, Boundary::Fixed).unwrap());
        let plan = planned(&problem);
        assert_eq!(plan.stepwise().map(|tiles| (tiles.tile, tiles.threads)), Some(([8, 4, 32], [1, 4, 32])));
        check(&compiler, &problem, &starts(&problem, true), [""; 2])
    });
}
