//! The catalogue's programs with scalars, temporaries or fields of several kinds, from the catalogue's own start. CloverLeaf
//! has a suite of its own.

use std::sync::Arc;

use abide::{Array, DType, Error, Execution, Options, Problem, Result, Shape, catalogue};

use crate::trust::subject::{Subject, describe, read, skip};

/// Some steps of each program: the reference's bits where the backend promises them, else almost its values.
pub fn programs_agree_with_the_reference(subject: &Subject) -> Result<()> {
    for entry in catalogue::entries().filter(|entry| !entry.name.starts_with("cloverleaf")) {
        let axes = *entry.dimensions.start();
        let program = Arc::new(entry.program(axes)?);
        // The reference computes all of a stage's formulas for each of its fields: cubes are small.
        let sizes = match (axes, program.has_conditions()) {
            (3, _) => [[3, 5, 19], [4, 5, 11]],
            // As many turns as a system has.
            (_, true) => [[1, 9, 14], [1, 7, 11]],
            _ => [[1, 43, 70], [1, 33, 41]],
        };
        for (dtype, extents) in [DType::F32, DType::F64].into_iter().zip(sizes) {
            let is_half = dtype == DType::F64 && !subject.has_all_cases();
            if program.is_plain() || is_half || !subject.has(dtype) {
                continue;
            }
            let mut problem = Problem::unchecked(program.clone(), Shape::new(&extents[3 - axes..])?, dtype);
            problem.boundaries = program.boundaries();
            problem.lower_walls()?;
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
    let (steps, mut expected) = (7, start.to_vec());
    let scalars = abide_cpu::reference::run_program(problem, &mut expected, steps, |_, _, _| ())?;
    for execution in [Execution::Auto, Execution::Stepwise] {
        let backend = &subject.opened.backend;
        let planned = backend.plan(problem, &Options { execution, ..Options::default() });
        let plan = match planned {
            // The adapter binds fewer buffers at once than a stage needs.
            Err(Error::Limit { what, asked, limit, .. }) if what.starts_with("buffers") => {
                let reason = format!("{what}: {asked} asked, the limit is {limit}");
                skip(&format!("{}: {}", subject.name, problem.program.name()), &reason);
                return Ok(());
            }
            planned => planned?,
        };
        let mut session = backend.open(problem, &plan, start.to_vec())?;
        session.advance(1)?;
        session.advance(steps - 1)?;
        let words = format!("{}: {} {}", subject.name, describe(problem), plan.summary());
        let names = problem.program.fields();
        for (name, (found, own)) in
            names.iter().zip(read(session.as_mut(), start.len())?.iter().zip(&expected))
        {
            // The components of a field are parts of one quantity. A loop that ends by a condition may end a turn earlier on a
            // device whose rounding is its own: what is left of a residual is small beside the largest of all values.
            let whole = |name: &String| name.split('[').next().map(str::to_owned);
            let ends_early = problem.program.has_conditions();
            let is_part = |other: &String| ends_early || whole(other) == whole(name);
            let parts = names.iter().zip(&expected).filter(|(other, _)| is_part(other));
            let most = parts.map(|(_, part)| largest(part)).fold(0.0, f64::max);
            match subject.is_exact() {
                true => assert!(found.same_bits(own), "{words}: {name}"),
                false => is_near(found, own, most, &format!("{words}: {name}")),
            }
        }
        let found = session.scalars()?;
        match subject.is_exact() {
            true => assert_eq!(found, scalars, "{words}"),
            false if problem.program.has_conditions() => {}
            false => {
                let scalars = Array::F64(scalars.clone());
                is_near(&Array::F64(found), &scalars, largest(&scalars), &words);
            }
        }
    }
    Ok(())
}

/// Returns the largest magnitude.
fn largest(values: &Array) -> f64 {
    values.to_f64().into_iter().fold(0.0, |most, value| most.max(value.abs()))
}

/// Checks that differences are small beside the largest value.
fn is_near(found: &Array, expected: &Array, most: f64, words: &str) {
    let pairs = found.to_f64().into_iter().zip(expected.to_f64());
    let off = pairs.fold(0.0_f64, |off, (found, expected)| off.max((found - expected).abs()));
    assert!(off <= 1e-4 * most, "{words}: off by {off:e} of {most:e}");
}
