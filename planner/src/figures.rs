//! The figures of plans, held against the programs that they are of.

use std::sync::Arc;

use abide_core::plan::Advances;
use abide_core::program::{Centring, Definition};
use abide_core::{
    DType, Depth, DeviceSpec, Execution, Fuse, Options, Plan, Problem, Program, Shape, Stage, catalogue,
};

use crate::choice::plan;
use crate::cpu::plan_cpu;
use crate::overlapped::plan_overlapped;
use crate::stepwise::plan_stepwise;
use crate::streaming::portable::plan_portable_streaming;
use crate::streaming::warp::plan_streaming;

fn problem(program: Program, extents: &[usize], dtype: DType) -> Problem {
    Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap()
}

fn entry(name: &str, extents: &[usize], dtype: DType) -> Problem {
    problem(catalogue::find(name).unwrap().program(extents.len()).unwrap(), extents, dtype)
}

/// Every entry of the catalogue in every number of axes, on small domains and on one beyond the chip.
fn entries() -> Vec<Problem> {
    let sizes: [&[&[usize]]; 3] = [&[&[4096]], &[&[512, 512], &[8352, 8352]], &[&[96, 96, 96]]];
    let mut all = Vec::new();
    for entry in catalogue::entries() {
        for dimensions in entry.dimensions.clone() {
            let own = |extents: &&[usize]| problem(entry.program(dimensions).unwrap(), extents, DType::F64);
            all.extend(sizes[dimensions - 1].iter().map(own));
        }
    }
    // Planning many loops at several sizes takes long and shows nothing more.
    all.retain(|problem| problem.is_plain() || problem.shape.cells() < 1_000_000);
    all
}

/// Every plan that a device has for a problem, of each schedule; of a program that is not plain those of launches.
fn plans(problem: &Problem, device: &DeviceSpec) -> Vec<Plan> {
    let with = |execution| Options { execution, ..Options::default() };
    let all = [Execution::Stepwise, Execution::Streaming, Execution::Persistent];
    let all = if problem.is_plain() { &all[..] } else { &all[..1] };
    let on_gpu = all.iter().map(|&execution| plan(problem, device, &with(execution)));
    let on_cpu = all.iter().map(|&execution| plan_cpu(problem, device, &with(execution)));
    let others = [plan_overlapped, plan_portable_streaming];
    let others = others.into_iter().map(|plan| plan(problem, device, &Options::default()));
    on_gpu.chain(on_cpu).chain(others).flatten().collect()
}

/// Whatever a plan does, a launch per stage moves what the stages' footprints say; and no run moves less than each field
/// once, however short it is: its last pass, too, loads and stores all of the domain.
#[test]
fn bytes_are_those_of_the_footprints_and_never_less_than_possible() {
    for (number, problem) in entries().into_iter().enumerate() {
        // Each entry on one of the presets, because planning takes long.
        let preset = abide_core::device::PRESETS[number % abide_core::device::PRESETS.len()];
        let device = DeviceSpec::preset(preset).unwrap();
        let program = &problem.program;
        // What stands on a coarser grid has as many values less, and what is stored in a narrower type fewer bytes.
        let missing = |name: usize| {
            let joined = 1 << program.centring(name).level();
            let cells: usize = problem.shape.padded().iter().map(|extent| extent.div_ceil(joined)).product();
            let bytes = (cells * problem.value_bytes(name)) as f64;
            problem.dtype.bytes() as f64 - bytes / problem.shape.cells() as f64
        };
        let bytes = |stage: &Stage| {
            let radius = stage.footprint.field_radius.iter().enumerate();
            let read = radius.filter_map(|(name, own)| own.map(|_| name));
            let missing: f64 = read.chain(stage.writes.iter().copied()).map(missing).sum();
            stage.footprint.bytes(problem.dtype) as f64 - missing
        };
        let footprint: f64 = program.stages().iter().map(bytes).sum();
        let footprint = footprint / program.cycle() as f64;
        let fields = 0..program.fields().len();
        let read =
            |&field: &usize| program.stages().iter().any(|s| s.footprint.field_radius[field].is_some());
        let touched = fields.clone().filter(read).count() + fields.filter(|&f| program.is_written(f)).count();
        let once = (touched * problem.dtype.bytes() * problem.shape.cells()) as f64;
        for plan in plans(&problem, &device) {
            let what = format!("{} {}: {}", program.name(), problem.shape, plan.summary());
            let noted = format!("({footprint:.2} with a launch per step)");
            assert!(plan.explain().contains(&noted), "{what}, not {noted}\n{}", plan.explain());
            for steps in (1..=40).chain([100, 1000]) {
                let moved = plan.project(steps);
                assert!(moved.memory_bytes >= moved.least_bytes && moved.least_bytes > 0.0, "{what} {steps}");
                // Cycles and stages that rename a field may leave some alone.
                if problem.is_plain() {
                    // The bytes of a plan are sums over steps, which round.
                    let off = (moved.least_bytes - once).abs();
                    assert!(off <= 1e-12 * once, "{what} {steps}: {off}");
                }
            }
        }
    }
    // The members of a batch move as much each.
    let mut batch = entry("2d5pt", &[64, 64], DType::F64);
    batch.repeat(4096).unwrap();
    let plan = plan(&batch, &DeviceSpec::preset("h200").unwrap(), &Options::default()).unwrap();
    assert!(
        plan.is_at_once() && plan.explain().contains("(16.00 with a launch per step)"),
        "{}",
        plan.explain()
    );
    assert_eq!(plan.project(1).least_bytes, 4096.0 * 64.0 * 64.0 * 16.0);
}

