//! Kernels of programs that are not plain, compiled with no device for every architecture.

use crate::common;

use abide_planner::with_fewer_blocks;
use std::sync::Arc;

use abide_core::plan::{Compiled, Execution, Fuse, Options};
use abide_core::program::{
    Centring, Definition, Marks, Precision, Probe, Record, Reduction, Solve, SolveMethod, Until,
};
use abide_core::{Boundary, DType, DeviceSpec, Plan, Problem, Shape, Tune, catalogue};
use abide_cuda::{Nvrtc, report, report_as_planned, target};
use abide_planner::plan;

use common::{AROUND_CALLS, by_parts, part, present};

by_parts!(cloverleaf_does_not_spill, chains_do_not_spill, transforms_do_not_spill);

/// In a run of f64, what follows from fields of f32 alone is computed in that type, so that no conversion but those of loads and
/// stores is left to the compiler.
#[test]
fn what_follows_from_fields_of_f32_is_declared_so() {
    let mut p = Definition::new("sweep", 3);
    p.boundary(Boundary::Constant(0.5)).field("u", Centring::CELL).field("f", Centring::CELL);
    p.precision("u", Precision::F32).precision("f", Precision::Bf16);
    p.step().stage("sweep", |s| {
        let (u, place) = (s.field("u"), 0.5 * s.coord(0).round_f32());
        let is_even = (place - place.floor()).lt(0.25);
        let around =
            u.along(0, -1) + u.along(0, 1) + u.along(1, -1) + u.along(1, 1) + u.along(2, -1) + u.along(2, 1);
        let swept = (around - s.field("f").here()) / 6.0;
        s.set("u", is_even.select(swept, -u.here().abs()) + s.field("f").at([0, 1, 0]).abs().sqrt());
    });
    let shape = Shape::new(&[40; 3]).unwrap();
    let problem = Problem::new(Arc::new(p.build().unwrap()), shape, DType::F64).unwrap();
    let text = |problem: &Problem| {
        let plan = plan(problem, &DeviceSpec::preset("h200").unwrap(), &Options::default()).unwrap();
        abide_shaders::cuda::kernel(problem, &plan).unwrap()
    };
    let own = text(&problem);
    let (_, body) = own.split_once("void compute(const View& u)").unwrap();
    let (body, _) = body.split_once("return Values").unwrap();
    let (_, body) = body.split_once("exact) {").unwrap();
    let is_read = |line: &&str| line.contains("u.template") || line.contains("? 1.0 : 0.0");
    let (reads, others): (Vec<&str>, Vec<&str>) =
        body.lines().filter(|line| line.contains("const ")).partition(is_read);
    assert!(reads.iter().filter(|line| line.contains("const real")).count() >= 9, "{body}");
    assert!(others.len() > 10 && others.iter().all(|line| line.contains("const float")), "{body}");
    assert!(
        body.contains("floorf") && body.contains("sqrtf") && body.contains("coordinate<0, float>"),
        "{body}"
    );
    // A value beyond the domain that f32 has not keeps a field in the run's type.
    let boundaries = abide_core::Boundaries::all(Boundary::Constant(0.1));
    let other = text(&Problem { boundaries, ..problem });
    assert_ne!(own.matches("const float").count(), other.matches("const float").count());
}

/// Returns CloverLeaf in two and three dimensions, with so many cells along an axis, for each architecture.
fn clovers([flat, deep]: [usize; 2]) -> Vec<(DeviceSpec, Problem)> {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return Vec::new() };
    let names = if nvrtc.version().0 >= 13 { &["h200", "a100"][..] } else { &["h200", "a100", "v100"] };
    let of = |name: &&str| {
        let device = DeviceSpec::preset(name).unwrap();
        let programs = [
            (catalogue::cloverleaf_3d(), Shape::new(&[deep; 3])),
            (catalogue::cloverleaf(), Shape::new(&[flat; 2])),
        ];
        programs.map(|(program, shape)| {
            (device.clone(), Problem::new(Arc::new(program.unwrap()), shape.unwrap(), DType::F64).unwrap())
        })
    };
    names.iter().flat_map(of).collect()
}

