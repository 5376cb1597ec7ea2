//! Checkpoints: an `.npz` that NumPy opens. It holds every field exactly, and `abide.json`, which says what
//! the fields belong to.

mod formulas;
mod planes;

use std::io::{Read, Seek};
use std::path::Path;

use abide_core::backend::Part;
use abide_core::domain::{BoundaryText, Sides};
use abide_core::program::{Member, Named, Problem, check_name};
use abide_core::{Array, Boundaries, Boundary, DType, Error, Result, Shape};
use serde::{Deserialize, Serialize};
use zip::ZipArchive;

use super::parts::Whole;
use super::{Axes, Number, Range, Staged, npy, npz, numbers};

pub use self::formulas::Formulas;

pub use self::planes::{Planes, changed};

const ABOUT: &str = "abide.json";
const FORMAT: &str = "abide-checkpoint";
/// The formulas of the program, as text.
const FORMULAS: &str = "abide.formulas.txt";
/// The version of a plain problem's checkpoint, of any other's, and of a batch's.
const VERSIONS: [u32; 3] = [1, 2, 3];
/// The entries that hold what each member of a batch has of its own. No field has a dot in its name.
const OF_MEMBERS: [&str; 2] = ["abide.parameters", "abide.scalars"];

/// The run that a checkpoint's fields belong to, as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct About {
    format: String,
    version: u32,
    program: String,
    size: Vec<usize>,
    dtype: String,
    /// Per axis from the slowest: the low side and the high.
    boundaries: Vec<[String; 2]>,
    parameters: Vec<(String, Number)>,
    steps: u64,
    fields: Vec<String>,
    /// The digest of the program's formulas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    formulas: Option<String>,
    /// The boundaries of single fields, as they are written on the command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    boundaries_of_fields: Vec<(String, String)>,
    /// The computed scalars. All are texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scalars: Vec<(String, String)>,
    /// The number of members of a batch, whose own values are in entries of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    members: Option<usize>,
    /// The smallest and the largest value in the pictures that the run has written, which share one scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pictured: Option<[f64; 2]>,
}

/// The run that a checkpoint belongs to. Two are equal where their values have the same bits, NaN too.
#[derive(Debug, Clone)]
pub struct Head {
    /// The program's name.
    pub program: String,
    /// The domain.
    pub shape: Shape,
    /// The type of all fields.
    pub dtype: DType,
    /// The boundaries.
    pub boundaries: Boundaries,
    /// The parameters' names and values, in the program's order.
    pub parameters: Vec<(String, f64)>,
    /// The fields' names, in the program's order.
    pub fields: Vec<String>,
    /// Steps done since the start.
    pub steps: u64,
    /// The boundaries that single fields have of their own, in the program's order; empty if none has.
    pub sides: Vec<Sides>,
    /// The computed scalars' names and values, in the program's order.
    pub scalars: Vec<(String, f64)>,
    /// The members of a batch; none where the run is of a single domain.
    pub batch: Vec<Member>,
    /// The formulas of the program.
    pub formulas: Formulas,
    /// The range of values in the pictures that the run has written; `None` where it has written none, or where the
    /// range was given.
    pub pictured: Option<Range>,
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        let all = |head: &Head| {
            let Head { program, shape, dtype, boundaries, fields, steps, sides, formulas, pictured, .. } =
                head.clone();
            (program, shape, dtype, boundaries, fields, steps, sides, formulas, pictured)
        };
        let names = |head: &Head| -> Vec<String> {
            head.parameters.iter().chain(&head.scalars).map(|(name, _)| name.clone()).collect()
        };
        let bits = |head: &Head| -> Vec<u64> {
            let own = head.parameters.iter().chain(&head.scalars).map(|(_, value)| value);
            let members =
                head.batch.iter().flat_map(|member| member.parameters.iter().chain(&member.scalars));
            own.chain(members).map(|value| value.to_bits()).collect()
        };
        let counts = |head: &Head| [head.parameters.len(), head.batch.len()];
        all(self) == all(other)
            && counts(self) == counts(other)
            && names(self) == names(other)
            && bits(self) == bits(other)
    }
}

