//! What a command will write, held against itself and against what it reads, before it does anything.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::place::{Identity, Place, folder_of, identity_of_input};
use super::{Numbered, check_target};
use crate::{Error, Result};

/// All files of a command: no output may replace another, or an input that is something else.
#[derive(Default)]
pub struct Targets {
    outputs: Vec<Output>,
    numbered: Option<(Numbered, RangeInclusive<u64>)>,
    inputs: Vec<Input>,
}

struct Output {
    path: PathBuf,
    /// What stands in the file, where it may replace an input that holds the same.
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
        // Into a device goes any number of them.
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
    /// A file that is written once.
    pub fn output(&mut self, path: &Path) {
        self.outputs.push(Output { path: path.to_owned(), holds: None, again: false });
    }

    /// A file that is written once, and may replace an input that holds the same: the same thing in the same format.
    pub fn output_of(&mut self, path: &Path, holds: String) {
        self.outputs.push(Output { path: path.to_owned(), holds: Some(holds), again: false });
    }

    /// A file that is written again and again, each time as a whole.
    pub fn rewritten(&mut self, path: &Path, holds: Option<String>) {
        self.outputs.push(Output { path: path.to_owned(), holds, again: true });
    }

    /// Files with these numbers in their names.
    pub fn numbered(&mut self, names: Numbered, numbers: RangeInclusive<u64>) {
        self.numbered = Some((names, numbers));
    }

    /// A file that is read; outputs that hold any of `holds` may replace it.
    pub fn input(&mut self, path: &Path, holds: Vec<String>) {
        self.inputs.push(Input { path: path.to_owned(), holds });
    }

    /// Refuses what cannot be written, and what would be lost.
    pub fn check(&self) -> Result<()> {
        let mut known = Known::default();
        let mut places = Vec::new();
        for Output { path, holds, again } in &self.outputs {
            check_target(path)?;
            let place = Place::find(path)?;
            if *again && place.appends() {
                let message = "it is written again and again, and a pipe would get one after the other";
                return Err(Error::file(path, message, "give a file's name"));
            }
            known.add(path, &place, holds.as_deref())?;
            places.push((path, place));
        }
        if let Some((names, numbers)) = &self.numbered {
            check_target(&names.path(*numbers.start()))?;
            let present = names.present(numbers);
            check_folders(names, numbers, &present)?;
            check_names(names, numbers, &places)?;
            for (_, path) in present {
                known.add(&path, &Place::find(&path)?, None)?;
            }
        }
        for Input { path, holds } in &self.inputs {
            let Some((output, held)) = identity_of_input(path).and_then(|identity| known.0.get(&identity)) else {
                continue;
            };
            if held.is_none_or(|held| !holds.iter().any(|own| own == held)) {
                let message = format!("it would replace the input {}, which holds something else", path.display());
                return Err(Error::file(output, message, "give the output a name of its own"));
            }
        }
        Ok(())
    }
}

/// Refuses outputs under a name that a number may give.
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

/// Refuses numbered folders that are not all there.
fn check_folders(names: &Numbered, numbers: &RangeInclusive<u64>, present: &[(u64, PathBuf)]) -> Result<()> {
    if names.folder().is_some() {
        return Ok(());
    }
    let missing = present.iter().zip(numbers.clone()).find(|((there, _), due)| there != due).map(|(_, due)| due);
    let missing = missing.or_else(|| numbers.clone().nth(present.len()));
    missing.map_or(Ok(()), |number| check_target(&names.path(number)))
}

fn collision(path: &Path, other: &Path) -> Error {
    if path == other {
        return Error::file(path, "two outputs have this name", "give each its own");
    }
    Error::file(path, format!("this and the output {} are one file", other.display()), "give each its own")
}
