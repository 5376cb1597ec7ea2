//! The files that a run writes: results at the end, and with [`growing`](super::growing) and checkpoints those on the way.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use abide::backend::processes;
use abide::io::{self, Batch, Colours, Format, Movie, Provenance, Range, Snapshot, Staged, Written};
use abide::{DType, Error, Program, Result, Running, Shape, Simulation};

use super::every::Every;
use super::growing::{self, Ended, Frame, Frames, Growing};
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

/// All files that a run writes, in the order in which they were asked for.
pub struct Writer {
    /// Those that are written at the end.
    outputs: Vec<Output>,
    /// Numbered `.npy` files of which several processes write a part each.
    parts: Option<Frames>,
    asked: growing::Asked,
    growing: Option<Growing>,
    frames: Option<Frames>,
    checkpoint: Option<PathBuf>,
    every: Option<Every>,
    colours: Colours,
    /// The range of values in all frames so far, where no range was given: one scale for all frames.
    seen: Option<Range>,
    /// The extents of each field, in a batch those of each member's.
    shapes: Vec<Shape>,
    /// The members of a batch.
    members: Option<usize>,
    names: Vec<String>,
    shown: String,
    /// The number of the first frame.
    first: u64,
    /// Frames of each movie so far.
    movie_frames: u64,
    /// The step of the last frame of a file of several steps.
    last: Option<u64>,
    provenance: Option<Provenance>,
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
        let has = |format: Format| outputs.iter().any(|output| output.format == format);
        let needs = [
            ("--frames", frames.is_some()),
            ("--checkpoint", checkpoint.is_some()),
            ("--output with .gif", has(Format::Gif)),
        ];
        if let (None, Some((what, _))) = (every, needs.iter().find(|(_, asked)| *asked)) {
            return Err(Error::invalid(
                *what,
                "--every is missing",
                "add how often, as in --every 100, or --every time=0.5",
            ));
        }
        let is_needed = has(Format::Hdf5) || needs.iter().any(|(_, asked)| *asked);
        if every.is_some() && !is_every_of_file && !is_needed {
            let change = "add --frames, --checkpoint or a .gif or .h5 --output, or leave it out";
            return Err(Error::invalid("--every", "nothing is written on the way", change));
        }
        let fields = outputs.iter().map(|o| &o.field).chain(frames.map(|f| &f.field));
        for field in fields.flatten() {
            program.field(field)?;
        }
        let whole = |format: Format, field: &Option<String>| format == Format::Vti && field.is_none();
        let frames_format = frames.map(|f| Ok((f.format()?, &f.field))).transpose()?;
        let mut files = outputs.iter().map(|o| (o.format, &o.field)).chain(frames_format);
        let alike = program.kinds().windows(2).all(|pair| pair[0].centring == pair[1].centring);
        if !alike && files.any(|(format, field)| whole(format, field)) {
            return Err(Error::invalid(
                "a .vti file of all fields",
                format!(
                    "the fields of {} stand on cells, faces and nodes, a file on one of them",
                    program.name()
                ),
                "name a field for each file, as in --output pressure=p.vti, or write .h5",
            ));
        }
        let is_grown = |output: &&Output| every.is_some() && output.format.grows();
        let mut writer = Writer {
            outputs: outputs.iter().filter(|output| !is_grown(output)).cloned().collect(),
            parts: None,
            asked: growing::Asked::default(),
            growing: None,
            frames: frames.cloned(),
            checkpoint: checkpoint.map(Path::to_owned),
            every: every.cloned(),
            colours: Colours { is_batch: members.is_some(), ..colours },
            seen: None,
            shapes: vec![shape; program.fields().len()],
            members,
            names: program.fields().to_vec(),
            shown: program.fields()[program.shown()].clone(),
            first: 0,
            movie_frames: 0,
            last: None,
            provenance: None,
            lost: Lost::default(),
        };
        let paths = outputs.iter().map(|output| output.path.clone());
        for path in paths.chain(frames.map(|frames| frames.names.path(0))) {
            if !Format::of(&path)?.has_room_for_members() {
                io::stacked(&path, members, &shape)?;
            }
        }
        for output in outputs.iter().filter(is_grown) {
            let own = (output.path.clone(), writer.fields(output.field.as_ref(), output.format).to_vec());
            match output.format {
                Format::Gif => {
                    Movie::new(&own.0, &io::stacked(&own.0, members, &shape)?, writer.colours)?;
                    writer.asked.movies.push(own);
                }
                _ => writer.asked.series.push(own),
            }
        }
        if let Some(frames) = frames {
            let format = frames.format()?;
            match format == Format::Npy && processes::count() > 1 {
                true => writer.parts = Some(frames.clone()),
                false => {
                    let fields = writer.fields(frames.field.as_ref(), format).to_vec();
                    writer.asked.numbers = Some((frames.clone(), fields));
                }
            }
        }
        Ok(writer)
    }

    /// Returns whether a file says where the result comes from.
    pub fn has_provenance(&self) -> bool {
        let of_outputs = self.outputs.iter().any(|output| output.format.has_provenance());
        of_outputs || !self.asked.series.is_empty()
    }

    /// Returns the bytes that are held at once while files are written: the fields in them, and a picture's
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
        let beside = |format: Format| match format {
            Format::Png => pixels.saturating_mul(3),
            Format::Gif => pixels.saturating_mul(2),
            _ => 0,
        };
        let one = |named: bool, format: Format| match format {
            Format::Npy | Format::Npz => part,
            Format::Vti | Format::Hdf5 if !named => all,
            _ => field.saturating_add(beside(format)),
        };
        let outputs = self.outputs.iter().map(|output| one(output.field.is_some(), output.format));
        // A field at a time is read to write checkpoints, and for a digest.
        let at_end = outputs.fold(part, u64::max);
        let is_movie = !self.asked.movies.is_empty();
        let numbered = self.frames.as_ref().and_then(|frames| frames.format().ok());
        let pixels = numbered.map_or(0, beside).max(if is_movie { beside(Format::Gif) } else { 0 });
        // One frame is written while the next is read.
        let frame = field.saturating_mul(self.asked.fields().len() as u64);
        at_end.max(frame.saturating_mul(2).saturating_add(pixels))
    }

    /// Writes the files that are due before the first step. `provenance` says where the result comes from, where a file says so.
    pub fn begin(&mut self, simulation: &mut Simulation, provenance: Option<Provenance>) -> Result<()> {
        let problem = simulation.problem();
        self.shapes = (0..self.names.len()).map(|field| problem.shape_of(field)).collect::<Result<_>>()?;
        let step = simulation.step();
        self.first = self.every.as_ref().and_then(Every::steps).map_or(0, |steps| step.div_ceil(steps));
        // No earlier, so that a command that ends while a device is being prepared leaves no unfinished file.
        let (first, colours) = (self.first, self.colours);
        self.growing = Some(Growing::begin(&self.asked, problem, colours, first, provenance.as_ref())?);
        self.provenance = provenance;
        self.seen = simulation.pictured();
        if self.every.as_ref().is_none_or(|every| !every.is_due_at_first(step)) {
            return Ok(());
        }
        let number = self.number(step, |name| simulation.scalar(name))?;
        // The files of the run before end with this frame, if they have one.
        self.movie_frames += u64::from(step == 0);
        self.add_frame(number, step == 0, simulation)?;
        simulation.set_pictured(self.seen);
        // What cannot be written at the beginning ends the run.
        match self.growing.as_mut().map_or(Ok(Vec::new()), |growing| growing.wait().map(|()| growing.news()))
        {
            Ok(news) => news.into_iter().next().map_or(Ok(()), Err),
            Err(fault) => Err(fault),
        }
    }

    /// Writes the files that are due after an epoch. A file that cannot be written does not end the run,
    /// whose result may lie elsewhere; the new faults are returned.
    pub fn observe(&mut self, running: &mut Running<'_>) -> Result<Vec<Error>> {
        let mut news = self.growing.as_mut().map_or_else(Vec::new, Growing::news);
        if self.every.as_ref().is_some_and(|every| every.is_due(running)) {
            let step = running.step();
            let number = self.number(step, |name| running.scalar(name))?;
            self.movie_frames += 1;
            if let Some(fault) = of_a_file(self.add_frame(number, true, running))? {
                self.lost.frames += 1;
                if self.lost.frames == 1 {
                    news.push(fault);
                }
            }
            running.set_pictured(self.seen);
        }
        self.lost.faults.extend(news.iter().cloned());
        if let (Some(path), Some(every)) = (&self.checkpoint, &self.every)
            && every.is_due(running)
        {
            // A run that goes on from it has no frames of the steps before.
            self.growing.as_mut().map_or(Ok(()), Growing::wait)?;
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
        let (mut batch, mut notes, mut there) = (Batch::default(), Vec::new(), Vec::new());
        let mut faults = std::mem::take(&mut self.lost.faults);
        if let Some(own) = &mut self.provenance {
            own.steps = simulation.step();
            // A device that fails has no digest, and the faults of what is read from it next say so.
            own.digest = simulation.digest().ok();
        }
        let ended = match self.end(simulation) {
            Ok(ended) => ended,
            Err(fault) => {
                faults.push(fault);
                Ended::default()
            }
        };
        self.lost.frames += ended.lost;
        faults.extend(ended.faults);
        for (words, file) in ended.staged {
            match file.transpose() {
                Some(file) => batch.add(words, file),
                None => there.push(words),
            }
        }
        for output in &self.outputs {
            let fields = self.fields(output.field.as_ref(), output.format);
            let words = format!("{} ({})", output.path.display(), fields.join(", "));
            if let Some(file) = self.result(simulation, output, fields).transpose() {
                batch.add(words, file);
            }
        }
        let Written { mut files, faults: unwritten } = batch.commit();
        files.splice(0..0, there);
        faults.extend(unwritten);
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

    /// Ends the files that grow. A movie has a frame at least, and a file of several steps the last one.
    fn end(&mut self, simulation: &mut Simulation) -> Result<Ended> {
        let Some(mut growing) = self.growing.take() else { return Ok(Ended::default()) };
        let step = simulation.step();
        let is_of_movies = self.movie_frames == 0 && !self.asked.movies.is_empty();
        let is_of_series = self.last != Some(step) && !self.asked.series.is_empty();
        if is_of_movies || is_of_series {
            let snapshot = simulation.snapshot(&self.asked.fields())?;
            growing.add(Frame {
                snapshot,
                number: None,
                colours: self.colours,
                is_of_movies,
                is_of_series,
            })?;
        }
        growing.finish(step, self.provenance.as_ref().and_then(|own| own.digest.as_deref()))
    }

    /// Writes a result; nothing in processes that write no part of it.
    fn result(
        &self,
        simulation: &mut Simulation,
        output: &Output,
        fields: &[String],
    ) -> Result<Option<Staged>> {
        match output.format {
            Format::Npy => simulation.write_npy(&fields[0], &output.path),
            Format::Npz => simulation.write_npz(fields, self.provenance.as_ref(), &output.path),
            _ => {
                let snapshot = simulation.snapshot(fields)?;
                // An error is the same in all processes, and one of them reports it.
                if !processes::is_first() {
                    return Ok(None);
                }
                let provenance = self.provenance.as_ref().map(Cow::Borrowed);
                let snapshot = Snapshot { provenance, ..snapshot };
                io::write_as(&output.path, &snapshot, self.colours).map(Some)
            }
        }
    }

    /// Returns the fields that a file of this format holds.
    fn fields<'a>(&'a self, asked: Option<&'a String>, format: Format) -> &'a [String] {
        match asked {
            Some(field) => std::slice::from_ref(field),
            None if format.holds_all() => &self.names,
            None => std::slice::from_ref(&self.shown),
        }
    }

    /// Returns the number of the frame of a step; 0 where no frames are written.
    fn number(&self, step: u64, scalar: impl FnOnce(&str) -> Result<f64>) -> Result<u64> {
        match (&self.frames, &self.every) {
            (Some(_), Some(every)) => every.number(step, scalar),
            _ => Ok(0),
        }
    }

    /// Hands a frame to the files that grow; `is_new` where movies and files of several steps have none of it yet.
    fn add_frame(&mut self, number: u64, is_new: bool, state: &mut dyn State) -> Result<()> {
        if let Some(frames) = &self.parts {
            let fields = self.fields(frames.field.as_ref(), Format::Npy);
            state.npy(&fields[0], &frames.names.path(number))?.map_or(Ok(()), Staged::commit)?;
        }
        let fields = self.asked.fields();
        let numbered = self.asked.numbers.as_ref().map(|(_, fields)| fields[0].clone());
        if fields.is_empty() || (!is_new && numbered.is_none()) {
            return Ok(());
        }
        let snapshot = state.snapshot(&fields)?;
        // In all processes, because all of them write the checkpoint.
        if let Some(shown) = &numbered {
            let values = snapshot.fields.iter().find(|field| field.name == *shown);
            let new = values.and_then(|field| Range::of(&field.values));
            self.seen = new.map_or(self.seen, |new| Some(self.seen.map_or(new, |seen| seen.union(new))));
        }
        let colours = Colours { range: self.colours.ends(self.seen), ..self.colours };
        if is_new && !self.asked.series.is_empty() {
            self.last = Some(snapshot.step);
        }
        let number = numbered.map(|_| number);
        let frame = Frame { snapshot, number, colours, is_of_movies: is_new, is_of_series: is_new };
        self.growing.as_mut().map_or(Ok(()), |growing| growing.add(frame))
    }
}

/// A simulation whose fields are written: before its first step, or between two epochs.
trait State {
    fn snapshot(&mut self, names: &[String]) -> Result<Snapshot<'static>>;
    fn npy(&mut self, name: &str, path: &Path) -> Result<Option<Staged>>;
}

impl State for Simulation {
    fn snapshot(&mut self, names: &[String]) -> Result<Snapshot<'static>> {
        Simulation::snapshot(self, names)
    }

    fn npy(&mut self, name: &str, path: &Path) -> Result<Option<Staged>> {
        self.write_npy(name, path)
    }
}

impl State for Running<'_> {
    fn snapshot(&mut self, names: &[String]) -> Result<Snapshot<'static>> {
        Running::snapshot(self, names)
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
