//! Maxwell's equations against a dipole's exact field, plain loops and what Yee's scheme obeys up to rounding, and the layers
//! against a domain in which nothing has come back.

use std::f64::consts::PI;

use super::{begin, values};
use abide::prelude::*;
use abide::{Boundary, Builder};

/// The components along x, y and z.
const E: [&str; 3] = ["e[0]", "e[1]", "e[2]"];
const H: [&str; 3] = ["h[0]", "h[1]", "h[2]"];

/// Begins a run on a cube of so many cells, in vacuum, with the dipole in the middle.
fn in_vacuum(cells: usize) -> Builder {
    begin("fdtd-3d", [cells; 3]).start("permittivity", Start::Constant(1.0)).param("source_x", 0.5)
}

/// Runs so many steps, and returns the electric field along z after each of them, so many cells beside the middle along x.
fn received(run: Builder, cells: usize, distance: usize, steps: u64) -> Vec<f64> {
    let middle = cells / 2;
    let mut run = run.record(1).probe("e[2]", &[middle, middle, middle + distance]).build().unwrap();
    run.run(steps).unwrap();
    let column = run.columns().iter().position(|name| name.starts_with("e[2]")).unwrap();
    let rows = run.records().unwrap();
    rows.iter().filter(|(step, _)| *step > 0).map(|(_, row)| row[column - 1]).collect()
}

fn most(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |most, value| most.max(value.abs()))
}

/// Returns the field along a dipole's axis at a distance beside it after each step: near, middle and far field.
fn dipole(distance: f64, duration: f64, courant: f64, steps: u64) -> Vec<f64> {
    let at = |step: u64| {
        let phase = (step as f64 - distance / courant) / duration - 3.5;
        let moment = (-phase * phase).exp();
        let rate = -2.0 * phase * moment / (duration * courant);
        let second = (4.0 * phase * phase - 2.0) * moment / (duration * courant).powi(2);
        -(moment / distance.powi(3) + rate / distance.powi(2) + second / distance) / (4.0 * PI)
    };
    (1..=steps).map(at).collect()
}

#[test]
fn a_dipole_has_its_exact_field() {
    let cells = 33;
    let mut errors = Vec::new();
    for (distance, duration) in [(4, 8.0), (8, 16.0)] {
        let (steps, run) = (6 * duration as u64, in_vacuum(cells).param("layers", 8.0));
        let found = received(run.param("duration", duration), cells, distance, steps);
        let exact = dipole(distance as f64, duration, 0.5, steps);
        errors.push(most(found.iter().zip(&exact).map(|(found, exact)| found - exact)) / most(exact));
    }
    println!("{errors:?}");
    assert!(errors[0] < 0.14 && errors[1] < 0.25 * errors[0], "{errors:?}");
}

/// Yee's scheme in plain loops, in vacuum, with walls: what [`received`] returns.
fn yee(cells: usize, distance: usize, duration: f64, steps: u64) -> Vec<f64> {
    let (courant, stride, middle) = (0.5, [1, cells, cells * cells], cells / 2);
    let source = middle * stride.iter().sum::<usize>();
    let inner: Vec<usize> = (0..cells.pow(3))
        .filter(|cell| stride.iter().all(|stride| (1..cells - 1).contains(&(cell / stride % cells))))
        .collect();
    let [mut e, mut h] = [(); 2].map(|()| [(); 3].map(|()| vec![0.0; cells.pow(3)]));
    let mut trace = Vec::new();
    for step in 0..steps {
        for [a, b, c] in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
            let (to, eb, ec) = (&mut h[a], &e[b], &e[c]);
            for &i in &inner {
                to[i] -= courant * (ec[i + stride[b]] - ec[i] - eb[i + stride[c]] + eb[i]);
            }
        }
        for [a, b, c] in [[0, 1, 2], [1, 2, 0], [2, 0, 1]] {
            let (to, hb, hc) = (&mut e[a], &h[b], &h[c]);
            for &i in &inner {
                to[i] += courant * (hc[i] - hc[i - stride[b]] - hb[i] + hb[i - stride[c]]);
            }
        }
        let phase = (step as f64 + 0.5) / duration - 3.5;
        e[2][source] += 2.0 * phase / duration * (-phase * phase).exp();
        trace.push(e[2][source + distance]);
    }
    trace
}

