//! Same bits as the reference, for every entry of the catalogue, at awkward extents, under every boundary.

use std::sync::Arc;

use abide::catalogue::{self, Entry};
use abide::program::{Centring, Definition};
use abide::{Boundaries, Boundary, Options, Result};

use crate::trust::subject::{Subject, each, fields, problem};

/// Extents: one cell, two, three, primes, thinner than any tile, long and flat.
const LINES: &[&[usize]] = &[&[1], &[2], &[3], &[31], &[257], &[1021], &[4099]];
const PLANES: &[&[usize]] =
    &[&[1, 1], &[1, 37], &[2, 3], &[5, 2], &[29, 1], &[13, 31], &[37, 67], &[7, 1031], &[263, 6]];
const CUBES: &[&[usize]] =
    &[&[1, 1, 1], &[1, 1, 9], &[2, 3, 5], &[3, 3, 3], &[7, 5, 67], &[19, 13, 17], &[61, 3, 2], &[5, 37, 35]];

/// Returns every boundary alone, and mixtures by axis and by side.
fn boundaries() -> Vec<Boundaries> {
    use Boundary::{Constant, Fixed, Mirror, Periodic};
    let mut all: Vec<Boundaries> = Boundary::each_plain(0.75).into_iter().map(Boundaries::all).collect();
    all.push(Boundaries([[Periodic, Periodic], [Mirror, Constant(-0.5)], [Fixed, Mirror]]));
    all.push(Boundaries([[Constant(0.25), Fixed], [Periodic, Periodic], [Mirror, Fixed]]));
    all.push(Boundaries([[Mirror, Mirror], [Constant(0.5), Constant(0.0)], [Periodic, Periodic]]));
    all
}

/// Runs the entries that have a number of axes at all extents and types. The boundaries take turns, so that
/// each entry meets each of them several times. Every other case also runs in a way that is not the backend's
/// first choice.
fn sweep(subject: &Subject, wanted: fn(&Entry) -> bool, axes: usize, extents: &[&[usize]]) -> Result<()> {
    let boundaries = boundaries();
    let (mut turn, mut cases) = (0, Vec::new());
    for entry in catalogue::plain().filter(|entry| wanted(entry) && entry.dimensions.contains(&axes)) {
        let program = Arc::new(entry.program(axes)?);
        for extents in extents {
            for dtype in subject.dtypes() {
                for _ in 0..2 {
                    turn += 1;
                    let boundary = boundaries[turn % boundaries.len()];
                    // A domain thinner than the radius has no periodic or mirrored ghost cells; `contract`
                    // tests the refusal.
                    let made = problem(program.clone(), extents, dtype, boundary);
                    let Ok(problem) =
                        made.or_else(|_| problem(program.clone(), extents, dtype, boundaries[3]))
                    else {
                        continue;
                    };
                    let options = match turn % 2 {
                        0 => Options::default(),
                        _ => {
                            let variants = subject.variants(&problem);
                            variants[turn / 2 % variants.len()]
                        }
                    };
                    cases.push((turn, problem, options));
                }
            }
        }
        // The turns must not keep step with the lengths of the lists.
        turn += 1;
    }
    assert!(!cases.is_empty(), "nothing was compared");
    each(&subject.sampled(cases), |(turn, problem, options)| {
        subject.compare(problem, &[*options], &fields(problem, *turn as u64)?, 5)
    })
}

fn is_linear(entry: &Entry) -> bool {
    let program = entry.program(*entry.dimensions.start());
    program.is_ok_and(|program| program.parameters().is_empty() && program.stages()[0].footprint.linear)
}

fn is_model(entry: &Entry) -> bool {
    !is_linear(entry)
}

pub fn lines(subject: &Subject) -> Result<()> {
    sweep(subject, is_linear, 1, LINES)
}

pub fn planes(subject: &Subject) -> Result<()> {
    sweep(subject, is_linear, 2, PLANES)
}

pub fn cubes(subject: &Subject) -> Result<()> {
    sweep(subject, is_linear, 3, CUBES)
}

pub fn models_of_one_axis(subject: &Subject) -> Result<()> {
    sweep(subject, is_model, 1, LINES)
}

