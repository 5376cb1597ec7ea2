//! What a simulation is, and its parameters and scalars.

use std::ffi::c_char;
use std::path::Path;

use super::{AbideSimulation, State, with};
use crate::status::{AbideStatus, Outcome, invalid};
use crate::text::{place, put, text};
use crate::view::ABIDE_AXES;

/// The name of the backend that runs: `cpu`, `wgpu` or `cuda`.
pub const ABIDE_TEXT_BACKEND: i32 = 0;
/// The name of the device.
pub const ABIDE_TEXT_DEVICE: i32 = 1;
/// The plan that runs, in words.
pub const ABIDE_TEXT_PLAN: i32 = 2;
/// Where the simulation differs from what was asked, and why: a line each.
pub const ABIDE_TEXT_NOTES: i32 = 3;
/// The report of the last run as JSON.
pub const ABIDE_TEXT_REPORT: i32 = 4;

impl State {
    fn text(&self, what: i32) -> Outcome<String> {
        let simulation = &self.simulation;
        match what {
            ABIDE_TEXT_BACKEND => Ok(simulation.backend().to_owned()),
            ABIDE_TEXT_DEVICE => Ok(simulation.plan().device.name.clone()),
            ABIDE_TEXT_PLAN => Ok(simulation.plan().explain()),
            ABIDE_TEXT_NOTES => Ok(simulation.notes().join("\n")),
            ABIDE_TEXT_REPORT => {
                let change = "call abide_simulation_run first";
                let report =
                    self.report.as_ref().ok_or_else(|| invalid("the report", "nothing has run", change))?;
                serde_json::to_string_pretty(report)
                    .map_err(|error| invalid("the report", error.to_string(), change))
            }
            other => Err(invalid(
                "a text of the simulation",
                format!("{other} is none"),
                "give ABIDE_TEXT_BACKEND, _DEVICE, _PLAN, _NOTES or _REPORT",
            )),
        }
    }
}

/// Puts a text about the simulation into a buffer, as `snprintf` does: at most `size` bytes with the NUL that ends it, and
/// the bytes of the whole text without it to `needed`, where that is not null.
///
/// # Safety
///
/// `simulation` is a handle; `buffer` has room for `size` bytes, or both are 0; `needed` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_text(
    simulation: *const AbideSimulation,
    what: i32,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe { with(simulation, |state| put(&state.text(what)?, buffer, size, needed)) }
}

/// Returns the steps done since the start, those before a checkpoint included.
///
/// # Safety
///
/// `simulation` is a handle; `step` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_step(
    simulation: *const AbideSimulation,
    step: *mut u64,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            *place(step, "step")? = state.simulation.step();
            Ok(())
        })
    }
}

/// Returns the number of the program's fields.
///
/// # Safety
///
/// `simulation` is a handle; `count` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_fields(
    simulation: *const AbideSimulation,
    count: *mut usize,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            *place(count, "count")? = state.simulation.problem().program.fields().len();
            Ok(())
        })
    }
}

/// Puts the name of a field, counted from 0, into a buffer as `abide_simulation_text` does.
///
/// # Safety
///
/// As of `abide_simulation_text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_field_name(
    simulation: *const AbideSimulation,
    number: usize,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let names = state.simulation.problem().program.fields();
            let name =
                names.get(number).ok_or_else(|| abide::Error::unknown("field", number.to_string(), names))?;
            put(name, buffer, size, needed)
        })
    }
}

/// Returns the extents of a field, slowest axis first, and their number; those of a batch begin with its members. `extents` has
/// room for 4 numbers; those beyond `axes` become 1.
///
/// # Safety
///
/// `simulation` is a handle; `field` is a string; `axes` points to a number and `extents` to four.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_field_extents(
    simulation: *const AbideSimulation,
    field: *const c_char,
    axes: *mut i32,
    extents: *mut i64,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let own = state.extents(text(field, "the name of a field")?)?;
            *place(axes, "axes")? = own.len() as i32;
            let to = place(extents.cast::<[i64; ABIDE_AXES]>(), "extents")?;
            *to = [1; ABIDE_AXES];
            to.iter_mut().zip(own).for_each(|(to, own)| *to = own as i64);
            Ok(())
        })
    }
}

/// Sets a parameter for the steps that follow.
///
/// # Safety
///
/// `simulation` is a handle; `name` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_set_parameter(
    simulation: *mut AbideSimulation,
    name: *const c_char,
    value: f64,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            Ok(state.simulation.set_parameter(text(name, "the name of a parameter")?, value)?)
        })
    }
}

/// Returns a parameter's value, in a batch that of the first member.
///
/// # Safety
///
/// `simulation` is a handle; `name` is a string; `value` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_parameter(
    simulation: *const AbideSimulation,
    name: *const c_char,
    value: *mut f64,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let (name, problem) = (text(name, "the name of a parameter")?, state.simulation.problem());
            let all = problem.program.parameters();
            let number = all.iter().position(|parameter| parameter.name == name);
            let known = || all.iter().map(|parameter| parameter.name.as_str());
            let number = number.ok_or_else(|| abide::Error::unknown("parameter", name, known()))?;
            *place(value, "value")? = problem.parameters.get(number).copied().unwrap_or(f64::NAN);
            Ok(())
        })
    }
}

/// Returns the current value of a computed scalar, such as `time`.
///
/// # Safety
///
/// As of `abide_simulation_parameter`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_scalar(
    simulation: *mut AbideSimulation,
    name: *const c_char,
    value: *mut f64,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let name = text(name, "the name of a scalar")?;
            *place(value, "value")? = state.simulation.scalar(name)?;
            Ok(())
        })
    }
}

/// Counts the values of all fields that are NaN or infinite, where they lie.
///
/// # Safety
///
/// `simulation` is a handle; `count` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_non_finite(
    simulation: *mut AbideSimulation,
    count: *mut u64,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            *place(count, "count")? = state.simulation.non_finite()?;
            Ok(())
        })
    }
}

/// Writes a checkpoint. A simulation of the same model with the option `resume` goes on from it, to the bit.
///
/// # Safety
///
/// `simulation` is a handle; `path` is a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_checkpoint(
    simulation: *mut AbideSimulation,
    path: *const c_char,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            Ok(state.simulation.checkpoint(Path::new(text(path, "the path of a checkpoint")?))?)
        })
    }
}
