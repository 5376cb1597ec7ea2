use crate::recipe::plan_recipe;
use abide_core::domain::Axes;
use abide_core::plan::Recipe;
use abide_core::plan::streaming::carry::Carry;
use abide_core::plan::streaming::portable::{Arrival, Configuration, Handover};
use abide_core::{DType, Depth, DeviceSpec, Options, Plan, Problem, catalogue};

use super::{plan_portable_streaming, portable_streaming_plans};
use crate::portable::tests::{adapters, problem};
use abide_core::domain::Boundary;

fn problems() -> Vec<Problem> {
    let cases: [(&str, &[usize]); 8] = [
        ("2d5pt", &[509, 1021]),
        ("2d5pt", &[9, 11]),
        ("2d25pt", &[97, 89]),
        ("gray-scott", &[300, 31]),
        ("fdtd-tm", &[64, 400]),
        ("3d7pt", &[61, 67, 71]),
        ("3d13pt", &[33, 200, 64]),
        ("heat-conductivity", &[1, 33, 200]),
    ];
    let mut all = Vec::new();
    for (name, extents) in cases {
        for boundary in ["fixed", "periodic", "constant=0.5", "y-=constant=1,y+=fixed,x=periodic"] {
            all.extend([DType::F32, DType::F64].map(|dtype| problem(name, extents, dtype, boundary)));
        }
    }
    all
}

/// The kept cells of neighbouring windows meet, none is spoiled, and every cell of the domain is kept.
#[test]
fn every_plan_keeps_to_the_limits_and_covers_the_domain() {
    for device in adapters() {
        for problem in problems() {
            let plans = portable_streaming_plans(&problem, &device, &Options::default()).unwrap();
            assert!(
                !plans.is_empty(),
                "{} on {} bytes",
                problem.program.name(),
                device.shared_bytes_per_block
            );
            let axes = Axes::of(problem.shape.dimensions());
            let (extents, radius) =
                (axes.order(problem.shape.padded()), axes.order(problem.program.radius()));
            let sides = axes.order(problem.boundaries.0);
            for plan in &plans {
                let streaming = plan.portable_streaming().unwrap();
                let what = plan.summary();
                assert!(streaming.shared_bytes <= device.shared_bytes_per_block, "{what}");
                assert!(streaming.threads_per_block() <= device.threads_per_block, "{what}");
                assert_eq!(plan.depth as usize, streaming.configuration.depth);
                assert!((1..=extents[0]).contains(&streaming.configuration.shares), "{what}");
                for axis in [1, 2] {
                    let (window, tile, count) =
                        (streaming.window()[axis - 1], streaming.tile()[axis - 1], streaming.tiles[axis - 1]);
                    let [below, above] = streaming.margin[axis];
                    let first = -(streaming.lead[axis][0] as isize);
                    let end = first + ((count - 1) * tile + window) as isize;
                    assert!(count == 1 || tile > 0, "{what}");
                    // The last window holds the domain's end, and the cells that are tapped beyond it; the
                    // window before it does not.
                    let needed = (extents[axis] + streaming.lead[axis][1]) as isize;
                    assert!(end >= needed && (count == 1 || end - tile as isize <= needed), "{what}");
                    // Each step spoils at most a radius on either side, unless cells there are given their
                    // values.
                    let lanes = if axis == 2 { streaming.lanes } else { 1 };
                    assert!(
                        [window, below, above].into_iter().all(|cells| cells.is_multiple_of(lanes)),
                        "{what}"
                    );
                    for (side, margin) in [below, above].into_iter().enumerate() {
                        let spoiled =
                            streaming.configuration.depth * problem.program.stages().len() * radius[axis];
                        assert!(margin <= spoiled.next_multiple_of(lanes));
                        let lead = match sides[axis][side] {
                            Boundary::Periodic => margin,
                            Boundary::Fixed => 0,
                            _ => radius[axis].next_multiple_of(lanes).min(margin),
                        };
                        assert_eq!(streaming.lead[axis][side], lead, "{what}");
                    }
                }
                assert!(streaming.valid > 0.0 && streaming.valid <= 1.0, "{what}: {}", streaming.valid);
            }
            assert!(plans.is_sorted_by(|a, b| a.estimated_seconds <= b.estimated_seconds));
        }
    }
}

/// A stage reads neighbours in the arriving plane alone: for a star of radius r, 2r cells along each axis of
/// the plane.
#[test]
fn a_star_asks_for_its_plane_alone() {
    for (name, dimensions, radius) in [("2d5pt", 2, 1), ("2ds25pt", 2, 6), ("3d7pt", 3, 1), ("3d13pt", 3, 2)]
    {
        let program = catalogue::find(name).unwrap().program(dimensions).unwrap().simplified(DType::F64);
        let axes = Axes::of(dimensions);
        let arrivals = Arrival::all(&Carry::all(program.stages(), 1, axes), axes, [8, 32], [2, 2]);
        let arrival = &arrivals[0];
        assert_eq!((arrivals.len(), arrival.delay()), (1, radius), "{name}");
        assert_eq!(arrival.taps.len(), 2 * radius * (dimensions - 1) + 1, "{name}");
        assert_eq!(arrival.carry.slots.len(), 2 * radius, "{name}");
        assert!(arrival.taps.iter().all(|tap| tap.offset[3 - dimensions] == 0), "{name}");
    }
}

