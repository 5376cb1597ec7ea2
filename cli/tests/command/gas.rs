//! `abide gas`.

use super::{Place, json};

/// The tables of 34-digit values beside the tests of the formulas.
const STATES: [&str; 2] = [
    include_str!("../../../gas/tests/data/states_CH4.csv"),
    include_str!("../../../gas/tests/data/states_lox10_part.csv"),
];

const HEADER: &str = "T,p,rho,h,s,cp,cv,c,mu,lambda";

/// Returns the names and the numbers of a table without its comments; what is no number is NaN.
fn table(text: &str) -> (Vec<String>, Vec<Vec<f64>>) {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let names = lines.next().unwrap().split(',').map(str::to_owned).collect();
    let row = |line: &str| line.split(',').map(|cell| cell.parse().unwrap_or(f64::NAN)).collect();
    (names, lines.map(row).collect())
}

/// Every row stands in its place, with all digits that f64 has, and agrees with the table.
#[test]
fn tables_of_states_agree_with_34_digits() {
    for (text, options, suffix) in [
        (STATES[0], "", ""),
        (STATES[1], "", ""),
        (STATES[1], "--kappa", "_kappa"),
        (STATES[1], "--chung cantera32", "_ctspec"),
        (STATES[1], "--chung 1988", "_88"),
    ] {
        let place = Place::new();
        std::fs::write(place.path("s.csv"), text).unwrap();
        place.works(&format!("gas --states s.csv {options} --backend cpu --output o.csv"));
        let written = std::fs::read_to_string(place.path("o.csv")).unwrap();
        let ((known, rows), (names, values)) = (table(text), table(&written));
        assert_eq!(names.join(","), HEADER);
        assert_eq!(values.len(), rows.len());
        let column = |name: &str| known.iter().position(|known| known == name).unwrap();
        for (row, values) in rows.iter().zip(&values) {
            assert_eq!(values[..2], [row[column("T")], row[column("p")]]);
            for (name, value) in names.iter().zip(values).skip(2) {
                let is_transport = name == "mu" || name == "lambda";
                let exact = row[column(&format!("{name}{}", if is_transport { suffix } else { "" }))];
                // Enthalpies and entropies pass through 0; R T and R are 1e2 K times 1e2 J/(kg K) at least.
                let unit = match name.as_str() {
                    "h" => exact.abs().max(1e4),
                    "s" => exact.abs().max(1e2),
                    _ => exact.abs(),
                };
                assert!(((value - exact) / unit).abs() < 1e-11, "{name}: {value:e}, not {exact:e}");
            }
        }
        assert!(
            written.lines().nth(1).unwrap().split(',').all(|cell| cell.trim_start_matches('-').len() >= 18)
        );
    }
}

/// Rows of a million go through in batches; here of few more than a batch's.
#[test]
fn a_row_has_its_bits_wherever_it_stands() {
    let place = Place::new();
    let row =
        |number: usize| format!("{},{},0.25,x,0.75\n", 300 + number % 700, 1e5 + 1e3 * (number % 97) as f64);
    let count = (1 << 18) + 5;
    let text: String = (0..count).map(row).collect();
    std::fs::write(place.path("s.csv"), "T,p,x_CH4,word,x_O2\n".to_owned() + &text).unwrap();
    let report = json(&place.works("gas --states s.csv --backend cpu --output o.csv --json"));
    assert_eq!(report["rows"], count);
    let written = std::fs::read_to_string(place.path("o.csv")).unwrap();
    let lines: Vec<&str> = written.lines().skip(1).collect();
    assert_eq!(lines.len(), count);
    let period = 700 * 97;
    assert!((period..count).all(|number| lines[number] == lines[number - period]));
}

