//! Many thousand steps of every protocol by which blocks share a domain, on random domains: a race that shows
//! once in a million steps must show here.
//!
//! Run where there is a device: `cargo test --release -p abide-cuda --test integration -- stress:: --ignored --nocapture`.

use crate::{common, domains, parallel};

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use abide_core::backend::Compiler as _;
use abide_core::plan::resident::{Configuration, Exchange};
use abide_core::plan::{CachePolicy, Depth, Execution, Options, Schedule, Synchronisation, Tune};
use abide_core::{
    Array, Backend, Boundaries, Boundary, DType, DeviceSpec, Error, Plan, Problem, Result, Shape, Start,
};
use abide_cpu::CpuBackend;
use abide_cuda::CudaBackend;
use abide_planner::resident::plan_configuration;
use abide_planner::{persistent_plans, plan, resident_plans, streaming_plans};
use fastrand::Rng;

use common::present;
use parallel::{each, part};

/// Enough that nearly every protocol has fifty, though streaming kernels refuse some domains.
const DOMAINS: usize = 60;
/// The domains of each protocol, as [`protocol`] numbers them; one block holds small domains alone.
const DOMAINS_EACH: [usize; PROTOCOLS] = [50, 50, 50, 50, 10, 50];
const STEPS: u64 = 10_000;
/// The first seed; domain `n` is made of seed `SEED + n`.
const SEED: u64 = 20_260;
/// The most cells of a domain that the CPU computes too.
const CELLS_ON_CPU: usize = 5_000;
/// The time after which a domain counts as hanging. All its kernels take seconds in total.
const DEADLINE: Duration = Duration::from_secs(240);

/// Returns the calls of every run: a single step, some odd parts, the rest.
fn calls(rng: &mut Rng) -> Vec<u64> {
    let mut calls = vec![1];
    calls.extend((0..4).map(|_| rng.u64(2..STEPS / 8)));
    calls.push(STEPS - calls.iter().sum::<u64>());
    calls
}

/// Returns the plans under test: the planner's own and random ones, under both ways to wait and several
/// depths. Plans that the planner refuses are left out.
fn plans(
    device: &DeviceSpec,
    problem: &Problem,
    number: usize,
    rng: &mut Rng,
) -> Result<Vec<(String, Plan)>> {
    let able = |plan: Result<Plan>| match plan {
        Ok(plan) => Ok(Some(plan)),
        Err(Error::Limit { .. }) => Ok(None),
        Err(other) => Err(other),
    };
    let own = Options { tune: Tune::Off, ..Options::default() };
    let mut plans = Vec::new();
    let policies = [CachePolicy::Mixed, CachePolicy::None, CachePolicy::Shared, CachePolicy::Registers];
    for turn in [0, 1 + number % 3] {
        let options = Options { execution: Execution::Persistent, cache: policies[turn], ..own };
        for (kind, plan) in [
            ("planned", able(plan(problem, device, &options))?),
            ("random", persistent_plans(problem, device, &options).ok().and_then(|all| pick(all, rng))),
        ] {
            let Some(plan) = plan else { continue };
            let waits = plan.persistent().map(|persistent| persistent.synchronisation);
            plans.push((format!("persistent, {kind}"), plan.clone()));
            // All blocks may wait for all wherever it would do to wait for the neighbours.
            if waits == Some(Synchronisation::Neighbours) {
                plans.push((format!("persistent, {kind}, all waiting for all"), for_all(plan)));
            }
        }
    }
    for depth in [Depth::Auto, Depth::Steps(rng.u32(1..=8))] {
        let options = Options { execution: Execution::Persistent, depth, ..own };
        let whole = resident_plans(problem, device, &options).unwrap_or_default();
        for exchange in Exchange::ALL {
            // Tiles that fit with counters may have no room for what tags need, and the other way round.
            let of = |plan: Plan| {
                let configuration = Configuration { exchange, ..plan.resident()?.configuration() };
                let plan = plan_configuration(problem, device, &configuration)?;
                plan.resident().is_some_and(|tiles| tiles.exchange == exchange).then_some(plan)
            };
            let name = |how: &str| format!("the whole domain, {exchange:?}, {how}");
            plans.extend(whole.first().cloned().and_then(of).map(|plan| (name("planned"), plan)));
            let random = (0..4).find_map(|_| pick(whole.clone(), rng).and_then(of));
            plans.extend(random.map(|plan| (name("random"), plan)));
        }
        let options = Options { execution: Execution::Streaming, depth, ..own };
        plans.extend(
            able(plan(problem, device, &options))?.map(|plan| ("streaming, planned".to_owned(), plan)),
        );
        let random = streaming_plans(problem, device, &options).ok().and_then(|all| pick(all, rng));
        plans.extend(random.map(|plan| ("streaming, random".to_owned(), plan)));
    }
    Ok(plans)
}

