//! Reading matrices and vectors.

use std::fs::File;
use std::io::{Chain, Cursor, Read};
use std::path::Path;
use std::str::FromStr;

use abide_core::sparse::rows::{filled, no_memory};
use abide_core::sparse::{Csr, Triplets};
use abide_core::{Array, DType, Error, Real, Result};
use flate2::read::MultiGzDecoder;

use super::header::{Format, Header, Kind, Symmetry, whole};
use super::lines::{Fault, Lines, Words, shown};
use super::vanished::{Vanished, is_not_zero};

/// Reads a sparse matrix from a file, decompressed where need be, and rounds its values to `dtype`.
pub fn read_matrix(path: impl AsRef<Path>, dtype: DType) -> Result<Csr> {
    read_matrix_if(path, dtype, |_| Ok(()))
}

/// Reads a matrix as [`read_matrix`] does, but first shows `admit` the size that the file announces, before
/// memory is taken for it.
pub fn read_matrix_if(
    path: impl AsRef<Path>,
    dtype: DType,
    admit: impl FnOnce(&Announced) -> Result<()>,
) -> Result<Csr> {
    let path = path.as_ref();
    let (source, length) = open(path)?;
    let input = Input { lines: &mut Lines::new(source), length, name: path };
    match dtype {
        DType::F32 => matrix::<f32>(input, admit),
        DType::F64 => matrix::<f64>(input, admit),
    }
}

/// Reads a vector from a file: an `array`, or a `coordinate` matrix of one column, decompressed where need
/// be. Its values are rounded to `dtype`.
pub fn read_vector(path: impl AsRef<Path>, dtype: DType) -> Result<Array> {
    read_vector_if(path, dtype, |_| Ok(()))
}

/// Reads a vector as [`read_vector`] does, but first shows `admit` the size that the file announces, before
/// memory is taken for it.
pub fn read_vector_if(
    path: impl AsRef<Path>,
    dtype: DType,
    admit: impl FnOnce(&Announced) -> Result<()>,
) -> Result<Array> {
    let path = path.as_ref();
    let (source, length) = open(path)?;
    let input = Input { lines: &mut Lines::new(source), length, name: path };
    match dtype {
        DType::F32 => vector::<f32>(input, admit),
        DType::F64 => vector::<f64>(input, admit),
    }
}

/// Reads a matrix as [`read_matrix`] does, from anything that can be read; `name` stands in the errors.
pub fn read_matrix_from(reader: impl Read, name: impl AsRef<Path>, dtype: DType) -> Result<Csr> {
    let input = Input { lines: &mut Lines::new(reader), length: None, name: name.as_ref() };
    match dtype {
        DType::F32 => matrix::<f32>(input, |_| Ok(())),
        DType::F64 => matrix::<f64>(input, |_| Ok(())),
    }
}

/// Reads a vector as [`read_vector`] does, from anything that can be read; `name` stands in the errors.
pub fn read_vector_from(reader: impl Read, name: impl AsRef<Path>, dtype: DType) -> Result<Array> {
    let input = Input { lines: &mut Lines::new(reader), length: None, name: name.as_ref() };
    match dtype {
        DType::F32 => vector::<f32>(input, |_| Ok(())),
        DType::F64 => vector::<f64>(input, |_| Ok(())),
    }
}

/// The size that a file announces before its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// Rows of the matrix, or values of the vector.
    pub rows: usize,
    /// Columns of the matrix; 1 for a vector.
    pub columns: usize,
    /// Entries that the file lists, but no more than a file of its length can.
    pub listed: u64,
    /// The most entries that there can be in all: a symmetric matrix also has the images of the listed ones.
    pub entries: u64,
    /// The number of the line that announces the size.
    pub line: u64,
}

impl Announced {
    fn new(header: &Header, length: Option<u64>) -> Announced {
        // The shortest line of a matrix is `1 1` and its end, that of an array `1` and its end.
        let shortest = if header.format == Format::Array { 2 } else { 4 };
        let listed =
            header.entries.min(length.map_or(u64::MAX, |length| length.saturating_add(1) / shortest));
        let images = if header.symmetry == Symmetry::General { 1 } else { 2 };
        let entries = listed.saturating_mul(images);
        Announced { rows: header.rows, columns: header.columns, listed, entries, line: header.line }
    }

