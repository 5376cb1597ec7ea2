//! Random programs of several kinds of fields: on cells, nodes and faces, each with boundaries of its own,
//! with temporaries, reductions that steer later stages, parameters that vary, masks, sources at points and
//! cycles of steps.
//!
//! All operators are correctly rounded, and all values stay small.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Field, Reduction, Region, Step};
use abide_core::{Array, Boundary, DType, Expr, Problem, Result, Scope, Shape, Start};
use fastrand::Rng;

/// Names of fields, of which a program has the first few, and of temporaries.
const FIELDS: [&str; 5] = ["a", "b", "c", "d", "e"];
const TEMPORARIES: [&str; 2] = ["s", "t"];

/// A kind of tap: a field or temporary, an offset, and a weight.
pub(crate) type Term = (&'static str, [i32; 3], f64);

/// Returns a random problem and its initial fields; the same for the same seed. Fails where the program that
/// was drawn reads beyond a fixed side, or its domain is too small for a region.
pub fn problem(seed: u64) -> Result<(Problem, Vec<Array>)> {
    let mut rng = Rng::with_seed(seed);
    let dimensions = rng.usize(1..=3);
    let most = [300, 40, 13][dimensions - 1];
    let small = rng.u8(0..3) == 0;
    let extents: Vec<usize> =
        (0..dimensions).map(|_| if small { rng.usize(1..=5) } else { rng.usize(3..=most) }).collect();
    let program = program(&mut rng, &extents)?;
    let dtype = [DType::F32, DType::F64][rng.usize(0..2)];
    let mut problem = Problem::new(Arc::new(program), Shape::new(&extents)?, dtype)?;
    problem.first_step = rng.u64(0..5);
    let fields = (0..problem.program.fields().len())
        .map(|field| {
            let start = Start::Random { seed: seed + field as u64, low: -1.0, high: 1.0 };
            start.fill(&problem.shape_of(field)?, dtype)
        })
        .collect::<Result<_>>()?;
    Ok((problem, fields))
}

fn program(rng: &mut Rng, extents: &[usize]) -> Result<abide_core::Program> {
    let dimensions = extents.len();
    let mut p = Definition::new("random", dimensions);
    let centring = |rng: &mut Rng| match rng.u8(0..4) {
        0 | 1 => Centring::CELL,
        2 => Centring::NODE,
        _ => Centring::face(dimensions, rng.usize(0..dimensions)),
    };
    let mut centrings: Vec<(&'static str, Centring)> = Vec::new();
    for &name in &FIELDS[..rng.usize(2..=FIELDS.len())] {
        let own = centring(rng);
        p.field(name, own).boundary_of(name, &boundary(rng, dimensions));
        centrings.push((name, own));
    }
    for &name in &TEMPORARIES[..rng.usize(0..=TEMPORARIES.len())] {
        let own = centring(rng);
        p.temporary(name, own);
        centrings.push((name, own));
    }
    p.parameter("k", 0.3, "a factor").parameter("h", 0.5, "a factor that may vary");
    p.scalar("found", Some(0.25), "a reduction").scalar("gain", Some(0.5), "what follows from it");
    for _ in 0..rng.usize(1..=2) {
        let mut step = p.step();
        let mut known: Vec<&'static str> =
            centrings.iter().map(|(name, _)| *name).filter(|name| FIELDS.contains(name)).collect();
        if rng.u8(0..4) == 0 {
            reduce(rng, &mut step, &known, dimensions, true);
        }
        for number in 0..rng.usize(2..=6) {
            if rng.u8(0..4) == 0 {
                reduce(rng, &mut step, &known, dimensions, false);
                continue;
            }
            let (target, own) = centrings[rng.usize(0..centrings.len())];
            let mut targets = vec![target];
            let alike = centrings.iter().find(|(name, other)| *other == own && *name != target);
            targets.extend(alike.map(|(name, _)| *name).filter(|_| rng.bool()));
            let formulas: Vec<(&str, Vec<Term>)> =
                targets.iter().map(|&target| (target, terms(rng, &known, dimensions))).collect();
            let is_copy = rng.u8(0..6) == 0;
            let at_points = rng.u8(0..6) == 0 && targets.iter().all(|target| FIELDS.contains(target));
            let points = points(rng, extents);
            let is_masked = rng.u8(0..4) == 0 && targets.iter().all(|target| FIELDS.contains(target));
            let kind = rng.u8(0..3);
            let define = |s: &Scope<'_>| {
                if is_masked {
                    s.only_where(s.coord(0).lt(2.5));
                }
                for (target, terms) in &formulas {
                    let (from, _, _) = terms[0];
                    let same =
                        |name: &str| centrings.iter().find(|known| known.0 == name).map(|known| known.1);
                    let value = match is_copy && same(from) == same(target) {
                        true => s.field(from).here(),
                        false => formula(s, terms, kind),
                    };
                    s.set(target, value);
                }
            };
            let name = format!("stage {number}");
            match at_points {
                false => step.stage(&name, define),
                true => step.points_slice(&name, &last_of(&points, dimensions), define),
            };
            known.extend(targets.iter().filter(|target| TEMPORARIES.contains(target)));
        }
        step.compute("gain", |s| 1.0 / (1.0 + s.param("found").abs()));
    }
    if rng.bool() {
        p.vary("h", |s| 0.25 + s.param("gain") * s.param("k"));
    }
    p.build()
}

/// Returns a tap times its weight.
pub(crate) fn tapped<'g>(s: &Scope<'g>, &(name, offset, weight): &Term) -> Expr<'g> {
    let field: Field<'_, 'g> = s.field(name);
    field.at_slice(&offset[3 - s.dimensions()..]) * weight
}

