//! The catalogue's programs with scalars, temporaries or fields of several kinds, from the catalogue's own start. CloverLeaf
//! has a suite of its own.

use std::sync::Arc;

use abide::{Array, DType, Execution, Options, Problem, Result, Shape, catalogue};

use crate::trust::subject::{Subject, describe, read};

/// Some steps of each program: the reference's bits where the backend promises them, else almost its values.
pub fn programs_agree_with_the_reference(subject: &Subject) -> Result<()> {
    for entry in catalogue::entries().filter(|entry| !entry.name.starts_with("cloverleaf")) {
        let axes = *entry.dimensions.start();
        let program = Arc::new(entry.program(axes)?);
        for (dtype, extents) in [(DType::F32, [5, 43, 70]), (DType::F64, [7, 33, 41])] {
            let is_half = dtype == DType::F64 && !subject.has_all_cases();
            if program.is_plain() || is_half || !subject.has(dtype) {
                continue;
            }
            let mut problem = Problem::unchecked(program.clone(), Shape::new(&extents[3 - axes..])?, dtype);
            problem.boundaries = program.boundaries();
            problem.check()?;
            let start = (0..program.fields().len())
                .map(|field| program.start(field).fill(&problem.shape_of(field)?, dtype))
                .collect::<Result<Vec<_>>>()?;
            check(subject, &problem, &start)?;
        }
    }
    Ok(())
}

fn check(subject: &Subject, problem: &Problem, start: &[Array]) -> Result<()> {
    let (steps, mut expected) = (11, start.to_vec());
    let scalars = abide_cpu::reference::run_program(problem, &mut expected, steps, |_, _, _| ())?;
    for execution in [Execution::Auto, Execution::Stepwise] {
        let plan = subject.opened.backend.plan(problem, &Options { execution, ..Options::default() })?;
        let mut session = subject.opened.backend.open(problem, &plan, start.to_vec())?;
        session.advance(1)?;
        session.advance(steps - 1)?;
        let words = format!("{}: {} {}", subject.name, describe(problem), plan.summary());
        for (field, (found, expected)) in
            read(session.as_mut(), start.len())?.iter().zip(&expected).enumerate()
        {
            let field = &problem.program.fields()[field];
            match subject.is_exact() {
                true => assert!(found.same_bits(expected), "{words}: {field}"),
                false => is_near(found, expected, &format!("{words}: {field}")),
            }
        }
        let found = session.scalars()?;
        match subject.is_exact() {
            true => assert_eq!(found, scalars, "{words}"),
            false => is_near(&Array::F64(found), &Array::F64(scalars.clone()), &words),
        }
    }
    Ok(())
}

/// Checks that differences are small beside the largest value.
fn is_near(found: &Array, expected: &Array, words: &str) {
    let pairs = found.to_f64().into_iter().zip(expected.to_f64());
    let (off, most) = pairs.fold((0.0_f64, 0.0_f64), |(off, most), (found, expected)| {
        (off.max((found - expected).abs()), most.max(expected.abs()))
    });
    assert!(off <= 1e-4 * most, "{words}: off by {off:e} of {most:e}");
}
