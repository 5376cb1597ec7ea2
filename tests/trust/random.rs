//! Formulas that nobody thought of: random trees of operators over two fields, on random domains.

use std::sync::Arc;

use abide::expr::{Binary, Expr, Node, Unary};
use abide::stencil::{Parameter, Scope};
use abide::{Array, Boundaries, Boundary, DType, Error, Options, Problem, Program, Result, Stencil};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::subject::{Subject, describe, field, fields, problem};

/// An expression before it has a graph.
#[derive(Debug, Clone)]
enum Formula {
    Constant(f64),
    Parameter,
    /// Divided by 16, so that it stays in the range of the fields.
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
            Formula::Tap(second, offset) => s.field(if *second { "b" } else { "a" }).at_slice(&offset[3 - axes..]),
            Formula::Unary(op, a) => node(Node::Unary(*op, a.build(s).id())),
            Formula::Binary(op, ab) => node(Node::Binary(*op, ab[0].build(s).id(), ab[1].build(s).id())),
            Formula::Fma(abc) => abc[0].build(s).mul_add(abc[1].build(s), abc[2].build(s)),
            Formula::Select(abc) => abc[0].build(s).select(abc[1].build(s), abc[2].build(s)),
        }
    }

    /// A formula whose value, on the magnitudes of the fields, no intermediate value of this one exceeds.
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
            Formula::Fma(abc) => Formula::Fma(Box::new([abc[0].majorant(), abc[1].majorant(), abc[2].majorant()])),
            Formula::Select(abc) => sum(&abc[1..]),
        }
    }
}

