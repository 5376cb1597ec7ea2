//! The lid-driven cavity against published velocities, and what it conserves.

use super::{begin, values};
use abide::prelude::*;

/// Heights above the bottom, and the velocity along the lid over the lid's, on the vertical line through the middle at
/// Reynolds' number 100 (Ghia, Ghia & Shin, J. Comput. Phys. 48, 1982, table I).
const GHIA_U: [(f64, f64); 15] = [
    (0.0547, -0.03717),
    (0.0625, -0.04192),
    (0.0703, -0.04775),
    (0.1016, -0.06434),
    (0.1719, -0.10150),
    (0.2813, -0.15662),
    (0.4531, -0.21090),
    (0.5, -0.20581),
    (0.6172, -0.13641),
    (0.7344, 0.00332),
    (0.8516, 0.23151),
    (0.9531, 0.68717),
    (0.9609, 0.73722),
    (0.9688, 0.78871),
    (0.9766, 0.84123),
];

/// The same on the horizontal line: places from the left, and the velocity upwards (table II).
const GHIA_V: [(f64, f64); 15] = [
    (0.0625, 0.09233),
    (0.0703, 0.10091),
    (0.0781, 0.10890),
    (0.0938, 0.12317),
    (0.1563, 0.16077),
    (0.2266, 0.17507),
    (0.2344, 0.17527),
    (0.5, 0.05454),
    (0.8047, -0.24533),
    (0.8594, -0.22445),
    (0.9063, -0.16914),
    (0.9453, -0.10313),
    (0.9531, -0.08864),
    (0.9609, -0.07391),
    (0.9688, -0.05906),
];

/// The velocities of the populations, along y and x.
const C: [[f64; 2]; 9] = [
    [0.0, 0.0],
    [0.0, 1.0],
    [1.0, 0.0],
    [0.0, -1.0],
    [-1.0, 0.0],
    [1.0, 1.0],
    [1.0, -1.0],
    [-1.0, -1.0],
    [-1.0, 1.0],
];

/// Returns the density and both velocities of each cell.
fn flow(run: &mut Simulation) -> [Vec<f64>; 3] {
    let f: Vec<Vec<f64>> = (0..9).map(|number| values(run, &format!("f[{number}]"))).collect();
    let moment = |factor: fn([f64; 2]) -> f64| -> Vec<f64> {
        (0..f[0].len()).map(|cell| (0..9).map(|number| factor(C[number]) * f[number][cell]).sum()).collect()
    };
    let density = moment(|_| 1.0);
    let over = |momentum: Vec<f64>| momentum.iter().zip(&density).map(|(q, density)| q / density).collect();
    let (v, u) = (over(moment(|c| c[0])), over(moment(|c| c[1])));
    [density, v, u]
}

/// Returns the value at a place from 0 to 1 of values at the middles of as many cells.
fn interpolated(line: &[f64], place: f64) -> f64 {
    let at = place * line.len() as f64 - 0.5;
    let (low, part) = (at.floor() as usize, at.fract());
    line[low] + part * (line[low + 1] - line[low])
}

#[test]
fn the_flow_is_ghias() {
    let (cells, lid) = (48, 0.1);
    let mut run = begin("lbm-cavity", [cells; 2])
        .param("lid", lid)
        .param("nu", lid * cells as f64 / 100.0)
        .build()
        .unwrap();
    run.run(16_000).unwrap();
    let [_, v, u] = flow(&mut run);
    let middle = |field: &[f64], one: usize, other: usize| 0.5 * (field[one] + field[other]) / lid;
    let half = cells / 2;
    // The first row is at the lid, and y points down.
    let vertical: Vec<f64> =
        (0..cells).rev().map(|y| middle(&u, y * cells + half - 1, y * cells + half)).collect();
    let horizontal: Vec<f64> =
        (0..cells).map(|x| -middle(&v, (half - 1) * cells + x, half * cells + x)).collect();
    let off = |line: &[f64], table: &[(f64, f64)]| {
        table.iter().map(|&(place, value)| (interpolated(line, place) - value).abs()).fold(0.0, f64::max)
    };
    let off = [off(&vertical, &GHIA_U), off(&horizontal, &GHIA_V)];
    println!("{off:?}");
    assert!(off.iter().all(|&off| off < 0.01), "{off:?}");
    let speed = values(&mut run, "speed");
    assert!(speed.iter().all(|speed| (0.0..lid).contains(speed)));
}

#[test]
fn mass_is_kept_and_the_lids_direction_mirrors_the_flow() {
    let extents = [21, 34];
    let run = |lid: f64| {
        let mut run = begin("lbm-cavity", extents).param("lid", lid).build().unwrap();
        run.run(500).unwrap();
        flow(&mut run)
    };
    let ([density, v, u], [_, mirrored_v, mirrored_u]) = (run(0.1), run(-0.1));
    let cells = density.len() as f64;
    assert!((density.iter().sum::<f64>() / cells - 1.0).abs() < 1e-13);
    assert!(u.iter().fold(0.0_f64, |most, u| most.max(u.abs())) > 0.05);
    for cell in 0..density.len() {
        let other = cell / 34 * 34 + 33 - cell % 34;
        assert!((v[cell] - mirrored_v[other]).abs() < 1e-13 && (u[cell] + mirrored_u[other]).abs() < 1e-13);
    }
}

/// What rests below a lid at rest stays as it is.
#[test]
fn a_fluid_at_rest_stays_at_rest() {
    let mut run = begin("lbm-cavity", [15, 12]).param("lid", 0.0).build().unwrap();
    run.run(100).unwrap();
    let [density, v, u] = flow(&mut run);
    assert!(density.iter().all(|density| (density - 1.0).abs() < 1e-14));
    assert!(v.iter().chain(&u).all(|velocity| velocity.abs() < 1e-14));
}
