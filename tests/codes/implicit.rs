//! Implicit steps against what linear theory has of the same differences.

use std::f64::consts::PI;

use super::{begin, drawn, values};

/// A wave of the temperature between walls without flux shrinks in each step by one factor.
#[test]
fn a_wave_of_heat_shrinks_as_it_must() {
    let (extents, dt) = ([1, 24], 30.0);
    let wave = move |x: f64| (3.0 * PI * (x + 0.5) / 24.0).cos();
    let mut run = begin("heat-implicit", extents)
        .param("dt", dt)
        .input("u", drawn(extents, move |[_, x]| wave(x - 0.5)))
        .build()
        .unwrap();
    run.run(3).unwrap();
    let number = 2.0 - 2.0 * (3.0 * PI / 24.0).cos();
    let factor = (1.0 + dt * number).powi(-3);
    let found = values(&mut run, "u");
    for (x, value) in found.iter().enumerate() {
        assert!((value - factor * wave(x as f64)).abs() < 1e-5 * factor, "{x}: {value}");
    }
    // One direction is all there is to find.
    assert!(run.scalar("u_iterations").unwrap() <= 2.0);
}

/// In materials whose conductivities differ by 1000, with walls at 1 and at 0, heat ends as resistances in a row.
#[test]
fn a_long_step_reaches_the_steady_state() {
    let extents = [1, 20];
    let k = |x: f64| if x < 10.0 { 1000.0 } else { 1.0 };
    let mut run = begin("heat-implicit", extents)
        .param("dt", 1e9)
        .boundary_text("u:x-=dirichlet=1,u:x+=dirichlet=0".parse().unwrap())
        .input("u", drawn(extents, |_| 0.3))
        .input("k", drawn(extents, move |[_, x]| k(x)))
        .build()
        .unwrap();
    run.run(2).unwrap();
    let mut resistance = vec![0.5 / k(0.0)];
    for x in 1..20 {
        let face = 0.5 * (k(x as f64 - 1.0) + k(x as f64));
        resistance.push(resistance[x - 1] + 1.0 / face);
    }
    let all = resistance[19] + 0.5 / k(19.0);
    for (x, (found, own)) in values(&mut run, "u").iter().zip(&resistance).enumerate() {
        assert!((found - (1.0 - own / all)).abs() < 1e-4, "{x}: {found} {}", 1.0 - own / all);
    }
}

/// A standing wave of the surface turns and shrinks by the factor of backward Euler's method, whatever the time step is.
#[test]
fn a_standing_wave_has_backward_eulers_factor() {
    let (extents, steps) = ([1, 32], 4);
    let (gravity, dt) = (9.81, 6.0);
    let wave = move |x: f64| (2.0 * PI * (x + 0.5) / 32.0).cos();
    let mut run = begin("ocean-surface", extents)
        .param("dt", dt)
        .input("level", drawn(extents, move |[_, x]| wave(x - 0.5)))
        .build()
        .unwrap();
    run.run(steps).unwrap();
    // The level's factor is the real part of (1 − i ω dt)⁻ⁿ, with the frequency of the differences.
    let frequency = (gravity * (2.0 - 2.0 * (2.0 * PI / 32.0).cos())).sqrt() * dt;
    let (length, angle) =
        ((1.0 + frequency * frequency).powf(-0.5 * steps as f64), frequency.atan() * steps as f64);
    let factor = length * angle.cos();
    for (x, value) in values(&mut run, "level").iter().enumerate() {
        assert!((value - factor * wave(x as f64)).abs() < 1e-4 * length, "{x}: {value}");
    }
}

/// Over an uneven bed with land, water at rest stays at rest, and waves move no water out of the sea.
#[test]
fn the_sea_keeps_its_water() {
    let extents = [20, 27];
    let depth = |[y, x]: [f64; 2]| {
        let island = (y - 9.0).powi(2) + (x - 12.0).powi(2) < 12.0;
        if island { 0.0 } else { 2.0 + (0.3 * x).sin() }
    };
    let sea = |level: f64| {
        begin("ocean-surface", extents)
            .param("coriolis", 0.02)
            .input("depth", drawn(extents, depth))
            .input(
                "level",
                drawn(extents, move |[y, x]| level * (-0.1 * ((y - 4.0).powi(2) + (x - 5.0).powi(2))).exp()),
            )
            .build()
            .unwrap()
    };
    let mut still = sea(0.0);
    still.run(3).unwrap();
    assert!(values(&mut still, "level").iter().chain(&values(&mut still, "u")).all(|&value| value == 0.0));
    let mut moved = sea(1.0);
    let before: f64 = values(&mut moved, "level").iter().sum();
    moved.run(20).unwrap();
    let level = values(&mut moved, "level");
    assert!((level.iter().sum::<f64>() - before).abs() < 1e-3 * before, "{before}");
    assert!(values(&mut moved, "u").iter().any(|u| u.abs() > 1e-3));
    assert_eq!(level[9 * 27 + 12].to_bits(), values(&mut sea(1.0), "level")[9 * 27 + 12].to_bits(), "land");
}

/// A run gives all fields a value beyond the sides: the vectors of the solve have zeros there, and the temperature comes to it.
#[test]
fn a_run_may_give_values_beyond_all_sides() {
    for (text, beyond) in [("constant=1", 1.0), ("constant=-0.5", -0.5)] {
        let mut run = begin("heat-implicit", [9, 13])
            .param("dt", 1e6)
            .boundary_text(text.parse().unwrap())
            .input("u", drawn([9, 13], |[_, x]| 0.2 * x))
            .build()
            .unwrap();
        run.run(2).unwrap();
        let found = values(&mut run, "u");
        assert!(found.iter().all(|u| (u - beyond).abs() < 1e-4), "{text}: {found:?}");
        assert!(run.scalar("u_iterations").unwrap() >= 1.0);
    }
}
