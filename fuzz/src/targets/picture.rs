//! Pictures: grey values from 0 to 1, one per pixel.

use abide::Array;
use abide::io::read;

use super::{by_length, ensure, file, refused};

pub const WORDS: &[&str] =
    &["IHDR", "IDAT", "IEND", "PLTE", "tRNS", "acTL", "fcTL", "fdAT", "iCCP", "iTXt", "zTXt", "eXIf"];

/// Bytes that an execution is given: enough for some 100 000 pixels, because more take milliseconds and no
/// other branches.
pub const MOST: usize = 2 << 20;

/// Reads a PNG.
pub fn png(input: &[u8]) -> Result<(), String> {
    run(input, ".png")
}

/// Reads a JPEG.
pub fn jpeg(input: &[u8]) -> Result<(), String> {
    run(input, ".jpg")
}

fn run(input: &[u8], extension: &str) -> Result<(), String> {
    let file = file(input, extension)?;
    let loaded = match read(file.path()) {
        Ok(loaded) => loaded,
        Err(error) => return refused(&error),
    };
    let cells = loaded.shape.cells();
    ensure(loaded.values.len() == cells, || format!("{} values on {}", loaded.values.len(), loaded.shape))?;
    let grey = match &loaded.values {
        Array::F32(values) => values.iter().all(|value| (0.0..=1.0).contains(value)),
        Array::F64(values) => values.iter().all(|value| (0.0..=1.0).contains(value)),
    };
    ensure(grey, || "a grey value is not from 0 to 1".to_owned())
}

/// Bytes of memory that a pixel may take: four channels of 16 bits as they come from the file and as they are
/// turned into grey values, and the grey values in f64.
const PIXEL: usize = 40;

/// Returns the memory granted by the size in a PNG's header.
pub fn png_memory(input: &[u8]) -> usize {
    let side = |at: usize| {
        input.get(at..at + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]) as usize)
    };
    pixels(side(16), side(20)).saturating_add(by_length(input))
}

/// Bytes of memory that a pixel of a JPEG may take: coefficients of four components, each sampled four times
/// as finely along both axes as the coarsest.
const COEFFICIENTS: usize = 2 * 4 * 16;

/// Returns the memory granted by the largest size in any start of a JPEG's frame, in whole blocks and with
/// some extra rows.
pub fn jpeg_memory(input: &[u8]) -> usize {
    let size = |bytes: &[u8]| {
        let side = |at: usize| usize::from(bytes[at]) << 8 | usize::from(bytes[at + 1]);
        let is_frame = bytes[0] == 0xff && bytes[1] & 0xf0 == 0xc0;
        if is_frame { (PIXEL + COEFFICIENTS) * (side(5) + 128) * (side(7) + 64) } else { 0 }
    };
    input.windows(9).map(size).max().unwrap_or(0).saturating_add(by_length(input))
}

fn pixels(width: usize, height: usize) -> usize {
    width.saturating_mul(height).saturating_mul(PIXEL)
}
