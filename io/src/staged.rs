//! Files that appear whole or not at all.

use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use abide_core::{Error, Result};
use tempfile::NamedTempFile;

use super::place::{Place, folder_of};
use super::rights;

/// A file under a temporary name, `.NAME.abide-` and six letters, in the folder of its target. Dropped, it
/// vanishes; committed, it replaces the target.
///
/// A link is followed. A device, a pipe, standard output and standard error are never replaced: for them the
/// file is made in the system's temporary folder and copied into them when it is committed, so that formats
/// that go back to their beginning can be written there too.
pub struct Staged {
    file: NamedTempFile,
    _listed: Listed,
    place: Place,
    target: PathBuf,
}

impl Staged {
    /// Makes an empty file beside `target`; an error where the folder is missing or cannot be written to, or
    /// where the target cannot be replaced.
    pub fn new(target: &Path) -> Result<Staged> {
        let place = Place::find(target)?;
        // Made and listed under one lock: whoever ends the program sees every file, or stops the next one
        // from being made.
        let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &place {
            Place::File { path, old: None } => temporary(folder_of(path), path, false),
            Place::File { path, old: Some(old) } => temporary(folder_of(path), path, true)
                .inspect(|file| rights::adopt(file.as_file(), path, old)),
            _ => temporary(&std::env::temp_dir(), target, true),
        };
        let file = file.map_err(|(folder, e)| {
            Error::file(target, format!("cannot write in {}: {e}", folder.display()), advice(e.kind()))
        })?;
        unfinished.insert(file.path().to_owned());
        drop(unfinished);
        Ok(Staged { _listed: Listed(file.path().to_owned()), file, place, target: target.to_owned() })
    }

    /// Lets `body` write the contents through a buffer.
    pub fn fill(
        mut self,
        body: impl FnOnce(&mut BufWriter<&mut File>) -> std::io::Result<()>,
    ) -> Result<Staged> {
        // Small, because the buffer is taken without asking for memory.
        let mut writer = BufWriter::with_capacity(1 << 16, self.file.as_file_mut());
        let done = body(&mut writer).and_then(|()| writer.flush());
        drop(writer);
        done.map_err(|e| self.fault(e))?;
        Ok(self)
    }

    /// Returns the temporary name.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns whether the file stands beside its target, and not in the system's temporary folder.
    pub(super) fn is_beside(&self) -> bool {
        matches!(self.place, Place::File { .. })
    }

    /// Returns a second handle, for a writer that outlives this call.
    pub fn handle(&self) -> Result<File> {
        self.file.as_file().try_clone().map_err(|e| self.fault(e))
    }

    /// Puts the file in its place. Where that is not possible, the file is kept, and the error names it.
    pub fn commit(self) -> Result<()> {
        let target = self.target.clone();
        self.put().map_err(|(file, error)| match file.keep() {
            Ok((_, kept)) => Error::file(
                target,
                format!("it cannot be put in its place: {error}; all of it is in {}", kept.display()),
                format!("move that file, and then {}", advice(error.kind())),
            ),
            Err(_) => fault(&target, &error),
        })
    }

    /// Commits as [`Staged::commit`] does, once the contents have reached the disk.
    pub fn commit_durably(self) -> Result<()> {
        self.sync()?.commit()
    }

    /// Commits as [`Staged::commit_durably`] does, but removes a file that cannot be put in its place. Meant
    /// for a file that is written again before long.
    pub fn replace_durably(self) -> Result<()> {
        let target = self.target.clone();
        self.sync()?.put().map_err(|(_, error)| fault(&target, &error))
    }

    /// Returns the error of a write that failed.
    pub fn fault(&self, error: impl StdError + 'static) -> Error {
        fault(&self.target, &error)
    }

    fn sync(self) -> Result<Staged> {
        self.file.as_file().sync_all().map_err(|e| self.fault(e))?;
        Ok(self)
    }