pub fn models_of_two_axes(subject: &Subject) -> Result<()> {
    sweep(subject, is_model, 2, PLANES)
}

pub fn models_of_three_axes(subject: &Subject) -> Result<()> {
    sweep(subject, is_model, 3, CUBES)
}

/// Runs every execution, cache policy and depth that the backend has, for every entry.
pub fn every_policy(subject: &Subject) -> Result<()> {
    let boundaries = boundaries();
    let mut problems = Vec::new();
    for (number, entry) in catalogue::plain().enumerate() {
        for axes in entry.dimensions.clone() {
            let program = Arc::new(entry.program(axes)?);
            let extents: &[usize] = [&[1999][..], &[53, 71], &[17, 19, 37]][axes - 1];
            for dtype in subject.dtypes() {
                let boundary = boundaries[(number + axes + dtype.bytes() / 4) % boundaries.len()];
                problems.push(problem(program.clone(), extents, dtype, boundary)?);
            }
        }
    }
    each(&subject.sampled(problems), |problem| {
        subject.compare(problem, &subject.variants(problem), &fields(problem, 7)?, 4)
    })
}

/// Formulas that ask whether a cell is the first or the last of an axis, and use its index, too. Compilers of devices
/// simplify such questions together with the clamped index of the cell that a ghost cell shows.
pub fn sides_by_their_indices(subject: &Subject) -> Result<()> {
    let all: &[&[usize]] = &[&[67], &[13, 37], &[7, 11, 9]];
    let boundaries = boundaries();
    let mut problems = Vec::new();
    for (number, extents) in all.iter().enumerate() {
        let mut p = Definition::new("sides", extents.len());
        p.field("u", Centring::CELL);
        p.step().stage("sides", |s| {
            let (u, one, zero) = (s.field("u"), s.constant(1.0), s.constant(0.0));
            let mut value = u.here() + 0.1 * u.laplacian();
            let mut is_corner = one;
            for (axis, &extent) in extents.iter().enumerate() {
                let at = s.coord(axis);
                let is_last = at.eq(extent as f64 - 1.0);
                value = is_last.select(0.5 * value, value + 0.001 * at);
                value = at.eq(0.0).select(value - 0.25, value);
                is_corner = is_last.select(is_corner, zero);
            }
            s.set("u", is_corner.gt(0.5).select(value + 2.0, value));
        });
        let program = Arc::new(p.build()?);
        for (turn, &boundary) in boundaries.iter().enumerate() {
            // Where each case costs much, boundaries take turns in numbers of axes.
            if subject.name == "cpu" || turn % 3 == number {
                let dtypes = subject.dtypes();
                problems.push(problem(program.clone(), extents, dtypes[turn % dtypes.len()], boundary)?);
            }
        }
    }
    each(&problems, |problem| subject.compare(problem, &subject.variants(problem), &fields(problem, 5)?, 4))
}

/// Runs domains of many tiles, with partial tiles at every edge.
pub fn many_tiles(subject: &Subject) -> Result<()> {
    let boundaries = boundaries();
    let cases: [(&str, &[usize]); 6] = [
        ("1d3pt", &[70_001]),
        ("2d5pt", &[261, 517]),
        ("2d21pt", &[133, 269]),
        ("gray-scott", &[133, 267]),
        ("3d7pt", &[31, 37, 131]),
        ("3d27pt", &[19, 23, 131]),
    ];
    for (number, (name, extents)) in cases.into_iter().enumerate() {
        let program = Arc::new(catalogue::find(name)?.program(extents.len())?);
        // One type, the next in turn, where there are not all cases.
        let mut dtypes = subject.dtypes();
        if !subject.has_all_cases() {
            dtypes = vec![dtypes[number % dtypes.len()]];
        }
        for dtype in dtypes {
            let boundary = boundaries[(2 * number + dtype.bytes() / 4) % boundaries.len()];
            let problem = problem(program.clone(), extents, dtype, boundary)?;
            subject.compare(&problem, &subject.variants(&problem), &fields(&problem, 3)?, 3)?;
        }
    }
    Ok(())
}
