//! Groups of stages as one kernel each (fusion): any partition of a program into groups, with any tiles, has the bits of
//! a launch per stage on the same adapter.

// The deck's reader names the whole crate.
extern crate abide_core as abide;

#[path = "../../tests/cloverleaf/clover.rs"]
mod clover;
mod common;
#[path = "../../examples/cloverleaf/deck.rs"]
#[allow(dead_code)]
mod deck;

use abide_core::plan::fused::Partition;
use abide_core::plan::{Fuse, Schedule};
use abide_core::program::Until;
use abide_core::{Array, Backend, DType, Options, Plan, Problem, Session};
use abide_random::cases::{Case, cases, random};
use abide_random::partitions::partition;
use abide_wgpu::WgpuBackend;

use clover::clover;
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

fn groups(plan: &Plan) -> usize {
    let partition = &plan.stepwise().unwrap().partition;
    partition.all().filter(|group| group.fused.is_some()).count()
}

/// Panics unless two sessions of a problem have the same fields and scalars.
fn compare(what: &str, problem: &Problem, sessions: &mut [Box<dyn Session>; 2]) {
    let [one, two] = sessions;
    let [fields, others] = [&mut *one, &mut *two].map(|session| read_all(&mut **session, problem));
    for (number, (field, other)) in fields.iter().zip(&others).enumerate() {
        let name = &problem.program.fields()[number];
        let differs = |&i: &usize| field.get(i).map(f64::to_bits) != other.get(i).map(f64::to_bits);
        let first = (0..field.len()).find(differs);
        let pair = first.map(|first| [field, other].map(|field| field.get(first)));
        let count = (0..field.len()).filter(differs).count();
        assert!(
            field.same_bits(other),
            "{what}: field {name} differs at {count} of {} from {first:?} on: {pair:?}",
            field.len()
        );
    }
    let [scalars, others] = [one, two].map(|session| session.scalars().unwrap());
    let is_same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    assert!(scalars.iter().zip(&others).all(is_same), "{what}: {others:?}, not {scalars:?}");
}

/// Runs a case with a plan beside a launch per stage, and another field in between.
fn check(backend: &WgpuBackend, case: &Case, fused: &Plan) {
    let Case { name, problem, start, steps } = case;
    let alone = plan(backend, problem, Fuse::Off);
    let mut sessions = [&alone, fused].map(|plan| backend.open(problem, plan, start.clone()).unwrap());
    let advance = |sessions: &mut [Box<dyn Session>; 2], steps: u64| {
        for session in sessions.iter_mut() {
            session.advance(steps).unwrap();
        }
        compare(name, problem, sessions);
    };
    advance(&mut sessions, 1);
    advance(&mut sessions, *steps);
    // Each field gets a buffer of its own again.
    let last = start.len() - 1;
    let len = start[last].len();
    let other = Array::from_fn(problem.dtype, len, |i| 0.5 * start[last].get((i + 1) % len).unwrap_or(0.0));
    sessions.iter_mut().for_each(|session| session.write(last, &other).unwrap());
    advance(&mut sessions, 3);
}

/// Runs a case with random groups, and returns how many there are.
fn check_random(backend: &WgpuBackend, case: &Case, seed: u64) -> usize {
    let alone = plan(backend, &case.problem, Fuse::Off);
    let values = backend.adapter().workgroup_bytes / case.problem.dtype.bytes();
    let threads = [64, 96, 256][seed as usize % 3].min(backend.adapter().workgroup_threads);
    let plan = with(alone, partition(&case.problem, seed, threads, values).unwrap());
    let groups = groups(&plan);
    if groups > 0 {
        check(backend, case, &plan);
    }
    groups
}

#[test]
fn random_groups_have_the_bits_of_their_stages() {
    let Some(backend) = backend() else { return };
    let mut all = 0;
    for (case, seed) in cases().unwrap().into_iter().chain(random(200..260)).zip(0..) {
        let begun = std::time::Instant::now();
        let groups = check_random(&backend, &case, seed);
        all += groups;
        println!("{}: {groups} groups, {:.1} s", case.name, begun.elapsed().as_secs_f64());
    }
    assert!(all > 60, "{all}");
}

#[test]
fn groups_of_cloverleaf_have_the_bits_of_their_stages() {
    let Some(backend) = backend() else { return };
    for (case, seed) in decks().iter().zip(7..) {
        for dtype in [DType::F64, DType::F32] {
            let case = cast(case, dtype);
            assert!(check_random(&backend, &case, seed) > 0);
            let fused = plan(&backend, &case.problem, Fuse::Greedy);
            assert!(groups(&fused) > 0, "{}", case.name);
            check(&backend, &case, &fused);
        }
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
    let plans = [Fuse::Off, Fuse::Greedy].map(|fuse| plan(&backend, &case.problem, fuse));
    let mut sessions =
        plans.map(|plan| backend.open(&case.problem, &plan, case.start.clone()).unwrap());
    for session in &mut sessions {
        session.advance(50).unwrap();
        assert_eq!(session.undone(), 47);
    }
    compare("ended", &case.problem, &mut sessions);
}
