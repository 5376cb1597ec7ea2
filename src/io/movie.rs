//! Animated pictures.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use gif::{Encoder, Frame, Repeat};

use super::Staged;
use super::colour::{MARK, Plane, Range};
use crate::{Array, Error, Result, Shape};

/// Colours of the map; one more entry of the palette marks NaN and infinity.
const COLOURS: usize = 255;

/// Time a frame is shown, in hundredths of a second.
const DELAY: u16 = 5;

/// An animated `.gif` in the making: frames are added as the run goes, the file appears when it is finished.
pub struct Movie {
    staged: Staged,
    encoder: Encoder<BufWriter<File>>,
    plane: Plane,
    fixed: bool,
    range: Option<Range>,
}

impl Movie {
    /// Begins a movie of a field of this shape. Without a range, the colours span all values seen up to each
    /// frame.
    pub fn new(path: &Path, shape: &Shape, range: Option<Range>) -> Result<Movie> {
        let plane = Plane::of(shape);
        let (Ok(width), Ok(height)) = (u16::try_from(plane.width), u16::try_from(plane.height)) else {
            return Err(Error::limit("pixels of a .gif's side", shape, u16::MAX, "use --frames with .png"));
        };
        let mut palette = Vec::with_capacity(3 * (COLOURS + 1));
        for colour in 0..COLOURS {
            palette.extend(colorous::VIRIDIS.eval_rational(colour, COLOURS).as_array());
        }
        palette.extend(MARK);
        let staged = Staged::new(path)?;
        let writer = BufWriter::new(staged.handle()?);
        let mut encoder = Encoder::new(writer, width, height, &palette).map_err(|e| staged.fault(e))?;
        encoder.set_repeat(Repeat::Infinite).map_err(|e| staged.fault(e))?;
        Ok(Movie { staged, encoder, plane, fixed: range.is_some(), range })
    }

    /// Adds a frame.
    pub fn add(&mut self, values: &Array) -> Result<()> {
        if !self.fixed {
            self.range = match (self.range, Range::of(values)) {
                (Some(seen), Some(new)) => Some(seen.union(new)),
                (seen, new) => seen.or(new),
            };
        }
        let range = self.range.unwrap_or(Range { low: 0.0, high: 1.0 });
        let pixels = self.plane.pixels(values, |value| match range.place(value) {
            Some(place) => (place * (COLOURS - 1) as f64).round() as u8,
            None => COLOURS as u8,
        })?;
        // Both fit, which was checked when the movie began.
        let (width, height) = (self.plane.width as u16, self.plane.height as u16);
        let mut frame = Frame::from_indexed_pixels(width, height, pixels, None);
        frame.delay = DELAY;
        self.encoder.write_frame(&frame).map_err(|e| self.staged.fault(e))
    }

    /// Completes the file, to be put in place by [`Staged::commit`].
    pub fn finish(self) -> Result<Staged> {
        let writer = self.encoder.into_inner().map_err(|e| self.staged.fault(e));
        writer?.flush().map_err(|e| self.staged.fault(e))?;
        Ok(self.staged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_in_order_and_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gif");
        let shape = Shape::new(&[2, 3]).unwrap();
        let mut movie = Movie::new(&path, &shape, None).unwrap();
        movie.add(&Array::F32(vec![0.0, 1.0, 0.5, 0.0, f32::NAN, 0.0])).unwrap();
        movie.add(&Array::F32(vec![2.0; 6])).unwrap();
        assert!(!path.exists());
        movie.finish().unwrap().commit().unwrap();
        let mut decoder = gif::DecodeOptions::new().read_info(File::open(&path).unwrap()).unwrap();
        assert_eq!((decoder.width(), decoder.height()), (3, 2));
        let first = decoder.read_next_frame().unwrap().unwrap().buffer.to_vec();
        assert_eq!(first, [0, 254, 127, 0, 255, 0]);
        let second = decoder.read_next_frame().unwrap().unwrap().buffer.to_vec();
        assert_eq!(second, [254; 6]);
        assert!(decoder.read_next_frame().unwrap().is_none());
    }

    #[test]
    fn too_wide_a_domain_is_refused() {
        let shape = Shape::new(&[1, 65536]).unwrap();
        assert!(matches!(Movie::new(Path::new("m.gif"), &shape, None), Err(Error::Limit { .. })));
    }
}
