//! Properties against tables of 34-digit values, evaluated point by point in f64.

use crate::tables;

use abide_core::expr::{Graph, Node, Tap};
use abide_core::{DType, Expr};
use abide_gas::{Chung, Composition, Mixture, Pairs, State, Sums, Table};
use tables::{Row, STATES, read};

/// Evaluates formulas of T, p, ρ, e, h and the mole fractions at every row; with loops turn by turn, and with each turn
/// written out, to the same bits.
fn evaluate(
    rows: &[Row],
    count: usize,
    define: impl for<'g> Fn(&'g Graph, [Expr<'g>; 5], Vec<Expr<'g>>) -> Vec<Expr<'g>>,
) -> Vec<Vec<f64>> {
    let graph = Graph::new();
    let tap = |field: usize| graph.add(Node::Tap(Tap { field: field as u16, offset: [0; 3] }));
    let outputs = define(&graph, [0, 1, 2, 3, 4].map(tap), (5..5 + count).map(tap).collect());
    let (dag, looped) = (graph.dag(&outputs).simplified(DType::F64), graph.looped(&outputs));
    assert_eq!(graph.fault(), None);
    let mut values = Vec::new();
    let at = |row: &Row| {
        let inputs = ["T", "p", "rho", "e", "h"].map(|name| row.of(name));
        let tap = |tap: Tap| match usize::from(tap.field) {
            field @ 0..5 => inputs[field],
            field => row.fractions[field - 5],
        };
        dag.evaluate::<f64>(&mut values, &[], [0; 3], tap);
        let own: Vec<f64> = dag.outputs.iter().map(|&id| values[id as usize]).collect();
        if let Some(looped) = &looped {
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&looped.evaluate(&[], [0; 3], tap).collect::<Vec<_>>()), bits(&own));
        }
        own
    };
    rows.iter()
        .map({
            let mut at = at;
            move |row| at(row)
        })
        .collect()
}

const GAS: f64 = abide_gas::GAS_CONSTANT;

/// Returns the worst and the median error of each property: relative, of h and e in RT, of s in R.
fn errors(names: &[&str], rows: &[Row], values: &[Vec<f64>], gas: &Mixture) -> Vec<(String, f64, f64)> {
    let unit = |name: &str, row: &Row| {
        let mass: f64 = row.fractions.iter().zip(gas.species()).map(|(x, s)| x * s.molar_mass).sum();
        match name {
            "h" | "e" => GAS * row.of("T") / mass,
            "s" => GAS / mass,
            _ => row.of(name).abs(),
        }
    };
    let column = |(number, &name): (usize, &&str)| {
        let mut all: Vec<f64> = rows
            .iter()
            .zip(values)
            .map(|(row, values)| ((values[number] - row.of(name)) / unit(name, row)).abs())
            .collect();
        assert!(all.iter().all(|error| error.is_finite()), "{name}");
        all.sort_by(f64::total_cmp);
        (name.to_owned(), all[all.len() - 1], all[all.len() / 2])
    };
    names.iter().enumerate().map(column).collect()
}

fn properties<'g>(state: &State<'_, 'g>) -> Vec<Expr<'g>> {
    vec![
        state.density(),
        state.enthalpy(),
        state.internal_energy(),
        state.entropy(),
        state.heat_capacity_at_pressure(),
        state.heat_capacity_at_volume(),
        state.speed_of_sound(),
        state.viscosity(),
        state.conductivity(),
    ]
}

