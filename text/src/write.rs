//! Programs as model files.

use std::fmt::Write;

use abide_core::domain::{Sides, axis_name};
use abide_core::program::{Centring, Does, Program, Reduction, Region, Stage, Start};
use abide_core::{Error, Result};
use toml::Value;

use crate::print::{Lines, Names, lines};
use crate::stages::WORDS;

/// Writes a program as the text of a model file, which [`read`](crate::read) reads back with the same graph.
///
/// # Errors
///
/// [`Error::Invalid`] for a name that no formula can use: one with backquotes, or a word of a stage's table.
pub fn write(program: &Program) -> Result<String> {
    let mut text = String::new();
    let axes = program.dimensions();
    entry(&mut text, "name", quoted(program.name()));
    entry(&mut text, "axes", axes);
    entry(&mut text, "boundary", quoted(program.boundary().to_string()));
    if program.shown() > 0 {
        entry(&mut text, "shown", quoted(&program.fields()[program.shown()]));
    }
    section(&mut text, "fields");
    for (number, name) in program.fields().iter().enumerate() {
        check_name(name)?;
        let kind = program.kinds()[number];
        let mut entries = Vec::new();
        if !kind.centring.is_cell() {
            entries.push(("on", quoted(kind.centring.words(axes))));
        }
        if kind.sides != Sides::default() {
            entries.push(("boundary", quoted(kind.sides.to_string())));
        }
        let start = start(program.start(number));
        let is_bare = entries.is_empty() && !start.starts_with('{');
        if !is_bare {
            entries.push(("start", start.clone()));
        }
        entry(&mut text, &key(name), if is_bare { start } else { table(&entries) });
    }
    if !program.temporaries().is_empty() {
        section(&mut text, "temporaries");
        for temporary in program.temporaries() {
            check_name(&temporary.name)?;
            entry(&mut text, &key(&temporary.name), quoted(temporary.centring.words(axes)));
        }
    }
    if !program.parameters().is_empty() {
        section(&mut text, "parameters");
        for parameter in program.parameters() {
            check_name(&parameter.name)?;
            let mut entries = vec![("default", number(parameter.default))];
            about(&mut entries, &parameter.about);
            let is_bare = entries.len() == 1;
            let value = if is_bare { number(parameter.default) } else { table(&entries) };
            entry(&mut text, &key(&parameter.name), value);
        }
    }
    if !program.scalars().is_empty() {
        section(&mut text, "scalars");
        for scalar in program.scalars() {
            check_name(&scalar.name)?;
            let mut entries = Vec::new();
            if let Some(start) = scalar.initial {
                entries.push(("start", number(start)));
            }
            if let Some(axis) = scalar.extent {
                entries.push(("extent", quoted(axis_name(3 - axes + axis))));
            }
            about(&mut entries, &scalar.about);
            entry(&mut text, &key(&scalar.name), table(&entries));
        }
    }
    let (names, scalars) = (program.names(), scalar_names(program));
    for step in program.steps() {
        let is_single = program.steps().len() == 1;
        if !is_single {
            section(&mut text, "[steps]");
        }
        for stage in &program.stages()[step.clone()] {
            section(&mut text, if is_single { "[stages]" } else { "[steps.stages]" });
            write_stage(&mut text, program, stage, [&names, &scalars])?;
        }
    }
    Ok(text)
}

/// Returns the line of the table `run` for an option with these values.
pub fn option(name: &str, values: &[String]) -> String {
    let is_whole = |value: &String| value.parse::<i64>().is_ok_and(|number| number.to_string() == *value);
    let written = |value: &String| if is_whole(value) { value.clone() } else { quoted(value) };
    let quoted: Vec<String> = values.iter().map(written).collect();
    match quoted.as_slice() {
        [value] => format!("{name} = {value}\n"),
        values => format!("{name} = [{}]\n", values.join(", ")),
    }
}

