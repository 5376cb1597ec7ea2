//! Programs as text: a model file says in TOML what Abide computes, without Rust.
//!
//! ```
//! let model = abide_text::read(
//!     r#"
//!     name = "gray-scott"
//!     axes = 2
//!     boundary = "periodic"
//!
//!     [fields]
//!     u = 1.0
//!     v = { start = { seeds = 1, inside = 0.25, outside = 0.0 } }
//!
//!     [parameters]
//!     feed = 0.03
//!     kill = { default = 0.062, about = "rate at which v is taken away, per step" }
//!
//!     [[stages]]
//!     lap_u = "u[-1,0] + u[0,-1] + u[0,1] + u[1,0] - 4*u"
//!     lap_v = "laplacian(v)"
//!     r = "u * v**2"
//!     u = "u + 0.16*lap_u - r + feed*(1 - u)"
//!     v = "v + 0.08*lap_v + r - (feed + kill)*v"
//!     "#,
//!     "gray-scott.toml",
//! )?;
//! assert_eq!(model.program.fields(), ["u", "v"]);
//! assert!(model.program.is_plain());
//! # Ok::<(), abide_core::Error>(())
//! ```
//!
//! The whole language is described in `docs/models`. No operation is added, left out or moved: a formula has
//! the bits of the same formula in Rust. [`read`] and [`write()`] are each other's inverse: what is read back has
//! the same graph, in which each turn of a loop is written out.

mod canonical;
mod document;
mod fault;
#[cfg(feature = "gas")]
mod flow;
mod formula;
mod loops;
mod parts;
mod print;
mod stages;
mod walls;
mod write;

use std::ffi::OsStr;
use std::path::Path;

use abide_core::catalogue;
use abide_core::floating::standard;
use abide_core::program::{Definition, MAX_CYCLE, Program};
use abide_core::{Error, Result};

use document::{Entry, Item, Table};
use fault::Fault;
use loops::Constants;

pub use canonical::formulas;
pub use write::{option, run, write};

/// The program in the README, compiled and run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What a model file says.
#[derive(Debug, Clone)]
pub struct Model {
    /// The program.
    pub program: Program,
    /// The options of `abide run` that its table `run` stands for, as a user would type them.
    pub options: Vec<String>,
}

/// The keys of a model file.
const KEYS: [&str; 18] = [
    "name",
    "base",
    "flow",
    "axes",
    "spacing",
    "origin",
    "boundary",
    "walls",
    "until",
    "shown",
    "fields",
    "temporaries",
    "parameters",
    "tables",
    "scalars",
    "stages",
    "steps",
    "run",
];

/// The most terms of a model's stages with each turn of their loops: what is written of it has them all, and is to be read
/// again.
pub const MOST_WRITTEN_OUT: usize = 1 << 15;

/// The most bytes of a model file.
pub const MOST_BYTES: usize = 1 << 20;

/// Reads a model file. `source` names it in errors, which state line and column; a file without `name` is named after
/// it.
///
/// # Errors
///
/// [`Error::Invalid`] for a text that is no TOML, an unknown key or name, a faulty formula, and all that
/// [`Definition::build`] refuses; [`Error::Limit`] for more than [`MOST_BYTES`].
pub fn read(text: &str, source: &str) -> Result<Model> {
    if text.len() > MOST_BYTES {
        let change = "leave out what is no model";
        return Err(Error::limit(format!("bytes of {source}"), text.len(), MOST_BYTES, change));
    }
    // A file's name without its folder and its extension.
    let name = Path::new(source).file_stem().and_then(OsStr::to_str).unwrap_or(source);
    // Numbers are read and formulas folded by arithmetic.
    standard(|| model(text, name)).map_err(|fault| fault.error(source, text))
}

/// Reads the options alone of a model file's table `run`, as [`read`] does.
pub fn options(text: &str, source: &str) -> Result<Vec<String>> {
    let read = || {
        let document = document::parse(text)?;
        run_options(Item::new(text, &document).table()?)
    };
    read().map_err(|fault: Fault| fault.error(source, text))
}