/// A step of a deep kernel is a pass of its own; a run on the chip moves each field once, and again after each halt.
#[test]
fn short_runs_and_halts_move_what_they_pass() {
    let device = DeviceSpec::preset("h200").unwrap();
    let large = entry("2d5pt", &[8352, 8352], DType::F64);
    let deep =
        plan_streaming(&large, &device, &Options { depth: Depth::Steps(8), ..Options::default() }).unwrap();
    let once = 16.0 * large.shape.cells() as f64;
    // Passes of 8, 4, 2 and 1 steps.
    for (steps, passes) in [(1, 1.0), (2, 1.0), (3, 2.0), (8, 1.0), (10, 2.0), (15, 4.0), (400, 50.0)] {
        assert_eq!(deep.project(steps).memory_bytes, passes * once, "{steps}");
    }
    let halted = Advances::halting(400, 1);
    assert_eq!(deep.project_advances(&halted).memory_bytes, 400.0 * once);
    let held = plan(&entry("2d5pt", &[512, 512], DType::F64), &device, &Options::default()).unwrap();
    let (one, ten) = (held.project(1), held.project(10));
    assert!(held.resident().is_some() && one.least_bytes == 16.0 * 512.0 * 512.0);
    assert!(ten.memory_bytes < 10.0 * ten.least_bytes, "{ten:?}");
    let halted = held.project_advances(&Advances::halting(10, 1)).memory_bytes;
    assert!(halted >= 10.0 * ten.least_bytes, "{halted}");
}

/// The planner's own estimate stands in the explanation before the bound, which is no slower.
#[test]
fn the_estimate_comes_before_the_bound() {
    let device = DeviceSpec::preset("h200").unwrap();
    for extents in [&[512, 512][..], &[8352, 8352]] {
        let plan = plan(&entry("2d5pt", extents, DType::F64), &device, &Options::default()).unwrap();
        let text = plan.explain();
        let at = |word: &str| text.find(&format!("\n{word:<14}")).unwrap_or_else(|| panic!("{word}: {text}"));
        assert!(at("estimate") < at("bound") && at("bound") < at("moved"), "{text}");
        let own = format!("estimate      {:.2} µs per step, ", plan.estimated_seconds * 1e6);
        assert!(text.contains(&own), "{own}: {text}");
    }
}

