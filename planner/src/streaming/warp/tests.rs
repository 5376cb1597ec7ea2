//! Plans of streaming by warps, made for presets.

use std::sync::Arc;

use abide_core::device::Link;
use abide_core::plan::Ranks;
use abide_core::plan::streaming::warp::{Configuration, Edges};
use abide_core::{
    Boundaries, CachePolicy, DType, Depth, DeviceSpec, Error, Exchanging, Execution, LinearStencil, Options,
    Plan, Problem, Program, Shape, catalogue,
};

use super::{plan_configuration, plan_streaming, streaming_plans};
use crate::choice::plan;
use crate::ranks::{Alike, plan_ranks};
use abide_core::domain::Boundary;

fn problem(name: &str, extents: &[usize], dtype: DType) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
}

fn h200() -> DeviceSpec {
    DeviceSpec::preset("h200").unwrap()
}

fn configuration(depth: usize, warps: usize, cells_per_thread: [usize; 2]) -> Configuration {
    Configuration {
        depth,
        warps,
        cells_per_thread,
        lag: false,
        ahead: 2,
        carried_shared: 0,
        blocks_per_multiprocessor: if warps == 1 { 8 } else { 1 },
        waves: 1,
    }
}

/// Every cell belongs to exactly one window: the cells that windows keep, laid end to end, are the domain.
#[test]
fn windows_cover_the_domain_once() {
    for extents in [[512, 512, 512], [509, 521, 503], [127, 193, 251], [7, 300, 65], [64, 48, 64]] {
        for boundary in [Boundary::Fixed, Boundary::Constant(0.5), Boundary::Mirror, Boundary::Periodic] {
            let mut problem = problem("3d7pt", &extents, DType::F64);
            problem.set_boundaries(Boundaries::all(boundary));
            let Some(plan) = plan_configuration(&problem, &h200(), &configuration(3, 12, [4, 2])) else {
                panic!("{extents:?}")
            };
            let streaming = plan.warp_streaming().unwrap();
            for axis in [1, 2] {
                let window = streaming.window()[axis - 1];
                let used = window - 2 * streaming.margin[axis];
                // At a side a window is right up to its end, unless the domain goes on at its other side.
                let sides = if boundary == Boundary::Periodic { 0 } else { 2 * streaming.margin[axis] };
                let tiles = streaming.tiles[axis - 1];
                let most = tiles * used + sides;
                assert!(most >= extents[axis], "{extents:?} axis {axis}: {most}");
                assert!(tiles == 1 || most - used < extents[axis], "{extents:?} axis {axis}: one too many");
            }
        }
    }
}

#[test]
fn overlap_is_what_margins_take() {
    let problem = problem("2d5pt", &[8352, 8352], DType::F64);
    let plan = plan_configuration(&problem, &h200(), &configuration(8, 1, [1, 4])).unwrap();
    let streaming = plan.warp_streaming().unwrap();
    assert_eq!(streaming.margin, [8, 0, 8]);
    assert_eq!(streaming.window(), [1, 128]);
    // (8352 − 16) / 112 windows, each 128 cells wide.
    assert_eq!(streaming.tiles, [1, 75]);
    let across = 75.0 * 128.0 / 8352.0;
    let overlap = 1.0 / streaming.valid;
    assert!(overlap > across && overlap < 1.1 * across, "{overlap}");
    assert_eq!((plan.depth, plan.execution), (8, Execution::Streaming));
    // Eight steps read and write the domain once.
    assert_eq!(plan.traffic.load_bytes * 8.0, 8.0);
}

/// Large domains stream, as deep as pays; a domain that fits on the chip stays there.
#[test]
fn the_planner_chooses_between_streaming_and_persisting() {
    let device = h200();
    let auto = Options::default();
    let large = plan(&problem("2d5pt", &[8352, 8352], DType::F64), &device, &auto).unwrap();
    assert_eq!(large.execution, Execution::Streaming);
    assert!(large.depth >= 4, "{}", large.depth);
    let cached = Options { cache: CachePolicy::Mixed, ..auto };
    let asked = plan(&problem("2d5pt", &[2304, 2304], DType::F64), &device, &cached).unwrap();
    assert_eq!(asked.execution, Execution::Persistent);
    let deep = Options { depth: Depth::Steps(3), ..auto };
    let asked = plan(&problem("2d5pt", &[2304, 2304], DType::F64), &device, &deep).unwrap();
    assert_eq!((asked.execution, asked.depth), (Execution::Streaming, 3));
}

