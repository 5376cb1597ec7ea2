//! Values of fields, scalars and parameters by their names.

use std::borrow::Cow;

use abide_core::floating::standard;

use crate::backend::Session;
use crate::io::{Digest, Placed, Snapshot, extents};
use crate::program::Problem;
use crate::{Array, Error, Result};

/// Refuses to return one value of a scalar for a batch, whose members each have their own.
fn check_single(problem: &Problem) -> Result<()> {
    match problem.is_batch() && !problem.program.scalars().is_empty() {
        true => Err(Error::unsupported(
            format!("a batch of {} members", problem.members()),
            "each member has scalars of its own",
            "ask for a member's, Simulation::scalars_of",
        )),
        false => Ok(()),
    }
}

pub fn scalar(problem: &Problem, session: &mut dyn Session, name: &str) -> Result<f64> {
    let number = problem.program.scalar(name)?;
    check_single(problem)?;
    Ok(session.scalars()?.get(number).copied().unwrap_or(f64::NAN))
}

pub fn scalars(problem: &Problem, session: &mut dyn Session) -> Result<Vec<(String, f64)>> {
    check_single(problem)?;
    let names = problem.program.scalars().iter().map(|scalar| scalar.name.clone());
    Ok(names.zip(session.scalars()?).collect())
}

pub fn device_buffer<B: 'static>(problem: &Problem, session: &dyn Session, name: &str) -> Option<B> {
    let field = problem.program.field(name).ok()?;
    Some(*session.device_buffer(field)?.downcast::<B>().ok()?)
}

pub fn device_buffer_mut<B: 'static>(
    problem: &Problem,
    session: &mut dyn Session,
    name: &str,
) -> Result<Option<B>> {
    let buffer = session.device_buffer_mut(problem.program.field(name)?)?;
    Ok(buffer.and_then(|buffer| buffer.downcast::<B>().ok()).map(|buffer| *buffer))
}

pub fn non_finite(problem: &Problem, session: &mut dyn Session) -> Result<u64> {
    (0..problem.program.fields().len()).try_fold(0, |sum, field| Ok(sum + session.non_finite(field)?))
}

pub fn read(problem: &Problem, session: &mut dyn Session, name: &str) -> Result<Array> {
    session.read(problem.program.field(name)?)
}

pub fn write(problem: &Problem, session: &mut dyn Session, name: &str, values: &Array) -> Result<()> {
    let field = problem.program.field(name)?;
    crate::backend::check_field(problem, field, values)?;
    session.write(field, &*of_precision(problem, field, values)?)
}

pub fn write_window(
    problem: &Problem,
    session: &mut dyn Session,
    name: &str,
    [low, high]: [[usize; 3]; 2],
    values: &Array,
) -> Result<()> {
    let field = problem.program.field(name)?;
    session.write_window(field, low, high, &*of_precision(problem, field, values)?)
}

/// Returns values rounded to the precision of a field, if it has one.
fn of_precision<'v>(problem: &Problem, field: usize, values: &'v Array) -> Result<Cow<'v, Array>> {
    if problem.program.kinds()[field].precision.is_none() {
        return Ok(Cow::Borrowed(values));
    }
    let mut rounded = values.try_clone()?;
    problem.round(field, &mut rounded);
    Ok(Cow::Owned(rounded))
}

pub fn set_parameters(
    problem: &mut Problem,
    session: &mut dyn Session,
    values: &[(&str, f64)],
) -> Result<()> {
    let program = problem.program.clone();
    let mut given = Vec::new();
    for &(name, value) in values {
        let number = program.settable(name)?;
        crate::builder::check_parameter(name, value, problem.dtype)?;
        given.push((number, value));
    }
    // Of each member of a batch, and of the single domain last.
    let own = problem.batch.iter().map(|member| &member.parameters).chain([&problem.parameters]);
    let mut own: Vec<Vec<f64>> = own.cloned().collect();
    for parameters in &mut own {
        given.iter().for_each(|&(number, value)| parameters[number] = value);
        standard(|| program.derive(parameters));
        program.check_derived(parameters, problem.dtype)?;
    }
    let changed = program.dependents(&given.iter().map(|(number, _)| *number).collect::<Vec<_>>());
    if let Some(&number) = changed.iter().find(|&&number| {
        let bits = |parameters: &Vec<f64>| parameters[number].to_bits();
        own.iter().any(|parameters| bits(parameters) != bits(&own[0]))
    }) {
        return Err(Error::unsupported(
            format!("parameter {}", program.parameters()[number].name),
            "it is computed from parameters that differ between the members of the batch",
            "begin a batch with these values",
        ));
    }
    for number in changed {
        standard(|| session.set_parameter(number, own[0][number]))?;
        let all = problem.batch.iter_mut().map(|member| &mut member.parameters);
        all.chain([&mut problem.parameters]).for_each(|parameters| parameters[number] = own[0][number]);
    }
    Ok(())
}

/// Returns the time after a step: a scalar named `time` or `t`, else so many times the parameter `dt`, else the step.
fn time(problem: &Problem, step: u64, scalars: &[(String, f64)]) -> f64 {
    let own = ["time", "t"].iter().find_map(|name| scalars.iter().find(|(own, _)| own == name));
    if let Some((_, time)) = own {
        return *time;
    }
    match problem.program.parameter("dt").ok().filter(|_| !problem.is_batch()) {
        Some(dt) => step as f64 * problem.parameters[dt],
        None => step as f64,
    }
}

pub fn snapshot(
    problem: &Problem,
    session: &mut dyn Session,
    step: u64,
    names: &[String],
) -> Result<Snapshot<'static>> {
    let scalars = if problem.is_batch() { Vec::new() } else { scalars(problem, session)? };
    let field = |name: &String| {
        let number = problem.program.field(name)?;
        Ok(Placed {
            name: Cow::Owned(name.clone()),
            values: Cow::Owned(session.read(number)?),
            shape: problem.shape_of(number)?,
            space: problem.space_of(number),
        })
    };
    let fields = names.iter().map(field).collect::<Result<_>>()?;
    let members = problem.is_batch().then_some(problem.members());
    Ok(Snapshot { members, fields, step, time: time(problem, step, &scalars), scalars, provenance: None })
}

pub fn digest(problem: &Problem, session: &mut dyn Session) -> Result<String> {
    let members = problem.is_batch().then_some(problem.members());
    let mut digest = Digest::default();
    for (number, name) in problem.program.fields().iter().enumerate() {
        digest.add(name, &extents(members, &problem.shape_of(number)?), &session.read(number)?);
    }
    Ok(digest.finish())
}
