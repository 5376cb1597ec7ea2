//! Tables of numbers that grow while a run goes on.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use abide_core::program::Rows;
use abide_core::{Error, Result};

use super::Staged;
use super::place::Place;

/// A `.csv` file of a record. Unlike other outputs it is written in place, and rows are there as soon as they
/// are added, so that whatever ends the run leaves those before it: a line is whole, or the last of the file. Where rows
/// cannot be written, as on a full disk, the lines before them stay, all whole.
///
/// Numbers are written so that they read back as the same f64.
pub struct Table {
    file: File,
    target: PathBuf,
    text: String,
    /// The bytes of whole lines, of a file that can be cut to them.
    whole: Option<u64>,
}

impl Table {
    /// Begins a table with a line of these names; an old file is replaced once the line is written. A device or a pipe is
    /// written to.
    pub fn new(path: &Path, columns: &[String]) -> Result<Table> {
        let (names, place) = (heading(columns), Place::find(path)?);
        if let Place::File { path: end, .. } = &place {
            Staged::new(path)?.fill(|out| out.write_all(names.as_bytes()))?.commit()?;
            let file = File::options().append(true).open(end).map_err(|error| fault(path, error))?;
            return Ok(Table::in_file(file, path, Some(names.len() as u64)));
        }
        let file = place.open().map_err(|error| fault(path, error))?;
        let file = file.ok_or_else(|| Error::file(path, "it cannot be opened", "write elsewhere"))?;
        let mut table = Table::in_file(file, path, None);
        table.text = names;
        table.flush()?;
        Ok(table)
    }

    /// Goes on with the table of a run that ended after `begun` steps, or was ended later and goes on from there: the rows
    /// of earlier steps stay, those of later ones are taken out. Returns the table and the number of its rows; `None`
    /// where the file holds no table of these names with an earlier row, or is none that can be read.
    pub fn resume(path: &Path, columns: &[String], begun: u64) -> Result<Option<(Table, u64)>> {
        let Place::File { path: end, old: Some(_) } = Place::find(path)? else { return Ok(None) };
        let Ok(file) = File::options().read(true).write(true).open(&end) else { return Ok(None) };
        let mut reader = BufReader::new(&file);
        let (mut line, mut length, mut rows) = (Vec::new(), 0, 0);
        let head = heading(columns);
        loop {
            line.clear();
            // A longer line is none of a table's.
            let most = (head.len() + MOST_DIGITS * columns.len() + 2) as u64;
            let read = (&mut reader).take(most).read_until(b'\n', &mut line).map_err(|e| fault(path, e))?;
            if length == 0 {
                if line != head.as_bytes() {
                    return Ok(None);
                }
            } else {
                let text = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
                let step = text.and_then(|text| text.split(',').next()?.parse::<u64>().ok());
                if step.is_none_or(|step| step >= begun) {
                    break;
                }
                rows += 1;
            }
            length += read as u64;
        }
        if rows == 0 {
            return Ok(None);
        }
        drop(reader);
        let mut file = file;
        file.set_len(length).and_then(|()| file.seek(SeekFrom::End(0))).map_err(|e| fault(path, e))?;
        Ok(Some((Table::in_file(file, path, Some(length)), rows)))
    }

    fn in_file(file: File, path: &Path, whole: Option<u64>) -> Table {
        Table { file, target: path.to_owned(), text: String::new(), whole }
    }

