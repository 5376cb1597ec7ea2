//! Reading: fields of any HDF5 or NetCDF-4 file.

use std::io::Read;
use std::ops::Range;
use std::path::Path;

use abide_core::{Array, DType, Error, Result, Shape};
use rust_hdf5::format::messages::datatype::IeeeFormat;
use rust_hdf5::format::superblock::{SuperblockV0V1, SuperblockV2V3, detect_superblock_version};
use rust_hdf5::{DatatypeMessage, H5Dataset, H5File, Hdf5Error};

use super::super::decoding::guarded;
use super::super::members::foreign;
use super::super::selected::Selected;
use super::super::{Announced, Axes, Loaded, Provenance};
use super::describe::{MODEL, PARAMETERS, PROVENANCE, TEXTS};

/// Chunks that a reader holds while it takes them apart.
const CHUNKS: u64 = 3;

/// Bytes that hold any superblock.
const SUPERBLOCK: u64 = 256;

/// An array of a file, as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// Its name with its groups.
    pub name: String,
    /// Its extents.
    pub extents: Vec<usize>,
    /// The type of its values in words.
    pub dtype: String,
}

fn fault(path: &Path, error: impl ToString) -> Error {
    Error::file(path, error.to_string(), "give a whole HDF5 or NetCDF-4 file")
}

/// Reads from a file; whatever its decoder meets becomes an error.
fn opened<T>(path: &Path, work: impl FnOnce(&H5File) -> Result<T>) -> Result<T> {
    let (reader, length) = super::super::open(path)?;
    let read = guarded(|| {
        check_length(path, reader, length)?;
        let file = H5File::options().best_effort_locking().open(path).map_err(|error| fault(path, error))?;
        work(&file)
    });
    read.unwrap_or_else(|| Err(fault(path, "it is broken in a way that its decoder does not expect")))
}

/// Refuses a file that is shorter than it says, whose end would be read as zeros.
fn check_length(path: &Path, reader: impl Read, length: u64) -> Result<()> {
    let mut start = Vec::new();
    reader.take(SUPERBLOCK).read_to_end(&mut start).map_err(|error| fault(path, error))?;
    let end = match detect_superblock_version(&start) {
        Ok(0 | 1) => SuperblockV0V1::decode(&start).map(|own| own.end_of_file_address),
        Ok(_) => SuperblockV2V3::decode(&start).map(|own| own.end_of_file_address),
        // It may begin later in the file.
        Err(_) => Ok(0),
    };
    let end = end.map_err(|error| fault(path, error))?;
    match end > length {
        true => Err(fault(path, format!("it has {length} bytes of {end}"))),
        false => Ok(()),
    }
}

/// Returns the names of all arrays of numbers in a file.
pub fn names(path: &Path) -> Result<Vec<String>> {
    opened(path, |file| {
        let is_real = |name: &String| {
            file.dataset(name).is_ok_and(|array| kind(&array).is_ok_and(|kind| kind != Kind::Other))
        };
        Ok(file.dataset_names().into_iter().filter(is_real).collect())
    })
}

/// Returns all arrays of a file.
///
/// # Errors
///
/// [`Error::File`] where the file is no HDF5 file, or a broken one.
pub fn contents(path: &Path) -> Result<Vec<Contents>> {
    opened(path, |file| {
        let of = |name: String| {
            let array = file.dataset(&name).map_err(|error| fault(path, error))?;
            let dtype = match kind(&array) {
                Ok(Kind::Real(dtype)) => dtype.to_string(),
                Ok(Kind::Whole) => "whole numbers".to_owned(),
                _ => "other".to_owned(),
            };
            Ok(Contents { name, extents: array.shape(), dtype })
        };
        file.dataset_names().into_iter().map(of).collect()
    })
}

