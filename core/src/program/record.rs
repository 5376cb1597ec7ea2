//! The record of a run: computed scalars, and single values of fields, every so many steps.

use std::ops::Range;

use super::{Problem, Program, Scalar};
use crate::error::{Error, Result};
use crate::memory;
use crate::real::Array;

/// What a run records, and how often. A row holds the scalars, and then the probed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Steps between rows, 1 or more. Rows are due at its multiples, counted from the start; those before a
    /// checkpoint count too.
    pub every: u64,
    /// The numbers of the recorded scalars among [`Program::scalars`].
    pub scalars: Vec<usize>,
    /// The values of fields that are recorded.
    pub probes: Vec<Probe>,
}

/// A single value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The field's number.
    pub field: usize,
    /// The index of the value along the padded three axes, slowest first.
    pub index: [usize; 3],
}

impl Record {
    /// Records every scalar that a program computes, `time` first, then the others in the program's order, and
    /// these probes. A scalar that is an extent of the domain never changes, and is left out, as are internal ones.
    pub fn new(program: &Program, every: u64, probes: Vec<Probe>) -> Record {
        let varies = |scalar: &Scalar| scalar.extent.is_none() && !scalar.is_internal;
        let all = program.scalars().iter().enumerate().filter(|(_, scalar)| varies(scalar));
        let (mut scalars, others): (Vec<usize>, Vec<usize>) =
            all.map(|(number, _)| number).partition(|&number| program.scalars()[number].name == "time");
        scalars.extend(others);
        Record { every, scalars, probes }
    }

    /// Returns the names of the columns: `step`, the scalars, and the probes as `u@12,40`.
    pub fn columns(&self, program: &Program) -> Vec<String> {
        let scalars = self.scalars.iter().map(|&scalar| program.scalars()[scalar].name.clone());
        let probes = self.probes.iter().map(|probe| probe.name(program));
        std::iter::once("step".to_owned()).chain(scalars).chain(probes).collect()
    }

    /// Returns the number of values of a row, the step aside.
    pub fn width(&self) -> usize {
        self.scalars.len() + self.probes.len()
    }

    /// Returns the steps from one, counted from the start, to the next at which a row is due; at least 1.
    pub fn until_due(&self, step: u64) -> u64 {
        let every = self.every.max(1);
        every - step % every
    }

    /// Returns the number of rows that are due after step `from` up to step `to`.
    pub fn due_between(&self, from: u64, to: u64) -> u64 {
        let every = self.every.max(1);
        to / every - from / every
    }

    /// Returns the row of the values before the first step: of the fields given, and of the problem's scalars.
    pub fn first(&self, problem: &Problem, fields: &[Array]) -> Result<Rows> {
        self.first_with(problem, |probe| {
            let position = probe.position(problem.extents_of(probe.field));
            Ok(fields[probe.field].get(position).unwrap_or(f64::NAN))
        })
    }

    /// Returns the row of [`Record::first`], where `probed` returns the value of a probe.
    pub(crate) fn first_with(
        &self,
        problem: &Problem,
        probed: impl FnMut(&Probe) -> Result<f64>,
    ) -> Result<Rows> {
        let scalars = self.scalars.iter().map(|&scalar| problem.scalars[scalar]);
        let probed = self.probes.iter().map(probed).collect::<Result<Vec<_>>>()?;
        let mut rows = Rows::new(self.width());
        rows.push(problem.first_step, scalars.chain(probed))?;
        Ok(rows)
    }

    /// Checks that the record fits a problem.
    pub(super) fn check(&self, problem: &Problem) -> Result<()> {
        let program = &problem.program;
        if self.every == 0 {
            return Err(Error::limit(
                "steps between rows of the record",
                0,
                "1 or more",
                "record every step",
            ));
        }
        if self.width() == 0 {
            return Err(Error::invalid(
                "the record",
                format!("{} computes no scalar, and no value of a field is named", program.name()),
                format!(
                    "add a probe, as in {}@{}, or a program's scalar",
                    program.fields()[program.shown()],
                    vec!["0"; program.dimensions()].join(",")
                ),
            ));
        }
        let scalars = program.scalars();
        if let Some(&number) = self.scalars.iter().find(|&&number| number >= scalars.len()) {
            let names = scalars.iter().map(|scalar| &scalar.name);
            return Err(Error::unknown("scalar", number.to_string(), names));
        }
        self.probes.iter().try_for_each(|probe| probe.check(problem))
    }
}

