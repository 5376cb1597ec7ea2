use crate::recipe::plan_recipe;
use std::sync::Arc;

use abide_core::plan::Recipe;
use abide_core::{
    Boundaries, CachePolicy, DType, Depth, DeviceSpec, Error, Execution, Options, Problem, Shape, Tune,
    catalogue,
};

use super::candidates::candidates as portable_candidates;
use super::plan_portable;
use abide_core::domain::Boundary;

/// An adapter that reports as little as real adapters do.
fn adapter(shared_bytes_per_block: usize, threads_per_block: usize, memory_bandwidth: f64) -> DeviceSpec {
    DeviceSpec {
        name: "adapter".to_owned(),
        compute_capability: None,
        multiprocessors: 0,
        registers: None,
        registers_per_thread: None,
        shared_bytes: shared_bytes_per_block,
        shared_bytes_per_block,
        constant_bytes: None,
        caches: None,
        shared_bytes_reserved: 0,
        threads: threads_per_block,
        threads_per_block,
        warp: None,
        l2_bytes: 0,
        memory_bytes: 0,
        buffer_bytes: 1 << 31,
        kernel_buffers: Some(8),
        memory_bandwidth,
        l2_bandwidth: memory_bandwidth,
        shared_bandwidth: 0.0,
        f32_flops: 0.0,
        f64_flops: 0.0,
        launch_seconds: 7e-6,
        barrier_seconds: 0.0,
        exchange_seconds: 0.0,
        link: None,
    }
}

/// The least that WebGPU guarantees, a mobile GPU, a desktop's, a data centre's over Vulkan.
pub fn adapters() -> [DeviceSpec; 4] {
    [
        adapter(16 << 10, 256, 20e9),
        adapter(32 << 10, 512, 60e9),
        DeviceSpec { warp: Some(64), ..adapter(32 << 10, 1024, 500e9) },
        DeviceSpec { warp: Some(32), ..adapter(48 << 10, 1024, 4.2e12) },
    ]
}

pub fn problem(name: &str, extents: &[usize], dtype: DType, boundary: &str) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    let mut problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
    problem.set_boundaries(Boundaries::parse(boundary, Boundary::Fixed).unwrap());
    problem.check().unwrap();
    problem
}

#[test]
fn what_is_asked_is_kept_to() {
    let device = &adapters()[3];
    let large = problem("2d5pt", &[2304, 2304], DType::F32, "fixed");
    let options = Options::default();
    let deep = plan_portable(&large, device, &Options { depth: Depth::Steps(7), ..options }).unwrap();
    assert!(matches!(deep.execution, Execution::Overlapped | Execution::Streaming) && deep.depth == 7);
    let one = plan_portable(&large, device, &Options { depth: Depth::Steps(1), ..options }).unwrap();
    assert_eq!((one.execution, one.depth), (Execution::Stepwise, 1));
    for execution in [Execution::Overlapped, Execution::Streaming] {
        let plan =
            plan_portable(&large, device, &Options { execution, depth: Depth::Steps(1), ..options }).unwrap();
        assert_eq!((plan.execution, plan.depth), (execution, 1));
    }
    let stepwise = Options { execution: Execution::Stepwise, depth: Depth::Steps(4), ..options };
    assert!(matches!(plan_portable(&large, device, &stepwise), Err(Error::Limit { .. })));
    let cached = Options { execution: Execution::Streaming, cache: CachePolicy::Shared, ..options };
    assert!(matches!(plan_portable(&large, device, &cached), Err(Error::Invalid { .. })));
    let hopeless = Options { depth: Depth::Steps(1000), ..options };
    let error = plan_portable(&large, device, &hopeless).unwrap_err();
    assert!(error.to_string().contains("1000 steps deep"), "{error}");
}

#[test]
fn the_list_to_measure_begins_with_the_own_choice_and_holds_what_differs() {
    let device = &adapters()[3];
    let problem = problem("2d5pt", &[1024, 1024], DType::F32, "fixed");
    for (tune, most) in [(Tune::Quick, 8), (Tune::Full, 40)] {
        let options = Options { tune, ..Options::default() };
        let plans = portable_candidates(&problem, device, &options).unwrap();
        assert_eq!(plans.len(), most);
        assert_eq!(plans[0], plan_portable(&problem, device, &options).unwrap());
        assert_eq!(plans.iter().filter(|plan| plan.execution == Execution::Stepwise).count(), 1);
        let recipes: std::collections::HashSet<_> = plans.iter().map(Recipe::of).collect();
        assert_eq!(recipes.len(), most);
        let planes = plans.iter().filter(|plan| plan.portable_streaming().is_some()).count();
        assert!((most / 2 - 1..=most / 2 + 1).contains(&planes), "{planes} of {most}");
        for plan in &plans {
            assert_eq!(
                plan_recipe(&Recipe::of(plan).unwrap(), &problem, device, &options).as_ref(),
                Some(plan)
            );
        }
    }
    let stepwise = Options { execution: Execution::Stepwise, ..Options::default() };
    assert_eq!(portable_candidates(&problem, device, &stepwise).unwrap().len(), 1);
}

/// At a depth at which cubes have no room, planes run; where neither has room, the reason given is that of
/// windows.
#[test]
fn planes_step_in_where_there_is_no_window() {
    let device = &adapters()[3];
    let problem = problem("3d13pt", &[256, 256, 256], DType::F32, "fixed");
    let deep = |depth| {
        plan_portable(&problem, device, &Options { depth: Depth::Steps(depth), ..Options::default() })
    };
    // Where both have room, the faster runs: of cubes of radius 2 hardly anything is left inside the halo.
    let plan = deep(2).unwrap();
    assert!(plan.portable_streaming().is_some() && plan.notes.is_empty(), "{:?}", plan.notes);
    let flat = self::problem("2d5pt", &[2304, 2304], DType::F32, "fixed");
    assert!(plan_portable(&flat, device, &Options::default()).unwrap().overlapped().is_some());
    let plan = deep(5).unwrap();
    assert!(
        plan.portable_streaming().is_some()
            && plan.notes[0].starts_with("streaming because no overlapped tile fits"),
        "{:?}",
        plan.notes
    );
    assert!(deep(500).unwrap_err().to_string().contains("windows of several steps"));
}
