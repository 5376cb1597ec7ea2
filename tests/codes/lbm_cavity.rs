//! The lid-driven cavity against published velocities and exact profiles, and what it conserves.

use std::f64::consts::PI;

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

/// The velocities of the populations of D2Q9, along y and x.
const C2: [[f64; 2]; 9] = [
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

/// The velocities of the populations of D3Q19, along z, y and x.
#[rustfmt::skip]
const C3: [[f64; 3]; 19] = [
    [0.0, 0.0, 0.0],
    [0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0],
    [0.0, 1.0, 1.0], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0], [0.0, -1.0, -1.0],
    [1.0, 0.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 0.0, 1.0], [-1.0, 0.0, -1.0],
    [1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [-1.0, -1.0, 0.0],
];

/// Returns the populations.
fn populations(run: &mut Simulation, count: usize) -> Vec<Vec<f64>> {
    (0..count).map(|number| values(run, &format!("f[{number}]"))).collect()
}

/// Returns the density of each cell, and the velocity along each axis, slowest first.
fn flow<const D: usize>(run: &mut Simulation, c: &[[f64; D]]) -> (Vec<f64>, [Vec<f64>; D]) {
    let f = populations(run, c.len());
    let moment = |factor: &dyn Fn([f64; D]) -> f64| -> Vec<f64> {
        let sum = |cell: usize| c.iter().zip(&f).map(|(&c, f)| factor(c) * f[cell]).sum();
        (0..f[0].len()).map(sum).collect()
    };
    let density = moment(&|_| 1.0);
    let velocity = std::array::from_fn(|axis| {
        moment(&|c| c[axis]).iter().zip(&density).map(|(momentum, density)| momentum / density).collect()
    });
    (density, velocity)
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
    let mut run = begin("lbm-d2q9", [cells; 2])
        .param("lid", lid)
        .param("nu", lid * cells as f64 / 100.0)
        .build()
        .unwrap();
    run.run(16_000).unwrap();
    let (_, [v, u]) = flow(&mut run, &C2);
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
        let mut run = begin("lbm-d2q9", extents).param("lid", lid).build().unwrap();
        run.run(500).unwrap();
        flow(&mut run, &C2)
    };
    let ((density, [v, u]), (_, [mirrored_v, mirrored_u])) = (run(0.1), run(-0.1));
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
    let mut run = begin("lbm-d2q9", [15, 12]).param("lid", 0.0).build().unwrap();
    run.run(100).unwrap();
    let (density, [v, u]) = flow(&mut run, &C2);
    assert!(density.iter().all(|density| (density - 1.0).abs() < 1e-14));
    assert!(v.iter().chain(&u).all(|velocity| velocity.abs() < 1e-14));
}

/// Where the flow is the same in all planes across z, the populations of D3Q19, summed over the velocities along z, are those
/// of D2Q9. In the plane in the middle of a deep cavity it is, until the walls at its ends have been felt there.
#[test]
fn a_deep_cavity_begins_as_that_in_two_dimensions() {
    let (steps, [height, width]) = (60, [12, 14]);
    let mut flat = begin("lbm-d2q9", [height, width]).build().unwrap();
    let mut deep = begin("lbm-d3q19", [2 * steps + 1, height, width]).build().unwrap();
    for run in [&mut flat, &mut deep] {
        run.run(steps as u64).unwrap();
    }
    let (flat, deep) = (populations(&mut flat, 9), populations(&mut deep, 19));
    let first = steps * height * width;
    let mut off = 0.0_f64;
    for (c, flat) in C2.into_iter().zip(&flat) {
        let over: Vec<&Vec<f64>> =
            C3.iter().zip(&deep).filter(|(c3, _)| c3[1..] == c).map(|(_, f)| f).collect();
        assert_eq!(over.len(), [3, 3, 1][c.into_iter().filter(|&along| along != 0.0).count()]);
        for (cell, flat) in flat.iter().enumerate() {
            off = off.max((over.iter().map(|f| f[first + cell]).sum::<f64>() - flat).abs());
        }
    }
    println!("{off:e}");
    assert!(off < 1e-14, "{off:e}");
}

