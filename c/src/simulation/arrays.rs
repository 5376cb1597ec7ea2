//! Values of fields: from and to the caller's arrays, whole or a box of them, and where they lie.

use std::ffi::c_char;

use abide::{Array, DType, Error};
use abide_cpu::HostBuffer;

use super::{AbideSimulation, State, with};
use crate::status::{AbideStatus, Outcome};
use crate::text::{array, given, place, text};
use crate::view::{ABIDE_AXES, ABIDE_HOST, AbideView, Checked, Memory, number_of};

impl State {
    /// Copies a field's values to an array that has been checked.
    ///
    /// # Safety
    ///
    /// The array has room at its places, and nobody uses it meanwhile.
    pub unsafe fn read_to(&mut self, field: &str, to: &Checked) -> Outcome<()> {
        match to.memory {
            // SAFETY: as promised.
            Memory::Cuda(device) => unsafe { super::device::read_to(&self.simulation, field, device, to) },
            Memory::Host => {
                if let Some(buffer) = self.simulation.device_buffer::<HostBuffer>(field)
                    && buffer.dtype() == to.dtype
                {
                    match to.dtype {
                        // SAFETY: the session lies still until this function returns; the rest is as promised.
                        DType::F32 => unsafe { to.scatter_from::<f32>(buffer.values()) },
                        // SAFETY: likewise.
                        DType::F64 => unsafe { to.scatter_from::<f64>(buffer.values()) },
                    }
                    return Ok(());
                }
                // SAFETY: as promised.
                unsafe { to.scatter(&self.simulation.field(field)?) }
            }
        }
    }

    /// Replaces a field's values by those of an array that has been checked.
    ///
    /// # Safety
    ///
    /// The array has values at its places, and nobody writes them meanwhile.
    pub unsafe fn write_from(&mut self, field: &str, from: &Checked) -> Outcome<()> {
        match from.memory {
            // SAFETY: as promised.
            Memory::Cuda(device) => unsafe {
                super::device::write_from(&mut self.simulation, field, device, from)
            },
            // SAFETY: as promised.
            Memory::Host => Ok(self.simulation.write(field, &unsafe { self.typed(from) }?)?),
        }
    }

    /// Returns a copy of an array's values in the type of the run.
    ///
    /// # Safety
    ///
    /// As of [`State::write_from`].
    unsafe fn typed(&self, from: &Checked) -> Outcome<Array> {
        // SAFETY: as promised.
        let values = unsafe { from.gather() }?;
        let dtype = self.simulation.problem().dtype;
        Ok(if values.dtype() == dtype { values } else { values.cast(dtype)? })
    }

    /// Checks an array for all values of a field.
    pub fn for_field(&self, field: &str, view: &AbideView) -> Outcome<Checked> {
        let what = format!("the array of field {field}");
        let checked = view.checked(&what)?;
        checked.expect(&self.extents(field)?, &what)?;
        Ok(checked)
    }

    /// Checks an array of the host's for a box of a field; returns it with the box's corners.
    fn for_window(&self, field: &str, low: &[i64], view: &AbideView) -> Outcome<(Checked, [[usize; 3]; 2])> {
        let what = format!("the array of a window of field {field}");
        let checked = view.checked(&what)?;
        if checked.memory != Memory::Host {
            let change = "give an array of the host's, or one of the whole field";
            return Err(crate::status::invalid(what, "its values lie on a device", change));
        }
        let problem = self.simulation.problem();
        let shape = problem.shape_of(problem.program.field(field)?)?;
        let members = problem.is_batch().then_some(problem.members());
        let own = &checked.extents()[usize::from(members.is_some()).min(checked.extents().len())..];
        let axes = shape.dimensions();
        if own.len() != axes || members.is_some_and(|members| checked.extents()[0] != members) {
            let limit = format!(
                "{axes} of the field{}",
                if members.is_some() { ", behind that of all members" } else { "" }
            );
            let change = "describe a box of the field";
            return Err(
                Error::limit(format!("axes of {what}"), checked.extents().len(), limit, change).into()
            );
        }
        let (mut from, mut to) = ([0; 3], [1; 3]);
        for axis in 0..axes {
            let first = usize::try_from(low[axis]).map_err(|_| {
                Error::limit(format!("low corner of {what}"), low[axis], "0 or more", "count values from 0")
            })?;
            from[3 - axes + axis] = first;
            to[3 - axes + axis] = first.saturating_add(own[axis]);
        }
        Ok((checked, [from, to]))
    }
}

