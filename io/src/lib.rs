//! Files in and out for Abide, one module per format.
//!
//! A file is not written in place: it is made under a temporary name in its folder and renamed when it is
//! complete ([`Staged`]), so that an error leaves an existing file untouched. Devices and pipes get the data
//! when it is complete. Only a record grows while a run goes on ([`Table`]). [`Targets`] are checked before any
//! work.
#![deny(missing_docs)]

mod annotation;
mod archive;
pub mod bounded;
pub mod checkpoint;
mod colormap;
mod colour;
mod decoding;
mod members;
pub mod memory;
pub mod model;
mod movie;
pub mod npy;
mod numbered;
pub mod parts;
mod picture;
mod place;
mod range;
mod rights;
mod staged;
mod table;
mod targets;
pub mod vti;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use abide_core::backend::planes_of;
use abide_core::program::Space;
use abide_core::{Array, DType, Error, Result, Shape};

use crate::memory::Budget;

pub use colormap::Colormap;
pub use colour::Colours;
pub use decoding::is_decoding;
pub use members::{Axes, extents};
pub use movie::Movie;
pub use numbered::Numbered;
pub use parts::piece_bytes;
pub use range::Range;
pub use staged::{Batch, Staged, Written, check_target, remove_unfinished};
pub use table::Table;
pub use targets::Targets;

/// Values read from a file, with the extents that they had there.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The values, in the type they had in the file.
    pub values: Array,
    /// Their extents; where they are those of a batch, each member's.
    pub shape: Shape,
    /// The number of members, where the first axis in the file is theirs.
    pub members: Option<usize>,
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
    /// Returns the format of an output file by its name.
    pub fn of(path: &Path) -> Result<Format> {
        match extension(path).as_str() {
            "npy" => Ok(Format::Npy),
            "png" => Ok(Format::Png),
            "vti" => Ok(Format::Vti),
            "gif" => Ok(Format::Gif),
            _ => Err(Error::file(
                path,
                "no output format has this extension",
                "name it .npy, .png, .vti or .gif",
            )),
        }
    }
}

/// Extensions that say what a file holds. A file that holds something else under such a name would mislead.
const EXTENSIONS: [&str; 23] = [
    "npy", "npz", "png", "jpg", "jpeg", "gif", "webp", "mp4", "mov", "avi", "webm", "vti", "vtk", "csv",
    "toml", "yaml", "mtx", "gz", "svg", "pdf", "json", "h5", "zip",
];

/// Refuses a name whose extension says that a file holds something else than `what`, which is written as `own`. Any
/// name that says nothing will do.
pub fn check_kind(path: &Path, own: &str, what: &str) -> Result<()> {
    let extension = extension(path);
    if extension != own && EXTENSIONS.contains(&extension.as_str()) {
        let message = format!("it would hold {what}, and its name says .{extension}");
        return Err(Error::file(path, message, format!("name it .{own}")));
    }
    Ok(())
}

fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

/// Returns whether a file of this name can be an input.
pub fn is_input(path: &Path) -> bool {
    matches!(extension(path).as_str(), "npy" | "png" | "jpg" | "jpeg")
}

/// Reads a field: `.npy`, or the grey values 0 to 1 of a `.png` or `.jpg`.
pub fn read(path: &Path) -> Result<Loaded> {
    read_for(path, DType::F64)
}

/// Reads a field as [`read`] does, with a picture's grey values in this type.
pub fn read_for(path: &Path, dtype: DType) -> Result<Loaded> {
    read_as(path, dtype, &Axes::DOMAIN)
}

/// Reads a field as [`read_for`] does, whose first axis may be that of a batch's members.
pub fn read_as(path: &Path, dtype: DType, axes: &Axes) -> Result<Loaded> {
    if let Some(announced) = announced_as(path, axes)? {
        announced.ask(path, dtype)?;
    }
    match extension(path).as_str() {
        "npy" => npy::read_as(path, axes),
        "png" | "jpg" | "jpeg" => picture::read(path, dtype, axes),
        _ => Err(Error::file(path, "no input format has this extension", "give a .npy, .png or .jpg file")),
    }
}

/// Reads planes of a domain's field along its slowest axis, with the extents of the whole field. A picture, whose grey
/// values have this type, is read whole.
pub fn read_planes(path: &Path, dtype: DType, planes: std::ops::Range<usize>) -> Result<Loaded> {
    if extension(path) == "npy" {
        return npy::read_planes(path, planes);
    }
    let Loaded { values, shape, members } = read_for(path, dtype)?;
    let values = planes_of(&values, shape.extents()[0], planes)?;
    Ok(Loaded { values, shape, members })
}

/// The field that a file's header announces.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Announced {
    /// The field's extents; where it is that of a batch, each member's.
    pub shape: Shape,
    /// The number of members, where the first axis in the file is theirs.
    pub members: Option<usize>,
    /// The type of its values; `None` for a picture, whose grey values are made in whatever type is wanted.
    pub dtype: Option<DType>,
    /// Bytes that the file's own form of the values takes while the values are made.
    pub form_bytes: u64,
}

