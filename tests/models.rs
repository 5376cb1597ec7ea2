//! The model files of the documentation are read, and do what it says.

use abide::prelude::*;
use abide::text;

const PAGES: [&str; 4] = [
    include_str!("../docs/models/README.md"),
    include_str!("../docs/models/formulas.md"),
    include_str!("../docs/models/loops.md"),
    include_str!("../docs/gas/flows.md"),
];

/// Returns the model files of the pages, in order.
fn files() -> Vec<&'static str> {
    let blocks = PAGES.iter().flat_map(|page| page.split("```toml\n").skip(1));
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn every_file_of_the_pages_runs() {
    let files = files();
    assert_eq!(files.len(), 8);
    for file in files {
        let model = text::read(file, "page.toml").unwrap();
        let size: &[usize] = if model.program.dimensions() == 1 { &[99] } else { &[70, 99] };
        let mut simulation = Simulation::builder(model).size(size).backend(Choice::CPU).build().unwrap();
        assert_eq!(simulation.run(20).unwrap().steps, 20);
        assert_eq!(simulation.non_finite().unwrap(), 0);
    }
}

/// The pages' model of heat finds its step: half of 1 over the largest conductivity.
#[test]
fn the_step_is_found() {
    let model = text::read(files()[3], "heat.toml").unwrap();
    assert!(model.options.contains(&"--until=time >= 1000".to_owned()));
    let builder = Simulation::builder(model).size(&[400]).dtype(DType::F64).backend(Choice::CPU);
    let mut heat = builder.until("time >= 50").build().unwrap();
    assert_eq!(heat.run(1000).unwrap().steps, 100);
    assert_eq!(heat.scalar("dt").unwrap(), 0.5);
}

/// Flows are read with all their keys, written as models and read again, and faults have their line.
#[test]
fn flows_are_read_and_written() {
    let flow = |table: &str| format!("axes = 2\n[flow]\n{table}");
    for table in [
        "gas = \"N2\"",
        "gas = [\"CH4\", \"CO2\"]\nkij = [[\"CH4\", \"CO2\", 0.1]]\nchung = \"1988\"\nkappa = true\nclosure = true\norder = 6",
        "ideal = { gamma = 1.3, R = 300.0 }\nscheme = \"hllc\"\nviscous = true\ncourant = 0.3\nsides = { x = \"no-slip\" }",
        "gas = [\"N2\", \"O2\"]\nnewton = 3\nsides = { \"x-\" = \"slip\", \"x+\" = \"outflow\" }",
    ] {
        let model = text::read(&flow(table), "flow.toml").unwrap();
        let written = text::write(&model.program).unwrap();
        let again = text::read(&written, "again.toml").unwrap();
        assert_eq!(text::write(&again.program).unwrap(), written, "{table}");
        text::flow(&flow(table), "flow.toml").unwrap();
    }
    for (table, words) in [
        ("gas = [\"N2\", \"XE\"]", "line 3"),
        ("gas = \"N2\"\nscheme = \"kep\"", "line 4"),
        ("gas = \"N2\"\nordr = 4", "order"),
        ("gas = \"N2\"\norder = 5", "2, 4 or 6"),
        ("gas = \"N2\"\nideal = {}", "one gas"),
        ("scheme = \"keep\"", "one gas"),
        ("gas = \"N2\"\nsides = { z = \"slip\" }", "x-"),
        ("gas = \"N2\"\nsides = { x = \"wall\" }", "no-slip"),
        ("gas = \"N2\"\nsides = { \"x-\" = \"slip\" }", "one alone is periodic"),
        ("gas = \"N2\"\nstart = { T = 300 }", "no p"),
        ("gas = \"N2\"\nstart = { T = 300, p = 1e5, velocity = [1] }", "velocities"),
        ("gas = [\"N2\", \"O2\"]\nstart = { T = 300, p = 1e5, fractions = [0.5, 0.6] }", "sum to 1.1"),
        ("gas = \"N2\"\nstart = { T = 300, p = 1e5, corner = { T = 200, p = 1e5 } }", "parts"),
        ("gas = \"N2\"\nviscous = 1", "true or false"),
    ] {
        let error = text::read(&flow(table), "flow.toml").unwrap_err().to_string();
        assert!(error.contains("flow.toml") && error.contains(words), "{table}: {error}");
    }
    let both = "axes = 2\nbase = \"heat\"\n[flow]\ngas = \"N2\"\n";
    assert!(text::read(both, "both.toml").unwrap_err().to_string().contains("base"));
    // A flow takes stages beside its own.
    let more = flow("gas = \"N2\"") + "\n[scalars.mass]\n[[stages]]\nmass = \"sum(rho)\"\n";
    assert!(text::read(&more, "more.toml").unwrap().program.scalar("mass").is_ok());
    assert!(text::read("base = \"euler-real-gas\"", "own.toml").is_ok());
}
