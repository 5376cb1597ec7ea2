//! Animated pictures.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use abide_core::{Array, Error, Result, Shape};
use gif::{ColorOutput, DecodeOptions, Encoder, Frame, MemoryLimit, Repeat};

use super::annotation::{Inks, Layout, heading};
use super::colour::{Colours, Plane};
use super::{Colormap, Format, Range, Staged};

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
/// then each frame has levels between its own extremes. At the end its palette is written or, where values stand beside the
/// cells, all frames are drawn again.
pub struct Movie {
    path: PathBuf,
    film: Film,
    plane: Plane,
    map: Colormap,
    range: Option<Range>,
    is_annotated: bool,
    /// The frames so far. None where a range was given.
    waiting: Vec<Waiting>,
}

/// A frame whose colours wait for the range of all frames.
struct Waiting {
    /// Where its palette stands in the file.
    palette: u64,
    /// The range of its levels.
    own: Range,
    /// What stands above it.
    words: String,
}

/// A file to which frames of one layout are added.
struct Film {
    staged: Staged,
    encoder: Encoder<BufWriter<File>>,
    layout: Layout,
}

impl Film {
    fn begin(path: &Path, layout: Layout, map: Colormap) -> Result<Film> {
        let (width, height) = side(&layout)?;
        let staged = Staged::new(path)?;
        let writer = BufWriter::new(staged.handle()?);
        let palette = palette(map, |level| level);
        let mut encoder = Encoder::new(writer, width, height, &palette).map_err(|e| staged.fault(e))?;
        encoder.set_repeat(Repeat::Infinite).map_err(|e| staged.fault(e))?;
        Ok(Film { staged, encoder, layout })
    }

    /// Adds a frame of these levels; a palette of its own takes the place of the file's.
    fn add(&mut self, levels: Vec<u8>, range: Range, words: &str, palette: Option<Vec<u8>>) -> Result<()> {
        let inks = Inks { paper: PAPER, ink: INK, at: level };
        let pixels = self.layout.draw(levels, &inks, range, words)?;
        let (width, height) = side(&self.layout)?;
        let mut frame = Frame::from_indexed_pixels(width, height, pixels, None);
        frame.delay = DELAY;
        frame.palette = palette;
        self.encoder.write_frame(&frame).map_err(|e| self.staged.fault(e))
    }

    fn finish(self) -> Result<Staged> {
        let Film { staged, encoder, .. } = self;
        let flushed =
            encoder.into_inner().map_err(std::io::Error::other).and_then(|mut writer| writer.flush());
        flushed.map_err(|e| staged.fault(e))?;
        Ok(staged)
    }
}

/// Returns the width and the height of a layout in pixels.
fn side(layout: &Layout) -> Result<(u16, u16)> {
    let (width, height) = layout.size();
    let side = |pixels: usize| {
        let change = "use --frames with .png";
        u16::try_from(pixels).map_err(|_| Error::limit("pixels of a .gif's side", pixels, u16::MAX, change))
    };
    Ok((side(width)?, side(height)?))
}

/// Returns the level of a place between the ends of the colour map.
fn level(place: f64) -> u8 {
    (place * (COLOURS - 1) as f64).round() as u8
}

/// Returns the level, in another range, of a value whose level in its own range this is.
fn level_in(whole: Range, own: Range, level: usize) -> u8 {
    let value = own.low + (own.high - own.low) * (level as f64 / (COLOURS - 1) as f64);
    self::level(whole.place(value).unwrap_or(0.0))
}

impl Movie {
    /// Begins a movie of a field of this shape. Without a range, the colours span all values of all frames.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a name that is not that of a `.gif`, or that cannot be written; [`Error::Limit`] for a
    /// domain wider than such a file may be.
    pub fn new(path: &Path, shape: &Shape, colours: impl Into<Colours>) -> Result<Movie> {
        let Colours { map, range, is_annotated, is_batch } = colours.into();
        if Format::of(path).ok() != Some(Format::Gif) {
            let message = "a movie is written as .gif, and its name says something else";
            return Err(Error::file(path, message, "name it .gif, or write frames, as out_%05d.png"));
        }
        let plane = Plane::of(shape, is_batch);
        // The layout of the file at the end.
        side(&Layout::of(&plane, is_annotated))?;
        let film = Film::begin(path, Layout::of(&plane, is_annotated && range.is_some()), map)?;
        Ok(Movie { path: path.to_owned(), film, plane, map, range, is_annotated, waiting: Vec::new() })
    }

