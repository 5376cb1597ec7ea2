//! Model files: programs as text.

use std::path::Path;

use abide_text as text;

use super::bounded;
use crate::Result;

/// Reads a model file. Its name without the extension is the program's unless the file gives another.
///
/// # Errors
///
/// [`Error::File`](crate::Error::File) for a file that cannot be read or is no UTF-8; else those of [`text::read`], which name the
/// file, the line and the column.
pub fn read(path: &Path) -> Result<text::Model> {
    text::read(&contents(path)?, &path.display().to_string())
}

/// Reads the options alone of a model file's table `run`, as [`read`] does.
pub fn options(path: &Path) -> Result<Vec<String>> {
    text::options(&contents(path)?, &path.display().to_string())
}

/// Returns whether a name is that of a model file.
pub fn is_model(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"))
}

/// Returns the text of a model file, of which nothing is read yet.
pub fn contents(path: &Path) -> Result<String> {
    bounded::text(path, text::MOST_BYTES, "give a model file, a text in UTF-8")
}
