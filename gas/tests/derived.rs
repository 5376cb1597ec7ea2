//! Derivatives, partial quantities and diffusivities against 34-digit values of the definitions (`data/derived.py`).

use crate::tables::{Row, read};

use abide_core::DType;
use abide_core::expr::{Graph, Node, Tap};
use abide_gas::{GAS_CONSTANT, Interactions, Mixture, Property, Sums, Table};

const DERIVED: &str = include_str!("data/derived.csv");

fn interactions(table: &Table) -> Interactions {
    let pairs = DERIVED.lines().filter_map(|line| line.strip_prefix("# kij ")).map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[0].to_owned(), words[1].to_owned(), words[2].parse::<f64>().unwrap())
    });
    Interactions::new(table, pairs).unwrap()
}

/// Returns the value of each column of some properties at rows of T, p and mole fractions.
fn evaluate(gas: &Mixture, properties: &[Property], rows: &[Row], sums: Sums) -> Vec<Vec<f64>> {
    let graph = Graph::new();
    let tap = |field: usize| graph.add(Node::Tap(Tap { field: field as u16, offset: [0; 3] }));
    let components = graph.components(Tap { field: 2, offset: [0; 3] }, gas.len());
    let composition = match sums {
        Sums::Terms => gas.mole_fractions(|i| tap(2 + i)),
        _ => gas.mole_fractions_in(components).unwrap(),
    };
    let state = composition.at(tap(0), tap(1));
    let outputs: Vec<_> = properties.iter().flat_map(|property| property.values(&state)).collect();
    assert_eq!(graph.fault(), None);
    let dag = graph.dag(&outputs).simplified(DType::F64);
    let mut values = Vec::new();
    let at = |row: &Row| {
        dag.evaluate::<f64>(&mut values, &[], [0; 3], |tap| match usize::from(tap.field) {
            0 => row.of("T"),
            1 => row.of("p"),
            field => row.fractions[field - 2],
        });
        dag.outputs.iter().map(|&id| values[id as usize]).collect()
    };
    rows.iter().map(at).collect()
}

#[test]
fn derivatives_and_diffusivities_agree_with_34_digits() {
    let table = Table::builtin().unwrap();
    let (species, rows) = read(DERIVED);
    let gas = Mixture::of(&table, &species).unwrap().interactions(&interactions(&table));
    let names = ["rho", "cp", "rho_T", "rho_p", "h_p", "h_Y", "v_Y", "D", "Dij"];
    let properties = Property::named(&names).unwrap();
    let columns: Vec<String> = properties.iter().flat_map(|property| property.columns(&gas)).collect();
    assert_eq!(columns.len(), 5 + 3 * species.len() + species.len() * (species.len() - 1) / 2);
    for sums in [Sums::Terms, Sums::Loops] {
        let values = evaluate(&gas, &properties, &rows, sums);
        for (number, name) in columns.iter().enumerate() {
            let scale = |row: &Row| match name.strip_prefix("h_Y_") {
                // Enthalpies have no zero of their own: in R T of the species.
                Some(one) => GAS_CONSTANT * row.of("T") / table.find(one).unwrap().molar_mass,
                // Where it changes its sign, against 1/ρ.
                None if name == "h_p" => 1.0 / row.of("rho"),
                None => row.of(name).abs(),
            };
            let error = |(row, own): (&Row, &Vec<f64>)| ((own[number] - row.of(name)) / scale(row)).abs();
            let mut errors: Vec<f64> = rows.iter().zip(&values).map(error).collect();
            errors.sort_by(f64::total_cmp);
            let (worst, median) = (errors[errors.len() - 1], errors[errors.len() / 2]);
            println!("{name:>14} {sums:?}: worst {worst:.1e}, median {median:.1e}");
            assert!(worst < 1e-11 && median < 1e-13, "{name}, {sums:?}: {worst:e}, {median:e}");
        }
    }
}

/// The sums of Y_i times partial quantities are those of the mixture, with the fractions of all 53 species.
#[test]
fn partial_quantities_make_up_the_whole() {
    let table = Table::builtin().unwrap();
    let names: Vec<&str> = table.species().iter().map(|species| &*species.name).collect();
    let gas = Mixture::of(&table, &names).unwrap();
    let properties = Property::named(&["M", "rho", "h", "v_Y", "h_Y", "D"]).unwrap();
    let header = names.iter().map(|name| format!("x_{name}")).collect::<Vec<_>>().join(",");
    let x = vec![(1.0 / 53.0).to_string(); 53].join(",");
    let (_, rows) = read(&format!("T,p,{header}\n900,4e6,{x}\n"));
    for sums in [Sums::Terms, Sums::Loops] {
        let own = &evaluate(&gas, &properties, &rows, sums)[0];
        let (whole, parts) = own.split_at(3);
        let sum = |first: usize| -> f64 {
            let weighted =
                |(i, value): (usize, &f64)| value * table.species()[i].molar_mass / 53.0 / whole[0];
            parts[first..first + 53].iter().enumerate().map(weighted).sum()
        };
        assert!((sum(0) * whole[1] - 1.0).abs() < 1e-13);
        assert!((sum(53) / whole[2] - 1.0).abs() < 1e-12);
        assert!(parts[106..].iter().all(|d| (1e-7..1e-4).contains(d)), "{parts:?}");
    }
}

/// A pure gas has the diffusivities of traces in it, and a gas of one species its own: nitrogen at 0 °C and 1 atm
/// 1.78e-5 m²/s (Winn, Phys. Rev. 80 (1950) 1024: 1.78 to 1.85), oxygen in it 1.81e-5 (Poling, table 11-2).
#[test]
fn pure_gases_have_diffusivities() {
    let table = Table::builtin().unwrap();
    let properties = Property::named(&["D"]).unwrap();
    let nitrogen = Mixture::of(&table, &["N2"]).unwrap();
    let (_, rows) = read("T,p,x_N2\n273.15,101325,1\n");
    let own = &evaluate(&nitrogen, &properties, &rows, Sums::Terms)[0];
    assert!((own[0] / 1.78e-5 - 1.0).abs() < 0.05, "{own:?}");
    let air = Mixture::of(&table, &["N2", "O2"]).unwrap();
    let (_, rows) = read("T,p,x_N2,x_O2\n273.15,101325,1,0\n");
    for sums in [Sums::Terms, Sums::Loops] {
        let both = &evaluate(&air, &properties, &rows, sums)[0];
        assert!((both[1] / 1.81e-5 - 1.0).abs() < 0.05, "{both:?}");
        assert!(both[0].is_finite() && both[0] > 0.0);
    }
}