/// CloverLeaf's kernels do not spill but around calls, and stages that do the same share one.
fn cloverleaf_does_not_spill(is_other: bool) {
    for (device, problem) in part(clovers([960, 96]), is_other) {
        let plan = plan(&problem, &device, &Options::default()).unwrap();
        println!(
            "{} {}: {:.0} µs a step by the model",
            device.name,
            problem.shape,
            plan.estimated_seconds * 1e6
        );
        let compiled = report(&problem, &plan, &target(&device)).unwrap();
        for kernel in &compiled {
            println!("{} {}: {} registers", kernel.target, kernel.kernel, kernel.registers);
            assert!(kernel.spill_bytes <= AROUND_CALLS, "{kernel:?}");
        }
        assert!(compiled.len() < problem.program.stages().len(), "{} kernels", compiled.len());
    }
}

/// Groups of CloverLeaf's stages compile; what their registers and spills are is printed.
#[test]
#[ignore = "kernels of many stages for each architecture: minutes"]
fn groups_of_cloverleaf_compile() {
    for (device, problem) in clovers([3840, 256]) {
        let options = Options { fuse: Fuse::Greedy, ..Options::default() };
        let plan = plan(&problem, &device, &options).unwrap();
        let begun = std::time::Instant::now();
        let compiled = report(&problem, &plan, &target(&device)).unwrap();
        let groups: Vec<_> = compiled.iter().filter(|kernel| kernel.kernel.starts_with("group")).collect();
        println!("{} {}: {:.1} s", device.name, problem.shape, begun.elapsed().as_secs_f64());
        for kernel in &groups {
            println!("{}: {} registers, {} bytes spilt", kernel.kernel, kernel.registers, kernel.spill_bytes);
        }
        assert!(groups.len() > 3, "{} groups", groups.len());
        assert!(groups.iter().all(|kernel| kernel.spill_bytes <= AROUND_CALLS), "{groups:?}");
    }
}

/// Sweeps of a pressure become passes, whose kernels do not spill.
#[test]
fn passes_of_sweeps_do_not_spill() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["h200", "a100"][..] } else { &["h200", "a100", "v100"] };
    let mut p = Definition::new("projection", 2);
    p.boundary(Boundary::Mirror).field("u", Centring::CELL).field("p", Centring::CELL);
    p.temporary("rhs", Centring::CELL);
    let mut step = p.step();
    step.stage("drive", |s| s.set("rhs", s.field("u").at([0, 1]) - s.field("u").at([0, -1])));
    for _ in 0..20 {
        step.stage("sweep", |s| {
            let p = s.field("p");
            let around = p.at([-1, 0]) + p.at([0, -1]) + p.at([0, 1]) + p.at([1, 0]);
            s.set("p", 0.25 * (around - s.field("rhs").here()));
        });
    }
    step.stage("correct", |s| {
        let p = s.field("p");
        s.set("u", s.field("u").here() - 0.5 * (p.at([0, 1]) - p.at([0, -1])));
    });
    let program = Arc::new(p.build().unwrap());
    for (name, dtype) in names.iter().zip([DType::F32, DType::F64].into_iter().cycle()) {
        let device = DeviceSpec::preset(name).unwrap();
        let shape = Shape::new(&[4096, 4096]).unwrap();
        let problem = Problem::new(program.clone(), shape, dtype).unwrap();
        let options = Options { fuse: Fuse::Greedy, ..Options::default() };
        let plan = plan(&problem, &device, &options).unwrap();
        let passes = plan.stepwise().unwrap().partition.all().filter(|group| group.pass.is_some());
        assert!((1..6).contains(&passes.count()), "{}", plan.explain());
        let compiled = report(&problem, &plan, &target(&device)).unwrap();
        let streams: Vec<_> = compiled.iter().filter(|kernel| kernel.kernel == "stream").collect();
        for kernel in &streams {
            println!("{} {dtype}: {} registers", kernel.target, kernel.registers);
        }
        assert!(!streams.is_empty() && streams.iter().all(|kernel| kernel.spill_bytes == 0), "{streams:?}");
    }
}

