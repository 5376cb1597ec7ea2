//! Collections of `.vti` files: a `.pvd`, by which ParaView knows the time of each.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use abide_core::{Error, Result};

use super::vti::escaped;
use super::{Numbered, Staged, bounded};

const HEAD: &str = "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\">\n  <Collection>\n";
const TAIL: &str = "  </Collection>\n</VTKFile>\n";

/// The most bytes of a collection that a resumed run adds to.
const MOST_BYTES: usize = 64 << 20;

/// A `.pvd` beside numbered `.vti` files, which grows with them. It is written in place, and is whole after each file.
pub struct Collection {
    names: Numbered,
    path: PathBuf,
    file: File,
    /// Where its end stands, which the next line takes the place of.
    end: u64,
}

impl Collection {
    /// Returns the collection of numbered files: `out.pvd` of `out_%05d.vti`.
    pub fn path(names: &Numbered) -> PathBuf {
        let (folder, before, _) = names.part();
        let name = before.trim_end_matches(['_', '-', '.', ' ']);
        Path::new(folder).join(format!("{}.pvd", if name.is_empty() { "frames" } else { name }))
    }

    /// Begins a collection, and replaces an old one; of an earlier run's it keeps the files of smaller numbers than `first`.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it cannot be written.
    pub fn begin(names: &Numbered, first: u64) -> Result<Collection> {
        let path = Collection::path(names);
        let mut text = HEAD.to_owned();
        if first > 0 && path.is_file() {
            let old = bounded::text(&path, MOST_BYTES, "move it away, or write other frames")?;
            let lines = old.strip_prefix(HEAD).unwrap_or_default().lines();
            let kept = lines.filter(|line| number_in(line, names).is_some_and(|number| number < first));
            kept.for_each(|line| text.extend([line, "\n"]));
        }
        let end = text.len() as u64;
        text.push_str(TAIL);
        Staged::new(&path)?.fill(|out| out.write_all(text.as_bytes()))?.commit()?;
        let file = File::options().write(true).open(&path).map_err(|error| fault(&path, error))?;
        Ok(Collection { names: names.clone(), path, file, end })
    }

    /// Adds the file of a number, at a time.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it cannot be written.
    pub fn add(&mut self, number: u64, time: f64) -> Result<()> {
        let (before, after) = around(&self.names);
        let digits = self.names.digits(number);
        let line =
            format!("    <DataSet timestep=\"{time}\" part=\"0\" file=\"{before}{digits}{after}\"/>\n");
        let put = self.file.seek(SeekFrom::Start(self.end));
        put.and_then(|_| self.file.write_all(format!("{line}{TAIL}").as_bytes()))
            .map_err(|error| fault(&self.path, error))?;
        self.end += line.len() as u64;
        Ok(())
    }
}

/// Returns what stands before and after the number in a file's name, as it is written in the collection.
fn around(names: &Numbered) -> (String, String) {
    let (_, before, _) = names.part();
    (escaped(before), escaped(names.after()))
}

/// Returns the number of the file that a line of a collection names.
fn number_in(line: &str, names: &Numbered) -> Option<u64> {
    let (before, after) = around(names);
    let file = line.split_once(" file=\"")?.1.strip_suffix("\"/>")?;
    file.strip_prefix(&*before)?.strip_suffix(&*after)?.parse().ok()
}

fn fault(path: &Path, error: std::io::Error) -> Error {
    Error::file(path, error, "make room, or write elsewhere")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_is_whole_after_each_file_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let names: Numbered = format!("{}/a&b_%03d.vti", folder.path().display()).parse().unwrap();
        let path = Collection::path(&names);
        assert_eq!(path, folder.path().join("a&b.pvd"));
        let mut collection = Collection::begin(&names, 0).unwrap();
        let read = || std::fs::read_to_string(&path).unwrap();
        assert_eq!(read(), format!("{HEAD}{TAIL}"));
        let mut all = HEAD.to_owned();
        for number in 0..4 {
            collection.add(number, number as f64 * 0.1).unwrap();
            let time = number as f64 * 0.1;
            all +=
                &format!("    <DataSet timestep=\"{time}\" part=\"0\" file=\"a&amp;b_{number:03}.vti\"/>\n");
            assert_eq!(read(), format!("{all}{TAIL}"));
        }
        // A run that goes on writes what one run writes.
        let whole = read();
        let mut resumed = Collection::begin(&names, 2).unwrap();
        resumed.add(2, 0.2).unwrap();
        resumed.add(3, 3.0 * 0.1).unwrap();
        assert_eq!(read(), whole);
        std::fs::write(&path, "something else").unwrap();
        Collection::begin(&names, 2).unwrap();
        assert_eq!(read(), format!("{HEAD}{TAIL}"));
    }

    #[test]
    fn names_of_collections() {
        let of = |text: &str| Collection::path(&text.parse().unwrap()).display().to_string();
        assert_eq!(of("out_%05d.vti"), "out.pvd");
        assert_eq!(of("a/%d.vti"), "a/frames.pvd");
        assert_eq!(of("run%d/u.vti"), "run.pvd");
    }
}
