use crate::recipe::plan_recipe;
use std::sync::Arc;

use abide_core::domain::Axes;
use abide_core::plan::Resident;
use abide_core::plan::resident::{Configuration, Exchange};
use abide_core::{Boundaries, DType, Depth, DeviceSpec, Execution, Options, Problem, Shape, catalogue};

use super::{plan_configuration, plan_resident, resident_plans};
use abide_core::domain::Boundary;

fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
}

fn persistent() -> Options {
    Options { execution: Execution::Persistent, ..Options::default() }
}

/// The kept cells of an axis's tiles, as the kernel lays them out: first and last, by the domain's indices.
fn kept(problem: &Problem, resident: &Resident, axis: usize) -> Vec<(isize, isize)> {
    let axes = Axes::of(problem.shape.dimensions());
    let extent = axes.order(problem.shape.padded())[axis] as isize;
    let sides = axes.order(problem.boundaries.0)[axis];
    let radius = axes.order(problem.program.radius())[axis] as isize;
    let held = |side: usize| if sides[side] == Boundary::Fixed && axis < 2 { radius } else { 0 };
    let (tiles, tile, margin) =
        (resident.tiles[axis] as isize, resident.tile[axis] as isize, resident.margin[axis] as isize);
    let word = if axis == 2 { (16 / problem.dtype.bytes()) as isize } else { 1 };
    let periodic = sides[0] == Boundary::Periodic;
    let end = if axis == 2 { (extent + word - 1) / word * word } else { extent - held(1) };
    (0..tiles)
        .map(|i| match (periodic, tiles) {
            (true, 1) => (0, extent),
            (true, _) => {
                let first = i * extent / tiles / word * word - margin;
                (first + margin, first + tile - margin)
            }
            (false, 1) => (held(0), end.min(held(0) + tile)),
            (false, _) => {
                let first = held(0) + i * (end - held(0) - tile) / (tiles - 1) / word * word;
                let low = if i > 0 { margin } else { 0 };
                let high = if i < tiles - 1 { margin } else { 0 };
                (first + low, first + tile - high)
            }
        })
        .collect()
}

/// Every cell that is computed is kept by a tile, and all that a tile reads of others is kept by those beside it.
#[test]
fn tiles_cover_the_domain_and_read_their_neighbours_alone() {
    let device = DeviceSpec::preset("h200").unwrap();
    let mut count = 0;
    for (name, extents) in [
        ("1d3pt", vec![100_003]),
        ("2d5pt", vec![61, 1021]),
        ("2d5pt", vec![1024, 1024]),
        ("2ds25pt", vec![512, 777]),
        ("gray-scott", vec![333, 512]),
        ("fdtd-tm", vec![500, 400]),
        ("3d7pt", vec![64, 64, 64]),
        ("3d27pt", vec![61, 67, 71]),
    ] {
        for kind in ["fixed", "periodic", "mirror", "constant=1"] {
            for dtype in [DType::F32, DType::F64] {
                let mut problem = problem(name, &extents, dtype);
                problem.set_boundaries(Boundaries::parse(kind, Boundary::Fixed).unwrap());
                let plans = resident_plans(&problem, &device, &persistent()).unwrap();
                for plan in plans.iter().step_by(1 + plans.len() / 40) {
                    let resident = plan.resident().unwrap();
                    count += 1;
                    assert!(resident.blocks() <= device.multiprocessors * resident.blocks_per_multiprocessor);
                    assert!(
                        resident.shared_bytes <= device.shared_bytes_for(resident.blocks_per_multiprocessor)
                    );
                    for axis in 0..3 {
                        let all = kept(&problem, resident, axis);
                        let reads = resident.margin[axis] + if axis < 2 { resident.ring[axis] } else { 0 };
                        for pair in all.windows(2) {
                            let ((low, high), (next_low, next_high)) = (pair[0], pair[1]);
                            assert!(next_low <= high, "{name} {kind} {resident:?}");
                            // What the second reads before its own cells begins where the first keeps cells.
                            assert!(next_low - reads as isize >= low, "{name} {kind} {resident:?}");
                            assert!(high + reads as isize <= next_high, "{name} {kind} {resident:?}");
                        }
                    }
                }
            }
        }
    }
    assert!(count > 500, "{count}");
}

