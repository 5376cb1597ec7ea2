//! Checks of a command's outputs against each other and against its inputs, before it does anything.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use abide_core::{Error, Result};

use super::place::{Identity, Place, folder_of, identity_of_input};
use super::{Numbered, check_target};

/// Number of checks before a fault is reported.
const CHECKS: usize = 4;

/// All files of a command: no output may replace another output, or an input that holds something else.
#[derive(Default)]
pub struct Targets {
    outputs: Vec<Output>,
    numbered: Option<(Numbered, RangeInclusive<u64>)>,
    inputs: Vec<Input>,
}

struct Output {
    path: PathBuf,
    /// The contents of the file, where it may replace an input that holds the same.
    holds: Option<String>,
    /// Whether each writing replaces the one before.
    again: bool,
}

struct Input {
    path: PathBuf,
    holds: Vec<String>,
}

/// Outputs by where they lead.
#[derive(Default)]
struct Known<'a>(HashMap<Identity, (PathBuf, Option<&'a str>)>);

impl<'a> Known<'a> {
    fn add(&mut self, path: &Path, place: &Place, holds: Option<&'a str>) -> Result<()> {
        // A device takes any number of outputs.
        let Some(identity) = place.identity() else { return Ok(()) };
        match self.0.entry(identity) {
            Entry::Occupied(other) => Err(collision(path, &other.get().0)),
            Entry::Vacant(new) => {
                new.insert((path.to_owned(), holds));
                Ok(())
            }
        }
    }
}

impl Targets {
    /// Adds a file that is written once.
    pub fn output(&mut self, path: &Path) {
        self.outputs.push(Output { path: path.to_owned(), holds: None, again: false });
    }

    /// Adds a file that is written once, and may replace an input that holds the same contents in the same
    /// format.
    pub fn output_of(&mut self, path: &Path, holds: String) {
        self.outputs.push(Output { path: path.to_owned(), holds: Some(holds), again: false });
    }

    /// Adds a file that is written again and again, each time as a whole.
    pub fn rewritten(&mut self, path: &Path, holds: Option<String>) {
        self.outputs.push(Output { path: path.to_owned(), holds, again: true });
    }

    /// Adds files with these numbers in their names.
    pub fn numbered(&mut self, names: Numbered, numbers: RangeInclusive<u64>) {
        self.numbered = Some((names, numbers));
    }

    /// Adds a file that is read; outputs that hold any of `holds` may replace it.
    pub fn input(&mut self, path: &Path, holds: Vec<String>) {
        self.inputs.push(Input { path: path.to_owned(), holds });
    }

    /// Refuses outputs that cannot be written, and outputs by which data would be lost.
    pub fn check(&self) -> Result<()> {
        // While another process replaces files, the number of a file that is gone can become another file's
        // between two lookups. A fault that stands is found again.
        (1..CHECKS).fold(self.check_once(), |outcome, _| outcome.or_else(|_| self.check_once()))
    }

    fn check_once(&self) -> Result<()> {
        let mut known = Known::default();
        let mut places = Vec::new();
        let kept: Vec<PathBuf> =
            abide_tuning::folders().iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        let is_kept = |place: &Place| match place {
            Place::File { path, .. } => kept.iter().any(|folder| path.starts_with(folder)),
            _ => false,
        };
        let check_kept = |path: &Path, place: &Place| match is_kept(place) {
            true => Err(Error::file(path, "it lies in Abide's own cache folder", "write elsewhere")),
            false => Ok(()),
        };
        for Output { path, holds, again } in &self.outputs {
            check_target(path)?;
            let place = Place::find(path)?;
            if *again && place.appends() {
                let message = "it is written again and again, and there each would follow the one before";
                return Err(Error::file(path, message, "give a file's name"));
            }
            check_kept(path, &place)?;
            known.add(path, &place, holds.as_deref())?;
            places.push((path, place));
        }
        if let Some((names, numbers)) = &self.numbered {
            let first = names.path(*numbers.start());
            check_target(&first)?;
            check_kept(&first, &Place::find(&first)?)?;
            let present = names.present(numbers);
            check_folders(names, numbers, &present)?;
            check_names(names, numbers, &places)?;
            for (_, path) in present {
                known.add(&path, &Place::find(&path)?, None)?;
            }
        }
        for Input { path, holds } in &self.inputs {
            let Some((output, held)) = identity_of_input(path).and_then(|identity| known.0.get(&identity))
            else {
                continue;
            };
            if held.is_none_or(|held| !holds.iter().any(|own| own == held)) {
                let message =
                    format!("it would replace the input {}, which holds something else", path.display());
                return Err(Error::file(output, message, "give the output a name of its own"));
            }
        }
        Ok(())
    }
}

/// Refuses outputs under a name that a numbered file may have.
fn check_names(names: &Numbered, numbers: &RangeInclusive<u64>, places: &[(&PathBuf, Place)]) -> Result<()> {
    let Some(folder) = names.folder().and_then(|folder| folder.canonicalize().ok()) else { return Ok(()) };
    for (output, place) in places {
        let Place::File { path, .. } = place else { continue };
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| names.number(name)).filter(|number| numbers.contains(number));
        if let (true, Some(number)) = (folder_of(path) == folder, number) {
            return Err(collision(&names.path(number), output));
        }
    }
    Ok(())
}