/// What the layers send back, and what walls would, against a domain so large that nothing has come back from its sides.
#[test]
fn the_layers_send_almost_nothing_back() {
    let (cells, distance, duration, steps) = (31, 3, 5.0, 80);
    let exact = yee(45, distance, duration, steps);
    let with = received(in_vacuum(cells).param("duration", duration), cells, distance, steps);
    let off = |found: &[f64]| {
        most(found.iter().zip(&exact).map(|(found, exact)| found - exact)) / most(exact.clone())
    };
    let decibels = [&with, &yee(cells, distance, duration, steps)].map(|found| 20.0 * off(found).log10());
    println!("{decibels:?}");
    assert!(decibels[0] < -55.0 && decibels[1] > -25.0, "{decibels:?}");
}

/// Without layers a run has the values of plain loops.
#[test]
fn the_scheme_is_yees() {
    let (cells, distance, duration, steps) = (21, 5, 6.0, 60);
    let run = in_vacuum(cells).param("duration", duration).param("layers", 0.0);
    let (found, expected) = (received(run, cells, distance, steps), yee(cells, distance, duration, steps));
    let off = most(found.iter().zip(&expected).map(|(found, expected)| found - expected));
    assert!(off < 1e-14 * most(expected.clone()), "{off:e} of {:e}", most(expected));
}

/// Begins a run on a torus without layers and dipole, from a random magnetic field.
fn on_a_torus(extents: [usize; 3]) -> Builder {
    let run =
        begin("fdtd-3d", extents).boundary(Boundary::Periodic).param("layers", 0.0).param("moment", 0.0);
    let random = |seed| Start::Random { seed, low: -1.0, high: 1.0 };
    H.into_iter().zip(5..).fold(run, |run, (name, seed)| run.start(name, random(seed)))
}

/// Yee's scheme conserves `⟨ε Eⁿ, Eⁿ⁺¹⟩ + |Hⁿ⁺½|²`.
#[test]
fn the_energy_stays() {
    let permittivity = Start::Random { seed: 3, low: 1.0, high: 4.0 };
    let mut run = on_a_torus([9, 11, 8]).start("permittivity", permittivity).build().unwrap();
    let permittivity = values(&mut run, "permittivity");
    let mut energy = || {
        let before = E.map(|name| values(&mut run, name));
        run.run(1).unwrap();
        let (after, h) = (E.map(|name| values(&mut run, name)), H.map(|name| values(&mut run, name)));
        run.run(40).unwrap();
        let products = before.iter().zip(&after).map(|(before, after)| {
            let all = before.iter().zip(after).zip(&permittivity);
            all.map(|((before, after), permittivity)| before * after * permittivity).sum::<f64>()
        });
        products.sum::<f64>() + h.iter().flatten().map(|h| h * h).sum::<f64>()
    };
    let first = energy();
    assert!(first > 100.0);
    for _ in 0..5 {
        let change = (energy() / first - 1.0).abs();
        assert!(change < 1e-13, "{change:e}");
    }
}

/// Where no charges are, each component of the electric field obeys the wave equation, on the grid as in space. The electric
/// field that a step makes of nothing is a curl.
#[test]
fn each_component_is_a_wave() {
    let (extents, steps) = ([9, 11, 8], 50);
    let mut run = on_a_torus(extents).start("permittivity", Start::Constant(1.0)).build().unwrap();
    run.run(1).unwrap();
    let first = E.map(|name| values(&mut run, name));
    run.run(steps).unwrap();
    for (name, first) in E.into_iter().zip(first) {
        let mut wave = begin("wave", extents)
            .boundary(Boundary::Periodic)
            .input("u", Array::F64(first))
            .start("w", Start::Constant(0.0))
            .build()
            .unwrap();
        wave.run(steps).unwrap();
        let (found, expected) = (values(&mut run, name), values(&mut wave, "u"));
        let off = most(found.iter().zip(&expected).map(|(found, expected)| found - expected));
        assert!(most(expected) > 0.5 && off < 1e-13, "{name}: {off:e}");
    }
}

/// In glass everywhere, the electric field is that in vacuum for light that is slower by the index of refraction.
#[test]
fn glass_slows_light() {
    let of = |permittivity: f64, courant: f64, start: f64| {
        let run = on_a_torus([9, 11, 8]).param("courant", courant);
        let run = run.start("permittivity", Start::Constant(permittivity));
        let random = |seed| Start::Random { seed, low: -start, high: start };
        let run = H.into_iter().zip(5..).fold(run, |run, (name, seed)| run.start(name, random(seed)));
        let mut run = run.build().unwrap();
        run.run(50).unwrap();
        E.map(|name| values(&mut run, name)).concat()
    };
    let (glass, vacuum) = (of(4.0, 0.5, 1.0), of(1.0, 0.25, 0.5));
    let off = most(glass.iter().zip(&vacuum).map(|(glass, vacuum)| glass - vacuum));
    assert!(most(vacuum) > 0.1 && off < 1e-14, "{off:e}");
}
