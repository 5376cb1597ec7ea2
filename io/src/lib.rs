//! Files in and out for Abide, one module per format.
//!
//! A file is not written in place: it is made under a temporary name in its folder and renamed when it is
//! complete ([`Staged`]), so that an error leaves an existing file untouched. Devices and pipes get the data
//! when it is complete. Only a record grows while a run goes on ([`Table`]). [`Targets`] are checked before any
//! work.
#![deny(missing_docs)]

mod annotation;
mod archive;
mod background;
pub mod bounded;
pub mod checkpoint;
mod colormap;
mod colour;
mod decoding;
mod format;
#[cfg(feature = "hdf5")]
pub mod hdf5;
mod members;
pub mod memory;
pub mod model;
mod movie;
pub mod npy;
pub mod npz;
mod numbered;
mod numbers;
pub mod parts;
mod picture;
mod place;
mod provenance;
mod pvd;
mod range;
mod rights;
mod selected;
mod snapshot;
mod staged;
mod table;
mod targets;
mod tiff;
pub mod vti;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use abide_core::backend::planes_of;
use abide_core::{Array, DType, Error, Result, Shape};

use crate::memory::Budget;

pub use background::Background;
pub use colormap::Colormap;
pub use colour::Colours;
pub use decoding::is_decoding;
pub use format::Format;
pub use members::{Axes, extents};
pub use movie::Movie;
pub use numbered::Numbered;
pub use numbers::Number;
pub use parts::piece_bytes;
pub use provenance::{Digest, Provenance};
pub use pvd::Collection;
pub use range::Range;
pub use selected::{Selected, is_of_several, naming};
pub use snapshot::{Placed, Snapshot};
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

/// Returns where the result in a file comes from; `None` where the file does not say.
///
/// # Errors
///
/// [`Error::File`] for a file that is broken, or of a kind that holds no such thing.
pub fn provenance(path: &Path) -> Result<Option<Provenance>> {
    match Source::find(path)? {
        Source::Npz => npz::provenance(path),
        #[cfg(feature = "hdf5")]
        Source::Hdf5 => hdf5::provenance(path),
        _ => Ok(None),
    }
}

/// Extensions that say what a file holds. A file that holds something else under such a name would mislead.
const EXTENSIONS: [&str; 29] = [
    "npy", "npz", "png", "jpg", "jpeg", "gif", "webp", "mp4", "mov", "avi", "webm", "vti", "vtk", "csv",
    "toml", "yaml", "mtx", "gz", "svg", "pdf", "json", "h5", "hdf5", "nc", "vtkhdf", "pvd", "tif", "tiff",
    "zip",
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

/// Returns the extension of a file's name, in small letters.
fn extension(path: &Path) -> String {
    let file = Selected::of(path).file;
    file.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
}

/// The kinds of files that fields are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Npy,
    Npz,
    #[cfg(feature = "hdf5")]
    Hdf5,
    Tiff,
    Picture,
}

/// Each kind by the extensions of its files.
const SOURCES: &[(&str, Source)] = &[
    ("npy", Source::Npy),
    ("npz", Source::Npz),
    #[cfg(feature = "hdf5")]
    ("h5", Source::Hdf5),
    #[cfg(feature = "hdf5")]
    ("hdf5", Source::Hdf5),
    #[cfg(feature = "hdf5")]
    ("vtkhdf", Source::Hdf5),
    #[cfg(feature = "hdf5")]
    ("nc", Source::Hdf5),
    ("tif", Source::Tiff),
    ("tiff", Source::Tiff),
    ("png", Source::Picture),
    ("jpg", Source::Picture),
    ("jpeg", Source::Picture),
];

impl Source {
    fn of(path: &Path) -> Option<Source> {
        let own = extension(path);
        SOURCES.iter().find(|(extension, _)| *extension == own).map(|(_, source)| *source)
    }

    fn find(path: &Path) -> Result<Source> {
        Source::of(path).ok_or_else(|| {
            let change = format!("give a {} file", inputs());
            Error::file(path, "no input format has this extension", change)
        })
    }
}

/// Returns the extensions of inputs in words: `.npy, .png or .jpg`.
pub fn inputs() -> String {
    let others = ["jpeg", "tiff", "hdf5", "vtkhdf"];
    format::listed(SOURCES.iter().map(|(extension, _)| *extension).filter(|own| !others.contains(own)))
}

/// Returns whether a file of this name can be an input.
pub fn is_input(path: &Path) -> bool {
    Source::of(path).is_some()
}

/// Returns the names of the arrays in a file that holds several; `None` for one that holds a single one without a name.
///
/// # Errors
///
/// [`Error::File`] where the file cannot be read.
pub fn names(path: &Path) -> Result<Option<Vec<String>>> {
    match Source::find(path)? {
        Source::Npz => npz::names(&Selected::of(path).file).map(Some),
        #[cfg(feature = "hdf5")]
        Source::Hdf5 => hdf5::names(&Selected::of(path).file).map(Some),
        Source::Npy | Source::Tiff | Source::Picture => Ok(None),
    }
}