/// In a few words, a plan names its schedule as the field does.
#[test]
fn a_plan_names_its_schedule() {
    let device = DeviceSpec::preset("h200").unwrap();
    let problem = entry("2d5pt", &[2304, 2304], DType::F64);
    for plan in plans(&problem, &device) {
        let name = match plan.execution {
            Execution::Overlapped => "overlapped tiling",
            Execution::Streaming => "2.5-D streaming",
            Execution::Persistent => "persistent",
            Execution::Auto | Execution::Stepwise => "stepwise",
        };
        let how = plan.how();
        assert!(how.starts_with(name) && how.len() < 90, "{how}: {}", plan.summary());
        let has_depth = plan.depth > 1 || plan.execution == Execution::Streaming;
        assert!(!has_depth || how.contains(&format!("{} step", plan.depth)), "{how}: {}", plan.summary());
    }
    let mut batch = entry("2d5pt", &[64, 64], DType::F64);
    batch.repeat(3).unwrap();
    let how = plan(&batch, &device, &Options::default()).unwrap().how();
    assert!(how.starts_with("3 members"), "{how}");
}

/// The same stages have the same estimate, whether or not anything beside them keeps the program from being plain.
#[test]
fn an_unused_scalar_changes_no_estimate() {
    for device in ["v100", "a100", "h200"].map(|name| DeviceSpec::preset(name).unwrap()) {
        for own in entries().into_iter().filter(Problem::is_plain) {
            let mut beside = Definition::of(&own.program);
            beside.scalar("nothing", Some(1.0), "used by nobody");
            let mut beside =
                problem(beside.build().unwrap(), &own.shape.padded()[own.slowest()..], own.dtype);
            beside.boundaries = own.boundaries;
            assert!(!beside.is_plain());
            let options = Options { execution: Execution::Stepwise, fuse: Fuse::Off, ..Options::default() };
            let [own, beside] = [own, beside].map(|problem| plan(&problem, &device, &options).unwrap());
            let relative = beside.estimated_seconds / own.estimated_seconds;
            assert!((relative - 1.0).abs() < 1e-9, "{} {}: {relative}", own.program, own.shape);
            assert_eq!(own.traffic.launched_bytes, beside.traffic.launched_bytes, "{}", own.program);
        }
    }
}

/// Microseconds a step of launches per stage on an H200, one 2026-11-25 (`benches/results/h200-planner.csv`: domains whose
/// boundary changes signs, which no other schedule runs).
#[test]
fn launches_take_what_was_measured() {
    let device = DeviceSpec::preset("h200").unwrap();
    let (square, cube) = (&[8352, 8352][..], &[512, 512, 512][..]);
    for (name, extents, [wide, narrow]) in [
        ("2d5pt", square, [317.0, 247.2]),
        ("2d25pt", square, [583.5, 395.9]),
        ("3d7pt", cube, [624.1, 482.1]),
        ("3d27pt", cube, [1150.0, 812.3]),
        ("poisson", cube, [913.4, 683.1]),
    ] {
        for (dtype, measured) in [(DType::F64, wide), (DType::F32, narrow)] {
            let own = plan_stepwise(&entry(name, extents, dtype), &device, &Options::default()).unwrap();
            let estimate = 1e6 * own.estimated_seconds;
            println!("{name} {dtype}: {estimate:.0} µs, measured {measured}");
            assert!((estimate / measured - 1.0).abs() < 0.16, "{name} {dtype}: {estimate}, not {measured}");
        }
    }
}

/// Launches per stage of CUDA stage tiles in two dimensions, unless these take more than a quarter of the shared memory; formulas that
/// tap nothing around the cell keep their tiles.
#[test]
fn launches_in_three_dimensions_read_their_taps_directly() {
    let many = |fields: usize, extents: &[usize], reach: i32| {
        let mut p = Definition::new("many", extents.len());
        for number in 0..fields {
            p.field(&format!("f{number}"), Centring::CELL);
        }
        p.step().stage("shift", |s| {
            for number in 0..fields {
                let name = format!("f{number}");
                let field = s.field(&name);
                let beside = if extents.len() == 3 { field.at([0, 0, reach]) } else { field.at([0, reach]) };
                s.set(&name, beside * 0.5 + field.here());
            }
        });
        problem(p.build().unwrap(), extents, DType::F32)
    };
    let stepwise = |problem: &Problem, device: &str| {
        let device = DeviceSpec::preset(device).unwrap();
        let plan = plan_stepwise(problem, &device, &Options::default()).unwrap();
        let tiles = plan.stepwise().unwrap().clone();
        let notes = plan.notes.iter().any(|note| note.contains("does not fit"));
        (tiles.tile == tiles.threads && tiles.shared_bytes.iter().all(|&bytes| bytes == 0), notes)
    };
    for device in ["v100", "a100", "h200"] {
        assert_eq!(stepwise(&entry("3d7pt", &[64, 64, 64], DType::F64), device), (true, false));
        assert_eq!(stepwise(&many(19, &[64, 64, 64], 1), device), (true, false));
        assert_eq!(stepwise(&entry("2d5pt", &[512, 512], DType::F64), device), (false, false));
        assert_eq!(stepwise(&many(20, &[512, 512], 1), device), (true, false));
        let (direct, _) = stepwise(&many(3, &[64, 64, 64], 0), device);
        assert!(!direct, "nothing is tapped around the cell");
    }
}

