//! A checkpoint's fields plane by plane, for a process that has a part of them.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use abide_core::backend::planes_of;
use abide_core::{Array, Error, Result, Shape};
use crc32fast::Hasher;

use super::super::npy;
use super::super::npy::header::Header;
use super::{Axes, Head, archive, check_field, entry, head};

/// A checkpoint of a single domain, of which a process reads planes. Its checksums are compared with the checksums of
/// the planes of all processes combined.
pub struct Planes {
    path: PathBuf,
    file: File,
    length: u64,
    head: Head,
    fields: Vec<Field>,
}

/// A field's entry.
struct Field {
    /// Where it begins, and its bytes.
    begin: u64,
    length: u64,
    checksum: u32,
    /// The checksum of what stands before the values; none where the values do not stand plane by plane.
    before: Option<Hasher>,
    /// The checksum of this process's own planes, and their bytes.
    own: (Hasher, u64),
}

impl Planes {
    /// Opens a checkpoint that belongs to this run.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it is none, or belongs to another.
    pub fn open(path: &Path, expected: &Head) -> Result<Planes> {
        let fault =
            |error: std::io::Error| Error::file(path, error, "give a file that exists and can be read");
        let (reader, length) = super::super::open(path)?;
        let mut file = reader.get_ref().try_clone().map_err(fault)?;
        let mut zip = archive(reader, path)?;
        let head = head(&mut zip, length, path)?;
        if head != *expected {
            return Err(changed(path));
        }
        let mut places = Vec::new();
        for name in &head.fields {
            let missing =
                |reason: String| Error::file(path, format!("{name}: {reason}"), "give a whole checkpoint");
            let entry = zip.by_name(&format!("{name}.npy")).map_err(|error| missing(error.to_string()))?;
            let begin = entry.data_start().ok_or_else(|| missing("it has no place".to_owned()))?;
            places.push((begin, entry.size().min(length), entry.crc32()));
        }
        let mut fields = Vec::new();
        for (begin, length, checksum) in places {
            file.seek(SeekFrom::Start(begin)).map_err(fault)?;
            let mut reader = BufReader::new(&file);
            let header = npy::read_header(&mut reader, path)?;
            let before =
                (!header.fortran).then(|| hashed(&file, begin, &header)).transpose().map_err(fault)?;
            fields.push(Field { begin, length, checksum, before, own: (Hasher::new(), 0) });
        }
        Ok(Planes { path: path.to_owned(), file, length, head, fields })
    }

    /// Returns planes of a field, with the field's extents. Those that are in `own` count for the checksum.
    pub fn read(&mut self, field: usize, planes: Range<usize>, own: &Range<usize>) -> Result<(Array, Shape)> {
        let (name, dtype) = (&self.head.fields[field], self.head.dtype);
        if self.fields[field].before.is_none() {
            // Its archive's reader checks it whole.
            let (reader, length) = super::super::open(&self.path)?;
            let loaded = entry(&mut archive(reader, &self.path)?, name, length, &self.path, &Axes::DOMAIN)?;
            check_field(&self.path, &self.head, name, &loaded)?;
            let all = loaded.shape.extents()[0];
            return Ok((planes_of(&loaded.values, all, planes)?, loaded.shape));
        }
        let (start, end) =
            (own.start.clamp(planes.start, planes.end), own.end.clamp(planes.start, planes.end));
        let (mut parts, mut shape, mut len) = (Vec::new(), self.head.shape, 0);
        for range in [planes.start..start, start..end, end..planes.end] {
            // Any part of a field states the field's extents, even an empty part.
            let mut hasher = Hasher::new();
            let own = &mut self.fields[field];
            let at = self.file.seek(SeekFrom::Start(own.begin));
            let file = at.and_then(|_| self.file.try_clone());
            let file =
                file.map_err(|error| Error::file(&self.path, error, "give a file that can be read"))?;
            let mut reader = BufReader::new(file);
            let is_own = range.start >= start && range.end <= end && start < end;
            let loaded = npy::decode_planes(&mut reader, own.length, &self.path, range, &mut hasher)?;
            if is_own {
                own.own.0.combine(&hasher);
                own.own.1 += loaded.values.as_bytes().len() as u64;
            }
            check_field(&self.path, &self.head, name, &loaded)?;
            (shape, len) = (loaded.shape, len + loaded.values.len());
            parts.push(Ok(loaded.values));
        }
        Ok((Array::join(dtype, len, parts)?, shape))
    }

    /// Returns what this process says of its own planes: for [`Planes::check`].
    pub fn said(&self) -> Vec<u8> {
        let said = |field: &Field| {
            let (hasher, bytes) = &field.own;
            [&hasher.clone().finalize().to_le_bytes()[..], &bytes.to_le_bytes()].concat()
        };
        self.fields.iter().flat_map(said).collect()
    }

