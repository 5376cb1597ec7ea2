//! The catalogue's models against their equations, written out once more: plain loops in f64 on a torus.
//!
//! The order of operations is free here, so results agree to rounding, not to the bit.

use abide::{Boundary, DType, Options, Problem, Result};

use crate::trust::subject::{Subject, describe, entry, fields};

/// A field on a torus of two axes.
#[derive(Clone)]
struct Torus {
    size: [usize; 2],
    values: Vec<f64>,
}

impl Torus {
    /// Returns the value at a cell and an offset from it.
    fn at(&self, [y, x]: [usize; 2], dy: isize, dx: isize) -> f64 {
        let wrap = |i: usize, d: isize, n: usize| (i as isize + d).rem_euclid(n as isize) as usize;
        self.values[wrap(y, dy, self.size[0]) * self.size[1] + wrap(x, dx, self.size[1])]
    }

    fn laplacian(&self, cell: [usize; 2]) -> f64 {
        let around = self.at(cell, -1, 0) + self.at(cell, 1, 0) + self.at(cell, 0, -1) + self.at(cell, 0, 1);
        around - 4.0 * self.at(cell, 0, 0)
    }

    /// Returns the field whose values are this function of the cell.
    fn map(&self, value: impl Fn([usize; 2]) -> f64) -> Torus {
        let cell = |i: usize| [i / self.size[1], i % self.size[1]];
        Torus { size: self.size, values: (0..self.values.len()).map(|i| value(cell(i))).collect() }
    }
}

/// One step of a model: new fields from old ones and the parameters, both in the program's order.
type Step = fn(&[Torus], &[f64]) -> Vec<Torus>;

fn heat(f: &[Torus], p: &[f64]) -> Vec<Torus> {
    let u = &f[0];
    vec![u.map(|c| u.at(c, 0, 0) + p[0] * u.laplacian(c))]
}

fn heat_conductivity(f: &[Torus], _: &[f64]) -> Vec<Torus> {
    let (u, kappa) = (&f[0], &f[1]);
    let new = u.map(|c| {
        let flows = [(-1, 0), (1, 0), (0, -1), (0, 1)].map(|(dy, dx)| {
            (kappa.at(c, 0, 0) + kappa.at(c, dy, dx)) / 2.0 * (u.at(c, dy, dx) - u.at(c, 0, 0))
        });
        u.at(c, 0, 0) + flows.iter().sum::<f64>()
    });
    vec![new, kappa.clone()]
}

fn wave(f: &[Torus], p: &[f64]) -> Vec<Torus> {
    let (u, w) = (&f[0], &f[1]);
    vec![u.map(|c| 2.0 * u.at(c, 0, 0) - w.at(c, 0, 0) + p[0] * p[0] * u.laplacian(c)), u.clone()]
}

fn wave_medium(f: &[Torus], p: &[f64]) -> Vec<Torus> {
    let (u, w, speed) = (&f[0], &f[1], &f[2]);
    let courant = |c| p[0] * speed.at(c, 0, 0);
    let new = u.map(|c| 2.0 * u.at(c, 0, 0) - w.at(c, 0, 0) + courant(c) * courant(c) * u.laplacian(c));
    vec![new, u.clone(), speed.clone()]
}

fn gray_scott(f: &[Torus], p: &[f64]) -> Vec<Torus> {
    let (u, v, [du, dv, feed, kill]) = (&f[0], &f[1], [p[0], p[1], p[2], p[3]]);
    let here = |c| (u.at(c, 0, 0), v.at(c, 0, 0));
    let reaction = |c| here(c).0 * here(c).1 * here(c).1;
    vec![
        u.map(|c| here(c).0 + du * u.laplacian(c) - reaction(c) + feed * (1.0 - here(c).0)),
        v.map(|c| here(c).1 + dv * v.laplacian(c) + reaction(c) - (feed + kill) * here(c).1),
    ]
}

/// Returns the difference against a wind along an axis.
fn upwind(q: &Torus, c: [usize; 2], wind: f64, (dy, dx): (isize, isize)) -> f64 {
    let slope = if wind > 0.0 { q.at(c, 0, 0) - q.at(c, -dy, -dx) } else { q.at(c, dy, dx) - q.at(c, 0, 0) };
    wind * slope
}

fn burgers(f: &[Torus], p: &[f64]) -> Vec<Torus> {
    let (u, v) = (&f[0], &f[1]);
    let new = |q: &Torus| {
        q.map(|c| {
            let advection = upwind(q, c, u.at(c, 0, 0), (0, 1)) + upwind(q, c, v.at(c, 0, 0), (1, 0));
            q.at(c, 0, 0) - p[0] * advection + p[1] * q.laplacian(c)
        })
    };
    vec![new(u), new(v)]
}

