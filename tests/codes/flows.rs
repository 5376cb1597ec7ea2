//! Flows of real and ideal gases against exact solutions and independent values.

use std::f64::consts::TAU;

use abide::gas::{Beginning, Flow, Mixture, Scheme, Side, Table, Uniform};
use abide::prelude::*;

/// Temperature, pressure, velocities and mass fractions of a cell.
type Cell = (f64, f64, Vec<f64>, Vec<f64>);

/// Returns a mixture of species of the built-in table.
fn mixture(names: &[&str]) -> Mixture {
    Mixture::of(&Table::builtin().unwrap(), names).unwrap()
}

/// Begins a run on the CPU in f64 of cells `width` wide, from temperatures, pressures, velocities and mass fractions by the
/// cells' numbers.
fn begin(
    flow: &Flow,
    extents: &[usize],
    parameters: &[(&str, f64)],
    at: impl Fn(usize) -> Cell,
) -> Simulation {
    let count: usize = extents.iter().product();
    let cells: Vec<_> = (0..count).map(at).collect();
    let column = |of: &dyn Fn(&Cell) -> f64| Array::F64(cells.iter().map(of).collect());
    let beginning = Beginning {
        temperature: column(&|cell| cell.0),
        pressure: column(&|cell| cell.1),
        velocity: (0..cells[0].2.len()).map(|axis| column(&|cell| cell.2[axis])).collect(),
        fractions: (0..cells[0].3.len()).map(|number| column(&|cell| cell.3[number])).collect(),
    };
    let builder = Simulation::builder(flow.program().unwrap()).size(extents).dtype(DType::F64);
    let builder = parameters.iter().fold(builder, |builder, (name, value)| builder.param(name, *value));
    let mut run = builder.backend(Choice::CPU).build().unwrap();
    for (name, values) in beginning.fields(flow).unwrap() {
        run.write(&name, &values).unwrap();
    }
    run
}

/// Runs a flow of one axis whose state moves along at 100 m/s for one period of 1 m, and returns the root mean square of the error
/// of the density over its range, and the largest relative error of the pressure.
fn moved(flow: &Flow, cells: usize, at: impl Fn(f64) -> (f64, f64, Vec<f64>)) -> (f64, f64) {
    let width = 1.0 / cells as f64;
    let steps = (80 * cells) as u64;
    let parameters = [("dx", width), ("dt", 0.01 / steps as f64)];
    let mut run = begin(flow, &[cells], &parameters, |cell| {
        let (t, p, y) = at((cell as f64 + 0.5) * width);
        (t, p, vec![100.0], y)
    });
    let conserved: Vec<String> = flow.program().unwrap().fields().to_vec();
    let conserved: Vec<String> =
        conserved.into_iter().filter(|name| ["rho", "mx", "energy"].contains(&&name[..])).collect();
    let sums = |run: &mut Simulation| -> Vec<f64> {
        conserved.iter().map(|name| super::values(run, name).iter().sum()).collect()
    };
    let (density, pressure) = (super::values(&mut run, "rho"), super::values(&mut run, "p"));
    let before = sums(&mut run);
    run.advance(steps).unwrap();
    for (before, after) in before.iter().zip(sums(&mut run)) {
        assert!((after / before - 1.0).abs() < 1e-12, "{before:e} became {after:e}");
    }
    let found = super::values(&mut run, "rho");
    let squares: f64 = found.iter().zip(&density).map(|(a, b)| (a - b) * (a - b)).sum();
    let [low, high] = [f64::min, f64::max].map(|of| density.iter().copied().reduce(of).unwrap());
    let now = super::values(&mut run, "p");
    let worst = now.iter().zip(&pressure).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
    ((squares / cells as f64).sqrt() / (high - low), worst)
}

