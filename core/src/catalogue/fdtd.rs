//! Maxwell's equations in two dimensions, transverse magnetic, on Yee's staggered grid: two stages per step.

use super::Entry;
use crate::error::Result;
use crate::program::Program;
use crate::program::Start;
use crate::program::{Parameter, Scope, Stencil};

/// The first half of a step: the magnetic field, half a cell beside the electric one, from the curl of the
/// electric field.
///
/// It knows the fields and starts of the program that it is part of.
pub(super) struct Magnetic {
    fields: fn() -> Vec<String>,
    start: fn(&str) -> Start,
}

impl Magnetic {
    pub(super) fn among(fields: fn() -> Vec<String>, start: fn(&str) -> Start) -> Magnetic {
        Magnetic { fields, start }
    }
}

/// The second half of a step: the electric field from the curl of the new magnetic field.
struct Electric;

fn fields() -> Vec<String> {
    ["ez", "hx", "hy"].map(str::to_owned).to_vec()
}

pub(super) fn courant() -> Vec<Parameter> {
    vec![Parameter::new("courant", 0.5, "speed of light · step / width; stable up to 1/√2")]
}

fn start(field: &str) -> Start {
    if field == "ez" { Start::Gaussian } else { Start::Constant(0.0) }
}

impl Stencil for Magnetic {
    fn name(&self) -> &str {
        "magnetic"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn fields(&self) -> Vec<String> {
        (self.fields)()
    }

    fn parameters(&self) -> Vec<Parameter> {
        courant()
    }

    fn start(&self, field: &str) -> Start {
        (self.start)(field)
    }

    fn define(&self, s: &Scope<'_>) {
        let (ez, hx, hy, c) = (s.field("ez"), s.field("hx"), s.field("hy"), s.param("courant"));
        s.set("hx", hx.here() - c * (ez.at([1, 0]) - ez.here()));
        s.set("hy", hy.here() + c * (ez.at([0, 1]) - ez.here()));
    }
}

impl Stencil for Electric {
    fn name(&self) -> &str {
        "electric"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn fields(&self) -> Vec<String> {
        fields()
    }

    fn parameters(&self) -> Vec<Parameter> {
        courant()
    }

    fn start(&self, field: &str) -> Start {
        start(field)
    }

    fn define(&self, s: &Scope<'_>) {
        let (ez, hx, hy, c) = (s.field("ez"), s.field("hx"), s.field("hy"), s.param("courant"));
        let curl = (hy.here() - hy.at([0, -1])) - (hx.here() - hx.at([-1, 0]));
        s.set("ez", ez.here() + c * curl);
    }
}

/// Returns Maxwell 2D, transverse magnetic (Yee, IEEE Trans. Antennas Propag. 14, 1966), with the fields
/// `ez`, `hx` and `hy`. `hx` lies half a cell up the y axis, `hy` half a cell up the x axis.
pub fn fdtd_tm() -> Result<Program> {
    Program::sequence("fdtd-tm", &[&Magnetic::among(fields, start), &Electric])
}

/// The model of two stages.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "fdtd-tm",
    about: "Maxwell's equations in 2D, transverse magnetic, Yee's grid",
    dimensions: 2..=2,
    make: |_| Ok(Box::new(fdtd_tm()?)),
}];
