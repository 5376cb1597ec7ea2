//! Shallow water against exact solutions, at rest, and over dry ground.

use std::f64::consts::PI;

use super::{begin, drawn, mean_error, root, transposed, values};
use abide::prelude::*;

const G: f64 = 9.81;

/// Returns the depth of Stoker's dam break (Water Waves, 1957) at a place relative to the dam over the time.
fn stoker(speed: f64, high: f64, low: f64) -> f64 {
    let behind = |depth: f64| 2.0 * ((G * high).sqrt() - (G * depth).sqrt());
    let shock = |depth: f64| (depth - low) * (0.5 * G * (depth + low) / (depth * low)).sqrt();
    let middle = root(low, high, |depth| behind(depth) - shock(depth));
    let velocity = behind(middle);
    let front = middle * velocity / (middle - low);
    if speed < -(G * high).sqrt() {
        high
    } else if speed < velocity - (G * middle).sqrt() {
        (2.0 * (G * high).sqrt() - speed).powi(2) / (9.0 * G)
    } else if speed < front {
        middle
    } else {
        low
    }
}

#[test]
fn a_dam_break_converges_to_stokers() {
    let mut errors = Vec::new();
    for cells in [100, 200, 400] {
        let (extents, dx) = ([3, cells], 40.0 / cells as f64);
        let place = move |x: f64| x * dx - 20.0;
        let mut run = begin("shallow-water", extents)
            .param("dx", dx)
            .input("level", drawn(extents, |[_, x]| if place(x) < 0.0 { 2.0 } else { 0.5 }))
            .input("bed", drawn(extents, |_| 0.0))
            .until("time >= 2")
            .build()
            .unwrap();
        run.run(100_000).unwrap();
        let time = run.scalar("time").unwrap();
        let found = values(&mut run, "level");
        errors.push(mean_error(&found, extents, |[_, x]| stoker(place(x) / time, 2.0, 0.5)));
    }
    println!("{errors:?}");
    assert!(errors[2] < 0.004, "{errors:?}");
    assert!(errors.windows(2).all(|pair| pair[1] < 0.6 * pair[0]), "{errors:?}");
}

/// Water in a paraboloid whose surface stays a plane and turns (Thacker, J. Fluid Mech. 107, 1981): the shore moves over
/// dry ground, and after a period all is as it was.
#[test]
fn thackers_plane_turns_in_its_bowl() {
    let mut errors = Vec::new();
    let (radius, tilt) = (1.0, 0.4);
    let frequency = (2.0 * G).sqrt() / radius;
    for cells in [40, 80] {
        let (extents, dx) = ([cells; 2], 4.0 / cells as f64);
        let place = move |at: [f64; 2]| at.map(|i| i * dx - 2.0);
        let bed = move |at: [f64; 2]| place(at).iter().map(|x| x * x).sum::<f64>();
        let level = move |at: [f64; 2]| (1.0 + tilt * (2.0 * place(at)[1] - tilt)).max(bed(at));
        let mut run = begin("shallow-water", extents)
            .param("dx", dx)
            .input("bed", drawn(extents, bed))
            .input("level", drawn(extents, level))
            .input("hv", drawn(extents, |at| -tilt * frequency * (level(at) - bed(at))))
            .until(&format!("time >= {}", 2.0 * PI / frequency))
            .build()
            .unwrap();
        run.run(100_000).unwrap();
        let found = values(&mut run, "level");
        errors.push(mean_error(&found, extents, level));
    }
    println!("{errors:?}");
    assert!(errors[1] < 0.01 && errors[1] < 0.6 * errors[0], "{errors:?}");
}

/// Around an island and above a rough ground, in both types.
#[test]
fn water_at_rest_stays_at_rest_to_the_bit() {
    let extents = [40, 50];
    for dtype in [DType::F32, DType::F64] {
        let hill = |[y, x]: [f64; 2]| (-0.01 * ((y - 18.0).powi(2) + (x - 27.0).powi(2))).exp();
        let bed =
            drawn(extents, |at| hill(at) + 0.3 * (at[0] * 12.9 + at[1] * 78.2).sin()).cast(dtype).unwrap();
        let start: Vec<f64> = bed.to_f64().iter().map(|bed| bed.max(f64::from(0.6_f32))).collect();
        let mut run = begin("shallow-water", extents)
            .dtype(dtype)
            .start("level", Start::Constant(f64::from(0.6_f32)))
            .input("bed", bed)
            .build()
            .unwrap();
        run.run(200).unwrap();
        assert!(start.iter().filter(|&&level| level > 0.7).count() > 50, "an island");
        assert_eq!(values(&mut run, "level"), start, "{dtype}");
        for discharge in ["hu", "hv"] {
            assert!(values(&mut run, discharge).iter().all(|&q| q == 0.0), "{dtype}");
        }
        assert!(run.scalar("time").unwrap() > 1.0);
    }
}

/// The catalogue's start, whose wave runs over an island.
#[test]
fn the_start_keeps_its_mass_and_no_depth_is_negative() {
    let mut run = begin("shallow-water", [64, 80]).build().unwrap();
    let bed = values(&mut run, "bed");
    let depths = |run: &mut Simulation| -> Vec<f64> {
        let level = values(run, "level");
        level.iter().zip(&bed).map(|(level, bed)| level - bed).collect()
    };
    let mass = |depths: &[f64]| depths.iter().map(|depth| depth.max(0.0)).sum::<f64>();
    let before = depths(&mut run);
    let dry = |depths: &[f64]| depths.iter().filter(|&&depth| depth < 1e-5).count();
    let dry_before = dry(&before);
    run.run(400).unwrap();
    let after = depths(&mut run);
    assert!(dry_before > 50 && dry(&after) < dry_before, "{dry_before} {}", dry(&after));
    assert!(after.iter().all(|&depth| depth > -1e-14));
    let change = mass(&after) / mass(&before) - 1.0;
    assert!(change.abs() < 1e-12, "{change:e}");
    let level = values(&mut run, "level");
    assert!(level.iter().all(|level| (0.2..1.8).contains(level)));
}

#[test]
fn both_axes_are_alike() {
    let extents = [24, 37];
    let names = ["level", "hu", "hv", "bed"];
    let field = |number: usize| {
        drawn(extents, move |[y, x]| {
            0.4 + 0.3 * (0.3 * x * (number + 1) as f64 + 0.2 * y * (5 - number) as f64).sin()
        })
    };
    let (mut one, mut other) = (begin("shallow-water", extents), begin("shallow-water", [37, 24]));
    for (number, name) in names.into_iter().enumerate() {
        let mirrored = ["level", "hv", "hu", "bed"][number];
        one = one.input(name, field(number));
        other = other.input(mirrored, transposed(&field(number).to_f64(), extents));
    }
    let (mut one, mut other) = (one.build().unwrap(), other.build().unwrap());
    one.run(50).unwrap();
    other.run(50).unwrap();
    for (name, mirrored) in [("level", "level"), ("hu", "hv"), ("hv", "hu")] {
        let expected = transposed(&values(&mut one, name), extents);
        assert!(other.field(mirrored).unwrap().same_bits(&expected), "{name}");
    }
}