/// On an H200 persistent kernels of shallow water and of gas dynamics by fluxes in one formula, 4096² f32, took 2.07 and 10.6 ms a
/// step, launches per stage 1.17 and 4.49.
#[test]
fn long_formulas_are_no_cheaper_in_persistent_kernels() {
    // Quotients that depend on each other, as limiters and Riemann solvers have them.
    let mut p = Definition::new("quotients", 2);
    let names = ["a", "b", "c", "d"];
    for name in names {
        p.field(name, Centring::CELL);
    }
    p.step().stage("quotients", |s| {
        let of = |name: &str, at: [i32; 2]| s.field(name).at(at);
        let mut all = Vec::new();
        for name in names {
            let mut value = of(name, [0, 0]);
            for at in [[0, -1], [0, 1], [-1, 0], [1, 0], [0, -2], [0, 2], [-2, 0], [2, 0]] {
                value = (value + of("a", at)) / (value * value + of(name, at)) + (value + 2.0).sqrt();
            }
            all.push(value);
        }
        for (name, value) in names.iter().zip(all) {
            s.set(name, value);
        }
    });
    let own = problem(p.build().unwrap(), &[4096, 4096], DType::F32);
    let device = DeviceSpec::preset("h200").unwrap();
    let auto = plan(&own, &device, &Options::default()).unwrap();
    assert_ne!(auto.execution, Execution::Persistent, "{}", auto.summary());
    let [persistent, stepwise] = [Execution::Persistent, Execution::Stepwise]
        .map(|execution| plan(&own, &device, &Options { execution, ..Options::default() }).unwrap());
    assert!(persistent.estimated_seconds > stepwise.estimated_seconds);
}

/// A stage at points costs a launch, or a task of a persistent kernel, and not a sweep of the domain.
#[test]
fn points_cost_what_they_are() {
    let device = DeviceSpec::preset("h200").unwrap();
    let with = |points: usize| {
        let mut p = Definition::new("sources", 3);
        p.field("u", Centring::CELL).scalar("n", Some(0.0), "");
        p.step().stage("sweep", |s| s.set("u", s.field("u").at([0, 0, 1]) + s.field("u").here()));
        for point in 0..points {
            let at = [[10 + 30 * point, 20, 500 - 30 * point]];
            p.extend(0).points("source", &at, |s| s.set("u", s.field("u").here() + s.constant(1.0)));
        }
        problem(p.build().unwrap(), &[512, 512, 512], DType::F64)
    };
    let seconds = |points, execution| {
        let options = Options { execution, fuse: Fuse::Off, ..Options::default() };
        let plan = plan(&with(points), &device, &options).unwrap();
        (plan.estimated_seconds, plan.project(10).memory_bytes)
    };
    for (execution, most) in [(Execution::Stepwise, 5e-6), (Execution::Persistent, 3e-6)] {
        let (none, bytes) = seconds(0, execution);
        for points in [1, 16] {
            let (own, moved) = seconds(points, execution);
            let more = own - none;
            assert!((0.0..most * points as f64).contains(&more), "{execution} {points}: {more}");
            assert!(moved <= bytes * 1.001, "{moved} {bytes}");
        }
    }
}
