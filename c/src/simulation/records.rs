//! The record of a simulation: scalars and probed values, a row for each step that is recorded.

use std::ffi::c_char;

use super::{AbideSimulation, with};
use crate::status::AbideStatus;
use crate::text::{null, place, put};

/// Puts the names of the record's columns behind `step` into a buffer, with commas between them, as `abide_simulation_text`
/// does. There is a record with the options `record-every` or `probe`.
///
/// # Safety
///
/// As of `abide_simulation_text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_columns(
    simulation: *const AbideSimulation,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let columns = state.simulation.columns();
            put(&columns.get(1..).unwrap_or_default().join(","), buffer, size, needed)
        })
    }
}

/// Takes rows of the record: at most `room` of those that were not taken yet, oldest first. `steps` gets the step of each,
/// `values` the values of its columns, row after row, and `rows` how many there were. With a `room` of 0, `rows` gets how many
/// there are.
///
/// # Safety
///
/// `simulation` is a handle; `steps` has room for `room` numbers, `values` for as many times the number of columns; `rows`
/// points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_records(
    simulation: *mut AbideSimulation,
    room: usize,
    steps: *mut u64,
    values: *mut f64,
    rows: *mut usize,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let rows = place(rows, "rows")?;
            let new = state.simulation.records()?;
            state.rows.extend(new.iter().map(|(step, values)| (step, values.to_vec())));
            if room == 0 {
                *rows = state.rows.len();
                return Ok(());
            }
            let width = state.simulation.columns().len().saturating_sub(1);
            if steps.is_null() || (values.is_null() && width > 0) {
                return Err(null("the place of a record's rows"));
            }
            let taken: Vec<_> = state.rows.drain(..room.min(state.rows.len())).collect();
            for (number, (step, row)) in taken.iter().enumerate() {
                *steps.add(number) = *step;
                row.iter()
                    .enumerate()
                    .for_each(|(column, value)| *values.add(number * width + column) = *value);
            }
            *rows = taken.len();
            Ok(())
        })
    }
}
