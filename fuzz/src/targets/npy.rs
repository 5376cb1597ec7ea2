//! NumPy's arrays: each one that can be read is written, and reads back to the same bits.

use std::path::Path;

use abide::io::{Loaded, npy};

use super::{ensure, refused};

pub const WORDS: &[&str] = &[
    "\x01\x00",
    "\x02\x00",
    "\x03\x00",
    "{",
    "}",
    "'descr'",
    "'fortran_order'",
    "'shape'",
    "'<f4'",
    "'>f4'",
    "'<f8'",
    "'>f8'",
    "'<i8'",
    "'<c16'",
    "'|b1'",
    "'<f2'",
    "True",
    "False",
    "(",
    ")",
    ",)",
    "(1,)",
    "(2, 3)",
    "[",
    "]",
    "0",
    "-1",
    "18446744073709551615",
    "4294967296",
    "\"",
    "b'",
    "\\n",
    ":",
    ", ",
    "[('a', '<f8')]",
];

/// Reads an array.
pub fn run(input: &[u8]) -> Result<(), String> {
    let read = |bytes: &[u8]| npy::decode(&mut &*bytes, bytes.len() as u64, Path::new("a.npy"));
    let Loaded { values, shape, .. } = match read(input) {
        Ok(loaded) => loaded,
        Err(error) => return refused(&error),
    };
    ensure(values.len() == shape.cells(), || format!("{} values on {shape}", values.len()))?;
    let mut bytes = Vec::new();
    npy::encode(&mut bytes, &shape, &values).map_err(|e| format!("what was read is not written: {e}"))?;
    let again = read(&bytes).map_err(|e| format!("what was written: {e}"))?;
    let same = again.shape == shape && again.values.as_bytes() == values.as_bytes();
    ensure(same, || "an array that was written comes back otherwise".to_owned())
}
