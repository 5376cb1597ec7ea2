//! Files of the run on screen.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use abide::io::{Format, Staged};
use abide::{Error, Result, Simulation, io};

use super::live::Live;
use super::sampling::{self, Frame, View};
use crate::field::look::{self, Look};
use crate::setup::quoted;

/// Time that a frame of a `.gif` is shown, in hundredths of a second.
const DELAY: u16 = 5;

/// The files to write.
#[derive(Debug, Clone, PartialEq)]
pub enum Keep {
    /// A picture of the part in view, one pixel per cell.
    Picture {
        /// A `.png` file.
        path: PathBuf,
        /// The colours.
        look: Look,
    },
    /// The field shown as `.npy`, all fields of its extents as `.vti`.
    Field(PathBuf),
    /// All that is needed to go on.
    Checkpoint(PathBuf),
    /// Nothing but the command line that reproduces the run; where no command line can, a checkpoint of this
    /// name. Formulas are written beside it, as a model file.
    Command(PathBuf),
}

/// A movie or numbered pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// A `.gif` file, or `.png` with a `%d` or `%05d` for the number.
    pub path: PathBuf,
    /// Steps between frames.
    pub every: u64,
    /// The colours. All frames share the automatic range of the first frame.
    pub look: Look,
}

/// Returns all that a view shows, one value per cell.
fn whole(simulation: &mut Simulation, view: &View) -> Result<Frame> {
    sampling::frame(
        simulation,
        0,
        &View { window: None, pixels: [usize::MAX; 2], probe: None, ..view.clone() },
    )
}

/// Writes what `keep` asks for; returns the file, if one was written, and the command line, if it was asked
/// for.
pub fn keep(live: &mut Live, view: &View, keep: &Keep) -> Result<(Option<PathBuf>, Option<String>)> {
    let repeatable = live.is_repeatable();
    let simulation = &mut live.simulation;
    match keep {
        Keep::Picture { path, look } => {
            let frame = whole(simulation, view)?;
            picture(path, &frame, look)?;
            Ok((Some(path.clone()), None))
        }
        Keep::Field(path) => {
            let problem = simulation.problem();
            let extents = problem.extents_of(view.field);
            let all = Format::of(path)?.holds_all();
            let is_wanted =
                |field: usize| field == view.field || (all && problem.extents_of(field) == extents);
            let names = problem.program.fields().iter().enumerate();
            let wanted: Vec<String> =
                names.filter(|(field, _)| is_wanted(*field)).map(|(_, name)| name.clone()).collect();
            io::write_as(path, &simulation.snapshot(&wanted)?, None)?.commit()?;
            Ok((Some(path.clone()), None))
        }
        Keep::Checkpoint(path) => {
            simulation.checkpoint(path)?;
            Ok((Some(path.clone()), None))
        }
        Keep::Command(path) => {
            let (step, name) = (simulation.step(), simulation.problem().program.name().to_owned());
            let output = format!("{name}.png");
            // The checkpoint that the run went on from has done some of the steps.
            let done = match &live.setup.resume {
                Some(path) => io::checkpoint::read_head(path)?.steps,
                None => 0,
            };
            let mut written = None;
            let model = match &live.setup.formulas {
                Some(text) => {
                    let file = path.with_extension("toml");
                    Staged::new(&file)?.fill(|out| out.write_all(text.as_bytes()))?.commit()?;
                    let place = quoted(&file.display().to_string());
                    written = Some(file);
                    place
                }
                None => name,
            };
            if repeatable && let Some(line) = live.setup.command(&model, step.saturating_sub(done), &output) {
                return Ok((written, Some(line)));
            }
            simulation.checkpoint(path)?;
            let place = quoted(&path.display().to_string());
            let line = format!("abide run {model} --resume {place} --steps 0 --output {output}");
            Ok((Some(path.clone()), Some(line)))
        }
    }
}

/// Writes a frame as a picture; three planes stand side by side.
pub fn picture(path: &Path, frame: &Frame, look: &Look) -> Result<()> {
    let scale = look.scale(frame.extremes);
    let (width, height, pixels) = painted(path, frame, [255; 3], |value| look.colour(scale, value))?;
    let fault = |e: image::ImageError| Error::file(path, e, "write elsewhere, or name it .png");
    let image = image::RgbImage::from_raw(width, height, pixels.concat())
        .ok_or_else(|| Error::limit("pixels of a picture", frame.images.len(), "memory", "show one slice"))?;
    if Format::of(path)? != Format::Png {
        return Err(Error::file(path, "pictures are written as PNG", "name it .png"));
    }
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, image::ImageFormat::Png).map_err(fault)?;
    Staged::new(path)?.fill(|out| out.write_all(bytes.get_ref()))?.commit()
}

