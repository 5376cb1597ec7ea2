//! Launches of several steps that sweep the rows in one pass (temporal blocking).

use abide_core::Program;
use abide_core::program::{Launch, Storage};

use super::group::{Finder, Group};

/// The steps of a pass that are tried. Passes of 16 are hardly faster than those of 8, and on small domains slower.
const DEPTHS: [usize; 3] = [8, 4, 2];

/// The most steps of a storage for which passes are made: each begins others.
const MOST_STEPS: usize = 64;

/// Several steps in one pass.
pub struct Deep {
    /// The number among those that begin at the same step.
    pub number: usize,
    pub steps: u64,
    /// The launches of all its steps, in order.
    pub launches: Vec<Launch>,
    pub group: Group,
}

/// Returns the passes that begin at each of a storage's steps, the deepest first; none where steps have loops.
pub fn deep(finder: &Finder<'_>, program: &Program, storage: &Storage) -> Vec<Vec<Deep>> {
    let from = |place: usize, steps: usize| {
        let all = (place..place + steps).flat_map(|step| &storage.launches(step as u64).launches);
        let launches: Vec<&Launch> = all.collect();
        let group = finder.deep(program.stages(), &launches).filter(|_| launches.len() > 1)?;
        let launches = launches.into_iter().cloned().collect();
        Some(Deep { number: 0, steps: steps as u64, launches, group })
    };
    let of = |place: usize| {
        let all = DEPTHS.into_iter().filter_map(|steps| from(place, steps)).enumerate();
        all.map(|(number, deep)| Deep { number, ..deep }).collect()
    };
    let places = storage.steps.len();
    let has_none = places > MOST_STEPS || program.has_loops();
    (0..places).map(|place| if has_none { Vec::new() } else { of(place) }).collect()
}
