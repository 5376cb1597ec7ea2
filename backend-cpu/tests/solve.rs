//! Linear systems within a step, against a dense elimination of the same equations written by hand.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Solve, SolveMethod, Wall};
use abide_core::{Array, Backend, Boundary, DType, Options, Problem, Program, Session, Shape};
use abide_cpu::{CpuBackend, reference};

/// Returns the solution of a dense system by elimination with the largest pivots.
pub fn eliminated(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|&i, &j| a[i][column].abs().total_cmp(&a[j][column].abs())).unwrap();
        a.swap(column, pivot);
        b.swap(column, pivot);
        for row in column + 1..n {
            let factor = a[row][column] / a[column][column];
            let (upper, lower) = a.split_at_mut(row);
            for (own, above) in lower[0].iter_mut().zip(&upper[column]).skip(column) {
                *own -= factor * above;
            }
            b[row] -= factor * b[column];
        }
    }
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|column| a[row][column] * b[column]).sum();
        b[row] = (b[row] - known) / a[row][row];
    }
    b
}

/// Numbers between 0 and 1 that look like chance.
pub fn drawn(count: usize) -> Vec<f64> {
    (1..=count).map(|i| (i as f64 * 0.618_033_988_749_895).fract()).collect()
}

/// Opens a run of fields by their names, the others with zeros, and does so many steps.
pub fn run(
    program: Program,
    extents: &[usize],
    fields: &[(&str, Vec<f64>)],
    steps: u64,
) -> (Problem, Box<dyn Session>) {
    let problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), DType::F64).unwrap();
    let backend = CpuBackend::with_threads(2).unwrap();
    let plan = backend.plan(&problem, &Options::default()).unwrap();
    let start: Vec<Array> = problem
        .program
        .fields()
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let own = fields.iter().find(|(known, _)| known == name);
            Array::F64(own.map_or_else(|| vec![0.0; problem.values_of(number)], |(_, values)| values.clone()))
        })
        .collect();
    let mut expected = start.clone();
    reference::run_program(&problem, &mut expected, steps, |_, _, _| {}).unwrap();
    let mut session = backend.open(&problem, &plan, start).unwrap();
    session.advance(steps).unwrap();
    for (field, expected) in expected.iter().enumerate() {
        assert!(session.read(field).unwrap().same_bits(expected), "{}", problem.program.fields()[field]);
    }
    (problem, session)
}

pub fn field(problem: &Problem, session: &mut dyn Session, name: &str) -> Vec<f64> {
    session.read(problem.program.field(name).unwrap()).unwrap().to_f64()
}

pub fn scalar(problem: &Problem, session: &mut dyn Session, name: &str) -> f64 {
    session.scalars().unwrap()[problem.program.scalar(name).unwrap()]
}

