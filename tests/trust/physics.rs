//! Results against theory: the quantities that each scheme conserves, the turning of its waves, its order of
//! convergence.

use std::f64::consts::{PI, TAU};

use abide::{Array, Boundaries, Boundary, DType, Options, Problem, Result};

use crate::trust::subject::{Subject, describe, entry, field, fields, with};

fn run(subject: &Subject, problem: &Problem, fields: &[Array], steps: u64) -> Result<Vec<Array>> {
    subject.run(problem, &Options::default(), fields, steps)
}

fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(f32::EPSILON),
        DType::F64 => f64::EPSILON,
    }
}

/// Returns the largest difference from a function of the cell.
fn error(problem: &Problem, values: &Array, exact: impl Fn([usize; 3]) -> f64) -> f64 {
    values
        .to_f64()
        .iter()
        .enumerate()
        .map(|(i, value)| (value - exact(problem.shape.cell(i))).abs())
        .fold(0.0, f64::max)
}

const EXTENTS: [&[usize]; 3] = [&[61], &[31, 23], &[11, 13, 7]];

pub fn heat_keeps_its_sum(subject: &Subject) -> Result<()> {
    for name in ["heat", "heat-conductivity"] {
        for extents in EXTENTS {
            for boundary in [Boundary::Periodic, Boundary::Mirror] {
                for dtype in subject.dtypes() {
                    let problem = entry(name, extents, dtype, boundary)?;
                    let start = fields(&problem, 4)?;
                    let steps = 200;
                    let end = run(subject, &problem, &start, steps)?;
                    let sum = |array: &Array| array.to_f64().iter().sum::<f64>();
                    let magnitude: f64 = start[0].to_f64().iter().map(|x| x.abs()).sum();
                    // Each step rounds each cell a few times, each time by at most half a unit and to either
                    // side.
                    let bound = steps as f64 * epsilon(dtype) * magnitude;
                    let change = (sum(&end[0]) - sum(&start[0])).abs();
                    assert!(
                        change <= bound,
                        "{}: the sum changed by {change:e}, bound {bound:e}",
                        describe(&problem)
                    );
                    assert!(sum(&start[0]).abs() > 1.0, "a sum of 0 would prove nothing");
                }
            }
        }
    }
    Ok(())
}

/// Returns a mode of the discrete Laplacian: along each axis a wave that fits the boundary.
fn mode(
    boundary: Boundary,
    extents: [usize; 3],
    waves: [usize; 3],
) -> (impl Fn([usize; 3]) -> f64, [f64; 3]) {
    let number = move |a: usize| match boundary {
        Boundary::Periodic => TAU * waves[a] as f64 / extents[a] as f64,
        Boundary::Mirror => PI * waves[a] as f64 / extents[a] as f64,
        // The two outermost cells hold 0.
        _ => PI * waves[a] as f64 / (extents[a] as f64 - 1.0).max(1.0),
    };
    let shape = move |at: [usize; 3]| {
        (0..3).filter(|&a| extents[a] > 1).fold(1.0, |product, a| {
            let x = at[a] as f64;
            product
                * match boundary {
                    Boundary::Periodic => (number(a) * x).cos(),
                    Boundary::Mirror => (number(a) * (x + 0.5)).cos(),
                    _ => (number(a) * x).sin(),
                }
        })
    };
    (shape, [0, 1, 2].map(|a| if extents[a] > 1 { number(a) } else { 0.0 }))
}

/// Returns `Σ (1 − cos k)`: minus half the discrete Laplacian's eigenvalue.
fn half_laplacian(k: [f64; 3]) -> f64 {
    k.iter().map(|k| 1.0 - k.cos()).sum()
}

