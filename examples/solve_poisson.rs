//! Poisson's equation −Δu = f on a square of 255 × 255 cells, u = 0 around it: first from a stencil that is
//! never stored, then from the stored matrix in mixed precision, and both against the known solution.
//!
//! `cargo run --release --example solve_poisson`

use std::f64::consts::PI;

use abide::prelude::*;
use abide::sparse::laplacian;

const N: usize = 255;

fn main() -> Result<(), SolverError> {
    // u = sin(πx) sin(2πy) has −Δu = 5π² u. Cells have the width h; the library's Laplacian is that of h = 1.
    let h = 1.0 / (N as f64 + 1.0);
    let at = |index: usize| ((index % N + 1) as f64 * h, (index / N + 1) as f64 * h);
    let exact = |index: usize| {
        let (x, y) = at(index);
        (PI * x).sin() * (2.0 * PI * y).sin()
    };
    let b = Array::from_fn(DType::F64, N * N, |index| h * h * 5.0 * PI * PI * exact(index));

    let zero = Boundaries::all(Boundary::Constant(0.0));
    let operator = GridOperator::new(laplacian(2)?, Shape::new(&[N, N])?, zero, DType::F64)?;
    let stored = operator.assemble()?;

    let mut free = Solve::new(operator).method(Method::Cg).tolerance(1e-10).open()?;
    let mut mixed = Solve::new(stored)
        .precision(Precision::Mixed)
        .preconditioner(Preconditioning::Chebyshev { degree: 3 })
        .tolerance(1e-10)
        .open()?;
    for (name, system) in [("never stored", &mut free), ("stored, mixed precision", &mut mixed)] {
        let Solution { x, report } = system.solve(&b)?;
        let worst = (0..N * N).filter_map(|i| Some((x.get(i)? - exact(i)).abs())).fold(0.0, f64::max);
        println!(
            "{name}, on {}: {} iterations, {:.1} µs each; the discretisation's error is {worst:.1e}",
            system.backend(),
            report.iterations,
            1e6 * report.iteration_seconds / report.iterations.max(1) as f64,
        );
    }
    Ok(())
}