pub fn largest(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// −∇·(k ∇u) + c u = f on 7 × 9 cells: a value of 1.5 at the low side of x, a slope of 0.5 at its high one, `periodic` along y, and
/// coefficients that jump by 100.
#[test]
fn diffusion_with_jumps_and_walls_is_solved() {
    let mut p = Definition::new("diffusion", 2);
    p.field("u", Centring::CELL).field("k", Centring::CELL).field("f", Centring::CELL);
    p.boundary(Boundary::Periodic);
    p.wall("u", "x-", |s| Wall::dirichlet(s.constant(1.5)))
        .wall("u", "x+", |s| Wall::neumann(s.constant(0.5)));
    p.boundary_of("k", "x=clamp").boundary_of("f", "x=clamp");
    p.step().solve(
        "u",
        &Solve { tolerance: 1e-12, ..Solve::default() },
        &|s| {
            let (u, k) = (s.field("u"), s.field("k"));
            let flux =
                |axis: usize, by: i32| 0.5 * (k.here() + k.along(axis, by)) * (u.along(axis, by) - u.here());
            0.25 * u.here() - (flux(0, -1) + flux(0, 1) + flux(1, -1) + flux(1, 1))
        },
        &|s| s.field("f").here(),
    );
    let (rows, cells) = (7_usize, 9_usize);
    let n = rows * cells;
    let k: Vec<f64> = drawn(n).iter().map(|&x| if x < 0.4 { 1.0 } else { 100.0 * x }).collect();
    let f: Vec<f64> = drawn(2 * n)[n..].to_vec();
    let (mut a, mut b) = (vec![vec![0.0; n]; n], f.clone());
    for (y, x) in (0..rows).flat_map(|y| (0..cells).map(move |x| (y, x))) {
        let own = y * cells + x;
        a[own][own] += 0.25;
        let flux = |a: &mut Vec<Vec<f64>>, other: usize| {
            let face = 0.5 * (k[own] + k[other]);
            a[own][own] += face;
            a[own][other] -= face;
        };
        flux(&mut a, (y + 1) % rows * cells + x);
        flux(&mut a, (y + rows - 1) % rows * cells + x);
        if x > 0 {
            flux(&mut a, own - 1);
        } else {
            // The ghost value is 2·1.5 − u.
            a[own][own] += 2.0 * k[own];
            b[own] += 3.0 * k[own];
        }
        if x + 1 < cells {
            flux(&mut a, own + 1);
        } else {
            // The ghost value is u + 0.5.
            b[own] += 0.5 * k[own];
        }
    }
    let expected = eliminated(a, b);
    let fields = [("k", k), ("f", f), ("u", drawn(n))];
    let (problem, mut session) = run(p.build().unwrap(), &[rows, cells], &fields, 1);
    let session = session.as_mut();
    assert!(largest(&field(&problem, session, "u"), &expected) < 1e-9);
    let (iterations, residual) =
        (scalar(&problem, session, "u_iterations"), scalar(&problem, session, "u_residual"));
    assert!(
        (10.0..90.0).contains(&iterations) && (0.0..1.1e-12).contains(&residual),
        "{iterations} {residual}"
    );
    // Another step begins with the solution, and has next to nothing to do.
    session.advance(1).unwrap();
    assert!(scalar(&problem, session, "u_iterations") <= 2.0);
}

/// Poisson's equation with periodic sides has a solution but for a constant, and for a right-hand side without a mean alone.
#[test]
fn a_null_space_is_left_out() {
    let mut p = Definition::new("poisson", 3);
    p.field("p", Centring::CELL).field("f", Centring::CELL).boundary(Boundary::Periodic);
    let how = Solve { tolerance: 1e-11, null_space: true, ..Solve::default() };
    p.step().solve("p", &how, &|s| s.field("p").laplacian(), &|s| s.field("f").here());
    let extents = [5, 6, 7];
    let n = extents.iter().product();
    let f = drawn(n);
    let mean = f.iter().sum::<f64>() / n as f64;
    let fields = [("f", f.clone()), ("p", drawn(n))];
    let (problem, mut session) = run(p.build().unwrap(), &extents, &fields, 1);
    let p = field(&problem, session.as_mut(), "p");
    let at = |z: usize, y: usize, x: usize| p[(z % 5 * 6 + y % 6) * 7 + x % 7];
    for (z, y, x) in (0..5).flat_map(|z| (0..6).flat_map(move |y| (0..7).map(move |x| (z, y, x)))) {
        let around = at(z + 4, y, x)
            + at(z + 1, y, x)
            + at(z, y + 5, x)
            + at(z, y + 1, x)
            + at(z, y, x + 6)
            + at(z, y, x + 1);
        let found = around - 6.0 * at(z, y, x);
        assert!((found - (f[(z * 6 + y) * 7 + x] - mean)).abs() < 1e-9);
    }
    assert!(p.iter().sum::<f64>().abs() < 1e-10);
}

/// The implicit step of an upwind advection with diffusion, between cells that `fixed` holds: no symmetric system.
#[test]
fn bicgstab_solves_what_is_not_symmetric() {
    for varies in [false, true] {
        let mut p = Definition::new("advection", 1);
        p.field("u", Centring::CELL).field("v", Centring::CELL);
        p.step().solve(
            "u",
            &Solve { method: SolveMethod::BiCgStab, tolerance: 1e-12, ..Solve::default() },
            &|s| {
                let u = s.field("u");
                let speed = if varies { s.field("v").here() } else { s.constant(2.0) };
                u.here() + speed * (u.here() - u.at([-1])) - 0.75 * u.laplacian()
            },
            &|s| s.field("u").here(),
        );
        let (n, start) = (31, drawn(31));
        let v: Vec<f64> = drawn(31).iter().map(|x| 0.5 + 3.0 * x).collect();
        let (mut a, b) = (vec![vec![0.0; n]; n], start.clone());
        for (i, row) in a.iter_mut().enumerate() {
            if i == 0 || i == n - 1 {
                row[i] = 1.0;
                continue;
            }
            let speed = if varies { v[i] } else { 2.0 };
            (row[i - 1], row[i], row[i + 1]) = (-speed - 0.75, 1.0 + speed + 1.5, -0.75);
        }
        let expected = eliminated(a, b);
        let (problem, mut session) = run(p.build().unwrap(), &[n], &[("u", start), ("v", v)], 1);
        let found = field(&problem, session.as_mut(), "u");
        assert!(largest(&found, &expected) < 1e-10, "{varies}: {}", largest(&found, &expected));
        let iterations = scalar(&problem, session.as_mut(), "u_iterations");
        assert!((3.0..40.0).contains(&iterations), "{varies}: {iterations}");
    }
}

/// Around an obstacle, whose cells take no part, sides have no flux.
#[test]
fn cells_of_an_obstacle_take_no_part() {
    let mut p = Definition::new("obstacle", 2);
    p.field("p", Centring::CELL).field("open", Centring::CELL).field("f", Centring::CELL);
    p.boundary(Boundary::Mirror);
    let how = Solve { tolerance: 1e-11, null_space: true, ..Solve::default() };
    p.step().solve(
        "p",
        &how,
        &|s| {
            let (p, open) = (s.field("p"), s.field("open"));
            let flux = |axis: usize, by: i32| open.along(axis, by) * (p.along(axis, by) - p.here());
            open.here() * (flux(0, -1) + flux(0, 1) + flux(1, -1) + flux(1, 1))
        },
        &|s| s.field("open").here() * s.field("f").here(),
    );
    let (rows, cells) = (9_usize, 11_usize);
    let open: Vec<f64> = (0..rows * cells)
        .map(|i| if (3..6).contains(&(i / cells)) && (4..8).contains(&(i % cells)) { 0.0 } else { 1.0 })
        .collect();
    let f = drawn(rows * cells);
    let count: f64 = open.iter().sum();
    let mean = open.iter().zip(&f).map(|(open, f)| open * f).sum::<f64>() / count;
    let fields = [("open", open.clone()), ("f", f.clone())];
    let (problem, mut session) = run(p.build().unwrap(), &[rows, cells], &fields, 1);
    let p = field(&problem, session.as_mut(), "p");
    for (y, x) in (0..rows).flat_map(|y| (0..cells).map(move |x| (y, x))) {
        let own = y * cells + x;
        if open[own] == 0.0 {
            assert_eq!(p[own], 0.0);
            continue;
        }
        let mut around = 0.0;
        let mut flux = |other: usize| around += open[other] * (p[other] - p[own]);
        if y > 0 {
            flux(own - cells);
        }
        if y + 1 < rows {
            flux(own + cells);
        }
        if x > 0 {
            flux(own - 1);
        }
        if x + 1 < cells {
            flux(own + 1);
        }
        assert!((around - (f[own] - mean)).abs() < 1e-9, "{y} {x}");
    }
}

/// Systems that are none are refused, with what is wrong about them.
#[test]
fn what_is_no_linear_system_is_refused() {
    let built = |which: usize, how: &Solve| {
        let mut p = Definition::new("wrong", 1);
        p.field("u", Centring::CELL).field("v", Centring::CELL).boundary(Boundary::Mirror);
        p.step().solve(
            if which == 4 { "w" } else { "u" },
            how,
            &|s| {
                let (u, v) = (s.field("u"), s.field("v"));
                match which {
                    0 => u.here() * u.at([1]),
                    1 => u.laplacian() - v.here(),
                    2 => u.here().abs(),
                    3 => v.here(),
                    5 => v.here() / u.here(),
                    6 => u.here().lt(0.0).select(u.here(), u.at([1])),
                    _ => v.here().lt(0.5).select(-u.here() / v.here(), s.constant(0.0)),
                }
            },
            &|s| if which == 8 { s.field("u").at([1]) } else { s.field("v").here() },
        );
        p.build().map(|_| ())
    };
    let how = Solve::default();
    for which in [0, 1, 2, 5, 6] {
        let error = built(which, &how).unwrap_err().to_string();
        assert!(error.contains("not linear in u, or has a part that does not read it"), "{which}: {error}");
    }
    assert!(built(3, &how).unwrap_err().to_string().contains("does not read u"));
    assert!(built(4, &how).unwrap_err().to_string().contains("no field is named"));
    assert!(built(8, &how).unwrap_err().to_string().contains("right-hand side of the solve for u"));
    built(7, &how).unwrap();
    let tolerance = built(7, &Solve { tolerance: 0.0, ..how }).unwrap_err().to_string();
    assert!(tolerance.contains("tolerance"), "{tolerance}");
    assert!(built(7, &Solve { most: 0, ..how }).unwrap_err().to_string().contains("iterations"));
    let method = "sor".parse::<SolveMethod>().unwrap_err().to_string();
    assert!(method.contains("cg") && method.contains("bicgstab"), "{method}");
}

/// Fields of the names that a solve gives its own are refused; another solve of the same unknown has the same ones.
#[test]
fn a_solve_has_its_own_fields() {
    let twice = |taken: bool| {
        let mut p = Definition::new("twice", 1);
        p.field("u", Centring::CELL).boundary(Boundary::Mirror);
        if taken {
            p.field("u_direction", Centring::CELL);
        }
        let mut step = p.step();
        for _ in 0..2 {
            step.solve("u", &Solve::default(), &|s| 2.0 * s.field("u").here(), &|s| s.field("u").here());
        }
        p.build()
    };
    assert!(twice(true).unwrap_err().to_string().contains("u_direction"));
    let program = twice(false).unwrap();
    assert_eq!(program.fields(), ["u", "u_defect", "u_direction", "u_product", "u_before"]);
    let (problem, mut session) = run(program, &[9], &[("u", drawn(9))], 1);
    let found = field(&problem, session.as_mut(), "u");
    assert!(largest(&found, &drawn(9).iter().map(|u| 0.25 * u).collect::<Vec<_>>()) < 1e-8);
}

/// Two solves of one field whose operators differ have their own set-ups in each step, by methods whose set-up is made once otherwise.
#[test]
fn operators_of_two_solves_are_not_mixed() {
    for method in [SolveMethod::Multigrid, SolveMethod::Direct] {
        for factors in [[1.0, 30.0], [2.0, 2.0]] {
            let mut p = Definition::new("two", 1);
            p.field("u", Centring::CELL).boundary(Boundary::Mirror);
            let how = Solve { method, tolerance: 1e-12, most: 50, ..Solve::default() };
            let mut step = p.step();
            for factor in factors {
                let operator: abide_core::program::SystemFormula<'_> =
                    &|s| s.field("u").here() - factor * s.field("u").laplacian();
                step.solve("u", &how, operator, &|s| s.field("u").here());
            }
            let program = p.build().unwrap();
            // The same bits as the reference's, which makes all anew in each step.
            let (problem, mut session) = run(program, &[12], &[("u", drawn(12))], 3);
            assert!(scalar(&problem, session.as_mut(), "u_residual") < 1e-11, "{method:?} {factors:?}");
        }
    }
}
