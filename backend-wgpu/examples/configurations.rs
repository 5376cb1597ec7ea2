//! Times kernels of several steps of given configurations, and holds their results to a launch per stage.
//!
//! `configurations STENCIL SIZE DTYPE CONFIGURATION…`. A configuration of windows is `windows:depth,threads
//! z,y,x,cells z,y,x,double`, as in `windows:6,1,8,32,1,16,4,1`; one of planes `planes:depth,threads
//! y,x,cells y,x,ahead,barriers,shares`, as in `planes:8,1,64,1,4,1,1,60` (in 2D y is 1). Without
//! configurations, the best of both by their estimates are taken. `BOUNDARY` names another boundary than the
//! stencil's own, `MANY` the number of each family (12); with `QUICK` nothing is compared.
//!
//! A line has the rate in GCells/s, the estimate, the largest difference from a launch per stage after 29
//! steps in units in the last place beside the promised bound, whether two cuts of a run have the same bits,
//! and the configuration.

use std::sync::Arc;

use abide_core::plan::{Execution, Recipe, overlapped, streaming};
use abide_core::{
    Array, Backend, Boundaries, Error, Options, Plan, Problem, Result, Shape, Start, catalogue,
};
use abide_planner::{overlapped_plans, plan_recipe, portable_streaming_plans};
use abide_wgpu::{WgpuBackend, ulp_bound_per_step_of};

/// Steps that are compared: no multiple of most depths.
const STEPS: u64 = 29;

fn recipe(text: &str) -> Result<Recipe> {
    let unknown = || {
        Error::invalid(
            format!("configuration `{text}`"),
            "it is none of windows or planes",
            "see the example's head",
        )
    };
    let (family, numbers) = text.split_once(':').ok_or_else(unknown)?;
    let numbers: Vec<usize> = numbers.split(',').filter_map(|n| n.parse().ok()).collect();
    match (family, &numbers[..]) {
        ("windows", &[depth, tz, ty, tx, cz, cy, cx, double]) => {
            let configuration = overlapped::Configuration {
                depth,
                threads: [tz, ty, tx],
                cells: [cz, cy, cx],
                double: double > 0,
            };
            Ok(Recipe::Overlapped { configuration })
        }
        ("planes", &[depth, ty, tx, cy, cx, ahead, barriers, shares]) => {
            let (threads, cells) = ([ty, tx], [cy, cx]);
            let handover = streaming::portable::Handover::ALL
                .into_iter()
                .find(|way| way.barriers() == barriers)
                .ok_or_else(unknown)?;
            Ok(Recipe::PortableStreaming {
                configuration: streaming::portable::Configuration {
                    depth,
                    threads,
                    cells,
                    ahead,
                    handover,
                    shares,
                },
            })
        }
        _ => Err(unknown()),
    }
}