/// A mode decays by the factor `1 − 2κ Σ(1 − cos k)` per step, exactly.
pub fn heat_modes_decay_as_the_scheme_says(subject: &Subject) -> Result<()> {
    for extents in EXTENTS {
        for boundary in [Boundary::Periodic, Boundary::Mirror, Boundary::Fixed] {
            for dtype in subject.dtypes() {
                let kappa = 0.13;
                let problem = with(entry("heat", extents, dtype, boundary)?, "kappa", kappa)?;
                let (shape, k) = mode(boundary, problem.shape.padded(), [2, 3, 5]);
                let factor = 1.0 - 2.0 * kappa * half_laplacian(k);
                // As many steps as let the mode decay to about a third.
                let steps = (0.3f64.ln() / factor.abs().ln()).ceil();
                let end = run(subject, &problem, &[field(&problem, &shape)], steps as u64)?;
                let factor = factor.powi(steps as i32);
                let error = error(&problem, &end[0], |at| factor * shape(at));
                assert!(error <= 30.0 * epsilon(dtype), "{}: off by {error:e}", describe(&problem));
            }
        }
    }
    Ok(())
}

/// Returns the angle by which a wave turns per step, from `sin²(ω/2) = c² Σ sin²(k/2)`.
fn dispersion(courant: f64, k: [f64; 3]) -> f64 {
    2.0 * (courant * (0.5 * half_laplacian(k)).sqrt()).asin()
}

/// Standing waves under every boundary that has them, and a travelling wave on a torus, turn by that angle.
pub fn waves_turn_as_the_scheme_says(subject: &Subject) -> Result<()> {
    for extents in EXTENTS {
        for dtype in subject.dtypes() {
            let (courant, steps) = (0.45, 100);
            let tolerance = 5.0 * steps as f64 * epsilon(dtype);
            for boundary in [Boundary::Periodic, Boundary::Mirror, Boundary::Fixed] {
                let problem = with(entry("wave", extents, dtype, boundary)?, "courant", courant)?;
                let (shape, k) = mode(boundary, problem.shape.padded(), [1, 2, 3]);
                let omega = dispersion(courant, k);
                let before = field(&problem, |at| omega.cos() * shape(at));
                let end = run(subject, &problem, &[field(&problem, &shape), before], steps)?;
                let factor = (omega * steps as f64).cos();
                let error = error(&problem, &end[0], |at| factor * shape(at));
                assert!(error <= tolerance, "{}: a standing wave is off by {error:e}", describe(&problem));
            }
            let problem = with(entry("wave", extents, dtype, Boundary::Periodic)?, "courant", courant)?;
            let (_, k) = mode(Boundary::Periodic, problem.shape.padded(), [1, 2, 3]);
            let omega = dispersion(courant, k);
            let phase = |at: [usize; 3]| (0..3).map(|a| k[a] * at[a] as f64).sum::<f64>();
            let travelling = |time: f64| field(&problem, |at| (phase(at) - omega * time).cos());
            let end = run(subject, &problem, &[travelling(0.0), travelling(-1.0)], steps)?;
            for (level, time) in [(0, steps as f64), (1, steps as f64 - 1.0)] {
                let error = error(&problem, &end[level], |at| (phase(at) - omega * time).cos());
                assert!(error <= tolerance, "{}: a travelling wave is off by {error:e}", describe(&problem));
            }
        }
    }
    Ok(())
}

/// Returns minus the eigenvalue of the second difference of eighth order for a wave number.
fn eighth_order(k: f64) -> f64 {
    let weights = [8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0];
    let beside =
        weights.into_iter().zip(1..).map(|(weight, distance)| weight * (f64::from(distance) * k).cos());
    205.0 / 72.0 - 2.0 * beside.sum::<f64>()
}

/// Standing acoustic waves turn by the angle from `sin²(ω/2) = (velocity/2)² Σ λ(k)` a step, and `λ` is `k²` to eighth order.
pub fn acoustic_waves_turn_as_the_scheme_says(subject: &Subject) -> Result<()> {
    for extents in [&[31, 23][..], &[11, 13, 17]] {
        for dtype in subject.dtypes() {
            let (velocity, steps) = (0.4, 100);
            for boundary in [Boundary::Periodic, Boundary::Mirror] {
                let problem = entry("acoustic", extents, dtype, boundary)?;
                let (shape, k) = mode(boundary, problem.shape.padded(), [1, 2, 3]);
                let omega = 2.0 * (0.5 * velocity * k.map(eighth_order).iter().sum::<f64>().sqrt()).asin();
                let start = [1.0, omega.cos()].map(|factor| field(&problem, |at| factor * shape(at)));
                let [u, before] = start;
                let end = run(subject, &problem, &[u, before, field(&problem, |_| velocity)], steps)?;
                let factor = (omega * steps as f64).cos();
                let error = error(&problem, &end[0], |at| factor * shape(at));
                let allowed = 10.0 * steps as f64 * epsilon(dtype);
                assert!(error <= allowed, "{}: a standing wave is off by {error:e}", describe(&problem));
            }
        }
    }
    let off = |cells: f64| 1.0 - eighth_order(TAU / cells) / (TAU / cells).powi(2);
    for cells in [8.0, 16.0, 32.0] {
        let order = (off(cells) / off(2.0 * cells)).log2();
        assert!((order - 8.0).abs() < 0.25, "{cells} cells: order {order}");
    }
    Ok(())
}