impl Probe {
    /// Makes the probe of a field's value at an index, slowest axis first, with one number for each axis of
    /// the program.
    pub fn new(program: &Program, field: &str, index: &[usize]) -> Result<Probe> {
        let number = program.field(field)?;
        let dimensions = program.dimensions();
        if index.len() != dimensions {
            return Err(Error::limit(
                format!("indices of the probe of {field}"),
                index.len(),
                format!("{dimensions}, one for each axis of {}", program.name()),
                "give the indices of one value, slowest axis first",
            ));
        }
        let mut padded = [0; 3];
        padded[3 - dimensions..].copy_from_slice(index);
        Ok(Probe { field: number, index: padded })
    }

    /// Reads `FIELD@I,J,K`, as in `u@12,40`: the name and the indices.
    pub fn parse(text: &str) -> Result<(String, Vec<usize>)> {
        let parsed = text.rsplit_once('@').and_then(|(field, index)| {
            let index = index.split(',').map(|i| i.trim().parse().ok()).collect::<Option<Vec<usize>>>()?;
            (!field.trim().is_empty()).then(|| (field.trim().to_owned(), index))
        });
        parsed.ok_or_else(|| {
            Error::invalid(
                format!("probe `{text}`"),
                "it is no field and the indices of a value",
                "write it like u@12,40, slowest axis first",
            )
        })
    }

    /// Returns the name: the field's, and the indices along the program's axes.
    pub fn name(&self, program: &Program) -> String {
        let index: Vec<String> =
            self.index[3 - program.dimensions()..].iter().map(usize::to_string).collect();
        format!("{}@{}", program.fields()[self.field], index.join(","))
    }

    /// Returns the window that holds the value alone.
    pub fn window(&self) -> [[usize; 3]; 2] {
        [self.index, self.index.map(|i| i + 1)]
    }

    /// Returns the value's place among all of a field of these extents.
    pub fn position(&self, extents: [usize; 3]) -> usize {
        let [z, y, x] = self.index;
        (z * extents[1] + y) * extents[2] + x
    }

    fn check(&self, problem: &Problem) -> Result<()> {
        let program = &problem.program;
        if self.field >= program.fields().len() {
            return Err(Error::unknown("field", self.field.to_string(), program.fields()));
        }
        let extents = problem.extents_of(self.field);
        if (0..3).all(|axis| self.index[axis] < extents[axis]) {
            return Ok(());
        }
        let shape = problem.shape_of(self.field)?;
        Err(Error::limit(
            "index of a probe",
            self.name(program),
            format!("below {shape}, the values of {}", program.fields()[self.field]),
            "give indices counted from 0, slowest axis first",
        ))
    }
}

/// Recorded rows: after which step, and the values, widened to f64.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    width: usize,
    steps: Vec<u64>,
    values: Vec<f64>,
}

impl Rows {
    /// Makes no rows, of so many values each.
    pub fn new(width: usize) -> Rows {
        Rows { width, ..Rows::default() }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds the row of a step, counted from the start. It has as many values as the rows are wide.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where the machine has no memory for it; no row was added.
    pub fn push(&mut self, step: u64, values: impl IntoIterator<Item = f64>) -> Result<()> {
        const CHANGE: &str = "take the rows more often, or record fewer steps";
        let most = self.values.len() + self.width;
        let refused = |_| memory::refused::<f64>(most, "the record", CHANGE);
        self.values.try_reserve(self.width).map_err(refused)?;
        self.steps.try_reserve(1).map_err(refused)?;
        self.steps.push(step);
        self.values.extend(values.into_iter().chain(std::iter::repeat(f64::NAN)).take(self.width));
        Ok(())
    }

    /// Sets the values of the rows behind the first of these steps, up to the last, from a column on, to what `values` returns for
    /// the row's step.
    pub(super) fn fill<'a>(&mut self, steps: Range<u64>, column: usize, values: impl Fn(u64) -> &'a [f64]) {
        let [first, end] =
            [steps.start, steps.end].map(|last| self.steps.partition_point(|&step| step <= last));
        for row in first..end {
            let own = self.values[row * self.width..(row + 1) * self.width].iter_mut().skip(column);
            own.zip(values(self.steps[row])).for_each(|(own, value)| *own = *value);
        }
    }

