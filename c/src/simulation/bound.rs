//! Fields bound to the caller's arrays, which are packed before steps and unpacked after them.

use std::ffi::c_char;

use super::{AbideSimulation, State, with};
use crate::status::{AbideStatus, Outcome, invalid};
use crate::text::text;
use crate::view::{AbideView, Checked};

/// A field and the caller's array for it.
pub(super) struct Bound {
    field: String,
    array: Checked,
}

/// Binds a field to an array of its extents, which `abide_simulation_pack` reads and `abide_simulation_unpack` writes. A field
/// that is bound already is bound anew; a null `array` lets it go. Nothing is copied now.
///
/// # Safety
///
/// `simulation` is a handle; `field` is a string; `array` is null or describes an array that is there until the field is
/// bound anew, or the simulation is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_bind(
    simulation: *mut AbideSimulation,
    field: *const c_char,
    array: *const AbideView,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let field = text(field, "the name of a field")?;
            state.simulation.problem().program.field(field)?;
            let bound = match array.as_ref() {
                None => None,
                Some(array) => {
                    let array = state.for_field(field, array)?;
                    array.check_places(&format!("the array of field {field}"))?;
                    Some(Bound { field: field.to_owned(), array })
                }
            };
            state.bound.retain(|other| other.field != field);
            state.bound.extend(bound);
            Ok(())
        })
    }
}

/// Copies bound arrays into their fields: that of `field`, or all of them where `field` is null.
///
/// # Safety
///
/// `simulation` is a handle; `field` is null or a string; nobody writes the arrays meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_pack(
    simulation: *mut AbideSimulation,
    field: *const c_char,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            each(state, field, |state, bound| state.write_from(&bound.field, &bound.array))
        })
    }
}

/// Copies fields into their bound arrays: `field`, or all that are bound where it is null. Values of the caller's arrays that
/// the descriptions leave out, such as fringes, stay as they are.
///
/// # Safety
///
/// `simulation` is a handle; `field` is null or a string; nobody uses the arrays meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_unpack(
    simulation: *mut AbideSimulation,
    field: *const c_char,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| each(state, field, |state, bound| state.read_to(&bound.field, &bound.array)))
    }
}

/// Does something for each bound array that is asked for.
///
/// # Safety
///
/// `field` is null or a string.
unsafe fn each(
    state: &mut State,
    field: *const c_char,
    work: impl Fn(&mut State, &Bound) -> Outcome<()>,
) -> Outcome<()> {
    let asked = match field.is_null() {
        true => None,
        // SAFETY: as promised.
        false => Some(unsafe { text(field, "the name of a field") }?),
    };
    let bound = std::mem::take(&mut state.bound);
    let found = bound.iter().filter(|bound| asked.is_none_or(|asked| bound.field == asked));
    let (mut count, mut outcome) = (0, Ok(()));
    for bound in found {
        count += 1;
        outcome = outcome.and_then(|()| work(state, bound));
    }
    state.bound = bound;
    outcome?;
    match (count, asked) {
        (0, Some(field)) => {
            state.simulation.problem().program.field(field)?;
            Err(invalid(
                format!("field {field}"),
                "no array is bound to it",
                "bind one by abide_simulation_bind",
            ))
        }
        (0, None) => Err(invalid(
            "the simulation",
            "no array is bound to a field",
            "bind one by abide_simulation_bind",
        )),
        _ => Ok(()),
    }
}