/// Against the continuous solution, halving the cell's width divides the error by four, at constant `dt/dx²`.
pub fn heat_converges_with_second_order(subject: &Subject) -> Result<()> {
    let kappa = 0.1;
    for axes in [1, 2] {
        for dtype in subject.dtypes() {
            // In f32 rounding hides the error of finer grids.
            let widths: &[usize] = if dtype == DType::F64 { &[16, 32, 64, 128] } else { &[8, 16, 32] };
            let errors = widths
                .iter()
                .map(|&n| {
                    let extents = vec![n; axes];
                    let problem = with(entry("heat", &extents, dtype, Boundary::Periodic)?, "kappa", kappa)?;
                    // The unit square after the time 1/40, for a diffusivity of 1.
                    let steps = (n * n) / 4;
                    let time = steps as f64 * kappa / (n * n) as f64;
                    let wave = |at: [usize; 3]| {
                        (3 - axes..3).map(|a| (TAU * at[a] as f64 / n as f64).sin()).product::<f64>()
                    };
                    let end = run(subject, &problem, &[field(&problem, wave)], steps as u64)?;
                    let decay = (-TAU * TAU * axes as f64 * time).exp();
                    Ok(error(&problem, &end[0], |at| decay * wave(at)))
                })
                .collect::<Result<Vec<f64>>>()?;
            for pair in errors.windows(2) {
                let order = (pair[0] / pair[1]).log2();
                let slack = if dtype == DType::F64 { 0.02 } else { 0.1 };
                assert!((order - 2.0).abs() <= slack, "{axes}D {dtype}: order {order}, errors {errors:?}");
            }
        }
    }
    Ok(())
}

/// Yee's scheme conserves `⟨Eⁿ, Eⁿ⁺¹⟩ + |Hⁿ⁺½|²`.
pub fn maxwell_keeps_its_energy(subject: &Subject) -> Result<()> {
    for dtype in subject.dtypes() {
        let problem = with(entry("fdtd-tm", &[37, 29], dtype, Boundary::Periodic)?, "courant", 0.6)?;
        let [ez, hx, hy] = ["ez", "hx", "hy"].map(|name| problem.program.field(name));
        let (ez, hx, hy) = (ez?, hx?, hy?);
        let backend = &subject.opened.backend;
        let plan = backend.plan(&problem, &Options::default())?;
        let mut session = backend.open(&problem, &plan, fields(&problem, 8)?)?;
        let product =
            |a: &Array, b: &Array| a.to_f64().iter().zip(b.to_f64()).map(|(a, b)| a * b).sum::<f64>();
        let mut energy = || -> Result<f64> {
            let before = session.read(ez)?;
            session.advance(1)?;
            let (after, x, y) = (session.read(ez)?, session.read(hx)?, session.read(hy)?);
            session.advance(40)?;
            Ok(product(&before, &after) + product(&x, &x) + product(&y, &y))
        };
        let first = energy()?;
        assert!(first > 1.0);
        for _ in 0..5 {
            let change = (energy()? / first - 1.0).abs();
            assert!(change <= 50.0 * epsilon(dtype), "{dtype}: the energy changed by {change:e}");
        }
    }
    Ok(())
}

