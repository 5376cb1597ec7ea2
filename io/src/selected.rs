//! Names of arrays in files that hold several: `FILE.npz:NAME`, `FILE.h5:PATH@INDEX`.

use std::path::{Path, PathBuf};

/// The extensions of files that hold several arrays by name.
const OF_SEVERAL: [&str; 5] = ["npz", "h5", "hdf5", "vtkhdf", "nc"];

/// A file, and which of its arrays is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// The file.
    pub file: PathBuf,
    /// The array's name in the file.
    pub name: Option<String>,
    /// The index along its first axis, from the end where it is negative.
    pub index: Option<i64>,
}

impl Selected {
    /// Reads a file's name, and behind it `:NAME`, `@INDEX` or both. Behind the name of a file of a single array nothing is
    /// looked for.
    pub fn of(path: &Path) -> Selected {
        let whole = || Selected { file: path.to_owned(), name: None, index: None };
        let Some((file, behind)) = path.to_str().and_then(split) else { return whole() };
        let (name, index) = match behind.rsplit_once('@') {
            Some((name, index)) => match index.parse() {
                Ok(index) => (name, Some(index)),
                Err(_) => (behind, None),
            },
            None => (behind, None),
        };
        let name = name.strip_prefix(':').filter(|name| !name.is_empty()).map(str::to_owned);
        Selected { file: PathBuf::from(file), name, index }
    }
}

/// Splits a text behind the extension of a file of several arrays.
fn split(text: &str) -> Option<(&str, &str)> {
    let ends = |extension: &&str| {
        let found = text.match_indices('.').filter(|(at, _)| {
            let behind = &text[at + 1..];
            behind.get(..extension.len()).is_some_and(|own| own.eq_ignore_ascii_case(extension))
                && behind[extension.len()..].starts_with([':', '@'])
        });
        found.map(|(at, _)| at + 1 + extension.len()).max()
    };
    OF_SEVERAL.iter().filter_map(ends).max().map(|at| text.split_at(at))
}

/// Returns whether a file of this name holds several arrays by name, and which is meant is not said.
pub fn is_of_several(path: &Path) -> bool {
    let Selected { file, name, .. } = Selected::of(path);
    name.is_none() && OF_SEVERAL.contains(&super::extension(&file).as_str())
}

/// Returns a file's name with the array of this name in it, where the file holds several and none is named yet.
pub fn naming(path: &Path, name: &str) -> PathBuf {
    if !is_of_several(path) {
        return path.to_owned();
    }
    let Selected { file, index, .. } = Selected::of(path);
    let mut named = file.into_os_string();
    named.push(format!(":{name}"));
    if let Some(index) = index {
        named.push(format!("@{index}"));
    }
    named.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_named_behind_their_file() {
        let of = |text: &str| {
            let Selected { file, name, index } = Selected::of(Path::new(text));
            (file.display().to_string(), name, index)
        };
        let own = |file: &str, name: Option<&str>, index| (file.to_owned(), name.map(str::to_owned), index);
        assert_eq!(of("a.npz:u"), own("a.npz", Some("u"), None));
        assert_eq!(of("a.H5:/g/u@-1"), own("a.H5", Some("/g/u"), Some(-1)));
        assert_eq!(of("b.npz/a.h5@3"), own("b.npz/a.h5", None, Some(3)));
        assert_eq!(of("a.h5:u@last"), own("a.h5", Some("u@last"), None));
        assert_eq!(of("a.npy:u"), own("a.npy:u", None, None));
        assert_eq!(of("a.h5"), own("a.h5", None, None));
        assert!(is_of_several(Path::new("a.h5@3")) && !is_of_several(Path::new("a.npz:u")));
        assert!(!is_of_several(Path::new("a.npy")));
        assert_eq!(naming(Path::new("a.h5@-1"), "u"), Path::new("a.h5:u@-1"));
        assert_eq!(naming(Path::new("a.npy"), "u"), Path::new("a.npy"));
    }
}
