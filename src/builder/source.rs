//! The initial fields of a simulation: whole, or the planes that a process has.

use std::ops::Range;
use std::path::{Path, PathBuf};

use abide_core::backend::{Fields, planes_of};

use super::batch::{axes_of, for_all, started};
use super::{Initial, Values};
use crate::backend::{self, processes};
use crate::io;
use crate::io::checkpoint::{self, Head, Planes};
use crate::program::Problem;
use crate::{Array, DType, Error, Result, Shape};

/// Where the initial fields of a problem come from.
pub(super) struct Source<'a> {
    problem: &'a Problem,
    initial: Vec<(String, Initial)>,
    /// The checkpoint that the run goes on from, and once planes were asked for, the open file.
    resumed: Option<(PathBuf, Head)>,
    open: Option<Planes>,
    notes: Vec<String>,
}

impl<'a> Source<'a> {
    pub fn new(
        problem: &'a Problem,
        initial: Vec<(String, Initial)>,
        resumed: Option<(PathBuf, Head)>,
    ) -> Source<'a> {
        Source { problem, initial, resumed, open: None, notes: Vec::new() }
    }

    /// Returns what was changed to make the values fit.
    pub fn into_notes(self) -> Vec<String> {
        self.notes
    }
}

impl Fields for Source<'_> {
    fn whole(&mut self) -> Result<Vec<Array>> {
        let mut fields = self.all()?;
        fields.iter_mut().enumerate().for_each(|(field, values)| self.problem.round(field, values));
        Ok(fields)
    }

    fn planes(&mut self, field: usize, planes: Range<usize>, own: &Range<usize>) -> Result<Array> {
        let mut values = self.some(field, planes, own)?;
        self.problem.round(field, &mut values);
        Ok(values)
    }

    fn finish(&mut self) -> Result<()> {
        match &self.open {
            Some(open) => open.check(&processes::gather(&open.said())?),
            None => Ok(()),
        }
    }
}

impl Source<'_> {
    /// Makes all fields.
    fn all(&mut self) -> Result<Vec<Array>> {
        let problem = self.problem;
        let Some((path, head)) = &self.resumed else {
            return fill(problem, std::mem::take(&mut self.initial), &mut self.notes);
        };
        let checkpoint = io::checkpoint::read(path)?;
        for (field, &shape) in checkpoint.shapes.iter().enumerate() {
            check_stored(problem, field, shape, path)?;
        }
        match checkpoint.head == *head {
            true => Ok(checkpoint.fields),
            false => Err(checkpoint::changed(path)),
        }
    }

    /// Makes planes of a field, as [`Fields::planes`] says.
    fn some(&mut self, field: usize, planes: Range<usize>, own: &Range<usize>) -> Result<Array> {
        let problem = self.problem;
        if let Some((path, head)) = &self.resumed {
            if self.open.is_none() {
                self.open = Some(Planes::open(path, head)?);
            }
            let Some(open) = &mut self.open else { return Err(checkpoint::changed(path)) };
            let (values, shape) = open.read(field, planes, own)?;
            check_stored(problem, field, shape, path)?;
            return Ok(values);
        }
        let (name, shape) = (&problem.program.fields()[field], problem.shape_of(field)?);
        let all = shape.extents()[0];
        let start = |start: &crate::Start| start.fill_planes(&shape, problem.dtype, planes.clone());
        match self.initial.iter().rfind(|(field, _)| field == name) {
            None => start(problem.program.start(field)),
            Some((_, Initial::Start(own))) => start(own),
            Some((_, Initial::Values(given))) => {
                check_given(problem, name, given, shape)?;
                if given.values.len() != problem.values_of(field) {
                    backend::check_field(problem, field, &given.values)?;
                }
                let values = planes_of(&given.values, all, planes)?;
                typed(problem, name, values, &mut self.notes)
            }
            Some((_, Initial::File(path))) => {
                let loaded = io::read_planes(path, problem.dtype, planes)?;
                check_read(path, loaded.shape, shape)?;
                typed(problem, name, loaded.values, &mut self.notes)
            }
        }
    }
}

/// Checks the extents of a field of a checkpoint.
fn check_stored(problem: &Problem, field: usize, shape: Shape, path: &Path) -> Result<()> {
    if shape == problem.shape_of(field)? {
        return Ok(());
    }
    Err(Error::file(
        path,
        "a field has not the extents of the program's",
        "give a checkpoint of this program",
    ))
}