impl Head {
    /// Returns the number of members of a batch.
    pub fn members(&self) -> Option<usize> {
        (!self.batch.is_empty()).then_some(self.batch.len())
    }
}

/// The state of a run, complete enough to go on from it to the bit.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// The run that the fields belong to.
    pub head: Head,
    /// The fields' values, in the program's order; in a batch of all members, one after another.
    pub fields: Vec<Array>,
    /// The fields' extents, in a batch those of each member's.
    pub shapes: Vec<Shape>,
}

/// Writes a checkpoint of a problem after `steps` steps, whose computed scalars are those of the problem;
/// `field` reads a field by number.
pub fn write(
    path: &Path,
    problem: &Problem,
    steps: u64,
    field: impl FnMut(usize) -> Result<Array>,
) -> Result<Staged> {
    let staged = write_parts(path, problem, steps, &mut Whole { problem, read: field })?;
    staged.ok_or_else(|| foreign(path, "nothing was written".to_owned()))
}

/// Writes this process's part of a checkpoint as [`write()`] does; the other processes write the rest of the fields.
/// Returns the file in the first process, which puts it in its place, and nothing in the others.
///
/// # Errors
///
/// [`Error::File`], the same in all processes; those of reading the fields.
pub fn write_parts(
    path: &Path,
    problem: &Problem,
    steps: u64,
    part: &mut dyn Part,
) -> Result<Option<Staged>> {
    write_pictured(path, problem, steps, None, part)
}

/// Writes a checkpoint as [`write_parts`] does, of a run whose pictures have shown this range so far.
pub fn write_pictured(
    path: &Path,
    problem: &Problem,
    steps: u64,
    pictured: Option<Range>,
    part: &mut dyn Part,
) -> Result<Option<Staged>> {
    let shape = problem.shape;
    let axes = 3 - shape.dimensions()..3;
    let names = problem.program.parameters().iter().map(|p| p.name.clone());
    let scalars = problem.program.scalars().iter().map(|s| s.name.clone());
    let own = problem.program.fields().iter().zip(&problem.sides);
    let own = own.filter(|(_, sides)| **sides != Sides::default());
    let (digest, formulas) = match Formulas::of(&problem.program) {
        Formulas::Known { digest, text } => (Some(digest), text),
        Formulas::Unknown => (None, String::new()),
    };
    let about = About {
        format: FORMAT.to_owned(),
        version: VERSIONS[if problem.is_batch() { 2 } else { usize::from(!problem.is_plain()) }],
        program: problem.program.name().to_owned(),
        size: shape.extents().to_vec(),
        dtype: problem.dtype.to_string(),
        boundaries: axes.map(|axis| problem.boundaries.0[axis].map(|b| b.to_string())).collect(),
        parameters: names.zip(problem.parameters.iter().copied().map(Number)).collect(),
        steps,
        fields: problem.program.fields().to_vec(),
        formulas: digest,
        boundaries_of_fields: own.map(|(name, sides)| (name.clone(), sides.to_string())).collect(),
        scalars: scalars.zip(problem.scalars.iter().map(|&value| numbers::text(value))).collect(),
        members: problem.is_batch().then_some(problem.members()),
        pictured: pictured.map(|range| [range.low, range.high]),
    };
    let json = serde_json::to_vec_pretty(&about).map_err(|e| foreign(path, e.to_string()))?;
    // Entries that are written as they are, and before each field's values what stands before them there.
    let mut entries = vec![(ABOUT.to_owned(), json), (FORMULAS.to_owned(), formulas.into_bytes())];
    for (name, values) in OF_MEMBERS.iter().zip(of_members(problem)).filter(|(_, values)| !values.is_empty())
    {
        let extents = [problem.members(), values.len() / problem.members()];
        let mut bytes = Vec::new();
        npy::encode_as(&mut bytes, &extents, &Array::F64(values))
            .map_err(|e| foreign(path, e.to_string()))?;
        entries.push((format!("{name}.npy"), bytes));
    }
    let all: Vec<usize> = (0..about.fields.len()).collect();
    npz::write_entries(path, problem, entries, &all, part)
}

