//! Files that grow a frame at a time.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use abide_core::program::Space;
use abide_core::{Array, DType, Error, Result, Shape};
use rust_hdf5::format::FormatError;

use super::super::{Provenance, Snapshot, Staged, staged};
use super::describe::{Described, ROWS};
use super::image::{Image, aligned};
use super::objects::{Id, Storage, text, whole};
use super::unfit;

/// Where the first part of a file behind its superblock stands.
const BEGIN: u64 = 512;

/// A field as a file holds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its extents, in a batch each member's.
    pub shape: Shape,
    /// Where its values stand.
    pub space: Space,
}

/// What each frame of a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// The extents of the domain.
    pub cells: Shape,
    /// The type of all fields.
    pub dtype: DType,
    /// The number of members of a batch.
    pub members: Option<usize>,
    /// The fields.
    pub fields: Vec<Variable>,
    /// The names of the computed scalars.
    pub scalars: Vec<String>,
}

/// A file in the making: frames are added as the run goes.
///
/// After each frame the file is whole, whatever ends the process. It may be read while it grows, by a reader that opens it anew
/// for each look.
pub struct Series {
    path: PathBuf,
    file: File,
    /// The file under its temporary name, until it is put in its place.
    staged: Option<Staged>,
    layout: Layout,
    described: Described,
    /// Where the next part will stand.
    end: u64,
    /// The two places for descriptions, each with its bytes. The first is next.
    slots: [(u64, u64); 2],
    /// Where the last chunk of each row stands.
    rows: Vec<u64>,
    frames: u64,
}

/// Why a part was not written.
enum Fault {
    System(std::io::Error),
    Form(FormatError),
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        Fault::System(error)
    }
}

impl From<FormatError> for Fault {
    fn from(error: FormatError) -> Fault {
        Fault::Form(error)
    }
}

impl Series {
    /// Begins a file without frames, under a temporary name.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it cannot be written, or where the place is a device or a pipe: the beginning of the file changes
    /// with each frame.
    pub fn begin(path: &Path, layout: Layout, provenance: &Provenance) -> Result<Series> {
        let staged = Staged::new(path)?;
        if !staged.is_beside() {
            let message = "an HDF5 file changes at its beginning, which a device or a pipe cannot";
            return Err(Error::file(path, message, "give a file's name"));
        }
        let file = staged.handle()?;
        let parameters = serde_json::to_string(&provenance.parameters)
            .map_err(|error| Error::file(path, format!("its parameters: {error}"), "write another format"))?;
        let described = Described::of(&layout, provenance, &parameters);
        let rows = vec![0; described.rows.len()];
        let mut series = Series {
            path: path.to_owned(),
            file,
            staged: Some(staged),
            layout,
            described,
            end: BEGIN,
            slots: [(0, 0); 2],
            rows,
            frames: 0,
        };
        series.written(Series::write_pieces)?;
        series.written(Series::commit)?;
        Ok(series)
    }

    /// Puts the file in its place, where it grows from now on. An old file of the name is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where that is not possible.
    pub fn publish(&mut self) -> Result<()> {
        self.staged.take().map_or(Ok(()), Staged::commit)
    }

    /// Returns the number of frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Adds a frame of the fields of the layout, in its order. After an error the file has the frames before, and takes no
    /// other.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where the frame cannot be written; [`Error::Invalid`] where its fields are not those of the layout.
    pub fn add(&mut self, snapshot: &Snapshot<'_>) -> Result<()> {
        self.check(snapshot)?;
        let fields: Vec<&Array> = snapshot.fields.iter().map(|field| &*field.values).collect();
        let scalar = |number: &usize| snapshot.scalars.get(*number).map_or(f64::NAN, |(_, value)| *value);
        let mut row = vec![snapshot.time.to_le_bytes(), snapshot.step.to_le_bytes()];
        row.extend(self.described.scalars.iter().map(|number| scalar(number).to_le_bytes()));
        self.written(|series| {
            for (number, values) in fields.iter().enumerate() {
                series.write_field(number, values.as_bytes())?;
            }
            for (number, value) in row.iter().enumerate() {
                series.write_row(number, value)?;
            }
            series.frames += 1;
            for id in series.described.rows.iter().chain(&series.described.fields) {
                if let Some(values) = series.described.objects.values_mut(*id) {
                    values.extents[0] = series.frames;
                }
            }
            series.show();
            series.commit()
        })
    }

    /// Shows the frames to readers of the image.
    fn show(&mut self) {
        let Described { objects, image: Some(image), fields, .. } = &mut self.described else { return };
        objects.set(image.steps, whole("NSteps", &[self.frames as i64]));
        if self.frames == 2 {
            for shown in &image.fields {
                let name = &self.layout.fields[shown.field].name;
                objects.relink(shown.group, name, fields[shown.field]);
            }
        }
    }

    fn check(&self, snapshot: &Snapshot<'_>) -> Result<()> {
        let fits = snapshot.members == self.layout.members
            && snapshot.fields.len() == self.layout.fields.len()
            && snapshot.fields.iter().zip(&self.layout.fields).all(|(field, own)| {
                let values = self.layout.extents_of(own).iter().product::<u64>();
                (&*field.name, field.shape) == (own.name.as_str(), own.shape)
                    && field.values.dtype() == self.layout.dtype
                    && field.values.len() as u64 == values
            });
        match fits {
            true => Ok(()),
            false => Err(Error::invalid(
                format!("a frame of {}", self.path.display()),
                "its fields are not those that the file began with",
                "give the same fields in each frame",
            )),
        }
    }

