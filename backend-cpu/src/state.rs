//! The values of a plain problem in progress: two arrays for each field that changes, one for each that does not.

use abide_core::backend::{check_field, check_values, check_window, rows_of, write_rows};
use abide_core::floating::standard;
use abide_core::{Array, Error, Problem, Real, Result, memory};
use rayon::prelude::*;

/// The fields and parameters of one domain.
#[derive(Default)]
pub struct State<T> {
    /// The current values of each field.
    pub now: Vec<Vec<T>>,
    /// The array to which a stage writes the new values; empty for a field that no stage writes. Cells that
    /// are not computed always hold the same values here as in `now`.
    pub new: Vec<Vec<T>>,
    pub parameters: Vec<T>,
}

impl<T: Real> State<T> {
    /// Takes over a problem's fields, whose number and sizes have been checked.
    pub fn new(problem: &Problem, fields: Vec<Vec<T>>) -> Result<State<T>> {
        let second = |(field, values): (usize, &Vec<T>)| match problem.program.is_written(field) {
            true => copied(values),
            false => Ok(Vec::new()),
        };
        let new = fields.iter().enumerate().map(second).collect::<Result<_>>()?;
        let parameters = problem.parameters.iter().map(|&value| T::from_f64(value)).collect();
        Ok(State { now: fields, new, parameters })
    }

    pub fn field(&self, problem: &Problem, field: usize) -> Result<&Vec<T>> {
        let names = problem.program.fields();
        self.now.get(field).ok_or_else(|| Error::unknown("field", field.to_string(), names))
    }

    /// Reads the values of a field in a window.
    pub fn window(
        &self,
        problem: &Problem,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
    ) -> Result<Array> {
        let extents = problem.shape.padded();
        let count = check_window(extents, low, high)?.iter().product();
        let values = self.field(problem, field)?;
        let mut window = reserved(count)?;
        rows_of(extents, low, high).for_each(|row| window.extend_from_slice(&values[row]));
        Ok(T::into_array(window))
    }

    pub fn write(&mut self, problem: &Problem, field: usize, values: &Array) -> Result<()> {
        self.field(problem, field)?;
        check_field(problem, field, values)?;
        if let Some(values) = T::slice(values) {
            self.now[field].copy_from_slice(values);
            if !self.new[field].is_empty() {
                self.new[field].copy_from_slice(values);
            }
        }
        Ok(())
    }

    pub fn write_window(
        &mut self,
        problem: &Problem,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        check_values(problem, field, low, high, values)?;
        let extents = problem.shape.padded();
        if let Some(values) = T::slice(values) {
            write_rows(extents, &mut self.now[field], low, high, values);
            if !self.new[field].is_empty() {
                write_rows(extents, &mut self.new[field], low, high, values);
            }
        }
        Ok(())
    }

    pub fn set_parameter(&mut self, problem: &Problem, parameter: usize, value: f64) -> Result<()> {
        let names = problem.program.parameters().iter().map(|p| p.name.as_str());
        match self.parameters.get_mut(parameter) {
            Some(known) => {
                *known = standard(|| T::from_f64(value));
                Ok(())
            }
            None => Err(Error::unknown("parameter", parameter.to_string(), names)),
        }
    }
}

/// Copies values with all threads, which are then the first to touch the memory; an error where there is not
/// enough memory.
pub fn copied<T: Real>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = reserved(values.len())?;
    copy.par_extend(values.par_iter().copied());
    Ok(copy)
}

/// Returns an empty vector with room for `len` values; an error where there is not that much memory.
fn reserved<T: Real>(len: usize) -> Result<Vec<T>> {
    memory::reserved(len, "a field", "choose a smaller size or f32")
}
