//! Text from others, read within limits: a file that does not end, or a line of it, takes no more memory than a
//! whole file may.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use abide_core::{Error, Result};

use crate::memory::amount;

/// The most bytes of a line of a text that is read whole, and of a record of one that is not.
pub const LONGEST: usize = 1 << 20;

/// The most bytes of a table that is read whole, as of species, of interactions or of results.
pub const LARGEST_TABLE: usize = 16 << 20;

/// Bytes that are read at a time.
const AT_ONCE: usize = 1 << 16;

/// Returns the text of a file in UTF-8 that has at most `most` bytes, and at most [`LONGEST`] in a line. `change`
/// says what to give instead.
///
/// # Errors
///
/// [`Error::File`] for a file that cannot be read, is a folder, is longer, has a longer line, or is no text.
pub fn text(path: &Path, most: usize, change: &str) -> Result<String> {
    let fault = |message: String| Error::file(path, message, change);
    let file = File::open(path).map_err(|error| fault(error.to_string()))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(fault("it is a folder".to_owned()));
    }
    read_text(file, most).map_err(fault)
}

/// Reads a text as [`text`] does; the error says in one line what is wrong.
fn read_text(mut source: impl Read, most: usize) -> Result<String, String> {
    let mut text = Vec::new();
    // What is known to be UTF-8, and where the last line begins.
    let (mut checked, mut line, mut lines) = (0, 0, 1);
    loop {
        text.try_reserve(AT_ONCE).map_err(|_| "there is no memory for its text".to_owned())?;
        let length = text.len();
        text.resize(length + AT_ONCE, 0);
        let count = match source.read(&mut text[length..]) {
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(error) => return Err(error.to_string()),
            Ok(0) => {
                text.truncate(length);
                break;
            }
            Ok(count) => count,
        };
        text.truncate(length + count);
        if text.len() > most {
            return Err(format!("it is longer than {most} bytes ({}), the limit", amount(most as f64)));
        }
        for at in length..text.len() {
            match text[at] {
                b'\n' => (line, lines) = (at + 1, lines + 1),
                0 => return Err(format!("line {lines} holds a zero byte: it is no text")),
                _ if at - line >= LONGEST => {
                    return Err(format!("line {lines} is longer than {LONGEST} bytes, the limit"));
                }
                _ => {}
            }
        }
        match std::str::from_utf8(&text[checked..]) {
            Ok(_) => checked = text.len(),
            // A letter may be cut where the bytes so far end.
            Err(error) if error.error_len().is_none() => checked += error.valid_up_to(),
            Err(_) => return Err(format!("line {lines} or one before it is not in UTF-8: it is no text")),
        }
    }
    String::from_utf8(text).map_err(|_| format!("line {lines} is not in UTF-8: it is no text"))
}

/// A source of records, each of which has at most [`LONGEST`] bytes, what is skipped before it included.
///
/// Whoever reads records calls [`Records::begin`] before each; a source that gives much more without a record is an
/// error. So endless lines, comments, blank lines and quotes that are never closed end.
pub struct Records<R> {
    source: R,
    /// Bytes that may still be read for the record.
    left: usize,
    /// Bytes that the reader's buffer may hold beyond the record.
    buffered: usize,
}

impl<R: Read> Records<R> {
    /// Makes a source for a reader that has a buffer of `buffered` bytes.
    pub fn new(source: R, buffered: usize) -> Records<R> {
        Records { source, left: buffered.saturating_add(LONGEST), buffered }
    }

    /// Begins a record.
    pub fn begin(&mut self) {
        self.left = self.buffered.saturating_add(LONGEST);
    }
}

impl<R: Read> Read for Records<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 {
            let message = format!(
                "a record, with what is skipped before it, is longer than {LONGEST} bytes, the limit"
            );
            return Err(std::io::Error::new(ErrorKind::InvalidData, message));
        }
        let most = bytes.len().min(self.left);
        let count = self.source.read(&mut bytes[..most])?;
        self.left -= count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_are() {
        let long = "ä,ö\n".repeat(AT_ONCE / 3);
        for text in ["", "a\nb", "ü\n", &long] {
            assert_eq!(read_text(text.as_bytes(), 1 << 20).as_deref(), Ok(text));
        }
    }

    #[test]
    fn endless_texts_name_the_limit() {
        let fault = |source: &mut dyn Read, most| read_text(source, most).unwrap_err();
        let words = fault(&mut std::io::repeat(b'\n'), 1000);
        assert_eq!(words, "it is longer than 1000 bytes (1.00 kB), the limit");
        let words = fault(&mut std::io::repeat(b'a'), LARGEST_TABLE);
        assert_eq!(words, "line 1 is longer than 1048576 bytes, the limit");
        assert_eq!(fault(&mut std::io::repeat(0), 1 << 20), "line 1 holds a zero byte: it is no text");
        for bytes in [&b"a\n\xff\n"[..], b"a\n\xc3"] {
            assert!(fault(&mut &*bytes, 1 << 20).contains("not in UTF-8"));
        }
        assert!(read_text(&b"abc"[..], 3).is_ok() && read_text(&b"abcd"[..], 3).is_err());
    }

    #[test]
    fn endless_records_are_errors() {
        let mut records = Records::new(std::io::repeat(b'\n'), 10);
        let mut bytes = vec![0; LONGEST];
        records.read_exact(&mut bytes).unwrap();
        records.begin();
        records.read_exact(&mut bytes).unwrap();
        let error = records.read_exact(&mut bytes).unwrap_err().to_string();
        assert!(error.contains("1048576 bytes, the limit"), "{error}");
    }
}
