//! Several slabs of one device, or of all there are: programs with fields of all kinds and with reductions have the bits of
//! the reference, planes go by copies, and reductions through the one tree.

use crate::{clover, common, deck, line, ranks};

use std::sync::{Mutex, PoisonError};

use abide_core::plan::{Depth, Execution, Tune};
use abide_core::slabs::Slabs;
use abide_core::{Array, Backend, Boundaries, Boundary, DType, Options, Problem, Result};
use abide_cuda::{CudaBackend, device_count};
use abide_random::cases::random;
use abide_ranks::Ranked;
use clover::clover;
use common::present;
use deck::Deck;
use line::{giving, slabs};
use ranks::assert_same_from;

/// Held by a test whose runs store: beside other runs on the same devices they would copy.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a problem on slabs, of as many different devices or of one.
fn follow(
    (ranked, distinct): (&Ranked, bool),
    name: &str,
    problem: &Problem,
    start: Vec<Array>,
    steps: u64,
) -> Result<()> {
    let ranks = assert_same_from(problem, start, ranked, &Options::default(), steps).take_ranks()?;
    let way = if distinct { "stores" } else { "copies" };
    assert!(ranks.iter().all(|rank| rank.exchange == way), "{name}: {ranks:?}");
    Ok(())
}

#[test]
fn slabs_have_the_references_bits() -> Result<()> {
    if present("cuda", CudaBackend::new()).is_none() {
        return Ok(());
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let all: Vec<usize> = (0..device_count()?).collect();
    let larger = deck::BUILT_IN.replace("x_cells=10", "x_cells=101").replace("y_cells=2", "y_cells=67");
    for numbers in [&[0, 0][..], &[0, 0, 0], &all] {
        let ranked = (&slabs(numbers)?, numbers.len() > 1 && numbers[1] != 0);
        let (problem, start) = clover(&Deck::parse(&larger)?)?;
        follow(ranked, "cloverleaf", &problem, start, 20)?;
        let mut run = 0;
        for case in random(0..300) {
            let mut problem = case.problem;
            (problem.record, problem.marks) = (None, None);
            if Slabs::check(&problem).is_err() || Slabs::most(&problem, 1) < 2 {
                continue;
            }
            follow(ranked, &case.name, &problem, case.start, case.steps)?;
            run += 1;
        }
        println!("{numbers:?}: {run} random programs");
        assert!(run > 20, "{run} programs");
    }
    Ok(())
}

/// Passes in space give planes to the neighbours' memory. Beside another run on the same devices they go by copies, although the
/// kernels keep to their own planes; a pass that is shorter than an exchange is one, too.
#[test]
fn passes_that_give_planes_have_the_references_bits() -> Result<()> {
    if present("cuda", CudaBackend::new()).is_none() {
        return Ok(());
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let all: Vec<usize> = (0..device_count()?).collect();
    if all.len() < 2 {
        println!("one CUDA device: no other to give planes to");
        return Ok(());
    }
    let ranked = slabs(&all)?;
    let options = Options {
        execution: Execution::Streaming,
        depth: Depth::Steps(2),
        tune: Tune::Off,
        ..Options::default()
    };
    for (name, boundary, dtype) in [
        ("3d7pt", Boundary::Fixed, DType::F64),
        ("3d7pt", Boundary::Periodic, DType::F32),
        ("3d27pt", Boundary::Mirror, DType::F64),
    ] {
        let mut problem = ranks::problem(name, &[24 * all.len() + 1, 67, 131], dtype);
        problem.boundaries = Boundaries::all(boundary);
        let plan = giving(&problem, &ranked.plan(&problem, &options)?);
        let plan = plan.unwrap_or_else(|| panic!("{name} {boundary:?}: passes give nothing"));
        let start = ranks::fields(&problem);
        let open = || ranked.open(&problem, &plan, start.clone());
        let (mut first, mut second) = (open()?, open()?);
        let one = abide_cuda::CudaBackend::new()?;
        let stepwise = Options { execution: Execution::Stepwise, tune: Tune::Off, ..Options::default() };
        let mut alone = one.open(&problem, &one.plan(&problem, &stepwise)?, start.clone())?;
        for steps in [1, 2, 7, 12, 3] {
            for session in [&mut first, &mut second, &mut alone] {
                session.advance(steps)?;
            }
            let expected = alone.read(0)?;
            for session in [&mut first, &mut second] {
                assert!(session.read(0)?.same_bits(&expected), "{name} {boundary:?} after {steps} more");
            }
        }
        let ways =
            [&mut first, &mut second].map(|session| session.take_ranks().map(|ranks| ranks[0].exchange));
        assert_eq!(ways, [Ok("stores"), Ok("copies")]);
    }
    Ok(())
}
