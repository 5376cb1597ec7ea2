//! The seismic shot against the wave's exact form, its reciprocity, and the sponge.

use std::f64::consts::PI;

use super::{begin, drawn, transposed, values};
use abide::prelude::*;

const C: f64 = 2000.0;
const DX: f64 = 10.0;

/// Returns the Ricker wavelet of 20 Hz.
fn ricker(time: f64) -> f64 {
    let squared = (PI * (20.0 * time - 1.5)).powi(2);
    (1.0 - 2.0 * squared) * (-squared).exp()
}

/// Returns the pressure at a distance and time: the wavelet convolved with the wave equation's Green's function in two
/// dimensions, 1 / (2π c² √(t² − r²/c²)), for a source of strength 1.
fn exact(distance: f64, time: f64) -> f64 {
    let delay = distance / C;
    if time <= delay {
        return 0.0;
    }
    // The time since the pulse is delay · cosh(a).
    let (last, parts) = ((time / delay).acosh(), 2000);
    let middles = (0..parts).map(|part| (f64::from(part) + 0.5) * last / f64::from(parts));
    let sum: f64 = middles.map(|a| ricker(time - delay * a.cosh())).sum();
    sum * last / f64::from(parts) / (2.0 * PI * C * C)
}

/// Each step adds the pulse to the pressure of one cell, which is a source of (dx/dt)² times the pulse. The space is of
/// eighth order, so that halving the step divides the error by four.
#[test]
fn a_uniform_rock_has_the_exact_wave() {
    let receivers = [[100_u8, 140], [124, 132], [65, 100]];
    let mut errors = Vec::new();
    for (dt, steps) in [(0.00125, 360), (0.000_625, 720)] {
        let run = begin("seismic-shot", [201, 201])
            .start("c", Start::Constant(C))
            .param("dt", dt)
            .param("source_y", 0.5)
            .param("damping", 0.0)
            .record(1);
        let run = receivers.iter().fold(run, |run, receiver| run.probe("u", &receiver.map(usize::from)));
        let mut run = run.build().unwrap();
        run.run(steps).unwrap();
        let (rows, first) = (run.records().unwrap(), run.columns().len() - receivers.len() - 1);
        let mut worst = 0.0_f64;
        for (number, [y, x]) in receivers.into_iter().enumerate() {
            let distance = DX * (f64::from(y) - 100.0).hypot(f64::from(x) - 100.0);
            let (mut most, mut off) = (0.0_f64, 0.0_f64);
            for (step, row) in rows.iter() {
                let expected = (DX / dt).powi(2) * exact(distance, step as f64 * dt);
                most = most.max(expected.abs());
                off = off.max((row[first + number] - expected).abs());
            }
            assert!(most > 0.1, "at {distance} m: {most}");
            worst = worst.max(off / most);
        }
        errors.push(worst);
    }
    println!("{errors:?}");
    assert!(errors[0] < 0.05 && errors[1] < 0.3 * errors[0], "{errors:?}");
}

/// Source and receiver can change places in any rock: what arrives, times the squared speed at the source, is the same.
#[test]
fn a_shot_is_reciprocal() {
    let extents = [70, 90];
    let rock = drawn(extents, |[y, x]| 3000.0 + 900.0 * (0.13 * y + 0.07 * x).sin() * (0.19 * x).cos());
    let speed = |[y, x]: [usize; 2]| rock.to_f64()[y * 90 + x];
    let places = [[12, 20], [55, 71]];
    let arrived = |from: [usize; 2], to: [usize; 2]| {
        let part = |axis: usize| (from[axis] as f64 + 0.5) / extents[axis] as f64;
        let run = begin("seismic-shot", extents)
            .input("c", rock.clone())
            .param("source_y", part(0))
            .param("source_x", part(1))
            .param("damping", 0.0);
        let mut run = run.build().unwrap();
        run.run(300).unwrap();
        values(&mut run, "u")[to[0] * 90 + to[1]] * speed(from).powi(2)
    };
    let (one, other) = (arrived(places[0], places[1]), arrived(places[1], places[0]));
    assert!(one.abs() > 1e3, "{one:e}");
    assert!((one - other).abs() < 1e-9 * one.abs(), "{one:e} {other:e}");
}

/// Once the wave has left through the sides, the sponge has taken almost all of it.
#[test]
fn the_sponge_takes_the_wave() {
    let extents = [120, 120];
    let left = |damping: f64| {
        let run = begin("seismic-shot", extents).start("c", Start::Constant(C)).param("damping", damping);
        let mut run = run.param("source_y", 0.5).build().unwrap();
        run.run(800).unwrap();
        values(&mut run, "u").iter().map(|u| u * u).sum::<f64>()
    };
    let (with, without) = (left(0.015), left(0.0));
    println!("{with:e} {without:e}");
    assert!(with < 0.02 * without, "{with:e} {without:e}");
}

#[test]
fn both_axes_are_alike() {
    let extents = [50, 64];
    let rock = drawn(extents, |[y, x]| 2500.0 + 20.0 * y + 7.0 * x);
    let shot = |extents: [usize; 2], rock, y: f64, x: f64| {
        let run = begin("seismic-shot", extents).input("c", rock);
        let mut run = run.param("source_y", y).param("source_x", x).build().unwrap();
        run.run(150).unwrap();
        values(&mut run, "u")
    };
    let one = shot(extents, rock.clone(), 0.3, 0.6);
    let other = shot([64, 50], transposed(&rock.to_f64(), extents), 0.6, 0.3);
    assert_eq!(transposed(&one, extents).to_f64(), other);
}