/// The errors after a period at 32, 64 and 128 cells are those of an independent program of the same scheme (numpy, SSP-RK3).
#[test]
fn waves_of_real_gases_move_as_an_independent_program_has_them() {
    let two = |x: f64| {
        let [methane, oxygen] =
            [(0.5 + 0.45 * (TAU * x).sin()) * 16.043, (0.5 - 0.45 * (TAU * x).sin()) * 31.998];
        let y = vec![methane / (methane + oxygen), oxygen / (methane + oxygen)];
        (250.0 + 80.0 * (TAU * x).cos(), 1e7, y)
    };
    let one = |x: f64| (200.0 - 60.0 * (TAU * x).sin(), 1e7, vec![]);
    let (nitrogen, both) = (mixture(&["N2"]), mixture(&["CH4", "O2"]));
    for (cells, nitrogen_error, both_error) in
        [(32, 5.338e-2, 5.72e-2), (64, 1.445e-2, 2.14e-2), (128, 3.747e-3, 7.47e-3)]
    {
        let (error, _) = moved(&Flow::of(&nitrogen, 1), cells, one);
        assert!((error / nitrogen_error - 1.0).abs() < 1e-3, "N2, {cells}: {error:e}");
        let (error, pressure) = moved(&Flow::of(&both, 1), cells, two);
        assert!((error / both_error - 1.0).abs() < 2e-3, "CH4 and O2, {cells}: {error:e}");
        // Densities of 85 to 547: the pressure is no longer uniform, less and less.
        assert!(pressure < 5.1e-2 * (32.0 / cells as f64).powf(1.5), "{cells}: {pressure:e}");
    }
    // A wave without sharp bends, by the other orders.
    let mild = |x: f64| (200.0 - 15.0 * (TAU * x).sin(), 1e7, vec![]);
    for (order, expected) in [(2, 2.0), (4, 4.0), (6, 6.0)] {
        let flow = Flow::of(&nitrogen, 1).order(order);
        let [coarse, fine] = [24, 48].map(|cells| moved(&flow, cells, mild).0);
        let found = (coarse / fine).log2();
        assert!((found - expected).abs() < 0.45, "order {order}: {found} of {coarse:e} and {fine:e}");
    }
}

/// Sod's tube of ideal gas, as near to the exact solution as the catalogue's `euler`, which has the same slopes and fluxes.
#[test]
fn a_shock_tube_of_ideal_gas_comes_near_sods() {
    let tube = |cells: usize| {
        let flow = Flow::ideal(1.4, 1.0, 1).scheme(Scheme::Hllc).courant(0.4);
        let flow = flow.side(0, 0, Side::Outflow).side(0, 1, Side::Outflow);
        let mut run = begin(&flow, &[cells], &[("dx", 1.0 / cells as f64)], |cell| match cell < cells / 2 {
            true => (1.0, 1.0, vec![0.0], vec![]),
            false => (0.8, 0.1, vec![0.0], vec![]),
        });
        let mut time = 0.0;
        while time < 0.2 {
            run.advance(1).unwrap();
            time = run.scalar("time").unwrap();
        }
        let exact = |cell: usize| super::euler::sod(((cell as f64 + 0.5) / cells as f64 - 0.5) / time);
        let density = super::values(&mut run, "rho");
        density.iter().enumerate().map(|(cell, rho)| (rho - exact(cell)).abs()).sum::<f64>() / cells as f64
    };
    let errors = [100, 200].map(tube);
    assert!(errors[1] < 0.0035 && errors[1] < 0.65 * errors[0], "{errors:?}");
}

/// Dense nitrogen of 800 kg/m³ and 60 MPa beside 80 kg/m³ and 6 MPa (Ma, Lv and Ihme, J. Comput. Phys. 340 (2017) 330): the states
/// between the waves and the shock's speed are those of the exact solution.
#[test]
fn a_shock_tube_of_dense_nitrogen_has_the_exact_states() {
    let gas = mixture(&["N2"]);
    let flow = Flow::of(&gas, 1).scheme(Scheme::Hllc).courant(0.4);
    let flow = flow.side(0, 0, Side::Outflow).side(0, 1, Side::Outflow);
    let rest = |temperature: f64, pressure: f64| Uniform {
        temperature,
        pressure,
        velocity: vec![0.0],
        fractions: vec![],
    };
    let temperature = |density: f64, pressure: f64| {
        super::root(80.0, 2000.0, |t| flow.uniform(&rest(t, pressure)).unwrap()[0].1 - density)
    };
    let [dense, light] = [temperature(800.0, 6e7), temperature(80.0, 6e6)];
    let tube = |cells: usize| {
        let mut run = begin(&flow, &[cells], &[("dx", 1.0 / cells as f64)], |cell| match cell < cells / 2 {
            true => (dense, 6e7, vec![0.0], vec![]),
            false => (light, 6e6, vec![0.0], vec![]),
        });
        let mut time = 0.0;
        while time < 5e-4 {
            run.advance(1).unwrap();
            time = run.scalar("time").unwrap();
        }
        (time, ["rho", "u", "p"].map(|name| super::values(&mut run, name)))
    };
    // Between the rarefaction and the contact, and between the contact and the shock; the errors fall with the width of cells.
    let error = |cells: usize| {
        let (time, [density, velocity, pressure]) = tube(cells);
        let at = |speed: f64| ((0.5 + speed * time) * cells as f64) as usize;
        let shock = (at(300.0)..cells).find(|&cell| density[cell] < 95.0).unwrap() as f64;
        let place = (shock / cells as f64 - 0.5) / time;
        assert!(
            (place / 422.609839 - 1.0).abs() < 4.0 / (place * time * cells as f64),
            "the shock's speed {place}"
        );
        let exact = [(at(60.0), 652.977232), (at(270.0), 110.219240)];
        let of = |cell: usize, rho: f64| {
            let each = [(density[cell], rho), (velocity[cell], 115.868593), (pressure[cell], 9.917376585e6)];
            each.map(|(found, exact): (f64, f64)| (found / exact - 1.0).abs()).into_iter().fold(0.0, f64::max)
        };
        exact.into_iter().map(|(cell, rho)| of(cell, rho)).fold(0.0, f64::max)
    };
    let [coarse, fine] = [400, 800].map(error);
    assert!(fine < 0.02 && fine < 0.7 * coarse, "{coarse:e}, {fine:e}");
}

