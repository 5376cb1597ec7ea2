//! The files that a run writes: results at the end, frames and checkpoints on the way.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use abide::backend::processes;
use abide::io::{self, Batch, Colours, Format, Movie, Numbered, Range, Staged, Written};
use abide::program::Space;
use abide::{Array, DType, Error, Program, Result, Running, Shape, Simulation};

use super::every::Every;
use super::run_files::Asked;

/// One `--output`.
#[derive(Clone)]
pub struct Output {
    pub field: Option<String>,
    pub path: PathBuf,
    pub format: Format,
}

impl FromStr for Output {
    type Err = Error;

    fn from_str(text: &str) -> Result<Output> {
        let (field, rest) = super::named(text);
        let path = PathBuf::from(rest);
        let format = Format::of(&path)?;
        Ok(Output { field: field.map(str::to_owned), path, format })
    }
}

/// Numbered files: `out_%05d.png`.
#[derive(Clone)]
pub struct Frames {
    field: Option<String>,
    pub names: Numbered,
}

impl FromStr for Frames {
    type Err = Error;

    fn from_str(text: &str) -> Result<Frames> {
        let (field, rest) = super::named(text);
        let names: Numbered = rest.parse()?;
        match Format::of(&names.path(0))? {
            Format::Gif => Err(Error::invalid(
                format!("frames `{text}`"),
                "a .gif holds all frames in one file: use --output",
                "write them like out_%05d.png",
            )),
            _ => Ok(Frames { field: field.map(str::to_owned), names }),
        }
    }
}

/// All files that a run writes, in the order in which they were asked for.
pub struct Writer {
    outputs: Vec<Output>,
    frames: Option<Frames>,
    checkpoint: Option<PathBuf>,
    every: Option<Every>,
    colours: Colours,
    /// The range of values in all frames so far, where no range was given: one scale for all frames.
    seen: Option<Range>,
    /// The fields and files of movies that have not begun.
    asked_movies: Vec<(String, PathBuf)>,
    /// The movies under way. One that failed is none, and its field is read on, because all processes read the same; those
    /// of all processes but the first are none.
    movies: Vec<(String, PathBuf, Option<Movie>)>,
    /// The extents of each field, in a batch those of each member's.
    shapes: Vec<Shape>,
    /// Where the values of each field stand.
    spaces: Vec<Space>,
    /// The members of a batch.
    members: Option<usize>,
    names: Vec<String>,
    shown: String,
    /// The number of the first frame.
    first: u64,
    /// Frames of each movie so far.
    movie_frames: u64,
    lost: Lost,
}

/// Files that could not be written on the way; the run went on.
#[derive(Default)]
struct Lost {
    frames: u64,
    checkpoints: u64,
    /// The faults; of frames only the first, because a full disk causes many.
    faults: Vec<Error>,
    /// The reason why the checkpoint is older than it should be.
    checkpoint: Option<Error>,
}

/// The outcome of a run's files.
pub struct Wrote {
    /// The files that were written, in words.
    pub files: Vec<String>,
    /// The reasons why others are missing or not as new as they should be.
    pub faults: Vec<Error>,
    /// Other remarks for the user.
    pub notes: Vec<String>,
}

