//! Times partitions of a program's stages side by side, kernel by kernel, and compares their bits with those of the
//! stages one by one.
//!
//! `groups PROGRAM SIZE STEPS PARTITION...`, where a partition is `off`, `greedy`, `search`, or groups between spaces:
//! `'19,20,21 43,44:8x16x32:256'`, stages with the tile and the threads of a block, or by themselves with the planner's.

use std::sync::Arc;
use std::time::Duration;

use abide_core::backend::{Timing, time_launches};
use abide_core::plan::fused::{Fused, Partition, fastest, fused};
use abide_core::plan::{Fuse, Options, Plan, Schedule};
use abide_core::program::{Boxes, Groups, outlasts};
use abide_core::{Array, Backend, DType, DeviceSpec, Error, Problem, Result, Shape, catalogue};
use abide_cuda::CudaBackend;

const USAGE: &str = "usage: groups PROGRAM SIZE STEPS PARTITION...";

fn unsupported(what: &str, why: impl Into<String>) -> Error {
    Error::unsupported(what.to_owned(), why.into(), USAGE)
}

/// Returns a group of stages as a kernel, as the words of a partition have it.
fn group(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, words: &str) -> Result<(Vec<usize>, Fused)> {
    let numbers = |words: &str, between: char| -> Result<Vec<usize>> {
        let parsed: std::result::Result<Vec<usize>, _> = words.split(between).map(str::parse).collect();
        parsed.map_err(|_| unsupported(words, "these are no numbers"))
    };
    let mut parts = words.split(':');
    let stages = numbers(parts.next().unwrap_or_default(), ',')?;
    let kernel = match (parts.next(), parts.next()) {
        (Some(tile), Some(threads)) => {
            let tile: [usize; 3] =
                numbers(tile, 'x')?.try_into().map_err(|_| unsupported(words, "a tile has three extents"))?;
            let threads = threads.parse().map_err(|_| unsupported(words, "these are no threads"))?;
            fused(problem, boxes, &stages, &outlasts(problem, boxes, &stages), tile, threads)
        }
        _ => fastest(problem, boxes, device, &stages).map(|(kernel, _)| kernel),
    };
    Ok((stages, kernel.map_err(|refusal| unsupported(words, refusal.0))?))
}

/// Returns the plan of a partition.
fn plan(problem: &Problem, backend: &CudaBackend, words: &str) -> Result<Plan> {
    let options = |fuse: Fuse| Options { fuse, ..Options::default() };
    match words {
        "off" => return backend.plan(problem, &options(Fuse::Off)),
        "greedy" => return backend.plan(problem, &options(Fuse::Greedy)),
        "search" => return backend.plan(problem, &options(Fuse::Search)),
        _ => {}
    }
    let mut plan = backend.plan(problem, &options(Fuse::Off))?;
    let boxes = Boxes::of(problem)?;
    let mut groups = Groups::needed(&problem.program, &boxes);
    let mut made = Vec::new();
    for words in words.split_whitespace() {
        let (stages, kernel) = group(problem, &boxes, backend.device(), words)?;
        for step in groups.steps.iter_mut() {
            // A group stands where its last stage ran.
            let last = step.iter().rposition(|own| stages.contains(&own[0]));
            if let Some(last) = last {
                step[last] = stages.clone();
                let mut place = 0;
                step.retain(|own| {
                    place += 1;
                    place - 1 == last || !stages.contains(&own[0])
                });
            }
        }
        made.push((stages, kernel));
    }
    groups.check(problem, &boxes)?;
    if let Schedule::Stepwise(tiles) = &mut plan.schedule {
        tiles.partition = Partition::of(groups, |stages| {
            made.iter().find(|(known, _)| known == stages).map(|(_, kernel)| kernel.clone())
        });
    }
    Ok(plan)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, size, steps, partitions @ ..] = arguments.as_slice() else {
        println!("{USAGE}");
        return Ok(());
    };
    let shape: Shape = size.parse()?;
    let steps: u64 = steps.parse().map_err(|_| unsupported(steps, "this is no number of steps"))?;
    let program = catalogue::find(program)?.program(shape.dimensions())?;
    let problem = Problem::new(Arc::new(program), shape, DType::F64)?;
    let backend = CudaBackend::new()?;
    let fields = || -> Result<Vec<Array>> {
        let start = |field| problem.program.start(field).fill(&problem.shape_of(field)?, problem.dtype);
        (0..problem.program.fields().len()).map(start).collect()
    };
    let seen = ["density0", "energy0", "pressure"];
    let seen: Vec<usize> = problem
        .program
        .fields()
        .iter()
        .enumerate()
        .filter(|(_, field)| seen.contains(&field.as_str()) || field.contains("vel0"))
        .map(|(number, _)| number)
        .collect();
    let mut first: Option<Vec<Array>> = None;
    for words in partitions {
        let run = || -> Result<()> {
            let plan = plan(&problem, &backend, words)?;
            let mut session = backend.open(&problem, &plan, fields()?)?;
            session.advance(steps)?;
            let mut seconds: Vec<f64> = (0..3).map(|_| session.advance(steps)).collect::<Result<_>>()?;
            seconds.sort_by(f64::total_cmp);
            let end: Vec<Array> = seen.iter().map(|&field| session.read(field)).collect::<Result<_>>()?;
            let same = first.get_or_insert_with(|| end.clone()) == &end;
            println!(
                "== {words}: {:.4} ms a step, bits {}",
                seconds[1] / steps as f64 * 1e3,
                if same { "equal" } else { "DIFFER" }
            );
            for compiled in session.plan().compiled.iter().filter(|own| own.kernel.starts_with("group")) {
                println!(
                    "   {} {} registers, {} bytes spilled",
                    compiled.kernel, compiled.registers, compiled.spill_bytes
                );
            }
            let timing = Timing {
                warm_up: Duration::from_millis(50),
                budget: Duration::from_millis(500),
                rounds: [5, 9],
            };
            let times = time_launches(&mut *session, problem.program.steps().len(), &timing)?;
            for time in times.iter().filter(|time| words.as_str() == "off" || time.stages.len() > 1) {
                println!("   {:?} {:.1} us", time.stages, time.seconds * 1e6);
            }
            Ok(())
        };
        let mut run = run;
        if let Err(error) = run() {
            println!("== {words}: {error}");
        }
    }
    Ok(())
}