/// Returns a formula of taps whose value is at most 2 where those of its taps are.
fn formula<'g>(s: &Scope<'g>, terms: &[Term], kind: u8) -> Expr<'g> {
    let tap = |term: &Term| tapped(s, term);
    let sum = terms.iter().map(tap).reduce(|sum, term| sum + term).unwrap_or_else(|| s.constant(0.0));
    let last = terms.last().map_or_else(|| s.constant(1.0), tap);
    match kind {
        0 => sum * s.param("gain") + s.param("k") * last * s.param("h"),
        1 => sum.lt(last).select(sum - last * s.param("k"), last / (1.0 + sum.abs())),
        2 => sum.max(last * last) - (sum.abs() + s.param("gain").abs()).sqrt() * 0.5,
        _ => sum.max(last * last) - last * s.param("h"),
    }
}

pub(crate) fn terms(rng: &mut Rng, known: &[&'static str], dimensions: usize) -> Vec<Term> {
    let count = rng.usize(1..=4);
    (0..count)
        .map(|_| {
            let mut offset = [0; 3];
            for axis in 3 - dimensions..3 {
                offset[axis] = if rng.bool() { 0 } else { rng.i32(-2..=2) };
            }
            (known[rng.usize(0..known.len())], offset, (rng.f64() - 0.5) / count as f64)
        })
        .collect()
}

/// Adds a reduction over a region: of what the step finds, each value by itself and no scalar, where that `is_found`.
fn reduce(rng: &mut Rng, step: &mut Step<'_>, known: &[&'static str], dimensions: usize, is_found: bool) {
    let reduction = [Reduction::Min, Reduction::Max, Reduction::Sum][rng.usize(0..3)];
    let mut region = Region::from([Centring::CELL, Centring::NODE][rng.usize(0..2)]);
    if rng.bool() {
        let axis = rng.usize(3 - dimensions..3);
        region = region.without(axis, rng.usize(0..2), rng.usize(0..2));
    }
    let mut terms = terms(rng, known, dimensions);
    if is_found {
        terms.iter_mut().for_each(|(_, offset, _)| *offset = [0; 3]);
    }
    step.reduce("found", reduction, region, |s| formula(s, &terms, if is_found { 3 } else { 0 }));
}

/// Returns the indices of points along the last axes.
pub(crate) fn last_of(points: &[[usize; 3]], dimensions: usize) -> Vec<&[usize]> {
    points.iter().map(|point| &point[3 - dimensions..]).collect()
}

/// Returns the point at the low sides of the domain and another one, if there is one.
pub(crate) fn points(rng: &mut Rng, extents: &[usize]) -> Vec<[usize; 3]> {
    let mut point = [0; 3];
    for (axis, &extent) in (3 - extents.len()..3).zip(extents) {
        point[axis] = rng.usize(0..extent);
    }
    let mut points = vec![point, [0; 3]];
    points.dedup();
    points
}

/// Returns a random boundary for each axis or side.
pub(crate) fn boundary(rng: &mut Rng, dimensions: usize) -> String {
    let mut parts = Vec::new();
    for axis in 3 - dimensions..3 {
        let name = abide_core::domain::axis_name(axis);
        if rng.u8(0..4) == 0 {
            parts.push(format!("{name}=periodic"));
            continue;
        }
        for side in ["-", "+"] {
            if rng.u8(0..6) == 0 {
                let scalar = ["k", "h", "gain", "found"][rng.usize(0..4)];
                parts.push(format!("{name}{side}=constant={scalar}"));
                continue;
            }
            let kinds = Boundary::each(0.25);
            let kind = loop {
                let kind = kinds[rng.usize(0..kinds.len())];
                // A fixed side has no ghost values, which most of these programs would read.
                if kind != Boundary::Periodic && (kind != Boundary::Fixed || rng.u8(0..8) == 0) {
                    break kind;
                }
            };
            parts.push(format!("{name}{side}={kind}"));
        }
    }
    parts.join(",")
}
