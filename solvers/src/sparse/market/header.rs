//! The banner and the size line of a file.

use std::io::Read;

use abide_core::sparse::MAX_EXTENT;

use super::lines::{Fault, Lines, Words, shown};

/// The order in which a file lists entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Row, column, value.
    Coordinate,
    /// Values alone, column by column.
    Array,
}

/// The kind of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Real,
    Integer,
    /// No value: every entry is 1.
    Pattern,
}

/// The symmetry, by which a file leaves entries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// The four qualifiers of the first line and the numbers of the size line.
#[derive(Debug)]
pub(super) struct Header {
    pub format: Format,
    pub kind: Kind,
    pub symmetry: Symmetry,
    pub rows: usize,
    pub columns: usize,
    /// Entries that the file lists.
    pub entries: u64,
    /// The line number of the size line.
    pub line: u64,
}

impl Header {
    /// Reads the banner and the size line.
    pub fn read<R: Read>(lines: &mut Lines<R>) -> Result<Header, Fault> {
        const BANNER: &str =
            "start the file with `%%MatrixMarket matrix coordinate real general` or the like";
        if !lines.advance()? {
            return Err(Fault::new(1, "the file is empty", BANNER));
        }
        let words: Vec<&[u8]> = Words(lines.line()).take(6).collect();
        let [banner, object, format, kind, symmetry] = words[..] else {
            return lines.fault(
                format!("`{}` is not a Matrix Market banner of five words", shown(lines.line())),
                BANNER,
            );
        };
        if !banner.eq_ignore_ascii_case(b"%%MatrixMarket") {
            return lines.fault(format!("`{}` stands where the banner is due", shown(banner)), BANNER);
        }
        if !object.eq_ignore_ascii_case(b"matrix") {
            return lines.fault(
                format!("the object `{}` is not known", shown(object)),
                "write `matrix`, a vector too: it is a matrix of one column",
            );
        }
        let lower = |word: &[u8]| String::from_utf8_lossy(word).to_ascii_lowercase();
        let format = match lower(format).as_str() {
            "coordinate" => Format::Coordinate,
            "array" => Format::Array,
            _ => {
                return lines.fault(
                    format!("the format `{}` is not known", shown(format)),
                    "use coordinate or array",
                );
            }
        };
        let kind = match lower(kind).as_str() {
            "real" | "double" => Kind::Real,
            "integer" => Kind::Integer,
            "pattern" if format == Format::Coordinate => Kind::Pattern,
            "pattern" => {
                return lines.fault("an array has values, a pattern none", "use coordinate or another field");
            }
            "complex" => {
                return lines.fault("complex values are not supported", "use real, integer or pattern");
            }
            _ => {
                let message = format!("the field `{}` is not known", shown(kind));
                return lines.fault(message, "use real, integer or pattern");
            }
        };
        let symmetry = match lower(symmetry).as_str() {
            "general" => Symmetry::General,
            "symmetric" => Symmetry::Symmetric,
            "skew-symmetric" if kind != Kind::Pattern => Symmetry::Skew,
            "skew-symmetric" => {
                return lines.fault("a pattern cannot be skew-symmetric", "use general or symmetric");
            }
            "hermitian" => {
                return lines.fault(
                    "Hermitian matrices are not supported: their values are complex",
                    "use general, symmetric or skew-symmetric",
                );
            }
            _ => {
                let message = format!("the symmetry `{}` is not known", shown(symmetry));
                return lines.fault(message, "use general, symmetric or skew-symmetric");
            }
        };
        Header::size(lines, format, kind, symmetry)
    }

    fn size<R: Read>(
        lines: &mut Lines<R>,
        format: Format,
        kind: Kind,
        symmetry: Symmetry,
    ) -> Result<Header, Fault> {
        let (due, change) = match format {
            Format::Coordinate => (3, "write the numbers of rows, columns and entries"),
            Format::Array => (2, "write the numbers of rows and columns"),
        };
        if !lines.advance_to_data()? {
            return Err(Fault::new(lines.number() + 1, "the file ends where the size line is due", change));
        }
        let words: Vec<&[u8]> = Words(lines.line()).take(due + 1).collect();
        if words.len() != due {
            return lines.fault(
                format!("`{}` stands where the size line of {due} numbers is due", shown(lines.line())),
                change,
            );
        }
        let mut numbers = [0u64; 3];
        for (number, word) in numbers.iter_mut().zip(&words) {
            match whole(word) {
                Some(value) => *number = value,
                None => {
                    return lines.fault(format!("the size `{}` is not a whole number", shown(word)), change);
                }
            }
        }
        let [rows, columns, entries] = numbers;
        for (name, extent) in [("rows", rows), ("columns", columns)] {
            if extent > MAX_EXTENT as u64 {
                let message = format!("{extent} {name}, the limit is {MAX_EXTENT}");
                return lines.fault(message, "use a smaller matrix");
            }
        }
        if symmetry != Symmetry::General && rows != columns {
            let message = format!("a matrix of {rows} rows and {columns} columns cannot be symmetric");
            return lines.fault(message, "write `general` into the banner or correct the size");
        }
        let entries = if format == Format::Array { rows * columns } else { entries };
        let (rows, columns) = (rows as usize, columns as usize);
        Ok(Header { format, kind, symmetry, rows, columns, entries, line: lines.number() })
    }
}

/// Reads a whole number without a sign.
#[inline]
pub(super) fn whole(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { number.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}
