//! NumPy's `.npz`: several fields exactly, each an entry `NAME.npy` of an archive.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use abide_core::backend::{Part, planes_of};
use abide_core::program::Problem;
use abide_core::{Error, Result};
use crc32fast::Hasher;
use zip::{CompressionMethod, ZipArchive};

use super::archive::Layout;
use super::parts::{self, Values};
use super::selected::Selected;
use super::{Announced, Axes, Loaded, Provenance, Snapshot, Staged, extents, npy};

/// What an array's entry has behind its name.
const ENDING: &str = ".npy";

/// Where the result comes from, as JSON.
const PROVENANCE: &str = "abide.provenance.json";

type Archive = ZipArchive<BufReader<File>>;

fn open(path: &Path) -> Result<(Archive, u64)> {
    let (reader, length) = super::open(path)?;
    let archive = ZipArchive::new(reader)
        .map_err(|error| fault(path, format!("not a .npz file: {error}"), "save it with numpy.savez"))?;
    Ok((archive, length))
}

fn fault(path: &Path, message: String, change: &str) -> Error {
    Error::file(path, message, change)
}

/// Returns the names of the arrays in a file, in the file's order.
pub fn names(path: &Path) -> Result<Vec<String>> {
    let (archive, _) = open(path)?;
    Ok(names_in(&archive))
}

fn names_in(archive: &Archive) -> Vec<String> {
    let names = archive.file_names().filter_map(|name| name.ok());
    names.filter_map(|name| name.strip_suffix(ENDING).map(str::to_owned)).collect()
}

/// Returns where the result in a file comes from; `None` where the file does not say.
pub fn provenance(path: &Path) -> Result<Option<Provenance>> {
    let (mut archive, _) = open(path)?;
    let Ok(entry) = archive.by_name(PROVENANCE) else { return Ok(None) };
    let mut json = String::new();
    let read = entry.take(Provenance::MOST_BYTES).read_to_string(&mut json);
    read.map_err(|error| fault(path, format!("{PROVENANCE}: {error}"), "give a whole file"))?;
    Provenance::read(path, &json).map(Some)
}

/// Returns the name of the entry that is meant.
fn entry_of(path: &Path, selected: &Selected, archive: &Archive) -> Result<String> {
    let all = names_in(archive);
    if selected.index.is_some() {
        let change = "leave @… out, or save that frame alone";
        return Err(fault(path, "arrays in a .npz have no steps".to_owned(), change));
    }
    let known = || all.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
    match (&selected.name, all.len()) {
        (Some(name), _) if all.contains(name) => Ok(format!("{name}{ENDING}")),
        (Some(name), _) => Err(fault(
            path,
            format!("it has no array {name}, but {}", known()),
            "name one of them behind a `:`",
        )),
        (None, 1) => Ok(format!("{}{ENDING}", known())),
        (None, 0) => Err(fault(path, "it has no arrays".to_owned(), "save it with numpy.savez")),
        (None, _) => Err(fault(path, format!("it has {}", known()), "name one of them behind a `:`")),
    }
}

/// Reads what an array's header announces.
pub(super) fn announced(path: &Path, axes: &Axes) -> Result<Option<Announced>> {
    let selected = Selected::of(path);
    let (mut archive, length) = open(&selected.file)?;
    let name = entry_of(path, &selected, &archive)?;
    let mut entry = archive.by_name(&name).map_err(|error| foreign(path, error))?;
    // What is compressed may be longer than the file, and is read whole.
    let is_stored = entry.compression() == CompressionMethod::Stored;
    let size = if is_stored { entry.size().min(length) } else { entry.size() };
    let announced = npy::announced_in(&mut entry, size, path, axes)?;
    Ok(announced.map(|announced| Announced { is_read_whole: !is_stored, ..announced }))
}

fn foreign(path: &Path, error: impl ToString) -> Error {
    fault(path, error.to_string(), "save it anew, as with numpy.savez")
}

