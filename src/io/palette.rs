//! What has to be known of a PNG before it is decoded.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use crate::{Error, Result};

const PNG: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// An error where a PNG's palette is no whole number of colours: the decoder would panic. The reader is at its start again.
pub(super) fn check(reader: &mut (impl Read + Seek), path: &Path) -> Result<()> {
    let fault = |e: std::io::Error| Error::file(path, e, "give a whole .png or .jpg picture");
    let length = broken(reader).map_err(fault)?;
    reader.rewind().map_err(fault)?;
    match length {
        Some(length) => {
            let message = format!("its palette has {length} bytes, and a colour three");
            Err(Error::file(path, message, "give a whole .png or .jpg picture"))
        }
        None => Ok(()),
    }
}

/// The length of a palette that is no multiple of a colour's.
fn broken(reader: &mut (impl Read + Seek)) -> std::io::Result<Option<u32>> {
    let mut head = [0; 8];
    let mut more = |reader: &mut dyn Read| match reader.read_exact(&mut head) {
        Ok(()) => Ok(Some(head)),
        // A picture that is cut short is the decoder's to tell.
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    };
    if more(reader)? != Some(PNG) {
        return Ok(None);
    }
    while let Some([a, b, c, d, name @ ..]) = more(reader)? {
        let length = u32::from_be_bytes([a, b, c, d]);
        match &name {
            b"PLTE" if length % 3 != 0 => return Ok(Some(length)),
            b"IEND" => break,
            // The contents and their checksum.
            _ => reader.seek(SeekFrom::Current(i64::from(length) + 4))?,
        };
    }
    Ok(None)
}
