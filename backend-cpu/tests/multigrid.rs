//! Conjugate gradients with a cycle of multigrid in a step: the solution of conjugate gradients alone, in iterations that grow little
//! with the domain, and with the reference's bits.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Solve, SolveMethod, Wall};
use abide_core::{Array, Backend, DType, Options, Problem, Program, Session, Shape};
use abide_cpu::{CpuBackend, reference};

/// An operator on a domain.
#[derive(Clone, Copy)]
struct System {
    name: &'static str,
    extents: &'static [usize],
    boundary: &'static str,
    /// Sides whose values are given, of all others the slope is by the boundary.
    walls: &'static [&'static str],
    /// The coefficient of the unknown itself.
    reaction: f64,
    /// The conductivity of cells, by a number from 0 to 1 that looks like chance and the place in units of the domain.
    conductivity: fn(f64, [f64; 3]) -> f64,
    /// The most iterations to a residual of 1e-8.
    most: f64,
}

/// Returns all systems; those that conduct evenly also without a field that says so.
fn systems() -> Vec<(System, bool)> {
    let even = SYSTEMS
        .iter()
        .filter(|system| (system.conductivity)(0.3, [0.1; 3]) == (system.conductivity)(0.9, [0.6; 3]));
    SYSTEMS.iter().map(|system| (*system, false)).chain(even.map(|system| (*system, true))).collect()
}

fn even(_: f64, _: [f64; 3]) -> f64 {
    1.0
}

/// From 1 to 100, smoothly.
fn smooth(_: f64, [z, y, x]: [f64; 3]) -> f64 {
    10f64.powf(1.0 + (6.0 * z).sin() * (5.0 * y).cos() * (4.0 * x + 1.0).sin())
}

/// A ball that nothing flows through.
fn ball(_: f64, [z, y, x]: [f64; 3]) -> f64 {
    let distance = [z, y, x].map(|at| (at - 0.4) * (at - 0.4)).iter().sum::<f64>().sqrt();
    if distance < 0.2 { 0.0 } else { 1.0 }
}

/// Each cell from 1 to 3.
fn rough(chance: f64, _: [f64; 3]) -> f64 {
    1.0 + 2.0 * chance
}

/// A disc that conducts a thousand times as well.
fn disc(_: f64, [_, y, x]: [f64; 3]) -> f64 {
    if (y - 0.5).hypot(x - 0.4) < 0.2 { 1000.0 } else { 1.0 }
}

const SYSTEMS: &[System] = &[
    System {
        name: "line",
        extents: &[37],
        boundary: "mirror",
        walls: &["x-"],
        reaction: 0.0,
        conductivity: even,
        most: 9.0,
    },
    System {
        name: "ring",
        extents: &[33],
        boundary: "periodic",
        walls: &[],
        reaction: 0.01,
        conductivity: even,
        most: 9.0,
    },
    System {
        name: "torus",
        extents: &[32, 48],
        boundary: "periodic",
        walls: &[],
        reaction: 0.0,
        conductivity: even,
        most: 8.0,
    },
    System {
        name: "odd torus",
        extents: &[31, 45],
        boundary: "periodic",
        walls: &[],
        reaction: 0.0,
        conductivity: even,
        most: 10.0,
    },
    System {
        name: "closed",
        extents: &[33, 27],
        boundary: "mirror",
        walls: &[],
        reaction: 0.0,
        conductivity: rough,
        most: 10.0,
    },
    System {
        name: "held",
        extents: &[21, 34],
        boundary: "fixed",
        walls: &[],
        reaction: 0.0,
        conductivity: even,
        most: 10.0,
    },
    System {
        name: "given",
        extents: &[35, 29],
        boundary: "y=periodic,x=mirror",
        walls: &["x"],
        reaction: 0.0,
        conductivity: smooth,
        most: 10.0,
    },
    System {
        name: "zeros",
        extents: &[35, 29],
        boundary: "constant=0",
        walls: &[],
        reaction: 0.0,
        conductivity: even,
        most: 10.0,
    },
    System {
        name: "negated",
        extents: &[16, 30],
        boundary: "-mirror",
        walls: &[],
        reaction: 0.1,
        conductivity: even,
        most: 9.0,
    },
    System {
        name: "disc",
        extents: &[40, 40],
        boundary: "mirror",
        walls: &["y-"],
        reaction: 0.0,
        conductivity: disc,
        most: 16.0,
    },
    System {
        name: "box",
        extents: &[9, 11, 14],
        boundary: "mirror",
        walls: &["z-", "x+"],
        reaction: 0.0,
        conductivity: smooth,
        most: 9.0,
    },
    System {
        name: "ball",
        extents: &[12, 13, 16],
        boundary: "mirror",
        walls: &[],
        reaction: 0.0,
        conductivity: ball,
        most: 10.0,
    },
    System {
        name: "plate",
        extents: &[3, 24, 32],
        boundary: "mirror",
        walls: &["z"],
        reaction: 0.0,
        conductivity: even,
        most: 9.0,
    },
    System {
        name: "row",
        extents: &[1, 24],
        boundary: "periodic",
        walls: &[],
        reaction: 0.1,
        conductivity: even,
        most: 8.0,
    },
    System {
        name: "cell",
        extents: &[1, 1],
        boundary: "constant=0",
        walls: &[],
        reaction: 1.0,
        conductivity: even,
        most: 3.0,
    },
];

/// Numbers from 0 to 1 that look like chance.
fn drawn(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count).map(|_| next()).collect()
}

impl System {
    fn has_null_space(&self) -> bool {
        self.reaction == 0.0 && self.walls.is_empty() && matches!(self.boundary, "periodic" | "mirror")
    }