/// Returns the parameters and the scalars of all members of a batch, one member after another; none otherwise.
fn of_members(problem: &Problem) -> [Vec<f64>; 2] {
    let all = |own: fn(&Member) -> &Vec<f64>| problem.batch.iter().flat_map(own).copied().collect();
    [all(|member| &member.parameters), all(|member| &member.scalars)]
}

/// Reads a checkpoint.
pub fn read(path: &Path) -> Result<Checkpoint> {
    let (reader, length) = super::open(path)?;
    read_from(reader, length, path)
}

/// Reads a checkpoint as [`read`] does, from any source of at most `length` bytes; `path` is named in errors.
pub fn read_from(reader: impl Read + Seek, length: u64, path: &Path) -> Result<Checkpoint> {
    let mut zip = archive(reader, path)?;
    let head = head(&mut zip, length, path)?;
    let axes = axes(head.members(), head.shape.dimensions());
    let (mut fields, mut shapes) = (Vec::new(), Vec::new());
    for name in &head.fields {
        let values = entry(&mut zip, name, length, path, &axes)?;
        check_field(path, &head, name, &values)?;
        fields.push(values.values);
        shapes.push(values.shape);
    }
    Ok(Checkpoint { head, fields, shapes })
}

/// Checks a field, or some planes of one, against the checkpoint that it stands in.
fn check_field(path: &Path, head: &Head, name: &str, read: &super::Loaded) -> Result<()> {
    // A field may stand on the nodes of any axis.
    let pairs = || read.shape.extents().iter().zip(head.shape.extents());
    let fits = read.shape.dimensions() == head.shape.dimensions()
        && pairs().all(|(own, cells)| own == cells || own - 1 == *cells);
    if fits && read.values.dtype() == head.dtype && read.members == head.members() {
        return Ok(());
    }
    let found = format!("field {name} is {} {}", read.shape, read.values.dtype());
    Err(foreign(path, format!("{found}, the checkpoint {} {}", head.shape, head.dtype)))
}

/// Reads what a checkpoint belongs to, without its fields.
pub fn read_head(path: &Path) -> Result<Head> {
    let (reader, length) = super::open(path)?;
    head(&mut archive(reader, path)?, length, path)
}

fn foreign(path: &Path, message: String) -> Error {
    Error::file(path, message, "give a checkpoint that `abide run --checkpoint` wrote")
}

fn archive<R: Read + Seek>(reader: R, path: &Path) -> Result<ZipArchive<R>> {
    ZipArchive::new(reader).map_err(|e| foreign(path, format!("not a checkpoint: {e}")))
}

fn head(zip: &mut ZipArchive<impl Read + Seek>, length: u64, path: &Path) -> Result<Head> {
    let about = zip.by_name(ABOUT).map_err(|e| foreign(path, format!("not a checkpoint: {ABOUT}: {e}")))?;
    let mut text = String::new();
    about.take(1 << 20).read_to_string(&mut text).map_err(|e| foreign(path, format!("{ABOUT}: {e}")))?;
    let about: About = serde_json::from_str(&text).map_err(|e| foreign(path, format!("{ABOUT}: {e}")))?;
    if about.format != FORMAT || !VERSIONS.contains(&about.version) {
        let found = format!("it is {} of version {}", about.format, about.version);
        let [first, .., last] = VERSIONS;
        let known = format!("this program reads {FORMAT} of versions {first} to {last}");
        return Err(foreign(path, format!("{found}, {known}")));
    }
    let names = about.fields.iter().map(|name| (Named::Field, name));
    let names = names.chain(about.parameters.iter().map(|(name, _)| (Named::Other("parameter"), name)));
    let names = names.chain(about.scalars.iter().map(|(name, _)| (Named::Other("scalar"), name)));
    std::iter::once((Named::Program, &about.program))
        .chain(names)
        .try_for_each(|(named, name)| check_name(named, name))
        .map_err(|error| foreign(path, error.to_string()))?;
    let (shape, dtype, boundaries) = domain(&about).map_err(|e| foreign(path, e.to_string()))?;
    let sides = sides(&about, shape.dimensions()).map_err(|e| foreign(path, e.to_string()))?;
    let scalar = |(name, text): &(String, String)| match numbers::value(text) {
        Some(value) => Ok((name.clone(), value)),
        None => Err(foreign(path, format!("{ABOUT}: the scalar {name} is `{text}`"))),
    };
    let scalars = about.scalars.iter().map(scalar).collect::<Result<_>>()?;
    let counts = [about.parameters.len(), about.scalars.len()];
    let batch = about.members.map_or(Ok(Vec::new()), |members| batch(zip, members, counts, length, path))?;
    let About { program, parameters, steps, fields, formulas, pictured, .. } = about;
    let pictured = pictured.filter(|[low, high]| low <= high).map(|[low, high]| Range { low, high });
    let parameters = parameters.into_iter().map(|(name, Number(value))| (name, value)).collect();
    let text = formulas.as_ref().map_or(Ok(String::new()), |_| formulas_text(zip, path))?;
    let formulas = Formulas::read(formulas, text);
    Ok(Head {
        program,
        shape,
        dtype,
        boundaries,
        parameters,
        fields,
        steps,
        sides,
        scalars,
        batch,
        formulas,
        pictured,
    })
}