#[test]
fn notes_name_the_rows() {
    let place = Place::new();
    let notes = |text: &str, options: &str| {
        std::fs::write(place.path("s.csv"), text).unwrap();
        let line = format!("gas --states s.csv {options} --backend cpu --output o.csv --json");
        let report = json(&place.works(&line));
        report["notes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|note| note.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    // Nitrogen's polynomials begin at 300 K, which concerns no row without nitrogen.
    let below = notes("# one\nT,p,x_N2,x_O2\n250,1e5,.5,.5\n\n# two\n250,1e5,0,1\n3400,1e5,0,1\n", "");
    assert!(below.len() == 1 && below[0].ends_with("in 1 row"), "{below:?}");
    let three = notes("T,p,x_CH4\n300,1e6,1\n170,1.9e6,1\n", "");
    assert!(
        three.iter().any(|note| note.contains("three molar volumes") && note.ends_with("in row 2")),
        "{three:?}"
    );
    let water = "T,p,x_H2O\n700,1e5,1\n400,1e7,1\n300,1e7,1\n";
    let negative = notes(water, "");
    assert!(negative.iter().any(|note| note.contains("mu is not positive in 2 rows: 2-3")), "{negative:?}");
    assert!(notes(water, "--kappa").iter().all(|note| !note.contains("mu")));
}

#[test]
fn faulty_states_are_refused_by_row() {
    let place = Place::new();
    let refused = |text: &str, reasons: &[&str]| {
        std::fs::write(place.path("s.csv"), text).unwrap();
        place.fails("gas --states s.csv --backend cpu --output o.csv", reasons);
    };
    let states = |row: &str| format!("# a comment\nT,p,x_CH4,x_O2\n300,1e5,0.5,0.5\n{row}\n");
    refused(&states("300,1e5,0.5,0.500000002"), &["row 2", "line 4", "sum to 1.000000002"]);
    refused(&states("300,1e5,1.5,-0.5"), &["row 2", "O2", "-0.5"]);
    refused(&states("0,1e5,0.5,0.5"), &["T of row 2"]);
    refused(&states("300,-1,0.5,0.5"), &["p of row 2"]);
    refused(&states("3501,1e5,0.5,0.5"), &["row 2", "3500 K", "CH4"]);
    refused(&states("300,1e5,0.5,many"), &["x_O2 of row 2", "many"]);
    refused(&states("300,1e5,0.5"), &["s.csv", "line: 4"]);
    refused(&states("nan,1e5,0.5,0.5"), &["T of row 2"]);
    refused("T,p,x_XE\n300,1e5,1\n", &["XE", "CH4"]);
    refused("T,x_CH4\n300,1\n", &["no columns T and p"]);
    refused("T,p,p,x_CH4\n300,1,1,1\n", &["two columns p"]);
    refused("T,p,CH4\n300,1e5,1\n", &["x_NAME"]);
    place.fails("gas --states none.csv --output o.csv", &["none.csv"]);
    place.fails("gas --states s.csv --output s.csv", &["s.csv"]);
}

#[test]
fn species_and_interactions_come_from_files() {
    let place = Place::new();
    std::fs::write(place.path("s.csv"), "T,p,x_CH4,x_N2\n200,5e6,0.5,0.5\n").unwrap();
    let density = |options: &str| {
        place.works(&format!("gas --states s.csv {options} --backend cpu --output o.csv"));
        table(&std::fs::read_to_string(place.path("o.csv")).unwrap()).1[0][2]
    };
    let own = density("");
    std::fs::write(place.path("k.csv"), "# of others\ni,j,kij\nCH4,N2,0.0289\nCO2,H2O,0.0952\n").unwrap();
    let interacting = density("--kij k.csv");
    assert!(own > interacting && interacting > 0.9 * own, "{own} {interacting}");
    std::fs::write(place.path("k.csv"), "i,j,kij\nCO2,H2O,0.0952\n").unwrap();
    assert_eq!(density("--kij k.csv"), own);
    std::fs::write(place.path("k.csv"), "i,j,kij\nCH4,XE,0.1\n").unwrap();
    place.fails("gas --states s.csv --kij k.csv --output p.csv", &["`XE`"]);

    let builtin = include_str!("../../../gas/data/species.csv");
    std::fs::write(place.path("t.csv"), builtin).unwrap();
    assert_eq!(density("--species t.csv"), own);
    let bare = builtin.replace("CH4,16.043,190.7,4630000.0,0.0989,0.011,", "CH4,16.043,,,,,");
    assert_ne!(bare, builtin);
    std::fs::write(place.path("t.csv"), bare).unwrap();
    place.fails("gas --states s.csv --species t.csv --output p.csv", &["CH4", "1.2593 eps/k", "--closure"]);
    assert!(density("--species t.csv --closure") != own);
}

#[test]
fn mixtures_are_told_and_drawn() {
    let place = Place::new();
    let text = place.works("gas --mixture CH4:0.3,O2:0.7 --T 150:1000:50 --p 5e6 --backend cpu");
    let line = text.lines().find(|line| line.trim_start().starts_with("300 ")).unwrap();
    let cells: Vec<f64> = line.split_whitespace().map(|cell| cell.parse().unwrap()).collect();
    assert_eq!((cells.len(), cells[1]), (10, 5e6));
    // An ideal gas would have 54.6 kg/m³.
    assert!((cells[2] - 57.627).abs() < 0.01, "{line}");
    assert_eq!(text.lines().take_while(|line| !line.is_empty()).count(), 19);

    place.works("gas --mixture N2 --T 300:400:20 --p 1e5:2e5:1e5 --backend cpu --output n.svg --csv n.csv");
    let (names, rows) = table(&std::fs::read_to_string(place.path("n.csv")).unwrap());
    assert_eq!((names.join(",").as_str(), rows.len()), (HEADER, 12));
    let svg = std::fs::read_to_string(place.path("n.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("viscosity") && svg.contains("200000 Pa"));

    // Mass fractions of 16.043 to 31.998.
    let of = |mixture: &str| {
        let report =
            json(&place.works(&format!("gas --mixture {mixture} --T 300 --p 1e6 --backend cpu --json")));
        report["values"][0][2].as_f64().unwrap()
    };
    let (mole, mass) = (of("CH4:0.5,O2:0.5"), of("CH4:0.3339439228991903,O2:0.6660560771008097 --mass"));
    assert!((mole / mass - 1.0).abs() < 1e-13, "{mole} {mass}");
    place.fails("gas --mixture CH4:0.25,O2:0.5 --T 300 --p 1e5", &["sum to 0.75"]);
    place.fails("gas --mixture CH4:1 --T 300 --p 1e5 --output a.png", &["a.png", ".svg"]);
    place.fails("gas --mixture CH4:1 --T 300", &["--p"]);
    place.fails("gas", &["--mixture"]);
}

/// States by other quantities come back to the table's, and have the properties of each species.
#[test]
fn states_are_given_by_other_quantities() {
    let place = Place::new();
    let (known, rows) = table(STATES[1]);
    let column = |name: &str| known.iter().position(|known| known == name).unwrap();
    let species: Vec<usize> = (0..known.len()).filter(|&at| known[at].starts_with("x_")).collect();
    // At 1000 K the polynomials jump: no slope leads there.
    let rows: Vec<&Vec<f64>> = rows.iter().filter(|row| row[column("T")] != 1000.0).collect();
    for pair in [["T", "rho"], ["h", "p"], ["rho", "e"]] {
        let names = pair.into_iter().map(str::to_owned).chain(species.iter().map(|&at| known[at].clone()));
        let mut text = names.collect::<Vec<_>>().join(",") + "\n";
        for row in &rows {
            let cells = pair.map(column).into_iter().chain(species.iter().copied());
            text += &(cells.map(|at| format!("{:e}", row[at])).collect::<Vec<_>>().join(",") + "\n");
        }
        std::fs::write(place.path("s.csv"), text).unwrap();
        place.works("gas --states s.csv --backend cpu --output o.csv");
        let (names, values) = table(&std::fs::read_to_string(place.path("o.csv")).unwrap());
        assert_eq!(names[..2], pair);
        assert_eq!(values.len(), rows.len());
        let own = |name: &str| names.iter().position(|own| own == name).unwrap();
        for (row, values) in rows.iter().zip(&values) {
            for name in ["T", "p", "rho", "cp"] {
                let (found, exact) = (values[own(name)], row[column(name)]);
                // A liquid's pressure has few of the digits of its density.
                let bound = if pair[1] == "p" { 1e-11 } else { 1e-9 };
                assert!((found / exact - 1.0).abs() < bound, "{pair:?}: {name} {found:e}, not {exact:e}");
            }
        }
    }
    let all = "--properties D,Dij,h_Y,rho_T";
    let line = format!("gas --mixture CH4:0.2,O2:0.8 --mass --T 300 --p 1e6 {all} --backend cpu --json");
    let report = json(&place.works(&line));
    let columns = ["T", "p", "D_CH4", "D_O2", "Dij_CH4_O2", "h_Y_CH4", "h_Y_O2", "rho_T"];
    assert_eq!(report["columns"], serde_json::json!(columns));
    // Of two species each diffuses as the pair does, times (1 - Y) over the other's mole fraction.
    let values: Vec<f64> =
        report["values"][0].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    let [methane, oxygen] = [0.2 / 16.043, 0.8 / 31.998];
    let diffusivity = values[4] * 0.8 * (methane + oxygen) / oxygen;
    assert!((values[2] / diffusivity - 1.0).abs() < 1e-12, "{values:?}");
    place.fails("gas --mixture CH4 --T 300 --p 1e5 --properties T", &["T and p give the states"]);
    place.fails("gas --mixture CH4 --T 300 --p 1e5 --properties rh", &["`rh`", "rho"]);
    place.fails("gas --mixture CH4 --T 300 --rho 1 --p 2", &["--T, --p, --rho", "--h and --p"]);
    assert!(place.works("gas --properties help").contains("diffusivity of each species"));
    std::fs::write(place.path("s.csv"), "rho,e,x_CH4,Y_O2\n1,1e5,0.5,0.5\n").unwrap();
    place.fails("gas --states s.csv --output o.csv", &["both columns x_NAME and columns Y_NAME"]);
}