/// Reads a field: `.npy`, an array of a `.npz` or of an HDF5 or NetCDF-4 file, or the grey values 0 to 1 of a `.png` or
/// `.jpg`. Of a file of several arrays, one is named behind a colon, as in `a.npz:u`; of one that has steps, the step behind
/// an `@`, as in `a.h5:u@-1`.
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
    match Source::find(path)? {
        Source::Npy => npy::read_as(path, axes),
        Source::Npz => npz::read_as(path, axes),
        #[cfg(feature = "hdf5")]
        Source::Hdf5 => hdf5::read_as(path, axes),
        Source::Tiff => tiff::read_as(path, dtype, axes),
        Source::Picture => picture::read(path, dtype, axes),
    }
}

/// Reads planes of a domain's field along its slowest axis, with the extents of the whole field. A picture, whose grey
/// values have this type, is read whole.
pub fn read_planes(path: &Path, dtype: DType, planes: std::ops::Range<usize>) -> Result<Loaded> {
    match Source::find(path)? {
        Source::Npy => npy::read_planes(path, planes),
        Source::Npz => npz::read_planes(path, planes),
        #[cfg(feature = "hdf5")]
        Source::Hdf5 => hdf5::read_planes(path, planes),
        Source::Tiff => tiff::read_planes(path, dtype, planes),
        Source::Picture => {
            let Loaded { values, shape, members } = read_for(path, dtype)?;
            let values = planes_of(&values, shape.extents()[0], planes)?;
            Ok(Loaded { values, shape, members })
        }
    }
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
    /// Whether all of the field is read also where a part of it is wanted.
    pub is_read_whole: bool,
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
    if !std::fs::metadata(Selected::of(path).file).is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    match Source::of(path) {
        Some(Source::Npy) => npy::announced(path, axes),
        Some(Source::Npz) => npz::announced(path, axes),
        #[cfg(feature = "hdf5")]
        Some(Source::Hdf5) => hdf5::announced(path, axes),
        Some(Source::Tiff) => tiff::announced(path, axes).map(Some),
        Some(Source::Picture) => picture::announced(path, axes).map(Some),
        None => Ok(None),
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
    let fields = fields.iter().map(|(name, values)| Placed::new(name, values, *shape)).collect();
    let snapshot = Snapshot { fields, step, time: step as f64, ..Snapshot::default() };
    write_as(path, &snapshot, colours)
}

/// Writes fields as [`write()`] does, of a batch where there are members, one after another: the file's first axis is
/// theirs. Formats that have no room for another axis are refused. A `.vti`, whose fields have one shape, says where the
/// values stand in space.
///
/// # Errors
///
/// [`Error::File`] where the file cannot be written, or has no room for the fields.
pub fn write_as(path: &Path, snapshot: &Snapshot<'_>, colours: impl Into<Colours>) -> Result<Staged> {
    let Snapshot { members, fields, step, .. } = snapshot;
    let (members, step) = (*members, *step);
    let Some(Placed { name, values: first, shape, space }) = fields.first() else {
        return Err(Error::file(path, "there is no field to write", "name a field"));
    };
    match Format::of(path)? {
        Format::Npy => npy::write_as(path, &extents(members, shape), first),
        Format::Npz => npz::write(path, snapshot),
        Format::Png => {
            let colours = Colours { is_batch: members.is_some(), ..colours.into() };
            picture::write(path, &stacked(path, members, shape)?, (&**name, &**first), step, colours)
        }
        Format::Vti => {
            let named: Vec<Named<'_>> = fields.iter().map(|field| (&*field.name, &*field.values)).collect();
            vti::write(path, &stacked(path, members, shape)?, space, &named, snapshot.time)
        }
        Format::Gif => {
            Err(Error::file(path, "a .gif holds many steps, not one", "name it .png, or give --every"))
        }
        Format::Tiff => tiff::write(path, &stacked(path, members, shape)?, first),
        #[cfg(feature = "hdf5")]
        Format::Hdf5 => hdf5::write(path, snapshot),
        #[cfg(not(feature = "hdf5"))]
        Format::Hdf5 => Err(Error::unsupported(
            format!("the file {}", path.display()),
            "this build lacks HDF5",
            "build with the feature `hdf5`, or write .npz",
        )),
    }
}

/// Returns the shape in which a file of this name shows a field: in a batch with an axis more, which is the
/// members'. A picture shows two axes and a `.vti` three; of more, a part would pass for the whole.
pub fn stacked(path: &Path, members: Option<usize>, shape: &Shape) -> Result<Shape> {
    if members.is_none() {
        return Ok(*shape);
    }
    let all = extents(members, shape);
    let most = Format::of(path)?.most_axes();
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