/// Reads what a checkpoint holds of the text of its formulas.
fn formulas_text(zip: &mut ZipArchive<impl Read + Seek>, path: &Path) -> Result<String> {
    let entry = zip.by_name(FORMULAS).map_err(|e| foreign(path, format!("{FORMULAS}: {e}")))?;
    let mut text = String::new();
    let read = entry.take(formulas::MOST_BYTES as u64).read_to_string(&mut text);
    read.map_err(|e| foreign(path, format!("{FORMULAS}: {e}")))?;
    Ok(text)
}

/// Reads the members of a batch, each of which has so many parameters and scalars.
fn batch(
    zip: &mut ZipArchive<impl Read + Seek>,
    members: usize,
    counts: [usize; 2],
    length: u64,
    path: &Path,
) -> Result<Vec<Member>> {
    // A member has a value in the file at least, so that there are no more of them than bytes.
    if members == 0 || members as u64 > length {
        return Err(foreign(path, format!("{ABOUT}: it claims {members} members")));
    }
    let mut own = [Vec::new(), Vec::new()];
    for ((own, name), count) in own.iter_mut().zip(OF_MEMBERS).zip(counts).filter(|(_, count)| *count > 0) {
        let read = entry(zip, name, length, path, &axes(Some(members), 1))?;
        if read.members != Some(members) || read.shape.cells() != count {
            let message = format!("{name} has {} values of each member, there are {count}", read.shape);
            return Err(foreign(path, message));
        }
        *own = read.values.to_f64();
    }
    let of = |kind: usize, member: usize| {
        own[kind].chunks_exact(counts[kind].max(1)).nth(member).unwrap_or_default().to_vec()
    };
    Ok((0..members).map(|member| Member { parameters: of(0, member), scalars: of(1, member) }).collect())
}

/// Returns how the axes of an entry are to be understood, of domains of so many axes.
fn axes(members: Option<usize>, dimensions: usize) -> Axes {
    members.map_or(Axes::DOMAIN, |members| Axes::of_batch(members, dimensions..=dimensions))
}

/// Returns the boundaries of each field of its own; none if no field has any.
fn sides(about: &About, dimensions: usize) -> Result<Vec<Sides>> {
    if about.boundaries_of_fields.is_empty() {
        return Ok(Vec::new());
    }
    let mut all = vec![Sides::default(); about.fields.len()];
    for (name, text) in &about.boundaries_of_fields {
        let number = about.fields.iter().position(|field| field == name);
        let number = number.ok_or_else(|| Error::unknown("field", name, &about.fields))?;
        all[number] = text.parse::<BoundaryText>()?.sides(dimensions)?;
    }
    Ok(all)
}

fn domain(about: &About) -> Result<(Shape, DType, Boundaries)> {
    let shape = Shape::new(&about.size)?;
    let mut boundaries = Boundaries::all(Boundary::default());
    if about.boundaries.len() != shape.dimensions() {
        return Err(Error::limit(
            "axes with boundaries",
            about.boundaries.len(),
            shape.dimensions(),
            "give one pair each",
        ));
    }
    for (axis, sides) in (3 - shape.dimensions()..3).zip(&about.boundaries) {
        boundaries.0[axis] = [sides[0].parse()?, sides[1].parse()?];
    }
    Ok((shape, about.dtype.parse()?, boundaries))
}