/// A random formula. A tame one has no operator that makes a large difference of a small one: no division, root or
/// comparison.
fn formula(tame: bool) -> impl Strategy<Value = Formula> {
    let leaf = prop_oneof![
        2 => (-2.0..2.0f64).prop_map(Formula::Constant),
        1 => Just(Formula::Parameter),
        1 => (0..3usize).prop_map(Formula::Coordinate),
        6 => (any::<bool>(), [-2..=2, -2..=2, -2..=2]).prop_map(|(second, offset)| Formula::Tap(second, offset)),
    ];
    let unary = if tame { vec![Unary::Neg, Unary::Abs] } else { vec![Unary::Neg, Unary::Abs, Unary::Sqrt] };
    let mut binary = vec![Binary::Add, Binary::Sub, Binary::Mul, Binary::Min, Binary::Max];
    if !tame {
        use Binary::{Div, Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
        binary.extend([Div, Div, Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual]);
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
struct Case {
    stages: Vec<Random>,
    extents: [usize; 3],
    boundaries: Boundaries,
    dtype: DType,
    variant: usize,
}

impl Case {
    fn problem(&self) -> Result<Problem> {
        self.problem_of(&self.stages)
    }

    fn problem_of(&self, stages: &[Random]) -> Result<Problem> {
        let stages: Vec<&dyn Stencil> = stages.iter().map(|stage| stage as &dyn Stencil).collect();
        let program = Program::sequence("random", &stages)?;
        problem(Arc::new(program), &self.extents[3 - self.stages[0].axes..], self.dtype, self.boundaries)
    }

    /// The problem whose values bound this one's.
    fn majorant(&self) -> Result<Problem> {
        let stage = |stage: &Random| Random {
            a: stage.a.majorant(),
            b: stage.b.as_ref().map(Formula::majorant),
            ..stage.clone()
        };
        let mut problem = self.problem_of(&self.stages.iter().map(stage).collect::<Vec<_>>())?;
        for side in problem.boundaries.0.iter_mut().flatten() {
            if let Boundary::Constant(value) = side {
                *value = value.abs();
            }
        }
        Ok(problem)
    }
}

fn boundaries() -> impl Strategy<Value = Boundaries> {
    let side =
        || prop_oneof![Just(Boundary::Fixed), Just(Boundary::Mirror), (-1.0..1.0f64).prop_map(Boundary::Constant)];
    let axis = || prop_oneof![1 => Just([Boundary::Periodic; 2]), 3 => [side(), side()]];
    [axis(), axis(), axis()].prop_map(Boundaries)
}

fn case(tame: bool, dtypes: Vec<DType>) -> impl Strategy<Value = Case> {
    let stage =
        move |axes| (formula(tame), proptest::option::of(formula(tame))).prop_map(move |(a, b)| Random { axes, a, b });
    // Extents from 2, for periodic and mirrored axes must hold the radius.
    let extents = [2..9usize, 2..24, 2..80usize];
    (1..=3usize).prop_flat_map(move |axes| {
        let stages = proptest::collection::vec(stage(axes), 1..=2);
        let dtype = proptest::sample::select(dtypes.clone());
        (stages, extents.clone(), boundaries(), dtype, 0..64usize).prop_map(
            |(stages, extents, boundaries, dtype, variant)| Case { stages, extents, boundaries, dtype, variant },
        )
    })
}

/// Runs a check on random cases, the same ones each time.
fn for_cases<S: Strategy>(count: u32, strategy: S, check: impl Fn(S::Value) -> Result<()>) {
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(&strategy, |case| check(case).map_err(|error| TestCaseError::fail(error.to_string())));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Same bits for any formula of operators that round correctly; where a backend promises less, an error no larger
/// than the rounding of the formula's largest intermediate values.
pub fn exact_formulas(subject: &Subject) -> Result<()> {
    if subject.is_exact() {
        for_cases(64, case(false, subject.dtypes()), |case| {
            let problem = case.problem()?;
            let variants = subject.variants(&problem);
            let way = variants[case.variant % variants.len()];
            subject.compare(&problem, &[way], &fields(&problem, 31)?, 3)
        });
        return Ok(());
    }
    for_cases(64, case(true, subject.dtypes()), |case| {
        let problem = case.problem()?;
        let start = fields(&problem, 31)?;
        let mut expected = start.clone();
        abide_cpu::reference::advance(&problem, &mut expected, 1)?;
        let mut largest: Vec<Array> = start
            .iter()
            .map(|array| Array::from_fn(case.dtype, array.len(), |i| array.get(i).map_or(0.0, f64::abs)))
            .collect();
        abide_cpu::reference::advance(&case.majorant()?, &mut largest, 1)?;
        let epsilon = if case.dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let results = subject.run(&problem, &Options::default(), &start, 1)?;
        for (field, result) in results.iter().enumerate() {
            for i in 0..result.len() {
                let [got, expected, most] =
                    [result, &expected[field], &largest[field]].map(|array| array.get(i).unwrap_or(f64::NAN));
                let bound = 1000.0 * epsilon * most;
                assert!(
                    (got - expected).abs() <= bound || got == expected,
                    "{} field {field} at {:?}: {got:e} instead of {expected:e}, bound {bound:e}",
                    describe(&problem),
                    problem.shape.cell(i)
                );
            }
        }
        Ok(())
    });
    Ok(())
}

/// All functions of the language in one formula.
struct Functions;

impl Stencil for Functions {
    fn name(&self) -> &str {
        "functions"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn define(&self, s: &Scope<'_>) {
        let u = s.field("u");
        let (a, b) = (u.at([0, -1]), u.at([1, 0]));
        let waves = (a * 2.0).sin() + (b * 2.0).cos() + (a - b).tanh();
        let powers = (a - 1.0).exp() + (b + 1.5).log() + (a + 1.5).pow(b) + (b + 1.0).sqrt();
        s.set("u", waves + powers);
    }
}

/// Functions whose last bits are each library's own: close everywhere, and refused where they cannot be trusted.
pub fn every_function(subject: &Subject) -> Result<()> {
    let program = Arc::new(Program::new(&Functions)?);
    assert!(!program.is_exact());
    for dtype in subject.dtypes() {
        let problem = problem(program.clone(), &[23, 37], dtype, Boundaries::all(Boundary::Mirror))?;
        let start = fields(&problem, 13)?;
        let mut expected = start.clone();
        abide_cpu::reference::advance(&problem, &mut expected, 1)?;
        match subject.run(&problem, &Options::default(), &start, 1) {
            Ok(result) => {
                let tolerance = match (subject.is_exact(), dtype) {
                    (true, DType::F64) => 1e-14,
                    (true, DType::F32) => 5e-6,
                    // WGSL grants sine and cosine an absolute error of 2⁻¹¹.
                    (false, _) => 2e-3,
                };
                for i in 0..expected[0].len() {
                    let (got, expected) =
                        (result[0].get(i).unwrap_or(f64::NAN), expected[0].get(i).unwrap_or(f64::NAN));
                    assert!(
                        (got - expected).abs() <= tolerance,
                        "{} at {i}: {got} instead of {expected}",
                        describe(&problem)
                    );
                }
            }
            Err(Error::Unsupported { .. }) => {
                assert!(!subject.is_exact() && dtype == DType::F64, "only WGSL in f64 lacks the functions");
            }
            Err(error) => return Err(error),
        }
    }
    // Each alone: a wrong one must not hide behind another.
    let alone: [fn(Expr<'_>) -> Expr<'_>; 7] = [
        |x| x.exp(),
        |x| (x + 1.5).log(),
        |x| x.sin(),
        |x| x.cos(),
        |x| x.tanh(),
        |x| (x + 1.5).pow(2.5),
        |x| x.abs().sqrt(),
    ];
    for (number, function) in alone.into_iter().enumerate() {
        let program = Arc::new(Program::new(&Pointwise(function))?);
        let problem = problem(program, &[101], DType::F32, Boundaries::all(Boundary::Mirror))?;
        let input = field(&problem, |at| at[2] as f64 / 50.0 - 1.0);
        let mut expected = vec![input.clone()];
        abide_cpu::reference::advance(&problem, &mut expected, 1)?;
        let got = subject.run(&problem, &Options::default(), &[input], 1)?;
        for i in 0..got[0].len() {
            let (got, expected) = (got[0].get(i).unwrap_or(f64::NAN), expected[0].get(i).unwrap_or(f64::NAN));
            assert!((got - expected).abs() <= 1e-3, "function {number} at {i}: {got} instead of {expected}");
        }
    }
    Ok(())
}

/// One function of the cell itself.
struct Pointwise(for<'g> fn(Expr<'g>) -> Expr<'g>);

impl Stencil for Pointwise {
    fn name(&self) -> &str {
        "pointwise"
    }

    fn dimensions(&self) -> usize {
        1
    }

    fn define(&self, s: &Scope<'_>) {
        s.set("u", (self.0)(s.field("u").here()));
    }
}