/// CloverLeaf as one persistent kernel compiles in both types; what its registers and spills are is printed, and how many
/// blocks a multiprocessor is left with.
#[test]
#[ignore = "kernels of all loops at once: a minute"]
fn persistent_cloverleaf_compiles() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["a100", "h200"][..] } else { &["v100", "a100", "h200"] };
    let whole = |program: abide_core::Result<abide_core::Program>, extents: &[usize], dtype| {
        Problem::new(Arc::new(program.unwrap()), Shape::new(extents).unwrap(), dtype).unwrap()
    };
    for (name, dtype) in names.iter().zip([DType::F64, DType::F32, DType::F64]) {
        let device = DeviceSpec::preset(name).unwrap();
        for (mut problem, fuse) in [
            (whole(catalogue::cloverleaf(), &[960, 960], dtype), Fuse::Off),
            (whole(catalogue::cloverleaf(), &[3840, 3840], dtype), Fuse::Greedy),
            (whole(catalogue::cloverleaf_3d(), &[96, 96, 96], dtype), Fuse::Off),
        ] {
            problem.until = Some(Until::parse("time >= 1", &problem.program.clone()).unwrap());
            let options = Options { execution: Execution::Persistent, fuse, ..Options::default() };
            let plan = plan(&problem, &device, &options).unwrap();
            let text = abide_shaders::cuda::kernel(&problem, &plan).unwrap();
            // Other blocks change what a block reads, and the cache of constant data does not see that.
            assert_eq!(text.matches("__ldg(").count(), 1, "only where PERSISTENT is false");
            let begun = std::time::Instant::now();
            let (fit, compiled) = fitted(&problem, &plan, &target(&device));
            let kernel = &compiled[0];
            println!(
                "{name} {} {dtype} {fuse}: {} registers, {} bytes spilt, {} blocks per multiprocessor, {:.1} s",
                problem.shape,
                kernel.registers,
                kernel.spill_bytes,
                fit,
                begun.elapsed().as_secs_f64()
            );
            assert_eq!((compiled.len(), &*kernel.kernel), (1, "program_steps"));
            assert!(kernel.spill_bytes <= 64, "{kernel:?}");
        }
    }
}

/// Returns the blocks per multiprocessor of the plan that is kept, and the compiler's report.
fn fitted(problem: &Problem, plan: &Plan, target: &str) -> (usize, Vec<Compiled>) {
    let compiled = report(problem, plan, target).unwrap();
    let mut kept = plan.clone();
    while report_as_planned(problem, &kept, target).unwrap() != compiled {
        kept = with_fewer_blocks(&kept, problem).unwrap();
    }
    (kept.persistent_program().unwrap().blocks_per_multiprocessor, compiled)
}

/// The end of a step compiles with all that it can be asked for, in both types, and does not spill.
#[test]
fn the_end_of_a_step_compiles() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["a100"][..] } else { &["v100", "h200"] };
    for (name, dtype) in names.iter().zip([DType::F32, DType::F64]) {
        let device = DeviceSpec::preset(name).unwrap();
        let (program, shape) = (catalogue::cloverleaf().unwrap(), Shape::new(&[30, 40]).unwrap());
        let mut problem = Problem::new(Arc::new(program), shape, dtype).unwrap();
        let program = problem.program.clone();
        let probes = (0..100).map(|i| Probe::new(&program, "xvel0", &[i % 31, i % 41]).unwrap()).collect();
        problem.record = Some(Record::new(&program, 3, probes));
        problem.marks = Some(Marks::new(&program, "time", 0.1).unwrap());
        problem.until = Some(Until::parse("dt < 1e-9", &program).unwrap());
        let plan = plan(&problem, &device, &Options::default()).unwrap();
        let compiled = report(&problem, &plan, &target(&device)).unwrap();
        assert!(compiled.iter().any(|kernel| kernel.kernel.contains("end_of_step")), "{compiled:?}");
        assert!(compiled.iter().all(|kernel| kernel.spill_bytes <= AROUND_CALLS), "{compiled:?}");
    }
}