/// The result is behind the arriving plane by a radius per step, and by a plane per level except the first,
/// unless threads shuffle.
#[test]
fn levels_are_a_plane_apart_unless_threads_shuffle() {
    let device = &adapters()[3];
    let behind = |name: &str, extents: &[usize], depth, handover| {
        let options = Options { depth: Depth::Steps(depth), ..Options::default() };
        let plans =
            portable_streaming_plans(&problem(name, extents, DType::F32, "fixed"), device, &options).unwrap();
        plans
            .iter()
            .filter_map(Plan::portable_streaming)
            .find(|streaming| streaming.configuration.handover == handover)
            .unwrap()
            .behind
    };
    for (handover, apart) in [(Handover::Slots, 1), (Handover::DoubleSlots, 1), (Handover::Shuffles, 0)] {
        assert_eq!(behind("2d5pt", &[999, 999], 1, handover), 1);
        assert_eq!(behind("2d5pt", &[999, 999], 6, handover), 6 + 5 * apart);
        // Yee's two stages tap to one side each: one of them waits for a plane.
        assert_eq!(behind("fdtd-tm", &[999, 999], 3, handover), 3 + 5 * apart);
    }
    assert_eq!(behind("3d13pt", &[99, 99, 99], 3, Handover::DoubleSlots), 6 + 2);
}

#[test]
fn what_planes_cannot_do_is_said() {
    let device = &adapters()[3];
    let refused = |name: &str, extents: &[usize], boundary: &str| {
        plan_portable_streaming(&problem(name, extents, DType::F32, boundary), device, &Options::default())
            .unwrap_err()
            .to_string()
    };
    assert!(refused("1d3pt", &[99], "fixed").contains("axes of a domain whose planes stream"));
    assert!(refused("2d5pt", &[99, 99], "x-=mirror").contains("mirror"));
    let deep = Options { depth: Depth::Steps(400), ..Options::default() };
    let error = plan_portable_streaming(&problem("2d5pt", &[999, 999], DType::F32, "fixed"), device, &deep)
        .unwrap_err();
    assert!(error.to_string().contains("400 steps deep"), "{error}");
    // An axis without taps has nothing to mirror.
    plan_portable_streaming(
        &problem("2d5pt", &[99, 99], DType::F32, "z=mirror"),
        device,
        &Options::default(),
    )
    .unwrap();
}

#[test]
fn recipes_make_plans_again_and_wrong_numbers_none() {
    let device = &adapters()[3];
    let options = Options::default();
    let problem = problem("3d7pt", &[97, 98, 99], DType::F64, "constant=0.25");
    for plan in portable_streaming_plans(&problem, device, &options).unwrap().into_iter().step_by(37) {
        assert_eq!(plan_recipe(&Recipe::of(&plan).unwrap(), &problem, device, &options), Some(plan));
    }
    let good = Configuration {
        depth: 2,
        threads: [8, 32],
        cells: [2, 1],
        ahead: 1,
        handover: Handover::DoubleSlots,
        shares: 5,
    };
    let plan =
        |configuration| plan_recipe(&Recipe::PortableStreaming { configuration }, &problem, device, &options);
    assert!(plan(good).is_some());
    for wrong in [0, 1 << 40, usize::MAX] {
        assert_eq!(plan(Configuration { depth: wrong, ..good }), None);
        assert_eq!(plan(Configuration { threads: [8, wrong], ..good }), None);
        assert_eq!(plan(Configuration { cells: [wrong, 1], ..good }), None);
        assert_eq!(plan(Configuration { ahead: wrong, ..good }), None);
        assert_eq!(plan(Configuration { shares: wrong, ..good }), None);
    }
}

/// Rows are handed over by shuffles on devices that have them, for values that they can shuffle; nowhere
/// else.
#[test]
fn threads_shuffle_where_they_can() {
    let able = &adapters()[3];
    let unable = DeviceSpec { warp: None, ..able.clone() };
    let ways = |problem: &Problem, device: &DeviceSpec| -> Vec<Handover> {
        let plans = portable_streaming_plans(problem, device, &Options::default()).unwrap();
        plans
            .iter()
            .filter_map(Plan::portable_streaming)
            .map(|streaming| streaming.configuration.handover)
            .collect()
    };
    let large = problem("2d5pt", &[8192, 8192], DType::F32, "fixed");
    assert_eq!(ways(&large, able)[0], Handover::Shuffles);
    for (problem, device) in [
        (&large, &unable),
        (&problem("2d5pt", &[8192, 8192], DType::F64, "fixed"), able),
        (&problem("3d7pt", &[256, 256, 256], DType::F32, "fixed"), able),
    ] {
        assert!(!ways(problem, device).contains(&Handover::Shuffles));
    }
}
