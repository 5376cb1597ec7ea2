//! The problems on which chips and the planner are measured.

use std::sync::Arc;

use abide::program::Problem;
use abide::{Boundaries, Boundary, DType, Result, Shape};
use abide_core::catalogue;

use super::domain::STENCILS;
use super::{Domain, Row};

/// A problem of a table: an entry of the catalogue on a domain.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The entry's name.
    pub problem: String,
    /// The domain.
    pub shape: Shape,
    /// The type of all fields.
    pub dtype: DType,
    /// The boundary at all sides; `None` is the entry's own.
    pub boundary: Option<Boundary>,
}

/// The extents on which `2d5pt` is measured from the smallest domain to the largest that a chip holds.
const SQUARES: [usize; 8] = [64, 128, 256, 512, 768, 1024, 1536, 2304];

/// The extents on which `3d7pt` is measured in f64.
const CUBES: [usize; 5] = [32, 64, 96, 128, 192];

/// The models and their extents, in f64.
const MODELS: [(&str, &[usize]); 4] = [
    ("gray-scott", &[512, 1024, 1536]),
    ("wave", &[1024]),
    ("heat-conductivity", &[1024]),
    ("fdtd-tm", &[1024]),
];

/// The programs of several loops and their extents, in f64.
const PROGRAMS: [(&str, &[usize]); 4] = [
    ("cloverleaf", &[960, 960]),
    ("cloverleaf", &[3840, 3840]),
    ("cloverleaf", &[7680, 7680]),
    ("cloverleaf-3d", &[256, 256, 256]),
];

/// The stencils that are measured under every boundary on large domains.
const UNDER_EVERY_BOUNDARY: [&str; 5] = ["2d5pt", "2d25pt", "3d7pt", "3d27pt", "poisson"];

/// The random problems of [`Case::planner`].
const RANDOM: usize = 60;

impl Case {
    fn own(problem: &str, extents: &[usize], dtype: DType) -> Result<Case> {
        Ok(Case { problem: problem.to_owned(), shape: Shape::new(extents)?, dtype, boundary: None })
    }

    /// Returns the problems that a large chip holds: small domains, models, and every stencil.
    pub fn chip() -> Result<Vec<Case>> {
        let mut all = Vec::new();
        for dtype in [DType::F64, DType::F32] {
            for n in SQUARES {
                all.push(Case::own("2d5pt", &[n, n], dtype)?);
            }
        }
        for n in CUBES {
            all.push(Case::own("3d7pt", &[n, n, n], DType::F64)?);
        }
        for (model, extents) in MODELS {
            for &n in extents {
                all.push(Case::own(model, &[n, n], DType::F64)?);
            }
        }
        for stencil in STENCILS {
            for dtype in [DType::F64, DType::F32] {
                let axes = *catalogue::find(stencil)?.dimensions.start();
                let case = Case::own(stencil, Domain::OnChip.shape(axes)?.extents(), dtype)?;
                // The largest square of the first rows is this domain.
                if !all.contains(&case) {
                    all.push(case);
                }
            }
        }
        Ok(all)
    }

    /// Returns the programs whose stages are measured by themselves and in groups.
    pub fn programs() -> Result<Vec<Case>> {
        PROGRAMS.iter().map(|(program, extents)| Case::own(program, extents, DType::F64)).collect()
    }

    /// Returns the problems on which the planner's choice is judged: those of [`Case::chip`], large domains, some
    /// stencils under every boundary, and random ones, the same each time.
    pub fn planner() -> Result<Vec<Case>> {
        let mut all = Case::chip()?;
        for stencil in STENCILS {
            for dtype in [DType::F64, DType::F32] {
                let axes = *catalogue::find(stencil)?.dimensions.start();
                let large = Case::own(stencil, Domain::Large.shape(axes)?.extents(), dtype)?;
                all.push(large.clone());
                if UNDER_EVERY_BOUNDARY.contains(&stencil) {
                    let others = Boundary::each(1.0).into_iter().filter(|kind| *kind != Boundary::Fixed);
                    all.extend(others.map(|kind| Case { boundary: Some(kind), ..large.clone() }));
                }
            }
        }
        let mut random = fastrand::Rng::with_seed(18);
        for _ in 0..RANDOM {
            all.push(Case::random(&mut random)?);
        }
        Ok(all)
    }

    /// Returns a random problem: any plain entry, extents from 32 to 8192 in two dimensions and from 16 to 512 in
    /// three, evenly by their logarithms, any boundary, both types.
    fn random(random: &mut fastrand::Rng) -> Result<Case> {
        let entries: Vec<_> = catalogue::plain().filter(|entry| *entry.dimensions.end() >= 2).collect();
        let entry = entries[random.usize(..entries.len())];
        let axes = random.usize(*entry.dimensions.start().max(&2)..=*entry.dimensions.end());
        let [low, high] = if axes == 2 { [32.0, 8192.0] } else { [16.0, 512.0_f64] };
        let extents: Vec<usize> =
            (0..axes).map(|_| (low * (high / low).powf(random.f64())).round() as usize).collect();
        let kinds = Boundary::each(1.0);
        Ok(Case {
            problem: entry.name.to_owned(),
            shape: Shape::new(&extents)?,
            dtype: if random.bool() { DType::F64 } else { DType::F32 },
            boundary: Some(kinds[random.usize(..kinds.len())]),
        })
    }

    /// Returns the problem.
    pub fn problem(&self) -> Result<Problem> {
        let program = catalogue::find(&self.problem)?.program(self.shape.dimensions())?;
        let mut problem = Problem::unchecked(Arc::new(program), self.shape, self.dtype);
        if let Some(boundary) = self.boundary {
            problem.boundaries = Boundaries::all(boundary);
        }
        problem.check()?;
        Ok(problem)
    }
}

/// Returns the words by which people and files name a problem: its name, domain, type and boundary.
pub fn words(problem: &Problem) -> [String; 4] {
    [
        problem.program.name().to_owned(),
        problem.shape.to_string(),
        problem.dtype.to_string(),
        problem.boundaries.describe(problem.shape.dimensions()),
    ]
}

impl Row {
    /// Returns the words of the row's problem, as [`words`] does.
    pub fn words(&self) -> [String; 4] {
        [self.stencil.clone(), self.shape.to_string(), self.dtype.to_string(), self.boundary.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_a_problem_and_none_comes_twice() {
        let all = Case::planner().unwrap();
        let chip = Case::chip().unwrap();
        assert_eq!(chip.len(), 2 * 8 + 5 + 6 + 2 * 13 - 2);
        assert_eq!(all.len(), chip.len() + 2 * 13 + 2 * 5 * (Boundary::NAMES.len() - 1) + RANDOM);
        assert!(Case::programs().unwrap().iter().all(|case| !case.problem().unwrap().is_plain()));
        let mut named: Vec<_> = all.iter().map(|case| words(&case.problem().unwrap())).collect();
        named.sort();
        named.dedup();
        assert_eq!(named.len(), all.len());
        assert_eq!(Case::planner().unwrap(), all, "the same each time");
        let random = &all[all.len() - RANDOM..];
        assert!(
            random.iter().any(|case| case.dtype == DType::F32)
                && random.iter().any(|case| case.shape.dimensions() == 3)
        );
        assert!(random.iter().all(|case| case.shape.extents().iter().all(|n| (16..=8192).contains(n))));
    }
}