    /// Adds rows, and hands them to the system.
    pub fn add(&mut self, rows: &Rows) -> Result<()> {
        /// Text is written in parts of some bytes, because a run without a pause has many rows.
        const PART: usize = 1 << 20;
        for (step, values) in rows.iter() {
            // Writing to a string cannot fail.
            let _ = write!(self.text, "{step}");
            values.iter().for_each(|&value| push(&mut self.text, value));
            self.text.push('\n');
            if self.text.len() >= PART {
                self.flush()?;
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let written = self.file.write_all(self.text.as_bytes()).and_then(|()| self.file.flush());
        if let Some(whole) = &mut self.whole {
            match &written {
                Ok(()) => *whole += self.text.len() as u64,
                // A file that cannot be cut stays as it is; the fault is reported.
                Err(_) => drop(self.file.set_len(*whole)),
            }
        }
        self.text.clear();
        written.map_err(|error| fault(&self.target, error))
    }
}

fn fault(path: &Path, error: std::io::Error) -> Error {
    Error::file(path, error, "make room, or write elsewhere")
}

/// The most bytes of a number and its comma.
const MOST_DIGITS: usize = 26;

/// Returns the line of the names.
fn heading(columns: &[String]) -> String {
    // A probe's name has commas between its indices.
    let quoted = |name: &String| if name.contains([',', '"']) { quote(name) } else { name.clone() };
    columns.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Adds a comma and the shortest decimal that reads back as the same number.
fn push(text: &mut String, value: f64) {
    let size = value.abs();
    // Writing to a string cannot fail.
    let _ = match size == 0.0 || (1e-5..1e17).contains(&size) || !size.is_finite() {
        true => write!(text, ",{value}"),
        false => write!(text, ",{value:e}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_as_they_were() {
        let mut random = fastrand::Rng::with_seed(9);
        let drawn = (0..20_000).map(|_| f64::from_bits(random.u64(..)));
        for value in drawn.chain([0.0, -0.0, 0.1, 1e-5, 1e17, 123456.0, f64::MAX, f64::MIN_POSITIVE, 5e-324])
        {
            let mut text = String::new();
            push(&mut text, value);
            let back: f64 = text[1..].parse().unwrap();
            assert!(
                back.to_bits() == value.to_bits() || (back.is_nan() && value.is_nan()),
                "{text} {value:e}"
            );
            assert!(text.len() <= 25, "{text}");
        }
        let mut text = String::new();
        [0.1, 2.0, -1.5e300, f64::INFINITY, f64::NAN].into_iter().for_each(|value| push(&mut text, value));
        assert_eq!(text, ",0.1,2,-1.5e300,inf,NaN");
    }

    #[test]
    fn a_table_is_there_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, "an older and longer file\n".repeat(9)).unwrap();
        let names = ["step", "time", "u@1,2"].map(str::to_owned);
        let mut table = Table::new(&path, &names).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "step,time,\"u@1,2\"\n");
        let mut rows = Rows::new(2);
        rows.push(0, [0.0, 1.5]).unwrap();
        rows.push(7, [0.25, 1e-9]).unwrap();
        table.add(&rows).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "step,time,\"u@1,2\"\n0,0,1.5\n7,0.25,1e-9\n");
        assert!(Table::new(folder.path(), &names).is_err());
    }

    #[test]
    fn a_table_goes_on_where_the_run_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let names = ["step", "u@1,2"].map(str::to_owned);
        let whole = "step,\"u@1,2\"\n0,1\n5,2\n10,3\n";
        let mut rows = Rows::new(1);
        rows.push(10, [3.0]).unwrap();
        for old in [
            whole,
            "step,\"u@1,2\"\n0,1\n5,2\n",
            "step,\"u@1,2\"\n0,1\n5,2\n10",
            "step,\"u@1,2\"\n0,1\n5,2\n10,9\n12,9\n",
        ] {
            std::fs::write(&path, old).unwrap();
            let (mut table, kept) = Table::resume(&path, &names, 10).unwrap().unwrap();
            assert_eq!(kept, 2);
            table.add(&rows).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), whole, "{old}");
        }
        for other in ["", "precious", "step,v\n0,1\n5,2\n", "step,\"u@1,2\"\n", "step,\"u@1,2\"\n10,3\n"] {
            std::fs::write(&path, other).unwrap();
            assert!(Table::resume(&path, &names, 10).unwrap().is_none(), "{other}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
        }
        assert!(Table::resume(&folder.path().join("none.csv"), &names, 10).unwrap().is_none());
    }
}
