//! Destinations of outputs: links are followed to their end, and devices and pipes are distinguished from files.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};

use abide_core::{Error, Result};

use super::rights;

/// The destination that a name leads to, checked as far as possible without writing.
pub(super) enum Place {
    /// A file, or none yet: its path without links. The file is replaced as a whole.
    File { path: PathBuf, old: Option<Metadata> },
    /// A device or a named pipe: the output goes into it, and it stays what it is.
    Node { path: PathBuf, metadata: Metadata },
    /// The destination that standard output or standard error has already, whatever it may be.
    #[cfg(unix)]
    Stream(Stream),
}

/// The identity of a place, which distinguishes it from other places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Identity {
    /// The device and inode number of what exists there.
    #[cfg(unix)]
    Inode(u64, u64),
    /// The full name of a file that does not exist yet.
    Name(PathBuf),
}

impl Place {
    /// Follows `asked` to its end; an error where nothing can be written there.
    pub(super) fn find(asked: &Path) -> Result<Place> {
        let fault = |message: String, change: &str| Error::file(asked, message, change);
        let Some(end) = end(asked) else {
            return Err(fault(
                "its links lead in a circle".to_owned(),
                "remove the link, or write elsewhere",
            ));
        };
        #[cfg(unix)]
        if let End::Stream(stream) = end {
            return Ok(Place::Stream(stream));
        }
        let metadata = match (asked.metadata(), end) {
            (Ok(metadata), _) => metadata,
            (Err(e), End::Missing(path)) if e.kind() == std::io::ErrorKind::NotFound => {
                let Some(name) = path.file_name() else {
                    return Err(fault("it is no file's name".to_owned(), "give a file's name"));
                };
                let folder = folder_of(&path);
                if !folder.is_dir() {
                    return Err(fault(
                        format!("the folder {} is not there", folder.display()),
                        "make it, or write elsewhere",
                    ));
                }
                let folder = folder.canonicalize().map_err(|e| fault(e.to_string(), "write elsewhere"))?;
                rights::check(&folder, None).map_err(|(message, change)| fault(message, change))?;
                return Ok(Place::File { path: folder.join(name), old: None });
            }
            (Err(e), _) => return Err(fault(e.to_string(), "write elsewhere")),
        };
        if metadata.is_dir() {
            return Err(fault("it is a folder".to_owned(), "give a file's name"));
        }
        if !metadata.is_file() {
            rights::check_node(asked, &metadata).map_err(|(message, change)| fault(message, change))?;
            return Ok(Place::Node { path: asked.to_owned(), metadata });
        }
        let Some((path, metadata)) = named(asked) else {
            return Err(fault("it leads to a file that has no name".to_owned(), "write elsewhere"));
        };
        #[cfg(unix)]
        if let Some(stream) =
            Stream::ALL.into_iter().find(|s| s.metadata().is_some_and(|m| is_same(&m, &metadata)))
        {
            let name = stream.name();
            return Err(fault(
                format!("{name} goes into it too, and would be lost when the file is replaced"),
                "send one of them elsewhere",
            ));
        }
        rights::check(folder_of(&path), Some((&path, &metadata)))
            .map_err(|(message, change)| fault(message, change))?;
        Ok(Place::File { path, old: Some(metadata) })
    }

    /// Returns the identity of this place; `None` for a device, where outputs do not replace each other.
    pub(super) fn identity(&self) -> Option<Identity> {
        match self {
            Place::File { old: Some(metadata), path } => Some(identity_of(path, metadata)),
            Place::File { old: None, path } => Some(Identity::Name(comparable(path))),
            Place::Node { path, metadata } => is_pipe(metadata).then(|| identity_of(path, metadata)),
            #[cfg(unix)]
            Place::Stream(stream) => {
                let metadata = stream.metadata().filter(|m| m.is_file() || is_pipe(m))?;
                Some(identity_of(Path::new(""), &metadata))
            }
        }
    }

    /// Returns whether an output there follows what was written before, instead of replacing it.
    pub(super) fn appends(&self) -> bool {
        match self {
            Place::File { .. } => false,
            Place::Node { metadata, .. } => is_pipe(metadata),
            #[cfg(unix)]
            Place::Stream(stream) => stream.metadata().is_some_and(|m| m.is_file() || is_pipe(&m)),
        }
    }

