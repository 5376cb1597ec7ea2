//! Random formulas: trees of operators over two fields, on random domains.

use std::sync::Arc;

use abide_core::expr::{Binary, Expr, Node, Unary};
use abide_core::{Boundaries, Boundary, DType, Parameter, Problem, Program, Result, Scope, Shape, Stencil};
use proptest::prelude::*;
use proptest::sample::Index;

/// An expression that has no graph yet.
#[derive(Debug, Clone)]
enum Formula {
    Constant(f64),
    Parameter,
    /// The cell's index divided by 16, so that it stays in the range of the fields.
    Coordinate(usize),
    Tap(bool, [i32; 3]),
    Unary(Unary, Box<Formula>),
    Binary(Binary, Box<[Formula; 2]>),
    Fma(Box<[Formula; 3]>),
    Select(Box<[Formula; 3]>),
}

impl Formula {
    fn build<'g>(&self, s: &Scope<'g>) -> Expr<'g> {
        let node = |node| s.constant(0.0).graph().add(node);
        let axes = s.dimensions();
        match self {
            Formula::Constant(value) => s.constant(*value),
            Formula::Parameter => s.param("p"),
            Formula::Coordinate(axis) => s.coord(axis % axes) * 0.0625,
            Formula::Tap(second, offset) => {
                s.field(if *second { "b" } else { "a" }).at_slice(&offset[3 - axes..])
            }
            Formula::Unary(op, a) => node(Node::Unary(*op, a.build(s).id())),
            Formula::Binary(op, ab) => node(Node::Binary(*op, ab[0].build(s).id(), ab[1].build(s).id())),
            Formula::Fma(abc) => abc[0].build(s).mul_add(abc[1].build(s), abc[2].build(s)),
            Formula::Select(abc) => abc[0].build(s).select(abc[1].build(s), abc[2].build(s)),
        }
    }

    /// Returns a formula whose value, on the magnitudes of the fields, bounds every intermediate value of
    /// this one.
    fn majorant(&self) -> Formula {
        let sum = |parts: &[Formula]| {
            let add = |a, b| Formula::Binary(Binary::Add, Box::new([a, b]));
            parts.iter().map(Formula::majorant).reduce(add).unwrap_or(Formula::Constant(0.0))
        };
        match self {
            Formula::Constant(value) => Formula::Constant(value.abs()),
            Formula::Parameter | Formula::Coordinate(_) | Formula::Tap(..) => self.clone(),
            Formula::Unary(_, a) => a.majorant(),
            Formula::Binary(Binary::Mul, ab) => {
                Formula::Binary(Binary::Mul, Box::new([ab[0].majorant(), ab[1].majorant()]))
            }
            Formula::Binary(_, ab) => sum(ab.as_slice()),
            Formula::Fma(abc) => {
                Formula::Fma(Box::new([abc[0].majorant(), abc[1].majorant(), abc[2].majorant()]))
            }
            Formula::Select(abc) => sum(&abc[1..]),
        }
    }
}

/// Makes a random formula. A tame formula has no operator that makes a large difference of a small one: no
/// division, root or comparison.
fn formula(tame: bool) -> impl Strategy<Value = Formula> {
    let leaf = prop_oneof![
        2 => (-2.0..2.0f64).prop_map(Formula::Constant),
        1 => Just(Formula::Parameter),
        1 => (0..3usize).prop_map(Formula::Coordinate),
        6 => (any::<bool>(), [-2..=2, -2..=2, -2..=2]).prop_map(|(second, offset)| Formula::Tap(second, offset)),
    ];
    let unary = if tame { vec![Unary::Neg, Unary::Abs] } else { Unary::ALL.to_vec() };
    let mut binary = vec![Binary::Add, Binary::Sub, Binary::Mul, Binary::Min, Binary::Max];
    if !tame {
        use Binary::{Div, Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual, Pow};
        binary.extend([
            Div,
            Div,
            Less,
            LessEqual,
            Greater,
            GreaterEqual,
            Equal,
            NotEqual,
            Pow,
            Binary::Atan2,
        ]);
    }
    leaf.prop_recursive(5, 40, 3, move |inner| {
        let three = || [inner.clone(), inner.clone(), inner.clone()].prop_map(Box::new);
        let (unary, binary) = (proptest::sample::select(unary.clone()), proptest::sample::select(binary.clone()));
        prop_oneof![
            1 => (unary, inner.clone()).prop_map(|(op, a)| Formula::Unary(op, Box::new(a))),
            4 => (binary, [inner.clone(), inner.clone()]).prop_map(|(op, ab)| Formula::Binary(op, Box::new(ab))),
            2 => three().prop_map(Formula::Fma),
            u32::from(!tame) => three().prop_map(Formula::Select),
        ]
    })
}

