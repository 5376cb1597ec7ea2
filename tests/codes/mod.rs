//! The catalogue's simulation codes against exact solutions, published values and what they conserve. That backends agree
//! in them, `trust/codes.rs` checks.

mod euler;
mod fdtd_3d;
mod flows;
mod implicit;
mod lbm_cavity;
mod navier_stokes;
mod seismic_shot;
mod shallow_water;

use abide::Builder;
use abide::prelude::*;

/// Begins a run of an entry on the CPU, in f64.
fn begin<const D: usize>(name: &str, extents: [usize; D]) -> Builder {
    Simulation::builder(name).size(&extents).dtype(DType::F64).backend(Choice::CPU)
}

/// Makes the values of a field from a function of the place in cells: that of cell `[0, 0]` is `[0.5, 0.5]`.
fn drawn([height, width]: [usize; 2], value: impl Fn([f64; 2]) -> f64) -> Array {
    let at = |cell: usize| [cell / width, cell % width].map(|index| index as f64 + 0.5);
    Array::from_fn(DType::F64, height * width, |cell| value(at(cell)))
}

/// Returns the values of a field.
fn values(run: &mut Simulation, field: &str) -> Vec<f64> {
    run.field(field).unwrap().to_f64()
}

/// Returns the field with rows and columns exchanged.
fn transposed(field: &[f64], [height, width]: [usize; 2]) -> Array {
    Array::from_fn(DType::F64, field.len(), |cell| field[cell % height * width + cell / height])
}

/// Returns the mean magnitude of the difference from a function of the place.
fn mean_error(found: &[f64], extents: [usize; 2], exact: impl Fn([f64; 2]) -> f64) -> f64 {
    let expected = drawn(extents, exact).to_f64();
    found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).sum::<f64>() / found.len() as f64
}

/// Returns the root of a function that falls between two arguments.
fn root(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if function(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}