fn write_stage(
    text: &mut String,
    program: &Program,
    stage: &Stage,
    [fields, scalars]: [&[String]; 2],
) -> Result<()> {
    let axes = program.dimensions();
    let centring = |field: usize| match program.kinds().get(field) {
        Some(kind) => kind.centring,
        None => program.temporaries()[field - program.fields().len()].centring,
    };
    let own = match stage.does {
        Does::Update => centring(stage.writes[0]),
        Does::Reduce(_, region, _) => region.centring,
        Does::Scalar(_) => Centring::CELL,
    };
    let stands_alike = |field: usize| centring(field) == own;
    let names = Names { dimensions: axes, fields, scalars, stands_alike: &stands_alike };
    let Lines { locals, outputs } = lines(&stage.dag, &names)?;
    if stage.does == Does::Update {
        entry(text, "name", quoted(&stage.name));
    }
    if !stage.points.is_empty() {
        let points: Vec<String> =
            stage.points.iter().map(|point| format!("{:?}", &point[3 - axes..])).collect();
        entry(text, "points", format!("[{}]", points.join(", ")));
    }
    if let Does::Reduce(_, region, _) = stage.does
        && region != Region::from(Centring::CELL)
    {
        entry(text, "over", over(region, axes));
    }
    for (name, formula) in &locals {
        entry(text, name, quoted(formula));
    }
    match stage.does {
        Does::Update => {
            for (&field, formula) in stage.writes.iter().zip(&outputs) {
                entry(text, &key(&fields[field]), quoted(formula));
            }
        }
        Does::Reduce(reduction, _, scalar) => {
            let name = match reduction {
                Reduction::Sum => "sum",
                Reduction::Min => "min",
                Reduction::Max => "max",
            };
            entry(text, &key(&scalars[scalar]), quoted(format!("{name}({})", outputs[0])));
        }
        Does::Scalar(scalar) => {
            entry(text, &key(&scalars[scalar]), quoted(&outputs[0]));
        }
    }
    Ok(())
}

fn scalar_names(program: &Program) -> Vec<String> {
    let parameters = program.parameters().iter().map(|parameter| &parameter.name);
    parameters.chain(program.scalars().iter().map(|scalar| &scalar.name)).cloned().collect()
}

fn over(region: Region, axes: usize) -> String {
    let on = quoted(region.centring.words(axes));
    let margins = (3 - axes..3).filter(|&axis| region.margins[axis] != [0; 2]);
    let margins: Vec<(&str, String)> =
        margins.map(|axis| (axis_name(axis), format!("{:?}", region.margins[axis]))).collect();
    if margins.is_empty() { on } else { table(&[vec![("on", on)], margins].concat()) }
}

fn start(start: &Start) -> String {
    match *start {
        Start::Constant(value) => number(value),
        Start::Random { seed, low, high } if [low, high] == [0.0, 1.0] => quoted(format!("random:{seed}")),
        Start::Random { seed, low, high } => {
            table(&[("random", seed.to_string()), ("low", number(low)), ("high", number(high))])
        }
        Start::Gaussian => quoted("gaussian"),
        Start::Point => quoted("point"),
        Start::Seeds { inside, outside, seed } => {
            table(&[("seeds", seed.to_string()), ("inside", number(inside)), ("outside", number(outside))])
        }
        Start::Corner { inside, outside, parts } => table(&[
            ("corner", format!("[{}]", parts.map(number).join(", "))),
            ("inside", number(inside)),
            ("outside", number(outside)),
        ]),
        Start::Coin { seed, probability } => {
            table(&[("coin", seed.to_string()), ("probability", number(probability))])
        }
    }
}

/// Fails for a name that formulas could not use.
fn check_name(name: &str) -> Result<()> {
    if !name.contains('`') && !WORDS.contains(&name) {
        return Ok(());
    }
    let change = "use no backquotes, and no word of the model file";
    Err(Error::invalid(format!("name `{name}`"), "no formula as text can use it", change))
}

fn about(entries: &mut Vec<(&str, String)>, words: &str) {
    if !words.is_empty() {
        entries.push(("about", quoted(words)));
    }
}

fn section(text: &mut String, name: &str) {
    writeln!(text, "\n[{name}]").ok();
}

fn entry(text: &mut String, key: &str, value: impl std::fmt::Display) {
    writeln!(text, "{key} = {value}").ok();
}

fn table(entries: &[(&str, String)]) -> String {
    let entries: Vec<String> = entries.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    if entries.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", entries.join(", ")) }
}

fn quoted(text: impl ToString) -> String {
    Value::String(text.to_string()).to_string()
}

fn key(name: &str) -> String {
    let is_bare = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_bare { name.to_owned() } else { quoted(name) }
}

/// Returns a number that TOML reads back to the bit.
fn number(value: f64) -> String {
    if value.is_nan() { "nan".to_owned() } else { format!("{value:?}") }
}
