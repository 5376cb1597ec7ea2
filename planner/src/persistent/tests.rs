use super::with_planes_in_registers;
use std::sync::Arc;

use abide_core::domain::Axes;
use abide_core::{CachePolicy, DType, DeviceSpec, Execution, Options, Problem, Shape, catalogue};

use super::plan_persistent;

fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
}

/// Table 2 of the PERKS report (paper 001): the rows marked F are domains that the device holds as a whole.
#[test]
fn the_fully_cached_domains_of_the_report_fit() {
    type Row = (&'static str, [&'static str; 4]);
    // A100 f32, V100 f32, A100 f64, V100 f64.
    let rows: [Row; 13] = [
        ("2d5pt", ["3072x2160", "2560x1536", "2304x1536", "2048x1120"]),
        ("2ds9pt", ["4608x1824", "2048x1760", "2304x1152", "1536x1280"]),
        ("2d13pt", ["4608x1440", "2560x1408", "4608x576", "2048x800"]),
        ("2d17pt", ["3072x2448", "4096x800", "2304x1440", "2560x576"]),
        ("2d21pt", ["4608x1536", "2560x1408", "3072x1008", "4096x320"]),
        ("2ds25pt", ["4608x672", "2048x1600", "4608x576", "4096x280"]),
        ("2d9pt", ["3072x2592", "2560x1664", "2304x1920", "1792x1280"]),
        ("2d25pt", ["4608x1536", "2560x1408", "4608x816", "2048x720"]),
        ("3d7pt", ["126x192x256", "68x160x256", "39x288x256", "80x128x128"]),
        ("3d13pt", ["81x288x256", "32x320x256", "33x288x256", "8x320x256"]),
        ("3d17pt", ["84x288x256", "160x64x256", "36x288x256", "32x160x256"]),
        ("3d27pt", ["81x192x256", "160x64x256", "33x288x256", "32x160x256"]),
        ("poisson", ["90x288x256", "160x64x256", "36x288x256", "32x160x256"]),
    ];
    let mut short = Vec::new();
    for (name, sizes) in rows {
        for (column, size) in sizes.iter().enumerate() {
            let (device, dtype) =
                [("a100", DType::F32), ("v100", DType::F32), ("a100", DType::F64), ("v100", DType::F64)]
                    [column];
            let shape: Shape = size.parse().unwrap();
            let problem = problem(name, shape.extents(), dtype);
            let device = DeviceSpec::preset(device).unwrap();
            let options = Options { execution: Execution::Persistent, ..Options::default() };
            let plan = plan_persistent(&problem, &device, &options).unwrap();
            if plan.cached_share() < 1.0 || !plan.explain().contains("all of it fits") {
                short.push(format!(
                    "{name} {size} {dtype} {}: {:.3} {:?}",
                    device.name,
                    plan.cached_share(),
                    plan.schedule
                ));
            }
        }
    }
    assert!(short.is_empty(), "{} rows\n{}", short.len(), short.join("\n"));
}

#[test]
fn every_policy_keeps_cells_where_it_says() {
    let device = DeviceSpec::preset("h200").unwrap();
    let problem = problem("2d5pt", &[2304, 2304], DType::F64);
    let plan = |cache| {
        let options = Options { execution: Execution::Persistent, cache, ..Options::default() };
        plan_persistent(&problem, &device, &options).unwrap()
    };
    let traffic = |cache| plan(cache).traffic;
    assert_eq!(traffic(CachePolicy::None).cached(), 0.0);
    let shared = traffic(CachePolicy::Shared);
    assert!(shared.cached_shared > 0.0 && shared.cached_registers == 0.0);
    let registers = traffic(CachePolicy::Registers);
    assert!(registers.cached_registers > 0.0 && registers.cached_shared == 0.0);
    let mixed = plan(CachePolicy::Mixed);
    assert_eq!(mixed.cached_share(), 1.0);
    assert!(mixed.traffic.cached_registers > 0.0 && mixed.traffic.cached_shared > 0.0);
    let persistent = mixed.persistent().unwrap();
    assert!(persistent.shared_bytes <= device.shared_bytes_per_block);
    assert!(persistent.blocks <= device.multiprocessors * persistent.blocks_per_multiprocessor);
}

#[test]
fn any_extent_is_planned_and_covered() {
    let device = DeviceSpec::preset("h200").unwrap();
    for extents in [
        vec![1],
        vec![7],
        vec![1_000_003],
        vec![1, 1],
        vec![2, 100_000],
        vec![100_003, 3],
        vec![1, 1, 1],
        vec![3, 509, 2],
    ] {
        let name = ["1d3pt", "2d5pt", "3d7pt"][extents.len() - 1];
        let problem = problem(name, &extents, DType::F32);
        for &cache in CachePolicy::ALL {
            let options = Options { execution: Execution::Persistent, cache, ..Options::default() };
            let plan = plan_persistent(&problem, &device, &options).unwrap();
            let persistent = plan.persistent().unwrap();
            let [s, y, x] = Axes::of(extents.len()).order(problem.shape.padded());
            let plane = persistent.plane();
            assert!(
                persistent.tiles[1] * plane[0] >= y && persistent.tiles[2] * plane[1] >= x,
                "{extents:?}"
            );
            assert_eq!((0..persistent.tiles[0]).map(|row| persistent.planes_of(row, s)).sum::<usize>(), s);
            assert!(persistent.planes_registers <= persistent.planes[0]);
            assert!(plan.cached_share() <= 1.0);
        }
    }
}

#[test]
fn giving_up_registers_moves_planes_to_shared_memory() {
    let device = DeviceSpec::preset("h200").unwrap();
    let problem = problem("2d5pt", &[2304, 2304], DType::F64);
    let options = Options { execution: Execution::Persistent, ..Options::default() };
    let plan = plan_persistent(&problem, &device, &options).unwrap();
    let before = plan.persistent().unwrap();
    let fewer = with_planes_in_registers(&plan, &problem, before.planes_registers - before.chunk);
    let after = fewer.persistent().unwrap();
    assert_eq!(after.planes_registers + after.chunk, before.planes_registers);
    assert!(after.planes_shared >= before.planes_shared);
}

#[test]
fn far_taps_are_refused_in_words() {
    let far = abide_core::LinearStencil::new("far", &[([-40], 0.5), ([40], 0.5)]).unwrap();
    let program = abide_core::Program::new(&far).unwrap();
    let problem = Problem::new(Arc::new(program), Shape::new(&[100_000_000]).unwrap(), DType::F32).unwrap();
    let device = DeviceSpec::preset("a100").unwrap();
    let error = plan_persistent(&problem, &device, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("40 asked, the limit is 12"), "{error}");
    let plan = crate::plan(&problem, &device, &Options::default()).unwrap();
    assert_ne!(plan.execution, Execution::Persistent);
    assert!(plan.notes.iter().any(|note| note.contains("the limit is 12")), "{:?}", plan.notes);
}