impl Writer {
    /// Checks everything that can be checked before the run except the files themselves: fields, and
    /// arguments that need each other.
    pub fn new(asked: Asked<'_>, program: &Program, shape: Shape, members: Option<usize>) -> Result<Writer> {
        let Asked { outputs, frames, checkpoint, every, is_every_of_file, colours, .. } = asked;
        let needs = [
            ("--frames", frames.is_some()),
            ("--checkpoint", checkpoint.is_some()),
            ("--output with .gif", outputs.iter().any(|o| o.format == Format::Gif)),
        ];
        if let (None, Some((what, _))) = (every, needs.iter().find(|(_, asked)| *asked)) {
            return Err(Error::invalid(
                *what,
                "--every is missing",
                "add how often, as in --every 100, or --every time=0.5",
            ));
        }
        if every.is_some() && !is_every_of_file && needs.iter().all(|(_, asked)| !asked) {
            let change = "add --frames, --checkpoint or a .gif --output, or leave it out";
            return Err(Error::invalid("--every", "nothing is written on the way", change));
        }
        let fields = outputs.iter().map(|o| &o.field).chain(frames.map(|f| &f.field));
        for field in fields.flatten() {
            program.field(field)?;
        }
        let whole = |format: Format, field: &Option<String>| format == Format::Vti && field.is_none();
        let frames_format = frames.map(|f| Ok((Format::of(&f.names.path(0))?, &f.field))).transpose()?;
        let mut files = outputs.iter().map(|o| (o.format, &o.field)).chain(frames_format);
        let alike = program.kinds().windows(2).all(|pair| pair[0].centring == pair[1].centring);
        if !alike && files.any(|(format, field)| whole(format, field)) {
            return Err(Error::invalid(
                "a .vti file of all fields",
                format!(
                    "the fields of {} stand on cells, faces and nodes, a file on one of them",
                    program.name()
                ),
                "name a field for each file, as in --output pressure=p.vti",
            ));
        }
        let shown = program.fields()[program.shown()].clone();
        let colours = Colours { is_batch: members.is_some(), ..colours };
        let mut writer = Writer {
            outputs: outputs.iter().filter(|o| o.format != Format::Gif).cloned().collect(),
            frames: frames.cloned(),
            checkpoint: checkpoint.map(Path::to_owned),
            every: every.cloned(),
            colours,
            seen: None,
            movies: Vec::new(),
            asked_movies: Vec::new(),
            shapes: vec![shape; program.fields().len()],
            spaces: vec![Space::default(); program.fields().len()],
            members,
            names: program.fields().to_vec(),
            shown,
            first: 0,
            movie_frames: 0,
            lost: Lost::default(),
        };
        let frames = frames.map(|frames| frames.names.path(0));
        for path in outputs.iter().map(|output| output.path.clone()).chain(frames) {
            if Format::of(&path)? != Format::Npy {
                io::stacked(&path, members, &shape)?;
            }
        }
        for output in outputs.iter().filter(|o| o.format == Format::Gif) {
            Movie::new(&output.path, &io::stacked(&output.path, members, &shape)?, colours)?;
            let field = output.field.clone().unwrap_or_else(|| writer.shown.clone());
            writer.asked_movies.push((field, output.path.clone()));
        }
        Ok(writer)
    }

    /// Returns the bytes that are held at once while a file is written: the fields in it, and a picture's
    /// pixels.
    pub fn bytes(&self, dtype: DType) -> u64 {
        let Some(shape) = self.shapes.iter().max_by_key(|shape| shape.cells()) else { return 0 };
        let members = self.members.unwrap_or(1) as u64;
        let (field, [planes, ..]) = ((shape.bytes(dtype) as u64).saturating_mul(members), shape.padded());
        let all = field.saturating_mul(self.names.len() as u64);
        // A picture shows a line of cells as a strip.
        let strip = if shape.dimensions() == 1 { 32 } else { 1 };
        let pixels = ((shape.cells() / planes) as u64).saturating_mul(strip.max(members));
        // Several processes have no whole field for what each writes its part of.
        let part = match processes::count() {
            1 => field,
            _ => self.shapes.iter().map(|shape| io::piece_bytes(shape, dtype)).fold(0, u64::max),
        };
        let one = |named: bool, format: Format| match format {
            Format::Vti if !named => all,
            Format::Vti => field,
            Format::Npy => part,
            Format::Png => field.saturating_add(pixels.saturating_mul(3)),
            Format::Gif => field.saturating_add(pixels.saturating_mul(2)),
        };
        let outputs = self.outputs.iter().map(|output| one(output.field.is_some(), output.format));
        let movies = self.asked_movies.iter().map(|_| one(true, Format::Gif));
        let frames = self
            .frames
            .iter()
            .filter_map(|frames| Some(one(frames.field.is_some(), Format::of(&frames.names.path(0)).ok()?)));
        // A field at a time is read to write checkpoints.
        outputs.chain(movies).chain(frames).fold(part, u64::max)
    }

