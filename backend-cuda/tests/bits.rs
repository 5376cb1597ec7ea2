//! Every execution, cache policy and several depths on the device against the CPU's reference, bit for bit.

use crate::{common, parallel};

use std::sync::{Arc, Mutex};

use abide_core::plan::Execution;
use abide_core::{
    Array, Backend, Boundaries, Boundary, DType, Error, Problem, Program, Result, Shape, Start, catalogue,
};
use abide_cuda::{CudaBackend, variants};

use common::present;
use parallel::each;

/// Returns the calls of a run: one of a single step, and one that has a pass of the plan's depth and passes
/// of all the depths that remainders need, each half as deep as the one before; `least` steps in all.
fn calls(depth: u32, least: u64) -> [u64; 2] {
    let passes = std::iter::successors(Some(u64::from(depth)), |depth| Some(depth / 2));
    [1, passes.take_while(|&depth| depth > 0).sum::<u64>().max(least - 1)]
}

/// Counts of the comparisons, and the differences found.
#[derive(Default)]
struct Compared {
    problems: usize,
    runs: usize,
    streaming: usize,
    wrong: Vec<String>,
}

/// Compares the fields on the device with the reference's. The depths of streaming kernels, which take
/// longest to compile, take turns: two of five per problem.
fn compare(backend: &CudaBackend, turn: usize, problem: &Problem, least: u64) -> Result<Compared> {
    let start: Vec<Array> = (0..problem.program.fields().len())
        .map(|f| {
            Start::Random { seed: 11 + f as u64, low: 0.1, high: 0.9 }.fill(&problem.shape, problem.dtype)
        })
        .collect::<Result<_>>()?;
    let mut plans = Vec::new();
    for (number, options) in variants().into_iter().enumerate() {
        if options.execution == Execution::Streaming && (turn + number) % 5 > 1 {
            continue;
        }
        match backend.plan(problem, &options) {
            Ok(plan) => plans.push((options, calls(plan.depth, least), plan)),
            Err(Error::Limit { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    plans.sort_by_key(|(_, calls, _)| calls.iter().sum::<u64>());
    let mut found = Compared { problems: 1, runs: plans.len(), ..Compared::default() };
    let (mut expected, mut done) = (start.clone(), 0);
    for (options, calls, plan) in plans {
        let steps = calls.iter().sum::<u64>();
        abide_cpu::reference::advance(problem, &mut expected, steps - done)?;
        done = steps;
        found.streaming += usize::from(options.execution == Execution::Streaming);
        let mut session = backend.open(problem, &plan, start.clone())?;
        for steps in calls {
            session.advance(steps)?;
        }
        for (field, expected) in expected.iter().enumerate() {
            let got = session.read(field)?;
            if !got.same_bits(expected) {
                let first = (0..got.len())
                    .find(|&i| got.get(i).map(f64::to_bits) != expected.get(i).map(f64::to_bits));
                found.wrong.push(format!(
                    "{} {} {} {} field {field} {} {} {:?}, {steps} steps: {} ulp, first at {:?}\n    {}",
                    problem.program.name(),
                    problem.shape,
                    problem.dtype,
                    problem.boundaries.describe(problem.shape.dimensions()),
                    options.execution,
                    options.cache,
                    options.depth,
                    got.ulp_distance(expected).unwrap_or(u64::MAX),
                    first.map(|i| problem.shape.cell(i)),
                    session.plan().summary(),
                ));
            }
        }
    }
    Ok(found)
}

fn sizes(dimensions: usize) -> Vec<Vec<usize>> {
    match dimensions {
        1 => vec![vec![1], vec![3], vec![509], vec![100_003]],
        2 => vec![vec![1, 1], vec![2, 3], vec![37, 211], vec![3, 1021], vec![1021, 3], vec![509, 521]],
        _ => vec![vec![1, 2, 3], vec![13, 17, 67], vec![3, 5, 211], vec![127, 7, 9], vec![41, 43, 47]],
    }
}

fn boundaries() -> Vec<Boundaries> {
    let mixed = "z-=mirror,z+=constant=0.25,y-=fixed,y+=mirror,x-=constant=0.5,x+=fixed";
    Boundary::each_plain(0.3)
        .into_iter()
        .map(Boundaries::all)
        .chain(Boundaries::parse(mixed, Boundary::Fixed))
        .collect()
}

/// Compares all problems and fails where any differs.
fn compare_all(backend: &CudaBackend, problems: Vec<Problem>, least: u64) {
    let all = Mutex::new(Compared::default());
    let numbered: Vec<(usize, Problem)> = problems.into_iter().enumerate().collect();
    each(&numbered, |(turn, problem)| {
        let found = compare(backend, *turn, problem, least).unwrap_or_else(|error| Compared {
            wrong: vec![format!("{} {}: {error}", problem.program.name(), problem.shape)],
            ..Compared::default()
        });
        let mut all = all.lock().unwrap();
        all.problems += found.problems;
        all.runs += found.runs;
        all.streaming += found.streaming;
        all.wrong.extend(found.wrong);
    });
    let Compared { problems, runs, streaming, wrong } = all.into_inner().unwrap();
    println!("{problems} problems, {runs} runs, {streaming} of them streaming, {} differ", wrong.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
    assert!(streaming >= problems / 2, "{streaming} of {runs} runs of {problems} problems stream");
}

#[test]
fn every_entry_has_the_references_bits() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let mut problems = Vec::new();
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            let program: Arc<Program> = Arc::new(entry.program(dimensions).unwrap());
            for (number, extents) in sizes(dimensions).iter().enumerate() {
                let all = boundaries();
                // Every size meets two boundaries and, by turns, both types; every boundary meets every
                // entry.
                for turn in [number, number + 2] {
                    let dtype = if (number + turn / 5) % 2 == 0 { DType::F64 } else { DType::F32 };
                    let shape = Shape::new(extents).unwrap();
                    let mut problem = Problem::unchecked(program.clone(), shape, dtype);
                    problem.set_boundaries(all[turn % all.len()]);
                    if problem.is_plain() && problem.check().is_ok() {
                        problems.push(problem);
                    }
                }
            }
        }
    }
    compare_all(&backend, problems, 7);
}

/// Large enough that every block has a full tile, registers and shared memory are all used, and tiles are
/// uneven.
#[test]
fn large_domains_have_the_references_bits() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let domains: [(&str, &[usize]); 7] = [
        ("2d5pt", &[2304, 2304]),
        ("2d5pt", &[2311, 2297]),
        ("2d25pt", &[1511, 1999]),
        ("3d7pt", &[127, 193, 251]),
        ("3d27pt", &[64, 96, 128]),
        ("gray-scott", &[1021, 1531]),
        ("1d3pt", &[9_000_001]),
    ];
    let mut problems = Vec::new();
    for (name, extents) in domains {
        for dtype in [DType::F64, DType::F32] {
            let program = Arc::new(catalogue::find(name).unwrap().program(extents.len()).unwrap());
            problems.push(Problem::new(program, Shape::new(extents).unwrap(), dtype).unwrap());
        }
    }
    compare_all(&backend, problems, 5);
}