#[test]
fn what_cannot_stream_is_refused_by_name() {
    let device = h200();
    let options = Options { execution: Execution::Streaming, ..Options::default() };
    let behind = LinearStencil::new("behind", &[([-2, 0], 0.5), ([0, 0], 0.5)]).unwrap();
    let program = Program::new(&behind).unwrap();
    let mut mirrored = Problem::new(Arc::new(program), Shape::new(&[512, 512]).unwrap(), DType::F32).unwrap();
    mirrored.boundaries = Boundaries::all(Boundary::Mirror);
    let error = plan_streaming(&mirrored, &device, &options).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
    assert!(error.to_string().contains("ghost planes"), "{error}");
    mirrored.boundaries = Boundaries::all(Boundary::Clamp);
    assert!(plan_streaming(&mirrored, &device, &options).is_ok());
    let cached = Options { cache: CachePolicy::Shared, ..options };
    assert!(plan_streaming(&problem("2d5pt", &[512, 512], DType::F32), &device, &cached).is_err());
    let mut periodic = problem("2d5pt", &[5, 5], DType::F32);
    periodic.boundaries = Boundaries::all(Boundary::Periodic);
    // No pass wraps round the domain more than once.
    for plan in streaming_plans(&periodic, &device, &options).unwrap() {
        assert!(plan.depth <= 5);
    }
}

/// Every plain entry of the catalogue streams under every boundary, but for the stage of Yee's schemes that taps the plane before its own
/// alone: the plane that `reflect` shows before the first comes too late. Nor do three fields of radius 4 in three dimensions: no
/// window of them fits.
#[test]
fn every_entry_streams_under_every_boundary() {
    let options = Options { execution: Execution::Streaming, depth: Depth::Steps(1), ..Options::default() };
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            let extents = [&[4001][..], &[401, 509], &[41, 149, 251]][dimensions - 1];
            for boundary in Boundary::each(0.5).into_iter().filter(|boundary| boundary.is_plain()) {
                let mut problem = problem(entry.name, extents, DType::F32);
                problem.set_boundaries(Boundaries::all(boundary));
                let plan = plan_streaming(&problem, &h200(), &options);
                let late = entry.name.starts_with("fdtd") && boundary == Boundary::Reflect;
                let wide = entry.name == "acoustic" && dimensions == 3;
                assert_eq!(plan.is_err(), late || wide, "{} {boundary}: {:?}", entry.name, plan.err());
            }
        }
    }
}

/// Registers and shared memory of every candidate are within the device's.
#[test]
fn candidates_fit_every_preset() {
    for name in ["v100", "a100", "h200"] {
        let device = DeviceSpec::preset(name).unwrap();
        for (stencil, extents) in
            [("2ds25pt", &[8191, 8209][..]), ("3d27pt", &[127, 193, 251]), ("gray-scott", &[1024, 1024])]
        {
            let options = Options { execution: Execution::Streaming, ..Options::default() };
            let plans = streaming_plans(&problem(stencil, extents, DType::F64), &device, &options).unwrap();
            assert!(!plans.is_empty(), "{stencil} on {name}");
            for plan in plans {
                let streaming = plan.warp_streaming().unwrap();
                let threads = streaming.threads_per_block() * streaming.blocks_per_multiprocessor;
                assert!(Some(threads * streaming.registers) <= device.registers, "{streaming:?}");
                assert!(streaming.shared_bytes <= device.shared_bytes_per_block);
                assert!(streaming.shared_bytes * streaming.blocks_per_multiprocessor <= device.shared_bytes);
                assert!(plan.estimated_seconds > 0.0);
            }
        }
    }
}

/// Slabs in space give planes to their neighbours after each pass where devices store into each other's memory; not over a network,
/// by copies, of planes of one row, or where passes are chained.
#[test]
fn slabs_in_space_give_planes() {
    let planned = |name: &str, extents: &[usize], exchange: Exchanging, link: Option<Link>| {
        let mut device = h200();
        device.link = link.or(device.link);
        let options = Options { exchange, ..Options::default() };
        let problem = problem(name, extents, DType::F64);
        let plan = plan_ranks(&problem, &options, &Alike { device: &device, count: 4 }).unwrap();
        plan.ranks.unwrap()
    };
    let edges = |ranks: &Ranks| -> Vec<Option<Edges>> {
        ranks.slabs.iter().map(|slab| slab.warp_streaming().and_then(|own| own.edges.clone())).collect()
    };
    let large = [2048, 512, 512];
    let ranks = planned("3d7pt", &large, Exchanging::Auto, None);
    assert_eq!((ranks.depth, ranks.halo), (ranks.slabs[0].depth, 4));
    let given = |own, given| Some(Edges { own, given });
    assert_eq!(
        edges(&ranks),
        [given(0..512, [0, 4]), given(4..516, [4, 4]), given(4..516, [4, 4]), given(4..516, [4, 0])]
    );
    // The planes that are stored are cut, not the halos.
    let costs = |slab: &Plan| slab.warp_streaming().unwrap().window_costs;
    assert_eq!(costs(&ranks.slabs[0]), costs(&ranks.slabs[1]));
    let network = "40,45".parse().ok();
    for (name, extents, exchange, link) in [
        ("3d7pt", &large[..], Exchanging::Copies, None),
        ("3d7pt", &large, Exchanging::Auto, network),
        ("3d7pt", &[128, 96, 96], Exchanging::Auto, None),
        ("2d5pt", &[33408, 8352], Exchanging::PeerPuts, None),
    ] {
        let edges = edges(&planned(name, extents, exchange, link));
        assert!(edges.iter().all(Option::is_none), "{name} {extents:?} {exchange}: {edges:?}");
    }
}
