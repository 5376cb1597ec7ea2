//! Files that appear whole or not at all.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::{Error, Result};

/// A file under a temporary name in the folder of its target. Dropped, it vanishes; committed, it replaces the target.
pub struct Staged {
    file: NamedTempFile,
    target: PathBuf,
}

impl Staged {
    /// An empty file beside `target`; an error where the folder is missing or cannot be written to.
    pub fn new(target: &Path) -> Result<Staged> {
        // A link is followed, so that the rename replaces what it points to and not the link.
        let target = match target.canonicalize() {
            Ok(path) if path.is_dir() => return Err(Error::file(target, "it is a folder", "give a file's name")),
            Ok(path) => path,
            Err(_) => target.to_owned(),
        };
        let folder = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            let message = format!("the folder {} is not there", folder.display());
            return Err(Error::file(target.clone(), message, "make it, or write elsewhere"));
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(".abide-");
        // Temporary files are for their owner alone by default; an output follows the user's mask as any other file.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(|e| {
            Error::file(target.clone(), format!("cannot write in {}: {e}", folder.display()), "write elsewhere")
        })?;
        Ok(Staged { file, target })
    }

    /// Lets `body` write the contents through a buffer.
    pub fn fill(mut self, body: impl FnOnce(&mut BufWriter<&mut File>) -> std::io::Result<()>) -> Result<Staged> {
        let mut writer = BufWriter::with_capacity(1 << 20, self.file.as_file_mut());
        let done = body(&mut writer).and_then(|()| writer.flush());
        drop(writer);
        done.map_err(|e| self.fault(e))?;
        Ok(self)
    }

    /// A second handle for a writer that outlives this call.
    pub fn handle(&self) -> Result<File> {
        self.file.as_file().try_clone().map_err(|e| self.fault(e))
    }

    /// Puts the file in its place.
    pub fn commit(self) -> Result<()> {
        let target = self.target;
        self.file.persist(&target).map(|_| ()).map_err(|e| fault(&target, e.error))
    }

    /// [`Staged::commit`] once the contents have reached the disk.
    pub fn commit_durably(self) -> Result<()> {
        self.file.as_file().sync_all().map_err(|e| self.fault(e))?;
        self.commit()
    }

    /// The error of a write that failed.
    pub fn fault(&self, error: impl ToString) -> Error {
        fault(&self.target, error)
    }
}

fn fault(target: &Path, error: impl ToString) -> Error {
    Error::file(target, format!("writing failed: {}", error.to_string()), "make room, or write elsewhere")
}

/// Checks that a file can be written, without leaving a trace.
pub fn check_target(target: &Path) -> Result<()> {
    Staged::new(target).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_committed_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.txt");
        std::fs::write(&target, "old").unwrap();
        let staged = Staged::new(&target).unwrap().fill(|w| w.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "old");
        drop(staged);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        Staged::new(&target).unwrap().fill(|w| w.write_all(b"new")).unwrap().commit().unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_and_a_folder_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(check_target(&folder.path().join("not/there.npy")).is_err());
        assert!(check_target(folder.path()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_others_may_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        Staged::new(&link).unwrap().fill(|w| w.write_all(b"new")).unwrap().commit().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "new");
        let plain = folder.path().join("c");
        std::fs::write(&plain, "").unwrap();
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode();
        assert_eq!(mode(&target), mode(&plain));
    }
}
