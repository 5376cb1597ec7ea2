//! Random programs, boundaries and cuts of a run.

use abide_core::backend::Backend;
use abide_core::{
    Array, Boundary, Depth, DeviceSpec, Execution, LinearStencil, Options, Parameter, Plan, Problem, Program,
    Result, Scope, Stencil,
};
use abide_wgpu::WgpuBackend;
use fastrand::Rng;

use super::read_all;

/// Returns options for overlapped tiling.
pub fn overlapped(depth: Depth) -> Options {
    Options { execution: Execution::Overlapped, depth, ..Options::default() }
}

/// Returns options for 2.5-D streaming.
pub fn streaming(depth: Depth) -> Options {
    Options { execution: Execution::Streaming, depth, ..Options::default() }
}

/// Makes a program: every fourth time, stages that exchange fields; every eighth time, also with a stage
/// behind them that taps no neighbour; else a stencil.
pub fn program(seed: u64, rng: &mut Rng) -> Program {
    let [first, second] = [Exchange(true), Exchange(false)];
    match seed % 8 {
        0 => Program::sequence("exchange", &[&first, &second]).unwrap(),
        4 => Program::sequence("exchange and damp", &[&first, &Damp(2), &second, &Damp(2)]).unwrap(),
        _ => stencil(rng),
    }
}

/// Picks one of a family's plans of a depth, among those that fit a GPU with as much workgroup memory and
/// that a compiler for CPUs handles in time; none for axes shorter than the taps reach.
pub fn pick(
    backend: &WgpuBackend,
    problem: &Problem,
    family: fn(&Problem, &DeviceSpec, &Options) -> Result<Vec<Plan>>,
    depth: u32,
    rng: &mut Rng,
) -> Option<Plan> {
    let device = DeviceSpec { registers_per_thread: Some(64), ..backend.device().clone() };
    if !problem.is_plain() {
        return None;
    }
    let mut plans = family(problem, &device, &streaming(Depth::Steps(depth))).unwrap();
    (!plans.is_empty()).then(|| plans.swap_remove(rng.usize(..plans.len())))
}

/// Checks that a run has the same bits however it is cut.
pub fn check_cuts(
    backend: &WgpuBackend,
    problem: &Problem,
    plan: &Plan,
    fields: &[Array],
    steps: u64,
    rng: &mut Rng,
) {
    let first = in_parts(backend, problem, plan, fields, steps, rng);
    let second = in_parts(backend, problem, plan, fields, steps, rng);
    let same = first.iter().zip(&second).all(|(a, b)| a.same_bits(b));
    assert!(same, "{} {}: {steps} steps by {}", problem.program.name(), problem.shape, plan.summary());
}

/// Makes a linear stencil of a few random taps, whose weights sum to less than 1.
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
        _ => LinearStencil::new(
            "random",
            &taps.iter().map(|(o, w)| ([o[0], o[1], o[2]], *w)).collect::<Vec<_>>(),
        ),
    };
    Program::new(&made.unwrap()).unwrap()
}

/// Two stages that read each other's fields at a distance, a coefficient away from the cell, a coordinate and
/// a parameter.
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

/// A stage, on the given number of axes, that changes both fields and taps none of their neighbours.
pub struct Damp(pub usize);

impl Stencil for Damp {
    fn name(&self) -> &str {
        "damp"
    }

    fn dimensions(&self) -> usize {
        self.0
    }

    fn fields(&self) -> Vec<String> {
        ["u", "v"].map(str::to_owned).to_vec()
    }

    fn define(&self, s: &Scope<'_>) {
        let (u, v) = (s.field("u").here(), s.field("v").here());
        s.set("u", u * 0.75 + v * 0.125);
        s.set("v", v * 0.5 - u * 0.25);
    }
}

/// Runs `steps` steps in calls of random length.
pub fn in_parts(
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

/// Returns any of the boundaries that are allowed at any side, or periodic axes.
pub fn boundary(rng: &mut Rng, is_allowed: fn(Boundary) -> bool) -> String {
    let mut sides = Boundary::each_alone(0.5);
    sides.retain(|&side| is_allowed(side));
    let side = |rng: &mut Rng| sides[rng.usize(..sides.len())].to_string();
    let axis = |rng: &mut Rng, letter: &str| match rng.u8(..=sides.len() as u8) {
        0 => format!("{letter}=periodic"),
        _ => format!("{letter}-={},{letter}+={}", side(rng), side(rng)),
    };
    ["z", "y", "x"].map(|letter| axis(rng, letter)).join(",")
}
