//! The files that a model file's table `run` may name: a model file comes from others as often as not, and its
//! reader does not expect it to write.

use std::path::{Component, Path, PathBuf};

use abide::io::{Format, Numbered, Selected};
use abide::{Error, Result};

use super::problem::Input;

/// The option by which a user lets a model file name any file.
pub const OPTION: &str = "trust-file";
/// The parser's name for it.
pub const ID: &str = "trust_file";

/// What an option of `run` does with the file that it names.
enum Use {
    Reads,
    /// The extensions of these formats: a model file chooses no others.
    Outputs(fn(Format) -> bool),
    /// A file of this extension.
    Writes(&'static str),
}

/// The options of `run` that name files.
const FILES: [(&str, Use); 7] = [
    ("input", Use::Reads),
    ("resume", Use::Reads),
    ("output", Use::Outputs(|_| true)),
    ("frames", Use::Outputs(|format| !format.grows())),
    ("record", Use::Writes("csv")),
    ("checkpoint", Use::Writes("npz")),
    ("write-config", Use::Writes("toml")),
];

/// Returns whether an option names a file that a run writes.
pub fn writes(option: &str) -> bool {
    FILES.iter().any(|(name, files)| *name == option && !matches!(files, Use::Reads))
}

/// Refuses an option that a model file must not give.
pub fn check_option(model: &str, option: &str) -> Result<()> {
    match option {
        OPTION => Err(Error::invalid(
            format!("{model}, [run] {OPTION}"),
            "a file cannot say that it is to be trusted",
            format!("take the key out, and give --{OPTION} on the command line"),
        )),
        _ => Ok(()),
    }
}

/// Refuses a file that a model file names for an option: one that lies outside of the working folder, by `..`, an
/// absolute path or a link; one that is hidden, or of another kind than the option's; and, where it is written, one
/// that is there already.
pub fn check_path(model: &str, option: &str, value: &str) -> Result<()> {
    let Some((_, files)) = FILES.iter().find(|(name, _)| *name == option) else { return Ok(()) };
    let Some(path) = path_of(option, value) else { return Ok(()) };
    let refusal = |reason: String| {
        let what = format!("{model}, [run] {option} = `{value}`");
        let change = format!("give --{option} on the command line, or --{OPTION} if you trust the file");
        Err(Error::invalid(what, reason, change))
    };
    for part in path.components() {
        match part {
            Component::Normal(name) => {
                let name = name.to_string_lossy();
                if name.starts_with('.') {
                    return refusal("a model file names no hidden file".to_owned());
                }
                if name.chars().any(char::is_control) {
                    return refusal("the name holds a control character".to_owned());
                }
            }
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return refusal("it leads out of the working folder".to_owned());
            }
        }
    }
    let found = match option {
        // The files of any number. The parser reports a wrong pattern.
        "frames" => value_of(value).parse::<Numbered>().map_or(Vec::new(), |names| names.found()),
        _ => vec![path.clone()],
    };
    if [&path].into_iter().chain(&found).any(|path| leads_out(path)) {
        return refusal("a link leads out of the working folder".to_owned());
    }
    let kinds = match files {
        Use::Reads => None,
        Use::Outputs(is_asked) => Some(Format::all_extensions(is_asked)),
        Use::Writes(kind) => Some(vec![*kind]),
    };
    if let Some(kinds) = kinds {
        let kind = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if !kinds.contains(&kind.as_str()) {
            return refusal(format!("a model file names a .{} file here", kinds.join(", .")));
        }
        if let Some(there) = found.iter().find(|path| path.symlink_metadata().is_ok()) {
            return refusal(format!(
                "{} is there already, and a model file replaces nothing",
                there.display()
            ));
        }
    }
    Ok(())
}

/// Returns the file that an option's value names; `None` where it names none.
fn path_of(option: &str, value: &str) -> Option<PathBuf> {
    match option {
        "input" => value.parse::<Input>().ok()?.file().map(|(_, path)| Selected::of(path).file),
        "output" | "frames" => Some(value_of(value).into()),
        _ => Some(value.into()),
    }
}

fn value_of(value: &str) -> &str {
    super::named(value).1
}

/// Returns whether a link on the way to a file, or the file as a link, leads out of the working folder.
fn leads_out(path: &Path) -> bool {
    let Ok(here) = Path::new(".").canonicalize() else { return true };
    let mut way = path.ancestors().filter(|part| !part.as_os_str().is_empty());
    way.any(|part| {
        let is_link = part.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        is_link && part.canonicalize().map_or(true, |end| !end.starts_with(&here))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every option of `run` that takes a file is in the table, with what it does.
    #[test]
    fn the_table_has_every_option_that_names_a_file() {
        let command = super::super::described();
        let run = command.find_subcommand("run").unwrap();
        let is_file = |argument: &&clap::Arg| {
            let names = argument.get_value_names().unwrap_or_default();
            argument.get_action().takes_values()
                && names
                    .iter()
                    .any(|name| ["FILE", "SOURCE", "PATTERN"].iter().any(|word| name.contains(word)))
        };
        let files: Vec<_> = run.get_arguments().filter(is_file).filter_map(clap::Arg::get_long).collect();
        let known: Vec<_> = FILES.iter().map(|(name, _)| *name).collect();
        assert!(
            files.iter().all(|file| known.contains(file)) && files.len() == known.len(),
            "{files:?} {known:?}"
        );
        assert!(
            run.get_arguments()
                .any(|argument| argument.get_id() == ID && argument.get_long() == Some(OPTION))
        );
    }
}