/// Copies a field's values to an array of its extents, in the host's memory or in that of the device which runs the
/// simulation. Host values are rounded to the array's type.
///
/// # Safety
///
/// `simulation` is a handle; `field` is a string; `to` describes an array that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_read(
    simulation: *mut AbideSimulation,
    field: *const c_char,
    to: *const AbideView,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let field = text(field, "the name of a field")?;
            let to = state.for_field(field, given(to, "the array to read to")?)?;
            to.check_places("the array to read to")?;
            state.read_to(field, &to)
        })
    }
}

/// Replaces a field's values by those of an array of its extents, in the host's memory or in that of the device which runs
/// the simulation. Host values are rounded to the type of the run.
///
/// # Safety
///
/// `simulation` is a handle; `field` is a string; `from` describes an array that nobody writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_write(
    simulation: *mut AbideSimulation,
    field: *const c_char,
    from: *const AbideView,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let field = text(field, "the name of a field")?;
            let from = state.for_field(field, given(from, "the array to write from")?)?;
            state.write_from(field, &from)
        })
    }
}

/// Copies the values of a box of a field to an array of the box's extents in the host's memory. `low` has the indices of
/// the box's first value, slowest axis first, one for each axis of the domain.
///
/// # Safety
///
/// As of `abide_simulation_read`; `low` points to a number for each axis of the domain.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_read_window(
    simulation: *mut AbideSimulation,
    field: *const c_char,
    low: *const i64,
    to: *const AbideView,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let field = text(field, "the name of a field")?;
            let low = array(low, state.simulation.problem().shape.dimensions(), "the low corner")?;
            let (to, [from, up_to]) = state.for_window(field, low, given(to, "the array to read to")?)?;
            to.check_places("the array to read to")?;
            to.scatter(&state.simulation.window(field, from, up_to)?)
        })
    }
}

/// Replaces the values of a box of a field by those of an array of the box's extents in the host's memory.
///
/// # Safety
///
/// As of `abide_simulation_write` and `abide_simulation_read_window`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_write_window(
    simulation: *mut AbideSimulation,
    field: *const c_char,
    low: *const i64,
    from: *const AbideView,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let field = text(field, "the name of a field")?;
            let low = array(low, state.simulation.problem().shape.dimensions(), "the low corner")?;
            let (view, [corner, up_to]) =
                state.for_window(field, low, given(from, "the array to write from")?)?;
            let values = state.typed(&view)?;
            Ok(state.simulation.write_window(field, corner, up_to, &values)?)
        })
    }
}

/// Describes where a field's values lie, without a copy: on the CPU in the host's memory, on CUDA in the device's. They may be
/// read, and not written, until the next call that advances the simulation or writes a field.
///
/// # Safety
///
/// `simulation` is a handle; `field` is a string; `view` points to a view.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_map(
    simulation: *mut AbideSimulation,
    field: *const c_char,
    view: *mut AbideView,
) -> AbideStatus {
    // SAFETY: as promised.
    unsafe {
        with(simulation, |state| {
            let (field, view) = (text(field, "the name of a field")?, place(view, "view")?);
            let extents = state.extents(field)?;
            let mapped = match state.simulation.device_buffer::<HostBuffer>(field) {
                Some(buffer) => Some(in_host(&buffer, &extents)),
                None => super::device::mapped(&state.simulation, field, extents.len()),
            };
            *view = mapped.ok_or_else(|| {
                let who = format!("backend {}", state.simulation.backend());
                let change = "copy them by abide_simulation_read";
                Error::unsupported(who, "its values lie in no array of one process", change)
            })?;
            Ok(())
        })
    }
}

/// Describes values in the host's memory without gaps.
fn in_host(buffer: &HostBuffer, own: &[usize]) -> AbideView {
    let (mut extents, mut strides) = ([1; ABIDE_AXES], [0; ABIDE_AXES]);
    let mut stride = 1;
    for (axis, &extent) in own.iter().enumerate().rev() {
        (extents[axis], strides[axis]) = (extent as i64, stride);
        stride *= extent as i64;
    }
    AbideView {
        data: buffer.address().cast_mut(),
        dtype: number_of(buffer.dtype()),
        memory: ABIDE_HOST,
        device: 0,
        axes: own.len() as i32,
        extents,
        strides,
    }
}
