//! Planning for a device that need not be present, comparing the rates that it allows, and running as planned
//! where possible.
//!
//! `cargo run --release --example choosing_a_plan`

use abide::catalogue;
use abide::plan::plan;
use abide::prelude::*;

fn main() -> Result<()> {
    let problem = Simulation::builder("2d5pt").size(&[4608, 4608]).problem()?;
    for device in ["v100", "a100", "h200"] {
        let device = DeviceSpec::preset(device)?;
        for &cache in CachePolicy::ALL {
            let options = Options { execution: Execution::Persistent, cache, ..Options::default() };
            let plan = plan(&problem, &device, &options)?;
            let share = 100.0 * plan.cached_share();
            let rate = plan.project(1000).gcells_per_s;
            println!(
                "{:<5} {cache:<10} {share:>5.1} % on the chip, {rate:>5.0} GCells/s at most",
                device.name
            );
        }
    }

    println!("\n{}", plan(&problem, &DeviceSpec::preset("a100")?, &Options::default())?.explain());

    // The best backend that is present, and how it runs the problem.
    let program = catalogue::find("2d5pt")?.program(2)?;
    let mut here = Simulation::builder(program).size(&[509, 1021]).execution(Execution::Auto).build()?;
    let report = here.run(50)?;
    println!("here: {} on {}, {}", report.backend, report.device, report.plan.summary());
    Ok(())
}
