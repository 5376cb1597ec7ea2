//! Programs grown from random choices, of one and two stages, on random domains.

use std::sync::Arc;

use abide_core::{
    Array, Boundaries, Boundary, DType, Expr, Parameter, Problem, Program, Real, Scope, Shape, Stencil,
};
use proptest::prelude::*;
use proptest::sample::select;

type Choices = Vec<(u8, u8, u8, u8)>;

/// A stencil grown from random choices: each new node takes operands among the earlier ones.
#[derive(Debug, Clone)]
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
                if i < 100 {
                    all[all.len() - 1 - i as usize % all.len().min(3)]
                } else {
                    all[i as usize % all.len()]
                }
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
    select([Boundary::each_alone(0.75), Boundary::each_alone(-2.0)].concat())
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

/// A program on a domain, with its initial values and the number of steps.
#[derive(Debug, Clone)]
pub struct Case {
    stages: Vec<Grown>,
    extents: [usize; 3],
    boundaries: [[Boundary; 2]; 3],
    /// Steps of two calls.
    pub steps: [u64; 2],
    seed: u64,
}

impl Case {
    /// Returns the problem in a type; `None` where the domain is too small for the program's schedules of several steps.
    pub fn problem(&self, dtype: DType) -> Option<Problem> {
        let stages: Vec<&dyn Stencil> = self.stages.iter().map(|stage| stage as &dyn Stencil).collect();
        let program = Arc::new(Program::sequence("grown", &stages).ok()?);
        let shape = Shape::new(&self.extents[3 - self.stages[0].dimensions..]).ok()?;
        let mut problem = Problem::unchecked(program, shape, dtype);
        problem.set_boundaries(Boundaries(self.boundaries));
        problem.parameters = vec![0.3, -1.0];
        (problem.is_plain() && problem.check().is_ok()).then_some(problem)
    }

    /// Returns the fields' initial values.
    pub fn fields(&self, problem: &Problem) -> Vec<Array> {
        let field = |number: usize| {
            let (cells, seed) = (problem.shape.cells(), (self.seed >> 2) + number as u64);
            match problem.dtype {
                DType::F32 => f32::into_array(values(cells, seed)),
                DType::F64 => f64::into_array(values(cells, seed)),
            }
        };
        (0..problem.program.fields().len()).map(field).collect()
    }
}

/// Returns cases of any kind.
pub fn cases() -> impl Strategy<Value = Case> {
    let choices = |range| prop::collection::vec(any::<(u8, u8, u8, u8)>(), range);
    let stages = (1usize..=3, choices(2..40), prop::option::of(choices(2..20)));
    let domain = ([1usize..9, 1usize..12, 1usize..40], [sides(), sides(), sides()]);
    (stages, domain, [0u64..7, 0u64..3], any::<u64>()).prop_map(
        |((dimensions, first, second), (extents, boundaries), steps, seed)| {
            let grown = |choices| Grown { dimensions, choices };
            let stages = std::iter::once(first).chain(second).map(grown).collect();
            Case { stages, extents, boundaries, steps, seed }
        },
    )
}