    /// Writes the files that are due before the first step.
    pub fn begin(&mut self, simulation: &mut Simulation) -> Result<()> {
        let problem = simulation.problem();
        self.shapes = (0..self.names.len()).map(|field| problem.shape_of(field)).collect::<Result<_>>()?;
        self.spaces = (0..self.names.len()).map(|field| problem.space_of(field)).collect();
        // Movies begin no earlier, so that a command that ends while a device is being prepared leaves no
        // unfinished file.
        for (field, path) in std::mem::take(&mut self.asked_movies) {
            let movie =
                || Movie::new(&path, &io::stacked(&path, self.members, &self.shape(&field))?, self.colours);
            let movie = processes::is_first().then(movie).transpose()?;
            self.movies.push((field, path, movie));
        }
        let step = simulation.step();
        self.seen = simulation.pictured();
        self.first = self.every.as_ref().and_then(Every::steps).map_or(0, |steps| step.div_ceil(steps));
        if self.every.as_ref().is_none_or(|every| !every.is_due_at_first(step)) {
            return Ok(());
        }
        // The movie of the run before ends with this frame, if it has one.
        if step == 0 {
            self.movie_frames += 1;
            for (field, _, movie) in &mut self.movies {
                let values = simulation.field(field)?;
                movie.as_mut().map_or(Ok(()), |movie| movie.add(&values, field, step))?;
            }
        }
        let number = self.number(step, |name| simulation.scalar(name))?;
        self.add_frame(step, number, simulation)?;
        simulation.set_pictured(self.seen);
        Ok(())
    }

    /// Writes the files that are due after an epoch. A file that cannot be written does not end the run,
    /// whose result may lie elsewhere; the new faults are returned.
    pub fn observe(&mut self, running: &mut Running<'_>) -> Result<Vec<Error>> {
        if self.every.as_ref().is_none_or(|every| !every.is_due(running)) {
            return Ok(Vec::new());
        }
        let step = running.step();
        let number = self.number(step, |name| running.scalar(name))?;
        let mut news = Vec::new();
        self.movie_frames += 1;
        for (field, _, movie) in &mut self.movies {
            let values = running.field(field)?;
            if let Some(Err(fault)) = movie.as_mut().map(|movie| movie.add(&values, field, step)) {
                *movie = None;
                news.push(fault);
            }
        }
        if let Some(fault) = of_a_file(self.add_frame(step, number, running))? {
            self.lost.frames += 1;
            if self.lost.frames == 1 {
                news.push(fault);
            }
        }
        self.lost.faults.extend(news.iter().cloned());
        running.set_pictured(self.seen);
        if let Some(path) = &self.checkpoint {
            let fault = of_a_file(running.checkpoint(path))?;
            self.lost.checkpoints += u64::from(fault.is_some());
            if self.lost.checkpoint.is_none() {
                news.extend(fault.clone());
            }
            self.lost.checkpoint = fault;
        }
        Ok(news)
    }

    /// Writes as many as possible of the files that are due at the end, and returns the outcome of all files.
    pub fn finish(mut self, simulation: &mut Simulation) -> Wrote {
        let (mut batch, mut notes) = (Batch::default(), Vec::new());
        for (field, path, mut movie) in std::mem::take(&mut self.movies) {
            // A movie has a frame at least. All processes read the field for it.
            let mut last = Ok(());
            if self.movie_frames == 0 {
                let values = simulation.field(&field);
                let step = simulation.step();
                last = movie
                    .as_mut()
                    .map_or(Ok(()), |movie| values.and_then(|values| movie.add(&values, &field, step)));
            }
            let Some(movie) = movie else { continue };
            batch.add(format!("{} ({field})", path.display()), last.and_then(|()| movie.finish()));
        }
        for Output { field, path, format } in &self.outputs {
            let fields = self.fields(field.as_ref(), *format);
            let words = format!("{} ({})", path.display(), fields.join(", "));
            if *format == Format::Npy {
                let file = simulation.write_npy(&fields[0], path).transpose();
                file.into_iter().for_each(|file| batch.add(words.clone(), file));
                continue;
            }
            let values = fields.iter().map(|name| simulation.field(name)).collect::<Result<Vec<_>>>();
            // An error is the same in all processes, and one of them reports it.
            if !processes::is_first() && values.is_ok() {
                continue;
            }
            let file = values.and_then(|values| {
                let named: Vec<_> = fields.iter().map(String::as_str).zip(&values).collect();
                let (step, shape) = (simulation.step(), self.shape(&fields[0]));
                io::write_as(path, self.members, &shape, &self.space(&fields[0]), &named, step, self.colours)
            });
            batch.add(words, file);
        }
        let Written { mut files, mut faults } = batch.commit();
        faults.splice(0..0, self.lost.faults);
        if let Some(path) = &self.checkpoint {
            match simulation.checkpoint(path) {
                Ok(()) => files.push(format!("{} (step {})", path.display(), simulation.step())),
                Err(fault) => faults.push(fault),
            }
            if self.lost.checkpoints > 0 {
                notes.push(format!("{} checkpoints on the way could not be written", self.lost.checkpoints));
            }
        }
        if let (Some(frames), Some(every)) = (&self.frames, &self.every) {
            files.push(format!("{} and on, {every}", frames.names.path(self.first).display()));
            if self.lost.frames > 0 {
                notes.push(format!("{} frames could not be written", self.lost.frames));
            }
        }
        Wrote { files, faults, notes }
    }

