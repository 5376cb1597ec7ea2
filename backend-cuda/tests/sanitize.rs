//! Small runs of each family of kernels, for NVIDIA's compute-sanitizer to watch.
//!
//! `gpu/run.sh --sanitize` runs each test below under the sanitizer's tools; run by itself, each is a quick
//! test of its kernels.

use crate::{clover, common, deck};

use std::sync::Arc;

use abide_core::plan::{
    CachePolicy, Depth, Exchanging, Execution, Fuse, Jam, LoopRows, Lowering, Options, Placement, Team, Tune,
};
use abide_core::{Array, Backend, Boundary, DType, Error, Problem, Result, Shape, Start, catalogue};
use abide_cuda::CudaBackend;

use clover::clover;
use common::present;
use deck::Deck;

/// Uneven domains of one to three axes, one and several fields, one and two stages, every boundary; each
/// larger than a window or tile.
const PROBLEMS: [(&str, &[usize], DType, Boundary); 9] = [
    ("1d3pt", &[3001], DType::F64, Boundary::Fixed),
    ("2d5pt", &[61, 301], DType::F32, Boundary::Fixed),
    ("2d25pt", &[67, 149], DType::F64, Boundary::Periodic),
    ("2ds25pt", &[53, 151], DType::F32, Boundary::Constant(0.25)),
    ("3d7pt", &[17, 37, 71], DType::F64, Boundary::Constant(0.25)),
    ("3d27pt", &[13, 41, 67], DType::F32, Boundary::Periodic),
    ("gray-scott", &[59, 83], DType::F64, Boundary::Periodic),
    ("heat-conductivity", &[11, 23, 47], DType::F32, Boundary::Mirror),
    ("fdtd-tm", &[43, 97], DType::F64, Boundary::Mirror),
];

/// Runs all problems with each of these options; the bits must be the reference's under the tools too.
fn watch(ways: &[Options], least: usize) -> Result<()> {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return Ok(()) };
    let mut runs = 0;
    for (name, extents, dtype, boundary) in PROBLEMS {
        let program = Arc::new(catalogue::find(name)?.program(extents.len())?);
        let mut problem = Problem::new(program, Shape::new(extents)?, dtype)?;
        problem.set_boundaries(abide_core::Boundaries::all(boundary));
        let start: Vec<Array> = (0..problem.program.fields().len() as u64)
            .map(|field| Start::Random { seed: 7 + field, low: 0.01, high: 0.15 }.fill(&problem.shape, dtype))
            .collect::<Result<_>>()?;
        for options in ways {
            let plan = match backend.plan(&problem, options) {
                Err(Error::Limit { .. }) => continue,
                plan => plan?,
            };
            // A step, then three passes of the plan's depth, which may be one launch, one of half of it, and so on to a
            // single step.
            let depth = u64::from(plan.depth);
            let passes = std::iter::successors(Some(depth), |depth| Some(depth / 2));
            let calls = [1, 2 * depth + passes.take_while(|&depth| depth > 0).sum::<u64>().max(4)];
            let mut session = backend.open(&problem, &plan, start.clone())?;
            let mut expected = start.clone();
            for steps in calls {
                session.advance(steps)?;
                abide_cpu::reference::advance(&problem, &mut expected, steps)?;
            }
            for (field, expected) in expected.iter().enumerate() {
                assert!(
                    session.read(field)?.same_bits(expected),
                    "{name} {dtype} field {field}: {}",
                    plan.summary()
                );
            }
            println!("{name} {} {dtype} {boundary}: {}", problem.shape, session.plan().summary());
            runs += 1;
        }
    }
    assert!(runs >= least, "{runs} runs");
    Ok(())
}

const OWN: Options = Options {
    execution: Execution::Stepwise,
    cache: CachePolicy::Auto,
    depth: Depth::Auto,
    tune: Tune::Off,
    fuse: Fuse::Auto,
    lowering: Lowering::Auto,
    jam: Jam::Auto,
    team: Team::Auto,
    rows: LoopRows::Auto,
    tables: Placement::Auto,
    exchange: Exchanging::Auto,
    pin: false,
    slab: false,
};

#[test]
#[ignore = "for compute-sanitizer: gpu/run.sh --sanitize"]
fn stepwise() -> Result<()> {
    watch(&[OWN], PROBLEMS.len())
}

#[test]
#[ignore = "for compute-sanitizer: gpu/run.sh --sanitize"]
fn persistent() -> Result<()> {
    let policies = [CachePolicy::None, CachePolicy::Shared, CachePolicy::Registers, CachePolicy::Mixed];
    watch(
        &policies.map(|cache| Options { execution: Execution::Persistent, cache, ..OWN }),
        2 * PROBLEMS.len(),
    )
}

#[test]
#[ignore = "for compute-sanitizer: gpu/run.sh --sanitize"]
fn whole_domains_on_the_chip() -> Result<()> {
    let depths = [Depth::Steps(2), Depth::Steps(3), Depth::Steps(5)];
    watch(&depths.map(|depth| Options { execution: Execution::Persistent, depth, ..OWN }), 2 * PROBLEMS.len())
}

#[test]
#[ignore = "for compute-sanitizer: gpu/run.sh --sanitize"]
fn streaming() -> Result<()> {
    let depths = [Depth::Auto, Depth::Steps(1), Depth::Steps(3)];
    watch(&depths.map(|depth| Options { execution: Execution::Streaming, depth, ..OWN }), 2 * PROBLEMS.len())
}

/// Groups of stages that copy the rows they read, among them tiles inside the domain and beside its sides.
#[test]
#[ignore = "for compute-sanitizer: gpu/run.sh --sanitize"]
fn groups() -> Result<()> {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return Ok(()) };
    let flat = deck::BUILT_IN.replace("x_cells=10", "x_cells=301").replace("y_cells=2", "y_cells=131");
    let deep = include_str!("../../tests/cloverleaf/flows7x6x5/clover.in")
        .replace("x_cells=7", "x_cells=77")
        .replace("y_cells=6", "y_cells=46")
        .replace("z_cells=5", "z_cells=53");
    for text in [flat, deep] {
        let (problem, mut fields) = clover(&Deck::parse(&text)?)?;
        let plan = backend.plan(&problem, &Options { fuse: Fuse::Greedy, ..OWN })?;
        let groups = plan.stepwise().map_or(0, |tiles| {
            let fused = tiles.partition.all().filter_map(|group| group.fused.as_ref());
            fused.filter(|fused| !fused.loads.is_empty()).count()
        });
        assert!(groups > 2, "{groups} groups copy");
        let mut session = backend.open(&problem, &plan, fields.clone())?;
        session.advance(2)?;
        abide_cpu::reference::advance(&problem, &mut fields, 2)?;
        for (field, expected) in fields.iter().enumerate() {
            assert!(session.read(field)?.same_bits(expected), "{} field {field}", problem.shape);
        }
        println!("cloverleaf {}: {groups} groups", problem.shape);
    }
    Ok(())
}
