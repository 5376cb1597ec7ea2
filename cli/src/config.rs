//! Model files and the command: the options that a file stands for, and the file that a run is written as.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use abide::io::{self, Provenance, Staged};
use abide::program::Problem;
use abide::{Error, Program, Result, Simulation, text};
use clap::{Arg, ArgAction, ArgMatches, parser::ValueSource};

use super::trust;

/// Options that say how a run is shown or what it may do, not what it computes.
const SHOWN: [&str; 4] = ["json", "verbose", "write-config", trust::OPTION];

/// Options whose values are each for a name: those whose names the command line leaves out stay the file's. Any
/// other option has the values of the command line alone, if it is given there.
const BY_NAME: [&str; 2] = ["input", "param"];

/// Options that contradict each other for a run, beside those that the parser knows.
const CONTRADICT: [(&str, &str); 2] = [("input", "resume"), ("resume", "input")];

/// Options of files that are written on the way, beside those that name them.
const OF_FILES: [&str; 3] = ["every", "record-every", "probe"];

/// The arguments of a command, those of a model file's table `run` among them.
pub struct Arguments {
    /// All arguments, the command's name first.
    pub all: Vec<OsString>,
    /// The options that are the file's alone, without their `--`.
    pub of_file: OfFile,
}

/// The names of the options that a model file gave and the command line did not.
#[derive(Debug, Clone, Default)]
pub struct OfFile(BTreeSet<String>);

impl OfFile {
    /// Returns whether an option is the file's alone.
    pub fn has(&self, option: &str) -> bool {
        self.0.contains(option)
    }
}

/// Adds the options that a model file's table `run` has to those that the user gave, which win: a value that the
/// user gave takes the place of the file's. `run` takes all of them, other verbs those that they know.
///
/// # Errors
///
/// Those of the model file; [`Error::Invalid`] for a file that the table names and that [`trust`] refuses.
pub fn with_options(typed: &[OsString]) -> Result<Arguments> {
    let mut arguments = Arguments { all: typed.to_vec(), of_file: OfFile::default() };
    let command = super::described();
    // Faults are reported once all options are there.
    let asked = command.clone().ignore_errors(true).try_get_matches_from(typed);
    let Some((verb, own)) = asked.as_ref().ok().and_then(ArgMatches::subcommand) else {
        return Ok(arguments);
    };
    let model = own.try_get_one::<String>("stencil").ok().flatten().filter(|name| io::model::is_model(name));
    let (Some(model), Some(described)) = (model, command.find_subcommand(verb)) else {
        return Ok(arguments);
    };
    let given =
        |argument: &Arg| own.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine);
    let typed_ones: Vec<&Arg> = described.get_arguments().filter(|argument| given(argument)).collect();
    let mut kept = Vec::new();
    for option in text::options(&contents(model)?, model)? {
        let (name, value) = split(&option);
        trust::check_option(model, name)?;
        // A result is computed again, and written where the command line says.
        if io::model::is_result(Path::new(model)) && (trust::writes(name) || OF_FILES.contains(&name)) {
            continue;
        }
        let Some(argument) = described.get_arguments().find(|argument| argument.get_long() == Some(name))
        else {
            // The parser reports an option that does not exist.
            if verb == "run" {
                kept.push(option);
            }
            continue;
        };
        let conflicts = |one: &Arg, other: &Arg| {
            described.get_arg_conflicts_with(one).iter().any(|found| found.get_id() == other.get_id())
        };
        let is_contradicted = typed_ones.iter().any(|typed| {
            let longs = (Some(name), typed.get_long());
            conflicts(typed, argument)
                || conflicts(argument, typed)
                || CONTRADICT.iter().any(|(file, typed)| longs == (Some(file), Some(typed)))
        });
        if is_contradicted {
            continue;
        }
        if given(argument) && !BY_NAME.contains(&name) {
            continue;
        }
        let typed = own.get_raw(argument.get_id().as_str()).filter(|_| given(argument));
        let typed: Vec<_> = typed.into_iter().flatten().map(|value| value.to_string_lossy()).collect();
        let names: Vec<Option<&str>> = typed.iter().map(|value| named(name, value)).collect();
        for value in unnamed_by(model, &names, name, value.unwrap_or_default())? {
            kept.push(if option.contains('=') { format!("--{name}={value}") } else { option.clone() });
        }
        if !given(argument) {
            arguments.of_file.0.insert(name.to_owned());
        }
    }
    if own.try_get_one::<bool>(trust::ID).ok().flatten() != Some(&true) {
        kept.iter().map(|option| split(option)).try_for_each(|(name, value)| match value {
            Some(value) => trust::check_path(model, name, value),
            None => Ok(()),
        })?;
    }
    let behind = typed.iter().position(|argument| argument == verb).map_or(typed.len(), |at| at + 1);
    arguments.all.splice(behind..behind, kept.into_iter().map(OsString::from));
    Ok(arguments)
}

