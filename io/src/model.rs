//! Model files: programs as text.

use std::path::Path;

use abide_core::{Error, Result};
use abide_text as text;

use super::{bounded, is_of_several, provenance};

/// Reads a model file. Its name without the extension is the program's unless the file gives another.
///
/// # Errors
///
/// [`Error::File`] for a file that cannot be read or is no UTF-8; else those of [`text::read`], which name the
/// file, the line and the column.
pub fn read(path: &Path) -> Result<text::Model> {
    text::read(&contents(path)?, &path.display().to_string())
}

/// Reads the options alone of a model file's table `run`, as [`read`] does.
pub fn options(path: &Path) -> Result<Vec<String>> {
    text::options(&contents(path)?, &path.display().to_string())
}

/// The options of `abide run`, which a table `run` may name.
#[rustfmt::skip]
pub const RUN_OPTIONS: [&str; 39] = [
    "annotate", "backend", "batch", "boundary", "cache", "check-finite", "checkpoint", "colormap", "depth", "device-list", "devices",
    "dtype", "every", "exchange", "execution", "force", "frames", "fuse", "input", "jam", "json", "lowering", "output",
    "param", "pin", "probe", "range", "record", "record-every", "resume", "rows", "size", "steps", "tables", "team",
    "tune", "until", "verbose", "write-config",
];

/// Refuses options of a table `run` that `abide run` has not, for readers that take some of them alone.
///
/// # Errors
///
/// [`Error::Unknown`] with the options there are.
pub fn check_options(options: &[String]) -> Result<()> {
    let name =
        |option: &String| option.trim_start_matches('-').split('=').next().unwrap_or_default().to_owned();
    match options.iter().map(name).find(|name| !RUN_OPTIONS.contains(&name.as_str())) {
        Some(unknown) => Err(Error::unknown("option of the table [run]", unknown, RUN_OPTIONS)),
        None => Ok(()),
    }
}

/// Returns whether a name is that of a model file: its extension says so, or it is the process's standard input or
/// another open file of it, as a shell's `<(…)` is.
pub fn is_model(name: &str) -> bool {
    if name == "/dev/stdin" || name.starts_with("/dev/fd/") {
        return true;
    }
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
        || is_result(Path::new(name))
}

/// Returns whether a name is that of a file that may say which run its fields are the result of.
pub fn is_result(path: &Path) -> bool {
    is_of_several(path)
}

/// Returns the text of a model file, of which nothing is read yet; of a result, that of the run that it comes from.
///
/// # Errors
///
/// [`Error::File`] for a file that cannot be read or is no UTF-8, and for a result that does not say where it comes from.
pub fn contents(path: &Path) -> Result<String> {
    if is_result(path) {
        let model = provenance(path)?.map(|own| own.model).filter(|model| !model.is_empty());
        let change = "give a result that `abide run` wrote, or a model file";
        return model.ok_or_else(|| Error::file(path, "it does not say which run it comes from", change));
    }
    bounded::text(path, text::MOST_BYTES, "give a model file, a text in UTF-8")
}