/// Refuses numbered folders if any of them is missing.
fn check_folders(names: &Numbered, numbers: &RangeInclusive<u64>, present: &[(u64, PathBuf)]) -> Result<()> {
    if names.folder().is_some() {
        return Ok(());
    }
    let missing =
        present.iter().zip(numbers.clone()).find(|((there, _), due)| there != due).map(|(_, due)| due);
    let missing = missing.or_else(|| numbers.clone().nth(present.len()));
    missing.map_or(Ok(()), |number| check_target(&names.path(number)))
}

fn collision(path: &Path, other: &Path) -> Error {
    if path == other {
        return Error::file(path, "two outputs have this name", "give each its own");
    }
    Error::file(path, format!("this and the output {} are one file", other.display()), "give each its own")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error for targets in a new folder, if there is one.
    fn refusal(make: impl FnOnce(&Path, &mut Targets)) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut targets = Targets::default();
        make(folder.path(), &mut targets);
        targets.check().err().map(|error| error.to_string())
    }

    #[test]
    fn one_file_under_two_names_is_refused() {
        let names = |a: &'static str, b: &'static str| {
            refusal(|folder, targets| {
                std::fs::create_dir(folder.join("d")).unwrap();
                std::fs::write(folder.join("old"), "").unwrap();
                std::fs::hard_link(folder.join("old"), folder.join("hard")).unwrap();
                #[cfg(unix)]
                std::os::unix::fs::symlink("new", folder.join("soft")).unwrap();
                targets.output(&folder.join(a));
                targets.output(&folder.join(b));
            })
        };
        assert_eq!(names("a", "b"), None);
        assert!(names("a", "a").unwrap().contains("two outputs have this name"));
        assert!(names("a", "d/../a").unwrap().contains("are one file"));
        assert!(
            names("a", "./a").unwrap().contains("two outputs")
                || names("a", "./a").unwrap().contains("one file")
        );
        if cfg!(unix) {
            assert!(names("old", "hard").unwrap().contains("are one file"));
            assert!(names("new", "soft").unwrap().contains("are one file"));
        }
    }

    #[test]
    fn numbers_that_can_come_are_held_against_other_outputs() {
        let names = |pattern: &str, numbers: RangeInclusive<u64>, other: &str| {
            refusal(|folder, targets| {
                for name in ["run1", "run2"] {
                    std::fs::create_dir(folder.join(name)).unwrap();
                }
                std::fs::write(folder.join("linked"), "").unwrap();
                std::fs::hard_link(folder.join("linked"), folder.join("g5")).unwrap();
                targets.output(&folder.join(other));
                targets.numbered(format!("{}/{pattern}", folder.display()).parse().unwrap(), numbers);
            })
        };
        assert!(names("f%d", 0..=4, "f3").is_some());
        assert!(names("f%d", 0..=u64::MAX, "f18446744073709551615").is_some());
        assert_eq!(names("f%d", 0..=4, "f5"), None);
        assert_eq!(names("f%d", 3..=4, "f2"), None);
        assert_eq!(names("f%d", 0..=4, "f03"), None);
        assert!(names("f%02d", 0..=4, "f03").is_some());
        assert_eq!(names("f%02d", 0..=4, "run1/f03"), None);
        assert_eq!(names("g%d", 0..=5, "linked").is_some(), cfg!(unix));
        assert_eq!(names("g%d", 0..=4, "linked"), None);
        assert_eq!(names("run%d/u", 1..=2, "u"), None);
        assert!(names("run%d/u", 1..=2, "run2/u").is_some());
        assert!(names("run%d/u", 1..=3, "u").unwrap().contains("run3 is not there"));
        assert!(names("run%d/u", 0..=2, "u").unwrap().contains("run0 is not there"));
    }

    #[test]
    fn an_input_is_replaced_by_the_same_thing_only() {
        let input = |output: Option<&'static str>, inputs: &'static [&'static str]| {
            refusal(|folder, targets| {
                let path = folder.join("u");
                std::fs::write(&path, "").unwrap();
                match output {
                    Some(holds) => targets.output_of(&path, holds.to_owned()),
                    None => targets.output(&path),
                }
                targets.input(&folder.join("./u"), inputs.iter().map(|&i| i.to_owned()).collect());
            })
        };
        assert_eq!(input(Some("u"), &["v", "u"]), None);
        for (output, inputs) in [(Some("u"), &["v"][..]), (Some("u"), &[]), (None, &["u"])] {
            assert!(
                input(output, inputs).unwrap().contains("would replace the input"),
                "{output:?} {inputs:?}"
            );
        }
        assert!(
            refusal(|folder, targets| {
                std::fs::write(folder.join("f7"), "").unwrap();
                targets.numbered(format!("{}/f%d", folder.display()).parse().unwrap(), 0..=9);
                targets.input(&folder.join("f7"), vec!["u".to_owned()]);
            })
            .unwrap()
            .contains("would replace the input")
        );
    }
}