/// Updates whose kernels reduce what they make compile without spills, in both types and on every number of axes.
#[test]
fn reductions_of_what_is_made_compile() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["a100", "h200"][..] } else { &["v100", "a100", "h200"] };
    for (number, name) in names.iter().enumerate() {
        let device = DeviceSpec::preset(name).unwrap();
        for (dimensions, extents) in [(1, &[40_000][..]), (2, &[1000, 900]), (3, &[90, 70, 110])] {
            let mut p = Definition::new("limited", dimensions);
            p.field("u", Centring::CELL).scalar("most", Some(0.0), "of all");
            let mut step = p.step();
            step.stage("heat", |s| {
                let u = s.field("u");
                s.set("u", u.here() + 0.1 * u.laplacian() / (1.0 + s.param("most")));
            });
            step.reduce("most", Reduction::Max, Centring::CELL, |s| s.field("u").here().abs());
            let dtype = [DType::F32, DType::F64][(dimensions + number) % 2];
            let program = Arc::new(p.build().unwrap());
            let problem = Problem::new(program, Shape::new(extents).unwrap(), dtype).unwrap();
            let plan = plan(&problem, &device, &Options::default()).unwrap();
            let compiled = report(&problem, &plan, &target(&device)).unwrap();
            assert!(compiled.iter().any(|kernel| kernel.kernel.contains("reduce_made")), "{compiled:?}");
            assert!(compiled.iter().all(|kernel| kernel.spill_bytes == 0), "{compiled:?}");
        }
    }
}

/// Chains of stages on coarse grids, in two and three dimensions, compile in little time and do not spill.
fn chains_do_not_spill(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["h200", "a100"][..] } else { &["h200", "a100", "v100"] };
    let mut cases = Vec::new();
    for extents in [&[128, 128][..], &[64; 3]] {
        for device in names.iter().map(|name| DeviceSpec::preset(name).unwrap()) {
            let program = catalogue::find("navier-stokes").unwrap().program(extents.len()).unwrap();
            let shape = Shape::new(extents).unwrap();
            cases.push((device, Problem::new(Arc::new(program), shape, DType::F64).unwrap()));
        }
    }
    for (device, problem) in part(cases, is_other) {
        let plan = plan(&problem, &device, &Options { tune: Tune::Off, ..Options::default() }).unwrap();
        let chains = &plan.stepwise().unwrap().partition.chains;
        let stages: usize = chains.iter().map(|chain| chain.groups.len()).sum();
        assert!(stages > 40, "{stages} stages in chains");
        let begun = std::time::Instant::now();
        let compiled = report(&problem, &plan, &target(&device)).unwrap();
        println!("{} {}: {:.1} s", device.name, problem.shape, begun.elapsed().as_secs_f64());
        for kernel in compiled.iter().filter(|kernel| kernel.kernel.starts_with("chain")) {
            println!("{}: {} registers, {} bytes spilt", kernel.kernel, kernel.registers, kernel.spill_bytes);
            assert!(kernel.spill_bytes <= AROUND_CALLS, "{kernel:?}");
        }
    }
}

/// Transforms of lines along each axis, in tiles of each size, compile for each architecture and do not spill.
fn transforms_do_not_spill(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["h200", "a100"][..] } else { &["h200", "a100", "v100"] };
    let mut p = Definition::new("direct", 3);
    p.field("u", Centring::CELL).field("f", Centring::CELL).boundary(Boundary::Periodic);
    let how = Solve { method: SolveMethod::Direct, null_space: true, ..Solve::default() };
    p.step().solve("u", &how, &|s| -s.field("u").laplacian(), &|s| s.field("f").here());
    let program = Arc::new(p.build().unwrap());
    let mut cases = Vec::new();
    for dtype in [DType::F64, DType::F32] {
        for extents in [[256; 3], [32, 48, 80], [9, 17, 33]] {
            for device in names.iter().map(|name| DeviceSpec::preset(name).unwrap()) {
                let shape = Shape::new(&extents).unwrap();
                cases.push((device, Problem::new(program.clone(), shape, dtype).unwrap()));
            }
        }
    }
    for (device, problem) in part(cases, is_other) {
        let plan = plan(&problem, &device, &Options { tune: Tune::Off, ..Options::default() }).unwrap();
        let compiled = report(&problem, &plan, &target(&device)).unwrap();
        let transforms: Vec<_> = compiled.iter().filter(|own| own.kernel.starts_with("transform")).collect();
        assert!(transforms.len() >= 9, "{compiled:?}");
        for kernel in transforms {
            let (target, name, registers) = (&kernel.target, &kernel.kernel, kernel.registers);
            println!("{target} {} {}: {name} has {registers} registers", problem.shape, problem.dtype);
            assert!(kernel.spill_bytes <= AROUND_CALLS, "{kernel:?}");
        }
    }
}
