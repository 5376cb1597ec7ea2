//! The files that grow with a run: numbered frames, movies, and files of several steps. A thread writes them beside the run.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use abide::backend::processes;
use abide::io::hdf5::{Layout, Series, Variable};
use abide::io::{
    self, Background, Collection, Colours, Format, Movie, Numbered, Provenance, Snapshot, Staged,
};
use abide::program::Problem;
use abide::{Error, Result};
use abide_core::units::count;

/// Numbered files: `out_%05d.png`.
#[derive(Clone)]
pub struct Frames {
    pub field: Option<String>,
    pub names: Numbered,
}

impl FromStr for Frames {
    type Err = Error;

    fn from_str(text: &str) -> Result<Frames> {
        let (field, rest) = super::named(text);
        let frames = Frames { field: field.map(str::to_owned), names: rest.parse()? };
        let format = frames.format()?;
        match format.grows() {
            true => Err(Error::invalid(
                format!("frames `{text}`"),
                format!("a .{} holds all frames in one file: use --output", format.extensions()[0]),
                "write them like out_%05d.png",
            )),
            false => Ok(frames),
        }
    }
}

impl Frames {
    /// Returns the format of the files.
    pub fn format(&self) -> Result<Format> {
        Format::of(&self.names.path(0))
    }
}

/// A step of a run, for the files that grow.
pub struct Frame {
    /// The fields that any file has of it.
    pub snapshot: Snapshot<'static>,
    /// The number of its numbered file; `None` where it has none.
    pub number: Option<u64>,
    /// The colours of its numbered picture.
    pub colours: Colours,
    /// Whether movies and files of several steps have it.
    pub is_of_movies: bool,
    pub is_of_series: bool,
}

/// Numbered files and the fields in each.
struct Numbers {
    frames: Frames,
    fields: Vec<String>,
    first: u64,
    /// The `.pvd` beside `.vti` files, from the first of them on.
    collection: Option<Collection>,
}

/// A file that grows, until a fault ends it.
struct Grown<F> {
    path: PathBuf,
    fields: Vec<String>,
    file: Option<F>,
}

/// Faults that the run has not reported yet.
type News = Arc<Mutex<Vec<Error>>>;

/// All files that grow.
struct Files {
    numbers: Option<Numbers>,
    movies: Vec<Grown<Movie>>,
    series: Vec<Grown<Series>>,
    lost: u64,
    news: News,
}

impl Files {
    fn add(&mut self, frame: Frame) {
        let Frame { snapshot, number, colours, is_of_movies, is_of_series } = frame;
        let mut news = Vec::new();
        for movie in self.movies.iter_mut().filter(|_| is_of_movies) {
            let own = picked(&snapshot, &movie.fields);
            let add = |film: &mut Movie| {
                own.fields.iter().try_for_each(|field| film.add(&field.values, &field.name, own.step))
            };
            news.extend(movie.grow(add));
        }
        for series in self.series.iter_mut().filter(|_| is_of_series) {
            let own = picked(&snapshot, &series.fields);
            news.extend(series.grow(|file| file.add(&own)));
        }
        if let (Some(numbers), Some(number)) = (&mut self.numbers, number)
            && let Err(fault) = numbers.write(&snapshot, number, colours)
        {
            self.lost += 1;
            // A full disk causes many.
            if self.lost == 1 {
                news.push(fault);
            }
        }
        self.news.lock().unwrap_or_else(PoisonError::into_inner).extend(news);
    }
}

impl<F> Grown<F> {
    /// Does something with the file; a fault ends it and is returned.
    fn grow(&mut self, work: impl FnOnce(&mut F) -> Result<()>) -> Option<Error> {
        let fault = work(self.file.as_mut()?).err()?;
        self.file = None;
        Some(fault)
    }

    fn words(&self) -> String {
        format!("{} ({})", self.path.display(), self.fields.join(", "))
    }
}

impl Numbers {
    fn write(&mut self, snapshot: &Snapshot<'_>, number: u64, colours: Colours) -> Result<()> {
        let own = picked(snapshot, &self.fields);
        io::write_as(&self.frames.names.path(number), &own, colours).and_then(Staged::commit)?;
        if self.frames.format()? != Format::Vti {
            return Ok(());
        }
        if self.collection.is_none() {
            self.collection = Some(Collection::begin(&self.frames.names, self.first)?);
        }
        self.collection.as_mut().map_or(Ok(()), |collection| collection.add(number, own.time))
    }
}

/// Returns a snapshot of some of its fields.
fn picked<'a>(snapshot: &'a Snapshot<'_>, names: &[String]) -> Snapshot<'a> {
    let field = |name: &String| snapshot.fields.iter().find(|field| field.name == *name);
    let borrowed = |field: &'a io::Placed<'_>| io::Placed {
        name: (&*field.name).into(),
        values: std::borrow::Cow::Borrowed(&*field.values),
        ..*field
    };
    let fields = names.iter().filter_map(field).map(borrowed).collect();
    let Snapshot { members, step, time, .. } = *snapshot;
    Snapshot { members, fields, step, time, scalars: snapshot.scalars.clone(), provenance: None }
}