    /// Returns the most bytes that [`read_matrix`] takes at once; the matrix that it returns takes some half
    /// of that.
    pub fn matrix_bytes(&self, dtype: DType) -> u128 {
        let (rows, entries, value) = (self.rows as u128 + 1, u128::from(self.entries), dtype.bytes() as u128);
        // Entries are held as listed, sorted by row, and in compressed rows: two of these at a time. The
        // compressed rows are made beside offsets of both widths.
        let (listed, sorted, stored) = (8 + value, value.max(4) + value, 4 + value);
        8 * rows + entries * sorted + (entries * listed).max(entries * stored + 12 * rows)
    }

    /// Returns the bytes that [`read_vector`] takes.
    pub fn vector_bytes(&self, dtype: DType) -> u128 {
        let rows = self.rows as u128;
        rows * dtype.bytes() as u128 + rows / 8
    }
}

/// An input: its lines, its name, and its length if that bounds the number of entries.
struct Input<'a, R> {
    lines: &'a mut Lines<R>,
    length: Option<u64>,
    name: &'a Path,
}

/// A file's bytes as they are, or decompressed.
enum Source {
    Plain(Chain<Cursor<Vec<u8>>, File>),
    Gzip(Box<MultiGzDecoder<Chain<Cursor<Vec<u8>>, File>>>),
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Source::Plain(file) => file.read(buffer),
            Source::Gzip(file) => file.read(buffer),
        }
    }
}

/// Opens a file; also returns its length if it is not compressed.
fn open(path: &Path) -> Result<(Source, Option<u64>)> {
    let fault = |e: std::io::Error| Error::file(path, e, "give a Matrix Market file that can be read");
    let name = path.to_string_lossy().to_ascii_lowercase();
    if name.ends_with(".tar.gz") || name.ends_with(".tgz") {
        return Err(Error::file(
            path,
            "it is an archive of files",
            "unpack it and give the .mtx file inside",
        ));
    }
    let mut file = File::open(path).map_err(fault)?;
    // A file that is not regular, such as a pipe, does not report its length.
    let metadata = file.metadata().map_err(fault)?;
    let length = metadata.is_file().then_some(metadata.len());
    let mut start = Vec::new();
    file.by_ref().take(2).read_to_end(&mut start).map_err(fault)?;
    let compressed = name.ends_with(".gz") || start == [0x1f, 0x8b];
    let whole = Cursor::new(start).chain(file);
    Ok(if compressed {
        (Source::Gzip(Box::new(MultiGzDecoder::new(whole))), None)
    } else {
        (Source::Plain(whole), length)
    })
}

fn matrix<T: Real + FromStr>(
    Input { lines, length, name }: Input<'_, impl Read>,
    admit: impl FnOnce(&Announced) -> Result<()>,
) -> Result<Csr> {
    let header = Header::read(lines).map_err(|fault| fault.of(name))?;
    if header.format == Format::Array {
        let change = "write the matrix as coordinate; a vector is read as a vector";
        return Err(Fault::new(1, "an array is a dense matrix, and a sparse one is due", change).of(name));
    }
    let announced = Announced::new(&header, length);
    admit(&announced)?;
    let mut triplets = Triplets::new(header.rows, header.columns)?;
    if length.is_some() {
        triplets.reserve(announced.entries)?;
    }
    let vanished = each_entry::<T>(lines, &header, name, |row, column, value| {
        triplets.push(row, column, value)?;
        match header.symmetry {
            Symmetry::Symmetric if row != column => triplets.push(column, row, value),
            Symmetry::Skew if row != column => triplets.push(column, row, -value),
            _ => Ok(()),
        }
    })?;
    let matrix = triplets.into_csr()?;
    vanished.check_matrix(&matrix, name)?;
    Ok(matrix)
}

