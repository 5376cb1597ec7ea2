//! A model of the catalogue, from its own start, and a picture of it.
//!
//! `cargo run --release --example built_in`

use abide::io;
use abide::prelude::*;

fn main() -> Result<()> {
    let mut spots = Simulation::builder("gray-scott")
        .size(&[128, 128])
        .param("feed", 0.034)
        .param("kill", 0.0618)
        .build()?;
    let report = spots.run(2000)?;
    println!("{} on {}: {:.2} GCells/s", report.backend, report.device, report.gcells_per_s);
    println!("plan: {}", report.plan.summary());
    for note in &report.notes {
        println!("note: {note}");
    }

    let v = spots.field("v")?;
    let picture = std::env::temp_dir().join("abide-spots.png");
    io::write(&picture, &spots.problem().shape, &[("v", &v)], spots.step(), None)?.commit()?;
    println!("wrote {}", picture.display());
    Ok(())
}
