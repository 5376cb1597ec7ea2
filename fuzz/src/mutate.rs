//! Mutations of files that a changed byte alone would break. The files are opened, changed inside and closed
//! again, so that checksums and lengths hold.

use std::io::{Cursor, Read, Write};

use flate2::Compression;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::Target;

/// The most bytes that are read inside a file.
const INSIDE: u64 = 1 << 16;

/// A part of a file: its name there, and its contents.
type Part = (String, Vec<u8>);

/// A kind of file with contents inside.
pub struct Wrapping {
    open: fn(&[u8]) -> Option<Vec<Part>>,
    close: fn(&[Part]) -> Option<Vec<u8>>,
}

/// Changes an input by `change`, seven times out of eight inside of its wrapping.
pub fn mutate(target: &Target, input: &mut Vec<u8>, seed: u64, change: &mut dyn FnMut(&mut Vec<u8>)) {
    let mut random = fastrand::Rng::with_seed(seed);
    let wrapping = random.choice(target.wrappings).filter(|_| random.u8(..8) > 0);
    let opened = wrapping.and_then(|wrapping| Some((wrapping, (wrapping.open)(input)?)));
    if let Some((wrapping, mut parts)) = opened
        && let Some((_, bytes)) = random.choice(&mut parts)
    {
        change(bytes);
        if let Some(closed) = (wrapping.close)(&parts) {
            *input = closed;
            return;
        }
    }
    change(input);
}

/// Reads at most [`INSIDE`] bytes of a stream; `None` where the stream is broken.
fn inside(stream: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(INSIDE).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A stream packed by gzip.
pub const GZIP: Wrapping = Wrapping {
    open: |file| Some(vec![(String::new(), inside(MultiGzDecoder::new(file))?)]),
    close: |parts| {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(&parts.first()?.1).ok()?;
        packed.finish().ok()
    },
};

/// A zip archive, whose entries are stored.
pub const ZIP: Wrapping = Wrapping {
    open: |file| {
        let mut zip = ZipArchive::new(Cursor::new(file)).ok()?;
        let mut part = |number| {
            let entry = zip.by_index(number).ok()?;
            Some((entry.name().ok()?.into_owned(), inside(entry)?))
        };
        (0..part_count(file)?).map(&mut part).collect()
    },
    close: |parts| {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in parts {
            let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
            zip.start_file(name.as_str(), stored).ok()?;
            zip.write_all(bytes).ok()?;
        }
        Some(zip.finish().ok()?.into_inner())
    },
};

/// Counts the entries of an archive; more than a few are too many to be opened for one change.
fn part_count(file: &[u8]) -> Option<usize> {
    Some(ZipArchive::new(Cursor::new(file)).ok()?.len()).filter(|&count| count <= 16)
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The chunks of a PNG.
pub const CHUNKS: Wrapping = Wrapping { open: chunks, close: |parts| Some(png(parts)) };

/// The chunks of a PNG; the compressed rows of pixels are one part, unpacked.
pub const PIXELS: Wrapping = Wrapping {
    open: |file| {
        let (rows, mut others): (Vec<Part>, Vec<Part>) =
            chunks(file)?.into_iter().partition(|(name, _)| name == DATA);
        let packed: Vec<u8> = rows.into_iter().flat_map(|(_, bytes)| bytes).collect();
        let end = others.iter().position(|(name, _)| name == "IEND").unwrap_or(others.len());
        others.insert(end, (DATA.to_owned(), inside(ZlibDecoder::new(&packed[..]))?));
        Some(others)
    },
    close: |parts| {
        let packed = |(name, bytes): &Part| {
            if name != DATA {
                return Some((name.clone(), bytes.clone()));
            }
            let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
            packed.write_all(bytes).ok()?;
            Some((name.clone(), packed.finish().ok()?))
        };
        Some(png(&parts.iter().map(packed).collect::<Option<Vec<Part>>>()?))
    },
};

const DATA: &str = "IDAT";

fn chunks(file: &[u8]) -> Option<Vec<Part>> {
    let mut rest = file.strip_prefix(PNG)?;
    let mut parts = Vec::new();
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let name = std::str::from_utf8(&head[4..]).ok()?;
        let (bytes, after) = after.split_at_checked(length)?;
        parts.push((name.to_owned(), bytes.to_vec()));
        rest = after.get(4..)?;
    }
    Some(parts)
}

fn png(parts: &[Part]) -> Vec<u8> {
    let mut file = PNG.to_vec();
    for (name, bytes) in parts {
        let mut sum = crc32fast::Hasher::new();
        sum.update(name.as_bytes());
        sum.update(bytes);
        file.extend((bytes.len() as u32).to_be_bytes());
        file.extend(name.as_bytes());
        file.extend(bytes);
        file.extend(sum.finalize().to_be_bytes());
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::corpus;

    /// Every file of the corpus that can be opened closes to one that opens to the same.
    #[test]
    fn closed_files_open_to_the_same() {
        for (target, wrapping) in [("gzip", GZIP), ("checkpoint", ZIP), ("png", CHUNKS), ("png", PIXELS)] {
            let opened: Vec<Vec<Part>> =
                corpus(target).iter().filter_map(|(_, file)| (wrapping.open)(file)).collect();
            assert!(opened.len() > 2, "{target}");
            for parts in opened {
                let closed = (wrapping.close)(&parts).unwrap();
                assert_eq!((wrapping.open)(&closed), Some(parts), "{target}");
            }
        }
    }
}