fn vector<T: Real + FromStr>(
    Input { lines, length, name }: Input<'_, impl Read>,
    admit: impl FnOnce(&Announced) -> Result<()>,
) -> Result<Array> {
    let header = Header::read(lines).map_err(|fault| fault.of(name))?;
    if header.columns != 1 || header.symmetry != Symmetry::General {
        let message = match header.symmetry {
            Symmetry::General => format!("{} columns, where a vector has one", header.columns),
            _ => "a vector is `general`".to_owned(),
        };
        return Err(Fault::new(header.line, message, "give a matrix of one column").of(name));
    }
    let announced = Announced::new(&header, length);
    admit(&announced)?;
    if header.format == Format::Array {
        return array::<T>(lines, &header, name);
    }
    let mut values = filled(T::ZERO, header.rows)?;
    // The first entry of a row is taken as it is, because 0 and -0 added would be 0.
    let mut seen: Vec<u64> = filled(0, header.rows.div_ceil(64))?;
    let vanished = each_entry::<T>(lines, &header, name, |row, _, value| {
        let bit = 1 << (row % 64);
        values[row] = if seen[row / 64] & bit == 0 { value } else { values[row] + value };
        seen[row / 64] |= bit;
        Ok(())
    })?;
    let vector = T::into_array(values);
    vanished.check_vector(&vector, name)?;
    Ok(vector)
}

/// Reads the entries of a coordinate matrix in the order in which they are listed, and returns where values have
/// vanished.
fn each_entry<T: Real + FromStr>(
    lines: &mut Lines<impl Read>,
    header: &Header,
    name: &Path,
    mut take: impl FnMut(usize, usize, T) -> Result<()>,
) -> Result<Vanished> {
    let mut vanished = Vanished::default();
    for count in 0..header.entries {
        let entry = next_of(lines, header, count).and_then(|()| entry::<T>(lines, header));
        let (row, column, value) = entry.map_err(|fault| fault.of(name))?;
        if value == T::ZERO && Words(lines.line()).nth(2).is_some_and(is_not_zero) {
            vanished.mark(row, header.rows)?;
            if header.symmetry != Symmetry::General {
                vanished.mark(column, header.rows)?;
            }
        }
        take(row, column, value)?;
    }
    end(lines, header).map_err(|fault| fault.of(name))?;
    Ok(vanished)
}

/// Reads the values of an array.
fn array<T: Real + FromStr>(lines: &mut Lines<impl Read>, header: &Header, name: &Path) -> Result<Array> {
    let mut values: Vec<T> = Vec::new();
    let mut vanished = Vanished::default();
    for count in 0..header.entries {
        let value = next_of(lines, header, count).and_then(|()| only_value::<T>(lines, header));
        let (value, is_lost) = value.map_err(|fault| fault.of(name))?;
        if is_lost {
            vanished.mark(values.len(), header.rows)?;
        }
        if values.len() == values.capacity() {
            values.try_reserve(1).map_err(|_| no_memory::<T>(values.len() + 1))?;
        }
        values.push(value);
    }
    end(lines, header).map_err(|fault| fault.of(name))?;
    let vector = T::into_array(values);
    vanished.check_vector(&vector, name)?;
    Ok(vector)
}

/// Reads the value in the current line; also returns whether it vanished.
fn only_value<T: Real + FromStr>(lines: &Lines<impl Read>, header: &Header) -> Result<(T, bool), Fault> {
    let mut words = Words(lines.line());
    match (words.next(), words.next()) {
        (Some(word), None) => {
            let value = value::<T>(lines, header.kind, word)?;
            Ok((value, value == T::ZERO && is_not_zero(word)))
        }
        _ => {
            let message = format!("`{}` stands where one value is due", shown(lines.line()));
            lines.fault(message, "write one value a line")
        }
    }
}

/// Goes to the line of the next entry, of which `count` were read.
fn next_of(lines: &mut Lines<impl Read>, header: &Header, count: u64) -> Result<(), Fault> {
    if lines.advance_to_data()? {
        return Ok(());
    }
    let message = format!(
        "the file ends after {count} of the {} entries that line {} announces",
        header.entries, header.line
    );
    Err(Fault::new(lines.number() + 1, message, "complete the file or correct the size line"))
}