/// Reads the flow alone that a model file's table `flow` describes. `source` names the text in errors.
///
/// # Errors
///
/// Those of [`read`]; [`Error::Invalid`] for a model without the table.
#[cfg(feature = "gas")]
pub fn flow(text: &str, source: &str) -> Result<abide_gas::Flow> {
    let read = || {
        let document = document::parse(text)?;
        let all = Item::new(text, &document).table()?;
        let axes = all.get("axes").map_or(Ok(1), Item::whole)?;
        match all.get("flow") {
            Some(flow) => flow::read(flow, axes),
            None => Err(Fault::new(0..0, "it describes no flow", "write a table [flow]")),
        }
    };
    standard(read).map_err(|fault: Fault| fault.error(source, text))
}

fn model(text: &str, name: &str) -> Result<Model, Fault> {
    let document = document::parse(text)?;
    let all = Item::new(text, &document).table()?;
    all.only("key of a model", &KEYS)?;
    let part = |key: &str| all.get(key).map(Item::table).transpose();

    let mut p = begin(all, name)?;
    let dimensions = p.dimensions();
    if let Some(table) = part("fields")? {
        parts::fields(&mut p, table, dimensions)?;
    }
    if let Some(boundary) = all.get("boundary") {
        p.boundaries(boundary.string()?);
        parts::check(&p, boundary)?;
    }
    if let Some(table) = part("temporaries")? {
        parts::temporaries(&mut p, table, dimensions)?;
    }
    let parameters = part("parameters")?;
    if let Some(table) = parameters {
        parts::parameters(&mut p, table)?;
    }
    walls::grid(&mut p, all)?;
    if let Some(table) = part("scalars")? {
        parts::scalars(&mut p, table, dimensions)?;
    }
    if let Some(table) = part("walls")? {
        walls::walls(&mut p, table)?;
    }
    if let Some(shown) = all.get("shown") {
        p.shown(shown.string()?);
    }
    let is_taken = |name: &str| {
        let is_of = |known: &String| known == name || known.starts_with(&format!("{name}["));
        p.fields().iter().chain(p.scalars()).any(is_of) || p.is_parameter(name)
    };
    let tables = part("tables")?.map_or(Ok(Vec::new()), |table| loops::tables(table, is_taken))?;
    cycle(&mut p, all, &tables)?;
    if let Some(table) = parameters {
        parts::varying(&mut p, table, &tables)?;
    }
    let mut program = p.build().map_err(|error| Fault::of(0..0, error))?;
    if let Some(until) = all.get("until") {
        program = program.with_until(until.string()?).map_err(|error| Fault::of(until.at(), error))?;
    }
    Ok(Model { program, options: run_options(all)? })
}

/// Begins the definition: an empty one, or one of the catalogue's.
fn begin(all: Table<'_>, name: &str) -> Result<Definition, Fault> {
    let axes = all.get("axes").map(|axes| Ok((axes, axes.whole::<usize>()?))).transpose()?;
    if let Some(base) = all.get("base") {
        if let Some(flow) = all.get("flow") {
            let change = "leave one of both out";
            return Err(Fault::new(flow.begin(), "a model with a base is no flow", change));
        }
        let entry = entry(base.string()?).map_err(|error| Fault::of(base.at(), error))?;
        let count = axes.map_or(*entry.dimensions.start(), |(_, axes)| axes);
        let program = entry.program(count).map_err(|error| Fault::of(base.at(), error))?;
        let mut p = Definition::of(&program);
        if let Some(name) = all.get("name") {
            p.rename(name.string()?);
        }
        return Ok(p);
    }
    let Some((axes, count)) = axes else {
        let reason = "it does not say how many axes the model has";
        return Err(Fault::new(0..0, reason, "write axes = 2 at its beginning"));
    };
    if !(1..=3).contains(&count) {
        return Err(Fault::new(axes.at(), format!("a model has 1 to 3 axes, not {count}"), "use as many"));
    }
    match all.get("flow") {
        Some(flow) => begin_flow(flow, count, all.get("name").map(Item::string).transpose()?),
        None => Ok(Definition::new(all.get("name").map_or(Ok(name), Item::string)?, count)),
    }
}

#[cfg(feature = "gas")]
use flow::begin as begin_flow;

/// Refuses a flow of gas, which this build knows nothing of.
#[cfg(not(feature = "gas"))]
fn begin_flow(flow: Item<'_>, _: usize, _: Option<&str>) -> Result<Definition, Fault> {
    Err(Fault::new(flow.begin(), "this build has no flows of gases", "use one with the feature gas"))
}

