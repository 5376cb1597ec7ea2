//! `abide new`: a commented model file, ready to be run and changed.

use std::io::Write;
use std::path::{Path, PathBuf};

use abide::catalogue;
use abide::io::{self, Staged};
use abide::{Error, IntoModel, Model, Result, Shape};
use clap::Args;
use serde_json::json;

use super::{Ended, config, print, print_report};

const EXAMPLES: &str = "\
Examples:
  abide new mine.toml
  abide new waves.toml --from wave
  abide new gas.toml --from cloverleaf-3d --size 64x64x64
  abide run mine.toml --output mine.png

A file that is there already is not replaced. `abide run ENTRY … --write-config NAME.toml` writes a run with all its options.";

/// The file without `--from`. `NAME.toml` and `NAME` stand for the file's own name.
const EXAMPLE: &str = include_str!("new/example.toml");

/// The steps of a run of a catalogue's entry.
const STEPS: u64 = 500;

/// What is said above a table of an entry's file, at its first place.
const COMMENTS: [(&str, &str); 8] = [
    (
        "[fields]",
        "# Fields: arrays over the domain. Each has a start: a number, \"random:1\", \"gaussian\", \"point\", or a table.\n\
         # abide run NAME.toml --input FIELD=values.npy starts from values of your own.",
    ),
    (
        "[temporaries]",
        "# Intermediates of a step that stages hand to each other, and where their values stand.",
    ),
    ("[tables]", "# Constants that the indices of loops read."),
    (
        "[parameters]",
        "# Numbers of the formulas. abide run NAME.toml --param PARAMETER=VALUE changes one for a run.",
    ),
    ("[scalars]", "# Single values that live from step to step, beside the fields."),
    ("[[steps]]", "# The steps of a cycle, one after the other; each has its stages."),
    (
        "[[stages]]",
        "# What a step does, in order. A line sets a field, a scalar or a local name of the stage. A field alone is the cell's own\n\
         # value; offsets in brackets, slowest axis first, read cells beside it: u[-1,0] is the cell before along the first axis.\n\
         # All lines of a stage read the values from before the stage.",
    ),
    ("[run]", "# Options of `abide run`, without their --. The command line wins over the file."),
];

/// The arguments of `new`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct New {
    /// The model file to write
    #[arg(value_name = "NAME.toml")]
    file: PathBuf,

    /// Begin with this stencil or model of `abide list` [default: heat conduction, with comments on all parts of a file]
    #[arg(long, value_name = "ENTRY")]
    from: Option<String>,

    /// With --from, extents of the domain, slowest axis first; the model has as many axes [default: those of `abide run`]
    #[arg(long, value_name = "NxN", requires = "from")]
    size: Option<Shape>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl New {
    /// Writes the file.
    pub fn execute(&self) -> Ended {
        let shown = self.file.display().to_string();
        if self.file.extension().is_none_or(|extension| extension != "toml") {
            let change = format!("name it {}", self.file.with_extension("toml").display());
            return Err(Error::file(&self.file, "the name of a model file ends in .toml", change).into());
        }
        if self.file.symlink_metadata().is_ok() {
            let change = "choose another name, or remove that file first";
            return Err(Error::file(&self.file, "it is there already and is not replaced", change).into());
        }
        let name = name_of(&self.file);
        let text = match &self.from {
            Some(entry) => of_entry(entry, self.size, &name)?,
            None => EXAMPLE.replace("NAME", &name),
        };
        Staged::new(&self.file)?.fill(|out| out.write_all(text.as_bytes()))?.commit()?;
        if self.json {
            return print_report(&json!({ "files": [shown] }), Ok(()));
        }
        let run = format!("abide run {shown} --output {}", self.file.with_extension("png").display());
        Ok(print(&format!("{:<12}{shown}\n{:<12}{run}\n", "wrote", "run it"))?)
    }
}

/// Returns the file's name without its extension, as its comments say it: a name that would break a comment or a shell's
/// line is left out.
fn name_of(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let is_plain = !stem.is_empty() && stem.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
    if is_plain { stem.into_owned() } else { "model".to_owned() }
}

/// Returns the commented file of an entry of the catalogue.
fn of_entry(name: &str, size: Option<Shape>, file: &str) -> Result<String> {
    if io::model::is_model(name) {
        let change = "copy the file, or give an entry of `abide list`";
        return Err(Error::invalid(format!("--from {name}"), "it is a model file already", change));
    }
    let entry = catalogue::find(name)?;
    let model: Model = name.into_model()?;
    let shape = size.map_or_else(|| model.default_size(), Ok)?;
    let options = [("size", shape.to_string()), ("steps", STEPS.to_string()), ("dtype", "f32".to_owned())];
    let options = options.map(|(option, value)| (option.to_owned(), vec![value]));
    let plain = config::text_of(&*model.program(shape.dimensions())?, &options)?;
    Ok(format!(
        "# {}: {}.\n#\n\
         # abide run {file}.toml --output {file}.png     runs it and writes a picture\n\
         # abide run {file}.toml --steps 2000            options on the command line win over the table [run] below\n\n{}",
        entry.name,
        entry.about,
        commented(&plain, file),
    ))
}

/// Adds a comment above the first place of each table.
fn commented(plain: &str, file: &str) -> String {
    let mut text = String::new();
    let mut left = COMMENTS.to_vec();
    for line in plain.lines() {
        if let Some(found) = left.iter().position(|(table, _)| *table == line) {
            let (_, comment) = left.swap_remove(found);
            text.push_str(&comment.replace("NAME", file));
            text.push('\n');
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use abide::text;

    use super::*;

    /// Every entry of the catalogue is written in each number of its axes, and read back with the same formulas; the options
    /// are those of `abide run`.
    #[test]
    fn every_entry_is_read_back() {
        for entry in catalogue::entries() {
            for axes in entry.dimensions.clone() {
                let shape = Shape::new(&vec![24; axes]).unwrap();
                let written = of_entry(entry.name, Some(shape), "mine").unwrap();
                let read = text::read(&written, "mine.toml").unwrap();
                let own = entry.program(axes).unwrap();
                assert_eq!(text::formulas(&read.program), text::formulas(&own), "{} {axes}D", entry.name);
                assert_eq!(text::write(&read.program).unwrap(), text::write(&own).unwrap(), "{}", entry.name);
                io::model::check_options(&read.options).unwrap();
                let comments = written.lines().filter(|line| line.starts_with('#')).count();
                assert!(comments > 6 && !written.contains("NAME"), "{written}");
                // A table of the file has its comment above it.
                for (table, comment) in COMMENTS {
                    let above = format!("{}\n{table}\n", comment.replace("NAME", "mine"));
                    let has = written.lines().any(|line| line == table);
                    assert_eq!(written.contains(&above), has, "{} {table}: {written}", entry.name);
                }
            }
        }
    }

    #[test]
    fn names_that_break_a_line_are_left_out() {
        for (path, name) in [("a/waves-2.toml", "waves-2"), ("a b.toml", "model"), ("x\ny.toml", "model")] {
            assert_eq!(name_of(Path::new(path)), name);
        }
    }
}
