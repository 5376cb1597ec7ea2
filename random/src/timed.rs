//! Random programs of fields on cells that share their boundaries but for signs and values, whose scalars follow from the step's number: with
//! temporaries, sources at points, masks and parameters that vary; and the same with a reduction once in several steps.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Reduction, Region, Step};
use abide_core::{Array, Boundaries, Boundary, DType, Expr, Problem, Program, Result, Scope, Shape, Start};
use fastrand::Rng;

use crate::programs::{Term, last_of, points, tapped, terms};

/// Names of fields, of which a program has the first few, and of temporaries.
const FIELDS: [&str; 3] = ["a", "b", "c"];
const TEMPORARIES: [&str; 2] = ["s", "t"];

/// Returns a random problem and its initial fields; the same for the same seed.
///
/// # Errors
///
/// Those of a program that reads beyond a fixed side.
pub fn problem(seed: u64) -> Result<(Problem, Vec<Array>)> {
    drawn(seed, None)
}

/// Returns the problem of a seed with a reduction that is made once in so many steps, before or behind all that a step does.
///
/// # Errors
///
/// Those of [`problem`].
pub fn reduced(seed: u64) -> Result<(Problem, Vec<Array>)> {
    drawn(seed, Some(&mut Rng::with_seed(!seed)))
}

fn drawn(seed: u64, reduced: Option<&mut Rng>) -> Result<(Problem, Vec<Array>)> {
    let mut rng = Rng::with_seed(seed);
    let dimensions = rng.usize(1..=3);
    let most = [300, 40, 13][dimensions - 1];
    let extents: Vec<usize> = (0..dimensions).map(|_| rng.usize(5..=most)).collect();
    let program = program(&mut rng, &extents, reduced)?;
    on_domain(&mut rng, program, &extents, seed, |rng| rng.bool())
}

/// Returns the problem of a program on a domain, of a random type and with random boundaries, and its initial fields; fields have
/// boundaries of their own where `has_own` says so.
pub(crate) fn on_domain(
    rng: &mut Rng,
    program: Program,
    extents: &[usize],
    seed: u64,
    has_own: impl FnOnce(&mut Rng) -> bool,
) -> Result<(Problem, Vec<Array>)> {
    let dtype = [DType::F32, DType::F64][rng.usize(0..2)];
    let mut problem = Problem::new(Arc::new(program), Shape::new(extents)?, dtype)?;
    problem.set_boundaries(Boundaries::parse(&boundary(rng, extents.len()), Boundary::Clamp)?);
    if has_own(rng) {
        own_boundaries(rng, &mut problem)?;
    }
    problem.check()?;
    let fields = (0..problem.program.fields().len())
        .map(|field| {
            let start = Start::Random { seed: seed + field as u64, low: -1.0, high: 1.0 };
            start.fill(&problem.shape, dtype)
        })
        .collect::<Result<_>>()?;
    Ok((problem, fields))
}

/// Gives some fields boundaries of their own at some sides: signs, values of parameters and scalars, other kinds.
fn own_boundaries(rng: &mut Rng, problem: &mut Problem) -> Result<()> {
    let fields = problem.program.fields().len();
    let is_temporary = |value: &usize| *value >= fields;
    // A temporary would read the scalar of its own place.
    let values = match problem.program.stages().iter().any(|stage| stage.writes.iter().any(is_temporary)) {
        true => &["constant=h", "constant=-0.5"][..],
        false => &["constant=h", "constant=gain", "constant=-0.5"],
    };
    let values = values.iter().map(|value| value.parse()).collect::<Result<Vec<Boundary>>>()?;
    let others = ["clamp", "mirror", "reflect", "-mirror", "-reflect"];
    let others = others.iter().map(|other| other.parse()).collect::<Result<Vec<Boundary>>>()?;
    for axis in problem.slowest()..3 {
        let is_round = problem.boundaries.0[axis].contains(&Boundary::Periodic);
        for sides in &mut problem.sides {
            // A field goes on at the other side of an axis at both, or at none.
            let is_own = [rng.u8(0..3) == 0, rng.u8(0..3) == 0];
            for side in 0..2 {
                let shared = problem.boundaries.0[axis][side];
                let own: Vec<Boundary> = match shared {
                    Boundary::Fixed => continue,
                    Boundary::Mirror if rng.bool() => vec![Boundary::MinusMirror],
                    Boundary::Reflect if rng.bool() => vec![Boundary::MinusReflect],
                    _ => others.clone(),
                };
                let own: Vec<Boundary> = own.into_iter().chain(values.iter().copied()).collect();
                if is_own[if is_round { 0 } else { side }] {
                    sides.0[axis][side] = Some(own[rng.usize(0..own.len())]);
                }
            }
        }
    }
    Ok(())
}