fn pick(mut plans: Vec<Plan>, rng: &mut Rng) -> Option<Plan> {
    (!plans.is_empty()).then(|| plans.swap_remove(rng.usize(0..plans.len())))
}

fn for_all(mut plan: Plan) -> Plan {
    if let Schedule::Persistent(persistent) = &mut plan.schedule {
        persistent.synchronisation = Synchronisation::Grid;
    }
    plan
}

/// Returns how the blocks of a plan share a domain: 0 they wait for their neighbours, 1 for all, 2 they stream, 3
/// they hold all of it and exchange cells now and then by counters, 4 one of them holds it, 5 they exchange by tags.
fn protocol(plan: &Plan) -> usize {
    match (plan.persistent().map(|persistent| persistent.synchronisation), plan.resident()) {
        (Some(Synchronisation::Neighbours), _) => 0,
        (Some(Synchronisation::Grid), _) => 1,
        (None, None) => 2,
        (None, Some(resident)) => {
            if resident.exchange == Exchange::Tagged {
                5
            } else if resident.blocks() > 1 {
                3
            } else {
                4
            }
        }
    }
}

/// The values of [`protocol`].
const PROTOCOLS: usize = 6;

/// Returns the fields after each call.
fn run(
    backend: &dyn Backend,
    problem: &Problem,
    plan: &Plan,
    start: &[Array],
    calls: &[u64],
) -> Result<Vec<Vec<Array>>> {
    let mut session = backend.open(problem, plan, start.to_vec())?;
    let mut states = Vec::new();
    for &steps in calls {
        session.advance(steps)?;
        states.push((0..start.len()).map(|field| session.read(field)).collect::<Result<_>>()?);
    }
    Ok(states)
}

/// Finds where two runs first differ.
fn difference(problem: &Problem, calls: &[u64], a: &[Vec<Array>], b: &[Vec<Array>]) -> Option<String> {
    let call = a.iter().zip(b).position(|(a, b)| a.iter().zip(b).any(|(a, b)| !a.same_bits(b)))?;
    let field = a[call].iter().zip(&b[call]).position(|(a, b)| !a.same_bits(b))?;
    let (a, b) = (&a[call][field], &b[call][field]);
    let differs = |&i: &usize| a.get(i).map(f64::to_bits) != b.get(i).map(f64::to_bits);
    let cells: Vec<usize> = (0..a.len()).filter(differs).collect();
    let after: u64 = calls[..=call].iter().sum();
    let at = cells.first().map(|&first| problem.shape.cell(first));
    let name = &problem.program.fields()[field];
    Some(format!(
        "after {after} steps (calls {calls:?}) {} cells of {name} differ, first {at:?}",
        cells.len()
    ))
}

/// The results of the runs on a domain.
#[derive(Default)]
struct Tally {
    runs: [usize; PROTOCOLS],
    on_cpu: usize,
    finite: usize,
    wrong: Vec<String>,
}

/// A domain, and all that runs on it.
struct Case {
    problem: Problem,
    start: Vec<Array>,
    words: String,
    calls: Vec<u64>,
    stepwise: Plan,
    plans: Vec<(String, Plan)>,
}

impl Case {
    fn of(backend: &CudaBackend, number: usize) -> Result<Case> {
        let seed = SEED + number as u64;
        let (problem, start) = domains::random(number, seed)?;
        let words = domains::words(&problem, number, seed);
        let mut rng = Rng::with_seed(seed ^ 0x5eed);
        let calls = calls(&mut rng);
        let stepwise = Options { execution: Execution::Stepwise, tune: Tune::Off, ..Options::default() };
        let stepwise = backend.plan(&problem, &stepwise)?;
        let plans = plans(backend.device(), &problem, number, &mut rng)?;
        Ok(Case { problem, start, words, calls, stepwise, plans })
    }
}

/// Returns whether an error is none of Abide: the compiler may need more than the planner assumed for a plan that it
/// would not have chosen.
fn is_excused(what: &str, error: &Error) -> bool {
    matches!(error, Error::Limit { .. }) && what.contains("random")
}