fn words(plan: &Plan) -> String {
    let join = |family: &str, numbers: &[usize]| {
        format!("{family}:{}", numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
    };
    match Recipe::of(plan) {
        Some(Recipe::Overlapped { configuration: f }) => {
            join("windows", &[&[f.depth], &f.threads[..], &f.cells[..], &[usize::from(f.double)]].concat())
        }
        Some(Recipe::PortableStreaming { configuration: f }) => {
            let rest = [f.ahead, f.handover.barriers(), f.shares];
            join("planes", &[&[f.depth], &f.threads[..], &f.cells[..], &rest[..]].concat())
        }
        _ => plan.summary(),
    }
}

/// Returns the largest difference in units in the last place at the values' magnitude.
fn difference(a: &[Array], b: &[Array], magnitude: f64) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| a.scaled_ulp_distance(b, magnitude).unwrap_or(f64::INFINITY))
        .fold(0.0, f64::max)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stencil, size, dtype, configurations @ ..] = arguments.as_slice() else {
        println!("usage: configurations STENCIL SIZE DTYPE CONFIGURATION…");
        return Ok(());
    };
    let shape: Shape = size.parse()?;
    let program = catalogue::find(stencil)?.program(shape.dimensions())?;
    let mut problem = Problem::new(Arc::new(program), shape, dtype.parse()?)?;
    if let Ok(text) = std::env::var("BOUNDARY") {
        problem.boundaries = Boundaries::all(text.parse()?);
    }
    let backend = WgpuBackend::new()?;
    let (device, options) = (backend.device(), Options::default());
    let mut plans: Vec<Plan> = Vec::new();
    for text in configurations {
        match plan_recipe(&recipe(text)?, &problem, device, &options) {
            Some(plan) => plans.push(plan),
            None => println!("{text}: does not fit"),
        }
    }
    if configurations.is_empty() {
        let many = std::env::var("MANY").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
        plans.extend(
            portable_streaming_plans(&problem, device, &options).unwrap_or_default().into_iter().take(many),
        );
        plans.extend(overlapped_plans(&problem, device, &options)?.into_iter().take(many));
    }
    let start = Start::Random { seed: 1, low: 0.0, high: 1.0 };
    let fields: Vec<Array> =
        problem.program.fields().iter().map(|_| start.fill(&shape, problem.dtype)).collect::<Result<_>>()?;
    let quick = std::env::var_os("QUICK").is_some();
    // Returns all fields after calls of these lengths; nothing where nothing is compared.
    let after = |plan: &Plan, calls: &[u64]| -> Result<Vec<Array>> {
        if quick {
            return Ok(Vec::new());
        }
        let mut session = backend.open(&problem, plan, fields.clone())?;
        for &steps in calls {
            session.advance(steps)?;
        }
        (0..fields.len()).map(|field| session.read(field)).collect()
    };
    let rate = |plan: &Plan| -> Result<f64> {
        let mut session = backend.open(&problem, plan, fields.clone())?;
        let depth = u64::from(plan.depth);
        session.advance(depth)?;
        let cells = shape.cells() as u64;
        let many = |seconds: f64, steps: u64| {
            (((0.05 * steps as f64 / seconds) as u64).max(depth)).next_multiple_of(depth)
        };
        let first = session.advance(4 * depth)?;
        let steps = many(first, 4 * depth);
        let mut rates: Vec<f64> = Vec::new();
        for _ in 0..4 {
            rates.push((cells * steps) as f64 / session.advance(steps)? / 1e9);
        }
        rates.sort_by(f64::total_cmp);
        Ok(rates[2])
    };
    let stepwise = backend.plan(&problem, &Options { execution: Execution::Stepwise, ..options })?;
    let expected = after(&stepwise, &[STEPS])?;
    let magnitude = fields.iter().chain(&expected).map(Array::magnitude).fold(0.5, f64::max);
    let bound = STEPS as f64 * ulp_bound_per_step_of(&problem, magnitude);
    println!(
        "{stencil} {size} {dtype} on {}: a launch a stage {:.1} GCells/s",
        device.name,
        rate(&stepwise)?
    );
    for plan in &plans {
        let line = || -> Result<String> {
            let got = after(plan, &[STEPS])?;
            let cut = after(plan, &[STEPS / 3, STEPS - STEPS / 3])?;
            let off = difference(&got, &expected, magnitude);
            let verdict = match (quick, off <= bound, got.iter().zip(&cut).all(|(a, b)| a.same_bits(b))) {
                (true, ..) => "not compared".to_owned(),
                (_, false, _) => format!("WRONG: off by {off:.2} ulp, bound {bound:.2}"),
                (_, _, false) => format!("off by {off:.2} of {bound:.2} ulp, OTHER BITS WHEN CUT"),
                _ => format!("ok: off by {off:.2} of {bound:.2} ulp"),
            };
            let estimate = shape.cells() as f64 / plan.estimated_seconds / 1e9;
            Ok(format!("{:8.1} of {estimate:8.1}  {verdict}  {}", rate(plan)?, words(plan)))
        };
        match line() {
            Ok(line) => println!("{line}"),
            Err(error) => println!("{}: {error}", words(plan)),
        }
    }
    Ok(())
}
