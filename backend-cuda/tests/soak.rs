//! Slabs of random domains on several devices for minutes: random cuts, depths and calls never differ by a bit from one
//! device, and never hang.
//!
//! Run where there are devices: `ABIDE_SOAK=600 cargo test --release -p abide-cuda --test integration -- soak:: --ignored --nocapture`.
//! One device is taken several times.

use crate::{common, domains, line};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use abide_core::plan::{Depth, Execution, Options, Tune};
use abide_core::slabs::Slabs;
use abide_core::{Array, Backend, Error, Plan, Problem, Result};
use abide_cuda::{CudaBackend, device_count};
use abide_ranks::Ranked;
use fastrand::Rng;

use common::present;
use line::{giving, weighted};

/// The first seed; domain `n` is made of seed `SEED + n`.
const SEED: u64 = 70_021;
/// Seconds to go on for, unless `ABIDE_SOAK` says otherwise.
const SECONDS: u64 = 600;
/// The time after which a domain counts as hanging: an exchange that never ends must be aborted before.
const DEADLINE: Duration = Duration::from_secs(120);

/// How the slabs of a run lie.
struct Segmented {
    /// The device of each slab.
    numbers: Vec<usize>,
    weights: Vec<usize>,
    options: Options,
    calls: Vec<u64>,
    /// Whether passes give planes to the slabs beside them, where their kernels can.
    gives: bool,
}

impl Segmented {
    fn random(rng: &mut Rng, devices: usize) -> Segmented {
        let slabs = rng.usize(2..=4);
        let depth = if rng.bool() { Depth::Auto } else { Depth::Steps(rng.u32(1..=8)) };
        let execution = if rng.bool() { Execution::Auto } else { Execution::Streaming };
        Segmented {
            // Any two neighbours may share a device.
            numbers: (0..slabs)
                .map(|slab| if rng.u8(0..4) > 0 { slab } else { rng.usize(0..4) } % devices)
                .collect(),
            weights: (0..slabs).map(|_| rng.usize(1..=4)).collect(),
            options: Options { depth, execution, tune: Tune::Off, ..Options::default() },
            calls: (0..3).map(|_| rng.u64(1..400)).collect(),
            gives: rng.bool(),
        }
    }

    fn ranked(&self, devices: &[Arc<CudaBackend>]) -> Result<Ranked> {
        let devices = self.numbers.iter().map(|&at| devices[at].clone());
        weighted(devices.zip(self.weights.iter().copied()).collect())
    }
}

/// The fields after each call, and how planes were exchanged: by which way, or given by the steps themselves.
type Followed = (Vec<Vec<Array>>, &'static str);

/// Returns the fields after each call, by a backend's own plan, and how planes went from device to device.
fn run(
    backend: &dyn Backend,
    problem: &Problem,
    options: &Options,
    start: &[Array],
    calls: &[u64],
    gives: bool,
) -> Result<Followed> {
    let mut plan = backend.plan(problem, options)?;
    if let Some(given) = giving(problem, &plan).filter(|_| gives) {
        plan = given;
    }
    let mut session = backend.open(problem, &plan, start.to_vec())?;
    let mut states = Vec::new();
    for &steps in calls {
        session.advance(steps)?;
        states.push((0..start.len()).map(|field| session.read(field)).collect::<Result<_>>()?);
    }
    let way = session.take_ranks()?.first().map_or("", |rank| rank.exchange);
    let slabs = plan.ranks.as_ref().map_or(&[][..], |ranks| &ranks.slabs);
    let gives = |plan: &Plan| plan.warp_streaming().is_some_and(|streaming| streaming.edges.is_some());
    let word = if way == "stores" && slabs.first().is_some_and(gives) { "given by steps" } else { way };
    Ok((states, word))
}

/// Runs a random domain on a random cut; `None` where it cannot be cut so.
fn follow(devices: &[Arc<CudaBackend>], number: usize) -> Result<Option<(u64, &'static str)>> {
    let seed = SEED + number as u64;
    let (problem, start) = domains::random(number, seed)?;
    let cut = Segmented::random(&mut Rng::with_seed(seed ^ 0x50a4), devices.len());
    if Slabs::check(&problem).is_err() || Slabs::most(&problem, 1) < cut.numbers.len() {
        return Ok(None);
    }
    let (several, way) =
        match run(&cut.ranked(devices)?, &problem, &cut.options, &start, &cut.calls, cut.gives) {
            // A plan of this kind or depth has no room.
            Err(Error::Limit { .. } | Error::Unsupported { .. }) => return Ok(None),
            other => other?,
        };
    let stepwise = Options { execution: Execution::Stepwise, tune: Tune::Off, ..Options::default() };
    let (one, _) = run(&*devices[0], &problem, &stepwise, &start, &cut.calls, false)?;
    let same = |(a, b): (&Vec<Array>, &Vec<Array>)| a.iter().zip(b).all(|(a, b)| a.same_bits(b));
    let differs = one.iter().zip(&several).position(|states| !same(states));
    let words = domains::words(&problem, number, seed);
    assert_eq!(
        differs, None,
        "{words}, slabs on {:?} by {:?}, calls {:?}",
        cut.numbers, cut.weights, cut.calls
    );
    Ok(Some((cut.calls.iter().sum(), way)))
}

#[test]
#[ignore = "takes ten minutes"]
fn slabs_of_random_domains_never_differ() -> Result<()> {
    if present("cuda", CudaBackend::new()).is_none() {
        return Ok(());
    }
    let seconds = std::env::var("ABIDE_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(SECONDS);
    let end = Instant::now() + Duration::from_secs(seconds);
    let numbers: Vec<usize> = (0..device_count()?).collect();
    let devices = CudaBackend::connected(&numbers)?;
    let (done, news) = channel();
    let work = move || {
        for number in 0.. {
            let ended = Instant::now() > end;
            if done.send((number, (!ended).then(|| follow(&devices, number)))).is_err() || ended {
                return;
            }
        }
    };
    let thread = std::thread::spawn(work);
    let (mut runs, mut steps, mut left_out) = (0, 0, 0);
    let mut ways = BTreeMap::<&str, u32>::new();
    loop {
        match news.recv_timeout(DEADLINE) {
            Ok((_, Some(Ok(Some((own, way)))))) => {
                (runs, steps) = (runs + 1, steps + own);
                *ways.entry(way).or_default() += 1;
            }
            Ok((_, Some(Ok(None)))) => left_out += 1,
            Ok((number, Some(Err(error)))) => panic!("domain {number}: {error}"),
            Ok((_, None)) => break,
            Err(RecvTimeoutError::Timeout) => panic!("hangs after {runs} domains: the next has not ended"),
            Err(RecvTimeoutError::Disconnected) => {
                let why = thread.join().expect_err("the thread ended before its time");
                std::panic::resume_unwind(why);
            }
        }
    }
    println!(
        "{runs} domains on {} devices, {steps} steps, no bit differed; {left_out} could not be cut so; {ways:?}",
        numbers.len()
    );
    assert!(runs > 0);
    Ok(())
}
