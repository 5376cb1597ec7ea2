//! Files that several processes write, each the planes that it has; a process alone has all of them.
//!
//! The first process makes the file under its temporary name, in its full length, with a random token at its beginning.
//! The others open it by that name and compare the token, so that a folder that is not shared is found before anything is
//! written. Each writes its planes at their place, and the outcomes are gathered. Then the first process writes
//! everything around the planes, and overwrites the token: an incomplete file is never taken for a complete one.
//! Devices and pipes cannot be opened by all processes: for them the others send their planes to the first, some at a
//! time.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use abide_core::backend::Part;
use abide_core::program::Problem;
use abide_core::{Array, DType, Error, Result, Shape};
use crc32fast::Hasher;

use super::Staged;

/// Bytes of a field that a process holds at once, unless a plane has more.
const PIECE: u64 = if cfg!(test) { 64 } else { 16 << 20 };

/// Returns the bytes that a process holds of a field of this shape while several write it to a file.
pub fn piece_bytes(shape: &Shape, dtype: DType) -> u64 {
    let planes = shape.extents().first().copied().unwrap_or(1);
    PIECE.max((shape.bytes(dtype) / planes) as u64)
}

/// A field's values in a file.
pub(super) struct Values {
    /// The field's number.
    pub field: usize,
    /// Where they begin.
    pub at: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The planes that they are, along the slowest axis.
    pub planes: usize,
}

impl Values {
    /// Describes a field of a problem, in a batch of all members, whose values begin there.
    pub fn of(problem: &Problem, field: usize, at: u64) -> Values {
        let bytes = (problem.values_of(field) * problem.members() * problem.dtype.bytes()) as u64;
        Values { field, at, bytes, planes: problem.extents_of(field)[problem.slowest()] }
    }
}

/// A problem whose fields a process has whole, as the only part of it; `read` reads a field by number.
pub struct Whole<'a, F> {
    /// What the fields belong to.
    pub problem: &'a Problem,
    /// Reads a field by its number.
    pub read: F,
}

impl<F: FnMut(usize) -> Result<Array>> Part for Whole<'_, F> {
    fn rank(&self) -> usize {
        0
    }

    fn own(&self, field: usize) -> Range<usize> {
        0..self.problem.extents_of(field)[self.problem.slowest()]
    }

    fn read_planes(&mut self, field: usize, planes: Range<usize>) -> Result<Array> {
        let all = self.own(field);
        let values = (self.read)(field)?;
        if planes == all {
            return Ok(values);
        }
        let plane = values.len() / all.len().max(1);
        values.part(planes.start * plane..planes.end * plane)
    }

    fn gather_bytes(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![own.to_vec()])
    }
}

/// Bytes and the place where they stand in a file.
pub(super) type Placed = (u64, Vec<u8>);

/// Writes a file of so many bytes: the values of fields, and around them what `frame` makes of the checksums of each of the
/// fields' values. All processes call it alike.
///
/// Returns the file in the first process, which puts it in its place, and nothing in the others.
///
/// # Errors
///
/// [`Error::File`] in all processes where the file system fails any of them; it names the rank unless it is the first.
pub(super) fn write(
    part: &mut dyn Part,
    target: &Path,
    length: u64,
    values: &[Values],
    frame: impl FnOnce(&[Hasher]) -> Vec<Placed>,
) -> Result<Option<Staged>> {
    let mut shared = Shared::begin(part, target, length)?;
    let mut own = Vec::new();
    for values in values {
        let hasher = shared.write(part, values)?;
        let mut said = hasher.finalize().to_le_bytes().to_vec();
        said.extend(shared.hashed.to_le_bytes());
        own.extend(said);
    }
    let done = shared.close().map(|()| own);
    let all = agree(part, target, done)?;
    let framed = match &shared.staged {
        Some(staged) => staged.handle().and_then(|mut file| {
            let mut put = |(at, bytes): &Placed| put(&mut file, *at, bytes).map_err(|e| staged.fault(e));
            frame(&combined(&all, values.len())).iter().try_for_each(&mut put)
        }),
        None => Ok(()),
    };
    agree(part, target, framed.map(|()| Vec::new()))?;
    Ok(shared.staged)
}

/// Returns the checksum of each field's values by those that each process said of its part of each.
pub(super) fn combined(all: &[Vec<u8>], fields: usize) -> Vec<Hasher> {
    let mut sums = vec![Hasher::new(); fields];
    for own in all {
        for (sum, said) in sums.iter_mut().zip(own.as_chunks::<12>().0) {
            let [a, b, c, d, length @ ..] = *said;
            let length = u64::from_le_bytes(length);
            sum.combine(&Hasher::new_with_initial_len(u32::from_le_bytes([a, b, c, d]), length));
        }
    }
    sums
}

/// A file in the making, as one of the processes has it.
struct Shared {
    /// In the first process alone.
    staged: Option<Staged>,
    /// The file, where this process writes into it.
    file: Option<File>,
    target: PathBuf,
    /// Whether there are other processes.
    are_several: bool,
    /// Whether the first process is sent the planes of all.
    is_sent: bool,
    /// Bytes of the last field that this process has.
    hashed: u64,
    /// Why the file cannot be written; what follows is not.
    fault: Option<Error>,
}

