//! The gain of each execution over a launch per step, on every device present.
//!
//! `cargo bench --bench devices [-- NAME…]` prints, for each backend whose device is present, rates in 10⁹
//! cells per second and their ratio to the stepwise baseline; all executions must leave the baseline's bits.
//! With names, it measures only problems whose name contains one of them. A device without memory of its own
//! gets small domains; absent devices are skipped by name.

use std::process::ExitCode;
use std::sync::Arc;

use abide::backend::{self, Kind, Opened, Session};
use abide::{
    Array, DType, Depth, Error, Execution, Options, Plan, Problem, Result, Shape, Start, Tune, catalogue,
};
use abide_bench::{Domain, rates};

/// The problems, with the number of their axes.
const PROBLEMS: [(&str, usize); 6] =
    [("2d5pt", 2), ("3d7pt", 3), ("gray-scott", 2), ("wave", 2), ("heat-conductivity", 2), ("fdtd-tm", 2)];

/// The extent of the measurement.
struct Effort {
    /// Seconds of a timed run.
    seconds: f64,
    /// Timed runs.
    repeats: usize,
    /// Whether devices with memory of their own get the published domains instead of small ones.
    full: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    // `cargo bench` passes this argument. Without it, as under `cargo test --benches`, it is enough that
    // everything runs.
    let effort = match arguments.iter().any(|argument| argument == "--bench") {
        true => Effort { seconds: 0.1, repeats: 5, full: true },
        false => Effort { seconds: 1e-3, repeats: 1, full: false },
    };
    let mut wrong = 0;
    for name in backend::names() {
        match backend::open(name) {
            Ok(opened) => wrong += device(&opened, &names, &effort),
            Err(Error::Unavailable { reason, .. }) => println!("skipped: {name}: {reason}"),
            Err(error) => {
                println!("{name}: {error}");
                wrong += 1;
            }
        }
    }
    if wrong > 0 {
        println!("{wrong} failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Measures all problems on a device; returns how many runs failed.
fn device(opened: &Opened, names: &[&String], effort: &Effort) -> usize {
    let spec = opened.backend.device();
    println!("\n{}: {}, {}", opened.backend.name(), spec.name, opened.backend.driver());
    println!("GCells/s, and how many times the baseline; the steps of a streaming pass in brackets");
    println!("{:<18} {:<4} {:<12} {:>9}  {:>16}  {:>22}", "", "", "", "stepwise", "persistent", "streaming");
    let mut failed = 0;
    for (name, axes) in PROBLEMS {
        if !names.is_empty() && !names.iter().any(|wanted| name.contains(wanted.as_str())) {
            continue;
        }
        for dtype in [DType::F64, DType::F32] {
            for shape in shapes(opened.kind, axes, effort) {
                let words = format!("{name:<18} {dtype:<4} {shape:<12}");
                match shape_row(opened, name, &shape, dtype, effort) {
                    Ok(row) => println!("{words} {row}"),
                    Err(Error::Unsupported { reason, .. }) => println!("{words} not here: {reason}"),
                    Err(error) => {
                        println!("{words} failed: {error}");
                        failed += 1;
                    }
                }
            }
        }
    }
    failed
}

/// Returns the published sizes on a GPU, elsewhere sizes that take little time.
fn shapes(kind: Kind, axes: usize, effort: &Effort) -> Vec<Shape> {
    let small: &[usize] = match (effort.full, axes) {
        (true, 2) => &[512, 512],
        (true, _) => &[64, 64, 64],
        (false, 2) => &[48, 64],
        (false, _) => &[12, 16, 20],
    };
    let shapes = match kind {
        Kind::Gpu if effort.full => vec![Domain::OnChip.shape(axes), Domain::Large.shape(axes)],
        _ => vec![Shape::new(small)],
    };
    shapes.into_iter().flatten().collect()
}

/// Measures the rates of all executions of a problem that the backend has.
fn shape_row(opened: &Opened, name: &str, shape: &Shape, dtype: DType, effort: &Effort) -> Result<String> {
    let program = Arc::new(catalogue::find(name)?.program(shape.dimensions())?);
    let problem = Problem::new(program, *shape, dtype)?;
    let start: Vec<Array> =
        (0..problem.program.fields().len()).map(|field| fill(&problem, field)).collect::<Result<_>>()?;
    let own = |execution| Options { execution, depth: Depth::Auto, tune: Tune::Off, ..Options::default() };
    let plan = |execution| opened.backend.plan(&problem, &own(execution));
    let (baseline, _, expected) =
        measured(opened, &problem, &plan(Execution::Stepwise)?, &start, effort, None)?;
    let mut row = format!("{baseline:>9.2}");
    for (execution, width) in [(Execution::Persistent, 16), (Execution::Streaming, 22)] {
        let cell = match plan(execution) {
            // A plan of another kind than asked for measures nothing new.
            Ok(plan) if plan.execution == execution => {
                let (rate, depth, _) = measured(opened, &problem, &plan, &start, effort, Some(&expected))?;
                let depth =
                    if execution == Execution::Streaming { format!(" ({depth})") } else { String::new() };
                format!("{rate:.2} {:.2}×{depth}", rate / baseline)
            }
            Ok(_) | Err(Error::Limit { .. } | Error::Unsupported { .. }) => "-".to_owned(),
            Err(error) => return Err(error),
        };
        row += &format!("  {cell:>width$}");
    }
    Ok(row)
}

/// Steps after which the executions are compared: some whole passes of any kernel, and a remainder.
const COMPARED: u64 = 51;

/// Returns the median rate in 10⁹ cells per second, the steps per pass, and the fields after [`COMPARED`]
/// steps, which must equal the expected fields, if any are given.
fn measured(
    opened: &Opened,
    problem: &Problem,
    plan: &Plan,
    start: &[Array],
    effort: &Effort,
    expected: Option<&[Array]>,
) -> Result<(f64, u64, Vec<Array>)> {
    let mut session = opened.backend.open(problem, plan, start.to_vec())?;
    session.advance(COMPARED)?;
    let mut fields = Vec::new();
    for number in 0..start.len() {
        let field = session.read(number)?;
        match expected {
            Some(expected) if !field.same_bits(&expected[number]) => {
                let (name, run) = (&problem.program.fields()[number], session.plan().summary());
                return Err(Error::device(
                    opened.backend.name(),
                    format!("comparing {name} after {COMPARED} steps"),
                    format!("it has not the bits of a launch per step: {run}"),
                ));
            }
            Some(_) => {}
            None => fields.push(field),
        }
    }
    // Whole passes, because a remainder costs more per step.
    let depth = u64::from(session.plan().depth);
    let mut steps = depth;
    while session.advance(steps)? < 0.2 * effort.seconds && steps < 1 << 24 {
        steps *= 2;
    }
    let warm = session.advance(steps)?.max(1e-9);
    let steps = ((effort.seconds / warm * steps as f64) as u64).next_multiple_of(depth).max(depth);
    let run = |session: &mut Box<dyn Session>| -> Result<f64> {
        Ok((problem.shape.cells() as f64 * steps as f64) / session.advance(steps)?.max(1e-9) / 1e9)
    };
    let runs: Vec<f64> = (0..effort.repeats).map(|_| run(&mut session)).collect::<Result<_>>()?;
    let median = rates(&runs).map_or(0.0, |rates| rates.median);
    Ok((median, depth, fields))
}

/// Makes random values, whose cost no shortcut for zeros hides, and which stay finite.
fn fill(problem: &Problem, field: usize) -> Result<Array> {
    // A conductivity beyond 1/4 would grow without bound in 2D.
    let (low, high) = if problem.program.fields()[field] == "kappa" { (0.01, 0.15) } else { (0.0, 1.0) };
    Start::Random { seed: 1 + field as u64, low, high }.fill(&problem.shape, problem.dtype)
}
