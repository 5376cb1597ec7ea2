//! Decoders of pictures come from other projects. What they do to broken files, and how much memory they
//! take, is kept in check here.

use std::cell::Cell;
use std::io::{Read, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is decoding a picture. A panic then is how a decoder gives up on a broken
/// file; it becomes an error and need not be shown.
pub fn is_decoding() -> bool {
    DECODING.get()
}

/// Runs a decoder; `None` where it panicked.
pub(super) fn guarded<T>(decode: impl FnOnce() -> T) -> Option<T> {
    let before = DECODING.replace(true);
    // Whatever a decoder that panicked leaves behind is dropped with it.
    let outcome = catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(before);
    outcome.ok()
}

/// Returns the most bytes that decoding a JPEG takes beside the picture itself, 0 for any other file, and
/// leaves the reader at its start. The decoder takes them without asking, and ends the process where they are
/// refused.
///
/// A decoder keeps the 16-bit coefficients of all blocks of a file whose components come one after another,
/// and some rows of any; a component has as many as its sampling factors say (ITU-T T.81, A.2). Whatever
/// looks like the header of a frame (B.2.2) counts.
pub(super) fn jpeg_bytes(reader: &mut (impl Read + Seek), length: u64) -> std::io::Result<u64> {
    let mut contents = Vec::new();
    let mut start = [0; 2];
    let is_jpeg = reader.read_exact(&mut start).is_ok() && start == [0xff, 0xd8];
    if is_jpeg {
        contents
            .try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))
            .map_err(std::io::Error::other)?;
        reader.read_to_end(&mut contents)?;
    }
    reader.rewind()?;
    Ok((0..contents.len()).filter_map(|at| frame_bytes(&contents[at..])).max().unwrap_or(0))
}

/// Returns the same number by the header of a frame at the start of these bytes, if there is one.
fn frame_bytes(bytes: &[u8]) -> Option<u64> {
    let (header, components) = bytes.split_first_chunk::<10>()?;
    let &[0xff, kind, _, length, _, height @ .., count] = header else { return None };
    let [height_high, height_low, width_high, width_low] = height;
    if kind & 0xf0 != 0xc0 || count > 4 || length != 8 + 3 * count {
        return None;
    }
    let blocks = components.as_chunks::<3>().0.iter().take(count.into());
    // Decoders refuse factors above 4, as the standard does.
    let factors: u64 =
        blocks.map(|[_, factors, _]| u64::from(factors >> 4).min(4) * u64::from(factors & 15).min(4)).sum();
    let side = |high: u8, low: u8| u64::from(u16::from_be_bytes([high, low]));
    Some(2 * factors * (side(width_high, width_low) + 32) * (side(height_high, height_low) + 96))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn a_panic_ends_the_decoder_alone() {
        assert_eq!(guarded(|| 7), Some(7));
        let seen = guarded(|| -> bool {
            assert!(is_decoding());
            std::panic::resume_unwind(Box::new("broken"))
        });
        assert!(seen.is_none() && !is_decoding());
    }

    #[test]
    fn a_frame_takes_what_its_components_say() {
        // 300 rows of 200 pixels, 4:2:0.
        let mut file =
            b"\xff\xd8..\xff\xc2\x00\x11\x08\x01\x2c\x00\xc8\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01..."
                .to_vec();
        let bytes = |file: &[u8]| jpeg_bytes(&mut Cursor::new(file), file.len() as u64).unwrap();
        assert_eq!(bytes(&file), 2 * 6 * 232 * 396);
        file.truncate(12);
        assert_eq!(bytes(&file), 0);
        assert_eq!(bytes(b"\xff\xd8\xff\xc2\x00\xff\x08\x01\x2c\x00\xc8\x53\x01\x22\x00"), 0);
        assert_eq!(bytes(b"\x89PNG\xff\xc2\x00\x0b\x08\x01\x2c\x00\xc8\x01\x01\x22\x00"), 0);
    }
}