/// An isentropic vortex that moves along the diagonal keeps its density, to the order of the fluxes.
#[test]
fn a_vortex_moves_with_the_order_of_the_fluxes() {
    // The vortex is 0 to eight digits at the edges.
    let width = 12.0;
    let error = |order: usize, cells: usize| {
        let flow = Flow::ideal(1.4, 1.0, 2).order(order);
        let h = width / cells as f64;
        let steps = (order * cells) as u64;
        let end = 0.5;
        let at = |cell: usize, time: f64| {
            let place = |index: usize| (index as f64 + 0.5) * h - time - 0.5 * width;
            // The nearest of its images.
            let near = |x: f64| x - width * (x / width).round();
            let [x, y] = [near(place(cell % cells)), near(place(cell / cells))];
            let beta = 2.0 / TAU * (0.5 * (1.0 - x * x - y * y)).exp();
            let t = 1.0 - 0.4 / (2.0 * 1.4) * beta * beta;
            (t, t.powf(3.5), vec![1.0 - beta * y, 1.0 + beta * x], vec![])
        };
        let parameters = [("dx", h), ("dy", h), ("dt", end / steps as f64)];
        let mut run = begin(&flow, &[cells, cells], &parameters, |cell| at(cell, 0.0));
        run.advance(steps).unwrap();
        let exact = |cell: usize| at(cell, end).0.powf(2.5);
        let density = super::values(&mut run, "rho");
        let squares = density.iter().enumerate().map(|(cell, rho)| (rho - exact(cell)).powi(2)).sum::<f64>();
        (squares / density.len() as f64).sqrt()
    };
    for (order, expected, cells) in [(2, 2.0, [64, 128]), (4, 4.0, [48, 96]), (6, 6.0, [48, 96])] {
        let [coarse, fine] = cells.map(|cells| error(order, cells));
        let found = (coarse / fine).log2();
        assert!((found - expected).abs() < 0.25, "order {order}: {found} of {coarse:e} and {fine:e}");
    }
}

