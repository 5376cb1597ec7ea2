use crate::recipe::plan_recipe;
use abide_core::expr::Tap;
use abide_core::plan::Recipe;
use abide_core::plan::overlapped::{Configuration, Exchange, Source};
use abide_core::{DType, Execution, Options, Problem, catalogue};

use super::overlapped_plans;
use crate::passes::Demand;
use crate::portable::plan_portable;
use crate::portable::tests::{adapters, problem};
use crate::stepwise::plan_stepwise;

fn problems() -> Vec<Problem> {
    let cases: [(&str, &[usize]); 8] = [
        ("1d3pt", &[100_003]),
        ("2d5pt", &[509, 1021]),
        ("2d25pt", &[97, 89]),
        ("gray-scott", &[300, 31]),
        ("fdtd-tm", &[64, 400]),
        ("3d7pt", &[61, 67, 71]),
        ("heat-conductivity", &[33, 200]),
        ("life", &[9, 11]),
    ];
    let mut all = Vec::new();
    for (name, extents) in cases {
        for boundary in ["fixed", "periodic", "mirror", "constant=0.5"] {
            all.extend([DType::F32, DType::F64].map(|dtype| problem(name, extents, dtype, boundary)));
        }
    }
    all
}

#[test]
fn every_plan_keeps_to_the_limits_and_covers_the_domain() {
    for device in adapters() {
        for problem in problems() {
            let plans = overlapped_plans(&problem, &device, &Options::default()).unwrap();
            assert!(
                !plans.is_empty(),
                "{} on {} bytes",
                problem.program.name(),
                device.shared_bytes_per_block
            );
            let (extents, demand) = (problem.shape.padded(), Demand::of(&problem));
            for plan in &plans {
                let overlapped = plan.overlapped().unwrap();
                let what = plan.summary();
                assert!(overlapped.shared_bytes <= device.shared_bytes_per_block, "{what}");
                assert!(overlapped.threads_per_block() <= device.threads_per_block, "{what}");
                assert_eq!(plan.depth as usize, overlapped.configuration.depth);
                for axis in 0..3 {
                    let (tile, count) = (overlapped.tile[axis], overlapped.blocks[axis]);
                    assert!(tile * count >= extents[axis] && tile * (count - 1) < extents[axis], "{what}");
                    let [low, high] = overlapped.halo[axis];
                    assert!(low + tile + high <= overlapped.window()[axis], "{what}");
                    // Each step spoils the reach of a step on either side, unless the window holds the axis
                    // whole.
                    let spoiled = demand.reach[axis].map(|reach| reach * overlapped.configuration.depth);
                    assert!(overlapped.whole[axis] || (low >= spoiled[0] && high >= spoiled[1]), "{what}");
                    assert!(!overlapped.whole[axis] || count == 1, "{what}");
                }
                assert!(overlapped.valid > 0.0 && overlapped.valid <= 1.0);
            }
            assert!(plans.is_sorted_by(|a, b| a.estimated_seconds <= b.estimated_seconds));
        }
    }
}

/// Every tap of every cell of a window is found where the cell's owner put it, whatever the block's
/// configuration.
#[test]
fn what_threads_give_is_what_others_find() {
    let threads = [2, 3, 4];
    for name in ["3d7pt", "3d27pt", "3d13pt", "gray-scott"] {
        let program = catalogue::find(name).unwrap().program(3).unwrap().simplified(DType::F32);
        for (cells, all) in [([1, 1, 1], false), ([2, 3, 2], false), ([1, 4, 1], false), ([3, 1, 2], true)] {
            let exchange = Exchange::of(&program, threads, cells, all, true);
            let window: [usize; 3] = std::array::from_fn(|axis| threads[axis] * cells[axis]);
            let count = threads.iter().product::<usize>();
            // The word of a window's cell, as its owner writes it.
            let word = |field: usize, at: [usize; 3]| {
                let owner = (0..3).fold(0, |number, axis| number * threads[axis] + at[axis] / cells[axis]);
                let place = (0..3).fold(0, |number, axis| number * cells[axis] + at[axis] % cells[axis]);
                let rank = exchange.fields[field].as_ref().and_then(|given| given.ranks[place]);
                (owner, place, rank.map(|rank| rank * count + owner))
            };
            for tap in program.stages()[0].dag.taps() {
                for at in (0..window.iter().product::<usize>())
                    .map(|i| [i / (window[1] * window[2]), i / window[2] % window[1], i % window[2]])
                {
                    check_tap(&exchange, tap, at, window, count, &word);
                }
            }
        }
    }
}