/// Returns random boundaries that all fields share, as they are written.
fn boundary(rng: &mut Rng, dimensions: usize) -> String {
    let kinds = Boundary::each_plain(0.25);
    let mut parts = Vec::new();
    for axis in 3 - dimensions..3 {
        let name = abide_core::domain::axis_name(axis);
        match rng.u8(0..3) {
            0 => parts.push(format!("{name}=periodic")),
            _ => {
                // A fixed side has no ghost values, which most of these programs would read.
                let is_own = |kind: Boundary, turn: u8| {
                    kind != Boundary::Periodic && (kind != Boundary::Fixed || turn == 0)
                };
                for side in ["-", "+"] {
                    let turn = rng.u8(0..12);
                    let own: Vec<_> = kinds.iter().filter(|&&kind| is_own(kind, turn)).collect();
                    parts.push(format!("{name}{side}={}", own[rng.usize(0..own.len())]));
                }
            }
        }
    }
    parts.join(",")
}

fn program(rng: &mut Rng, extents: &[usize], mut reduced: Option<&mut Rng>) -> Result<Program> {
    let dimensions = extents.len();
    let mut p = Definition::new("timed", dimensions);
    let fields = &FIELDS[..rng.usize(1..=FIELDS.len())];
    for name in fields {
        p.field(name, Centring::CELL);
    }
    for name in TEMPORARIES {
        p.temporary(name, Centring::CELL);
    }
    p.parameter("k", 0.3, "a factor").parameter("h", 0.5, "a factor that may vary");
    p.scalar("time", Some(0.25), "the time").scalar("gain", Some(0.5), "what follows from it");
    let mut step = p.step();
    let mut known: Vec<&'static str> = fields.to_vec();
    let is_first = reduced.as_mut().is_some_and(|rng| rng.bool());
    if let Some(rng) = reduced.as_mut().filter(|_| is_first) {
        reduce(&mut step, rng, &known, dimensions);
    }
    for number in 0..rng.usize(2..=6) {
        match rng.u8(0..5) {
            0 => step.compute("time", |s| s.param("time") + s.param("k") * 0.25),
            1 => step.compute("gain", |s| 0.5 * s.param("gain") + 0.25 * s.param("time").sin()),
            _ => &mut step,
        };
        let is_temporary = rng.u8(0..3) == 0;
        let names = if is_temporary { &TEMPORARIES[..] } else { fields };
        let mut targets = vec![names[rng.usize(0..names.len())]];
        if rng.u8(0..3) == 0 {
            let other = FIELDS[..fields.len()].iter().chain(&TEMPORARIES).nth(rng.usize(0..fields.len() + 2));
            targets.extend(other.copied().filter(|name| *name != targets[0]));
        }
        let formulas: Vec<(&str, Vec<Term>)> =
            targets.iter().map(|&target| (target, terms(rng, &known, dimensions))).collect();
        let kind = rng.u8(0..4);
        let define = |s: &Scope<'_>| {
            formulas.iter().for_each(|(target, terms)| s.set(target, formula(s, terms, kind)));
        };
        let at_points = rng.u8(0..4) == 0 && targets.iter().all(|target| FIELDS.contains(target));
        let points = points(rng, extents);
        let name = format!("stage {number}");
        match at_points {
            false => step.stage(&name, define),
            true => step.points_slice(&name, &last_of(&points, dimensions), define),
        };
        known.extend(targets.iter().filter(|target| TEMPORARIES.contains(target)));
    }
    let last = fields[0];
    let end = terms(rng, &known, dimensions);
    step.stage("last", |s| s.set(last, formula(s, &end, 0)));
    if let Some(rng) = reduced.filter(|_| !is_first) {
        reduce(&mut step, rng, &known, dimensions);
        step.compute("gain", |s| s.param("gain").abs().min(0.75));
    }
    if rng.bool() {
        p.vary("h", |s| 0.25 + s.param("gain") * s.param("k"));
    }
    p.build()
}

/// Adds the reduction of some fields to the gain.
fn reduce(step: &mut Step<'_>, rng: &mut Rng, known: &[&'static str], dimensions: usize) {
    let (every, terms) = (rng.usize(2..=9), terms(rng, known, dimensions));
    let kind = [Reduction::Max, Reduction::Min, Reduction::Sum][rng.usize(0..3)];
    let region = Region::from(Centring::CELL).without(2, rng.usize(0..2), rng.usize(0..2));
    step.reduce_every(every, "gain", kind, region, |s| {
        0.125 * formula(s, &terms, 3) / (1.0 + s.param("gain").abs())
    });
}

/// Returns a formula of taps whose value is at most 2 where those of its taps are; parts of it are of scalars alone.
fn formula<'g>(s: &Scope<'g>, terms: &[Term], kind: u8) -> Expr<'g> {
    let tap = |term: &Term| tapped(s, term);
    let sum = terms.iter().map(tap).reduce(|sum, term| sum + term).unwrap_or_else(|| s.constant(0.0));
    let last = terms.last().map_or_else(|| s.constant(1.0), tap);
    let common = (s.param("time") * 0.5 + s.param("h")).cos() / (1.0 + s.param("k"));
    match kind {
        0 => sum * s.param("gain") + common * last * s.param("h"),
        1 => sum.lt(last).select(sum - last * s.param("k"), last / (1.0 + sum.abs())),
        2 => sum.max(last * common) - s.coord(0) / (40.0 + s.coord(0)) * (s.param("gain").abs() + 0.5).sqrt(),
        _ => common + 0.25 * sum,
    }
}
