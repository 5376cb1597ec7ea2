//! Model files and the command: the options that a file stands for, and the file that a run is written as.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

use abide::io::{self, Staged};
use abide::program::Problem;
use abide::{Error, Result, text};
use clap::{ArgAction, ArgMatches, CommandFactory, parser::ValueSource};

use super::Command;

/// Options that say how a run is shown, not what it computes.
const SHOWN: [&str; 2] = ["json", "write-config"];

/// Adds the options that a model file's table `run` has to those that the user gave, which win. `run` takes all
/// of them, other verbs those that they know.
pub fn with_options(typed: &[OsString]) -> Result<Vec<OsString>> {
    let mut all = typed.to_vec();
    let command = Command::command();
    // Faults are told when all options are there.
    let asked = command.clone().ignore_errors(true).try_get_matches_from(typed);
    let Some((verb, own)) = asked.as_ref().ok().and_then(ArgMatches::subcommand) else { return Ok(all) };
    let model = own.try_get_one::<String>("stencil").ok().flatten().filter(|name| io::model::is_model(name));
    let (Some(model), Some(described)) = (model, command.find_subcommand(verb)) else { return Ok(all) };
    let mut options = io::model::options(Path::new(model))?;
    options.retain(|option| {
        let name = option.trim_start_matches('-').split('=').next();
        match described.get_arguments().find(|argument| argument.get_long() == name) {
            // What may be given several times is added to.
            Some(argument) => {
                let is_given = own.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine);
                matches!(argument.get_action(), ArgAction::Append) || !is_given
            }
            // The parser tells of an option that there is not.
            None => verb == "run",
        }
    });
    let behind = typed.iter().position(|argument| argument == verb).map_or(all.len(), |at| at + 1);
    all.splice(behind..behind, options.into_iter().map(OsString::from));
    Ok(all)
}

/// The options that a user gave for a run, as the table `run` of a model file says them.
#[derive(Clone, Default)]
pub struct Given(Vec<(String, Vec<String>)>);

impl Given {
    /// Returns the options of the verb `run` that were given; none for other verbs.
    pub fn of(matches: &ArgMatches) -> Result<Given> {
        let Some(("run", own)) = matches.subcommand() else { return Ok(Given::default()) };
        let command = Command::command();
        let arguments = command.find_subcommand("run").into_iter().flat_map(|run| run.get_arguments());
        let mut given = Vec::new();
        for argument in arguments {
            let id = argument.get_id().as_str();
            let Some(long) = argument.get_long().filter(|long| !SHOWN.contains(long)) else { continue };
            if own.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            let values = match argument.get_action() {
                ArgAction::SetTrue => Vec::new(),
                _ => {
                    let raw = own.get_raw(id).into_iter().flatten();
                    let unreadable = |_| {
                        let change = "name its files in UTF-8";
                        Error::invalid(format!("--{long}"), "no model file can say its value", change)
                    };
                    raw.map(|value| value.to_owned().into_string().map_err(unreadable))
                        .collect::<Result<Vec<_>>>()?
                }
            };
            given.push((long.to_owned(), values));
        }
        Ok(Given(given))
    }

    /// Writes a run as a model file: its program, and the options that give the same bits again.
    pub fn write(&self, path: &Path, problem: &Problem) -> Result<()> {
        let mut all = text::write(&problem.program)?;
        all.push_str("\n[run]\n");
        let has = |name: &str| self.0.iter().any(|(given, _)| given == name);
        let mut options = self.0.clone();
        let own = [("size", problem.shape.to_string()), ("dtype", problem.dtype.to_string())];
        let missing = own.into_iter().filter(|(name, _)| !has(name));
        options.extend(missing.map(|(name, value)| (name.to_owned(), vec![value])));
        for (name, values) in &options {
            all.push_str(&match values.as_slice() {
                [] => format!("{name} = true\n"),
                values => text::option(name, values),
            });
        }
        Staged::new(path)?.fill(|out| out.write_all(all.as_bytes()))?.commit()
    }
}