    /// Holds the checksums against what all processes say, in the order of ranks.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where a field is not what was written, or the file was replaced while it was read.
    pub fn check(&self, all: &[Vec<u8>]) -> Result<()> {
        for (field, sum) in super::super::parts::combined(all, self.fields.len()).into_iter().enumerate() {
            let Field { before: Some(before), checksum, .. } = &self.fields[field] else { continue };
            let mut whole = before.clone();
            whole.combine(&sum);
            if whole.finalize() != *checksum {
                return Err(Error::file(&self.path, "Invalid checksum", "save it anew, as with numpy.save"));
            }
        }
        let is_same = self.file.metadata().is_ok_and(|metadata| metadata.len() == self.length);
        match is_same && super::read_head(&self.path)? == self.head {
            true => Ok(()),
            false => Err(changed(&self.path)),
        }
    }
}

/// Returns the error of a checkpoint that is another one than before.
pub fn changed(path: &Path) -> Error {
    Error::file(path, "it changed while it was read", "resume once it is written")
}

/// Returns the checksum of the bytes of a header that begins there.
fn hashed(file: &File, begin: u64, header: &Header) -> std::io::Result<Hasher> {
    let mut file = file;
    file.seek(SeekFrom::Start(begin))?;
    let (mut bytes, mut hasher) = (Vec::new(), Hasher::new());
    file.take(header.length).read_to_end(&mut bytes)?;
    hasher.update(&bytes);
    Ok(hasher)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::{read, read_head, write};
    use super::*;
    use abide_core::DType;
    use abide_core::program::Problem;

    /// A checkpoint with fields on cells and on nodes, 13 planes of cells.
    fn checkpoint(path: &Path) -> Vec<Array> {
        let program = abide_core::catalogue::find("cloverleaf").unwrap().program(2).unwrap();
        let problem = Problem::new(Arc::new(program), Shape::new(&[13, 5]).unwrap(), DType::F32).unwrap();
        let values = |field| Array::from_fn(DType::F32, problem.values_of(field), |i| (i + 9 * field) as f64);
        write(path, &problem, 3, |field| Ok(values(field))).unwrap().commit().unwrap();
        (0..problem.program.fields().len()).map(values).collect()
    }

    /// Reads all planes as processes that own them from these on, with a plane more at inner sides, and returns what each
    /// process says.
    fn read_all(path: &Path, cuts: &[usize], expected: &[Array]) -> Result<()> {
        let head = read_head(path)?;
        let mut all = Vec::new();
        let mut last = None;
        for (rank, &start) in cuts.iter().enumerate() {
            let mut planes = Planes::open(path, &head)?;
            for (field, values) in expected.iter().enumerate() {
                let whole =
                    values.len() / if values.len() % 14 == 0 { values.len() / 14 } else { values.len() / 13 };
                let own = start..cuts.get(rank + 1).copied().unwrap_or(whole);
                let held = own.start.saturating_sub(1)..(own.end + 1).min(whole);
                let (part, shape) = planes.read(field, held.clone(), &own)?;
                assert_eq!(shape.extents()[0], whole);
                assert_eq!(part, planes_of(values, whole, held)?);
            }
            all.push(planes.said());
            last = Some(planes);
        }
        last.map_or(Ok(()), |planes| planes.check(&all))
    }

    #[test]
    fn parts_are_read_and_checked_together() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.npz");
        let fields = checkpoint(&path);
        for cuts in [&[0][..], &[0, 7], &[0, 1, 12], &[0, 4, 5, 9]] {
            read_all(&path, cuts, &fields).unwrap();
        }
    }

    #[test]
    fn a_spoilt_plane_of_any_process_is_the_error_of_a_whole_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.npz");
        let mut fields = checkpoint(&path);
        let at = Planes::open(&path, &read_head(&path).unwrap()).unwrap().fields[1].begin as usize + 128 + 8;
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        // What is read is spoilt, too.
        match &mut fields[1] {
            Array::F32(values) => values[2] = f32::from_bits(values[2].to_bits() ^ 1),
            Array::F64(_) => unreachable!(),
        }
        let whole = read(&path).unwrap_err().to_string();
        for cuts in [&[0][..], &[0, 7], &[0, 1, 12]] {
            assert_eq!(read_all(&path, cuts, &fields).unwrap_err().to_string(), whole);
        }
    }

    #[test]
    fn another_checkpoint_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.npz");
        checkpoint(&path);
        let mut head = read_head(&path).unwrap();
        head.steps += 1;
        assert!(
            Planes::open(&path, &head).err().unwrap().to_string().contains("it changed while it was read")
        );
    }
}
