//! Times the planner's candidates for a stencil on the device, in the order of the model's estimate.
//!
//! `candidates STENCIL SIZE DTYPE POLICY [HOW_MANY [CHUNKS_OF_HALO_AHEAD]]`, e.g. `candidates 2d5pt 2304x2304
//! f64 mixed 20`.

use std::sync::Arc;

use abide_core::plan::{Execution, Options, Schedule};
use abide_core::{Array, Backend, Problem, Result, Shape, Start, catalogue};
use abide_cuda::CudaBackend;
use abide_planner::persistent_plans;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stencil, size, dtype, policy, rest @ ..] = arguments.as_slice() else {
        println!("usage: candidates STENCIL SIZE DTYPE POLICY [HOW_MANY]");
        return Ok(());
    };
    let count = rest.first().and_then(|n| n.parse().ok()).unwrap_or(10);
    let shape: Shape = size.parse()?;
    let program = catalogue::find(stencil)?.program(shape.dimensions())?;
    let problem = Problem::new(Arc::new(program), shape, dtype.parse()?)?;
    let backend = CudaBackend::new()?;
    let options = Options { execution: Execution::Persistent, cache: policy.parse()?, ..Options::default() };
    let start = Start::Random { seed: 1, low: 0.0, high: 1.0 };
    let fields: Vec<Array> =
        problem.program.fields().iter().map(|_| start.fill(&shape, problem.dtype)).collect::<Result<_>>()?;
    let time = |plan: &abide_core::Plan| -> Result<(f64, String)> {
        let mut session = backend.open(&problem, plan, fields.clone())?;
        let steps = 1000;
        session.advance(steps)?;
        let mut seconds: Vec<f64> = (0..5).map(|_| session.advance(steps)).collect::<Result<_>>()?;
        seconds.sort_by(f64::total_cmp);
        let compiled = session.plan().compiled.first().map(|c| (c.registers, c.spill_bytes));
        let threads = session
            .plan()
            .persistent()
            .map(|s| (s.threads, s.cells_per_thread, s.tiles, s.chunk, s.blocks_per_multiprocessor));
        Ok((
            (shape.cells() as u64 * steps) as f64 / seconds[2] / 1e9,
            format!("{} {compiled:?} {threads:?}", session.plan().summary()),
        ))
    };
    let stepwise =
        backend.plan(&problem, &Options { execution: Execution::Stepwise, ..Options::default() })?;
    match time(&stepwise) {
        Ok((rate, words)) => println!("{rate:8.1} GCells/s  {words}"),
        Err(error) => println!("failed: {error}"),
    }
    let ahead: Option<usize> = rest.get(1).and_then(|n| n.parse().ok());
    for mut plan in persistent_plans(&problem, backend.device(), &options)?.into_iter().take(count) {
        if let (Schedule::Persistent(persistent), Some(ahead)) = (&mut plan.schedule, ahead) {
            persistent.halo_ahead = ahead;
        }
        match time(&plan) {
            Ok((rate, words)) => println!("{rate:8.1} GCells/s  {words}"),
            Err(error) => println!("failed: {error}"),
        }
    }
    Ok(())
}
