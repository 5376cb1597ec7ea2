//! Compiles plans of given configurations, and times them where there is a device.
//!
//! `plans STENCIL SIZE DTYPE CONFIGURATION…`. A configuration of a streaming kernel is
//! `depth,warps,rows,columns,lag,ahead,shared,blocks,waves`, one of a kernel that keeps the whole domain on the chip
//! `depth,warps,planes,registers,rows,columns,blocks,tagged`, as in `plans 2d5pt 8352x8352 f64 8,1,1,4,0,5,0,8,2` and
//! `plans 2d5pt 1024x1024 f64 8,15,6,6,1,4,1,1`. Without configurations, those are taken that the planner finds
//! best; `EXECUTION` names their execution. `BOUNDARY` names another boundary than the stencil's own, `MANY` the
//! number of the planner's configurations, no two of one form where `FORMS` is set; with `QUICK` nothing is
//! compared, and with `TEXT` the text of the first kernel is written to that file. Plans that spill more than `SPILLS`
//! bytes (default 0) are reported and not timed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::plan::resident::Exchange;
use abide_core::plan::streaming::warp;
use abide_core::plan::{Execution, Options, Schedule, resident};
use abide_core::{
    Array, Backend, Boundaries, DeviceSpec, Error, Plan, Problem, Result, Shape, Start, catalogue,
};
use abide_cuda::{CudaBackend, Nvrtc, report_as_planned, target};
use abide_planner::{resident_plans, streaming_plans};

/// Returns the plan of a configuration; `None` if it does not fit.
fn configured(problem: &Problem, device: &DeviceSpec, text: &str) -> Result<Option<Plan>> {
    let numbers: Vec<usize> = text.split(',').filter_map(|n| n.parse().ok()).collect();
    match numbers[..] {
        [depth, warps, rows, columns, lag, ahead, shared, blocks, waves] => {
            let configuration = warp::Configuration {
                depth,
                warps,
                cells_per_thread: [rows, columns],
                lag: lag > 0,
                ahead,
                carried_shared: shared,
                blocks_per_multiprocessor: blocks,
                waves,
            };
            Ok(abide_planner::streaming::warp::plan_configuration(problem, device, &configuration))
        }
        [depth, warps, planes, planes_registers, rows, columns, blocks, tagged] => {
            let configuration = resident::Configuration {
                depth,
                warps,
                planes,
                planes_registers,
                cells_per_thread: [rows, columns],
                blocks_per_multiprocessor: blocks,
                exchange: if tagged > 0 { Exchange::Tagged } else { Exchange::Counted },
            };
            Ok(abide_planner::resident::plan_configuration(problem, device, &configuration))
        }
        _ => Err(Error::invalid(
            format!("configuration `{text}`"),
            "it has neither nine numbers nor eight",
            "see the example's head",
        )),
    }
}

/// Returns a plan's configuration, as it is given, and the bytes of a block's shared memory.
fn words(plan: &Plan) -> (String, usize) {
    let (numbers, shared) = match &plan.schedule {
        Schedule::WarpStreaming(s) => {
            let [rows, columns] = s.cells_per_thread;
            let (lag, blocks) = (usize::from(s.lag), s.blocks_per_multiprocessor);
            (
                vec![s.depth, s.warps, rows, columns, lag, s.ahead, s.carried_shared, blocks, s.waves],
                s.shared_bytes,
            )
        }
        Schedule::Resident(r) => {
            let [rows, columns] = r.cells_per_thread;
            let numbers = vec![
                r.depth,
                r.warps,
                r.planes,
                r.planes_registers,
                rows,
                columns,
                r.blocks_per_multiprocessor,
                usize::from(r.exchange == Exchange::Tagged),
            ];
            (numbers, r.shared_bytes)
        }
        _ => (Vec::new(), 0),
    };
    (numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(","), shared)
}

