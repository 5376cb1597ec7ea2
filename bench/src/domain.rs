//! The stencils measured, and the domains on which codes are compared.

use std::fmt::{self, Display};
use std::str::FromStr;
use std::sync::Arc;

use abide::program::Problem;
use abide::{DType, Error, Result, Shape};
use abide_core::catalogue;
use serde::{Serialize, Serializer};

/// The stencils of two and three axes in the PERKS (ICS'23, table 1) and EBISU papers.
pub const STENCILS: [&str; 13] = [
    "2d5pt", "2ds9pt", "2d13pt", "2d17pt", "2d21pt", "2ds25pt", "2d9pt", "2d25pt", "3d7pt", "3d13pt",
    "3d17pt", "3d27pt", "poisson",
];

/// A size of domain on which rates are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Fits into the registers and shared memory of a large GPU.
    OnChip,
    /// Many times larger than any chip.
    Large,
    /// About as large as [`Domain::OnChip`], of extents that no tile divides.
    UnfriendlyOnChip,
    /// About as large as [`Domain::Large`], of extents that no tile divides.
    UnfriendlyLarge,
}

impl Domain {
    /// All domains.
    pub const ALL: [Domain; 4] =
        [Domain::OnChip, Domain::Large, Domain::UnfriendlyOnChip, Domain::UnfriendlyLarge];

    /// Returns the name as the command writes it.
    pub fn name(self) -> &'static str {
        match self {
            Domain::OnChip => "on-chip",
            Domain::Large => "large",
            Domain::UnfriendlyOnChip => "unfriendly-on-chip",
            Domain::UnfriendlyLarge => "unfriendly-large",
        }
    }

    /// Returns the extents; an error where there are not two or three axes.
    pub fn shape(self, dimensions: usize) -> Result<Shape> {
        match (dimensions, self) {
            (2, Domain::OnChip) => Shape::new(&[2304, 2304]),
            (2, Domain::Large) => Shape::new(&[8352, 8352]),
            (2, Domain::UnfriendlyOnChip) => Shape::new(&[2311, 2297]),
            (2, Domain::UnfriendlyLarge) => Shape::new(&[8191, 8209]),
            (3, Domain::OnChip) => Shape::new(&[128, 192, 256]),
            (3, Domain::Large) => Shape::new(&[512, 512, 512]),
            (3, Domain::UnfriendlyOnChip) => Shape::new(&[127, 193, 251]),
            (3, Domain::UnfriendlyLarge) => Shape::new(&[509, 521, 503]),
            _ => Err(Error::limit("axes of a domain with a name", dimensions, "2 or 3", "give a size")),
        }
    }

    /// Returns the domain of these extents, if one has them.
    pub fn of(shape: &Shape) -> Option<Domain> {
        Domain::ALL.into_iter().find(|domain| domain.shape(shape.dimensions()).is_ok_and(|own| own == *shape))
    }

    /// Returns the domain of the same size whose extents tiles divide.
    pub fn friendly(self) -> Domain {
        match self {
            Domain::OnChip | Domain::UnfriendlyOnChip => Domain::OnChip,
            Domain::Large | Domain::UnfriendlyLarge => Domain::Large,
        }
    }
}

impl Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Domain {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Domain {
    type Err = Error;

    fn from_str(text: &str) -> Result<Domain> {
        let found = Domain::ALL.into_iter().find(|domain| domain.name() == text);
        found.ok_or_else(|| Error::unknown("domain", text, Domain::ALL.map(Domain::name)))
    }
}

/// Makes the problem of a linear stencil of the catalogue on a domain with its own boundary; an error where
/// the stencil is not linear.
pub fn problem(stencil: &str, shape: Shape, dtype: DType) -> Result<Problem> {
    let entry = catalogue::find(stencil)?;
    let program = entry.program(shape.dimensions())?;
    let linear = matches!(program.stages(), [stage] if stage.footprint.linear) && program.fields().len() == 1;
    if !linear {
        return Err(Error::invalid(
            format!("benchmark of {stencil}"),
            "it is no linear stencil of one field, so points do not tell its operations",
            format!("measure one of {}", STENCILS.join(", ")),
        ));
    }
    Problem::new(Arc::new(program), shape, dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stencil_has_every_domain_under_the_fixed_boundary() {
        for stencil in STENCILS {
            let dimensions = *catalogue::find(stencil).unwrap().dimensions.start();
            for domain in Domain::ALL {
                let shape = domain.shape(dimensions).unwrap();
                let problem = problem(stencil, shape, DType::F64).unwrap();
                assert_eq!(problem.boundaries.describe(dimensions), "fixed", "{stencil}");
                assert_eq!(Domain::of(&shape), Some(domain));
                assert_eq!(domain.name().parse(), Ok(domain));
                let friendly = domain.friendly().shape(dimensions).unwrap().cells() as f64;
                let ratio = shape.cells() as f64 / friendly;
                assert!((0.95..=1.05).contains(&ratio), "{domain} {shape}: {ratio}");
            }
        }
    }

    #[test]
    fn what_is_not_linear_or_has_no_such_axes_is_refused() {
        let square = Shape::new(&[64, 64]).unwrap();
        assert!(problem("heat", square, DType::F32).is_ok());
        for name in ["gray-scott", "life", "wave", "nothing", "3d7pt"] {
            assert!(problem(name, square, DType::F32).is_err(), "{name}");
        }
        assert!(Domain::Large.shape(1).is_err());
    }
}
