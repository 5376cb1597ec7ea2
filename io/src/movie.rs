//! Animated pictures.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use abide_core::{Array, Error, Result, Shape};
use gif::{Encoder, Frame, Repeat};

use super::annotation::{Inks, Layout, heading};
use super::colour::{Colours, MARK, Plane, Range};
use super::{Format, Staged};

/// Colours of the map. Behind them the palette has a mark of NaN and infinity, and the ground and the words of what stands
/// beside the cells.
const COLOURS: usize = 253;

/// Their numbers in the palette.
const NOT_FINITE: u8 = COLOURS as u8;
const PAPER: u8 = COLOURS as u8 + 1;
const INK: u8 = COLOURS as u8 + 2;

/// Time a frame is shown, in hundredths of a second.
const DELAY: u16 = 5;

/// Bytes of a frame before its palette: its control extension, and its descriptor.
const BEFORE_PALETTE: u64 = 8 + 10;

/// An animated `.gif` in the making: frames are added as the run goes, the file appears when it is finished.
///
/// A colour is one value in all frames. Without a range, the range of all frames is known at the end alone: until
/// then each frame has levels between its own extremes, and its palette is written last.
pub struct Movie {
    staged: Staged,
    encoder: Encoder<BufWriter<File>>,
    plane: Plane,
    layout: Layout,
    range: Option<Range>,
    /// Where the palettes of frames stand in the file, and the range of their levels. None where a range was given.
    palettes: Vec<(u64, Range)>,
}

impl Movie {
    /// Begins a movie of a field of this shape. Without a range, the colours span all values of all frames.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a name that is not that of a `.gif`, or that cannot be written; [`Error::Limit`] for a
    /// domain wider than such a file may be; [`Error::Invalid`] for a colour bar without a range.
    pub fn new(path: &Path, shape: &Shape, colours: impl Into<Colours>) -> Result<Movie> {
        let Colours { range, is_annotated } = colours.into();
        if Format::of(path).ok() != Some(Format::Gif) {
            let message = "a movie is written as .gif, and its name says something else";
            return Err(Error::file(path, message, "name it .gif, or write frames, as out_%05d.png"));
        }
        if is_annotated && range.is_none() {
            let message = "the values at its ends are those of all frames, which are known at the end alone";
            return Err(Error::invalid(
                "a movie's colour bar",
                message,
                "give the range of the colours, as in --range LOW:HIGH",
            ));
        }
        let plane = Plane::of(shape);
        let layout = Layout::of(&plane, is_annotated);
        let (width, height) = layout.size();
        let (Ok(width), Ok(height)) = (u16::try_from(width), u16::try_from(height)) else {
            return Err(Error::limit("pixels of a .gif's side", shape, u16::MAX, "use --frames with .png"));
        };
        let staged = Staged::new(path)?;
        let writer = BufWriter::new(staged.handle()?);
        let palette = palette(|level| level);
        let mut encoder = Encoder::new(writer, width, height, &palette).map_err(|e| staged.fault(e))?;
        encoder.set_repeat(Repeat::Infinite).map_err(|e| staged.fault(e))?;
        Ok(Movie { staged, encoder, plane, layout, range, palettes: Vec::new() })
    }

    /// Adds a frame; the field's name and the step stand above it where there is a colour bar.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it cannot be written; [`Error::Limit`] where there is no memory for it.
    pub fn add(&mut self, values: &Array, field: &str, step: u64) -> Result<()> {
        let of_frame = || Range::of(values).unwrap_or(Range { low: 0.0, high: 0.0 });
        let range = self.range.unwrap_or_else(of_frame);
        let level = |place: f64| (place * (COLOURS - 1) as f64).round() as u8;
        let cells = self.plane.pixels(values, |value| range.place(value).map_or(NOT_FINITE, level))?;
        let inks = Inks { paper: PAPER, ink: INK, at: level };
        let pixels = self.layout.draw(cells, &inks, range, &heading(field, step))?;
        // Both fit, which was checked when the movie began.
        let (width, height) = self.layout.size();
        let (width, height) = (width as u16, height as u16);
        let mut frame = Frame::from_indexed_pixels(width, height, pixels, None);
        frame.delay = DELAY;
        if self.range.is_none() {
            frame.palette = Some(palette(|level| level));
            let begin = self.encoder.get_mut().stream_position().map_err(|e| self.staged.fault(e))?;
            self.palettes.push((begin + BEFORE_PALETTE, range));
        }
        self.encoder.write_frame(&frame).map_err(|e| self.staged.fault(e))
    }