    /// Opens a device, pipe or stream for writing in place; a pipe waits here for its reader. `None` for a
    /// file.
    pub(super) fn open(&self) -> std::io::Result<Option<File>> {
        match self {
            Place::File { .. } => Ok(None),
            Place::Node { path, .. } => {
                let file = File::options().write(true).open(path)?;
                if file.metadata()?.is_file() {
                    return Err(std::io::Error::other("a file has come in place of the device"));
                }
                Ok(Some(file))
            }
            #[cfg(unix)]
            Place::Stream(stream) => stream.open().map(Some),
        }
    }
}

/// Returns the identity of an input; `None` for devices and for files that do not exist.
pub(super) fn identity_of_input(path: &Path) -> Option<Identity> {
    let metadata = path.metadata().ok().filter(|m| m.is_file() || is_pipe(m))?;
    Some(identity_of(&path.canonicalize().unwrap_or_else(|_| path.to_owned()), &metadata))
}

/// Returns the folder that a name stands in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns a name as the file system compares it.
pub(super) fn comparable(path: &Path) -> PathBuf {
    if cfg!(any(windows, target_os = "macos")) {
        return path.to_string_lossy().to_lowercase().into();
    }
    path.to_owned()
}

/// The end of a chain of links.
enum End {
    #[cfg(unix)]
    Stream(Stream),
    There,
    Missing(PathBuf),
}

/// Follows links by their text, as far as there are any; `None` where the links do not end.
fn end(asked: &Path) -> Option<End> {
    /// As many links as Linux follows.
    const LINKS: usize = 40;
    let mut path = asked.to_owned();
    for _ in 0..=LINKS {
        #[cfg(unix)]
        if let Some(stream) = Stream::at(&path) {
            return Some(End::Stream(stream));
        }
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => match path.read_link() {
                Ok(to) => path = folder_of(&path).join(to),
                Err(_) => return Some(End::There),
            },
            Ok(_) => return Some(End::There),
            Err(_) => return Some(End::Missing(path)),
        }
    }
    None
}

/// Number of times that a name is looked up while another process replaces its file.
const LOOKUPS: usize = 100;

/// Returns the name of the file that `asked` leads to, and the file's metadata; `None` for a file without a
/// name. The system's links to a process's open files lead to files whose names may be gone, or may be
/// another file's by now. A file that another process replaces between the two lookups is looked up again.
fn named(asked: &Path) -> Option<(PathBuf, Metadata)> {
    (0..LOOKUPS).find_map(|_| {
        let metadata = asked.metadata().ok()?;
        let path = asked.canonicalize().ok()?;
        path.metadata().is_ok_and(|own| is_same(&own, &metadata)).then_some((path, metadata))
    })
}

#[cfg(unix)]
fn is_same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn identity_of(_: &Path, metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity::Inode(metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity_of(path: &Path, _: &Metadata) -> Identity {
    Identity::Name(comparable(path))
}

#[cfg(unix)]
fn is_pipe(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_pipe(_: &Metadata) -> bool {
    false
}

#[cfg(unix)]
pub(super) use stream::Stream;

#[cfg(unix)]
mod stream {
    use std::fs::{File, Metadata};
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::path::Path;

    use super::folder_of;

    /// A stream that this process prints to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Stream {
        Output,
        Error,
    }

    impl Stream {
        pub const ALL: [Stream; 2] = [Stream::Output, Stream::Error];

        /// Returns the stream that a name stands for, such as `/proc/self/fd/1`, to which `/dev/stdout` is a
        /// link.
        pub fn at(path: &Path) -> Option<Stream> {
            let stream = match path.file_name()?.to_str()? {
                "1" => Stream::Output,
                "2" => Stream::Error,
                _ => return None,
            };
            let folder = folder_of(path).canonicalize().ok()?;
            let open = ["/proc/self/fd", "/dev/fd"];
            open.iter()
                .any(|name| Path::new(name).canonicalize().is_ok_and(|path| path == folder))
                .then_some(stream)
        }

        pub fn name(self) -> &'static str {
            match self {
                Stream::Output => "standard output",
                Stream::Error => "standard error",
            }
        }

        pub fn metadata(self) -> Option<Metadata> {
            self.duplicate().and_then(|file| file.metadata()).ok()
        }

        /// Returns a handle that shares the position in the file, so that later prints follow. A new handle,
        /// opened by name, would begin at the start again.
        pub fn open(self) -> std::io::Result<File> {
            std::io::stdout().flush()?;
            self.duplicate()
        }

        fn duplicate(self) -> std::io::Result<File> {
            let handle = match self {
                Stream::Output => std::io::stdout().as_fd().try_clone_to_owned(),
                Stream::Error => std::io::stderr().as_fd().try_clone_to_owned(),
            };
            handle.map(File::from)
        }
    }
}
