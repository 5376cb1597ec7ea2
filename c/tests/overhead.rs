//! What a call through the interface costs beside the library's own.

use std::ffi::CString;
use std::time::Instant;

use abide::{Choice, DType, Simulation};
use abide_c::{
    ABIDE_OK, AbideModel, AbideOptions, AbideSimulation, abide_model_free, abide_model_named,
    abide_options_free, abide_options_new, abide_options_set, abide_simulation_advance,
    abide_simulation_free, abide_simulation_new,
};

/// The most seconds that a call may add.
const MOST: f64 = 5e-6;

/// Calls between two looks at the clock, and turns of both.
const CALLS: u32 = 50;
const TURNS: usize = 20;

fn handle() -> *mut AbideSimulation {
    let (mut model, mut options) = (std::ptr::null_mut::<AbideModel>(), std::ptr::null_mut::<AbideOptions>());
    let mut simulation = std::ptr::null_mut();
    let text = |text: &str| CString::new(text).unwrap();
    // SAFETY: all texts and places are there.
    unsafe {
        assert_eq!(abide_model_named(text("heat").as_ptr(), &raw mut model), ABIDE_OK);
        assert_eq!(abide_options_new(&raw mut options), ABIDE_OK);
        for (name, value) in [("size", "64x64"), ("dtype", "f64"), ("backend", "cpu")] {
            assert_eq!(abide_options_set(options, text(name).as_ptr(), text(value).as_ptr()), ABIDE_OK);
        }
        let made = abide_simulation_new(model, options, std::ptr::null(), 0, &raw mut simulation);
        assert_eq!(made, ABIDE_OK);
        abide_options_free(options);
        abide_model_free(model);
    }
    simulation
}

/// Returns the seconds of a call.
fn seconds(mut call: impl FnMut()) -> f64 {
    let begun = Instant::now();
    (0..CALLS).for_each(|_| call());
    begun.elapsed().as_secs_f64() / f64::from(CALLS)
}

/// Returns the least seconds of a call of so many steps by the library, and by the interface.
fn least(own: &mut Simulation, handle: *mut AbideSimulation, steps: u64) -> [f64; 2] {
    let mut least = [f64::INFINITY; 2];
    // Other work on the machine only adds.
    for _ in 0..TURNS {
        least[0] = least[0].min(seconds(|| assert!(own.advance(steps).unwrap() >= 0.0)));
        least[1] = least[1].min(seconds(|| {
            // SAFETY: the handle is there.
            assert_eq!(unsafe { abide_simulation_advance(handle, steps, std::ptr::null_mut()) }, ABIDE_OK);
        }));
    }
    least
}

/// A step waits for threads, for longer on a machine at work: held is a call of no steps, which is the same but for those.
#[test]
fn a_call_by_the_interface_costs_what_the_library_does() {
    let builder = Simulation::builder("heat").size(&[64, 64]).dtype(DType::F64).backend(Choice::CPU);
    let (mut own, handle) = (builder.build().unwrap(), handle());
    let [library, interface] = least(&mut own, handle, 1).map(|seconds| seconds * 1e6);
    println!("a step of 64²: {library:.2} µs by the library, {interface:.2} µs by the interface");
    let [library, interface] = least(&mut own, handle, 0);
    println!("a call: {:.3} µs by the library, {:.3} µs by the interface", library * 1e6, interface * 1e6);
    // SAFETY: it is not used any more.
    unsafe { abide_simulation_free(handle) };
    assert!(interface - library < MOST, "{library} {interface}");
}
