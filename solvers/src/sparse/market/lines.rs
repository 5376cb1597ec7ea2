//! The lines of a file and the words of a line, without a string for each.

use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::Path;

use abide_core::{Error, Result};
use memchr::memchr;

/// A fault in a file, with the number of its line.
#[derive(Debug)]
pub(super) struct Fault {
    line: u64,
    message: String,
    change: String,
}

impl Fault {
    pub fn new(line: u64, message: impl Into<String>, change: impl Into<String>) -> Self {
        Fault { line, message: message.into(), change: change.into() }
    }

    /// Returns the error for a file of this name.
    pub fn of(self, path: &Path) -> Error {
        Error::file(path, format!("line {}: {}", self.line, self.message), self.change)
    }
}

/// The longest line, in bytes; the format's own limit is 1024.
const LONGEST: usize = 1 << 20;

/// The most bytes of comments and blank lines one after another; without a limit a stream of them has no end.
const MOST_SKIPPED: u64 = 16 << 20;

/// Bytes read at a time at first: small files shall not cost the memory of the longest line.
const FIRST: usize = 1 << 14;

/// The lines of a file, one at a time.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The part of the buffer that is read and not yet given out.
    left: Range<usize>,
    line: Range<usize>,
    number: u64,
    ended: bool,
}

impl<R: Read> Lines<R> {
    pub fn new(reader: R) -> Self {
        Lines { reader, buffer: vec![0; FIRST], left: 0..0, line: 0..0, number: 0, ended: false }
    }

    /// Returns the number of the current line, counted from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the current line, without its end.
    pub fn line(&self) -> &[u8] {
        &self.buffer[self.line.clone()]
    }

    /// Returns a fault in the current line, as an error.
    pub fn fault<T>(&self, message: impl Into<String>, change: impl Into<String>) -> Result<T, Fault> {
        Err(Fault::new(self.number, message, change))
    }

    /// Goes to the next line; returns false if there is none.
    pub fn advance(&mut self) -> Result<bool, Fault> {
        let mut searched = self.left.start;
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[searched..self.left.end]) {
                self.line = self.left.start..searched + length;
                self.left.start = searched + length + 1;
                self.number += 1;
                return Ok(true);
            }
            if self.ended {
                // The last line may lack its end.
                self.line = self.left.clone();
                self.left.start = self.left.end;
                self.number += u64::from(!self.line.is_empty());
                return Ok(!self.line.is_empty());
            }
            self.buffer.copy_within(self.left.clone(), 0);
            self.left = 0..self.left.len();
            searched = self.left.end;
            self.fill()?;
        }
    }

    /// Goes to the next line that is neither blank nor a comment; returns false if there is none.
    pub fn advance_to_data(&mut self) -> Result<bool, Fault> {
        let mut skipped = 0;
        while self.advance()? {
            let first = self.line().iter().find(|byte| !is_space(**byte));
            if first.is_some_and(|&byte| byte != b'%') {
                return Ok(true);
            }
            skipped += self.line.len() as u64 + 1;
            if skipped > MOST_SKIPPED {
                let message = format!("more than {MOST_SKIPPED} bytes of comments and blank lines end here");
                return self.fault(message, "check that this is a Matrix Market file");
            }
        }
        Ok(false)
    }

    fn fill(&mut self) -> Result<(), Fault> {
        let line = self.number + 1;
        if self.left.end == self.buffer.len() && self.buffer.len() < LONGEST {
            self.buffer.resize((4 * self.buffer.len()).min(LONGEST), 0);
        }
        if self.left.end == self.buffer.len() {
            let message = format!("it is longer than {LONGEST} bytes");
            return Err(Fault::new(line, message, "check that this is a Matrix Market file"));
        }
        loop {
            match self.reader.read(&mut self.buffer[self.left.end..]) {
                Ok(0) => self.ended = true,
                Ok(count) => self.left.end += count,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => {
                    let message = format!("reading stopped here: {e}");
                    return Err(Fault::new(line, message, "check that the file is whole and readable"));
                }
            }
            return Ok(());
        }
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0b'
}

/// The words of a line.
pub(super) struct Words<'a>(pub &'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|&byte| !is_space(byte))?;
        let rest = &self.0[start..];
        let length = rest.iter().position(|&byte| is_space(byte)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(length);
        self.0 = rest;
        Some(word)
    }
}

/// Returns a word as a message shows it: shortened, and bytes that are not text replaced.
pub(super) fn shown(word: &[u8]) -> String {
    const MOST: usize = 40;
    let text = String::from_utf8_lossy(&word[..word.len().min(MOST)]).escape_debug().to_string();
    if word.len() > MOST { format!("{text}…") } else { text }
}
