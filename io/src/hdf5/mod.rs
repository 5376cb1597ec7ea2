//! HDF5: any number of fields and steps in one file, laid out for two kinds of readers at once.
//!
//! NetCDF-4's readers (xarray, netCDF, h5py, Julia, MATLAB) find each field as an array `(t, z, y, x)` with coordinates, and
//! VTK's (ParaView 5.12 and later) find an image with its steps in the group `VTKHDF`, whose arrays have the same
//! values: they are hard links, and while there is a single step, arrays of the same chunks.
//!
//! The library `rust-hdf5` encodes and reads what a file consists of. Where everything lies is decided here, so that a file is
//! whole after each frame, whatever ends the process: values are appended, and all that describes them is written anew,
//! by turns into two places ([`image`]). Then the first bytes of the file, the superblock, come to point at the new
//! description, in a single write.

mod describe;
mod image;
mod index;
mod objects;
mod read;
mod series;

pub use read::{Contents, contents, provenance};
pub(super) use read::{announced, names, read_as, read_planes};
pub use series::{Layout, Series, Variable};

use std::path::Path;

use abide_core::{DType, Error, Result, Shape};
use rust_hdf5::format::FormatError;

use super::{Snapshot, Staged};

/// Writes a single frame of a state.
pub(super) fn write(path: &Path, snapshot: &Snapshot<'_>) -> Result<Staged> {
    let variables = snapshot.fields.iter().map(|field| Variable {
        name: field.name.clone().into_owned(),
        shape: field.shape,
        space: field.space,
    });
    let own = snapshot.provenance.clone().unwrap_or_default();
    // What stands on nodes has more values than there are cells.
    let smallest = snapshot.fields.iter().map(|field| field.shape).min_by_key(Shape::cells);
    let Some(cells) = Shape::new(&own.size).ok().or(smallest) else {
        return Err(Error::file(path, "there is no field to write", "name a field"));
    };
    let layout = Layout {
        cells,
        dtype: snapshot.fields.first().map_or(DType::F32, |field| field.values.dtype()),
        members: snapshot.members,
        fields: variables.collect(),
        scalars: snapshot.scalars.iter().map(|(name, _)| name.clone()).collect(),
    };
    let mut series = Series::begin(path, layout, &own)?;
    series.add(snapshot)?;
    let staged = series.finish(snapshot.step, own.digest.as_deref())?;
    staged.ok_or_else(|| Error::file(path, "it was not written", "write elsewhere"))
}

/// Returns the error of a part of a file that cannot be encoded.
fn unfit(path: &Path, error: &FormatError) -> Error {
    Error::file(path, format!("it cannot be laid out: {error}"), "write fewer fields, or another format")
}

#[cfg(test)]
mod tests;
