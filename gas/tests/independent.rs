//! Mixtures of many species with interactions, against plain loops over pairs in f64 that know nothing of the crate's
//! formulas: square roots and polynomials of each species, the cubic by bisection, derivatives by differences.

use abide_core::expr::{Graph, Node, Tap};
use abide_gas::{GAS_CONSTANT as R, Interactions, Mixture, Pairs, Property, Species, Table};

/// Numbers without pattern in 0..1, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

struct Plain<'a> {
    species: &'a [Species],
    kij: &'a [Vec<f64>],
}

impl Plain<'_> {
    fn kappa(&self, s: &Species) -> f64 {
        let w = s.critical.unwrap().acentric;
        match w <= 0.491 {
            true => 0.37464 + 1.54226 * w - 0.26992 * w * w,
            false => 0.374642 + 1.487503 * w - 0.164423 * w * w + 0.016666 * w * w * w,
        }
    }

    /// a α of the mixture, by the double sum.
    fn attraction(&self, t: f64, x: &[f64]) -> f64 {
        let root = |s: &Species| {
            let (c, kappa) = (s.critical.unwrap(), self.kappa(s));
            let a = 0.4572355289213822 * (R * c.temperature).powi(2) / c.pressure;
            (a * (1.0 + kappa * (1.0 - (t / c.temperature).sqrt())).powi(2)).sqrt()
        };
        let roots: Vec<f64> = self.species.iter().map(root).collect();
        let mut sum = 0.0;
        for i in 0..x.len() {
            for j in 0..x.len() {
                sum += x[i] * x[j] * (1.0 - self.kij[i][j]) * roots[i] * roots[j];
            }
        }
        sum
    }

    fn covolume(&self, x: &[f64]) -> f64 {
        let own = |s: &Species| {
            0.0777960739038885 * R * s.critical.unwrap().temperature / s.critical.unwrap().pressure
        };
        self.species.iter().zip(x).map(|(s, x)| x * own(s)).sum()
    }

    fn pressure(&self, t: f64, v: f64, x: &[f64]) -> f64 {
        let b = self.covolume(x);
        R * t / (v - b) - self.attraction(t, x) / (v * v + 2.0 * v * b - b * b)
    }

    /// The volume by bisection, where the pressure falls with the volume.
    fn volume(&self, t: f64, p: f64, x: &[f64]) -> f64 {
        let (mut low, mut high) = (self.covolume(x) * (1.0 + 1e-9), 10.0 * R * t / p);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if self.pressure(t, middle, x) > p { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// The chemists' free energy, from which energy, entropy and heat capacity follow as derivatives.
    fn helmholtz(&self, t: f64, v: f64, x: &[f64]) -> f64 {
        let (a, b) = (self.attraction(t, x), self.covolume(x));
        let r2 = 2f64.sqrt();
        let excess = -a / (2.0 * r2 * b) * ((v + (1.0 + r2) * b) / (v + (1.0 - r2) * b)).ln();
        let ideal: f64 = self
            .species
            .iter()
            .zip(x)
            .filter(|(_, x)| **x > 0.0)
            .map(|(s, &x)| {
                let c = if t <= s.thermo.middle { &s.thermo.low } else { &s.thermo.high };
                let h = c[5]
                    + t * (c[0] + t * (c[1] / 2.0 + t * (c[2] / 3.0 + t * (c[3] / 4.0 + t * c[4] / 5.0))));
                let s =
                    c[0] * t.ln() + t * (c[1] + t * (c[2] / 2.0 + t * (c[3] / 3.0 + t * c[4] / 4.0))) + c[6];
                x * (h - t * s + t * (x * R * t / (101325.0 * (v - b))).ln() - t)
            })
            .sum();
        ideal * R + excess
    }
}

#[test]
fn interacting_mixtures_are_those_of_plain_loops() {
    let table = Table::builtin().unwrap();
    let mut random = Random(7);
    for count in [2, 33, 53] {
        let names: Vec<&str> = table.species()[..count].iter().map(|species| &*species.name).collect();
        let mut kij = vec![vec![0.0; count]; count];
        let mut pairs = Vec::new();
        for i in 0..count {
            for j in i + 1..count {
                // With more than half of all pairs the loops go over all.
                if random.next() < if count == 33 { 0.3 } else { 0.7 } || count == 2 {
                    kij[i][j] = 0.3 * random.next() - 0.1;
                    kij[j][i] = kij[i][j];
                    pairs.push((names[j].to_owned(), names[i].to_owned(), kij[i][j]));
                }
            }
        }
        let interactions = Interactions::new(&table, pairs).unwrap();
        let gas = Mixture::of(&table, &names).unwrap().interactions(&interactions);
        let factored = gas.clone().pairs(Pairs::Factored);
        let plain = Plain { species: &table.species()[..count], kij: &kij };
        let graph = Graph::new();
        let tap = |field: usize| graph.add(Node::Tap(Tap { field: field as u16, offset: [0; 3] }));
        let all = Property::named(&["rho", "e", "s", "cv", "roots", "mu", "lambda"]).unwrap();
        let components = graph.components(Tap { field: 2, offset: [0; 3] }, count);
        let in_terms = [&gas, &factored].map(|gas| gas.mole_fractions(|i| tap(2 + i)));
        let in_loops = [&gas, &factored].map(|gas| gas.mole_fractions_in(components).unwrap());
        let states = in_terms.into_iter().chain(in_loops).map(|x| x.at(tap(0), tap(1)));
        let outputs: Vec<_> = states.flat_map(|s| all.iter().flat_map(move |p| p.values(&s))).collect();
        assert_eq!(graph.fault(), None);
        let dag = graph.dag(&outputs);
        let mut values = Vec::new();
        for _ in 0..20 {
            // Where a polynomial jumps or √α is 0 there is no derivative.
            let (t, p) = loop {
                let t = 450.0 + 2000.0 * random.next();
                let bend =
                    |s: &Species| s.critical.unwrap().temperature * (1.0 + 1.0 / plain.kappa(s)).powi(2);
                let is_near =
                    |s: &Species| [s.thermo.middle, bend(s)].iter().any(|at| (at / t - 1.0).abs() < 1e-3);
                if !plain.species.iter().any(is_near) {
                    break (t, 10f64.powf(5.0 + 2.3 * random.next()));
                }
            };
            let parts: Vec<f64> = (0..count).map(|_| (random.next() - 0.3).max(0.0) + 1e-3).collect();
            let whole: f64 = parts.iter().sum();
            let x: Vec<f64> = parts.iter().map(|part| part / whole).collect();
            dag.evaluate::<f64>(&mut values, &[], [0; 3], |tap| match tap.field {
                0 => t,
                1 => p,
                field => x[usize::from(field) - 2],
            });
            let own: Vec<f64> = dag.outputs.iter().map(|&id| values[id as usize]).collect();
            let (own, others) = own.split_at(all.len());
            let mass: f64 = plain.species.iter().zip(&x).map(|(s, x)| s.molar_mass * x).sum();
            let v = plain.volume(t, p, &x);
            let near = |name: &str, a: f64, b: f64, unit: f64, bound: f64| {
                assert!(
                    ((a - b) / unit).abs() < bound,
                    "{count} species, {t} K, {p} Pa: {name} {a:e}, plain {b:e}"
                );
            };
            near("rho", own[0], mass / v, mass / v, 1e-12);
            assert_eq!(own[4], 1.0);
            // Derivatives by differences of the fourth order.
            let f = |t: f64| plain.helmholtz(t, v, &x);
            let h = 2e-4 * t;
            let slope = (8.0 * (f(t + h) - f(t - h)) - (f(t + 2.0 * h) - f(t - 2.0 * h))) / (12.0 * h);
            near("s", own[2] * mass, -slope, R, 1e-6);
            near("e", own[1] * mass, f(t) - t * slope, R * t, 1e-6);
            let bend = (16.0 * (f(t + h) + f(t - h)) - (f(t + 2.0 * h) + f(t - 2.0 * h)) - 30.0 * f(t))
                / (12.0 * h * h);
            near("cv", own[3] * mass, -t * bend, R, 1e-4);
            for (number, &other) in others.iter().enumerate() {
                let number = number % all.len();
                near(all[number].name, other, own[number], own[number], 1e-13);
            }
        }
    }
}

/// Methane a little below its critical temperature, at its vapour pressure: liquid, vapour and one between.
#[test]
fn three_volumes_are_found() {
    let table = Table::builtin().unwrap();
    let gas = Mixture::of(&table, &["CH4"]).unwrap();
    let graph = Graph::new();
    let tap = |field: u16| graph.add(Node::Tap(Tap { field, offset: [0; 3] }));
    let state = gas.mole_fractions(|_| graph.constant(1.0)).at(tap(0), tap(1));
    let dag = graph.dag(&[state.roots(), state.pressure(), state.density()]);
    let mut values = Vec::new();
    let mut at = |t: f64, p: f64| {
        dag.evaluate::<f64>(&mut values, &[], [0; 3], |tap| if tap.field == 0 { t } else { p });
        values[dag.outputs[0] as usize]
    };
    // By the equation itself: it has three volumes where the pressure as a function of the volume has both extremes,
    // one on either side of the given pressure.
    let species = [table.find("CH4").unwrap().clone()];
    let kij = [vec![0.0]];
    let plain = Plain { species: &species, kij: &kij };
    for t in [120.0, 150.0, 180.0, 190.0, 200.0, 300.0] {
        for p in [1e4, 1e5, 1e6, 2e6, 3e6, 4e6, 5e6, 2e7] {
            let b = plain.covolume(&[1.0]);
            let volumes = (1..400_000).map(|n| b * (1.0 + 1e-4 * (f64::from(n) * 5e-5).exp_m1() * 5.0e1));
            let above = volumes.map(|v| plain.pressure(t, v, &[1.0]) > p);
            let (mut last, mut crossings) = (true, 0);
            for above in above {
                crossings += i32::from(above != last);
                last = above;
            }
            assert_eq!(at(t, p), f64::from(crossings), "{t} K, {p} Pa");
        }
    }
}
