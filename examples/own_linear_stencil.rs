//! A linear stencil of your own: weights at offsets, slowest axis first; and initial values from an
//! `ndarray`.
//!
//! `cargo run --release --example own_linear_stencil`

use abide::prelude::*;
use ndarray::Array2;

fn main() -> Result<()> {
    // A blur that leans to the right: most of a cell's loss goes to its right-hand neighbour.
    let drift = LinearStencil::new(
        "drift",
        &[([0, 0], 0.4), ([0, -1], 0.3), ([0, 1], 0.1), ([-1, 0], 0.1), ([1, 0], 0.1)],
    )?;

    let mut ink = Array2::<f64>::zeros((65, 129));
    ink[[32, 20]] = 1000.0;
    let mut simulation =
        Simulation::builder(&drift).dtype(DType::F64).boundary(Boundary::Periodic).input("u", ink).build()?;
    simulation.run(200)?;

    let ink = simulation.field_nd::<f64>("u")?;
    let total: f64 = ink.iter().sum();
    let centre: f64 = ink.indexed_iter().map(|(at, amount)| at[1] as f64 * amount).sum::<f64>() / total;
    println!("ink: {total:.6} of 1000, centred on column {centre:.1} (began at 20, moves 0.2 a step)");
    Ok(())
}
