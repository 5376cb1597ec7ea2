//! Several slabs of one device, or of all there are: programs with fields of all kinds and with reductions have the bits of
//! the reference, planes go by copies, and reductions through the one tree.

// The deck's reader names the whole crate.
extern crate abide_core as abide;

#[path = "../../tests/cloverleaf/clover.rs"]
mod clover;
mod common;
#[path = "../../examples/cloverleaf/deck.rs"]
#[allow(dead_code)]
mod deck;
#[path = "common/line.rs"]
mod line;
#[path = "../../ranks/tests/common/mod.rs"]
mod ranks;

use abide_core::slabs::Slabs;
use abide_core::{Array, Options, Problem, Result};
use abide_cuda::{CudaBackend, device_count};
use abide_random::cases::random;
use abide_ranks::Ranked;
use clover::clover;
use common::present;
use deck::Deck;
use line::slabs;
use ranks::assert_same_from;

fn follow(ranked: &Ranked, name: &str, problem: &Problem, start: Vec<Array>, steps: u64) -> Result<()> {
    let ranks = assert_same_from(problem, start, ranked, &Options::default(), steps).take_ranks()?;
    assert!(ranks.iter().all(|rank| rank.exchange == "copies"), "{name}: {ranks:?}");
    Ok(())
}

#[test]
fn slabs_have_the_references_bits() -> Result<()> {
    if present("cuda", CudaBackend::new()).is_none() {
        return Ok(());
    }
    let all: Vec<usize> = (0..device_count()?).collect();
    let larger = deck::BUILT_IN.replace("x_cells=10", "x_cells=101").replace("y_cells=2", "y_cells=67");
    for numbers in [&[0, 0][..], &[0, 0, 0], &all] {
        let ranked = slabs(numbers)?;
        let (problem, start) = clover(&Deck::parse(&larger)?)?;
        follow(&ranked, "cloverleaf", &problem, start, 20)?;
        let mut run = 0;
        for case in random(0..200) {
            let mut problem = case.problem;
            (problem.record, problem.marks) = (None, None);
            if Slabs::check(&problem).is_err() || Slabs::most(&problem, 1) < 2 {
                continue;
            }
            follow(&ranked, &case.name, &problem, case.start, case.steps)?;
            run += 1;
        }
        println!("{numbers:?}: {run} random programs");
        assert!(run > 20, "{run} programs");
    }
    Ok(())
}