    /// Returns the extents of a field of the program.
    fn shape(&self, field: &str) -> Shape {
        let number = self.names.iter().position(|name| name == field);
        self.shapes[number.unwrap_or(0)]
    }

    /// Returns where the values of a field of the program stand.
    fn space(&self, field: &str) -> Space {
        let number = self.names.iter().position(|name| name == field);
        self.spaces[number.unwrap_or(0)]
    }

    /// Returns the fields that a file of this format holds.
    fn fields<'a>(&'a self, asked: Option<&'a String>, format: Format) -> &'a [String] {
        match (asked, format) {
            (Some(field), _) => std::slice::from_ref(field),
            (None, Format::Vti) => &self.names,
            (None, _) => std::slice::from_ref(&self.shown),
        }
    }

    /// Returns the number of the frame of a step; 0 where no frames are written.
    fn number(&self, step: u64, scalar: impl FnOnce(&str) -> Result<f64>) -> Result<u64> {
        match (&self.frames, &self.every) {
            (Some(_), Some(every)) => every.number(step, scalar),
            _ => Ok(0),
        }
    }

    fn add_frame(&mut self, step: u64, number: u64, state: &mut dyn State) -> Result<()> {
        let Some(frames) = &self.frames else { return Ok(()) };
        let path = frames.names.path(number);
        let format = Format::of(&path)?;
        let fields = self.fields(frames.field.as_ref(), format);
        if format == Format::Npy {
            return state.npy(&fields[0], &path)?.map_or(Ok(()), Staged::commit);
        }
        let values = fields.iter().map(|name| state.field(name)).collect::<Result<Vec<_>>>()?;
        let named: Vec<_> = fields.iter().map(String::as_str).zip(&values).collect();
        let new = values.first().and_then(Range::of);
        let seen = new.map_or(self.seen, |new| Some(self.seen.map_or(new, |seen| seen.union(new))));
        let (shape, range) = (self.shape(&fields[0]), self.colours.ends(seen));
        let written = match processes::is_first() {
            true => {
                let colours = Colours { range, ..self.colours };
                io::write_as(&path, self.members, &shape, &self.space(&fields[0]), &named, step, colours)
                    .and_then(Staged::commit)
            }
            false => Ok(()),
        };
        // In all processes, because all of them write the checkpoint.
        self.seen = seen;
        written
    }
}

/// A simulation whose fields are written: before its first step, or between two epochs.
trait State {
    fn field(&mut self, name: &str) -> Result<Array>;
    fn npy(&mut self, name: &str, path: &Path) -> Result<Option<Staged>>;
}

impl State for Simulation {
    fn field(&mut self, name: &str) -> Result<Array> {
        Simulation::field(self, name)
    }

    fn npy(&mut self, name: &str, path: &Path) -> Result<Option<Staged>> {
        self.write_npy(name, path)
    }
}

impl State for Running<'_> {
    fn field(&mut self, name: &str) -> Result<Array> {
        Running::field(self, name)
    }

    fn npy(&mut self, name: &str, path: &Path) -> Result<Option<Staged>> {
        self.write_npy(name, path)
    }
}

/// Separates faults of a file alone from those of a device: nothing more can be read from a device that
/// fails.
fn of_a_file(result: Result<()>) -> Result<Option<Error>> {
    match result {
        Ok(()) => Ok(None),
        Err(error @ Error::Device { .. }) => Err(error),
        Err(error) => Ok(Some(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_a_field_and_a_format() {
        let frames: Frames = "v=a/%d.npy".parse().unwrap();
        assert_eq!((frames.field.as_deref(), frames.names.path(7)), (Some("v"), PathBuf::from("a/7.npy")));
        for bad in ["out.png", "%d.gif", "%d.txt", "f%+5d.npy"] {
            assert!(bad.parse::<Frames>().is_err(), "{bad}");
        }
    }
}