impl Announced {
    /// Returns the bytes that reading the field takes beside its values of this type.
    pub fn besides(&self, dtype: DType) -> u128 {
        let other = self.dtype.filter(|&own| own != dtype).map_or(0, |own| self.bytes(own));
        other + u128::from(self.form_bytes)
    }

    fn bytes(&self, dtype: DType) -> u128 {
        self.shape.bytes(dtype) as u128 * self.members.unwrap_or(1) as u128
    }

    /// Returns [`Error::Limit`] where the machine has no memory to read the field in its own type, or else in
    /// `dtype`.
    fn ask(&self, path: &Path, dtype: DType) -> Result<()> {
        let dtype = self.dtype.unwrap_or(dtype);
        let values = format!("{} values of {dtype}", joined(&extents(self.members, &self.shape)));
        Budget::new(format!("memory for {}", path.display()))
            .with(values, self.bytes(dtype))
            .with("the file's own form", u128::from(self.form_bytes))
            .check("give a smaller file")
    }
}

/// Reads what a file's header announces. `None` where the header is not reliable, or where the file, such as a
/// pipe, can be read only once; [`read`] then reports what is wrong, if anything.
pub fn announced(path: &Path) -> Result<Option<Announced>> {
    announced_as(path, &Axes::DOMAIN)
}

/// Reads what a file's header announces, as [`announced`] does, of a field whose first axis may be that of a
/// batch's members.
pub fn announced_as(path: &Path, axes: &Axes) -> Result<Option<Announced>> {
    if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    match extension(path).as_str() {
        "npy" => npy::announced(path, axes),
        "png" | "jpg" | "jpeg" => picture::announced(path, axes).map(Some),
        _ => Ok(None),
    }
}

/// A field's name and values.
pub type Named<'a> = (&'a str, &'a Array);

/// Writes fields of one shape, at one step, to a file that [`Staged::commit`] puts in place. Formats of a
/// single field take the first. `colours` are those of a picture: the values at the ends of the colour map, which are
/// found from the field where they are not given, or [`Colours`].
pub fn write(
    path: &Path,
    shape: &Shape,
    fields: &[Named<'_>],
    step: u64,
    colours: impl Into<Colours>,
) -> Result<Staged> {
    write_as(path, None, shape, &Space::default(), fields, step, colours)
}

/// Writes fields as [`write()`] does, of a batch where there are `members`, one after another, each of this shape:
/// the file's first axis is theirs. Formats that have no room for another axis are refused. A `.vti` says where the values
/// stand in space.
pub fn write_as(
    path: &Path,
    members: Option<usize>,
    shape: &Shape,
    space: &Space,
    fields: &[Named<'_>],
    step: u64,
    colours: impl Into<Colours>,
) -> Result<Staged> {
    let Some((name, first)) = fields.first() else {
        return Err(Error::file(path, "there is no field to write", "name a field"));
    };
    match Format::of(path)? {
        Format::Npy => npy::write_as(path, &extents(members, shape), first),
        Format::Png => {
            let colours = Colours { is_batch: members.is_some(), ..colours.into() };
            picture::write(path, &stacked(path, members, shape)?, (name, first), step, colours)
        }
        Format::Vti => vti::write(path, &stacked(path, members, shape)?, space, fields, step),
        Format::Gif => {
            Err(Error::file(path, "a .gif holds many steps, not one", "name it .png, or give --every"))
        }
    }
}

/// Returns the shape in which a file of this name shows a field: in a batch with an axis more, which is the
/// members'. A picture shows two axes and a `.vti` three; of more, a part would pass for the whole.
pub fn stacked(path: &Path, members: Option<usize>, shape: &Shape) -> Result<Shape> {
    if members.is_none() {
        return Ok(*shape);
    }
    let all = extents(members, shape);
    let most = match Format::of(path)? {
        Format::Png | Format::Gif => 2,
        Format::Vti | Format::Npy => 3,
    };
    match Shape::new(&all) {
        Ok(stacked) if all.len() <= most => Ok(stacked),
        _ => {
            let axes = all.len();
            let message = format!("a batch of {shape} has {axes} axes, a file of this format {most} at most");
            Err(Error::file(path, message, "write .npy, or run a member alone"))
        }
    }
}

/// Returns extents as in `3x4`.
fn joined(extents: &[usize]) -> String {
    extents.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

fn open(path: &Path) -> Result<(BufReader<File>, u64)> {
    let fault = |e: std::io::Error| Error::file(path, e, "give a file that exists and can be read");
    let file = File::open(path).map_err(fault)?;
    let metadata = file.metadata().map_err(fault)?;
    if metadata.is_dir() {
        return Err(Error::file(path, "it is a folder", "give a file"));
    }
    // A regular file has a known length; a pipe does not.
    let length = if metadata.is_file() { metadata.len() } else { u64::MAX };
    Ok((BufReader::new(file), length))
}
