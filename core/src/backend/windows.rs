//! Checks of the arrays that sessions are given, and boxes within them.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::program::Problem;
use crate::real::{Array, Real};

/// Checks the arrays given to [`Backend::open`](super::Backend::open) against the problem.
pub fn check_fields(problem: &Problem, fields: &[Array]) -> Result<()> {
    let names = problem.program.fields();
    if fields.len() != names.len() {
        return Err(Error::limit(
            "fields given",
            fields.len(),
            names.len(),
            format!("give one array each for {}", names.join(", ")),
        ));
    }
    fields.iter().enumerate().try_for_each(|(field, array)| check_field(problem, field, array))
}

/// Checks the array of one of the program's fields against the problem.
pub fn check_field(problem: &Problem, field: usize, array: &Array) -> Result<()> {
    let names = problem.program.fields();
    let name = names.get(field).ok_or_else(|| Error::unknown("field", field.to_string(), names))?;
    let (centring, members) = (problem.program.kinds()[field].centring, problem.members());
    let values = problem.values_of(field) * members;
    if array.len() != values {
        return Err(Error::invalid(
            format!("field {name}"),
            match problem.is_batch() {
                true => format!(
                    "it has {} values, {members} members of {} have {values}",
                    array.len(),
                    problem.shape
                ),
                false => format!("it has {} values, the domain {} has {values}", array.len(), problem.shape),
            },
            if problem.is_batch() {
                "give one value for each of all members' values".to_owned()
            } else if centring.is_cell() {
                "give one value for each cell".to_owned()
            } else {
                format!("give {:?} values, one for each of the {centring}", problem.extents_of(field))
            },
        ));
    }
    if array.dtype() != problem.dtype {
        return Err(Error::invalid(
            format!("field {name}"),
            format!("it is {}, the run is {}", array.dtype(), problem.dtype),
            "cast it with Array::cast",
        ));
    }
    Ok(())
}

/// Checks the values for a window of one of the program's fields, and returns the window's extents.
pub fn check_values(
    problem: &Problem,
    field: usize,
    low: [usize; 3],
    high: [usize; 3],
    values: &Array,
) -> Result<[usize; 3]> {
    let names = problem.program.fields();
    let name = names.get(field).ok_or_else(|| Error::unknown("field", field.to_string(), names))?;
    let window = check_window(problem.extents_of(field), low, high)?;
    let what = || format!("values for a window of field {name}");
    let count = window.iter().product::<usize>() * problem.members();
    if values.len() != count {
        let limit = format!("{count} of {window:?}");
        return Err(Error::limit(what(), values.len(), limit, "give one for each"));
    }
    if values.dtype() != problem.dtype {
        let reason = format!("they are {}, the run is {}", values.dtype(), problem.dtype);
        return Err(Error::invalid(what(), reason, "cast them with Array::cast"));
    }
    Ok(window)
}

/// Checks a window against a field's extents and returns the window's own.
pub fn check_window(extents: [usize; 3], low: [usize; 3], high: [usize; 3]) -> Result<[usize; 3]> {
    let fits = (0..3).all(|a| low[a] < high[a] && high[a] <= extents[a]);
    if !fits {
        return Err(Error::limit(
            "window",
            format!("{low:?}..{high:?}"),
            format!("the field's {extents:?} values"),
            "ask for values of the field",
        ));
    }
    Ok([high[0] - low[0], high[1] - low[1], high[2] - low[2]])
}

/// Returns the values of a window of an array of a field's extents.
pub fn window_of(extents: [usize; 3], array: &Array, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
    let window = check_window(extents, low, high)?;
    let mut values = Array::zeros(array.dtype(), window.iter().product())?;
    match (array, &mut values) {
        (Array::F32(from), Array::F32(to)) => read_rows(extents, from, low, high, to),
        (Array::F64(from), Array::F64(to)) => read_rows(extents, from, low, high, to),
        _ => {}
    }
    Ok(values)
}

fn read_rows<T: Real>(extents: [usize; 3], from: &[T], low: [usize; 3], high: [usize; 3], to: &mut [T]) {
    let width = (high[2] - low[2]).max(1);
    for (row, to) in rows_of(extents, low, high).zip(to.chunks_exact_mut(width)) {
        to.copy_from_slice(&from[row]);
    }
}

/// Replaces the values of a window, which has been checked, in the values of a field of some extents.
pub fn write_rows<T: Real>(
    extents: [usize; 3],
    to: &mut [T],
    low: [usize; 3],
    high: [usize; 3],
    values: &[T],
) {
    let width = (high[2] - low[2]).max(1);
    for (row, from) in rows_of(extents, low, high).zip(values.chunks_exact(width)) {
        to[row].copy_from_slice(from);
    }
}

/// Returns where the rows of a window, which has been checked, lie in a field of some extents.
pub fn rows_of(extents: [usize; 3], low: [usize; 3], high: [usize; 3]) -> impl Iterator<Item = Range<usize>> {
    let start = move |z: usize, y: usize| (z * extents[1] + y) * extents[2] + low[2];
    (low[0]..high[0])
        .flat_map(move |z| (low[1]..high[1]).map(move |y| start(z, y)..start(z, y) + high[2] - low[2]))
}
