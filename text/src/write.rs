//! Programs as model files.

use std::fmt::Write;

use abide_core::domain::{Sides, axis_name};
use abide_core::expr::{Dag, Id, Node};
use abide_core::program::{Centring, FieldWall, Program, Reduction, Region, Repeat, Stage, StageKind, Start};
use abide_core::{Error, Result};
use toml::Value;

use crate::MOST_BYTES;
use crate::canonical::{counted, place, scalars, whole};
use crate::parts::GIVEN;
use crate::print::{Lines, Names, lines, whole_lines};
use crate::stages::{WORDS, WORDS_OF_TRANSFORM};

/// Writes a program as the text of a model file, which [`read`](crate::read) reads back with the same graph.
///
/// # Errors
///
/// [`Error::Invalid`] for a name that no formula can use (one with backquotes, or a word of a stage's table), and for a
/// program whose text would mean another one, as where names of fields look like components; [`Error::Limit`] for a text
/// that is longer than a model file may be.
pub fn write(program: &Program) -> Result<String> {
    let program = program.declared();
    let text = written_out(program)?;
    if text.len() > MOST_BYTES {
        let what = format!("bytes of {} as text", program.name());
        return Err(Error::limit(
            what,
            text.len(),
            MOST_BYTES,
            "write a smaller program, or keep it in code",
        ));
    }
    let refused = |reason: String| {
        let change = "give its parts other names, as without brackets and signs";
        Error::invalid(format!("{} as text", program.name()), reason, change)
    };
    let read = crate::model(&text, "").map_err(|fault| refused(fault.reason))?;
    let (own, read) = (whole(program), whole(&read.program));
    match own.lines().zip(read.lines()).find(|(own, read)| own != read) {
        Some((own, read)) => Err(refused(format!("it would be read as `{read}` where it is `{own}`"))),
        None => Ok(text),
    }
}

