//! Random programs in which stages repeat one formula several times over, as the sweeps of a relaxation, between stages that do
//! something else.

use abide_core::program::{Centring, Definition, Field};
use abide_core::{Array, Expr, Problem, Program, Result};
use fastrand::Rng;

use crate::timed::on_domain;

/// Returns a random problem and its initial fields; the same for the same seed.
///
/// # Errors
///
/// Those of a program that reads beyond a fixed side.
pub fn problem(seed: u64) -> Result<(Problem, Vec<Array>)> {
    let mut rng = Rng::with_seed(seed);
    let dimensions = rng.usize(1..=3);
    let most = [300, 60, 24][dimensions - 1];
    let extents: Vec<usize> = (0..dimensions).map(|_| rng.usize(6..=most)).collect();
    let program = program(&mut rng, dimensions)?;
    on_domain(&mut rng, program, &extents, seed, |rng| rng.u8(0..3) == 0)
}

fn program(rng: &mut Rng, dimensions: usize) -> Result<Program> {
    let mut p = Definition::new("swept", dimensions);
    for name in ["u", "p", "q", "k"] {
        p.field(name, Centring::CELL);
    }
    p.temporary("rhs", Centring::CELL)
        .parameter("omega", 0.6, "of the sweeps")
        .parameter("h", 0.25, "a width");
    if rng.u8(0..4) == 0 {
        p.scalar("gain", Some(0.5), "changes");
    } else {
        p.parameter("gain", 0.5, "stays");
    }
    let (drives, couples, varies) = (rng.bool(), rng.bool(), rng.bool());
    let (reach, knows, later) = (rng.i32(1..=2), rng.u8(0..3) == 0, rng.bool());
    let mut step = p.step();
    step.stage("drive", |s| {
        let u = s.field("u");
        s.set("rhs", around(&u, dimensions, 1) - u.here());
    });
    for _ in 0..rng.usize(2..=9) {
        step.stage("sweep", |s| {
            let (field, other, k) = (s.field("p"), s.field("q"), s.field("k"));
            let mut sum = around(&field, dimensions, reach) / (2 * dimensions) as f64;
            sum = if drives { sum - 0.125 * s.field("rhs").here() } else { sum };
            sum = if varies {
                sum + 0.25 * (k.here() - around(&k, dimensions, 1) / (2 * dimensions) as f64)
            } else {
                sum
            };
            sum = if knows { sum + 0.001 * s.coord(dimensions - 1) } else { sum };
            let omega = s.param("omega");
            s.set("p", field.here() + omega * (sum - field.here()));
            if couples {
                s.set("q", 0.5 * (other.here() + field.here()));
            }
        });
    }
    step.stage("correct", |s| s.set("u", s.field("u").here() - 0.25 * s.field("p").here() * s.param("gain")));
    if later {
        for _ in 0..rng.usize(2..=4) {
            step.stage("smooth", |s| {
                let u = s.field("u");
                s.set(
                    "u",
                    u.here()
                        + s.param("h") * (around(&u, dimensions, 1) / (2 * dimensions) as f64 - u.here()),
                );
            });
        }
    }
    p.build()
}

/// Returns the sum of a field so far away along each axis on either side.
fn around<'g>(field: &Field<'_, 'g>, dimensions: usize, reach: i32) -> Expr<'g> {
    let at = |axis: usize, by: i32| {
        let mut offset = vec![0; dimensions];
        offset[axis] = by;
        field.at_slice(&offset)
    };
    let pairs = (0..dimensions).map(|axis| at(axis, -reach) + at(axis, reach));
    pairs.reduce(|sum, pair| sum + pair).unwrap_or_else(|| field.here())
}
