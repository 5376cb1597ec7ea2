//! Streaming planes: every depth, configuration and division of a run keeps the bound of a step, and the bits
//! of its parts.

use crate::common;

use abide_core::backend::Backend;
use abide_core::{DType, Depth, DeviceSpec, Error, LinearStencil, Plan, Program, catalogue};
use abide_planner::portable_streaming_plans;
use common::random::{boundary, check_cuts, in_parts, pick, program, streaming};
use common::{backend, check_plan, problem, values};
use fastrand::Rng;

/// The bound of a step holds whatever the depth, the configuration and the calls; tried on random stencils,
/// extents and boundaries.
#[test]
fn depth_form_and_calls_leave_the_bound_as_it_is() {
    let Some(backend) = backend() else { return };
    let mut tried = 0;
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let program = program(seed, &mut rng);
        if program.dimensions() == 1 {
            continue;
        }
        let most = [0, 0, 150, 30][program.dimensions()];
        let mut extents: Vec<usize> = (0..program.dimensions()).map(|_| rng.usize(1..=most)).collect();
        // Rows of whole vectors every other time.
        if let (Some(columns), true) = (extents.last_mut(), rng.bool()) {
            *columns = columns.next_multiple_of(4);
        }
        let dtype = if rng.bool() { DType::F32 } else { DType::F64 };
        let boundary = boundary(&mut rng, |side| !side.shows_this_side());
        let Ok(problem) = problem(program, &extents, dtype, &boundary) else { continue };
        let depth = rng.u32(1..=5);
        let Some(plan) = pick(&backend, &problem, portable_streaming_plans, depth, &mut rng) else {
            continue;
        };
        let fields = values(&problem, seed);
        println!("seed {seed}: {} {} {boundary} {}", problem.program.name(), problem.shape, plan.summary());
        check_plan(&backend, &problem, &plan, &fields, 4);
        let steps = 2 * u64::from(plan.depth) + rng.u64(1..=3);
        check_cuts(&backend, &problem, &plan, &fields, steps, &mut rng);
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}

/// Every entry of the catalogue, both types, the boundaries that planes have: two steps per dispatch and one
/// step that is left over.
#[test]
fn every_entry_streams() {
    let Some(backend) = backend() else { return };
    let mut rng = Rng::with_seed(7);
    for entry in common::sampled(catalogue::plain(), 4) {
        for dimensions in entry.dimensions.clone().filter(|&dimensions| dimensions > 1) {
            for dtype in [DType::F32, DType::F64] {
                // Compiling takes longer than running: of all boundaries one, another for each entry, unless all cases run.
                let one = (dimensions + entry.name.len()) % 3;
                let turns = match dtype {
                    DType::F32 if common::is_whole() => 0..3,
                    DType::F32 => one..one + 1,
                    DType::F64 => 2..3,
                };
                for boundary in turns.map(|turn| ["fixed", "periodic", "constant=0.5"][turn]) {
                    let program = entry.program(dimensions).unwrap();
                    let extents = &[13, 29, [67, 68][rng.usize(..2)]][3 - dimensions..];
                    let problem = problem(program, extents, dtype, boundary).unwrap();
                    let device = DeviceSpec { registers_per_thread: Some(128), ..backend.device().clone() };
                    let plans = match portable_streaming_plans(&problem, &device, &streaming(Depth::Steps(2)))
                    {
                        Ok(plans) if !plans.is_empty() => plans,
                        other => panic!("{} {dtype} {boundary}: {other:?}", entry.name),
                    };
                    let plan = &plans[rng.usize(..plans.len())];
                    match backend.open(&problem, plan, values(&problem, 3)) {
                        Ok(_) => drop(check_plan(&backend, &problem, plan, &values(&problem, 3), 3)),
                        // The entry has functions that WGSL has for f32 only.
                        Err(Error::Unsupported { .. }) => assert_eq!(dtype, DType::F64),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    }
}

/// A cut with many shares and one with few have the same bits, and so has a domain of a single window.
#[test]
fn shares_and_windows_leave_the_bits_as_they_are() {
    let Some(backend) = backend() else { return };
    let star = [([-2, 0], 0.11), ([0, -1], 0.2), ([0, 0], 0.3), ([0, 1], 0.17), ([1, 0], 0.19)];
    let program = || Program::new(&LinearStencil::new("star", &star).unwrap()).unwrap();
    for boundary in ["fixed", "periodic", "constant=0.5"] {
        let problem = problem(program(), &[97, 60], DType::F32, boundary).unwrap();
        let device = DeviceSpec { registers_per_thread: Some(64), ..backend.device().clone() };
        let plans = portable_streaming_plans(&problem, &device, &streaming(Depth::Steps(2))).unwrap();
        let by = |windows: usize, shares: usize| {
            let fits = |plan: &&Plan| {
                plan.portable_streaming().is_some_and(|p| {
                    (p.tiles[1] > 1) == (windows > 1) && (p.configuration.shares > 1) == (shares > 1)
                })
            };
            plans.iter().find(fits).map(|plan| {
                in_parts(&backend, &problem, plan, &values(&problem, 5), 7, &mut Rng::with_seed(2))
            })
        };
        let found: Vec<_> =
            [(1, 1), (1, 2), (2, 1), (2, 2)].into_iter().filter_map(|(w, s)| by(w, s)).collect();
        assert!(found.len() > 2, "{}", found.len());
        assert!(found.iter().all(|fields| fields[0].same_bits(&found[0][0])), "{boundary}");
    }
}