/// Reads an array, whose first axis may be that of a batch's members.
pub(super) fn read_as(path: &Path, axes: &Axes) -> Result<Loaded> {
    let selected = Selected::of(path);
    let (mut archive, _) = open(&selected.file)?;
    let name = entry_of(path, &selected, &archive)?;
    let mut entry = archive.by_name(&name).map_err(|error| foreign(path, error))?;
    let size = entry.size();
    npy::decode_as(&mut entry, size, path, axes)
}

/// Reads planes of an array along its slowest axis, with the extents of the whole. One that is compressed is read whole.
pub(super) fn read_planes(path: &Path, planes: Range<usize>) -> Result<Loaded> {
    let selected = Selected::of(path);
    let (mut archive, length) = open(&selected.file)?;
    let name = entry_of(path, &selected, &archive)?;
    let entry = archive.by_name(&name).map_err(|error| foreign(path, error))?;
    let (stored, begin) = (entry.compression() == CompressionMethod::Stored, entry.data_start());
    let size = entry.size();
    drop(entry);
    let Some(begin) = begin.filter(|_| stored) else {
        let Loaded { values, shape, members } = read_as(path, &Axes::DOMAIN)?;
        let values = planes_of(&values, shape.extents()[0], planes)?;
        return Ok(Loaded { values, shape, members });
    };
    let mut reader = archive.into_inner();
    reader.seek(SeekFrom::Start(begin)).map_err(|error| foreign(path, error))?;
    npy::decode_planes(&mut reader, size.min(length.saturating_sub(begin)), path, planes, &mut Hasher::new())
}

/// Writes fields of a state.
pub(super) fn write(path: &Path, snapshot: &Snapshot<'_>) -> Result<Staged> {
    let mut entries = provenance_entry(path, snapshot.provenance.as_deref())?;
    for field in &snapshot.fields {
        let mut bytes = npy::header::bytes(field.values.dtype(), &extents(snapshot.members, &field.shape));
        bytes.extend_from_slice(field.values.as_bytes());
        entries.push((format!("{}{ENDING}", field.name), bytes));
    }
    let lengths: Vec<u64> = entries.iter().map(|(_, bytes)| bytes.len() as u64).collect();
    let layout = layout(&entries, &lengths);
    let sums: Vec<u32> = entries.iter().map(|(_, bytes)| crc32fast::hash(bytes)).collect();
    Staged::new(path)?.fill(|out| {
        let mut placed = layout.frame(&sums);
        placed.extend(
            entries.into_iter().enumerate().map(|(number, (_, bytes))| (layout.begin(number), bytes)),
        );
        placed.sort_by_key(|(at, _)| *at);
        placed.iter().try_for_each(|(_, bytes)| std::io::Write::write_all(out, bytes))
    })
}

fn provenance_entry(path: &Path, provenance: Option<&Provenance>) -> Result<Vec<(String, Vec<u8>)>> {
    let entry = |provenance: &Provenance| Ok((PROVENANCE.to_owned(), provenance.json(path)?.into_bytes()));
    provenance.map(entry).transpose().map(|entry| entry.into_iter().collect())
}

fn layout(entries: &[(String, Vec<u8>)], lengths: &[u64]) -> Layout {
    let large = lengths.iter().any(|&length| length >= u64::from(u32::MAX) - (1 << 16));
    Layout::new(entries.iter().zip(lengths).map(|((name, _), &length)| (name.clone(), length)), large)
}

/// Writes this process's part of fields of a problem, given by number; the other processes write the rest. Returns the file
/// in the first process, which puts it in its place, and nothing in the others.
///
/// # Errors
///
/// [`Error::File`], the same in all processes; those of reading the fields.
pub fn write_parts(
    path: &Path,
    problem: &Problem,
    fields: &[usize],
    provenance: Option<&Provenance>,
    part: &mut dyn Part,
) -> Result<Option<Staged>> {
    write_entries(path, problem, provenance_entry(path, provenance)?, fields, part)
}

