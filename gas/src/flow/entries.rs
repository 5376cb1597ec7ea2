//! Flows of the catalogue.

use abide_core::Result;
use abide_core::catalogue::Entry;
use abide_core::program::{Program, Start};

use super::{Flow, Scheme, Uniform};
use crate::{Mixture, Table};

/// Returns two streams of nitrogen that pass each other at 5 MPa: cold and dense in the half of low y (of one axis, low x), warm in
/// the other.
fn streams(axes: usize, is_viscous: bool) -> Result<Program> {
    let gas = Mixture::of(&Table::builtin()?, &["N2"])?;
    let flow = Flow::of(&gas, axes).scheme(Scheme::Hllc).courant(0.4);
    let flow = if is_viscous { flow.viscous() } else { flow };
    // Of one axis, the gas moves as a whole.
    let stream = |temperature: f64, speed: f64| {
        let mut velocity = vec![0.0; axes];
        velocity[0] = if axes == 1 { 100.0 } else { speed };
        Uniform { temperature, pressure: 5e6, velocity, fractions: Vec::new() }
    };
    let mut parts = vec![1.0; axes];
    parts[axes.saturating_sub(2)] = 0.5;
    let mut flow = flow.beginning_in_corner(&parts, &stream(130.0, 100.0), &stream(300.0, -100.0))?;
    // Something has to begin the rolls.
    let drawn = Start::Random { seed: 7, low: -600.0, high: 600.0 };
    flow.starts.iter_mut().filter(|(name, _)| name == "my").for_each(|(_, start)| *start = drawn.clone());
    flow.program()
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