fn advection_diffusion(f: &[Torus], p: &[f64]) -> Vec<Torus> {
    let (u, [cx, cy, kappa]) = (&f[0], [p[0], p[1], p[2]]);
    let advection = |c| upwind(u, c, cx, (0, 1)) + upwind(u, c, cy, (1, 0));
    vec![u.map(|c| u.at(c, 0, 0) - advection(c) + kappa * u.laplacian(c))]
}

/// The weights of the second derivative of eighth order, by the distance in cells.
const EIGHTH: [f64; 5] = [-205.0 / 72.0, 8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0];

fn acoustic(f: &[Torus], _: &[f64]) -> Vec<Torus> {
    let (u, before, velocity) = (&f[0], &f[1], &f[2]);
    let second = |c, (dy, dx): (isize, isize)| {
        let weighted = |d: isize| EIGHTH[d.unsigned_abs()] * u.at(c, d * dy, d * dx);
        (-4..=4).map(weighted).sum::<f64>()
    };
    let new = u.map(|c| {
        let laplacian = second(c, (1, 0)) + second(c, (0, 1));
        2.0 * u.at(c, 0, 0) - before.at(c, 0, 0) + velocity.at(c, 0, 0).powi(2) * laplacian
    });
    vec![new, u.clone(), velocity.clone()]
}

fn maxwell(f: &[Torus], p: &[f64]) -> Vec<Torus> {
    let (ez, hx, hy, courant) = (&f[0], &f[1], &f[2], p[0]);
    let hx = hx.map(|c| hx.at(c, 0, 0) - courant * (ez.at(c, 1, 0) - ez.at(c, 0, 0)));
    let hy = hy.map(|c| hy.at(c, 0, 0) + courant * (ez.at(c, 0, 1) - ez.at(c, 0, 0)));
    let curl = |c| (hy.at(c, 0, 0) - hy.at(c, 0, -1)) - (hx.at(c, 0, 0) - hx.at(c, -1, 0));
    vec![ez.map(|c| ez.at(c, 0, 0) + courant * curl(c)), hx, hy]
}

fn maxwell_dielectric(f: &[Torus], p: &[f64]) -> Vec<Torus> {
    let (ez, eta) = (&f[0], &f[3]);
    // In vacuum the electric field would change by this; the magnetic half is the vacuum's.
    let vacuum = maxwell(&f[..3], p);
    let change = |c| vacuum[0].at(c, 0, 0) - ez.at(c, 0, 0);
    let new = ez.map(|c| ez.at(c, 0, 0) + eta.at(c, 0, 0) * change(c));
    vec![new, vacuum[1].clone(), vacuum[2].clone(), eta.clone()]
}

const MODELS: [(&str, &[&str], Step); 10] = [
    ("heat", &["kappa"], heat),
    ("heat-conductivity", &[], heat_conductivity),
    ("wave", &["courant"], wave),
    ("wave-medium", &["courant"], wave_medium),
    ("gray-scott", &["du", "dv", "feed", "kill"], gray_scott),
    ("burgers", &["dt", "nu"], burgers),
    ("advection-diffusion", &["cx", "cy", "kappa"], advection_diffusion),
    ("acoustic", &[], acoustic),
    ("fdtd-tm", &["courant"], maxwell),
    ("fdtd-dielectric", &["courant"], maxwell_dielectric),
];

fn largest_error(subject: &Subject, problem: &Problem, step: Step, steps: u64) -> Result<f64> {
    let size = [problem.shape.padded()[1], problem.shape.padded()[2]];
    let start = fields(problem, 41)?;
    let mut expected: Vec<Torus> = start.iter().map(|field| Torus { size, values: field.to_f64() }).collect();
    for _ in 0..steps {
        expected = step(&expected, &problem.parameters);
    }
    let results = subject.run(problem, &Options::default(), &start, steps)?;
    let error = |(result, expected): (&abide::Array, &Torus)| {
        result.to_f64().iter().zip(&expected.values).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    Ok(results.iter().zip(&expected).map(error).fold(0.0, f64::max))
}

pub fn models_obey_their_equations(subject: &Subject) -> Result<()> {
    for (name, parameters, step) in MODELS {
        for dtype in subject.dtypes() {
            let problem = entry(name, &[17, 23], dtype, Boundary::Periodic)?;
            let names: Vec<&str> = problem.program.parameters().iter().map(|p| p.name.as_str()).collect();
            assert_eq!(names, parameters, "{name}");
            let error = largest_error(subject, &problem, step, 4)?;
            let tolerance = if dtype == DType::F64 { 1e-14 } else { 5e-6 };
            assert!(error <= tolerance, "{}: off by {error:e}", describe(&problem));
        }
    }
    Ok(())
}
