//! Files in and out, one format a module.
//!
//! Nothing is written in place: a file is made under a temporary name in its folder and renamed when it is complete
//! ([`Staged`]), so that an error leaves what was there untouched.

pub mod checkpoint;
mod colour;
mod movie;
pub mod npy;
mod palette;
mod picture;
mod staged;
pub mod vti;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crate::{Array, Error, Result, Shape};

pub use colour::Range;
pub use movie::Movie;
pub use staged::{Staged, check_target};

/// Values read from a file, with the extents that they had there.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The values, in the type they had in the file.
    pub values: Array,
    /// Their extents.
    pub shape: Shape,
}

/// The formats of output files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// NumPy's array file: one field, exactly.
    Npy,
    /// A picture of one field.
    Png,
    /// VTK's image data: any number of fields, exactly.
    Vti,
    /// An animated picture of one field.
    Gif,
}

impl Format {
    /// The format of an output file by its name.
    pub fn of(path: &Path) -> Result<Format> {
        match extension(path).as_str() {
            "npy" => Ok(Format::Npy),
            "png" => Ok(Format::Png),
            "vti" => Ok(Format::Vti),
            "gif" => Ok(Format::Gif),
            _ => Err(Error::file(path, "no output format has this extension", "name it .npy, .png, .vti or .gif")),
        }
    }
}

fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

/// Whether a file of this name can be an input.
pub fn is_input(path: &Path) -> bool {
    matches!(extension(path).as_str(), "npy" | "png" | "jpg" | "jpeg")
}

/// Reads a field: `.npy`, or the grey values 0 to 1 of a `.png` or `.jpg`.
pub fn read(path: &Path) -> Result<Loaded> {
    match extension(path).as_str() {
        "npy" => npy::read(path),
        "png" | "jpg" | "jpeg" => picture::read(path),
        _ => Err(Error::file(path, "no input format has this extension", "give a .npy, .png or .jpg file")),
    }
}

/// A field's name and values.
pub type Named<'a> = (&'a str, &'a Array);

/// Writes fields of one shape, at one step, to a file that [`Staged::commit`] puts in place. Formats of a single field
/// take the first; `range` are the values at the ends of the colour map, found from the field where there is none.
pub fn write(path: &Path, shape: &Shape, fields: &[Named<'_>], step: u64, range: Option<Range>) -> Result<Staged> {
    let Some((_, first)) = fields.first() else {
        return Err(Error::file(path, "there is no field to write", "name a field"));
    };
    match Format::of(path)? {
        Format::Npy => npy::write(path, shape, first),
        Format::Png => picture::write(path, shape, first, range),
        Format::Vti => vti::write(path, shape, fields, step),
        Format::Gif => Err(Error::file(path, "a .gif holds many steps, not one", "name it .png, or give --every")),
    }
}

fn open(path: &Path) -> Result<(BufReader<File>, u64)> {
    let fault = |e: std::io::Error| Error::file(path, e, "give a file that exists and can be read");
    let file = File::open(path).map_err(fault)?;
    let metadata = file.metadata().map_err(fault)?;
    if metadata.is_dir() {
        return Err(Error::file(path, "it is a folder", "give a file"));
    }
    // What is not a regular file, as a pipe, does not tell its length.
    let length = if metadata.is_file() { metadata.len() } else { u64::MAX };
    Ok((BufReader::new(file), length))
}