/// Splits `--name=value`.
fn split(option: &str) -> (&str, Option<&str>) {
    let option = option.trim_start_matches('-');
    option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)))
}

/// Returns the name that a value of an option is for.
fn named<'v>(option: &str, value: &'v str) -> Option<&'v str> {
    match option {
        "param" => value.split_once('=').map(|(name, _)| name.trim()),
        _ => super::named(value).0,
    }
}

/// Returns what is left of a file's value beside the values that the command line gives to `names`. A value
/// without a name is for every field that the model changes.
fn unnamed_by(model: &str, names: &[Option<&str>], option: &str, value: &str) -> Result<Vec<String>> {
    let whole = || vec![value.to_owned()];
    if names.is_empty() {
        return Ok(whole());
    }
    if names.contains(&None) {
        return Ok(Vec::new());
    }
    if let Some(own) = named(option, value) {
        return Ok(if names.contains(&Some(own)) { Vec::new() } else { whole() });
    }
    let program = text::read(&contents(model)?, model)?.program;
    let fields = program.fields().iter().enumerate().filter(|(number, _)| program.is_written(*number));
    let others = fields.map(|(_, field)| field).filter(|field| !names.contains(&Some(field.as_str())));
    Ok(others.map(|field| format!("{field}={value}")).collect())
}

/// Returns the text of a model file. A pipe, which can be read only once, is read once.
pub fn contents(model: &str) -> Result<String> {
    static READ: Mutex<Option<(PathBuf, String)>> = Mutex::new(None);
    let path = Path::new(model);
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, text)) = read.as_ref()
        && known == path
    {
        return Ok(text.clone());
    }
    let text = io::model::contents(path)?;
    *read = Some((path.to_owned(), text.clone()));
    Ok(text)
}

/// The options that a user gave for a run, as the table `run` of a model file says them.
#[derive(Clone, Default)]
pub struct Given(Vec<(String, Vec<String>)>);

impl Given {
    /// Returns the options of the verb `run` that were given; none for other verbs.
    pub fn of(matches: &ArgMatches) -> Result<Given> {
        let Some(("run", own)) = matches.subcommand() else { return Ok(Given::default()) };
        let command = super::described();
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
        let all = self.text(problem)?;
        Staged::new(path)?.fill(|out| out.write_all(all.as_bytes()))?.commit()
    }

    /// Returns where the results of a run come from, with the run as a model file. A program that no text can say has none.
    pub fn provenance(&self, simulation: &Simulation) -> Provenance {
        let model = self.text(simulation.problem()).unwrap_or_default();
        Provenance { model, ..simulation.provenance() }
    }

    /// Returns a run as a model file.
    pub fn text(&self, problem: &Problem) -> Result<String> {
        let has = |name: &str| self.0.iter().any(|(given, _)| given == name);
        let mut options = self.0.clone();
        let own = [("size", problem.shape.to_string()), ("dtype", problem.dtype.to_string())];
        let missing = own.into_iter().filter(|(name, _)| !has(name));
        options.extend(missing.map(|(name, value)| (name.to_owned(), vec![value])));
        text_of(&problem.program, &options)
    }
}

/// Returns a model file: a program, and a table `run` of these options, each with its values; one without a value is set.
pub fn text_of(program: &Program, options: &[(String, Vec<String>)]) -> Result<String> {
    let mut all = text::write(program)?;
    all.push_str("\n[run]\n");
    for (name, values) in options {
        all.push_str(&match values.as_slice() {
            [] => format!("{name} = true\n"),
            values => text::option(name, values),
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options of `run` that may be given several times are for a name each, or are the command line's alone:
    /// a new one has its place in a table.
    #[test]
    fn options_given_several_times_have_their_rule() {
        let command = super::super::described();
        let run = command.find_subcommand("run").unwrap();
        let several = |argument: &&Arg| matches!(argument.get_action(), ArgAction::Append);
        let several: BTreeSet<_> = run.get_arguments().filter(several).filter_map(Arg::get_long).collect();
        let whole = ["device-list", "output", "probe"];
        assert_eq!(several, BY_NAME.iter().chain(&whole).copied().collect());
        for (a, b) in CONTRADICT {
            assert!(run.get_arguments().any(|argument| argument.get_long() == Some(a)));
            assert!(run.get_arguments().any(|argument| argument.get_long() == Some(b)));
        }
    }
}
