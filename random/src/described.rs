//! Random programs with every part that a model file can hold: those of [`programs`] with parameters that are formulas
//! of others, boundaries by side and by field, a condition that ends a run, components that loops and tables read, and
//! starts of every kind.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Reduction, Wall};
use abide_core::{Array, Expr, Problem, Program, Result, Scope, Start};
use fastrand::Rng;

use crate::programs;

/// Returns a random problem and its initial fields; the same for the same seed. Fails where [`programs::problem`] does,
/// and where the domain is too small for the boundaries.
pub fn problem(seed: u64) -> Result<(Problem, Vec<Array>)> {
    let (base, _) = programs::problem(seed)?;
    let mut rng = Rng::with_seed(!seed);
    let program = Arc::new(program(&mut rng, &base.program)?);
    let mut problem = Problem::unchecked(program, base.shape, base.dtype);
    problem.first_step = base.first_step;
    problem.lower_walls()?;
    problem.check()?;
    let fields = (0..problem.program.fields().len()).map(|field| {
        let start = match problem.program.start(field) {
            Start::Given => Start::Random { seed: seed + field as u64, low: -1.0, high: 1.0 },
            start => start.clone(),
        };
        start.fill(&problem.shape_of(field)?, problem.dtype)
    });
    let fields = fields.collect::<Result<_>>()?;
    Ok((problem, fields))
}

fn program(rng: &mut Rng, base: &Program) -> Result<Program> {
    let dimensions = base.dimensions();
    let mut p = Definition::of(base);
    p.rename("described: \"all\" of it");
    p.parameter("dt", 0.0625, "step in s").parameter("dx", 0.3, "cell in m");
    p.derived("dt / dx", "of other parameters", |s| s.param("dt") / s.param("dx"));
    let choices: Vec<(u8, f64)> = (0..rng.usize(1..60)).map(|_| (rng.u8(..), rng.f64() - 0.5)).collect();
    p.derived("κ'", "", |s| derived(s, &choices));
    p.components("Y", 3, Centring::CELL);
    p.scalar("time", Some(0.0), "").scalar("mean \"Y\"", None, "a sum");
    p.extent("n", rng.usize(0..dimensions), "cells");
    // Of the parts of a stage that a file has as lines before it, some have the names of these.
    p.scalar("t1", Some(0.25), "");
    let weights = [0.11, -0.23, rng.f64()];
    let is_masked = rng.bool();
    p.extend(0)
        .reduce("mean \"Y\"", Reduction::Sum, Centring::CELL, |s| s.component("Y", 1).here() * s.param("κ'"))
        .stage("loops \\ and 'tables'", |s| {
            let (g, y) = (s.graph(), s.components("Y"));
            if is_masked {
                s.only_where(s.component("Y", 0).here().le(s.param("dt / dx")));
            }
            let w = g.table(&weights);
            let sum = g.sum(0..3, |i| y.at(i) * w.at(i));
            let least = g.least(1..3, |i| y.at(i) - y.at(i.plus(-1)) * s.param("κ'"));
            s.set_component("Y", 1, sum * s.param("dt / dx") + s.component("Y", 1).here() * 0.5);
            s.set_component(
                "Y",
                0,
                least * 0.125 + s.param("mean \"Y\"") / (s.param("n") + s.param("t1") * 64.0),
            );
        })
        .compute("time", |s| s.param("time") + s.param("dt"));
    if rng.u8(0..4) == 0 {
        let at = vec![0; dimensions];
        p.extend(0)
            .points_slice("source", &[at], |s| s.set_component("Y", 2, s.param("time") + s.param("κ'")));
    }
    let boundary = programs::boundary(rng, dimensions);
    match rng.u8(0..4) {
        0 => {}
        1 => drop(p.boundaries("mirror")),
        2 => drop(p.boundaries(&boundary)),
        _ => drop(p.boundaries(&format!("{boundary},a:x=clamp,Y:x-=reflect,Y:x+=constant=dt"))),
    }
    if rng.u8(0..4) == 0 {
        p.spacing(dimensions - 1, |s| s.param("dx"));
        let (side, slope) = (["x-", "x+", "x"][rng.usize(0..3)], rng.f64());
        let at = rng.usize(0..dimensions);
        p.wall("a", side, |s| match dimensions > 1 && at < dimensions - 1 {
            true => Wall::dirichlet((s.position(at, Centring::CELL) * slope).sin()),
            false => Wall::robin(s.param("dt"), s.constant(1.0), s.param("time") * slope),
        });
    }
    for field in ["a", "b", "Y[0]", "Y"] {
        let start = start(rng);
        p.start(field, start);
    }
    if rng.bool() {
        p.shown("b");
    }
    if rng.bool() {
        let sign = [">=", ">", "<", "<=", "==", "!="][rng.usize(0..6)];
        let scalar = ["time", "mean \"Y\"", "gain"][rng.usize(0..3)];
        p.until(&format!("{scalar} {sign} {:?}", rng.f64() * 0.25));
    }
    p.build()
}

/// Returns a formula of parameters, often so deep that parts of it need names. Its value is finite.
fn derived<'g>(s: &Scope<'g>, choices: &[(u8, f64)]) -> Expr<'g> {
    let (dt, dx) = (s.param("dt"), s.param("dx"));
    let mut all = vec![dt, dx, s.param("dt / dx")];
    for &(choice, number) in choices {
        let (x, y) = (all[all.len() - 1], all[usize::from(choice) % all.len()]);
        all.push(match choice % 12 {
            0 => (x + y).sin(),
            1 => x - y * number,
            2 => x * 0.5 + number,
            3 => (x.abs() + 1.0).log() / (y.abs() + 0.5),
            4 => x.mul_add(s.constant(number), y.cos()),
            5 => x.lt(y).select(x, y + number),
            6 => -x.min(y).tanh(),
            7 => (x.abs() + 0.1).pow(number) * 0.25,
            8 => x.max(y).atan2(dx + 2.0),
            9 => (-x.abs()).exp() - y.cbrt() * 0.125,
            10 => (x * x + y * y).sqrt().floor() * 0.5 - (y * number).erf(),
            _ => (x.abs() * 0.5).log1p() + (y.sin() * number).expm1(),
        });
    }
    // However large that is, the fields stay small.
    let last = all[all.len() - 1];
    last / (1.0 + last.abs())
}

fn start(rng: &mut Rng) -> Start {
    let (seed, low, high) = (rng.u64(0..1 << 62), rng.f64() - 1.0, rng.f64());
    match rng.u8(0..8) {
        0 => Start::Constant(low),
        1 => Start::Random { seed, low, high },
        2 => Start::Random { seed, low: 0.0, high: 1.0 },
        3 => Start::Gaussian,
        4 => Start::Point,
        5 => Start::Seeds { inside: high, outside: low, seed },
        6 => Start::Coin { seed, probability: high },
        _ => Start::Given,
    }
}