    fn put(self) -> Result<(), (NamedTempFile, std::io::Error)> {
        let Staged { mut file, place, .. } = self;
        if let Place::File { path, .. } = &place {
            // A rename would replace whatever has come there since.
            if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
                return Err((file, std::io::Error::other("what has come there is no file")));
            }
            return file.persist(path).map(drop).map_err(|e| (e.file, e.error));
        }
        match copy(&place, file.as_file_mut()) {
            Ok(()) => Ok(()),
            Err(error) => Err((file, error)),
        }
    }
}

/// The temporary names of files that are not complete.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file's entry among the unfinished names.
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// Removes all unfinished files, for a program that is about to end in the middle of its work. No other file
/// is begun afterwards.
pub fn remove_unfinished() {
    let mut unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    for path in std::mem::take(&mut *unfinished) {
        // A file that has just got its name is complete, and no longer listed.
        let _ = std::fs::remove_file(path);
    }
    // The lock is never released: whoever would begin another file waits for the end of the program.
    std::mem::forget(unfinished);
}

/// Copies a file into a place that is written in place.
fn copy(place: &Place, file: &mut File) -> std::io::Result<()> {
    let Some(mut open) = place.open()? else { return Ok(()) };
    file.rewind()?;
    std::io::copy(file, &mut open).map(drop)
}

/// Makes a file with a temporary name that contains its final one, for its owner alone or by the user's mask.
fn temporary(
    folder: &Path,
    target: &Path,
    private: bool,
) -> Result<NamedTempFile, (PathBuf, std::io::Error)> {
    /// File systems allow names of at least 143 bytes.
    const LONGEST: usize = 100;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let end = (0..=name.len().min(LONGEST)).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    let prefix = format!(".{}.abide-", &name[..end]);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(if private { 0o600 } else { 0o666 }));
    #[cfg(not(unix))]
    let _ = private;
    builder.tempfile_in(folder).map_err(|e| (folder.to_owned(), e))
}

/// Returns advice against a failure of this kind.
fn advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room, or write elsewhere",
        ErrorKind::PermissionDenied => "write to a folder of your own",
        ErrorKind::BrokenPipe => "keep the pipe's reader until all is written",
        _ => "write elsewhere",
    }
}

/// Returns the error of a write to a file that failed.
pub(super) fn fault(target: &Path, error: &(dyn StdError + 'static)) -> Error {
    Error::file(target, format!("writing failed: {error}"), advice(cause(error)))
}

/// Returns the kind of the system's failure that an error comes from.
fn cause(error: &(dyn StdError + 'static)) -> ErrorKind {
    let mut kind = ErrorKind::Other;
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            kind = io.kind();
            if let Some(inner) = io.get_ref() {
                next = Some(inner);
            }
        }
    }
    kind
}

/// Checks that a file can be written, without leaving a trace. A pipe is not opened: that would wait for its
/// reader.
pub fn check_target(target: &Path) -> Result<()> {
    Staged::new(target).map(drop)
}

/// Files that are put in their places at the same time: once each of them is complete or has failed.
#[derive(Default)]
pub struct Batch {
    staged: Vec<(String, Staged)>,
    written: Written,
}

/// The outcome of writing files.
#[derive(Debug, Default)]
pub struct Written {
    /// The files that are in their places, in words.
    pub files: Vec<String>,
    /// The reasons why other files are not.
    pub faults: Vec<Error>,
}

impl Batch {
    /// Adds a file with its description, or the reason why there is no file.
    pub fn add(&mut self, words: String, file: Result<Staged>) {
        match file {
            Ok(file) => self.staged.push((words, file)),
            Err(fault) => self.written.faults.push(fault),
        }
    }

    /// Puts all complete files in their places; a file that cannot be put there holds up no other.
    pub fn commit(mut self) -> Written {
        for (words, file) in self.staged {
            match file.commit() {
                Ok(()) => self.written.files.push(words),
                Err(fault) => self.written.faults.push(fault),
            }
        }
        self.written
    }
}

#[cfg(test)]
mod tests;
