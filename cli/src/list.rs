//! `abide list`.

use std::fmt::Write as _;

use abide::Result;
use abide::catalogue::{self, Entry};
use clap::Args;
use serde_json::{Value, json};

use super::{Ended, footprint};

/// The arguments of `list`.
#[derive(Args)]
pub struct List {
    /// Show this stencil's or model's fields, parameters and footprints
    stencil: Option<String>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl List {
    /// Prints a line for each entry of the catalogue, or the details of one.
    pub fn execute(&self) -> Ended {
        let entries: Vec<&Entry> = match &self.stencil {
            Some(name) => vec![catalogue::find(name)?],
            None => catalogue::entries().collect(),
        };
        if self.json {
            super::print_json(&entries.iter().map(|entry| as_json(entry)).collect::<Result<Vec<_>>>()?)?;
        } else {
            let mut text = String::new();
            match self.stencil {
                Some(_) => entries.iter().try_for_each(|entry| describe(&mut text, entry))?,
                None => overview(&mut text, &entries)?,
            }
            super::print(&text)?;
        }
        Ok(())
    }
}

/// Returns the number of axes of the form that is shown: two where the entry can have two.
fn dimensions(entry: &Entry) -> usize {
    2.clamp(*entry.dimensions.start(), *entry.dimensions.end())
}

/// Returns the axes that an entry can have, as in `1D to 3D`.
fn axes(entry: &Entry) -> String {
    let (low, high) = (entry.dimensions.start(), entry.dimensions.end());
    if low == high { format!("{low}D") } else { format!("{low}D to {high}D") }
}

/// Writes a line for each entry: its name, axes, the number of its fields, and what it is.
fn overview(text: &mut String, entries: &[&Entry]) -> Result<()> {
    let name = entries.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{:<name$}  {:<8}  fields  about", "name", "axes");
    for entry in entries {
        let fields = entry.program(dimensions(entry))?.public_fields().len();
        let _ = writeln!(text, "{:<name$}  {:<8}  {fields:>6}  {}", entry.name, axes(entry), entry.about);
    }
    text.push_str("\nabide list NAME shows fields, parameters and footprints; abide run NAME --steps 500 --output NAME.png runs one.\n");
    Ok(())
}

fn describe(text: &mut String, entry: &Entry) -> Result<()> {
    let program = entry.program(dimensions(entry))?;
    let axes = axes(entry);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{}  ({axes})\n    {}", entry.name, entry.about);
    let field = |number: usize| {
        let name = &program.fields()[number];
        let shown = number == program.shown() && program.fields().len() > 1;
        match (program.is_written(number), shown) {
            (false, _) => format!("{name} (given)"),
            (true, true) => format!("{name} (shown)"),
            (true, false) => name.clone(),
        }
    };
    let all = 0..program.fields().len();
    let fields: Vec<String> = all.filter(|&number| !program.kinds()[number].is_internal).map(field).collect();
    let _ = writeln!(
        text,
        "    fields {}; boundary {}; {} flops per cell",
        fields.join(", "),
        program.boundary(),
        program.flops()
    );
    for p in program.parameters() {
        let _ = writeln!(text, "    --param {:<12} {}", format!("{}={}", p.name, p.default), p.about);
    }
    for (at, stage) in program.stages().iter().enumerate() {
        for (picture, (names, lines)) in footprint::pictures(stage, &program.names()).into_iter().enumerate()
        {
            if at + picture > 0 {
                text.push('\n');
            }
            let of = if program.stages().len() > 1 { format!("{}: {names}", stage.name) } else { names };
            let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
            for (number, line) in lines.iter().enumerate() {
                let padding = " ".repeat(width - line.chars().count());
                let label = if number == 0 { of.as_str() } else { "" };
                let _ = writeln!(text, "{}", format!("      {line}{padding}   {label}").trim_end());
            }
        }
    }
    text.push('\n');
    Ok(())
}

fn as_json(entry: &Entry) -> Result<Value> {
    let program = entry.program(dimensions(entry))?;
    let names = program.names();
    let scalars: Vec<Value> = program
        .scalars()
        .iter()
        .filter(|s| !s.is_internal)
        .map(|s| json!({ "name": s.name, "initial": s.initial, "about": s.about }))
        .collect();
    let parameters: Vec<Value> = program
        .parameters()
        .iter()
        .map(|p| json!({ "name": p.name, "default": p.default, "about": p.about }))
        .collect();
    let stages: Vec<Value> = program
        .stages()
        .iter()
        .map(|stage| {
            let taps: Vec<Value> = stage
                .dag
                .taps()
                .map(|tap| json!({ "field": names[usize::from(tap.field)], "offset": tap.offset }))
                .collect();
            json!({ "name": stage.name, "footprint": stage.footprint, "taps": taps })
        })
        .collect();
    Ok(json!({
        "name": entry.name,
        "about": entry.about,
        "dimensions": [entry.dimensions.start(), entry.dimensions.end()],
        "fields": program.public_fields(),
        "shown": program.fields()[program.shown()],
        "boundary": program.boundary().to_string(),
        "parameters": parameters,
        "scalars": scalars,
        "stages": stages,
    }))
}
