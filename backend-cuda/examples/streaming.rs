//! Compiles streaming kernels of given configurations, and times them where there is a device.
//!
//! `streaming STENCIL SIZE DTYPE CONFIGURATION…`, a configuration as
//! `depth,warps,rows,columns,lag,ahead,shared,blocks,waves`, e.g. `streaming 2d5pt 8352x8352 f64
//! 8,1,1,4,0,5,0,8,2`. Without configurations, those are taken that the planner finds best. `BOUNDARY` names
//! another boundary than the stencil's own, `MANY` the number of the planner's configurations; with `QUICK`
//! nothing is compared.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use abide_core::plan::streaming::warp::{Configuration, plan_configuration};
use abide_core::plan::{Execution, Options, streaming_plans};
use abide_core::{
    Array, Backend, Boundaries, DeviceSpec, Error, Plan, Problem, Result, Shape, Start, catalogue,
};
use abide_cuda::{CudaBackend, Nvrtc, report_as_planned, target};

fn configuration(text: &str) -> Result<Configuration> {
    let numbers: Vec<usize> = text.split(',').filter_map(|n| n.parse().ok()).collect();
    let [depth, warps, rows, columns, lag, ahead, shared, blocks, waves] = numbers[..] else {
        return Err(Error::invalid(
            format!("configuration `{text}`"),
            "it has not nine numbers",
            "see the example's head",
        ));
    };
    Ok(Configuration {
        depth,
        warps,
        cells_per_thread: [rows, columns],
        lag: lag > 0,
        ahead,
        carried_shared: shared,
        blocks_per_multiprocessor: blocks,
        waves,
    })
}

fn words(f: &Configuration) -> String {
    let numbers = [
        f.depth,
        f.warps,
        f.cells_per_thread[0],
        f.cells_per_thread[1],
        usize::from(f.lag),
        f.ahead,
        f.carried_shared,
        f.blocks_per_multiprocessor,
        f.waves,
    ];
    numbers.map(|n| n.to_string()).join(",")
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stencil, size, dtype, configurations @ ..] = arguments.as_slice() else {
        println!("usage: streaming STENCIL SIZE DTYPE CONFIGURATION…");
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
        match plan_configuration(&problem, &device, &configuration(text)?) {
            Some(plan) => plans.push(plan),
            None => println!("{text}: does not fit"),
        }
    }
    if configurations.is_empty() {
        let options = Options { execution: Execution::Streaming, ..Options::default() };
        let many = std::env::var("MANY").ok().and_then(|n| n.parse().ok()).unwrap_or(16);
        plans = streaming_plans(&problem, &device, &options)?.into_iter().take(many).collect();
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
                        println!(
                            "{predicted:8.1} {} {said}",
                            plan.warp_streaming().map_or(String::new(), |s| words(&s.configuration()))
                        );
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
        let many = ((5e10 / shape.cells() as f64) as u64).clamp(depth, 2000).next_multiple_of(depth);
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
    for (plan, spills) in plans.iter().zip(spilled) {
        if spills > 0 {
            println!(
                "{} spills {spills}",
                plan.warp_streaming().map_or(String::new(), |s| words(&s.configuration()))
            );
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
                    plan.warp_streaming().map_or(String::new(), |s| words(&s.configuration())),
                    plan.warp_streaming().map_or(0, |s| s.shared_bytes),
                    c.collect::<Vec<_>>().join(", "),
                );
            }
            Err(error) => println!("failed: {error}"),
        }
    }
    Ok(())
}
