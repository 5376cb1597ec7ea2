//! Tables of states: `--states FILE.csv`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Chain, Cursor, Read as _};
use std::path::Path;

use abide::gas::{Basis, Given, States as How};
use abide::io::bounded::Records;
use abide::{Error, Result, memory};
use csv::{ByteRecord, Reader, ReaderBuilder, Trim};
use rayon::prelude::*;

use super::evaluate::Batch;

const CHANGE: &str = "give a file of comma-separated values with columns T and p (or T and rho, h and p, rho and e), and x_NAME or Y_NAME for each species";

/// Bytes that are buffered from the file before a record is parsed.
const BUFFERED: usize = 1 << 20;

/// The most bytes of a batch's records, where the machine's memory does not allow less.
const BATCH_BYTES: u64 = 256 << 20;

/// A file after its byte-order mark, in records of bounded length.
type Source = Records<Chain<Cursor<Vec<u8>>, BufReader<File>>>;

/// A table of states that is read batch after batch.
pub struct States {
    path: std::path::PathBuf,
    reader: Reader<Source>,
    /// How states are given.
    given: How,
    /// The columns of the two quantities and of each species.
    columns: Vec<usize>,
    names: Vec<String>,
    species: Vec<String>,
    records: Vec<ByteRecord>,
    /// The most rows of a batch, once one had more bytes than a batch may have.
    most: usize,
    /// The most bytes of a batch's records.
    most_bytes: u64,
    /// The line of each record of the batch.
    lines: Vec<u64>,
    rows: u64,
}

impl States {
    /// Opens a table and reads its columns.
    pub fn open(path: &Path) -> Result<States> {
        let fault = |message: String| Error::file(path, message, CHANGE);
        let file = File::open(path).map_err(|e| Error::file(path, e, CHANGE))?;
        let mut file = BufReader::with_capacity(BUFFERED, file);
        // A byte-order mark is no part of the first name.
        let mut mark = Vec::new();
        file.by_ref().take(3).read_to_end(&mut mark).map_err(|e| Error::file(path, e, CHANGE))?;
        if mark == [0xef, 0xbb, 0xbf] {
            mark.clear();
        }
        let source = Records::new(Cursor::new(mark).chain(file), BUFFERED);
        let mut reader = ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(Trim::All)
            .buffer_capacity(BUFFERED)
            .from_reader(source);
        let headers = reader.headers().map_err(|e| fault(e.to_string()))?.clone();
        let mut places: HashMap<&str, (usize, bool)> = HashMap::new();
        for (at, header) in headers.iter().enumerate() {
            places.entry(header).and_modify(|(_, is_again)| *is_again = true).or_insert((at, false));
        }
        let column = |name: &str| match places.get(name) {
            Some(&(at, false)) => Ok(at),
            Some(_) => Err(fault(format!("it has two columns {name}"))),
            None => Err(fault(format!("it has no column {name}"))),
        };
        let given = Given::among(&headers)
            .map_err(|_| fault("it has no columns T and p, nor another pair".to_owned()))?;
        let species_of = |basis: Basis| -> Vec<String> {
            let prefix = format!("{}_", basis.symbol());
            headers.iter().filter_map(|name| name.strip_prefix(&*prefix)).map(str::to_owned).collect()
        };
        let (basis, species) = match [Basis::Mole, Basis::Mass].map(|basis| (basis, species_of(basis))) {
            [mole, mass] if mass.1.is_empty() => mole,
            [mole, mass] if mole.1.is_empty() => mass,
            _ => return Err(fault("it has both columns x_NAME and columns Y_NAME".to_owned())),
        };
        if species.is_empty() {
            return Err(fault("it has no column x_NAME or Y_NAME of a species".to_owned()));
        }
        let quantities = given.quantities.map(str::to_owned).into_iter();
        let names: Vec<String> =
            quantities.chain(species.iter().map(|name| format!("{}_{name}", basis.symbol()))).collect();
        let columns = names.iter().map(|name| column(name)).collect::<Result<Vec<_>>>()?;
        let most_bytes = memory::available().map_or(BATCH_BYTES, |bytes| BATCH_BYTES.min(bytes / 8));
        Ok(States {
            path: path.to_owned(),
            reader,
            given: How { given, basis, ..How::LOOPS },
            columns,
            names,
            species,
            records: Vec::new(),
            most: usize::MAX,
            most_bytes,
            lines: Vec::new(),
            rows: 0,
        })
    }

    /// Returns how the states are given.
    pub fn given(&self) -> How {
        self.given
    }

    /// Returns the names of the species, in the order of their columns.
    pub fn species(&self) -> &[String] {
        &self.species
    }

    /// Reads the next rows into a batch, at most so many; none at the end. No batch has more rows than the first.
    pub fn read(&mut self, batch: &mut Batch, most: usize) -> Result<()> {
        self.rows += self.lines.len() as u64;
        self.lines.clear();
        if self.most < usize::MAX {
            // Each record keeps the memory of the longest that it has held.
            self.records.clear();
        }
        let (mut count, mut bytes) = (0, 0);
        while count < most.min(self.most) {
            if count == self.records.len() {
                self.records.push(ByteRecord::new());
            }
            let record = &mut self.records[count];
            self.reader.get_mut().begin();
            match self.reader.read_byte_record(record) {
                Ok(true) => {
                    self.lines.push(record.position().map_or(0, csv::Position::line));
                    count += 1;
                    bytes += (record.as_slice().len() + size_of::<usize>() * record.len()) as u64;
                    if bytes > self.most_bytes {
                        self.most = count;
                    }
                }
                Ok(false) => break,
                // The error names the line.
                Err(error) => return Err(Error::file(&self.path, error.to_string(), CHANGE)),
            }
        }
        // Columns are filled side by side, each from the same records.
        let (records, columns) = (&self.records[..count], &self.columns);
        let targets = batch.given.iter_mut().chain(&mut batch.fractions);
        let mut targets: Vec<&mut Vec<f64>> = targets.collect();
        let fill = |(values, &column): (&mut &mut Vec<f64>, &usize)| -> Option<usize> {
            values.clear();
            for (number, record) in records.iter().enumerate() {
                match record.get(column).and_then(number_of) {
                    Some(value) => values.push(value),
                    None => return Some(number),
                }
            }
            None
        };
        let faults: Vec<Option<usize>> = targets.par_iter_mut().zip(columns.par_iter()).map(fill).collect();
        let first = faults.iter().enumerate().filter_map(|(column, row)| Some(((*row)?, column))).min();
        let Some((number, column)) = first else { return Ok(()) };
        let text = records[number].get(columns[column]).unwrap_or_default();
        let message = format!(
            "{} of {}: `{}` is no number",
            self.names[column],
            self.row(number),
            String::from_utf8_lossy(text)
        );
        Err(Error::file(&self.path, message, "correct the row"))
    }

    /// Returns the words that name a row of the last batch.
    pub fn row(&self, number: usize) -> String {
        let line = self.lines.get(number).copied().unwrap_or_default();
        format!("row {} (line {line} of {})", self.rows + number as u64 + 1, self.path.display())
    }
}

/// Returns the number that a field of a table is.
fn number_of(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
