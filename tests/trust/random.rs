//! Random formulas, and every function of the language.

use std::sync::Arc;

use abide::expr::Expr;
use abide::program::Scope;
use abide::{Array, Boundaries, Boundary, DType, Options, Program, Result, Stencil};
use abide_random::formulas::cases;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use crate::trust::subject::{Subject, describe, field, fields, problem};

/// Runs a check on random cases, the same ones each time.
fn for_cases<S: Strategy>(count: u32, strategy: S, check: impl Fn(S::Value) -> Result<()>) {
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome =
        runner.run(&strategy, |case| check(case).map_err(|error| TestCaseError::fail(error.to_string())));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Any formula of operators that round correctly gives the same bits. Where a backend promises less, the
/// error is no larger than the rounding of the formula's largest intermediate values.
pub fn exact_formulas(subject: &Subject) -> Result<()> {
    if subject.is_exact() {
        for_cases(64, cases(false, subject.dtypes()), |case| {
            let problem = case.problem()?;
            let variants = subject.variants(&problem);
            let way = variants[case.variant % variants.len()];
            subject.compare(&problem, &[way], &fields(&problem, 31)?, 3)
        });
        return Ok(());
    }
    for_cases(if subject.has_all_cases() { 64 } else { 24 }, cases(true, subject.dtypes()), |case| {
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

/// A stencil with all functions of the language in one formula.
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

/// Functions have the same bits wherever operators do, and are close elsewhere.
pub fn every_function(subject: &Subject) -> Result<()> {
    let program = Arc::new(Program::new(&Functions)?);
    for dtype in subject.dtypes() {
        let problem = problem(program.clone(), &[23, 37], dtype, Boundaries::all(Boundary::Mirror))?;
        let start = fields(&problem, 13)?;
        let mut expected = start.clone();
        abide_cpu::reference::advance(&problem, &mut expected, 1)?;
        let got = subject.run(&problem, &Options::default(), &start, 1)?;
        let most = if subject.is_exact() { 0.0 } else { 40.0 };
        let off = got[0].scaled_ulp_distance(&expected[0], expected[0].magnitude());
        assert!(off.is_some_and(|off| off <= most), "{}: {off:?}", describe(&problem));
    }
    // Each function is tested alone, because a wrong one must not hide behind another.
    let alone: [fn(Expr<'_>) -> Expr<'_>; 12] = [
        |x| x.exp(),
        |x| (x + 1.5).log(),
        |x| x.sin(),
        |x| x.cos(),
        |x| x.tanh(),
        |x| x.cbrt(),
        |x| x.expm1(),
        |x| (x + 0.5).log1p(),
        |x| (2.0 * x).erf(),
        |x| x.atan2(x + 1.5),
        |x| (x + 1.5).pow(2.5),
        |x| x.abs().sqrt(),
    ];
    for (number, function) in alone.into_iter().enumerate() {
        let program = Arc::new(Program::new(&Pointwise(function))?);
        for dtype in subject.dtypes() {
            let problem = problem(program.clone(), &[101], dtype, Boundaries::all(Boundary::Mirror))?;
            let input = field(&problem, |at| at[2] as f64 / 50.0 - 1.0);
            let mut expected = vec![input.clone()];
            abide_cpu::reference::advance(&problem, &mut expected, 1)?;
            let got = subject.run(&problem, &Options::default(), &[input], 1)?;
            // The argument's own rounding may differ too.
            let most = if subject.is_exact() { 0.0 } else { 6.0 };
            let off = got[0].scaled_ulp_distance(&expected[0], expected[0].magnitude());
            assert!(off.is_some_and(|off| off <= most), "function {number} {dtype}: {off:?}");
        }
    }
    Ok(())
}

/// A stencil of one function of the cell itself.
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
