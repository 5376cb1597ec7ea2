//! The model files of the documentation are read, and do what it says.

use abide::prelude::*;
use abide::text;

const PAGES: [&str; 3] = [
    include_str!("../docs/models/README.md"),
    include_str!("../docs/models/formulas.md"),
    include_str!("../docs/models/loops.md"),
];

/// Returns the model files of the pages, in order.
fn files() -> Vec<&'static str> {
    let blocks = PAGES.iter().flat_map(|page| page.split("```toml\n").skip(1));
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn every_file_of_the_pages_runs() {
    let files = files();
    assert_eq!(files.len(), 7);
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