/// Between walls nothing is lost, in any direction; a uniform flow from an inflow to an outlet stays as it is.
#[test]
fn walls_keep_what_is_inside_and_uniform_flows_pass() {
    let gas = mixture(&["CH4", "O2"]);
    for scheme in [Scheme::Keep, Scheme::Hllc] {
        for (walls, is_viscous) in [(Side::Slip, false), (Side::NoSlip, true)] {
            let mut flow = Flow::of(&gas, 3).scheme(scheme);
            flow = if is_viscous { flow.viscous() } else { flow };
            for (axis, side) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)] {
                flow = flow.side(axis, side, walls.clone());
            }
            let extents = [7, 9, 11];
            let parameters = [("dx", 1e-3), ("dy", 1e-3), ("dz", 1e-3), ("dt", 2e-7)];
            let mut run = begin(&flow, &extents, &parameters, |cell| {
                let wave = |n: f64| (0.3 * n + cell as f64 * 0.11 * n).sin();
                let y = 0.5 + 0.2 * wave(1.0);
                let velocity = vec![5.0 * wave(0.7), 5.0 * wave(0.4), 5.0 * wave(1.3)];
                (300.0 + 20.0 * wave(0.2), 5e6 + 1e5 * wave(0.5), velocity, vec![y, 1.0 - y])
            });
            let sums = |run: &mut Simulation| {
                ["rhoY[0]", "rhoY[1]", "energy"].map(|name| super::values(run, name).iter().sum::<f64>())
            };
            let before = sums(&mut run);
            run.advance(40).unwrap();
            for (before, after) in before.into_iter().zip(sums(&mut run)) {
                assert!((after / before - 1.0).abs() < 1e-13, "{scheme:?}, {walls:?}: {before:e}, {after:e}");
            }
        }
        let inflow = Side::Inflow(Uniform {
            temperature: 300.0,
            pressure: 5e6,
            velocity: vec![40.0, 0.0],
            fractions: vec![0.3, 0.7],
        });
        for outlet in [Side::Outflow, Side::Pressure(5e6)] {
            let flow = Flow::of(&gas, 2).scheme(scheme).side(1, 0, inflow.clone()).side(1, 1, outlet);
            let parameters = [("dx", 1e-3), ("dy", 1e-3), ("dt", 2e-7)];
            let mut run =
                begin(&flow, &[5, 20], &parameters, |_| (300.0, 5e6, vec![40.0, 0.0], vec![0.3, 0.7]));
            let before = ["rho", "u", "T", "p"].map(|name| super::values(&mut run, name)[0]);
            run.advance(100).unwrap();
            for (name, before) in ["rho", "u", "T", "p"].iter().zip(before) {
                let found = super::values(&mut run, name);
                assert!(found.iter().all(|value| (value / before - 1.0).abs() < 1e-9), "{name}: {found:?}");
            }
        }
    }
}

/// Small waves of the velocity across, of the temperature and of the composition decay as viscosity, conduction and diffusion say.
#[test]
fn waves_decay_as_viscosity_conduction_and_diffusion_say() {
    let gas = mixture(&["N2", "CO"]);
    let cells = 32;
    // Small cells, through which sound goes many times while the waves decay.
    let h = 5e-6;
    let wave = TAU / (h * cells as f64);
    for (order, bound) in [(2, 2e-2), (6, 1e-2)] {
        let flow = Flow::of(&gas, 2).order(order).viscous();
        let parameters = [("dx", h), ("dy", h), ("dt", 4e-9)];
        let sine = |cell: usize| (wave * h * ((cell % cells) as f64 + 0.5)).sin();
        let amplitude = |run: &mut Simulation, name: &str| {
            let values = super::values(run, name);
            2.0 * values.iter().enumerate().map(|(cell, value)| value * sine(cell)).sum::<f64>()
                / values.len() as f64
        };
        let calm =
            Uniform { temperature: 300.0, pressure: 1e5, velocity: vec![0.0; 2], fractions: vec![0.5; 2] };
        let uniform = |name: &str| {
            let fields = flow.uniform(&calm).unwrap();
            fields.into_iter().find(|(known, _)| known == name).unwrap().1
        };
        let steps = 400_u32;
        let time = 4e-9 * f64::from(steps);
        let density = uniform("rho");
        let decay = |of: &str| match of {
            "v" => uniform("mu") / density,
            "T" => {
                let properties = abide::gas::Property::named(&["cp"]).unwrap();
                let states =
                    abide::gas::States { basis: abide::gas::Basis::Mass, ..abide::gas::States::LOOPS };
                let mut points = abide::gas::Points::new(&gas, states, &properties, 1, Choice::CPU).unwrap();
                let one = |value: f64| Array::F64(vec![value]);
                let state = abide::gas::Columns {
                    given: [one(300.0), one(1e5)],
                    fractions: vec![one(0.5), one(0.5)],
                };
                uniform("lambda") / density / points.evaluate(&state).unwrap()[0].to_f64()[0]
            }
            _ => uniform("D[0]"),
        };
        for (name, scale) in [("v", 1.0), ("T", 0.3), ("Y", 0.05)] {
            let mut run = begin(&flow, &[3, cells], &parameters, |cell| {
                let own = |of: &str| if name == of { scale * sine(cell) } else { 0.0 };
                (300.0 + own("T"), 1e5, vec![0.0, own("v")], vec![0.5 + own("Y"), 0.5 - own("Y")])
            });
            let field = if name == "Y" { "rhoY[0]" } else { name };
            let before = amplitude(&mut run, field);
            run.advance(steps.into()).unwrap();
            let ratio = amplitude(&mut run, field) / before;
            let found = -ratio.ln() / (wave * wave * time);
            assert!(
                (found / decay(name) - 1.0).abs() < bound,
                "order {order}, {name}: {found:e}, {:e}",
                decay(name)
            );
        }
    }
}