/// Returns the best plans of an execution, or all of one form but the best left out.
fn best(problem: &Problem, device: &DeviceSpec) -> Result<Vec<Plan>> {
    let many = std::env::var("MANY").ok().and_then(|n| n.parse().ok()).unwrap_or(16);
    let execution = std::env::var("EXECUTION").map_or(Ok(Execution::Streaming), |text| text.parse())?;
    let options = Options { execution, ..Options::default() };
    let mut plans = match execution {
        Execution::Persistent => resident_plans(problem, device, &options)?,
        _ => streaming_plans(problem, device, &options)?,
    };
    if std::env::var_os("FORMS").is_some() {
        let mut seen = Vec::new();
        plans.retain(|plan| {
            let form = match &plan.schedule {
                Schedule::WarpStreaming(s) => (s.depth, s.warps, s.cells_per_thread),
                // Counted and tagged are two forms.
                Schedule::Resident(r) => {
                    (r.depth, 2 * r.warps + usize::from(r.exchange == Exchange::Tagged), r.cells_per_thread)
                }
                _ => return true,
            };
            let fresh = !seen.contains(&form);
            seen.push(form);
            fresh
        });
    }
    plans.truncate(many);
    Ok(plans)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stencil, size, dtype, configurations @ ..] = arguments.as_slice() else {
        println!("usage: plans STENCIL SIZE DTYPE CONFIGURATION…");
        return Ok(());
    };
    let shape: Shape = size.parse()?;
    let program = catalogue::find(stencil)?.program(shape.dimensions())?;
    let mut problem = Problem::new(Arc::new(program), shape, dtype.parse()?)?;
    if let Ok(text) = std::env::var("BOUNDARY") {
        problem.boundaries = Boundaries::all(text.parse()?);
    }
    let backend = CudaBackend::new();
    let device = match &backend {
        Ok(backend) => backend.device().clone(),
        Err(_) => DeviceSpec::preset("h200")?,
    };
    let mut plans: Vec<Plan> = Vec::new();
    for text in configurations {
        match configured(&problem, &device, text)? {
            Some(plan) => plans.push(plan),
            None => println!("{text}: does not fit"),
        }
    }
    if configurations.is_empty() {
        plans = best(&problem, &device)?;
    }
    if let (Some(file), Some(plan)) = (std::env::var_os("TEXT"), plans.first()) {
        std::fs::write(&file, abide_shaders::cuda::kernel(&problem, plan)?)
            .map_err(|e| Error::invalid("TEXT", e.to_string(), "name a file"))?;
    }
    let next = AtomicUsize::new(0);
    let spilled = Mutex::new(vec![0; plans.len()]);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(plan) = plans.get(number) else { break };
                    // Compiled into the cache, from which the session below opens them.
                    let compiled = report_as_planned(&problem, plan, &target(&device));
                    let spills = compiled.iter().flatten().map(|c| c.spill_bytes).max().unwrap_or(0);
                    spilled.lock().unwrap_or_else(PoisonError::into_inner)[number] = spills;
                    if backend.is_err() {
                        let said = match compiled {
                            Ok(report) => format!("{report:?}"),
                            Err(error) => error.to_string().chars().take(400).collect(),
                        };
                        let predicted = shape.cells() as f64 / plan.estimated_seconds / 1e9;
                        println!("{predicted:8.1} {} {said}", words(plan).0);
                    }
                }
            });
        }
    });
    let Ok(backend) = backend else {
        println!("no device: compiled with {:?}", Nvrtc::open()?.version());
        return Ok(());
    };
    let start = Start::Random { seed: 1, low: 0.0, high: 1.0 };
    let fields: Vec<Array> =
        problem.program.fields().iter().map(|_| start.fill(&shape, problem.dtype)).collect::<Result<_>>()?;
    // Unless QUICK is set, the result of some steps is compared and the rate is a median.
    let quick = std::env::var_os("QUICK").is_some();
    let run = |plan: &Plan, steps: u64, repeats: usize| -> Result<(f64, Vec<Array>, Plan)> {
        let mut session = backend.open(&problem, plan, fields.clone())?;
        session.advance(steps)?;
        let read = if quick { 0 } else { fields.len() };
        let after = (0..read).map(|f| session.read(f)).collect::<Result<_>>()?;
        let depth = u64::from(plan.depth);
        let most = if plan.resident().is_some() { 200_000 } else { 2000 };
        let many = ((5e10 / shape.cells() as f64) as u64).clamp(depth, most).next_multiple_of(depth);
        let mut seconds: Vec<f64> = (0..repeats).map(|_| session.advance(many)).collect::<Result<_>>()?;
        seconds.sort_by(f64::total_cmp);
        let rate = (shape.cells() as u64 * many) as f64 / seconds[repeats / 2] / 1e9;
        Ok((rate, after, session.plan().clone()))
    };
    let stepwise =
        backend.plan(&problem, &Options { execution: Execution::Stepwise, ..Options::default() })?;
    let steps = 29;
    let (rate, expected, _) = run(&stepwise, steps, 1)?;
    println!("{stencil} {size} {dtype}: stepwise {rate:.1} GCells/s");
    let spilled = spilled.into_inner().unwrap_or_else(PoisonError::into_inner);
    let most = std::env::var("SPILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    for (plan, spills) in plans.iter().zip(spilled) {
        if spills > most {
            println!("{} spills {spills}", words(plan).0);
            continue;
        }
        match run(plan, steps, if quick { 1 } else { 3 }) {
            Ok((rate, got, plan)) => {
                let same = got.iter().zip(&expected).all(|(a, b)| a.same_bits(b));
                let c = plan
                    .compiled
                    .iter()
                    .map(|c| format!("{} registers {} spilled", c.registers, c.spill_bytes));
                println!(
                    "{rate:8.1} of {:8.1} {} {} {} shared {}",
                    shape.cells() as f64 / plan.estimated_seconds / 1e9,
                    if quick {
                        ""
                    } else if same {
                        "ok"
                    } else {
                        "WRONG BITS"
                    },
                    words(&plan).0,
                    words(&plan).1,
                    c.collect::<Vec<_>>().join(", "),
                );
            }
            Err(error) => println!("failed: {error}"),
        }
    }
    Ok(())
}
