//! Flows of the catalogue.

use abide_core::Result;
use abide_core::catalogue::Entry;
use abide_core::program::{Program, Start};

use super::{Flow, Scheme};
use crate::{Mixture, Table};

/// Returns two streams of nitrogen that pass each other at 5 MPa: cold and dense in the half of low y (of one axis, low x), warm in
/// the other.
fn streams(axes: usize, is_viscous: bool) -> Result<Program> {
    let gas = Mixture::of(&Table::builtin()?, &["N2"])?;
    let flow = Flow::of(&gas, axes).scheme(Scheme::Hllc).courant(0.4);
    let flow = if is_viscous { flow.viscous() } else { flow };
    // Of one axis, the gas moves as a whole.
    let stream = |t: f64, speed: f64| {
        let mut velocity = vec![0.0; axes];
        velocity[0] = if axes == 1 { 30.0 } else { speed };
        flow.uniform([t, 5e6], &velocity, &[])
    };
    let (cold, warm) = (stream(130.0, 30.0)?, stream(300.0, -30.0)?);
    let mut parts = [1.0; 3];
    parts[if axes == 1 { 2 } else { 1 }] = 0.5;
    let starts = cold.into_iter().zip(warm).map(|((name, inside), (_, outside))| {
        let start = match (name.as_str(), inside == outside) {
            // Something has to begin the rolls.
            ("my", _) => Start::Random { seed: 7, low: -20.0, high: 20.0 },
            (_, true) => Start::Constant(inside),
            _ => Start::Corner { inside, outside, parts },
        };
        (name, start)
    });
    flow.starting(starts.collect()).program()
}

/// The flows of real gases.
pub const ENTRIES: &[Entry] = &[
    Entry::new(
        "euler-real-gas",
        "a real gas without viscosity: cold dense and warm nitrogen at 5 MPa, in streams that pass each other",
        1..=3,
        |axes| Ok(Box::new(streams(axes, false)?)),
    ),
    Entry::new(
        "navier-stokes-real-gas",
        "a real gas with viscosity and conduction: cold dense and warm nitrogen at 5 MPa, in streams that pass each other",
        1..=3,
        |axes| Ok(Box::new(streams(axes, true)?)),
    ),
];