fn stress(backend: &CudaBackend, number: usize) -> Result<Tally> {
    let Case { problem, start, words, calls, stepwise, plans } = Case::of(backend, number)?;
    let mut tally = Tally::default();
    let expected = run(backend, &problem, &stepwise, &start, &calls)?;
    let finite =
        |states: &[Array]| states.iter().all(|array| array.to_f64().iter().all(|value| value.is_finite()));
    tally.finite += usize::from(expected.last().is_some_and(|states| finite(states)));
    if problem.shape.cells() <= CELLS_ON_CPU {
        let cpu = CpuBackend::new();
        let plan = cpu.plan(&problem, &Options::default())?;
        let by_cpu = run(&cpu, &problem, &plan, &start, &calls)?;
        tally.on_cpu += 1;
        tally.wrong.extend(
            difference(&problem, &calls, &expected, &by_cpu)
                .map(|how| format!("{words}\n    stepwise against the CPU: {how}")),
        );
    }
    for (what, plan) in plans {
        match run(backend, &problem, &plan, &start, &calls) {
            Ok(got) => {
                tally.runs[protocol(&plan)] += 1;
                let how = difference(&problem, &calls, &got, &expected);
                tally
                    .wrong
                    .extend(how.map(|how| format!("{words}\n    {what}: {how}\n    {}", plan.summary())));
            }
            Err(error) if is_excused(&what, &error) => {}
            Err(error) => tally.wrong.push(format!("{words}\n    {what}: {error}\n    {}", plan.summary())),
        }
    }
    Ok(tally)
}

/// The domains in progress, with the times when they began: a hang must be reported from outside, because a
/// kernel that waits for ever never returns.
#[derive(Default)]
struct Watch(Mutex<BTreeMap<usize, Instant>>);

impl Watch {
    fn set(&self, number: usize, since: Option<Instant>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match since {
            Some(since) => all.insert(number, since),
            None => all.remove(&number),
        };
    }

    /// Ends the process when a domain takes too long; returns once all are done.
    fn guard(&self, done: &AtomicUsize, all: usize) {
        while done.load(Ordering::Relaxed) < all {
            std::thread::sleep(Duration::from_millis(200));
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((number, _)) = all.iter().find(|(_, since)| since.elapsed() > DEADLINE) {
                let words = domains::random(*number, SEED + *number as u64)
                    .map(|(problem, _)| domains::words(&problem, *number, SEED + *number as u64));
                eprintln!("hangs: {}", words.unwrap_or_else(|error| error.to_string()));
                std::process::abort();
            }
        }
    }
}

#[test]
#[ignore = "takes minutes and a device: gpu/run.sh --stress"]
fn every_protocol_keeps_its_bits_for_thousands_of_steps() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let (watch, done, all) = (Watch::default(), AtomicUsize::new(0), Mutex::new(Tally::default()));
    let numbers: Vec<usize> = (0..DOMAINS).collect();
    let [first, step] = part();
    let here = DOMAINS.saturating_sub(first).div_ceil(step);
    std::thread::scope(|scope| {
        scope.spawn(|| watch.guard(&done, here));
        // Side by side: kernels then meet blocks of others on the device, and none finds it empty.
        each(&numbers, |&number| {
            let begun = Instant::now();
            watch.set(number, Some(begun));
            let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| stress(&backend, number)));
            watch.set(number, None);
            done.fetch_add(1, Ordering::Relaxed);
            let failed =
                |why: String| Tally { wrong: vec![format!("domain {number}: {why}")], ..Tally::default() };
            let found = match found {
                Ok(found) => found.unwrap_or_else(|error| failed(error.to_string())),
                Err(_) => failed("it panicked, see above".to_owned()),
            };
            println!("domain {number}: {:?} runs, {:.1} s", found.runs, begun.elapsed().as_secs_f64());
            let mut all = all.lock().unwrap();
            found.wrong.iter().for_each(|wrong| println!("{wrong}"));
            (0..PROTOCOLS).for_each(|family| all.runs[family] += found.runs[family]);
            all.on_cpu += found.on_cpu;
            all.finite += found.finite;
            all.wrong.extend(found.wrong);
        });
    });
    let Tally { runs, on_cpu, finite, wrong } = all.into_inner().unwrap();
    let [neighbours, grid, streaming, whole, alone, tagged] = runs;
    println!(
        "{here} domains, {STEPS} steps each: {neighbours} runs that wait for neighbours, {grid} for all, {streaming} streaming, \
         {whole} of several blocks that hold the whole domain, {tagged} with tags, {alone} of one; {on_cpu} domains on the CPU too, {finite} finite at the end; {} differ",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    if here < DOMAINS {
        return;
    }
    assert!(runs.iter().zip(DOMAINS_EACH).all(|(&runs, least)| runs >= least), "too few runs of a protocol");
    assert!(finite >= DOMAINS / 2 && on_cpu >= 5);
}