fn entry(
    zip: &mut ZipArchive<impl Read + Seek>,
    name: &str,
    length: u64,
    path: &Path,
    axes: &Axes,
) -> Result<super::Loaded> {
    let mut entry = zip
        .by_name(&format!("{name}.npy"))
        .map_err(|e| Error::file(path, format!("{name}: {e}"), "give a whole checkpoint"))?;
    // The stored entry is no longer than the file, whatever the archive says.
    let size = entry.size().min(length);
    npy::decode_as(&mut entry, size, path, axes)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use std::fs::File;
    use std::io::Write;

    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    use super::*;

    fn problem() -> Problem {
        let program = abide_core::catalogue::find("gray-scott").unwrap().program(2).unwrap();
        let mut problem = Problem::new(Arc::new(program), Shape::new(&[3, 5]).unwrap(), DType::F64).unwrap();
        problem.boundaries =
            Boundaries::parse("y=periodic,x-=constant=0.1,x+=mirror", Boundary::Fixed).unwrap();
        problem.parameters[2] = 0.1 + 0.2;
        problem
    }

    fn values(field: usize) -> Array {
        Array::from_fn(DType::F64, 15, |i| 1.0 / (3 + i + field) as f64)
    }

    #[test]
    fn a_checkpoint_comes_back_to_the_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.npz");
        let problem = problem();
        write(&path, &problem, 37, |n| Ok(values(n))).unwrap().commit().unwrap();
        let read = read(&path).unwrap();
        assert_eq!(read.head, read_head(&path).unwrap());
        assert_eq!(
            (read.head.program.as_str(), read.head.steps, read.head.dtype),
            ("gray-scott", 37, DType::F64)
        );
        assert_eq!(read.head.shape, problem.shape);
        assert_eq!(read.head.boundaries.0[1..], problem.boundaries.0[1..]);
        assert_eq!(read.head.parameters.iter().map(|p| p.1).collect::<Vec<_>>(), problem.parameters);
        assert_eq!(read.head.fields, ["u", "v"]);
        assert_eq!(read.fields, [values(0), values(1)]);
    }

    #[test]
    fn cut_and_spoilt_checkpoints_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.npz");
        write(&path, &problem(), 37, |n| Ok(values(n))).unwrap().commit().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in (0..whole.len()).step_by(7) {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(read(&path), Err(Error::File { .. })), "{length}");
        }
        // Changes one byte of the last field's values: the archive's checksum shows it.
        let at = whole.windows(6).rposition(|w| w == b"\x93NUMPY").unwrap() + 140;
        let mut spoilt = whole.clone();
        spoilt[at] ^= 1;
        std::fs::write(&path, &spoilt).unwrap();
        assert!(matches!(read(&path), Err(Error::File { .. })));
    }

    #[test]
    fn a_field_that_cannot_be_read_is_that_error() {
        let folder = tempfile::tempdir().unwrap();
        let lost = Error::device("cuda", "reading", "lost");
        let result = write(&folder.path().join("c.npz"), &problem(), 0, |_| Err(lost.clone()));
        assert_eq!(result.err(), Some(lost));
    }

    #[test]
    fn a_header_that_nests_deeply_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.npz");
        write(&path, &problem(), 37, |n| Ok(values(n))).unwrap().commit().unwrap();
        let mut old = ZipArchive::new(File::open(&path).unwrap()).unwrap();
        let mut new = ZipWriter::new(File::create(folder.path().join("d.npz")).unwrap());
        for entry in [ABOUT, FORMULAS] {
            new.raw_copy_file(old.by_name(entry).unwrap()).unwrap();
        }
        new.start_file("u.npy", SimpleFileOptions::default().compression_method(CompressionMethod::Stored))
            .unwrap();
        new.write_all(&[b"\x93NUMPY\x01\x00\x1f\x00", &[b'{'; 30][..], b"\n"].concat()).unwrap();
        new.finish().unwrap();
        let error = read(&folder.path().join("d.npz")).unwrap_err().to_string();
        assert!(error.contains("d.npz: not a .npy file"), "{error}");
    }
}
