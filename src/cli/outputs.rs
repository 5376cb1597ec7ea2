//! What a run writes: files at the end, frames and checkpoints on the way.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use abide::io::{self, Format, Movie, Range, Staged};
use abide::{Array, DType, Error, Program, Result, Running, Shape, Simulation};

/// One `--output`.
#[derive(Clone)]
pub struct Output {
    field: Option<String>,
    path: PathBuf,
    format: Format,
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
    before: String,
    digits: usize,
    after: String,
}

impl FromStr for Frames {
    type Err = Error;

    fn from_str(text: &str) -> Result<Frames> {
        let (field, rest) = super::named(text);
        let wrong = |reason: &str| Error::invalid(format!("frames `{text}`"), reason, "write them like out_%05d.png");
        let (before, number) = rest.split_once('%').ok_or_else(|| wrong("they have no place for a number"))?;
        let (digits, after) = number.split_once('d').ok_or_else(|| wrong("the number is not written %d"))?;
        let digits: usize = if digits.is_empty() {
            0
        } else {
            digits.parse().map_err(|_| wrong("the number is not written %d or %05d"))?
        };
        if after.contains('%') || digits > 20 {
            return Err(wrong("one number of at most 20 digits has a place"));
        }
        let frames =
            Frames { field: field.map(str::to_owned), before: before.to_owned(), digits, after: after.to_owned() };
        match Format::of(&frames.path(0))? {
            Format::Gif => Err(wrong("a .gif holds all frames in one file: use --output")),
            _ => Ok(frames),
        }
    }
}

impl Frames {
    fn path(&self, number: u64) -> PathBuf {
        PathBuf::from(format!("{}{number:0width$}{}", self.before, self.after, width = self.digits))
    }
}

/// All that a run writes, in the order in which it was asked for.
pub struct Writer {
    outputs: Vec<Output>,
    frames: Option<Frames>,
    checkpoint: Option<PathBuf>,
    every: Option<u64>,
    range: Option<Range>,
    /// The values that frames showed so far, where no range was given: one scale for all of them.
    seen: Option<Range>,
    /// The fields and files of movies that have not begun.
    asked_movies: Vec<(String, PathBuf)>,
    movies: Vec<(String, PathBuf, Movie)>,
    shape: Shape,
    names: Vec<String>,
    shown: String,
}

/// What of a run's arguments concerns files.
pub struct Asked<'a> {
    pub outputs: &'a [Output],
    pub frames: Option<&'a Frames>,
    pub checkpoint: Option<&'a Path>,
    pub every: Option<u64>,
    pub range: Option<Range>,
}

