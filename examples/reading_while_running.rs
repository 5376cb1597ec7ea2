//! Reading and steering a run in progress: epochs, a stop when nothing moves any more, a checkpoint.
//!
//! `cargo run --release --example reading_while_running`

use std::ops::ControlFlow;

use abide::prelude::*;

fn main() -> Result<()> {
    let mut rod = Simulation::builder("heat")
        .size(&[64])
        .dtype(DType::F64)
        .boundaries(Boundaries::parse("x-=constant=1,x+=constant=0", Boundary::Fixed)?)
        .start("u", Start::Constant(0.0))
        .build()?;

    // Epochs last about as long as `pace.epoch`, and end at every multiple of `pace.every` steps.
    let pace = Pace { every: Some(500), ..Pace::default() };
    let mut before = rod.field("u")?.to_f64();
    let report = rod.run_with(100_000, pace, |running| {
        if !running.step().is_multiple_of(500) {
            return Ok(ControlFlow::Continue(()));
        }
        let now = running.field("u")?.to_f64();
        let change = now.iter().zip(&before).map(|(now, before)| (now - before).abs()).fold(0.0, f64::max);
        println!("step {:>6}: middle {:.4}, changed by {change:.1e}", running.step(), now[32]);
        before = now;
        if running.step() == 2000 {
            println!("from here on with a better conductor");
            running.set_parameter("kappa", 0.4)?;
        }
        Ok(if change < 1e-5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    println!("steady after {} of {} steps", report.steps, report.steps_asked);

    let file = std::env::temp_dir().join("abide-rod.npz");
    rod.checkpoint(&file)?;
    let resumed = Simulation::resume(&file)?;
    println!(
        "{} goes on from step {}, kappa = {}",
        file.display(),
        resumed.step(),
        resumed.problem().parameters[0]
    );
    Ok(())
}