/// Returns where the result in a file comes from; `None` where the file does not say.
///
/// # Errors
///
/// [`Error::File`] where the file is no HDF5 file, or a broken one.
pub fn provenance(path: &Path) -> Result<Option<Provenance>> {
    opened(path, |file| {
        let Ok(group) = file.root_group().group(PROVENANCE) else { return Ok(None) };
        let text = |name: &str| {
            let array = file.dataset(&format!("{PROVENANCE}/{name}")).map_err(|error| fault(path, error))?;
            let size = array.element_size().saturating_mul(array.total_elements()) as u64;
            if size > Provenance::MOST_BYTES {
                let limit = Provenance::MOST_BYTES;
                return Err(fault(path, format!("its {name} has {size} bytes, the limit is {limit}")));
            }
            let bytes = array.read_raw_bytes().map_err(|error| fault(path, error))?;
            let text = String::from_utf8(bytes).map_err(|error| fault(path, error))?;
            Ok(text.trim_end_matches('\0').to_owned())
        };
        let mut own = Provenance { model: text(MODEL)?, ..Provenance::default() };
        own.parameters = serde_json::from_str(&text(PARAMETERS)?).map_err(|error| fault(path, error))?;
        for (name, text_of) in TEXTS {
            *text_of(&mut own) = group.attr_string(name).map_err(|error| fault(path, error))?;
        }
        let size = group.attr_string("size").map_err(|error| fault(path, error))?;
        own.size = size.split('x').filter_map(|extent| extent.parse().ok()).collect();
        own.steps = group.attr_string("steps").ok().and_then(|steps| steps.parse().ok()).unwrap_or(0);
        own.digest = group.attr_string("digest").ok();
        Ok(Some(own))
    })
}

/// The values of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Real(DType),
    /// Whole numbers, which become numbers of f64.
    Whole,
    Other,
}

fn kind(array: &H5Dataset) -> Result<Kind, Hdf5Error> {
    let datatype = array.datatype()?;
    Ok(match (datatype.ieee_format(), datatype) {
        (Some(IeeeFormat::Binary32), _) => Kind::Real(DType::F32),
        (Some(IeeeFormat::Binary64), _) => Kind::Real(DType::F64),
        (_, DatatypeMessage::FixedPoint { .. }) => Kind::Whole,
        _ => Kind::Other,
    })
}

/// The part of an array that is a field.
struct Picked {
    array: H5Dataset,
    kind: Kind,
    /// The field's own extents.
    extents: Vec<usize>,
    /// The index along the axis of steps, where the array has one.
    step: Option<usize>,
}

impl Picked {
    fn of(file: &H5File, path: &Path, selected: &Selected) -> Result<Picked> {
        let all = file.dataset_names();
        let known = || all.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
        let Some(name) = selected.name.as_deref().map(|name| name.trim_start_matches('/')) else {
            let change = "name one of them behind a `:`, as in FILE.h5:u";
            return Err(Error::file(path, format!("it has {}", known()), change));
        };
        if !all.iter().any(|own| own == name) {
            let message = format!("it has no array {name}, but {}", known());
            return Err(Error::file(path, message, "name one of them behind a `:`"));
        }
        let array = file.dataset(name).map_err(|error| fault(path, error))?;
        let kind = kind(&array).map_err(|error| fault(path, error))?;
        if kind == Kind::Other {
            let change = "give an array of f32, f64 or whole numbers";
            return Err(Error::file(path, format!("{name} holds no numbers"), change));
        }
        let elsewhere = !array.external_files().map_err(|error| fault(path, error))?.is_empty()
            || !array.virtual_mappings().map_err(|error| fault(path, error))?.is_empty();
        if elsewhere {
            let change = "copy it into one file, as with h5repack";
            return Err(Error::file(path, format!("the values of {name} stand in other files"), change));
        }
        let extents = array.shape();
        // An axis without an end is time: of its steps the last one is meant, unless another is named.
        let grows = array.max_shape().is_ok_and(|most| most.len() > 1 && most[0].is_none());
        let index = selected.index.or(grows.then_some(-1));
        let Some(index) = index else { return Ok(Picked { array, kind, extents, step: None }) };
        let Some((&steps, rest)) = extents.split_first() else {
            return Err(Error::file(path, format!("{name} is a single number"), "leave @… out"));
        };
        let step = if index < 0 { index.checked_add_unsigned(steps as u64) } else { Some(index) };
        let step = step.and_then(|step| usize::try_from(step).ok()).filter(|&step| step < steps);
        match step {
            Some(_) => Ok(Picked { array, kind, extents: rest.to_vec(), step }),
            None => Err(Error::file(
                path,
                format!("{name} has {steps} steps, @{index} is asked for"),
                "give @0 for the first, @-1 for the last",
            )),
        }
    }