/// What was asked for, before the run begins.
#[derive(Default)]
pub struct Asked {
    /// Numbered files, and the fields in each. Several processes write parts of a `.npy` each, which is not done here.
    pub numbers: Option<(Frames, Vec<String>)>,
    /// The path and the field of each movie.
    pub movies: Vec<(PathBuf, Vec<String>)>,
    /// The path and the fields of each file of several steps.
    pub series: Vec<(PathBuf, Vec<String>)>,
}

impl Asked {
    /// Returns the fields that a frame has.
    pub fn fields(&self) -> Vec<String> {
        let numbers = self.numbers.iter().map(|(_, fields)| fields);
        let all = numbers.chain(self.movies.iter().chain(&self.series).map(|(_, fields)| fields)).flatten();
        let mut fields: Vec<String> = Vec::new();
        for field in all {
            if !fields.contains(field) {
                fields.push(field.clone());
            }
        }
        fields
    }
}

/// The files in the making. In processes but the first there are none.
pub struct Growing {
    beside: Option<Background<Files, Frame>>,
    news: News,
}

impl Growing {
    /// Begins the files, numbered ones from a number on.
    pub fn begin(
        asked: &Asked,
        problem: &Problem,
        colours: Colours,
        first: u64,
        provenance: Option<&Provenance>,
    ) -> Result<Growing> {
        let news = News::default();
        let fields = asked.fields();
        if fields.is_empty() || !processes::is_first() {
            return Ok(Growing { beside: None, news });
        }
        let members = problem.is_batch().then_some(problem.members());
        let movie = |(path, fields): &(PathBuf, Vec<String>)| -> Result<Grown<Movie>> {
            let shape = problem.shape_of(problem.program.field(&fields[0])?)?;
            let film = Movie::new(path, &io::stacked(path, members, &shape)?, colours)?;
            Ok(Grown { path: path.clone(), fields: fields.clone(), file: Some(film) })
        };
        let series = |(path, fields): &(PathBuf, Vec<String>)| -> Result<Grown<Series>> {
            let variable = |name: &String| {
                let number = problem.program.field(name)?;
                let (shape, space) = (problem.shape_of(number)?, problem.space_of(number));
                Ok(Variable { name: name.clone(), shape, space })
            };
            let scalars = problem.program.scalars().iter().map(|scalar| scalar.name.clone());
            let layout = Layout {
                cells: problem.shape,
                dtype: problem.dtype,
                members,
                fields: fields.iter().map(variable).collect::<Result<_>>()?,
                scalars: if members.is_some() { Vec::new() } else { scalars.collect() },
            };
            let own = provenance.cloned().unwrap_or_default();
            let mut file = Series::begin(path, layout, &own)?;
            file.publish()?;
            Ok(Grown { path: path.clone(), fields: fields.clone(), file: Some(file) })
        };
        let numbers =
            asked.numbers.clone().map(|(frames, fields)| Numbers { frames, fields, first, collection: None });
        let files = Files {
            numbers,
            movies: asked.movies.iter().map(movie).collect::<Result<_>>()?,
            series: asked.series.iter().map(series).collect::<Result<_>>()?,
            lost: 0,
            news: Arc::clone(&news),
        };
        Ok(Growing { beside: Some(Background::new(files, Files::add)), news })
    }

    /// Hands a frame over.
    pub fn add(&mut self, frame: Frame) -> Result<()> {
        self.beside.as_mut().map_or(Ok(()), |beside| beside.add(frame))
    }

    /// Waits until all frames are written.
    pub fn wait(&mut self) -> Result<()> {
        self.beside.as_mut().map_or(Ok(()), |beside| beside.wait(|_| ()))
    }

    /// Returns the faults since the last call.
    pub fn news(&mut self) -> Vec<Error> {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the files, with the digest of the fields after so many steps. Returns those that are to be put in their places, and
    /// those that are there; with the numbered files that were lost.
    pub fn finish(mut self, steps: u64, digest: Option<&str>) -> Result<Ended> {
        let Some(beside) = self.beside.take() else { return Ok(Ended::default()) };
        let files = beside.finish()?;
        let mut ended = Ended { lost: files.lost, ..Ended::default() };
        for mut movie in files.movies {
            let words = movie.words();
            ended.staged.extend(movie.file.take().map(|film| (words, film.finish().map(Some))));
        }
        for mut series in files.series {
            let Some(file) = series.file.take() else { continue };
            let words = format!("{}: {}", series.words(), count(file.frames() as usize, "frame"));
            ended.staged.push((words, file.finish(steps, digest)));
        }
        ended.faults = self.news();
        Ok(ended)
    }
}

/// Files that have ended.
#[derive(Default)]
pub struct Ended {
    /// In words; without a file those that are in their places already.
    pub staged: Vec<(String, Result<Option<Staged>>)>,
    /// Faults that nobody has reported.
    pub faults: Vec<Error>,
    /// Numbered files that could not be written.
    pub lost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_a_field_and_a_format() {
        let frames: Frames = "v=a/%d.npy".parse().unwrap();
        assert_eq!((frames.field.as_deref(), frames.names.path(7)), (Some("v"), PathBuf::from("a/7.npy")));
        for bad in ["out.png", "%d.gif", "%d.h5", "%d.txt", "f%+5d.npy"] {
            assert!(bad.parse::<Frames>().is_err(), "{bad}");
        }
    }
}