    /// Ends the file with the steps done and the digest of the fields. Returns the file where it is not in its place yet.
    ///
    /// # Errors
    ///
    /// [`Error::File`] where it cannot be written.
    pub fn finish(mut self, steps: u64, digest: Option<&str>) -> Result<Option<Staged>> {
        let group = self.described.provenance;
        self.described.objects.set(group, text("steps", &steps.to_string()));
        if let Some(digest) = digest {
            self.described.objects.set(group, text("digest", digest));
        }
        self.written(|series| {
            series.commit()?;
            Ok(series.file.sync_all()?)
        })?;
        Ok(self.staged)
    }

    /// Does something, and makes its fault an error that names the file.
    fn written(&mut self, work: impl FnOnce(&mut Series) -> Result<(), Fault>) -> Result<()> {
        work(self).map_err(|fault| match fault {
            Fault::System(error) => staged::fault(&self.path, &error),
            Fault::Form(error) => unfit(&self.path, &error),
        })
    }

    /// Takes room at the end of the file.
    fn room(&mut self, bytes: u64) -> u64 {
        let at = self.end;
        self.end = aligned(at + bytes);
        at
    }

    fn put(&mut self, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.file.seek(SeekFrom::Start(at))?;
        Ok(self.file.write_all(bytes)?)
    }

    fn write_pieces(&mut self) -> Result<(), Fault> {
        for (id, bytes) in std::mem::take(&mut self.described.pieces) {
            let place = self.room(bytes.len() as u64);
            self.put(place, &bytes)?;
            if let Some(values) = self.described.objects.values_mut(id)
                && let Storage::Piece { at, .. } = &mut values.storage
            {
                *at = place;
            }
        }
        Ok(())
    }

    /// Writes a frame of a field, a chunk after another.
    fn write_field(&mut self, number: usize, bytes: &[u8]) -> Result<(), Fault> {
        let id = self.described.fields[number];
        let shown = self.described.image.iter().flat_map(|image| &image.fields);
        let first =
            shown.filter(|shown| shown.field == number && self.frames == 0).map(|shown| shown.first).next();
        let Some(values) = self.described.objects.values_mut(id) else { return Ok(()) };
        let (extents, element) = (values.extents[1..].to_vec(), u64::from(values.datatype.element_size()));
        let Storage::Chunks { chunk, .. } = &values.storage else { return Ok(()) };
        let chunk = chunk.clone();
        let size = chunk.iter().product::<u64>() * element;
        let grid: Vec<u64> = extents.iter().zip(&chunk[1..]).map(|(n, own)| n.div_ceil(*own)).collect();
        // The axis along which chunks divide a frame; before it a chunk has one index, behind it all.
        let cut = grid.iter().rposition(|count| *count > 1).unwrap_or(0);
        let behind = extents.get(cut + 1..).unwrap_or_default().iter().product::<u64>() * element;
        let run = extents.get(cut).map_or(element, |extent| extent * behind) as usize;
        let mut place = vec![self.frames];
        place.resize(grid.len() + 1, 0);
        for run in bytes.chunks(run.max(1)) {
            for piece in run.chunks(size as usize) {
                let at = self.room(size);
                // What a last chunk has beyond the field is read by nobody.
                self.put(at, piece)?;
                self.index(id, &place, at, size)?;
                if let Some(first) = first {
                    self.index(first, &place[1..], at, size)?;
                }
                for axis in (0..grid.len()).rev() {
                    place[axis + 1] += 1;
                    if place[axis + 1] < grid[axis] {
                        break;
                    }
                    place[axis + 1] = 0;
                }
            }
        }
        Ok(())
    }

    /// Writes the value that an array has in this frame.
    fn write_row(&mut self, number: usize, value: &[u8; 8]) -> Result<(), Fault> {
        let within = self.frames % ROWS;
        if within == 0 {
            let size = ROWS * value.len() as u64;
            let at = self.room(size);
            self.rows[number] = at;
            self.put(at, &vec![0; size as usize])?;
            self.index(self.described.rows[number], &[self.frames / ROWS], at, size)?;
        }
        self.put(self.rows[number] + within * value.len() as u64, value)
    }

    /// Adds a chunk to the index of an array.
    fn index(&mut self, id: Id, place: &[u64], at: u64, bytes: u64) -> Result<(), Fault> {
        let Series { described, file, end, .. } = self;
        let Some(values) = described.objects.values_mut(id) else { return Ok(()) };
        let Storage::Chunks { index, .. } = &mut values.storage else { return Ok(()) };
        index.add(place, at, bytes as u32, &mut |node: Vec<u8>| -> Result<u64, Fault> {
            let at = *end;
            *end = aligned(at + node.len() as u64);
            file.seek(SeekFrom::Start(at))?;
            file.write_all(&node)?;
            Ok(at)
        })
    }

    /// Writes the description of all that is there, and lets the file begin with it.
    fn commit(&mut self) -> Result<(), Fault> {
        let mut image = Image::of(&self.described.objects, self.slots[0].0)?;
        if image.bytes.len() as u64 > self.slots[0].1 {
            // Room to grow: indices have more levels later.
            let bytes = 2 * image.bytes.len() as u64;
            self.slots[0] = (self.room(bytes), bytes);
            image = Image::of(&self.described.objects, self.slots[0].0)?;
        }
        self.put(self.slots[0].0, &image.bytes)?;
        // A reader takes a file that is shorter than it says for a part of one.
        if self.file.metadata()?.len() < self.end {
            self.file.set_len(self.end)?;
        }
        self.put(0, &image.superblock(self.end))?;
        self.slots.swap(0, 1);
        Ok(())
    }
}
