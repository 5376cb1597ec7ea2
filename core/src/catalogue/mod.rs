//! The stencils and models that come with Abide.

mod acoustic;
mod cloverleaf;
mod domain;
mod euler;
mod fdtd;
mod fdtd_3d;
mod finite_volume;
mod implicit;
mod lbm_cavity;
mod linear;
mod media;
mod models;
mod navier_stokes;
mod seismic_shot;
mod shallow_water;

use std::ops::RangeInclusive;

pub use acoustic::Acoustic;
pub use cloverleaf::{cloverleaf, cloverleaf_3d};
pub use euler::euler;
pub use fdtd::fdtd_tm;
pub use fdtd_3d::fdtd_3d;
pub use implicit::{heat_implicit, ocean_surface};
pub use lbm_cavity::{lbm_d2q9, lbm_d3q19};
pub use media::{WaveMedium, fdtd_dielectric};
pub use models::{AdvectionDiffusion, Burgers, GrayScott, Heat, Life, Wave};
pub use navier_stokes::navier_stokes;
pub use seismic_shot::seismic_shot;
pub use shallow_water::shallow_water;

use crate::error::{Error, Result};
use crate::program::Program;
use crate::program::{LinearStencil, Stencil};

/// One stencil or model of the catalogue.
pub struct Entry {
    /// The name under which the command knows it.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The numbers of axes that the entry can have.
    pub dimensions: RangeInclusive<usize>,
    make: fn(usize) -> Result<Made>,
}

/// The result of an entry: a stencil, or stages in order.
pub type Made = Box<dyn IntoProgram>;

/// What can be made a program: a stencil, and a program itself.
pub trait IntoProgram {
    /// Returns the program.
    ///
    /// # Errors
    ///
    /// Those of [`Program::new`].
    fn program(&self) -> Result<Program>;
}

impl<S: Stencil> IntoProgram for S {
    fn program(&self) -> Result<Program> {
        Program::new(self)
    }
}

impl IntoProgram for Program {
    fn program(&self) -> Result<Program> {
        Ok(self.clone())
    }
}

impl Entry {
    /// Makes an entry of another crate's.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        dimensions: RangeInclusive<usize>,
        make: fn(usize) -> Result<Made>,
    ) -> Entry {
        Entry { name, about, dimensions, make }
    }

    /// Returns the program for a number of axes. Fails if the entry has no such form.
    pub fn program(&self, dimensions: usize) -> Result<Program> {
        if !self.dimensions.contains(&dimensions) {
            let (low, high) = (self.dimensions.start(), self.dimensions.end());
            let limit = if low == high { low.to_string() } else { format!("{low} to {high}") };
            return Err(Error::limit(
                format!("axes of {}", self.name),
                dimensions,
                limit,
                "give a size with that many extents",
            ));
        }
        (self.make)(dimensions)?.program()
    }
}

/// Returns all entries: the linear stencils first, then the models, and then programs of several kinds of
/// fields.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    let plain = [linear::ENTRIES, models::ENTRIES, fdtd::ENTRIES, media::ENTRIES, acoustic::ENTRIES];
    let codes = [
        cloverleaf::ENTRIES,
        shallow_water::ENTRIES,
        lbm_cavity::ENTRIES,
        seismic_shot::ENTRIES,
        euler::ENTRIES,
        fdtd_3d::ENTRIES,
        navier_stokes::ENTRIES,
        implicit::ENTRIES,
    ];
    plain.into_iter().chain(codes).flatten()
}

/// Returns the entries whose programs are plain, so that every schedule can run them.
pub fn plain() -> impl Iterator<Item = &'static Entry> {
    entries().filter(|entry| entry.program(*entry.dimensions.start()).is_ok_and(|p| p.is_plain()))
}

/// Returns the entry of a name.
pub fn find(name: &str) -> Result<&'static Entry> {
    entries()
        .find(|e| e.name == name)
        .ok_or_else(|| Error::unknown("stencil", name, entries().map(|e| e.name)))
}

/// Returns the linear stencil of a name, with its weights. For any other name the error lists them.
pub fn linear(name: &str) -> Result<LinearStencil> {
    linear::find(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Neighbourhood;

    #[test]
    fn every_entry_makes_a_program_of_its_name_for_all_its_dimensions() {
        for entry in entries() {
            for dimensions in entry.dimensions.clone() {
                let program = entry.program(dimensions).unwrap();
                assert_eq!(program.name(), entry.name);
                assert_eq!(program.dimensions(), dimensions);
            }
            assert!(entry.program(entry.dimensions.end() + 1).is_err());
        }
    }

    #[test]
    fn simulation_codes_are_not_plain() {
        let names: Vec<&str> = plain().map(|entry| entry.name).collect();
        let others = entries().map(|entry| entry.name).filter(|name| !names.contains(name));
        let expected = [
            "cloverleaf",
            "cloverleaf-3d",
            "shallow-water",
            "lbm-d2q9",
            "lbm-d3q19",
            "seismic-shot",
            "euler",
            "fdtd-3d",
            "navier-stokes",
            "heat-implicit",
            "ocean-surface",
        ];
        assert_eq!(others.collect::<Vec<_>>(), expected);
    }

    /// Points and radii as in table 1 of the PERKS paper.
    #[test]
    fn linear_entries_have_the_papers_footprints() {
        let expected = [
            ("1d3pt", 3, 1),
            ("2d5pt", 5, 1),
            ("2ds9pt", 9, 2),
            ("2d13pt", 13, 3),
            ("2d17pt", 17, 4),
            ("2d21pt", 21, 5),
            ("2ds25pt", 25, 6),
            ("2d9pt", 9, 1),
            ("2d25pt", 25, 2),
            ("3d7pt", 7, 1),
            ("3d13pt", 13, 2),
            ("3d17pt", 17, 1),
            ("3d27pt", 27, 1),
            ("poisson", 19, 1),
        ];
        for (name, points, radius) in expected {
            let entry = find(name).unwrap();
            let program = entry.program(*entry.dimensions.start()).unwrap();
            let footprint = &program.stages()[0].footprint;
            assert_eq!((footprint.taps, footprint.radius[2]), (points, radius), "{name}");
            assert_eq!(footprint.flops, 2 * points - 1, "{name}");
            assert!(footprint.linear, "{name}");
            let full = (2 * radius + 1).pow(program.dimensions() as u32);
            let star = points == 2 * radius * program.dimensions() + 1;
            assert!(points <= full);
            assert_eq!(footprint.neighbourhood == Neighbourhood::Star, star, "{name}");
        }
    }

    #[test]
    fn models_are_classified() {
        let footprint = |name: &str, d| find(name).unwrap().program(d).unwrap().stages()[0].footprint.clone();
        assert!(footprint("heat", 2).linear);
        assert!(footprint("wave", 2).linear);
        assert!(!footprint("gray-scott", 2).linear);
        assert!(!footprint("heat-conductivity", 2).linear, "a product of two fields");
        assert!(!footprint("life", 2).linear);
        assert_eq!(footprint("gray-scott", 2).field_radius, vec![Some([0, 1, 1]); 2]);
        assert_eq!(footprint("wave", 2).field_radius, vec![Some([0, 1, 1]), Some([0, 0, 0])]);
    }
}