    /// Completes the file, to be put in place by [`Staged::commit`].
    pub fn finish(self) -> Result<Staged> {
        let Movie { staged, encoder, palettes, .. } = self;
        let write = || -> std::io::Result<()> {
            let mut writer = encoder.into_inner().map_err(std::io::Error::other)?;
            writer.flush()?;
            let whole = palettes.iter().map(|(_, range)| *range).reduce(Range::union);
            for (at, own) in palettes {
                let whole = whole.unwrap_or(own);
                writer.seek(SeekFrom::Start(at))?;
                writer.write_all(&palette(|level| {
                    let value = own.low + (own.high - own.low) * (level as f64 / (COLOURS - 1) as f64);
                    let place = whole.place(value).unwrap_or(0.0);
                    (place * (COLOURS - 1) as f64).round() as usize
                }))?;
            }
            writer.flush()
        };
        write().map_err(|e| staged.fault(e))?;
        Ok(staged)
    }
}

/// Returns a palette that has, for each level, the map's colour of this number, and the three others behind them.
fn palette(colour: impl Fn(usize) -> usize) -> Vec<u8> {
    let colours =
        (0..COLOURS).map(|level| colorous::VIRIDIS.eval_rational(colour(level), COLOURS).as_array());
    colours.chain([MARK, [255; 3], [0; 3]]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_in_order_and_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gif");
        let shape = Shape::new(&[2, 3]).unwrap();
        let mut movie = Movie::new(&path, &shape, Colours::default()).unwrap();
        movie.add(&Array::F32(vec![0.0, 1.0, 0.5, 0.0, f32::NAN, 0.0]), "u", 0).unwrap();
        movie.add(&Array::F32(vec![2.0; 6]), "u", 0).unwrap();
        assert!(!path.exists());
        movie.finish().unwrap().commit().unwrap();
        let frames = colours(&path, (3, 2));
        let of = |place: usize| colorous::VIRIDIS.eval_rational(place, COLOURS).as_array();
        // 2 is the highest value of all frames, 1 stands halfway in the first frame too.
        assert_eq!(frames[0], [of(0), of(126), of(63), of(0), MARK, of(0)]);
        assert_eq!(frames[1], [of(252); 6]);
        assert_eq!(frames.len(), 2);
    }

    /// Returns the colours of the pixels of all frames.
    fn colours(path: &Path, size: (u16, u16)) -> Vec<Vec<[u8; 3]>> {
        let mut options = gif::DecodeOptions::new();
        options.set_color_output(gif::ColorOutput::RGBA);
        let mut decoder = options.read_info(File::open(path).unwrap()).unwrap();
        assert_eq!((decoder.width(), decoder.height()), size);
        let mut frames = Vec::new();
        while let Some(frame) = decoder.read_next_frame().unwrap() {
            frames.push(frame.buffer.chunks_exact(4).map(|rgba| [rgba[0], rgba[1], rgba[2]]).collect());
        }
        frames
    }

    /// A value has one colour in all frames, whatever the other values of a frame are.
    #[test]
    fn a_colour_is_one_value_in_all_frames() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gif");
        let shape = Shape::new(&[1, 4]).unwrap();
        for range in [None, Some(Range { low: -3.0, high: 6.0 })] {
            let mut movie = Movie::new(&path, &shape, range).unwrap();
            for others in [[-3.0, 0.5], [6.0, 1.0], [1.0, 0.0], [f64::NAN, 2.0]] {
                movie.add(&Array::F64(vec![0.0, 1.0, others[0], others[1]]), "u", 0).unwrap();
            }
            movie.finish().unwrap().commit().unwrap();
            let frames = colours(&path, (4, 1));
            let of = |place: f64| {
                colorous::VIRIDIS.eval_rational((place * 252.0).round() as usize, COLOURS).as_array()
            };
            for frame in &frames {
                assert_eq!(frame[..2], [of(3.0 / 9.0), of(4.0 / 9.0)], "{range:?}");
            }
            assert_eq!([frames[0][2], frames[1][2]], [of(0.0), of(1.0)]);
        }
    }

    #[test]
    fn a_movie_is_a_gif_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["m.mp4", "m.jpg", "m", "m.png"] {
            let movie = Movie::new(&folder.path().join(name), &Shape::new(&[2, 2]).unwrap(), None);
            assert!(movie.err().unwrap().to_string().contains("name it .gif"), "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn too_wide_a_domain_is_refused() {
        let shape = Shape::new(&[1, 65536]).unwrap();
        assert!(matches!(Movie::new(Path::new("m.gif"), &shape, None), Err(Error::Limit { .. })));
    }
}