/// Turns a frame's cells into pixels, rows from the top; `blank` is beside and between planes.
fn painted<P: Copy>(
    path: &Path,
    frame: &Frame,
    blank: P,
    pixel: impl Fn(f32) -> P,
) -> Result<(u32, u32, Vec<P>)> {
    /// Pixels between planes that stand side by side.
    const GAP: usize = 4;
    let height = frame.images.iter().map(|image| image.size[0]).max().unwrap_or(1);
    let width =
        frame.images.iter().map(|image| image.size[1] + GAP).sum::<usize>().saturating_sub(GAP).max(1);
    let mut pixels = Vec::with_capacity(width * height);
    for row in 0..height {
        for (number, image) in frame.images.iter().enumerate() {
            if number > 0 {
                pixels.extend([blank; GAP]);
            }
            let values = image.values.chunks(image.size[1].max(1)).nth(row);
            match values {
                Some(values) => pixels.extend(values.iter().map(|&value| pixel(value))),
                None => pixels.extend(std::iter::repeat_n(blank, image.size[1])),
            }
        }
    }
    let side = |pixels: usize| {
        u32::try_from(pixels).map_err(|_| {
            Error::limit(format!("pixels of {}", path.display()), pixels, u32::MAX, "write .npy")
        })
    };
    Ok((side(width)?, side(height)?, pixels))
}

/// A recording in progress.
pub struct Recorder {
    /// The recording that was ordered.
    pub recording: Recording,
    view: View,
    look: Option<Look>,
    movie: Option<Movie>,
    /// Frames so far.
    pub frames: u64,
}

struct Movie {
    staged: Staged,
    encoder: gif::Encoder<BufWriter<File>>,
    size: [u16; 2],
}

impl Recorder {
    /// Begins with the present frame.
    pub fn new(recording: Recording, view: &View, simulation: &mut Simulation) -> Result<Recorder> {
        let path = &recording.path;
        match Format::of(path)? {
            Format::Gif => {}
            Format::Png if numbered(path, 0).is_some() => {}
            _ => {
                let message = "a recording is a .gif, or pictures with a number";
                return Err(Error::file(path, message, "name it like run.gif or run_%05d.png"));
            }
        }
        if recording.every == 0 {
            return Err(Error::invalid("steps between frames", "they are 0", "give 1 or more"));
        }
        // All frames show one cut of one field, even when the window turns to another.
        let cut = view.cut.within(simulation.problem().extents_of(view.field));
        let view = View { cut, ..view.clone() };
        let mut recorder = Recorder { recording, view, look: None, movie: None, frames: 0 };
        recorder.add(simulation)?;
        Ok(recorder)
    }

    /// Returns the steps until the next frame.
    pub fn until_due(&self, step: u64) -> u64 {
        self.recording.every - step % self.recording.every
    }

    /// Adds the present frame.
    pub fn add(&mut self, simulation: &mut Simulation) -> Result<()> {
        let frame = whole(simulation, &self.view)?;
        let path = self.recording.path.clone();
        let look = self.look.get_or_insert_with(|| self.recording.look.fixed(frame.extremes)).clone();
        match numbered(&path, self.frames) {
            Some(path) => picture(&path, &frame, &look)?,
            None => self.add_to_movie(&path, &frame, &look)?,
        }
        self.frames += 1;
        Ok(())
    }

    fn add_to_movie(&mut self, path: &Path, frame: &Frame, look: &Look) -> Result<()> {
        let scale = look.scale(frame.extremes);
        let (width, height, pixels) = painted(path, frame, look::BLANK, |value| look.index(scale, value))?;
        if self.movie.is_none() {
            let (Ok(width), Ok(height)) = (u16::try_from(width), u16::try_from(height)) else {
                return Err(Error::limit(
                    "pixels of a .gif's side",
                    width.max(height),
                    u16::MAX,
                    "record .png",
                ));
            };
            let staged = Staged::new(path)?;
            let writer = BufWriter::new(staged.handle()?);
            let mut encoder =
                gif::Encoder::new(writer, width, height, &look.palette()).map_err(|e| staged.fault(e))?;
            encoder.set_repeat(gif::Repeat::Infinite).map_err(|e| staged.fault(e))?;
            self.movie = Some(Movie { staged, encoder, size: [width, height] });
        }
        let Some(movie) = &mut self.movie else { return Ok(()) };
        let mut picture = gif::Frame::from_indexed_pixels(movie.size[0], movie.size[1], pixels, None);
        picture.delay = DELAY;
        movie.encoder.write_frame(&picture).map_err(|e| movie.staged.fault(e))
    }

    /// Completes the file and puts it in its place.
    pub fn finish(self) -> Result<PathBuf> {
        if let Some(Movie { staged, encoder, .. }) = self.movie {
            let writer = encoder.into_inner().map_err(|e| staged.fault(e));
            writer?.flush().map_err(|e| staged.fault(e))?;
            staged.commit()?;
        }
        Ok(self.recording.path)
    }
}

/// Returns the path with its `%d` or `%0Nd` replaced by a number; `None` where it has neither.
fn numbered(path: &Path, number: u64) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let (before, rest) = name.split_once('%')?;
    let (digits, after) = rest.split_once('d')?;
    // The digits are checked here, because parsing would accept a sign.
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    let width = match digits {
        "" => 0,
        _ if is_number => digits.strip_prefix('0')?.parse::<usize>().ok().filter(|&w| w <= 20)?,
        _ => return None,
    };
    Some(path.with_file_name(format!("{before}{number:0width$}{after}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_numbered() {
        assert_eq!(numbered(Path::new("a/f_%04d.png"), 7), Some("a/f_0007.png".into()));
        assert_eq!(numbered(Path::new("f%d.png"), 12), Some("f12.png".into()));
        assert_eq!(numbered(Path::new("f.gif"), 1), None);
        assert_eq!(numbered(Path::new("f%s.png"), 1), None);
        assert_eq!(numbered(Path::new("f%0+4d.png"), 1), None);
    }
}
