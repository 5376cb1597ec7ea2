//! Streaming planes: every depth, form and division of a run keeps the bound of a step, and the bits of its parts.

mod common;

use abide_core::backend::Backend;
use abide_core::plan::planes_plans;
use abide_core::{DType, Depth, DeviceSpec, Error, Plan, Problem, Program, catalogue};
use abide_wgpu::WgpuBackend;
use common::random::{Exchange, in_parts, stencil, streaming};
use common::{backend, check_plan, problem, values};
use fastrand::Rng;

/// Any boundary that planes have, at any side.
fn boundary(rng: &mut Rng) -> String {
    let side = |rng: &mut Rng| ["fixed", "constant=0.5"][rng.usize(..2)];
    let axis = |rng: &mut Rng, letter: &str| match rng.u8(..3) {
        0 => format!("{letter}=periodic"),
        _ => format!("{letter}-={},{letter}+={}", side(rng), side(rng)),
    };
    ["z", "y", "x"].map(|letter| axis(rng, letter)).join(",")
}

/// A random plan of planes for a problem: any depth and any form that fits a GPU of as much workgroup memory, of which a compiler
/// for CPUs makes something in time.
fn random_plan(backend: &WgpuBackend, problem: &Problem, rng: &mut Rng) -> Option<Plan> {
    let depth = rng.u32(1..=5);
    let device = DeviceSpec { registers_per_thread: 64, ..backend.device().clone() };
    let mut plans = planes_plans(problem, &device, &streaming(Depth::Steps(depth))).unwrap();
    (!plans.is_empty()).then(|| plans.swap_remove(rng.usize(..plans.len())))
}

/// The bound of a step holds whatever the depth, the form and the calls; random stencils, extents and boundaries.
#[test]
fn depth_form_and_calls_leave_the_bound_as_it_is() {
    let Some(backend) = backend() else { return };
    let mut tried = 0;
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let program = match seed % 4 {
            0 => Program::sequence("exchange", &[&Exchange(true), &Exchange(false)]).unwrap(),
            _ => stencil(&mut rng),
        };
        if program.dimensions() == 1 {
            continue;
        }
        let most = [0, 0, 150, 30][program.dimensions()];
        let extents: Vec<usize> = (0..program.dimensions()).map(|_| rng.usize(1..=most)).collect();
        let dtype = if rng.bool() { DType::F32 } else { DType::F64 };
        let boundary = boundary(&mut rng);
        let Ok(problem) = problem(program, &extents, dtype, &boundary) else { continue };
        let Some(plan) = random_plan(&backend, &problem, &mut rng) else { continue };
        let fields = values(&problem, seed);
        println!("seed {seed}: {} {} {boundary} {}", problem.program.name(), problem.shape, plan.summary());
        check_plan(&backend, &problem, &plan, &fields, 4);
        let steps = 2 * u64::from(plan.depth) + rng.u64(1..=3);
        let first = in_parts(&backend, &problem, &plan, &fields, steps, &mut rng);
        let second = in_parts(&backend, &problem, &plan, &fields, steps, &mut rng);
        let same = first.iter().zip(&second).all(|(a, b)| a.same_bits(b));
        assert!(same, "seed {seed}: {steps} steps by {}", plan.summary());
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}
