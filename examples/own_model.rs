//! A nonlinear model of your own with two fields: FitzHugh and Nagumo's excitable medium.
//!
//! `u' = u + dt·(d·lap(u) + u − u³/3 − w)` is excited and `w' = w + dt·e·(u − g·w + b)` recovers.
//!
//! `cargo run --release --example own_model`

use abide::io::Range;
use abide::prelude::*;

struct FitzHughNagumo;

impl Stencil for FitzHughNagumo {
    fn name(&self) -> &str {
        "fitzhugh-nagumo"
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn fields(&self) -> Vec<String> {
        vec!["u".into(), "w".into()]
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![
            Parameter::new("dt", 0.05, "step"),
            Parameter::new("d", 1.0, "diffusivity of u / width²"),
            Parameter::new("e", 0.08, "rate of recovery"),
            Parameter::new("g", 0.8, "strength of recovery"),
            Parameter::new("b", 0.7, "offset of recovery"),
        ]
    }

    fn boundary(&self) -> Boundary {
        Boundary::Mirror
    }

    fn start(&self, field: &str) -> Start {
        match field {
            "u" => Start::Seeds { inside: 2.0, outside: -1.2, seed: 4 },
            _ => Start::Constant(-0.62),
        }
    }

    fn define(&self, s: &Scope<'_>) {
        let (u, w) = (s.field("u"), s.field("w"));
        let here = u.here();
        let excitation = s.param("d") * u.laplacian() + here - here * here * here / 3.0 - w.here();
        let recovery = s.param("e") * (here - s.param("g") * w.here() + s.param("b"));
        s.set("u", here + s.param("dt") * excitation);
        s.set("w", w.here() + s.param("dt") * recovery);
    }
}

fn main() -> Result<()> {
    let program = Program::new(&FitzHughNagumo)?;
    let footprint = &program.stages()[0].footprint;
    println!(
        "{} flops per cell, linear: {}, radius {:?}",
        program.flops(),
        footprint.linear,
        program.radius()
    );

    let mut medium = Simulation::builder(program).size(&[200, 200]).build()?;
    for _ in 0..4 {
        medium.run(200)?;
        let u = medium.field("u")?;
        let excited = u.to_f64().iter().filter(|&&u| u > 0.0).count();
        if let Some(Range { low, high }) = Range::of(&u) {
            println!(
                "step {:>4}: {excited:>5} of {} cells excited, u from {low:.2} to {high:.2}",
                medium.step(),
                u.len()
            );
        }
    }
    Ok(())
}