/// Without charges each component of the field obeys the wave equation, on the grid as in space.
pub fn maxwell_moves_as_the_wave_equation(subject: &Subject) -> Result<()> {
    for dtype in subject.dtypes() {
        let size = [41, 33];
        let maxwell = with(entry("fdtd-tm", &size, dtype, Boundary::Periodic)?, "courant", 0.5)?;
        let wave = with(entry("wave", &size, dtype, Boundary::Periodic)?, "courant", 0.5)?;
        let start = fields(&maxwell, 12)?;
        let one = run(subject, &maxwell, &start, 1)?;
        let many = run(subject, &maxwell, &start, 51)?;
        let same = run(subject, &wave, &[one[0].clone(), start[0].clone()], 50)?;
        let expected = same[0].to_f64();
        let error = error(&maxwell, &many[0], |at| expected[maxwell.shape.index(at)]);
        assert!(error <= 100.0 * epsilon(dtype), "{dtype}: off by {error:e}");
    }
    Ok(())
}

/// Upwind transport at a Courant number of 1 moves the field by one cell per step, without an error where
/// every difference is a number of the type.
pub fn a_wind_of_one_cell_a_step_shifts(subject: &Subject) -> Result<()> {
    for dtype in subject.dtypes() {
        for (wind, axis) in [(["cx", "cy", "cz"], 2), (["cy", "cx", "cz"], 1), (["cz", "cx", "cy"], 0)] {
            for direction in [1.0, -1.0] {
                let mut problem = entry("advection-diffusion", &[7, 9, 11], dtype, Boundary::Periodic)?;
                problem = with(problem, wind[0], direction)?;
                for still in [wind[1], wind[2], "kappa"] {
                    problem = with(problem, still, 0.0)?;
                }
                let start = fields(&problem, 21)?[0].to_f64();
                // Multiples of 1/1024: sums and differences are exact.
                let start: Vec<f64> = start.iter().map(|x| (x * 1024.0).round() / 1024.0).collect();
                let input = field(&problem, |at| start[problem.shape.index(at)]);
                let end = run(subject, &problem, &[input], 5)?;
                let from = |mut at: [usize; 3]| {
                    let n = problem.shape.padded()[axis];
                    at[axis] = (at[axis] + n).wrapping_add_signed(-5 * direction as isize) % n;
                    start[problem.shape.index(at)]
                };
                let error = error(&problem, &end[0], from);
                assert_eq!(error, 0.0, "{} wind {} {direction}", describe(&problem), wind[0]);
            }
        }
    }
    Ok(())
}

/// States in which nothing drives a change stay as they are.
pub fn steady_states_stay(subject: &Subject) -> Result<()> {
    let cases: [(&str, &[f64]); 6] = [
        ("heat", &[0.7]),
        ("wave", &[0.7, 0.7]),
        ("gray-scott", &[1.0, 0.0]),
        ("burgers", &[0.7, -0.2]),
        ("advection-diffusion", &[0.7]),
        ("fdtd-tm", &[0.7, 0.3, -0.1]),
    ];
    for (name, values) in cases {
        for boundary in [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror] {
            for dtype in subject.dtypes() {
                let problem = entry(name, &[19, 23], dtype, boundary)?;
                let start: Vec<Array> = values.iter().map(|&value| field(&problem, |_| value)).collect();
                let end = run(subject, &problem, &start, 9)?;
                for (number, (start, end)) in start.iter().zip(&end).enumerate() {
                    let expected = start.to_f64();
                    let error = error(&problem, end, |at| expected[problem.shape.index(at)]);
                    assert!(
                        error <= 5.0 * epsilon(dtype),
                        "{} field {number}: off by {error:e}",
                        describe(&problem)
                    );
                }
            }
        }
    }
    // The two sides have different values. The profile between them that no longer changes is a line.
    let boundaries = Boundaries([
        [Boundary::Mirror; 2],
        [Boundary::Mirror; 2],
        [Boundary::Constant(-0.5), Boundary::Constant(10.5)],
    ]);
    let mut problem = entry("heat", &[3, 10], DType::F32, Boundary::Mirror)?;
    problem.boundaries = boundaries;
    let line = |at: [usize; 3]| at[2] as f64 + 0.5;
    let end = run(subject, &problem, &[field(&problem, line)], 20)?;
    let error = error(&problem, &end[0], line);
    assert!(error <= 1e-5, "off by {error:e}");
    Ok(())
}