impl Shared {
    fn begin(part: &mut dyn Part, target: &Path, length: u64) -> Result<Shared> {
        let token = fastrand::u128(..).to_le_bytes();
        let made = match part.rank() {
            0 => make(target, length, &token).map(Some),
            _ => Ok(None),
        };
        let words = made.as_ref().map_err(Error::clone).map(|made| match made {
            Some((staged, _)) => {
                let name = if staged.is_beside() { bytes_of(staged.path()) } else { Vec::new() };
                [&token[..], &name].concat()
            }
            None => Vec::new(),
        });
        let all = agree(part, target, words)?;
        let (staged, mut file) = made?.unzip();
        let (token, name) =
            all.first().and_then(|first| first.split_first_chunk::<16>()).unwrap_or((&token, &[]));
        let (are_several, is_sent) = (all.len() > 1, all.len() > 1 && name.is_empty());
        if are_several {
            let seen = match (&file, is_sent) {
                (None, false) => open(target, &path_of(name), token).map(|opened| file = Some(opened)),
                _ => Ok(()),
            };
            agree(part, target, seen.map(|()| Vec::new()))?;
        }
        Ok(Shared { staged, file, target: target.to_owned(), are_several, is_sent, hashed: 0, fault: None })
    }

    /// Writes this process's planes of a field, and returns their checksum.
    fn write(&mut self, part: &mut dyn Part, values: &Values) -> Result<Hasher> {
        let (own, plane) = (part.own(values.field), values.bytes / values.planes.max(1) as u64);
        let step = match self.are_several {
            true => (PIECE / plane.max(1)).max(1) as usize,
            false => values.planes.max(1),
        };
        let mut hasher = Hasher::new();
        let mut starts = own.clone().step_by(step);
        self.hashed = own.len() as u64 * plane;
        loop {
            let mut piece = None;
            if let (Some(start), None) = (starts.next(), &self.fault) {
                match part.read_planes(values.field, start..own.end.min(start + step)) {
                    Ok(read) => {
                        hasher.update(read.as_bytes());
                        piece = Some((values.at + start as u64 * plane, read));
                    }
                    // The others hear of it by themselves.
                    Err(error @ Error::Device { .. }) => return Err(error),
                    Err(error) => self.fault = Some(error),
                }
            }
            match (piece, self.is_sent) {
                (Some((at, piece)), false) => self.put(at, piece.as_bytes()),
                (None, false) => return Ok(hasher),
                (piece, true) => {
                    let sent = piece.map(|(at, piece)| [&at.to_le_bytes(), piece.as_bytes()].concat());
                    let all = part.gather_bytes(&sent.unwrap_or_default())?;
                    if all.iter().all(Vec::is_empty) {
                        return Ok(hasher);
                    }
                    for (at, piece) in all.iter().filter_map(|sent| sent.split_first_chunk::<8>()) {
                        self.put(u64::from_le_bytes(*at), piece);
                    }
                }
            }
        }
    }

    fn put(&mut self, at: u64, bytes: &[u8]) {
        if let (Some(file), None) = (&mut self.file, &self.fault) {
            self.fault = put(file, at, bytes).err().map(|error| super::staged::fault(&self.target, &error));
        }
    }

    /// Lets go of the file. Of several processes each sees to it that its part has left: the disk may be far away.
    fn close(&mut self) -> Result<()> {
        let file = self.file.take();
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        match file.filter(|_| self.are_several && !self.is_sent) {
            Some(file) => file.sync_data().map_err(|error| super::staged::fault(&self.target, &error)),
            None => Ok(()),
        }
    }
}

/// Makes the file with the token at its beginning.
fn make(target: &Path, length: u64, token: &[u8]) -> Result<(Staged, File)> {
    let staged = Staged::new(target)?;
    let mut file = staged.handle()?;
    let made = file.set_len(length).and_then(|()| put(&mut file, 0, token));
    made.map_err(|error| staged.fault(error))?;
    Ok((staged, file))
}

/// Opens the file that the first process made.
fn open(target: &Path, path: &Path, token: &[u8; 16]) -> Result<File> {
    let unseen = |reason: String| {
        let message = format!("the file that rank 0 began, {}, {reason}", path.display());
        Error::file(target, message, "write to a folder that all processes see")
    };
    let opened = File::options().read(true).write(true).open(path);
    let mut file = opened.map_err(|error| unseen(format!("cannot be opened: {error}")))?;
    let mut own = [0; 16];
    match file.read_exact(&mut own) {
        Ok(()) if own == *token => Ok(file),
        Ok(()) => Err(unseen("is another one here".to_owned())),
        Err(error) => Err(unseen(format!("cannot be read: {error}"))),
    }
}

fn put(file: &mut File, at: u64, bytes: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// Returns what each process gives, or the error of the first that has one, the same in all of them.
pub fn agree(part: &mut dyn Part, target: &Path, own: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
    const MARK: u8 = 0;
    let said = match &own {
        Ok(bytes) => [&[1][..], bytes].concat(),
        // The others hear of it by themselves.
        Err(error @ Error::Device { .. }) => return Err(error.clone()),
        Err(Error::File { message, change, .. }) => {
            [&[0], message.as_bytes(), &[MARK], change.as_bytes()].concat()
        }
        Err(error) => [&[0], error.to_string().as_bytes(), &[MARK], b"try again".as_slice()].concat(),
    };
    let rank = part.rank();
    let mut all = part.gather_bytes(&said)?;
    let Some(failed) = all.iter().position(|said| said.first() != Some(&1)) else {
        all.iter_mut().for_each(|said| drop(said.drain(..1)));
        return Ok(all);
    };
    match own {
        Err(error) if rank == failed && failed == 0 => Err(error),
        _ => {
            let said = String::from_utf8_lossy(all[failed].get(1..).unwrap_or_default()).into_owned();
            let (message, change) = said.split_once(char::from(MARK)).unwrap_or((&said, "try again"));
            let before = if failed == 0 { String::new() } else { format!("rank {failed}: ") };
            Err(Error::file(target, format!("{before}{message}"), change))
        }
    }
}

#[cfg(unix)]
fn bytes_of(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).as_os_str().as_bytes().to_vec()
}

#[cfg(not(unix))]
fn bytes_of(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests;