    /// Returns the rows, and leaves none.
    pub fn take(&mut self) -> Rows {
        let none = Rows::new(self.width);
        std::mem::replace(self, none)
    }

    /// Returns each row: the step, and the values in the order of the columns behind it.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[f64])> {
        let row = |number: usize| &self.values[number * self.width..(number + 1) * self.width];
        self.steps.iter().enumerate().map(move |(number, &step)| (step, row(number)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::catalogue;
    use crate::domain::Shape;
    use crate::real::DType;

    fn problem(name: &str, extents: &[usize]) -> Problem {
        let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
        Problem::new(Arc::new(program), Shape::new(extents).unwrap(), DType::F64).unwrap()
    }

    #[test]
    fn time_stands_second_and_extents_are_left_out() {
        let flat = problem("cloverleaf", &[4, 5]);
        let probe = Probe::new(&flat.program, "xvel0", &[4, 5]).unwrap();
        let record = Record::new(&flat.program, 2, vec![probe]);
        assert_eq!(record.columns(&flat.program)[..3], ["step", "time", "dt"]);
        assert_eq!(record.columns(&flat.program).last().unwrap(), "xvel0@4,5");
        let solid = problem("cloverleaf-3d", &[3, 4, 5]);
        let columns = Record::new(&solid.program, 1, Vec::new()).columns(&solid.program);
        assert!(columns[1] == "time" && !columns.iter().any(|name| name.ends_with("_cells")), "{columns:?}");
    }

    #[test]
    fn rows_are_due_at_multiples_of_all_steps() {
        let record = Record { every: 10, scalars: vec![0], probes: Vec::new() };
        assert_eq!([0, 1, 37, 39, 40].map(|step| record.until_due(step)), [10, 9, 3, 1, 10]);
        assert_eq!(record.due_between(37, 40), 1);
        assert_eq!(record.due_between(40, 59), 1);
        assert_eq!(record.due_between(0, 100), 10);
    }

    #[test]
    fn what_cannot_be_recorded_is_refused() {
        let refusal = |problem: &Problem, record: Record| {
            let problem = Problem { record: Some(record), ..problem.clone() };
            problem.check().unwrap_err().to_string()
        };
        let heat = problem("heat", &[4, 5]);
        let nothing = refusal(&heat, Record::new(&heat.program, 1, Vec::new()));
        assert!(nothing.contains("heat computes no scalar") && nothing.contains("u@0,0"), "{nothing}");
        let beyond = Probe::new(&heat.program, "u", &[4, 4]).unwrap();
        let words = refusal(&heat, Record::new(&heat.program, 1, vec![beyond]));
        assert!(words.contains("u@4,4") && words.contains("4x5"), "{words}");
        // A field on nodes has one value more.
        let flat = problem("cloverleaf", &[4, 5]);
        let record = |field: &str, index| {
            let probe = Probe::new(&flat.program, field, index).unwrap();
            Problem { record: Some(Record::new(&flat.program, 1, vec![probe])), ..flat.clone() }.check()
        };
        assert!(record("xvel0", &[4, 5]).is_ok() && record("density0", &[4, 5]).is_err());
        assert!(refusal(&flat, Record::new(&flat.program, 0, Vec::new())).contains("1 or more"));
        for (field, index) in [("q", &[0, 0][..]), ("u", &[0]), ("u", &[0, 0, 0])] {
            assert!(Probe::new(&heat.program, field, index).is_err(), "{field} {index:?}");
        }
        assert_eq!(Probe::parse("u@12, 40").unwrap(), ("u".to_owned(), vec![12, 40]));
        for bad in ["u", "u@", "@1,2", "u@1,-2", "u@1;2", "u@1,"] {
            assert!(Probe::parse(bad).is_err(), "{bad}");
        }
    }
}