fn written_out(program: &Program) -> Result<String> {
    let mut text = String::new();
    let axes = program.dimensions();
    entry(&mut text, "name", quoted(program.name()));
    entry(&mut text, "axes", axes);
    for (key, formulas) in [("spacing", &program.grid().spacing), ("origin", &program.grid().origin)] {
        let along =
            formulas.iter().enumerate().filter_map(|(axis, dag)| Some((axis_name(axis), dag.as_ref()?)));
        let along: Vec<(&str, String)> =
            along.map(|(axis, dag)| Ok((axis, values(dag, program)?[0].clone()))).collect::<Result<_>>()?;
        if !along.is_empty() {
            entry(&mut text, key, table(&along));
        }
    }
    entry(&mut text, "boundary", quoted(program.boundaries().describe(axes)));
    if let Some(until) = program.until() {
        entry(&mut text, "until", quoted(until.describe(program)));
    }
    if program.shown() > 0 {
        entry(&mut text, "shown", quoted(&program.fields()[program.shown()]));
    }
    section(&mut text, "fields");
    for (number, name) in program.fields().iter().enumerate() {
        check_name(program, name)?;
        let kind = program.kinds()[number];
        let mut entries = Vec::new();
        if !kind.centring.is_cell() {
            entries.push(("on", quoted(kind.centring.words(axes))));
        }
        if let Some((other, how)) = kind.follows {
            entries.push((how.word(), quoted(&program.fields()[other])));
        }
        if let Some(precision) = kind.precision {
            entries.push(("precision", quoted(precision)));
        }
        if kind.is_internal {
            entries.push(("internal", "true".to_owned()));
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
            check_name(program, &temporary.name)?;
            entry(&mut text, &key(&temporary.name), quoted(temporary.centring.words(axes)));
        }
    }
    if !program.parameters().is_empty() {
        section(&mut text, "parameters");
        for (place, parameter) in program.parameters().iter().enumerate() {
            check_name(program, &parameter.name)?;
            let mut entries = match program.derived().iter().find(|derived| derived.parameter == place) {
                Some(derived) => formula(&derived.dag, program)?,
                None => vec![("default", number(parameter.default))],
            };
            about(&mut entries, &parameter.about);
            let value = match entries.as_slice() {
                [("default", default)] => default.clone(),
                entries => table(entries),
            };
            entry(&mut text, &key(&parameter.name), value);
        }
    }
    if !program.scalars().is_empty() {
        section(&mut text, "scalars");
        for scalar in program.scalars() {
            check_name(program, &scalar.name)?;
            let mut entries = Vec::new();
            if let Some(start) = scalar.initial {
                entries.push(("start", number(start)));
            }
            if let Some(axis) = scalar.extent {
                entries.push(("extent", quoted(axis_name(3 - axes + axis))));
            }
            if scalar.is_internal {
                entries.push(("internal", "true".to_owned()));
            }
            about(&mut entries, &scalar.about);
            entry(&mut text, &key(&scalar.name), table(&entries));
        }
    }
    for (field, name) in program.fields().iter().enumerate() {
        let own: Vec<&FieldWall> = program.walls().iter().filter(|wall| wall.field == field).collect();
        if !own.is_empty() {
            section(&mut text, &format!("walls.{}", key(name)));
        }
        for wall in own {
            let all = values(&wall.dag, program)?;
            let value =
                if let [one] = all.as_slice() { one.clone() } else { format!("[{}]", all.join(", ")) };
            entry(&mut text, &quoted(wall.side_name()), table(&[(wall.condition.name(), value)]));
        }
    }
    let (names, scalars) = (program.names(), scalars(program));
    let stages = if program.cycle() == 1 { "stages" } else { "steps.stages" };
    let mut begins = program.cycle() > 1;
    for (place, step) in program.steps().iter().enumerate() {
        if std::mem::take(&mut begins) {
            section(&mut text, "[steps]");
        }
        let mut own = format!("[{stages}]");
        if let Some(Repeat { most, until, once }) = program.repeat(place) {
            section(&mut text, &own);
            match once {
                true => entry(&mut text, "once", true),
                false => entry(&mut text, "repeat", most),
            }
            if let Some(until) = until {
                entry(&mut text, "until", quoted(until.describe(program)));
            }
            own = format!("[{stages}.stages]");
        }
        for stage in &program.stages()[step.clone()] {
            section(&mut text, &own);
            write_stage(&mut text, program, stage, [&names, &scalars])?;
        }
        begins = program.cycle() > 1 && program.ends_step(place);
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

/// Returns the table `run` for options as [`read`](crate::read) returns them; an empty text for none.
pub fn run(options: &[String]) -> String {
    let mut text = String::new();
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for written in options {
        let (name, value) = written.trim_start_matches('-').split_once('=').unzip();
        let name = name.unwrap_or(written.trim_start_matches('-'));
        let values = value.map(str::to_owned);
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.extend(values),
            None => all.push((name, values.into_iter().collect())),
        }
    }
    for (name, values) in all {
        if text.is_empty() {
            section(&mut text, "run");
        }
        match values.is_empty() {
            true => entry(&mut text, name, true),
            false => text.push_str(&option(name, &values)),
        }
    }
    text
}

fn write_stage(
    text: &mut String,
    program: &Program,
    stage: &Stage,
    [fields, scalars]: [&[String]; 2],
) -> Result<()> {
    let axes = program.dimensions();
    let own = place(program, stage);
    let stands_alike = |field: usize| program.centring(field) == own;
    let names = Names { dimensions: axes, fields, scalars, stands_alike: &stands_alike };
    let Lines { locals, outputs } = lines(&stage.dag, &names)?;
    if stage.does == StageKind::Update {
        entry(text, "name", quoted(&stage.name));
    }
    if !stage.points.is_empty() {
        let points: Vec<String> =
            stage.points.iter().map(|point| format!("{:?}", &point[3 - axes..])).collect();
        entry(text, "points", format!("[{}]", points.join(", ")));
    }
    if let StageKind::Reduce(_, region, _) = stage.does
        && region != Region::from(Centring::CELL)
    {
        entry(text, "over", over(region, axes));
    }
    // A name before all others has the formula meet this value first.
    if let Some(tap) = counted(program, stage) {
        let first = Dag { nodes: vec![Node::Tap(tap)], outputs: vec![0] };
        let mut name = "as_many_as".to_owned();
        while fields.iter().chain(scalars).any(|known| *known == name) {
            name.push('_');
        }
        entry(text, &name, quoted(&lines(&first, &names)?.outputs[0]));
    }
    for (name, formula) in &locals {
        entry(text, name, quoted(formula));
    }
    match stage.does {
        StageKind::Update => {
            for (&field, formula) in stage.writes.iter().zip(&outputs) {
                entry(text, &key(&fields[field]), quoted(formula));
            }
        }
        StageKind::Reduce(reduction, _, scalar) => {
            let name = match reduction {
                Reduction::Sum => "sum",
                Reduction::Min => "min",
                Reduction::Max => "max",
            };
            entry(text, &key(&scalars[scalar]), quoted(format!("{name}({})", outputs[0])));
        }
        StageKind::Scalar(scalar) => {
            entry(text, &key(&scalars[scalar]), quoted(&outputs[0]));
        }
        StageKind::Transform(transform) => {
            entry(text, "transform", quoted(transform.matrix.name()));
            entry(text, "along", quoted(axis_name(transform.axis)));
            let of = stage.transformed().map_or("", |field| &*fields[field]);
            entry(text, &key(&fields[stage.writes[0]]), quoted(of));
            entry(text, "operator", quoted(&outputs[1]));
        }
    }
    Ok(())
}

/// Returns the values of a formula of scalars, and of the places where a field's values stand: numbers, and formulas in
/// quotes without names for parts of them.
fn values(dag: &Dag, program: &Program) -> Result<Vec<String>> {
    let scalars = scalars(program);
    let names =
        Names { dimensions: program.dimensions(), fields: &[], scalars: &scalars, stands_alike: &|_| true };
    let is_number = |id: Id| match dag.nodes[id as usize] {
        Node::Const(constant) => Some(constant.value()),
        _ => None,
    };
    let written = whole_lines(dag, &names)?;
    Ok(dag
        .outputs
        .iter()
        .zip(written)
        .map(|(&id, text)| is_number(id).map_or_else(|| quoted(&text), number))
        .collect())
}

/// Returns the entries of a parameter that is a formula of others: the formula, and the parts of it that have names.
fn formula(dag: &Dag, program: &Program) -> Result<Vec<(&'static str, String)>> {
    let scalars = scalars(program);
    let names =
        Names { dimensions: program.dimensions(), fields: &[], scalars: &scalars, stands_alike: &|_| true };
    let Lines { locals, outputs } = lines(dag, &names)?;
    let parts: Vec<(&str, String)> = locals.iter().map(|(name, part)| (&**name, quoted(part))).collect();
    let parts = (!parts.is_empty()).then(|| ("parts", table(&parts)));
    Ok(parts.into_iter().chain([("formula", quoted(&outputs[0]))]).collect())
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
        Start::Given => quoted(GIVEN),
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

/// Fails for a name that formulas of a program could not use.
fn check_name(program: &Program, name: &str) -> Result<()> {
    let is_word = WORDS.contains(&name) || program.transforms() && WORDS_OF_TRANSFORM.contains(&name);
    if !name.contains('`') && !is_word {
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