/// Writes an archive of entries as they are, and behind them fields of a problem, each process its part.
pub(super) fn write_entries(
    path: &Path,
    problem: &Problem,
    mut entries: Vec<(String, Vec<u8>)>,
    numbers: &[usize],
    part: &mut dyn Part,
) -> Result<Option<Staged>> {
    let members = problem.is_batch().then_some(problem.members());
    let before = entries.len();
    let mut fields = Vec::new();
    for &number in numbers {
        let header = npy::header::bytes(problem.dtype, &extents(members, &problem.shape_of(number)?));
        fields.push(Values::of(problem, number, header.len() as u64));
        entries.push((format!("{}{ENDING}", problem.program.fields()[number]), header));
    }
    let lengths: Vec<u64> = (0..entries.len())
        .map(|entry| {
            let values = entry.checked_sub(before).map_or(0, |field| fields[field].bytes);
            entries[entry].1.len() as u64 + values
        })
        .collect();
    let layout = layout(&entries, &lengths);
    for (number, field) in fields.iter_mut().enumerate() {
        field.at += layout.begin(before + number);
    }
    parts::write(part, path, layout.length(), &fields, |sums| {
        let mut placed = Vec::new();
        let mut checksums = Vec::new();
        for (entry, (_, bytes)) in entries.into_iter().enumerate() {
            let mut sum = Hasher::new();
            sum.update(&bytes);
            if let Some(values) = entry.checked_sub(before).and_then(|field| sums.get(field)) {
                sum.combine(values);
            }
            checksums.push(sum.finalize());
            placed.push((layout.begin(entry), bytes));
        }
        placed.extend(layout.frame(&checksums));
        placed
    })
}

#[cfg(test)]
mod tests {
    use abide_core::{Array, DType, Shape};

    use super::super::Placed;
    use super::*;

    #[test]
    fn fields_come_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        for dtype in [DType::F32, DType::F64] {
            for extents in [&[7][..], &[3, 5], &[3, 1, 5]] {
                let shape = Shape::new(extents).unwrap();
                let values =
                    |seed: usize| Array::from_fn(dtype, shape.cells(), |i| 1.0 / (3 + i + seed) as f64);
                let (u, v) = (values(0), values(9));
                let fields = [("u", &u), ("v", &v)].map(|(name, values)| Placed::new(name, values, shape));
                let snapshot = Snapshot { fields: fields.to_vec(), ..Snapshot::default() };
                write(&path, &snapshot).unwrap().commit().unwrap();
                assert_eq!(names(&path).unwrap(), ["u", "v"]);
                for (name, values) in [("u", &u), ("v", &v)] {
                    let named = folder.path().join(format!("a.npz:{name}"));
                    let read = read_as(&named, &Axes::DOMAIN).unwrap();
                    assert!(read.values.same_bits(values) && read.shape == shape);
                    let said = announced(&named, &Axes::DOMAIN).unwrap().unwrap();
                    assert_eq!((said.shape, said.dtype, said.form_bytes), (shape, Some(dtype), 0));
                    let planes = read_planes(&named, 1..extents[0]).unwrap();
                    assert_eq!(planes.values, planes_of(values, extents[0], 1..extents[0]).unwrap());
                }
            }
        }
        let error = read_as(&path, &Axes::DOMAIN).unwrap_err().to_string();
        assert!(error.contains("it has u, v") && error.contains("behind a `:`"), "{error}");
        let error = read_as(&folder.path().join("a.npz:w"), &Axes::DOMAIN).unwrap_err().to_string();
        assert!(error.contains("no array w, but u, v"), "{error}");
    }

    #[test]
    fn cut_files_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let shape = Shape::new(&[3, 5]).unwrap();
        let u = Array::zeros(DType::F64, 15).unwrap();
        let fields = [Placed::new("u", &u, shape)];
        write(&path, &Snapshot { fields: fields.to_vec(), ..Snapshot::default() }).unwrap().commit().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            for outcome in [read_as(&path, &Axes::DOMAIN), read_planes(&path, 0..2)] {
                assert!(matches!(outcome, Err(Error::File { .. })), "{length}");
            }
        }
    }
}
