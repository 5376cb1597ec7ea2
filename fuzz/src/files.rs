//! Files in the program itself: the corpus to start from, and inputs that went wrong before.

use include_dir::{Dir, include_dir};

static CORPUS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpus");
static REGRESSIONS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/regressions");

/// A file's name and contents.
pub type File = (String, &'static [u8]);

/// Returns the inputs that a target starts from.
pub fn corpus(target: &str) -> Vec<File> {
    files(&CORPUS, target)
}

/// Returns the inputs that a target went wrong on before.
pub fn regressions(target: &str) -> Vec<File> {
    files(&REGRESSIONS, target)
}

fn files(folder: &'static Dir<'_>, target: &str) -> Vec<File> {
    let inside = folder.get_dir(target).into_iter().flat_map(Dir::files);
    let name = |path: &std::path::Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    inside.map(|file| (name(file.path()), file.contents())).collect()
}

/// Returns the names of all folders, so that none is forgotten.
pub fn folders() -> Vec<String> {
    let all = CORPUS.dirs().chain(REGRESSIONS.dirs());
    all.map(|folder| folder.path().to_string_lossy().into_owned()).collect()
}