/// What the test above runs is compiled here by any number of processes, each a part of the domains: a process compiles
/// one kernel at a time. The test itself is for one process, because the device runs kernels of several in turn, and
/// they would never meet.
#[test]
#[ignore = "for the test of every protocol: gpu/run.sh --stress"]
fn the_kernels_of_every_protocol_are_compiled() {
    let Some(backend) = present("cuda", CudaBackend::new()) else { return };
    let numbers: Vec<usize> = (0..DOMAINS).collect();
    let wrong = Mutex::new(Vec::new());
    each(&numbers, |&number| {
        let case = Case::of(&backend, number).unwrap();
        for (what, plan) in [("stepwise".to_owned(), case.stepwise)].into_iter().chain(case.plans) {
            match backend.compile(&case.problem, &plan, true) {
                Err(error) if !is_excused(&what, &error) => {
                    let how = format!("{}\n    {what}: {error}\n    {}", case.words, plan.summary());
                    wrong.lock().unwrap_or_else(PoisonError::into_inner).push(how);
                }
                _ => {}
            }
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} do not compile:\n{}", wrong.len(), wrong.join("\n"));
}

/// The tests above rely on this: every protocol has plans, and many, for its domains.
#[test]
fn every_protocol_has_plans_for_the_domains() {
    for device in ["v100", "a100", "h200"].map(|name| DeviceSpec::preset(name).unwrap()) {
        let mut domains_of = [0; PROTOCOLS];
        for number in 0..DOMAINS {
            let seed = SEED + number as u64;
            let (problem, _) = domains::random(number, seed).unwrap();
            let all = plans(&device, &problem, number, &mut Rng::with_seed(seed)).unwrap();
            let mut present = [false; PROTOCOLS];
            all.iter().for_each(|(_, plan)| present[protocol(plan)] = true);
            (0..PROTOCOLS).for_each(|protocol| domains_of[protocol] += usize::from(present[protocol]));
        }
        assert!(
            domains_of.iter().zip(DOMAINS_EACH).all(|(&domains, least)| domains >= least),
            "{}: {domains_of:?}",
            device.name
        );
    }
}

/// So they do on this: if one value is wrong by a thousandth, in the end most values differ.
#[test]
fn a_lattice_forgets_no_difference() {
    let backend = CpuBackend::new();
    for extents in [&[127][..], &[17, 23], &[9, 7, 11]] {
        for (seed, dtype) in (0..6).flat_map(|seed| [(seed, DType::F32), (seed, DType::F64)]) {
            let program = domains::lattice(&mut Rng::with_seed(seed), extents.len()).unwrap();
            let mut problem = Problem::new(program.into(), Shape::new(extents).unwrap(), dtype).unwrap();
            // Ghosts that never change pull towards order: the hardest case.
            problem.set_boundaries(Boundaries::all(Boundary::Constant(0.3)));
            let start = (0..problem.program.fields().len() as u64)
                .map(|field| Start::Random { seed: seed + 99 * field, low: 0.05, high: 0.95 })
                .map(|start| start.fill(&problem.shape, dtype).unwrap());
            let start: Vec<Array> = start.collect();
            let mut other = start.clone();
            let middle = problem.shape.cells() / 2;
            match &mut other[0] {
                Array::F32(values) => values[middle] *= 1.001,
                Array::F64(values) => values[middle] *= 1.001,
            }
            let plan = backend.plan(&problem, &Options::default()).unwrap();
            let [a, b] = [start, other]
                .map(|start| run(&backend, &problem, &plan, &start, &[400]).unwrap()[0][0].to_f64());
            let far = a.iter().zip(&b).filter(|(a, b)| (*a - *b).abs() > 1e-3).count();
            assert!(2 * far > a.len(), "{} {seed} {dtype}: {far} of {}", problem.program.name(), a.len());
        }
    }
}

#[test]
fn a_difference_is_found_where_it_first_shows() {
    let program = abide_core::catalogue::find("wave").unwrap().program(2).unwrap();
    let problem = Problem::new(program.into(), Shape::new(&[3, 5]).unwrap(), DType::F32).unwrap();
    let state = vec![Array::F32(vec![1.0; 15]), Array::F32(vec![2.0; 15])];
    let a = vec![state.clone(), state.clone(), state];
    let mut b = a.clone();
    assert_eq!(difference(&problem, &[1, 4, 9], &a, &b), None);
    for call in [1, 2] {
        let Array::F32(values) = &mut b[call][1] else { panic!("the fields are f32") };
        values[7] = -2.0;
        values[9] = 2.0f32.next_up();
    }
    let told = difference(&problem, &[1, 4, 9], &a, &b).unwrap();
    assert!(
        told.contains("after 5 steps") && told.contains("2 cells of w differ, first Some([0, 1, 2])"),
        "{told}"
    );
}