/// Returns the velocity over the lid's in a long duct with closed ends, whose lid moves along it: far from the ends, at the
/// middles of `cells` by `cells` cells, z first. It is what the lid drags along less what the pressure pushes back, as series
/// that are exact where inertia is small.
///
/// As much mass flows either way. What the lid bounces back has momentum but stays in its cell: a sixth of the lid's velocity, by
/// the populations that move towards it. The momentum of the others is what flows.
fn duct(cells: usize) -> Vec<f64> {
    let (mut dragged, mut pushed) = (Vec::new(), Vec::new());
    for cell in 0..cells * cells {
        let [z, y] = [cell / cells, cell % cells].map(|index| (index as f64 + 0.5) / cells as f64);
        let (mut drag, mut push) = (0.0, 0.0);
        for n in (1..200).step_by(2).map(f64::from) {
            let k = n * PI;
            let wave = 4.0 / k * (k * z).sin();
            let (lid, floor) = ((k * (1.0 - y)).sinh() / k.sinh(), (k * y).sinh() / k.sinh());
            drag += wave * lid;
            push += wave / (k * k) * (1.0 - lid - floor);
        }
        dragged.push(drag);
        pushed.push(push);
    }
    let flows = dragged.iter().sum::<f64>() - cells as f64 / 6.0;
    let back = flows / pushed.iter().sum::<f64>();
    dragged.iter().zip(&pushed).map(|(drag, push)| drag - back * push).collect()
}

#[test]
fn the_flow_in_a_long_cavity_is_that_in_a_duct() {
    let (cells, length, lid) = (12, 48, 0.01);
    // With this viscosity, walls stand exactly half a cell beyond the cells for a flow whose profile is a parabola.
    let run = begin("lbm-d3q19", [cells, cells, length]).param("lid", lid).param("nu", 3.0_f64.sqrt() / 12.0);
    let mut run = run.build().unwrap();
    run.run(800).unwrap();
    let (_, [w, v, u]) = flow(&mut run, &C3);
    let middle = |field: &[f64], row: usize| {
        let at = row * length + length / 2;
        0.5 * (field[at - 1] + field[at]) / lid
    };
    let (mut most, mut off, mut across) = (0.0_f64, 0.0_f64, 0.0_f64);
    for (row, expected) in duct(cells).into_iter().enumerate() {
        // Where the lid meets the walls, the velocity jumps.
        if row % cells >= cells / 4 {
            most = most.max(-expected);
            off = off.max((middle(&u, row) - expected).abs());
        }
        across = across.max(middle(&w, row).abs()).max(middle(&v, row).abs());
    }
    println!("{most} {off:e} {across:e}");
    assert!(most > 0.25 && off < 0.002 && across < 0.001, "{most} {off:e} {across:e}");
}

/// The flow is symmetric about the plane in the middle across z, where nothing crosses that plane.
#[test]
fn mass_is_kept_and_mirrors_mirror_the_flow_in_three_dimensions() {
    let [depth, height, width] = [9, 11, 14];
    let run = |lid: f64| {
        let mut run = begin("lbm-d3q19", [depth, height, width]).param("lid", lid).build().unwrap();
        run.run(300).unwrap();
        flow(&mut run, &C3)
    };
    let ((density, [w, v, u]), (_, [back_w, back_v, back_u])) = (run(0.1), run(-0.1));
    let cells = density.len() as f64;
    assert!((density.iter().sum::<f64>() / cells - 1.0).abs() < 1e-13);
    let most = |velocity: &[f64]| velocity.iter().fold(0.0_f64, |most, u| most.max(u.abs()));
    assert!(most(&u) > 0.05 && most(&v) > 0.01 && most(&w) > 0.001);
    for cell in 0..density.len() {
        let [z, y, x] = [cell / (height * width), cell / width % height, cell % width];
        let other = ((depth - 1 - z) * height + y) * width + x;
        for (one, other) in [(w[cell], -w[other]), (v[cell], v[other]), (u[cell], u[other])] {
            assert!((one - other).abs() < 1e-13, "{one:e} {other:e}");
        }
        let other = cell - x + width - 1 - x;
        for (one, other) in [(w[cell], back_w[other]), (v[cell], back_v[other]), (u[cell], -back_u[other])] {
            assert!((one - other).abs() < 1e-13, "{one:e} {other:e}");
        }
    }
}

#[test]
fn a_fluid_at_rest_stays_at_rest_in_three_dimensions() {
    let mut run = begin("lbm-d3q19", [7, 6, 8]).param("lid", 0.0).build().unwrap();
    run.run(100).unwrap();
    let (density, velocity) = flow(&mut run, &C3);
    assert!(density.iter().all(|density| (density - 1.0).abs() < 1e-14));
    assert!(velocity.iter().flatten().all(|velocity| velocity.abs() < 1e-14));
}