    fn program(&self, method: SolveMethod, tolerance: f64, is_even: bool) -> Program {
        let mut p = Definition::new("flow", self.extents.len());
        p.field("u", Centring::CELL).field("k", Centring::CELL).field("f", Centring::CELL);
        for name in ["u", "k", "f"] {
            let own = if name == "u" { self.boundary } else { self.boundary_of_others() };
            p.boundary_of(name, own);
        }
        for side in self.walls {
            p.wall("u", side, |s| Wall::dirichlet(s.constant(0.7)));
        }
        let how = Solve { method, tolerance, null_space: self.has_null_space(), ..Solve::default() };
        let (axes, reaction) = (self.extents.len(), self.reaction);
        p.step().solve(
            "u",
            &how,
            &|s| {
                let (u, k) = (s.field("u"), s.field("k"));
                let flux = |axis: usize, by: i32| {
                    let (one, other) = (k.here(), k.along(axis, by));
                    let face = (one * other).gt(0.0).select(2.0 * one * other / (one + other), 0.0);
                    let face = if is_even { s.constant(1.0) } else { face };
                    face * (u.along(axis, by) - u.here())
                };
                let all = (0..axes).flat_map(|axis| [(axis, -1), (axis, 1)]).map(|(axis, by)| flux(axis, by));
                reaction * u.here() - all.reduce(|a, b| a + b).unwrap()
            },
            &|s| s.field("f").here(),
        );
        p.build().unwrap()
    }

    /// The boundary of coefficients: that of the unknown where it is periodic, else the value at the edge.
    fn boundary_of_others(&self) -> &'static str {
        match self.boundary {
            "periodic" => "periodic",
            text if text.contains("periodic") => "y=periodic,x=clamp",
            _ => "clamp",
        }
    }

    fn start(&self, problem: &Problem) -> Vec<Array> {
        let count = self.extents.iter().product();
        let chance = drawn(count, 7);
        let place = |at: usize| {
            let mut rest = at;
            let mut all = [0.0; 3];
            for (axis, &extent) in self.extents.iter().enumerate().rev() {
                all[3 - self.extents.len() + axis] = (rest % extent) as f64 / extent as f64;
                rest /= extent;
            }
            all
        };
        let k: Vec<f64> = (0..count).map(|at| (self.conductivity)(chance[at], place(at))).collect();
        let f: Vec<f64> =
            drawn(count, 8).iter().zip(&k).map(|(f, &k)| if k == 0.0 { 0.0 } else { f - 0.5 }).collect();
        let of = |values: &[f64]| Array::from_fn(problem.dtype, values.len(), |at| values[at]);
        let name = |number: usize| &*problem.program.fields()[number];
        let own = |number: usize| match name(number) {
            "k" => of(&k),
            "f" => of(&f),
            "u" if self.boundary == "fixed" => of(&drawn(count, 9)),
            _ => Array::from_fn(problem.dtype, problem.values_of(number), |_| 0.0),
        };
        (0..problem.program.fields().len()).map(own).collect()
    }
}

fn open(problem: &Problem, start: Vec<Array>) -> Box<dyn Session> {
    let backend = CpuBackend::with_threads(2).unwrap();
    let plan = backend.plan(problem, &Options::default()).unwrap();
    backend.open(problem, &plan, start).unwrap()
}

fn scalar(problem: &Problem, session: &mut dyn Session, name: &str) -> f64 {
    session.scalars().unwrap()[problem.program.scalar(name).unwrap()]
}

#[test]
fn systems_are_solved_in_few_iterations() {
    let mut wrong = Vec::new();
    for (system, is_even) in systems() {
        let shape = || Shape::new(system.extents).unwrap();
        let problem = Problem::new(
            Arc::new(system.program(SolveMethod::Multigrid, 1e-8, is_even)),
            shape(),
            DType::F64,
        )
        .unwrap();
        let start = system.start(&problem);
        let mut session = open(&problem, start);
        session.advance(1).unwrap();
        let found = session.read(0).unwrap().to_f64();
        let [iterations, residual] =
            ["u_iterations", "u_residual"].map(|name| scalar(&problem, session.as_mut(), name));
        let other =
            Problem::new(Arc::new(system.program(SolveMethod::Cg, 1e-11, is_even)), shape(), DType::F64)
                .unwrap();
        let mut session = open(&other, system.start(&other));
        session.advance(1).unwrap();
        let expected = session.read(0).unwrap().to_f64();
        let alone = scalar(&other, session.as_mut(), "u_iterations");
        let largest = expected.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        let off = expected.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / largest;
        println!(
            "{}: {iterations} iterations, {alone} alone, residual {residual:.1e}, off by {off:.1e}",
            system.name
        );
        if iterations > system.most || residual > 2e-8 || off.is_nan() || off > 1e-5 {
            wrong.push(system.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn solves_have_the_bits_of_the_reference() {
    for (system, is_even) in systems() {
        for (dtype, tolerance) in [(DType::F64, 1e-6), (DType::F32, 1e-3)] {
            let program = Arc::new(system.program(SolveMethod::Multigrid, tolerance, is_even));
            let problem = Problem::new(program, Shape::new(system.extents).unwrap(), dtype).unwrap();
            let start = system.start(&problem);
            let mut expected = start.clone();
            let scalars = reference::run_program(&problem, &mut expected, 2, |_, _, _| {}).unwrap();
            let mut session = open(&problem, start);
            session.advance(2).unwrap();
            for (field, expected) in expected.iter().enumerate() {
                let name = &problem.program.fields()[field];
                assert!(session.read(field).unwrap().same_bits(expected), "{} {dtype} {name}", system.name);
            }
            let bits = |all: Vec<f64>| all.into_iter().map(f64::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(session.scalars().unwrap()), bits(scalars), "{} {dtype}", system.name);
        }
    }
}