#[test]
fn domains_that_the_chip_holds_have_plans_and_larger_ones_have_none() {
    let device = DeviceSpec::preset("h200").unwrap();
    for (name, extents, dtype) in [
        ("2d5pt", vec![64, 64], DType::F64),
        ("2d5pt", vec![1536, 1536], DType::F64),
        ("2d5pt", vec![2304, 2304], DType::F32),
        ("3d7pt", vec![128, 128, 128], DType::F64),
        ("wave", vec![1024, 1024], DType::F64),
    ] {
        let plan = plan_resident(&problem(name, &extents, dtype), &device, &persistent()).unwrap();
        assert_eq!((plan.cached_share(), plan.execution), (1.0, Execution::Persistent), "{name} {extents:?}");
        assert!(plan.explain().contains("exchange"), "{}", plan.explain());
    }
    let error = plan_resident(&problem("2d5pt", &[8352, 8352], DType::F64), &device, &persistent());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("registers and shared memory of all blocks on H200"), "{error}");
}

/// One block holds a small domain and exchanges nothing.
#[test]
fn a_small_domain_is_a_block_s() {
    let device = DeviceSpec::preset("h200").unwrap();
    let plan = plan_resident(&problem("2d5pt", &[64, 64], DType::F64), &device, &persistent()).unwrap();
    let resident = plan.resident().unwrap();
    assert_eq!((resident.blocks(), resident.margin, resident.exchange), (1, [0; 3], Exchange::Counted));
}

#[test]
fn the_depth_is_as_asked() {
    let device = DeviceSpec::preset("h200").unwrap();
    let options = Options { depth: Depth::Steps(3), ..persistent() };
    let problem = problem("2d5pt", &[1024, 1024], DType::F64);
    assert!(resident_plans(&problem, &device, &options).unwrap().iter().all(|plan| plan.depth == 3));
    let plan = crate::plan(&problem, &device, &options).unwrap();
    assert_eq!((plan.depth, plan.execution), (3, Execution::Persistent));
    let recipe = abide_core::plan::Recipe::of(&plan).unwrap();
    assert_eq!(plan_recipe(&recipe, &problem, &device, &options), Some(plan));
}

/// Tiles have a plan of either exchange where it is asked for, tags need room for the columns of all fields, and what
/// exchanges nothing needs none.
#[test]
fn tiles_exchange_by_counters_or_by_tags() {
    let device = DeviceSpec::preset("h200").unwrap();
    let problem = problem("gray-scott", &[500, 500], DType::F64);
    let plans = resident_plans(&problem, &device, &persistent()).unwrap();
    let mut both = 0;
    for plan in &plans {
        let own = plan.resident().unwrap();
        let exchange = match own.exchange {
            Exchange::Counted => Exchange::Tagged,
            Exchange::Tagged => Exchange::Counted,
        };
        let Some(other) =
            plan_configuration(&problem, &device, &Configuration { exchange, ..own.configuration() })
        else {
            continue;
        };
        let other = other.resident().unwrap();
        both += 1;
        assert_eq!(other.exchange, exchange);
        let (tagged, counted) = if exchange == Exchange::Tagged { (other, own) } else { (own, other) };
        let columns = counted.warps * counted.planes * 2 * counted.margin[2];
        assert!(
            tagged.shared_bytes == counted.shared_bytes + columns * 8 || tagged.halves < counted.halves,
            "{tagged:?} {counted:?}"
        );
    }
    assert!(both > 1000, "{both}");
    let small = self::problem("2d5pt", &[64, 64], DType::F64);
    let one = Configuration {
        depth: 1,
        warps: 8,
        planes: 8,
        planes_registers: 8,
        cells_per_thread: [1, 2],
        blocks_per_multiprocessor: 1,
        exchange: Exchange::Tagged,
    };
    let plan = plan_configuration(&small, &device, &one).unwrap();
    assert_eq!(plan.resident().unwrap().exchange, Exchange::Counted);
    assert!(plan.explain().contains("none: one block"), "{}", plan.explain());
}

/// Where little is exchanged, the latency of tags is less; where much is, their bytes are more.
#[test]
fn tags_are_for_tiles_that_exchange_little() {
    let device = DeviceSpec::preset("h200").unwrap();
    for (extents, dtype, are_faster) in [
        (&[100_000][..], DType::F64, true),
        (&[128, 128], DType::F32, true),
        (&[128, 128], DType::F64, false),
        (&[2304, 2304], DType::F32, false),
    ] {
        let name = if extents.len() == 1 { "1d3pt" } else { "2d5pt" };
        let problem = problem(name, extents, dtype);
        let best = |exchange| {
            let plans = resident_plans(&problem, &device, &persistent()).unwrap();
            let all = plans.iter().filter_map(|plan| {
                let own = plan.resident()?;
                own.exchanges().then_some(())?;
                let configuration = Configuration { exchange, ..own.configuration() };
                Some(plan_configuration(&problem, &device, &configuration)?.estimated_seconds)
            });
            all.fold(f64::INFINITY, f64::min)
        };
        assert_eq!(best(Exchange::Tagged) < best(Exchange::Counted), are_faster, "{name} {extents:?}");
    }
}
