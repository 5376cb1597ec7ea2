//! Separable systems solved by transforms along the axes, against a dense elimination of the same equations written by hand.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Solve, SolveMethod, Transforms, Wall};
use abide_core::{Boundary, DType, Problem, Program, Result, Shape};

use super::solve::{drawn, eliminated, field, largest, run, scalar};

const DIRECT: Solve = Solve { method: SolveMethod::Direct, tolerance: 1e-12, most: 20, null_space: false };

/// The two sides of an axis, and for each the ghost value's part of the value beside it.
type Sides = (&'static str, [f64; 2]);

const SIDES: [Sides; 6] = [
    ("mirror", [1.0, 1.0]),
    ("-mirror", [-1.0, -1.0]),
    ("constant=0", [0.0, 0.0]),
    ("{}-=mirror,{}+=-mirror", [1.0, -1.0]),
    ("{}-=constant=0,{}+=clamp", [0.0, 1.0]),
    ("{}-=-mirror,{}+=constant=0", [-1.0, 0.0]),
];

/// −Σ tₐ ∂²u + s u on cells, with a width of cells that grows along x where it is stretched.
fn program(t: [f64; 2], s: f64, is_stretched: bool, boundary: &str) -> Program {
    let mut p = Definition::new("separable", 2);
    p.field("u", Centring::CELL).field("f", Centring::CELL).boundary_of("u", boundary);
    let how = Solve { null_space: s == 0.0, ..DIRECT };
    p.step().solve(
        "u",
        &how,
        &|scope| {
            let u = scope.field("u");
            let mut sum = s * u.here();
            for (axis, by) in [(0, -1), (0, 1), (1, -1), (1, 1)] {
                let flow = t[axis] * (u.here() - u.along(axis, by));
                sum = sum + if is_stretched && axis == 1 { flow / width(scope.coord(1)) } else { flow };
            }
            sum
        },
        &|s| s.field("f").here(),
    );
    p.build().unwrap()
}

fn width<T>(place: T) -> T
where
    f64: std::ops::Mul<T, Output = T> + std::ops::Add<T, Output = T>,
{
    1.0 + 0.25 * place
}

/// Returns the solution by elimination. Of a singular system the first value is 0 then.
fn expected(
    [rows, cells]: [usize; 2],
    t: [f64; 2],
    s: f64,
    is_stretched: bool,
    sides: [Option<[f64; 2]>; 2],
    f: &[f64],
) -> Vec<f64> {
    let n = rows * cells;
    let (mut a, mut b) = (vec![vec![0.0; n]; n], f.to_vec());
    for (y, x) in (0..rows).flat_map(|y| (0..cells).map(move |x| (y, x))) {
        let own = y * cells + x;
        a[own][own] += s;
        for (axis, by) in [(0, -1_isize), (0, 1), (1, -1), (1, 1)] {
            let (place, count) = if axis == 0 { (y, rows) } else { (x, cells) };
            let weight = t[axis] / if is_stretched && axis == 1 { width(x as f64) } else { 1.0 };
            a[own][own] += weight;
            let beside = place as isize + by;
            let other = |beside: usize| if axis == 0 { beside * cells + x } else { y * cells + beside };
            match sides[axis] {
                None => a[own][other(beside.rem_euclid(count as isize) as usize)] -= weight,
                Some([low, _]) if beside < 0 => a[own][own] -= low * weight,
                Some([_, high]) if beside as usize == count => a[own][own] -= high * weight,
                Some(_) => a[own][other(beside as usize)] -= weight,
            }
        }
    }
    if s == 0.0 && sides.iter().all(|sides| sides.is_none_or(|sides| sides == [1.0; 2])) {
        a[0] = vec![0.0; n];
        (a[0][0], b[0]) = (1.0, 0.0);
    }
    eliminated(a, b)
}

/// All walls, of uniform cells and of such that grow, on odd, even and single extents, have the elimination's solution, in an iteration
/// or two.
#[test]
fn walls_of_all_kinds_are_solved() {
    let named = |(words, _): Sides, axis: &str| match words.contains('{') {
        true => words.replace("{}", axis),
        false => format!("{axis}={words}"),
    };
    for (number, extents) in [[5, 8], [4, 7], [1, 6], [6, 1], [2, 2], [16, 9]].into_iter().enumerate() {
        for (turn, sides) in SIDES.into_iter().enumerate() {
            for is_stretched in [false, true] {
                let (t, s) = ([1.5, 0.5 + number as f64], if turn % 2 == 0 { 0.25 } else { -0.015625 });
                let other = SIDES[(turn + number) % SIDES.len()];
                let (y, own) = match (turn + number) % 3 {
                    0 => ("y=periodic".to_owned(), None),
                    _ => (named(other, "y"), Some(other.1)),
                };
                let boundary = format!("{y},{}", named(sides, "x"));
                let program = program(t, s, is_stretched, &boundary);
                let f = drawn(extents[0] * extents[1]);
                let expected = expected(extents, t, s, is_stretched, [own, Some(sides.1)], &f);
                let (problem, mut session) = run(program, &extents, &[("f", f)], 1);
                let session = session.as_mut();
                let found = field(&problem, session, "u");
                let scale = largest(&expected, &vec![0.0; expected.len()]);
                let what = format!("{extents:?} {boundary} {is_stretched}");
                assert!(largest(&found, &expected) < 1e-10 * scale, "{what}: {found:?} {expected:?}");
                let (iterations, residual) =
                    (scalar(&problem, session, "u_iterations"), scalar(&problem, session, "u_residual"));
                assert!(
                    (1.0..=3.0).contains(&iterations) && residual < 1e-12,
                    "{what}: {iterations} {residual:e}"
                );
            }
        }
    }
}

/// With derivatives alone at all walls, and with periodic sides, the solution is the one without a mean; of cells of several widths
/// that is the mean by these.
#[test]
fn constants_are_left_out() {
    let even = Some([1.0; 2]);
    for (boundary, sides, is_stretched) in [
        ("periodic", [None; 2], false),
        ("mirror", [even; 2], false),
        ("y=periodic,x=clamp", [None, even], false),
        ("mirror", [even; 2], true),
        ("y=periodic,x=clamp", [None, even], true),
    ] {
        let (extents, t) = ([6, 7], [1.0, 2.0]);
        let widths: Vec<f64> =
            (0..42).map(|i| if is_stretched { width((i % 7) as f64) } else { 1.0 }).collect();
        let without_mean = |values: &[f64]| -> Vec<f64> {
            let sum: f64 = values.iter().zip(&widths).map(|(value, width)| value * width).sum();
            let mean = sum / widths.iter().sum::<f64>();
            values.iter().map(|value| value - mean).collect()
        };
        let f: Vec<f64> = drawn(42);
        let expected = without_mean(&expected(extents, t, 0.0, is_stretched, sides, &without_mean(&f)));
        let (problem, mut session) = run(program(t, 0.0, is_stretched, boundary), &extents, &[("f", f)], 2);
        let found = field(&problem, session.as_mut(), "u");
        assert!(largest(&found, &expected) < 1e-12, "{boundary} {is_stretched}: {found:?} {expected:?}");
        assert!(scalar(&problem, session.as_mut(), "u_residual") < 1e-12, "{boundary} {is_stretched}");
    }
}

/// Values at walls, and cells that keep theirs, are the right-hand side's.
#[test]
fn values_at_walls_and_held_cells_count() {
    let mut p = Definition::new("walls", 1);
    p.field("u", Centring::CELL);
    p.wall("u", "x-", |s| Wall::dirichlet(s.constant(1.0)))
        .wall("u", "x+", |s| Wall::neumann(s.constant(2.0)));
    p.step().solve("u", &DIRECT, &|s| -s.field("u").laplacian(), &|s| s.constant(0.0));
    let (problem, mut session) = run(p.build().unwrap(), &[9], &[], 1);
    // A straight line from the value with the slope.
    let line: Vec<f64> = (0..9).map(|i| 1.0 + 2.0 * (i as f64 + 0.5)).collect();
    assert!(largest(&field(&problem, session.as_mut(), "u"), &line) < 1e-11);

    let mut p = Definition::new("held", 1);
    p.field("u", Centring::CELL).boundary(Boundary::Fixed);
    p.step().solve("u", &DIRECT, &|s| -s.field("u").laplacian(), &|s| s.constant(0.0));
    let mut u = vec![7.0; 9];
    (u[0], u[8]) = (1.0, 5.0);
    let (problem, mut session) = run(p.build().unwrap(), &[9], &[("u", u)], 1);
    let line: Vec<f64> = (0..9).map(|i| 1.0 + 0.5 * i as f64).collect();
    assert!(largest(&field(&problem, session.as_mut(), "u"), &line) < 1e-12);
}

/// A parameter of the operator that is set between two steps changes the matrices.
#[test]
fn parameters_change_the_operator() {
    let mut p = Definition::new("implicit", 1);
    p.field("u", Centring::CELL).boundary(Boundary::Mirror).parameter("r", 0.5, "dt k / dx^2");
    let operator: abide_core::program::SystemFormula<'_> =
        &|s| s.field("u").here() - s.param("r") * s.field("u").laplacian();
    p.step().solve("u", &DIRECT, operator, &|s| s.field("u").here());
    let (problem, mut session) = run(p.build().unwrap(), &[8], &[("u", drawn(8))], 1);
    let before = field(&problem, session.as_mut(), "u");
    session.set_parameter(0, 4.0).unwrap();
    session.advance(1).unwrap();
    let after = field(&problem, session.as_mut(), "u");
    let applied = |i: usize| {
        let at = |i: isize| after[i.clamp(0, 7) as usize];
        after[i] - 4.0 * (at(i as isize - 1) + at(i as isize + 1) - 2.0 * after[i])
    };
    assert!(largest(&(0..8).map(applied).collect::<Vec<_>>(), &before) < 1e-12);
}

/// What is no sum of lines along the axes is refused, with what to do instead.
#[test]
fn others_are_refused() {
    let defined = |boundary: &str, how: &dyn Fn(&mut Definition)| -> Result<Problem> {
        let mut p = Definition::new("other", 2);
        p.field("u", Centring::CELL).field("k", Centring::CELL).field("f", Centring::CELL);
        p.scalar("dt", Some(0.5), "a time step").boundary_of("u", boundary);
        how(&mut p);
        Problem::new(Arc::new(p.build()?), Shape::new(&[6, 7])?, DType::F64)
    };
    let refused = |what: &str, boundary: &str, how: &dyn Fn(&mut Definition)| {
        let why = defined(boundary, how).and_then(|problem| Transforms::of(&problem)).err();
        let why = why.unwrap_or_else(|| panic!("{what} is not refused")).to_string();
        assert!(why.contains("multigrid"), "{what}: {why}");
        why
    };
    refused("a field as coefficient", "mirror", &|p| {
        p.step().solve("u", &DIRECT, &|s| s.field("k").here() * s.field("u").laplacian(), &|s| {
            s.field("f").here()
        });
    });
    refused("a place of another axis", "mirror", &|p| {
        p.step().solve("u", &DIRECT, &|s| (2.0 + s.coord(0)) * s.field("u").laplacian(), &|s| {
            s.field("f").here()
        });
    });
    refused("a far neighbour", "mirror", &|p| {
        p.step().solve("u", &DIRECT, &|s| s.field("u").at([1, 1]) - 4.0 * s.field("u").here(), &|s| {
            s.field("f").here()
        });
    });
    let why = refused("a scalar that steps make", "mirror", &|p| {
        p.step().compute("dt", |s| 0.5 * s.param("dt"));
        p.step().solve(
            "u",
            &DIRECT,
            &|s| s.field("u").here() - s.param("dt") * s.field("u").laplacian(),
            &|s| s.field("f").here(),
        );
    });
    assert!(why.contains("steps compute"), "{why}");
    refused("a wind", "periodic", &|p| {
        p.step().solve(
            "u",
            &DIRECT,
            &|s| {
                let u = s.field("u");
                u.here() - u.laplacian() + 2.0 * (u.along(1, 1) - u.along(1, -1))
            },
            &|s| s.field("f").here(),
        );
    });
}