/// Checks that no entry is left.
fn end(lines: &mut Lines<impl Read>, header: &Header) -> Result<(), Fault> {
    if lines.advance_to_data()? {
        let message = format!("an entry beyond the {} that line {} announces", header.entries, header.line);
        return lines.fault(message, "correct the size line");
    }
    Ok(())
}

/// Reads the entry in the current line: row and column from 0, and the value.
fn entry<T: Real + FromStr>(lines: &Lines<impl Read>, header: &Header) -> Result<(usize, usize, T), Fault> {
    let mut words = Words(lines.line());
    let (row, column) = (words.next(), words.next());
    let text = if header.kind == Kind::Pattern { Some(&b"1"[..]) } else { words.next() };
    let (Some(row), Some(column), Some(text), None) = (row, column, text, words.next()) else {
        let due = if header.kind == Kind::Pattern { "row and column" } else { "row, column and value" };
        return lines.fault(
            format!("`{}` stands where {due} are due", shown(lines.line())),
            format!("write {due}, and nothing else, for each entry"),
        );
    };
    let row = index(lines, "row", row, header.rows)?;
    let column = index(lines, "column", column, header.columns)?;
    let place = || format!("the entry at row {}, column {}", row + 1, column + 1);
    match header.symmetry {
        Symmetry::General => {}
        Symmetry::Symmetric | Symmetry::Skew if column > row => {
            let message = format!("{} lies above the diagonal of a symmetric matrix", place());
            return lines.fault(message, "list the lower triangle only, or write `general` into the banner");
        }
        Symmetry::Skew if column == row => {
            let message = format!("{} lies on the diagonal of a skew-symmetric matrix, which is 0", place());
            return lines.fault(message, "leave the diagonal out");
        }
        Symmetry::Symmetric | Symmetry::Skew => {}
    }
    let value = if header.kind == Kind::Pattern { T::ONE } else { value(lines, header.kind, text)? };
    Ok((row, column, value))
}

/// Reads an index, counted from 1 in the file and from 0 in the result.
#[inline]
fn index(lines: &Lines<impl Read>, name: &str, word: &[u8], extent: usize) -> Result<usize, Fault> {
    match whole(word) {
        Some(number) if number >= 1 && number <= extent as u64 => Ok((number - 1) as usize),
        Some(0) => lines.fault(format!("{name} 0, the first is 1"), format!("count {name}s from 1")),
        Some(number) => lines.fault(
            format!("{name} {number}, the matrix has {extent} {name}s"),
            "correct the index or the size line",
        ),
        None => lines
            .fault(format!("the {name} `{}` is not a whole number", shown(word)), "write a number from 1 on"),
    }
}

/// Reads a value, rounded once to the type.
#[inline]
fn value<T: Real + FromStr>(lines: &Lines<impl Read>, kind: Kind, word: &[u8]) -> Result<T, Fault> {
    if kind == Kind::Integer
        && whole(word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word)).is_none()
    {
        let message = format!("the value `{}` is not a whole number within 64 bits", shown(word));
        return lines.fault(message, "write a whole number, or `real` into the banner");
    }
    let parsed =
        std::str::from_utf8(word).ok().and_then(|text| text.parse::<T>().ok()).or_else(|| fortran(word));
    match parsed {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) if word.iter().any(u8::is_ascii_digit) => lines.fault(
            format!("the value `{}` is beyond the range of {}", shown(word), T::DTYPE),
            "scale the matrix or read it in a wider type",
        ),
        Some(_) => {
            lines.fault(format!("the value `{}` is not finite", shown(word)), "write finite values only")
        }
        None => lines.fault(format!("the value `{}` is not a number", shown(word)), "write a decimal number"),
    }
}

/// Reads a number with Fortran's exponent of double precision, as in `1.5D+03`.
fn fortran<T: FromStr>(word: &[u8]) -> Option<T> {
    let text = std::str::from_utf8(word).ok()?;
    text.contains(['d', 'D']).then(|| text.replace(['d', 'D'], "e").parse().ok())?
}