    fn dtype(&self) -> DType {
        match self.kind {
            Kind::Real(dtype) => dtype,
            Kind::Whole | Kind::Other => DType::F64,
        }
    }

    /// Returns the number of members and the shape of the field.
    fn split(&self, path: &Path, axes: &Axes) -> Result<(Option<usize>, Shape)> {
        axes.split(&self.extents).map_err(|error| foreign(path, error))
    }

    /// Reads planes along the field's first axis.
    fn read(&self, path: &Path, planes: Range<usize>) -> Result<Array> {
        let (mut starts, mut counts): (Vec<usize>, Vec<usize>) =
            self.step.map(|step| (step, 1)).into_iter().unzip();
        starts.push(planes.start);
        counts.push(planes.len());
        starts.extend(self.extents[1..].iter().map(|_| 0));
        counts.extend(&self.extents[1..]);
        let (array, fault) = (&self.array, |error: Hdf5Error| fault(path, error));
        Ok(match self.kind {
            Kind::Real(DType::F32) => Array::F32(array.read_slice(&starts, &counts).map_err(fault)?),
            Kind::Real(DType::F64) => Array::F64(array.read_slice(&starts, &counts).map_err(fault)?),
            Kind::Whole | Kind::Other => {
                let values = array.read_numeric_slice_as::<i64>(&starts, &counts).map_err(fault)?;
                Array::F64(values.into_iter().map(|value| value as f64).collect())
            }
        })
    }
}

/// Reads what a file says of an array.
pub(crate) fn announced(path: &Path, axes: &Axes) -> Result<Option<Announced>> {
    let selected = Selected::of(path);
    opened(&selected.file, |file| {
        let picked = Picked::of(file, path, &selected)?;
        let (members, shape) = picked.split(path, axes)?;
        let chunk = picked.array.chunk_dims().unwrap_or_default().into_iter().map(|extent| extent as u64);
        let chunk = chunk.chain([picked.array.element_size() as u64]).fold(1, u64::saturating_mul);
        let whole = if picked.kind == Kind::Whole { 2 * shape.bytes(DType::F64) as u64 } else { 0 };
        Ok(Some(Announced {
            shape,
            members,
            dtype: Some(picked.dtype()),
            form_bytes: chunk.saturating_mul(CHUNKS).saturating_add(whole),
            is_read_whole: false,
        }))
    })
}

/// Reads an array, whose first axis may be that of a batch's members.
pub(crate) fn read_as(path: &Path, axes: &Axes) -> Result<Loaded> {
    let selected = Selected::of(path);
    opened(&selected.file, |file| {
        let picked = Picked::of(file, path, &selected)?;
        let (members, shape) = picked.split(path, axes)?;
        let values = picked.read(path, 0..picked.extents[0])?;
        Ok(Loaded { values, shape, members })
    })
}

/// Reads planes of an array along its slowest axis, with the extents of the whole.
pub(crate) fn read_planes(path: &Path, planes: Range<usize>) -> Result<Loaded> {
    let selected = Selected::of(path);
    opened(&selected.file, |file| {
        let picked = Picked::of(file, path, &selected)?;
        let (members, shape) = picked.split(path, &Axes::DOMAIN)?;
        let all = picked.extents[0];
        if planes.start > planes.end || planes.end > all {
            return Err(fault(path, format!("it has {all} planes, {planes:?} are asked for")));
        }
        Ok(Loaded { values: picked.read(path, planes)?, shape, members })
    })
}
