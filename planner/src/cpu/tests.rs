//! Pipelines against a simulation of their rings, and the planner's choices on a machine of two cores.

use std::sync::Arc;

use abide_core::device::Caches;
use abide_core::plan::{Cpu, Levels, Output, Schedule, Tiling};
use abide_core::program::{Centring, Definition};
use abide_core::{
    CachePolicy, DType, Depth, DeviceSpec, Error, Execution, Options, Plan, Problem, Shape, catalogue,
};

use super::plan_cpu;

fn problem(name: &str, extents: &[usize]) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), DType::F64).unwrap()
}

/// Two cores with 2 MiB each to themselves.
fn machine() -> DeviceSpec {
    DeviceSpec {
        multiprocessors: 2,
        registers: None,
        caches: Some(Caches { level1_bytes: None, level2_bytes: Some(2 << 20) }),
        l2_bytes: 64 << 20,
        memory_bandwidth: 40e9,
        f64_flops: 166e9,
        ..DeviceSpec::preset("h200").unwrap()
    }
}

fn options(execution: Execution, depth: Depth) -> Options {
    Options { execution, depth, ..Options::default() }
}

fn tiling(plan: &Plan) -> &Tiling {
    match &plan.schedule {
        Schedule::Cpu(Cpu { tiling: Some(tiling), .. }) => tiling,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_star_of_radius_one_is_a_pipeline_of_three_planes_a_level() {
    let levels = Levels::new(&problem("2d5pt", &[64, 64]), 4, 1);
    assert_eq!(levels.levels.iter().map(|level| level.lag).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!(levels.levels.iter().map(|level| level.beyond[1]).collect::<Vec<_>>(), [3, 2, 1, 0]);
    assert_eq!((levels.halo, levels.stream), ([0, 4, 4], 1));
    // Three planes for each of three levels, in one ring.
    assert!(levels.rings.iter().all(|ring| (ring.planes, ring.storage) == (9, 0)) && levels.storages == [9]);
    assert_eq!(levels.rings.iter().map(|ring| ring.shift).collect::<Vec<_>>(), [0, 2, 4]);
    assert_eq!(levels.levels[3].outputs, [Output { field: 0, ring: None, last: true }]);
    // Sides of 10 cells grow by 6, 4, 2 and 0.
    let overlap = levels.overlap([1, 10, 10], [false, true, true]);
    assert!((overlap - (256.0 + 196.0 + 144.0 + 100.0) / 400.0).abs() < 1e-12);
}

#[test]
fn on_a_line_two_storages_serve_any_depth() {
    assert_eq!(Levels::new(&problem("1d3pt", &[999]), 50, 1).storages, [1, 1]);
}

/// Carries the pipeline out on planes that know their number and level, and checks every plane that is read.
#[test]
fn rings_hold_what_later_levels_read() {
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            let problem = problem(entry.name, &[64; 3][..dimensions]);
            let program = problem.program.simplified(DType::F64);
            for (depth, block) in [(1, 1), (2, 1), (3, 2), (4, 3), (5, 4)] {
                let levels = Levels::new(&problem, depth, block);
                let mut storages: Vec<_> = levels.storages.iter().map(|&planes| vec![None; planes]).collect();
                let lag = levels.levels.iter().map(|level| level.lag).max().unwrap() as isize;
                for front in (-40..40 + lag).step_by(block) {
                    for (number, level) in levels.levels.iter().enumerate() {
                        for plane in (0..block as isize).map(|i| front - level.lag as isize + i) {
                            let footprint = &program.stages()[level.stage].footprint;
                            for (field, radius) in footprint.field_radius.iter().enumerate() {
                                let (Some(radius), Some(ring)) = (radius, level.sources[field]) else {
                                    continue;
                                };
                                let (ring, reach) = (levels.rings[ring], radius[levels.stream] as isize);
                                let from = levels.levels[..number].iter().rposition(|level| {
                                    level.outputs.iter().any(|output| output.field == field)
                                });
                                for read in plane - reach..=plane + reach {
                                    let slot = (read - ring.shift as isize).rem_euclid(ring.planes as isize)
                                        as usize;
                                    let held = storages[ring.storage][slot];
                                    // Before the first planes there are none to hold.
                                    if read >= -40 {
                                        assert_eq!(
                                            held,
                                            Some((from.unwrap(), field, read)),
                                            "{} {depth}",
                                            entry.name
                                        );
                                    }
                                }
                            }
                            for output in &level.outputs {
                                let Some(ring) = output.ring.map(|ring| levels.rings[ring]) else { continue };
                                let slot =
                                    (plane - ring.shift as isize).rem_euclid(ring.planes as isize) as usize;
                                storages[ring.storage][slot] = Some((number, output.field, plane));
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn domains_beyond_the_caches_stream_and_those_within_persist() {
    let auto = Options::default();
    for (name, extents) in [("2d5pt", &[8192, 8192][..]), ("gray-scott", &[2048, 2048]), ("3d7pt", &[384; 3])]
    {
        let plan = plan_cpu(&problem(name, extents), &machine(), &auto).unwrap();
        assert_eq!(plan.execution, Execution::Streaming, "{name}");
        assert!(plan.depth > 1 && tiling(&plan).overlap < 1.3, "{}", plan.summary());
        assert!(plan.summary().starts_with("2.5-D streaming, temporal depth "), "{}", plan.summary());
        assert!(tiling(&plan).ring_bytes <= 2 << 20, "{}", plan.explain());
    }
    let small = plan_cpu(&problem("2d5pt", &[128, 2048]), &machine(), &auto).unwrap();
    let tiles = tiling(&small).tiles.iter().product::<usize>();
    assert_eq!((small.execution, tiles), (Execution::Persistent, 2), "{}", small.summary());
    // Rows of sums cost little beside their cells, and both arrays do not quite fit in the cores' own caches.
    let short = plan_cpu(&problem("2d5pt", &[512, 512]), &machine(), &auto).unwrap();
    assert_eq!(short.execution, Execution::Persistent, "{}", short.summary());
    let tiny = plan_cpu(&problem("2d5pt", &[16, 16]), &machine(), &auto).unwrap();
    assert_eq!(tiny.execution, Execution::Stepwise, "{}", tiny.summary());
}

#[test]
fn slower_memory_asks_for_deeper_passes_and_smaller_caches_for_smaller_tiles() {
    let problem = problem("2d5pt", &[8192, 8192]);
    let plan = |device: DeviceSpec, depth| {
        plan_cpu(&problem, &device, &options(Execution::Streaming, depth)).unwrap()
    };
    let slow = DeviceSpec { memory_bandwidth: 10e9, ..machine() };
    assert!(plan(slow, Depth::Auto).depth >= plan(machine(), Depth::Auto).depth);
    let fast = DeviceSpec { memory_bandwidth: 1e13, ..machine() };
    assert!(plan(fast, Depth::Auto).depth < plan(machine(), Depth::Auto).depth);
    let caches = Some(Caches { level1_bytes: None, level2_bytes: Some(256 << 10) });
    let small = plan(DeviceSpec { caches, ..machine() }, Depth::Steps(8));
    let large = plan(machine(), Depth::Steps(8));
    assert!(tiling(&small).tile[2] < tiling(&large).tile[2]);
}

#[test]
fn levels_do_several_planes_a_turn_where_a_plane_is_a_row_and_rings_have_room() {
    let plan = |name, extents: &[usize]| {
        plan_cpu(&problem(name, extents), &machine(), &options(Execution::Streaming, Depth::Auto)).unwrap()
    };
    let rows = plan("2d5pt", &[8192, 8192]);
    assert!(tiling(&rows).block > 1, "{}", rows.explain());
    // Rows that pass through the first-level cache before the next row reads them again are worth more tiles.
    assert!(tiling(&rows).tile[2] <= 1366, "{}", rows.explain());
    // A plane of many rows has few turns.
    let planes = plan("3d7pt", &[384; 3]);
    assert_eq!(tiling(&planes).block, 1, "{}", planes.explain());
}

#[test]
fn what_is_asked_is_kept_to_or_refused() {
    let problem = problem("heat", &[100, 90]);
    let plan = |execution, depth| plan_cpu(&problem, &machine(), &options(execution, depth));
    for depth in [1, 3, 16, 256] {
        for execution in [Execution::Streaming, Execution::Persistent] {
            let plan = plan(execution, Depth::Steps(depth)).unwrap();
            assert_eq!((plan.execution, plan.depth), (execution, depth));
            let text = plan.explain();
            assert!(text.contains("overlap") && text.contains(&format!("{depth} steps per pass")), "{text}");
        }
    }
    assert_eq!(plan(Execution::Auto, Depth::Steps(5)).unwrap().depth, 5);
    assert!(matches!(plan(Execution::Streaming, Depth::Steps(257)), Err(Error::Limit { .. })));
    assert!(matches!(plan(Execution::Stepwise, Depth::Steps(2)), Err(Error::Limit { .. })));
    let registers = Options { cache: CachePolicy::Registers, ..options(Execution::Persistent, Depth::Auto) };
    assert!(matches!(plan_cpu(&problem, &machine(), &registers), Err(Error::Unsupported { .. })));
}

/// Seven fields in two stages, as of Maxwell's equations in three dimensions: rings of deep passes leave all caches, and passes
/// whose rings stay in them are chosen. (Measured on two cores with 1 MiB each and 32 MiB together: 0.14 GCells/s at depth 10,
/// whose rings take 48 MB, 0.48 at depth 2.)
#[test]
fn rings_of_many_fields_stay_in_the_caches() {
    let mut p = Definition::new("maxwell", 3);
    let (e, h) = (["ex", "ey", "ez"], ["hx", "hy", "hz"]);
    e.iter().chain(&h).chain(&["cb"]).for_each(|field| {
        p.field(field, Centring::CELL);
    });
    let mut step = p.step();
    for (made, read, side) in [(h, e, 1), (e, h, -1)] {
        step.stage(made[0], |s| {
            for axis in 0..3 {
                let [b, c] = [(axis + 1) % 3, (axis + 2) % 3];
                let (one, other) = (s.field(read[b]), s.field(read[c]));
                let curl = one.along(c, side) - one.here() - (other.along(b, side) - other.here());
                s.set(made[axis], s.field(made[axis]).here() + s.field("cb").here() * curl);
            }
        });
    }
    let shape = Shape::new(&[128; 3]).unwrap();
    let problem = Problem::new(Arc::new(p.build().unwrap()), shape, DType::F32).unwrap();
    let device = DeviceSpec {
        caches: Some(Caches { level1_bytes: None, level2_bytes: Some(1 << 20) }),
        l2_bytes: 32 << 20,
        f32_flops: 332e9,
        ..machine()
    };
    for execution in [Execution::Auto, Execution::Streaming] {
        let plan = plan_cpu(&problem, &device, &options(execution, Depth::Auto)).unwrap();
        let ring_bytes = if plan.depth > 1 { tiling(&plan).ring_bytes } else { 0 };
        assert!(ring_bytes < 8 << 20, "{}", plan.explain());
    }
}
