//! A seismic shot: sound from a source near the surface, through layers of rock.
//!
//! The acoustic wave equation, of eighth order in space and second in time, with a Ricker wavelet as its source and a
//! sponge at the sides (Cerjan et al., Geophysics 50, 1985).

use std::f64::consts::PI;

use super::Entry;
use super::acoustic::{REACH, laplacian};
use super::domain::{declare_extents, extent, is_source};
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Program, Scope, Start};

/// Returns the acoustic wave equation in two dimensions: the pressure `u`, the pressure `w` a step before, and the speed of
/// sound `c` in m/s. y points down.
///
/// The source stands in the cell at `source_y` and `source_x`, which are parts of the axes. The default rock has a slow layer
/// above a fast one.
///
/// ```
/// use abide_core::catalogue;
///
/// let program = catalogue::seismic_shot()?;
/// assert_eq!(program.radius(), [0, 4, 4]);
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// None: the definition is complete.
pub fn seismic_shot() -> Result<Program> {
    let mut p = Definition::new("seismic-shot", 2);
    p.field("u", Centring::CELL).field("w", Centring::CELL).field("c", Centring::CELL);
    p.start("u", Start::Constant(0.0)).start("w", Start::Constant(0.0));
    p.start("c", Start::Corner { inside: 2000.0, outside: 4000.0, parts: [1.0, 0.45, 1.0] });
    p.parameter("dx", 10.0, "width of a cell in m");
    p.parameter("dt", 0.00125, "time step in s; stable up to 0.55·dx/c");
    p.parameter("frequency", 20.0, "the wavelet's peak in Hz; a wave of c/frequency needs some 6 cells");
    p.parameter("source_y", 0.1, "the source's place as a part of y");
    p.parameter("source_x", 0.5, "the source's place as a part of x");
    p.parameter("sponge", 20.0, "cells of the sponge at each side");
    p.parameter("damping", 0.015, "the sponge's strength, per cell of its depth");
    declare_extents(&mut p);
    p.scalar("time", Some(0.0), "time in s").scalar("pulse", Some(0.0), "the source's pressure a step");
    let mut step = p.step();
    step.compute("pulse", |s| ricker(s.param("frequency"), s.param("time")));
    step.stage("propagate", |s| {
        let (u, w, c) = (s.field("u"), s.field("w"), s.field("c"));
        let courant = c.here() * (s.param("dt") / s.param("dx"));
        let damping = damping(s);
        let wave = 2.0 * u.here() - damping * w.here() + courant * courant * laplacian(u, 2);
        s.set("u", damping * wave + is_source(s, REACH as f64) * s.param("pulse"));
        s.set("w", u.here());
    });
    step.compute("time", |s| s.param("time") + s.param("dt"));
    p.build()
}

/// Returns the Ricker wavelet of a frequency, whose peak comes after 1.5 periods.
fn ricker<'g>(frequency: Expr<'g>, time: Expr<'g>) -> Expr<'g> {
    let phase = PI * (frequency * time - 1.5);
    let squared = phase * phase;
    (1.0 - 2.0 * squared) * (-squared).exp()
}

/// Returns the sponge's factor: 1 inside, and less towards the sides.
fn damping<'g>(s: &Scope<'g>) -> Expr<'g> {
    let [y, x] = [0, 1].map(|axis| s.coord(axis).min(extent(s, axis) - 1.0 - s.coord(axis)));
    let depth = s.param("damping") * (s.param("sponge") - y.min(x)).max(0.0);
    // Cerjan's exponential, to its second order.
    1.0 - depth * depth
}

/// The model of a shot.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "seismic-shot",
    about: "a seismic shot: sound from a source through two layers, of 8th order, with a sponge",
    dimensions: 2..=2,
    make: |_| Ok(Box::new(seismic_shot()?)),
}];
