//! Simulations: made from a model, options and arrays, run, and freed.

mod arrays;
mod bound;
mod device;
mod queries;
mod records;
mod run;

use std::ffi::c_char;

use abide::Simulation;
use abide::io::{self, Loaded};

use crate::handle::{Guarded, free};
use crate::model::AbideModel;
use crate::options::{self, AbideOptions};
use crate::status::{AbideStatus, Outcome, face};
use crate::text::{array, given, hand_out, text};
use crate::view::{AbideView, Memory};

pub use arrays::*;
pub use bound::*;
pub use queries::*;
pub use records::*;
pub use run::*;

use bound::Bound;

/// A simulation in progress.
pub struct AbideSimulation {
    guarded: Guarded<State>,
}

/// A simulation with what its handle keeps beside it.
struct State {
    simulation: Simulation,
    /// The caller's arrays, by their fields.
    bound: Vec<Bound>,
    /// Rows of the record that the caller has not taken yet.
    rows: Vec<(u64, Vec<f64>)>,
    /// The last run's report as JSON, made when it is asked for.
    report: Option<abide::RunReport>,
}

impl State {
    /// Returns the extents of a field; those of a batch begin with the number of members.
    fn extents(&self, field: &str) -> Outcome<Vec<usize>> {
        let problem = self.simulation.problem();
        let shape = problem.shape_of(problem.program.field(field)?)?;
        Ok(io::extents(problem.is_batch().then_some(problem.members()), &shape))
    }
}

/// The initial values of a field.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AbideInput {
    /// The field's name.
    pub field: *const c_char,
    /// Its values, in the host's memory. They are copied.
    pub values: AbideView,
}

/// Makes a simulation ready on a device. `options` may be null. `inputs` has the initial values of `count` fields; a field
/// without takes the option `input` or the model's own start. Where neither the option `size` nor a model's text gives the
/// size, the first input does. `abide_simulation_free` frees it.
///
/// # Safety
///
/// `model` is a handle, and `options` is one or null; `inputs` points to `count` inputs whose views describe arrays; `simulation` is the
/// address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_new(
    model: *const AbideModel,
    options: *const AbideOptions,
    inputs: *const AbideInput,
    count: usize,
    simulation: *mut *mut AbideSimulation,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        let (model, own, inputs) =
            unsafe { (given(model, "model")?, options::of(options)?, array(inputs, count, "inputs")?) };
        let builder = Simulation::builder(model.model.clone());
        let mut builder = options::apply_run(builder, &options::of_text(&model.options), &own)?;
        for input in inputs {
            // SAFETY: as promised.
            let (field, values) = unsafe {
                let field = text(input.field, "the field of an input")?;
                (field, loaded(&input.values, &format!("the input of field {field}"))?)
            };
            builder = builder.input(field, values);
        }
        let state = State { simulation: builder.build()?, bound: Vec::new(), rows: Vec::new(), report: None };
        let made = AbideSimulation { guarded: Guarded::new("the simulation", state) };
        // SAFETY: as promised.
        unsafe { hand_out(made, simulation, "simulation") }
    })
}

/// Copies the values of an input.
///
/// # Safety
///
/// The view describes an array.
unsafe fn loaded(view: &AbideView, what: &str) -> Outcome<Loaded> {
    let view = view.checked(what)?;
    if view.memory != Memory::Host {
        let change = "give them in the host's memory, or write the field once the simulation is there";
        return Err(crate::status::invalid(what, "its values lie on a device", change));
    }
    // Four axes are a batch's.
    let (members, extents) = match view.extents() {
        [members, rest @ ..] if rest.len() == 3 => (Some(*members), rest),
        all => (None, all),
    };
    let shape = abide::Shape::new(extents)?;
    // SAFETY: as promised.
    Ok(Loaded { values: unsafe { view.gather() }?, shape, members })
}

/// Frees a simulation. A null pointer is ignored. One that is at work is not freed, and `abide_last_error` says so.
///
/// # Safety
///
/// `simulation` is null, or a handle that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_simulation_free(simulation: *mut AbideSimulation) {
    // SAFETY: as promised.
    unsafe { free(simulation, |simulation| &simulation.guarded) }
}

/// Calls `work` with the state of a handle.
///
/// # Safety
///
/// `simulation` is null or a handle.
unsafe fn with(
    simulation: *const AbideSimulation,
    work: impl FnOnce(&mut State) -> Outcome<()>,
) -> AbideStatus {
    // SAFETY: as promised.
    face(|| unsafe { given(simulation, "simulation") }?.guarded.with(work))
}