/// Returns the composition of mole fractions, whose fields follow five others.
fn composition<'m, 'g>(
    gas: &'m Mixture,
    graph: &'g Graph,
    sums: Sums,
    x: &[Expr<'g>],
) -> Composition<'m, 'g> {
    let components = || graph.components(Tap { field: 5, offset: [0; 3] }, x.len());
    match sums {
        Sums::Terms => gas.mole_fractions(|i| x[i]),
        Sums::Loops => gas.mole_fractions_in(components()).unwrap(),
        Sums::Trees(lanes) => gas.mole_fractions_in_lanes(lanes, components()).unwrap(),
    }
}

const SUMS: [Sums; 3] = [Sums::Terms, Sums::Loops, Sums::Trees(8)];

const NAMES: [&str; 9] = ["rho", "h", "e", "s", "cp", "cv", "c", "mu", "lambda"];

fn check(names: &[&str], rows: &[Row], values: &[Vec<f64>], gas: &Mixture) {
    for (name, worst, median) in errors(names, rows, values, gas) {
        println!("{name:>14}  worst {worst:.1e}  median {median:.1e}");
        assert!(worst < 1e-11 && median < 1e-14, "{name}: worst {worst:e}, median {median:e}");
    }
}

#[test]
fn all_properties_agree_with_34_digits() {
    let table = Table::builtin().unwrap();
    for text in STATES {
        let (species, rows) = read(text);
        for (pairs, sums) in [Pairs::Each, Pairs::Factored].into_iter().flat_map(|p| SUMS.map(|s| (p, s))) {
            let gas = Mixture::of(&table, &species).unwrap().pairs(pairs);
            let values = evaluate(&rows, species.len(), |graph, [t, p, ..], x| {
                properties(&composition(&gas, graph, sums, &x).at(t, p))
            });
            println!("{} species, {} rows, {pairs:?}, {sums:?}", species.len(), rows.len());
            check(&NAMES, &rows, &values, &gas);
        }
    }
}

#[test]
fn variants_of_chung_agree() {
    let table = Table::builtin().unwrap();
    for text in STATES {
        let (species, rows) = read(text);
        let variants = [("cantera32", false, "ctspec"), ("1988", false, "88"), ("poling", true, "kappa")];
        // Methane does not associate: its table has no values for that.
        for (name, association, column) in
            variants.into_iter().filter(|(.., c)| rows[0].has(&format!("mu_{c}")))
        {
            let gas = Mixture::of(&table, &species).unwrap();
            let gas = gas.chung(name.parse::<Chung>().unwrap()).association(association);
            let values = evaluate(&rows, species.len(), |_, [t, p, ..], x| {
                let state = gas.mole_fractions(|i| x[i]).at(t, p);
                vec![state.viscosity(), state.conductivity()]
            });
            let names = ["mu", "lambda"].map(|name| format!("{name}_{column}"));
            check(&names.each_ref().map(String::as_str), &rows, &values, &gas);
        }
    }
}

/// Temperatures come back from energies and enthalpies, densities from pressures, whatever the guess.
#[test]
fn inverses_recover_the_state() {
    let table = Table::builtin().unwrap();
    for text in STATES {
        let (species, rows) = read(text);
        // At the middle temperature the polynomials jump: there is an energy, but no slope to follow.
        let rows: Vec<Row> = rows.into_iter().filter(|row| row.of("T") != 1000.0).collect();
        let gas = Mixture::of(&table, &species).unwrap();
        for sums in SUMS {
            let values = evaluate(&rows, species.len(), |graph, [t, p, rho, e, h], x| {
                let x = composition(&gas, graph, sums, &x);
                let steps = abide_gas::NEWTON_STEPS;
                let guesses = [graph.constant(300.0), graph.constant(1500.0), t * 0.8, t * 1.05];
                let energies = guesses.map(|guess| x.temperature_of_energy(rho, e, guess, steps));
                let near = x.temperature_of_energy(rho, e, t * 1.05, 4);
                let enthalpies =
                    [0.95, 1.05].map(|factor| x.temperature_of_enthalpy(h, p, t * factor, steps));
                let back = x.at_density(t, x.at(t, p).density());
                let without = [x.at_energy(rho, e), x.at_enthalpy(h, p)].map(|state| state.temperature());
                let all = energies.into_iter().chain([near]).chain(enthalpies).chain(without);
                all.map(|found| found / t - 1.0).chain([back.pressure() / p - 1.0]).collect()
            });
            for number in 0..values[0].len() {
                let worst = values.iter().map(|row| row[number].abs()).fold(0.0, f64::max);
                println!("inverse {number}, {sums:?}: {worst:.1e}");
                assert!(worst < 1e-11, "inverse {number}: {worst:e}");
            }
        }
    }
}