    /// Adds a frame; the field's name and the step stand above it where there is a colour bar.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it cannot be written; [`Error::Limit`] where there is no memory for it.
    pub fn add(&mut self, values: &Array, field: &str, step: u64) -> Result<()> {
        let of_frame = || Range::of(values).unwrap_or(Range { low: 0.0, high: 0.0 });
        let range = self.range.unwrap_or_else(of_frame);
        let levels = self.plane.pixels(values, |value| range.place(value).map_or(NOT_FINITE, level))?;
        let words = heading(field, step, &self.plane);
        if self.range.is_some() {
            return self.film.add(levels, range, &words, None);
        }
        let begin = self.film.encoder.get_mut().stream_position().map_err(|e| self.film.staged.fault(e))?;
        self.film.add(levels, range, &words, Some(palette(self.map, |level| level)))?;
        self.waiting.push(Waiting { palette: begin + BEFORE_PALETTE, own: range, words });
        Ok(())
    }

    /// Completes the file, to be put in place by [`Staged::commit`].
    ///
    /// # Errors
    ///
    /// Those of [`Movie::add`].
    pub fn finish(self) -> Result<Staged> {
        let Movie { path, film, plane, map, is_annotated, waiting, .. } = self;
        let staged = film.finish()?;
        let Some(whole) = waiting.iter().map(|frame| frame.own).reduce(Range::union) else {
            return Ok(staged);
        };
        let whole = map.ends(whole);
        if is_annotated {
            let film = Film::begin(&path, Layout::of(&plane, true), map)?;
            return redrawn(&staged, film, &waiting, whole);
        }
        let mut file = staged.handle()?;
        let mut write = || -> std::io::Result<()> {
            for Waiting { palette: at, own, .. } in &waiting {
                file.seek(SeekFrom::Start(*at))?;
                file.write_all(&palette(map, |level| level_in(whole, *own, level).into()))?;
            }
            Ok(())
        };
        write().map_err(|e| staged.fault(e))?;
        Ok(staged)
    }
}

/// Draws the frames of a file again, each with what stands beside it.
fn redrawn(plain: &Staged, mut film: Film, waiting: &[Waiting], whole: Range) -> Result<Staged> {
    let mut file = plain.handle()?;
    file.rewind().map_err(|e| plain.fault(e))?;
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.set_memory_limit(MemoryLimit::Unlimited);
    let mut decoder = options.read_info(BufReader::new(file)).map_err(|e| plain.fault(e))?;
    for Waiting { own, words, .. } in waiting {
        let Some(frame) = decoder.read_next_frame().map_err(|e| plain.fault(e))? else { break };
        let levels = frame.buffer.iter().map(|&level| match level {
            NOT_FINITE => NOT_FINITE,
            level => level_in(whole, *own, level.into()),
        });
        film.add(levels.collect(), whole, words, None)?;
    }
    film.finish()
}

/// Returns a palette that has, for each level, the map's colour of this number, and the three others behind them.
fn palette(map: Colormap, number: impl Fn(usize) -> usize) -> Vec<u8> {
    let colours = (0..COLOURS).map(|level| map.at(number(level) as f64 / (COLOURS - 1) as f64));
    colours.chain([map.mark(), [255; 3], [0; 3]]).flatten().collect()
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
        let of = |place: usize| Colormap::default().at(place as f64 / 252.0);
        // 2 is the highest value of all frames, 1 stands halfway in the first frame too.
        assert_eq!(frames[0], [of(0), of(126), of(63), of(0), Colormap::default().mark(), of(0)]);
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
            let of = |place: f64| Colormap::default().at((place * 252.0).round() / 252.0);
            for frame in &frames {
                assert_eq!(frame[..2], [of(3.0 / 9.0), of(4.0 / 9.0)], "{range:?}");
            }
            assert_eq!([frames[0][2], frames[1][2]], [of(0.0), of(1.0)]);
        }
    }

    /// Without a range, the values beside the cells are those of all frames: a movie with them is the same file as one whose
    /// range is given.
    #[test]
    fn values_beside_the_cells_are_of_all_frames() {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape::new(&[2, 3]).unwrap();
        let made = |name: &str, range: Option<Range>| {
            let path = folder.path().join(name);
            let colours = Colours { range, is_annotated: true, ..Colours::default() };
            let mut movie = Movie::new(&path, &shape, colours).unwrap();
            for (step, values) in
                [[0.0, 84.0, 126.0, 252.0, f64::NAN, 0.0], [-252.0, 0.0, 1.0, 2.0, 3.0, 0.0]]
                    .iter()
                    .enumerate()
            {
                movie.add(&Array::F64(values.to_vec()), "u", step as u64).unwrap();
            }
            movie.finish().unwrap().commit().unwrap();
            path
        };
        let given = Range { low: -252.0, high: 252.0 };
        let [found, given] = [made("a.gif", None), made("b.gif", Some(given))];
        let layout = Layout::of(&Plane::of(&shape, false), true);
        let size = side(&layout).unwrap();
        let [found, given] = [found, given].map(|path| colours(&path, size));
        assert_eq!(found.len(), 2);
        for (found, given) in found.iter().zip(&given) {
            // Levels are rounded twice.
            let far = found.iter().zip(given).filter(|(a, b)| a != b).count();
            assert!(far <= 4, "{far} pixels differ");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
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