/// Checks the extents that values have of their own.
fn check_given(problem: &Problem, name: &str, given: &Values, shape: Shape) -> Result<()> {
    match given.shape(name, &axes_of(problem))?.filter(|own| *own != shape) {
        None => Ok(()),
        Some(own) => Err(Error::invalid(
            format!("input of field {name}"),
            format!("its size is {own}, the field's is {shape}"),
            "give inputs of the field's size",
        )),
    }
}

/// Checks the extents that a field has in a file.
fn check_read(path: &Path, own: Shape, shape: Shape) -> Result<()> {
    if own == shape {
        return Ok(());
    }
    let message = format!("its size is {own}, the field's is {shape}");
    Err(Error::file(path, message, "give inputs of the field's size"))
}

/// Makes the initial fields in the program's order; `notes` state what was changed to make the values fit.
fn fill(
    problem: &Problem,
    mut initial: Vec<(String, Initial)>,
    notes: &mut Vec<String>,
) -> Result<Vec<Array>> {
    let mut fields = Vec::new();
    for (number, name) in problem.program.fields().iter().enumerate() {
        // Of several inputs for one field the last counts, so the others stay in their order.
        let own = initial.iter().rposition(|(field, _)| field == name).map(|at| initial.remove(at).1);
        let shape = problem.shape_of(number)?;
        fields.push(match own {
            None => started(problem, problem.program.start(number), &shape)?,
            Some(Initial::Start(start)) => started(problem, &start, &shape)?,
            Some(Initial::Values(given)) => {
                check_given(problem, name, &given, shape)?;
                for_all(problem, number, typed(problem, name, given.values, notes)?)?
            }
            Some(Initial::File(path)) => {
                let loaded = io::read_as(&path, problem.dtype, &axes_of(problem))?;
                check_read(&path, loaded.shape, shape)?;
                for_all(problem, number, typed(problem, name, loaded.values, notes)?)?
            }
        });
    }
    backend::check_fields(problem, &fields)?;
    Ok(fields)
}

/// Returns the values in the run's type; where they are rounded, a note says so.
fn typed(problem: &Problem, name: &str, values: Array, notes: &mut Vec<String>) -> Result<Array> {
    if values.dtype() == problem.dtype {
        return Ok(values);
    }
    let note = format!("field {name}: input in f64 rounded to f32, the run's type");
    // Planes of a field may be made in several pieces.
    if problem.dtype == DType::F32 && !notes.contains(&note) {
        notes.push(note);
    }
    values.cast(problem.dtype)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Planes of starts, arrays, files of both types and orders, and pictures are those of the whole fields.
    #[test]
    fn planes_are_those_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let program = abide_core::catalogue::find("gray-scott").unwrap().program(2).unwrap();
        let shape = Shape::new(&[11, 6]).unwrap();
        let problem = Problem::new(Arc::new(program), shape, DType::F32).unwrap();
        let doubles = Array::from_fn(DType::F64, 66, |i| 1.0 / (3 + i) as f64);
        io::npy::write(&path("u.npy"), &shape, &doubles).unwrap().commit().unwrap();
        io::write(&path("u.png"), &shape, &[("u", &doubles)], 0, None).unwrap().commit().unwrap();
        type Make = fn(&Path, &Array) -> Vec<(String, Initial)>;
        let initials: [Make; 4] = [
            |_, _| Vec::new(),
            |_, _| vec![("u".to_owned(), Initial::Start("random:7".parse().unwrap()))],
            |_, given| vec![("v".to_owned(), Initial::Values(given.clone().into()))],
            |folder, _| {
                ["npy", "png"]
                    .map(|end| ("u".to_owned(), Initial::File(folder.join(format!("u.{end}")))))
                    .into()
            },
        ];
        for make in initials {
            let source = || Source::new(&problem, make(folder.path(), &doubles), None);
            let mut whole = source();
            let fields = whole.whole().unwrap();
            let mut parts = source();
            for (field, values) in fields.iter().enumerate() {
                for planes in [0..11, 0..4, 3..11, 10..11] {
                    let own = parts.planes(field, planes.clone(), &(0..11)).unwrap();
                    assert!(own.same_bits(&planes_of(values, 11, planes).unwrap()));
                }
            }
            parts.finish().unwrap();
            assert_eq!(parts.into_notes(), whole.into_notes());
        }
    }
}