/// A stage that sets one field or both.
#[derive(Debug, Clone)]
struct Random {
    axes: usize,
    a: Formula,
    b: Option<Formula>,
}

impl Stencil for Random {
    fn name(&self) -> &str {
        "random"
    }

    fn dimensions(&self) -> usize {
        self.axes
    }

    fn fields(&self) -> Vec<String> {
        vec!["a".to_owned(), "b".to_owned()]
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::new("p", 0.7, "any number")]
    }

    fn define(&self, s: &Scope<'_>) {
        s.set("a", self.a.build(s));
        if let Some(b) = &self.b {
            s.set("b", b.build(s));
        }
    }
}

/// A program of one or two stages on a domain.
#[derive(Debug, Clone)]
pub struct Case {
    stages: Vec<Random>,
    extents: [usize; 3],
    boundaries: Boundaries,
    /// The type of all fields.
    pub dtype: DType,
    /// A random number that chooses a way to run.
    pub variant: usize,
}

impl Case {
    /// Returns the problem.
    pub fn problem(&self) -> Result<Problem> {
        self.problem_of(&self.stages)
    }

    fn problem_of(&self, stages: &[Random]) -> Result<Problem> {
        let stages: Vec<&dyn Stencil> = stages.iter().map(|stage| stage as &dyn Stencil).collect();
        let program = Program::sequence("random", &stages)?;
        let shape = Shape::new(&self.extents[3 - self.stages[0].axes..])?;
        let mut problem = Problem::unchecked(Arc::new(program), shape, self.dtype);
        problem.set_boundaries(self.boundaries);
        problem.check()?;
        Ok(problem)
    }

    /// Returns the problem whose values bound this one's.
    pub fn majorant(&self) -> Result<Problem> {
        let stage = |stage: &Random| Random {
            a: stage.a.majorant(),
            b: stage.b.as_ref().map(Formula::majorant),
            ..stage.clone()
        };
        let mut problem = self.problem_of(&self.stages.iter().map(stage).collect::<Vec<_>>())?;
        let mut boundaries = problem.boundaries;
        for side in boundaries.0.iter_mut().flatten() {
            if let Boundary::Constant(value) = side {
                *value = value.abs();
            }
        }
        problem.set_boundaries(boundaries);
        Ok(problem)
    }
}

fn boundaries() -> impl Strategy<Value = Boundaries> {
    let side = || {
        let kinds = (-1.0..1.0f64).prop_map(Boundary::each_alone);
        (kinds, any::<Index>()).prop_map(|(kinds, index)| *index.get(&kinds))
    };
    let axis = || prop_oneof![1 => Just([Boundary::Periodic; 2]), 3 => [side(), side()]];
    [axis(), axis(), axis()].prop_map(Boundaries)
}

/// Returns extents that hold the radius, 2, of any formula: one cell more where a side's mirror is a cell.
fn holding(extents: [usize; 3], boundaries: &Boundaries) -> [usize; 3] {
    let is_reflected = |axis: usize| boundaries.0[axis].contains(&Boundary::Reflect);
    std::array::from_fn(|axis| extents[axis].max(if is_reflected(axis) { 3 } else { 2 }))
}

/// Returns cases of these types. A tame case magnifies no difference: no division, root or comparison.
pub fn cases(tame: bool, dtypes: Vec<DType>) -> impl Strategy<Value = Case> {
    let stage = move |axes| {
        (formula(tame), proptest::option::of(formula(tame))).prop_map(move |(a, b)| Random { axes, a, b })
    };
    // Extents are at least 2, because periodic and mirrored axes must hold the radius.
    let extents = [2..9usize, 2..24, 2..80usize];
    (1..=3usize).prop_flat_map(move |axes| {
        let stages = proptest::collection::vec(stage(axes), 1..=2);
        let dtype = proptest::sample::select(dtypes.clone());
        (stages, extents.clone(), boundaries(), dtype, 0..64usize).prop_map(
            |(stages, extents, boundaries, dtype, variant)| Case {
                stages,
                extents: holding(extents, &boundaries),
                boundaries,
                dtype,
                variant,
            },
        )
    })
}