impl Writer {
    /// Checks everything that can be checked before the run: names, folders, what belongs together.
    pub fn new(asked: Asked<'_>, program: &Program, shape: Shape) -> Result<Writer> {
        let Asked { outputs, frames, checkpoint, every, range } = asked;
        let needs = [
            ("--frames", frames.is_some()),
            ("--checkpoint", checkpoint.is_some()),
            ("--output with .gif", outputs.iter().any(|o| o.format == Format::Gif)),
        ];
        if let (None, Some((what, _))) = (every, needs.iter().find(|(_, asked)| *asked)) {
            return Err(Error::invalid(*what, "--every is missing", "add how often, in steps, as in --every 100"));
        }
        if every.is_some() && needs.iter().all(|(_, asked)| !asked) {
            let change = "add --frames, --checkpoint or a .gif --output, or leave it out";
            return Err(Error::invalid("--every", "nothing is written on the way", change));
        }
        let fields = outputs.iter().map(|o| &o.field).chain(frames.map(|f| &f.field));
        for field in fields.flatten() {
            program.field(field)?;
        }
        let first = frames.map(|f| f.path(0));
        let mut paths: Vec<&Path> =
            outputs.iter().map(|o| o.path.as_path()).chain(first.as_deref()).chain(checkpoint).collect();
        for path in &paths {
            io::check_target(path)?;
        }
        paths.sort();
        if let Some(pair) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::file(pair[0], "two outputs have this name", "give each its own"));
        }
        let shown = program.fields()[program.shown()].clone();
        let mut writer = Writer {
            outputs: outputs.iter().filter(|o| o.format != Format::Gif).cloned().collect(),
            frames: frames.cloned(),
            checkpoint: checkpoint.map(Path::to_owned),
            every,
            range,
            seen: None,
            movies: Vec::new(),
            asked_movies: Vec::new(),
            shape,
            names: program.fields().to_vec(),
            shown,
        };
        for output in outputs.iter().filter(|o| o.format == Format::Gif) {
            Movie::new(&output.path, &shape, range)?;
            let field = output.field.clone().unwrap_or_else(|| writer.shown.clone());
            writer.asked_movies.push((field, output.path.clone()));
        }
        Ok(writer)
    }

    /// Bytes that are held at once while a file is written: the fields in it, and a picture's pixels.
    pub fn bytes(&self, dtype: DType) -> u64 {
        let (field, [planes, ..]) = (self.shape.bytes(dtype) as u64, self.shape.padded());
        let all = field.saturating_mul(self.names.len() as u64);
        // A line is shown as a strip.
        let pixels = (self.shape.cells() / planes) as u64 * if self.shape.dimensions() == 1 { 32 } else { 1 };
        let one = |named: bool, format: Format| match format {
            Format::Vti if !named => all,
            Format::Vti | Format::Npy => field,
            Format::Png => field.saturating_add(pixels.saturating_mul(3)),
            Format::Gif => field.saturating_add(pixels.saturating_mul(2)),
        };
        let outputs = self.outputs.iter().map(|output| one(output.field.is_some(), output.format));
        let movies = self.asked_movies.iter().map(|_| one(true, Format::Gif));
        let frames = self
            .frames
            .iter()
            .filter_map(|frames| Some(one(frames.field.is_some(), Format::of(&frames.path(0)).ok()?)));
        // Values that are not finite are counted, and checkpoints written, a field at a time.
        outputs.chain(movies).chain(frames).fold(field, u64::max)
    }

    /// Writes what is due before the first step.
    pub fn begin(&mut self, simulation: &mut Simulation) -> Result<()> {
        // Not earlier: what ends the command while a device is being prepared then leaves no unfinished file.
        for (field, path) in std::mem::take(&mut self.asked_movies) {
            let movie = Movie::new(&path, &self.shape, self.range)?;
            self.movies.push((field, path, movie));
        }
        let step = simulation.step();
        self.add_frames(step, &mut |field| simulation.field(field))
    }

    /// Writes what is due after an epoch.
    pub fn observe(&mut self, running: &mut Running<'_>) -> Result<()> {
        if self.every.is_none_or(|every| !running.progress().steps.is_multiple_of(every)) {
            return Ok(());
        }
        let step = running.step();
        self.add_frames(step, &mut |field| running.field(field))?;
        match &self.checkpoint {
            Some(path) => running.checkpoint(path),
            None => Ok(()),
        }
    }

    /// Writes what is due at the end, and says what was written.
    pub fn finish(self, simulation: &mut Simulation) -> Result<Vec<String>> {
        let mut files = Vec::new();
        let mut staged: Vec<Staged> = Vec::new();
        for (field, path, movie) in self.movies {
            staged.push(movie.finish()?);
            files.push(format!("{} ({field})", path.display()));
        }
        for Output { field, path, format } in &self.outputs {
            let fields = match (field, format) {
                (Some(field), _) => std::slice::from_ref(field),
                (None, Format::Vti) => self.names.as_slice(),
                (None, _) => std::slice::from_ref(&self.shown),
            };
            let values = fields.iter().map(|name| simulation.field(name)).collect::<Result<Vec<_>>>()?;
            let named: Vec<_> = fields.iter().map(String::as_str).zip(&values).collect();
            staged.push(io::write(path, &self.shape, &named, simulation.step(), self.range)?);
            files.push(format!("{} ({})", path.display(), fields.join(", ")));
        }
        // Only when all of them are complete does the first replace what was there.
        for file in staged {
            file.commit()?;
        }
        if let Some(path) = &self.checkpoint {
            simulation.checkpoint(path)?;
            files.push(format!("{} (step {})", path.display(), simulation.step()));
        }
        if let (Some(frames), Some(every)) = (&self.frames, self.every) {
            files.push(format!("{} and on, every {every} steps", frames.path(0).display()));
        }
        Ok(files)
    }

    fn add_frames(&mut self, step: u64, read: &mut dyn FnMut(&str) -> Result<Array>) -> Result<()> {
        for (field, _, movie) in &mut self.movies {
            movie.add(&read(field)?)?;
        }
        let (Some(frames), Some(every)) = (&self.frames, self.every) else { return Ok(()) };
        let path = frames.path(step / every);
        let fields = match (&frames.field, Format::of(&path)?) {
            (Some(field), _) => std::slice::from_ref(field),
            (None, Format::Vti) => self.names.as_slice(),
            (None, _) => std::slice::from_ref(&self.shown),
        };
        let values = fields.iter().map(|name| read(name)).collect::<Result<Vec<_>>>()?;
        if let Some(new) = values.first().and_then(Range::of) {
            self.seen = Some(self.seen.map_or(new, |seen| seen.union(new)));
        }
        let named: Vec<_> = fields.iter().map(String::as_str).zip(&values).collect();
        io::write(&path, &self.shape, &named, step, self.range.or(self.seen))?.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_numbered() {
        let path = |text: &str, number| text.parse::<Frames>().unwrap().path(number);
        assert_eq!(path("out_%05d.png", 42), Path::new("out_00042.png"));
        assert_eq!(path("v=a/%d.npy", 7), Path::new("a/7.npy"));
        for bad in ["out.png", "out_%s.png", "%d%d.png", "out_%5x.png", "%d.gif", "%d.txt", "%99d.png"] {
            assert!(bad.parse::<Frames>().is_err(), "{bad}");
        }
    }
}
