//! Every execution and cache policy on the device against the CPU's reference, bit for bit.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use abide_core::{
    Array, Backend, Boundaries, Boundary, DType, Error, Problem, Program, Result, Shape, Start, catalogue,
};
use abide_cuda::{CudaBackend, variants};

use common::present;

/// The fields after `steps` steps on the device must be the reference's; returns what differs.
fn compare(backend: &CudaBackend, problem: &Problem, steps: u64) -> Result<Vec<String>> {
    let start: Vec<Array> = (0..problem.program.fields().len())
        .map(|f| Start::Random { seed: 11 + f as u64, low: 0.1, high: 0.9 }.fill(&problem.shape, problem.dtype))
        .collect::<Result<_>>()?;
    let mut expected = start.clone();
    abide_cpu::reference::advance(problem, &mut expected, steps)?;
    let mut wrong = Vec::new();
    for options in variants() {
        let plan = match backend.plan(problem, &options) {
            Ok(plan) => plan,
            Err(Error::Limit { .. }) => continue,
            Err(other) => return Err(other),
        };
        let mut session = backend.open(problem, &plan, start.clone())?;
        session.advance(1)?;
        session.advance(steps - 1)?;
        for (field, expected) in expected.iter().enumerate() {
            let got = session.read(field)?;
            if problem.program.is_exact() && !got.same_bits(expected) {
                let first = (0..got.len()).find(|&i| got.get(i).map(f64::to_bits) != expected.get(i).map(f64::to_bits));
                wrong.push(format!(
                    "{} {} {} {} field {field} {} {}: {} ulp, first at {:?}\n    {}",
                    problem.program.name(),
                    problem.shape,
                    problem.dtype,
                    problem.boundaries.describe(problem.shape.dimensions()),
                    options.execution,
                    options.cache,
                    got.ulp_distance(expected).unwrap_or(u64::MAX),
                    first.map(|i| problem.shape.cell(i)),
                    session.plan().summary(),
                ));
            }
        }
    }
    Ok(wrong)
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
    let all = [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror, Boundary::Constant(0.3)].map(Boundaries::all);
    all.into_iter().chain(Boundaries::parse(mixed, Boundary::Fixed)).collect()
}

/// Runs all problems on as many threads as there are cores, for compiling takes longest; returns what differs.
fn compare_all(backend: &CudaBackend, problems: &[Problem], steps: u64) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let work = || {
        while let Some(problem) = problems.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = compare(backend, problem, steps)
                .unwrap_or_else(|error| vec![format!("{} {}: {error}", problem.program.name(), problem.shape)]);
            wrong.lock().unwrap().extend(found);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    wrong.into_inner().unwrap()
}

fn report(problems: &[Problem], wrong: &[String]) {
    println!("{} problems, {} runs differ", problems.len(), wrong.len());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
}

#[test]
fn every_entry_has_the_references_bits() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let mut problems = Vec::new();
    for entry in catalogue::entries() {
        for dimensions in entry.dimensions.clone() {
            let program: Arc<Program> = Arc::new(entry.program(dimensions).unwrap());
            for (number, extents) in sizes(dimensions).iter().enumerate() {
                let all = boundaries();
                // Every size meets two boundaries and, by turns, both types; every boundary meets every entry.
                for turn in [number, number + 2] {
                    let dtype = if (number + turn / 5) % 2 == 0 { DType::F64 } else { DType::F32 };
                    let shape = Shape::new(extents).unwrap();
                    let parameters = program.parameters().iter().map(|p| p.default).collect();
                    let boundaries = all[turn % all.len()];
                    let problem = Problem { program: program.clone(), shape, dtype, boundaries, parameters };
                    if problem.check().is_ok() {
                        problems.push(problem);
                    }
                }
            }
        }
    }
    report(&problems, &compare_all(&backend, &problems, 7));
}

/// Large enough that every block has a full tile, registers and shared memory are all used, and tiles are uneven.
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
    report(&problems, &compare_all(&backend, &problems, 5));
}
