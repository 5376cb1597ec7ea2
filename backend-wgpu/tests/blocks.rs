//! Windows of several steps: every depth, tile and division of a run keeps the bound of a step, and the bits of its parts.

mod common;

use abide_core::backend::Backend;
use abide_core::plan::blocks_plans;
use abide_core::{
    Array, DType, Depth, DeviceSpec, Error, Execution, LinearStencil, Options, Parameter, Plan, Problem, Program,
    Scope, Stencil, catalogue,
};
use abide_wgpu::WgpuBackend;
use common::{backend, check_plan, problem, read_all, values};
use fastrand::Rng;

fn streaming(depth: Depth) -> Options {
    Options { execution: Execution::Streaming, depth, ..Options::default() }
}

fn entry(name: &str, dimensions: usize) -> Program {
    catalogue::find(name).unwrap().program(dimensions).unwrap()
}

/// A linear stencil of a few random taps, whose weights sum to less than 1.
fn stencil(rng: &mut Rng) -> Program {
    let dimensions = rng.usize(1..=3);
    let reach = rng.i32(1..=if dimensions == 3 { 2 } else { 3 });
    let count = rng.usize(2..=7).min((2 * reach as usize + 1).pow(dimensions as u32));
    let mut taps: Vec<(Vec<i32>, f64)> = Vec::new();
    while taps.len() < count {
        let offset: Vec<i32> = (0..dimensions).map(|_| rng.i32(-reach..=reach)).collect();
        if !taps.iter().any(|(other, _)| *other == offset) {
            taps.push((offset, (0.1 + rng.f64()) / 8.0));
        }
    }
    let made = match dimensions {
        1 => LinearStencil::new("random", &taps.iter().map(|(o, w)| ([o[0]], *w)).collect::<Vec<_>>()),
        2 => LinearStencil::new("random", &taps.iter().map(|(o, w)| ([o[0], o[1]], *w)).collect::<Vec<_>>()),
        _ => LinearStencil::new("random", &taps.iter().map(|(o, w)| ([o[0], o[1], o[2]], *w)).collect::<Vec<_>>()),
    };
    Program::new(&made.unwrap()).unwrap()
}

/// Two stages that read each other's fields at a distance, a coefficient away from the cell, a coordinate and a parameter.
struct Exchange(bool);

impl Stencil for Exchange {
    fn name(&self) -> &str {
        if self.0 { "first" } else { "second" }
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn fields(&self) -> Vec<String> {
        ["u", "v", "k"].map(str::to_owned).to_vec()
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::new("c", 0.25, "a factor")]
    }

    fn define(&self, s: &Scope<'_>) {
        let (u, v, k, c) = (s.field("u"), s.field("v"), s.field("k"), s.param("c"));
        if self.0 {
            s.set("u", 0.5 * u.at([0, -2]) + c * v.at([1, 0]) * k.at([0, 1]) + 1e-3 * s.coord(1));
        } else {
            s.set("v", 0.4 * u.at([-1, 1]) + 0.3 * v.at([0, 1]) - 1e-3 * s.coord(0));
            s.set("u", u.here() * c + v.here() * 0.25);
        }
    }
}

/// Runs `steps` steps in calls of random length.
fn in_parts(
    backend: &WgpuBackend,
    problem: &Problem,
    plan: &Plan,
    fields: &[Array],
    steps: u64,
    rng: &mut Rng,
) -> Vec<Array> {
    let mut session = backend.open(problem, plan, fields.to_vec()).unwrap();
    let mut left = steps;
    while left > 0 {
        let now = rng.u64(1..=left);
        session.advance(now).unwrap();
        left -= now;
    }
    read_all(session.as_mut(), problem)
}

fn boundary(rng: &mut Rng) -> String {
    let side = |rng: &mut Rng| ["fixed", "mirror", "constant=0.5"][rng.usize(..3)];
    let axis = |rng: &mut Rng, letter: &str| match rng.u8(..4) {
        0 => format!("{letter}=periodic"),
        _ => format!("{letter}-={},{letter}+={}", side(rng), side(rng)),
    };
    ["z", "y", "x"].map(|letter| axis(rng, letter)).join(",")
}

