//! Random programs on random domains: the threaded path against the reference, bit for bit.

use std::sync::Arc;

use abide_core::plan::{Rows, Schedule, Wavefront, plan_rows};
use abide_core::{
    Array, Boundaries, Boundary, DType, Execution, Expr, Options, Parameter, Problem, Program, Real, Scope, Session,
    Shape, Stencil,
};
use proptest::prelude::*;

use crate::device::machine;
use crate::reference;
use crate::session::{Threaded, Workers};

type Choices = Vec<(u8, u8, u8, u8)>;

/// A stencil grown from random choices: each new node takes operands among the earlier ones.
struct Grown {
    dimensions: usize,
    choices: Choices,
}

impl Stencil for Grown {
    fn name(&self) -> &str {
        "grown"
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn fields(&self) -> Vec<String> {
        ["u", "v", "k"].map(str::to_owned).to_vec()
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::new("p", 0.3, ""), Parameter::new("q", -1.0, "")]
    }

    fn define(&self, s: &Scope<'_>) {
        let mut all: Vec<Expr<'_>> = Vec::new();
        for (name, step) in [("u", 1), ("v", 2), ("k", 1)] {
            let field = s.field(name);
            all.push(field.here());
            for axis in 0..self.dimensions {
                all.push(field.along(axis, -1));
                all.push(field.along(axis, step));
            }
        }
        all.push(s.field("u").at_slice(&[-2, 1, 1][..self.dimensions]));
        all.extend([s.param("p"), s.param("q"), s.constant(0.25), s.constant(-0.0), s.constant(1.0)]);
        all.extend((0..self.dimensions).map(|axis| s.coord(axis)));
        let leaves = all.len();
        for &(op, a, b, c) in &self.choices {
            // Recent nodes are preferred, so that long sums and deep formulas arise.
            let recent = |i: u8| {
                if i < 100 { all[all.len() - 1 - i as usize % all.len().min(3)] } else { all[i as usize % all.len()] }
            };
            let (a, b, c) = (recent(a), recent(b), recent(c));
            all.push(match op % 24 {
                0..4 => a + b,
                4..6 => a - b,
                6..8 => a * b,
                8..12 => all[b.id() as usize % leaves].mul_add(all[a.id() as usize % leaves], c),
                12 => a / b,
                13 => a.mul_add(b, c),
                14 => a.min(b),
                15 => a.max(b),
                16 => a.select(b, c),
                17 => -a,
                18 => a.abs().sqrt(),
                19 => a.lt(b),
                20 => a.sin(),
                21 => a.abs().pow(b),
                22 => a.tanh(),
                _ => s.sum(0..40, |i| if i % 3 == 0 { a } else { all[i % leaves] }),
            });
        }
        let last = all.len() - 1;
        s.set("u", all[last]);
        s.set("v", all[last - last % 3 / 2]);
    }
}

fn boundary() -> impl Strategy<Value = Boundary> {
    prop_oneof![
        Just(Boundary::Fixed),
        Just(Boundary::Mirror),
        Just(Boundary::Constant(0.75)),
        Just(Boundary::Constant(-2.0))
    ]
}

fn sides() -> impl Strategy<Value = [Boundary; 2]> {
    prop_oneof![Just([Boundary::Periodic; 2]), [boundary(), boundary()]]
}

fn values<T: Real>(len: usize, seed: u64) -> Vec<T> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let special = [0.0, -0.0, f64::INFINITY, f64::NAN, 1e-310];
    (0..len)
        .map(|_| T::from_f64(if rng.u8(..) == 0 { special[rng.usize(..5)] } else { rng.f64() * 4.0 - 2.0 }))
        .collect()
}

/// A way to run: a launch a stage, or passes so deep, in so many tiles, by threads that keep their tiles or not.
#[derive(Debug, Clone)]
struct Way {
    chunk: usize,
    fused: bool,
    tiled: Option<(u32, [usize; 3], usize, bool)>,
}

fn ways() -> impl Strategy<Value = Way> {
    let tiled = (1u32..6, [1usize..4, 1usize..4, 1usize..4], 1usize..4, any::<bool>());
    let chunk = prop::sample::select(vec![1usize, 3, 8, 512]);
    (chunk, any::<bool>(), prop::option::weighted(0.8, tiled)).prop_map(|(chunk, fused, tiled)| Way {
        chunk,
        fused,
        tiled,
    })
}

fn check<T: Real>(problem: &Problem, way: &Way, steps: [u64; 2], seed: u64) -> Result<(), TestCaseError> {
    let cells = problem.shape.cells();
    let fields: Vec<Vec<T>> = (0..problem.program.fields().len() as u64).map(|f| values(cells, seed + f)).collect();
    let mut expected: Vec<Array> = fields.iter().cloned().map(T::into_array).collect();
    reference::advance(problem, &mut expected, steps[0] + steps[1]).unwrap();
    let mut plan = plan_rows(problem, &machine(2, 20e9), &Options::default()).unwrap();
    let wavefront = way.tiled.map(|(depth, tiles, block, persistent)| {
        plan.depth = depth;
        plan.execution = if persistent { Execution::Persistent } else { Execution::Streaming };
        Wavefront { tiles, tile: [0; 3], block, ring_bytes: 0, overlap: 1.0 }
    });
    let rows = Rows { threads: 3, pinned: false, chunk: way.chunk, wavefront };
    plan.schedule = Schedule::Rows(rows.clone());
    let mut session = Threaded::open(problem, &plan, &rows, Workers::default(), way.fused, fields).unwrap();
    session.advance(steps[0]).unwrap();
    session.advance(steps[1]).unwrap();
    for (field, expected) in expected.iter().enumerate() {
        let found = session.read(field).unwrap();
        prop_assert!(found.same_bits(expected), "field {field}, ulp {:?}", found.ulp_distance(expected));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn threaded_has_the_bits_of_the_reference(
        dimensions in 1usize..=3,
        choices in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 2..40),
        extents in [1usize..9, 1usize..12, 1usize..40],
        boundaries in [sides(), sides(), sides()],
        second in prop::option::of(prop::collection::vec(any::<(u8, u8, u8, u8)>(), 2..20)),
        way in ways(),
        steps in [0u64..7, 0u64..3],
        seed: u64,
    ) {
        let first = Grown { dimensions, choices };
        let second = second.map(|choices| Grown { dimensions, choices });
        let stages: Vec<&dyn Stencil> = std::iter::once(&first).chain(&second).map(|stage| stage as &dyn Stencil).collect();
        let program = Arc::new(Program::sequence("grown", &stages).unwrap());
        let shape = Shape::new(&extents[3 - dimensions..]).unwrap();
        let parameters = vec![0.3, -1.0];
        for dtype in [DType::F32, DType::F64] {
            let problem = Problem { program: program.clone(), shape, dtype, boundaries: Boundaries(boundaries), parameters: parameters.clone() };
            if problem.check().is_err() {
                continue;
            }
            match dtype {
                DType::F32 => check::<f32>(&problem, &way, steps, seed >> 2)?,
                DType::F64 => check::<f64>(&problem, &way, steps, seed >> 2)?,
            }
        }
    }
}
