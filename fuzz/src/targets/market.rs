//! Matrices and vectors in the Matrix Market format: each one that can be read is written, and reads back to
//! the same bits.

use std::io::{self, Read, Write};

use abide::sparse::Csr;
use abide::sparse::market::{read_matrix, read_matrix_from, read_vector_from, write_matrix, write_vector};
use abide::{Array, DType};
use flate2::read::MultiGzDecoder;

use super::{by_length, ensure, file, refused};

pub const WORDS: &[&str] = &[
    "%%MatrixMarket",
    "matrix",
    "vector",
    "coordinate",
    "array",
    "real",
    "double",
    "integer",
    "pattern",
    "complex",
    "general",
    "symmetric",
    "skew-symmetric",
    "hermitian",
    "\n",
    "\r\n",
    " ",
    "\t",
    "%",
    "0",
    "1",
    "-1",
    "1e308",
    "1e999",
    "-0.0",
    "1D+3",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "nan",
    "inf",
    "5e-324",
    "1 1 ",
];

/// Reads a matrix, in both types.
pub fn matrix(input: &[u8]) -> Result<(), String> {
    in_both(|dtype| back(read_matrix_from(input, "a.mtx", dtype)))
}

/// Reads a packed matrix, from a file.
pub fn packed(input: &[u8]) -> Result<(), String> {
    let file = file(input, ".mtx.gz")?;
    in_both(|dtype| back(read_matrix(file.path(), dtype)))
}

/// Returns the memory granted: announced rows and columns take memory, however few entries are listed.
pub fn memory(input: &[u8]) -> usize {
    by_length(input).saturating_add(announced(input))
}

/// Returns the memory granted to a packed matrix.
pub fn packed_memory(input: &[u8]) -> usize {
    let mut text = vec![0; 1 << 16];
    let mut length = 0;
    let mut unpacked = MultiGzDecoder::new(input);
    while let Ok(count @ 1..) = unpacked.read(&mut text[length..]) {
        length += count;
    }
    // A byte of gzip unpacks to at most 1032.
    (1032 * by_length(input)).saturating_add(announced(&text[..length])).saturating_add(announced(input))
}

/// Returns the bytes of the rows and columns in the first line of numbers.
fn announced(text: &[u8]) -> usize {
    let mut lines = text.split(|&byte| byte == b'\n').skip(1);
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let first = |line: &[u8]| line.iter().copied().find(|byte| !is_space(byte));
    let size = lines.find(|line| first(line).is_some_and(|byte| byte != b'%')).unwrap_or_default();
    let numbers = size.split(is_space).filter(|word| !word.is_empty());
    let number =
        |word: &[u8]| std::str::from_utf8(word).ok().and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
    numbers.take(2).map(number).fold(0, usize::saturating_add).saturating_mul(64)
}

/// Reads a vector, in both types.
pub fn vector(input: &[u8]) -> Result<(), String> {
    in_both(|dtype| {
        let vector: Array = match read_vector_from(input, "b.mtx", dtype) {
            Ok(vector) => vector,
            Err(error) => return refused(&error).map(|()| false),
        };
        let Some(text) = written(|text| write_vector(&vector, text))? else { return Ok(true) };
        let again = match read_vector_from(&text[..], "c.mtx", dtype) {
            Err(abide::Error::Limit { .. }) => return Ok(true),
            again => again.map_err(|e| format!("what was written: {e}"))?,
        };
        ensure(again.same_bits(&vector), || "a vector that was written comes back otherwise".to_owned())?;
        Ok(true)
    })
}

/// Text that asks for its memory before it takes it.
struct Text(Vec<u8>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_reserve(bytes.len()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the text written; `None` where the text and the input's values combined take more than an execution is
/// granted.
fn written(write: impl FnOnce(&mut Text) -> io::Result<()>) -> Result<Option<Vec<u8>>, String> {
    let mut text = Text(Vec::new());
    match write(&mut text) {
        Ok(()) => Ok(Some(text.0)),
        Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Ok(None),
        Err(error) => Err(format!("what was read is not written: {error}")),
    }
}

/// Reads in f64, and where that succeeded, in f32.
fn in_both(read: impl Fn(DType) -> Result<bool, String>) -> Result<(), String> {
    if read(DType::F64)? {
        read(DType::F32)?;
    }
    Ok(())
}

/// Returns whether there is a matrix, and checks that it comes back from its file.
fn back(matrix: abide::Result<Csr>) -> Result<bool, String> {
    let matrix = match matrix {
        Ok(matrix) => matrix,
        Err(error) => return refused(&error).map(|()| false),
    };
    // Entries listed twice may add up to values that no file can hold.
    if matrix.values().non_finite() > 0 {
        return Ok(true);
    }
    let Some(text) = written(|text| write_matrix(&matrix, text))? else { return Ok(true) };
    let again = match read_matrix_from(&text[..], "c.mtx", matrix.dtype()) {
        Err(abide::Error::Limit { .. }) => return Ok(true),
        again => again.map_err(|e| format!("what was written: {e}"))?,
    };
    let same = again == matrix && again.values().same_bits(matrix.values());
    ensure(same, || "a matrix that was written comes back otherwise".to_owned())?;
    Ok(true)
}