/// A random plan of windows for a problem: any depth and any form that fits a GPU of as much workgroup memory.
fn random_plan(backend: &WgpuBackend, problem: &Problem, rng: &mut Rng) -> Option<Plan> {
    let depth = rng.u32(1..=9);
    let device = DeviceSpec { registers_per_thread: 64, ..backend.device().clone() };
    let mut plans = blocks_plans(problem, &device, &streaming(Depth::Steps(depth))).unwrap();
    (!plans.is_empty()).then(|| plans.swap_remove(rng.usize(..plans.len())))
}

/// The bound of a step holds whatever the depth, the window and the calls; random stencils, extents and boundaries.
#[test]
fn depth_tile_and_submissions_leave_the_bound_as_it_is() {
    let Some(backend) = backend() else { return };
    let mut tried = 0;
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let program = match seed % 4 {
            0 => Program::sequence("exchange", &[&Exchange(true), &Exchange(false)]).unwrap(),
            _ => stencil(&mut rng),
        };
        let most = [0, 700, 90, 24][program.dimensions()];
        let extents: Vec<usize> = (0..program.dimensions()).map(|_| rng.usize(1..=most)).collect();
        let dtype = if rng.bool() { DType::F32 } else { DType::F64 };
        let boundary = boundary(&mut rng);
        let Ok(problem) = problem(program, &extents, dtype, &boundary) else { continue };
        let Some(plan) = random_plan(&backend, &problem, &mut rng) else { continue };
        let fields = values(&problem, seed);
        check_plan(&backend, &problem, &plan, &fields, 4);
        let steps = u64::from(plan.depth) + rng.u64(1..=7);
        let first = in_parts(&backend, &problem, &plan, &fields, steps, &mut rng);
        let second = in_parts(&backend, &problem, &plan, &fields, steps, &mut rng);
        let same = first.iter().zip(&second).all(|(a, b)| a.same_bits(b));
        assert!(same, "seed {seed}: {steps} steps by {}", plan.summary());
        tried += 1;
    }
    assert!(tried > 25, "{tried}");
}

/// Small domains in one window, for hundreds of steps a dispatch.
#[test]
fn a_small_domain_stays_in_one_window() {
    let Some(backend) = backend() else { return };
    for (name, extents) in
        [("1d3pt", vec![777]), ("2d9pt", vec![29, 31]), ("fdtd-tm", vec![17, 19]), ("3d7pt", vec![7, 6, 9])]
    {
        for boundary in ["fixed", "periodic", "mirror", "constant=0.5"] {
            let problem = problem(entry(name, extents.len()), &extents, DType::F32, boundary).unwrap();
            let plan = backend.plan(&problem, &streaming(Depth::Auto)).unwrap();
            let blocks = plan.blocks().unwrap();
            assert!(blocks.blocks == [1; 3] && plan.depth > 100, "{}", plan.summary());
            check_plan(&backend, &problem, &plan, &values(&problem, 1), 3);
            let fields = values(&problem, 2);
            let mut session = backend.open(&problem, &plan, fields.clone()).unwrap();
            session.advance(700).unwrap();
            let found = in_parts(&backend, &problem, &plan, &fields, 700, &mut Rng::with_seed(3));
            assert!(found[0].same_bits(&session.read(0).unwrap()), "{name} {boundary}");
        }
    }
}

#[test]
fn what_no_window_holds_is_refused_with_a_reason() {
    let Some(backend) = backend() else { return };
    let wide = LinearStencil::new("wide", &[([-200, 0], 0.25), ([0, 0], 0.5), ([0, 200], 0.25)]).unwrap();
    let problem = problem(Program::new(&wide).unwrap(), &[703, 503], DType::F32, "fixed").unwrap();
    let error = backend.plan(&problem, &streaming(Depth::Steps(50))).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }) && error.to_string().contains("50 steps deep"), "{error}");
    let auto = backend.plan(&problem, &Options::default()).unwrap();
    assert_eq!(auto.execution, Execution::Stepwise);
    let why = "not streaming, for that cannot: windows of several steps";
    assert!(auto.notes.iter().any(|note| note.starts_with(why)), "{:?}", auto.notes);
}
