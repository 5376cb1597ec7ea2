//! Groups of stages as one kernel each (fusion), on the device against the CPU's reference: any partition of a program
//! into groups, with any tiles.
//!
//! A driver may fuse operations of a group in another way than those of its stages, so each step is held to the bound
//! that a launch per stage is held to.

use crate::{clover, common, deck};

use abide_core::plan::fused::Partition;
use abide_core::plan::{Fuse, Schedule};
use abide_core::program::{Boxes, Until};
use abide_core::{Backend, DType, DeviceSpec, Options, Plan, Problem, Result};
use abide_planner::fused::{Passing, greedy};
use abide_random::cases::{Case, cases, random};
use abide_random::partitions::partition;
use abide_wgpu::WgpuBackend;

use clover::clover;
use common::pair::Pair;
use common::{backend, read_all};
use deck::Deck;

fn decks() -> Vec<Case> {
    let larger = deck::BUILT_IN.replace("x_cells=10", "x_cells=101").replace("y_cells=2", "y_cells=27");
    let decks = [
        (include_str!("../../tests/cloverleaf/trace13x7/clover.in"), 4),
        (include_str!("../../tests/cloverleaf/flows7x6x5/clover.in"), 3),
        (&larger, 4),
    ];
    let case = |(deck, steps): (&str, u64)| {
        let (problem, start) = clover(&Deck::parse(deck).unwrap()).unwrap();
        Case { name: format!("cloverleaf {}", problem.shape), problem, start, steps }
    };
    decks.map(case).into()
}

/// Returns a case in another type.
fn cast(case: &Case, dtype: DType) -> Case {
    let mut problem = case.problem.clone();
    problem.dtype = dtype;
    let start = case.start.iter().map(|field| field.cast(dtype).unwrap()).collect();
    Case { name: format!("{} {dtype}", case.name), problem, start, steps: case.steps }
}

fn plan(backend: &WgpuBackend, problem: &Problem, fuse: Fuse) -> Plan {
    backend.plan(problem, &Options { fuse, ..Options::default() }).unwrap()
}

fn with(mut plan: Plan, partition: Partition) -> Plan {
    if let Schedule::Stepwise(stepwise) = &mut plan.schedule {
        stepwise.partition = partition;
    }
    plan
}

/// Returns the planner's groups where a launch costs so much that they pay on any domain.
fn united(backend: &WgpuBackend, problem: &Problem) -> Plan {
    let device = DeviceSpec { launch_seconds: 1.0, ..backend.device().clone() };
    let partition = greedy(problem, &Boxes::of(problem).unwrap(), &device, Passing::Allowed);
    with(plan(backend, problem, Fuse::Off), partition)
}

fn groups(plan: &Plan) -> usize {
    let partition = &plan.stepwise().unwrap().partition;
    partition.all().filter(|group| group.fused.is_some()).count()
}

/// Runs a case with a plan, and with another field in between, which gives each field a buffer of its own again.
fn check(backend: &WgpuBackend, case: &Case, plan: &Plan) {
    let run = || -> Result<()> {
        let mut pair = Pair::open(backend, case, plan)?;
        pair.advance(1)?;
        pair.advance(case.steps)?;
        pair.write(case.start.len() - 1)?;
        pair.advance(3)
    };
    run().unwrap_or_else(|error| panic!("{}: {error}", case.name));
}

/// Runs a case with random groups, and returns how many there are.
fn check_random(backend: &WgpuBackend, case: &Case, seed: u64) -> usize {
    let alone = plan(backend, &case.problem, Fuse::Off);
    let values = backend.adapter().workgroup_bytes / case.problem.dtype.bytes();
    let threads = [64, 96, 256][seed as usize % 3].min(backend.adapter().workgroup_threads);
    let plan = with(alone, partition(&case.problem, seed, threads, values, false).unwrap());
    let groups = groups(&plan);
    if groups > 0 {
        check(backend, case, &plan);
    }
    groups
}

#[test]
fn random_groups_agree_with_the_reference() {
    let Some(backend) = backend() else { return };
    let mut all = 0;
    let drawn = if common::is_whole() { 200..225 } else { 200..202 };
    for (case, seed) in common::sampled(cases().unwrap(), 8).chain(random(drawn)).zip(0..) {
        let begun = std::time::Instant::now();
        let groups = check_random(&backend, &case, seed);
        all += groups;
        println!("{}: {groups} groups, {:.1} s", case.name, begun.elapsed().as_secs_f64());
    }
    assert!(all > if common::is_whole() { 50 } else { 3 }, "{all}");
}

#[test]
fn groups_of_cloverleaf_agree_with_the_reference() {
    let Some(backend) = backend() else { return };
    for (case, (dtype, is_greedy)) in
        common::sampled(decks().iter().zip([(DType::F32, true), (DType::F64, false), (DType::F64, true)]), 3)
    {
        let begun = std::time::Instant::now();
        let case = cast(case, dtype);
        if is_greedy {
            let fused = united(&backend, &case.problem);
            assert!(groups(&fused) > 0, "{}", case.name);
            check(&backend, &case, &fused);
        } else {
            assert!(check_random(&backend, &case, 7) > 0);
        }
        println!("{}: {:.1} s", case.name, begun.elapsed().as_secs_f64());
    }
}

/// Nothing changes after a condition has ended a run.
#[test]
fn a_condition_ends_groups() {
    let Some(backend) = backend() else { return };
    let mut case = decks().remove(0);
    let problem = &mut case.problem;
    // The third step comes to 0.22.
    problem.until = Some(Until::parse("time >= 0.2", &problem.program).unwrap());
    let plan = united(&backend, &case.problem);
    let mut session = backend.open(&case.problem, &plan, case.start.clone()).unwrap();
    session.advance(50).unwrap();
    assert_eq!(session.remaining(), 47);
    case.problem.until = None;
    let mut three = backend.open(&case.problem, &plan, case.start.clone()).unwrap();
    three.advance(3).unwrap();
    let [found, expected] = [&mut session, &mut three].map(|own| read_all(&mut **own, &case.problem));
    assert!(found.iter().zip(&expected).all(|(found, expected)| found.same_bits(expected)));
}