fn check_tap(
    exchange: &Exchange,
    tap: Tap,
    at: [usize; 3],
    window: [usize; 3],
    count: usize,
    word: &dyn Fn(usize, [usize; 3]) -> (usize, usize, Option<usize>),
) {
    let field = usize::from(tap.field);
    let (thread, cell, _) = word(field, at);
    let found = exchange.source(cell, tap);
    if let Source::Other(rank, distance) = found {
        let word = (rank * count + thread) as isize + distance + exchange.pad as isize;
        assert!(
            word >= 0 && (word as usize) < exchange.words(),
            "a tap beyond the window stays in the array"
        );
    }
    let there: [isize; 3] = std::array::from_fn(|axis| at[axis] as isize + tap.offset[axis] as isize);
    if (0..3).any(|axis| there[axis] < 0 || there[axis] >= window[axis] as isize) {
        return;
    }
    let (owner, place, there) = word(field, there.map(|index| index as usize));
    match found {
        Source::Own(own) => assert_eq!((thread, own), (owner, place)),
        Source::Other(rank, distance) => {
            assert_eq!(Some((rank * count + thread).wrapping_add_signed(distance)), there);
        }
    }
}

#[test]
fn small_domains_are_held_whole_for_hundreds_of_steps() {
    for device in &adapters()[1..] {
        for (name, extents) in
            [("1d3pt", &[500][..]), ("2d5pt", &[30, 41]), ("3d7pt", &[5, 6, 7]), ("fdtd-tm", &[21, 19])]
        {
            for boundary in ["fixed", "periodic", "mirror", "constant=1"] {
                let problem = problem(name, extents, DType::F32, boundary);
                let plan = plan_portable(&problem, device, &Options::default()).unwrap();
                let overlapped = plan.overlapped().unwrap();
                assert_eq!((overlapped.blocks, plan.depth), ([1; 3], 512), "{name} {boundary}");
                let ghosts = |axis: usize| {
                    if boundary == "fixed" { [0; 2] } else { [problem.program.radius()[axis]; 2] }
                };
                assert_eq!(overlapped.halo, [ghosts(0), ghosts(1), ghosts(2)]);
            }
        }
    }
}

/// One-sided stages need half the halo of a symmetric one, unless a mirror turns them round.
#[test]
fn halos_are_as_wide_as_a_step_reaches() {
    let reach = |boundary| Demand::of(&problem("fdtd-tm", &[99, 99], DType::F32, boundary)).reach;
    assert_eq!(reach("fixed"), [[0, 0], [1, 1], [1, 1]]);
    assert_eq!(reach("y=mirror,x=periodic"), [[0, 0], [2, 2], [1, 1]]);
}

#[test]
fn large_domains_are_advanced_several_steps_at_once() {
    let device = &adapters()[3];
    for (name, extents, least) in [
        ("2d5pt", &[512, 512][..], 6),
        ("2d5pt", &[2304, 2304], 4),
        ("2d5pt", &[8192, 8192], 4),
        ("2d25pt", &[2304, 2304], 2),
        ("gray-scott", &[1024, 1024], 3),
    ] {
        let problem = problem(name, extents, DType::F32, "fixed");
        let plan = plan_portable(&problem, device, &Options::default()).unwrap();
        assert!(plan.depth >= least && plan.execution != Execution::Stepwise, "{name}: {}", plan.summary());
        let stepwise = plan_stepwise(&problem, device, &Options::default()).unwrap();
        println!(
            "{name} {}: {:.1} times a step; {}",
            problem.shape,
            stepwise.estimated_seconds / plan.estimated_seconds,
            plan.summary()
        );
    }
}

#[test]
fn numbers_that_no_form_has_give_no_plan() {
    let device = &adapters()[3];
    let problem = problem("2d5pt", &[99, 99], DType::F32, "fixed");
    let good = Configuration { depth: 4, threads: [1, 8, 32], cells: [1, 4, 2], double: true };
    let plan = |configuration| {
        plan_recipe(&Recipe::Overlapped { configuration }, &problem, device, &Options::default())
    };
    assert!(plan(good).is_some());
    for wrong in [0, 1 << 40, usize::MAX] {
        assert_eq!(plan(Configuration { depth: wrong, ..good }), None);
        assert_eq!(plan(Configuration { threads: [1, wrong, 32], ..good }), None);
        assert_eq!(plan(Configuration { cells: [1, 4, wrong], ..good }), None);
    }
}
