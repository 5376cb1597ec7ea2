//! A kernel that stores a result for every pair of components of a point, as C. Carilli timed it on Kepler GPUs in 2017
//! ("CASTLES", AFRL) to compare how loops over species become code: out_yx = ax_x ay_y + bx_x by_y.

use abide::backend::Session;
use abide::program::{Centring, Definition, Program};
use abide::{Array, DType, Result};

use super::GasCase;

/// The species of the slides' test.
pub(super) const SPECIES: usize = 64;

/// Its points: 960 blocks of 256.
pub(super) const POINTS: usize = 960 * 256;

/// The inputs, each of a value a species.
const INPUTS: [&str; 4] = ["ax", "bx", "ay", "by"];

/// Returns the program: the results of each pair are components, set by a loop within a loop.
pub(super) fn program() -> Result<Program> {
    let mut p = Definition::new("products of components", 1);
    for name in INPUTS {
        p.components(name, SPECIES, Centring::CELL);
    }
    p.components("out", SPECIES * SPECIES, Centring::CELL);
    p.step().stage("products", |s| {
        let [ax, bx, ay, by] = INPUTS.map(|name| s.components(name));
        s.set_components_of("out", SPECIES, |y, x| bx.at(x).mul_add(by.at(y), ax.at(x) * ay.at(y)));
    });
    p.build()
}

/// Returns the fields that a run begins from: random inputs from 0.5 to 1.5.
pub(super) fn start(points: usize) -> Result<Vec<Array>> {
    let mut random = fastrand::Rng::with_seed(20);
    let inputs = INPUTS.len() * SPECIES;
    let mut column = || Ok(Array::F64((0..points).map(|_| 0.5 + random.f64()).collect()));
    let results = (0..SPECIES * SPECIES).map(|_| Array::zeros(DType::F64, points));
    let inputs: Result<Vec<Array>> = (0..inputs).map(|_| column()).collect();
    let mut all = inputs?;
    all.extend(results.collect::<Result<Vec<_>>>()?);
    Ok(all)
}

/// Compares a session's results with the reference's, bit for bit, at the points that it began from, the first of its own.
pub(super) fn faults(case: &GasCase, mut few: Vec<Array>, session: &mut dyn Session) -> Result<Vec<String>> {
    let count = few.first().map_or(0, Array::len);
    abide_cpu::reference::advance(&case.problem(count)?, &mut few, 1)?;
    let mut faults = Vec::new();
    for (number, expected) in few.iter().enumerate().skip(INPUTS.len() * SPECIES) {
        if session.read_window(number, [0; 3], [1, 1, count])?.as_bytes() != expected.as_bytes() {
            faults.push(format!("result {} has not the reference's bits", number - INPUTS.len() * SPECIES));
        }
    }
    // One line is enough where all are wrong.
    faults.truncate(1);
    Ok(faults)
}