/// Returns an entry of the catalogue.
fn entry(name: &str) -> Result<&'static catalogue::Entry> {
    #[cfg(feature = "gas")]
    if let Some(own) = abide_gas::ENTRIES.iter().find(|entry| entry.name == name) {
        return Ok(own);
    }
    catalogue::find(name)
}

/// Adds the steps of the cycle, with their stages.
fn cycle(p: &mut Definition, all: Table<'_>, tables: &[Constants]) -> Result<(), Fault> {
    let is_based = all.get("base").is_some() || all.get("flow").is_some();
    let name = p.name().to_owned();
    let add_all = |p: &mut Definition, step: usize, stages: Item<'_>| {
        let stages = stages.array()?;
        stages.iter().enumerate().try_for_each(|(number, stage)| {
            let default = if stages.len() == 1 { name.clone() } else { format!("{name} {}", number + 1) };
            let stage_table = stage.table()?;
            stages::add(p, step, stage_table, &default, tables)?;
            // Counting goes through all stages so far.
            let may_loop = |entry: Entry<'_>| {
                entry.item.is_array() || entry.item.string().is_ok_and(|text| text.contains("for"))
            };
            if !stage_table.entries().any(may_loop) {
                return Ok(());
            }
            let terms = p.written_out();
            if terms <= MOST_WRITTEN_OUT {
                return Ok(());
            }
            let what = "terms of a model with each turn of its loops";
            let error =
                Error::limit(what, terms, MOST_WRITTEN_OUT, "choose fewer turns, or write it in Rust");
            Err(Fault::of(stage.at(), error))
        })
    };
    match (all.get("stages"), all.get("steps")) {
        (Some(_), Some(steps)) => {
            let reason = "it has stages, and steps that have stages";
            Err(Fault::new(steps.at(), reason, "write [[stages]] alone, or [[steps]] with [[steps.stages]]"))
        }
        (Some(stages), None) => {
            if !is_based {
                p.step();
            }
            // Stages that are added to a cycle of several steps belong to each.
            (0..p.cycle()).try_for_each(|step| add_all(p, step, stages))
        }
        (None, Some(steps)) => {
            let count = steps.array()?.len();
            if count > MAX_CYCLE {
                let change = "let a scalar count, and formulas choose by it";
                let error = Error::limit("steps of a cycle", count, MAX_CYCLE, change);
                return Err(Fault::of(steps.at(), error));
            }
            for (number, step) in steps.array()?.into_iter().enumerate() {
                let step = step.table()?;
                step.only("key of a step", &["stages"])?;
                if !is_based {
                    p.step();
                }
                if let Some(stages) = step.get("stages") {
                    add_all(p, number, stages)?;
                }
            }
            Ok(())
        }
        (None, None) if is_based => Ok(()),
        (None, None) => {
            let reason = "it has no stages";
            Err(Fault::new(0..0, reason, "write [[stages]], and a field's new value as u = \"u + 0.1*v\""))
        }
    }
}

/// Returns the options that the table `run` stands for: a key is an option, an array one option for each of its
/// values, a table one for each of its names.
fn run_options(all: Table<'_>) -> Result<Vec<String>, Fault> {
    let mut options = Vec::new();
    let Some(run) = all.get("run") else { return Ok(options) };
    for Entry { key, at, item } in run.table()?.entries() {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if key.is_empty() || key.starts_with('-') || !key.chars().all(is_word) {
            return Err(Fault::new(at, format!("`{key}` is no option"), "write options without their --"));
        }
        if let Some(is_set) = item.truth() {
            options.extend(is_set.then(|| format!("--{key}")));
            continue;
        }
        let values: Vec<String> = if item.is_table() {
            let named = item.table()?.entries();
            named
                .map(|entry| Ok(format!("{}={}", entry.key, entry.item.option()?)))
                .collect::<Result<_, Fault>>()?
        } else {
            let items = if item.is_array() { item.array()? } else { vec![item] };
            items.into_iter().map(Item::option).collect::<Result<_, Fault>>()?
        };
        options.extend(values.into_iter().map(|value| format!("--{key}={value}")));
    }
    Ok(options)
}
