//! Kernel text compiled with no device for every architecture: the compiler's report is held to the plan.

use crate::{common, parallel};

use std::sync::{Arc, Mutex};

use abide_core::plan::resident::{self, Exchange};
use abide_core::plan::{CachePolicy, Depth, Execution, Options};
use abide_core::program::{Clock, Probe, Record};
use abide_core::slabs::Slabs;
use abide_core::{Boundaries, Boundary, DType, DeviceSpec, Error, Plan, Problem, Shape, catalogue};
use abide_cuda::{Nvrtc, report, target};
use abide_planner::{Alike, Fitted, plan, plan_ranks, plan_resident, resident_plans, slight_spills};
use abide_random::timed;
use abide_shaders::cuda::{COMPILE_OPTIONS, kernel};

use common::{by_parts, part, present};
use parallel::each;

by_parts!(
    every_entry_compiles_for_every_architecture,
    planes_in_registers_do_not_spill,
    tiles_of_whole_domains_do_not_spill,
    tags_do_not_spill_where_counters_do_not,
    streaming_plans_do_not_spill,
    kernels_that_give_planes_do_not_spill,
);

fn problem(name: &str, extents: &[usize], dtype: DType, boundary: Boundary) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    let mut problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
    problem.set_boundaries(Boundaries::all(boundary));
    problem
}

/// Returns the devices that the compiler knows. Version 13 no longer knows Volta; the wheel that the tests
/// install does.
fn devices(nvrtc: &Nvrtc) -> Vec<DeviceSpec> {
    let names = if nvrtc.version().0 >= 13 { &["a100", "h200"][..] } else { &["v100", "a100", "h200"] };
    names.iter().map(|name| DeviceSpec::preset(name).unwrap()).collect()
}

/// Returns the plan; `None`, with a message, where a streaming kernel cannot do what is asked.
fn planned(problem: &Problem, device: &DeviceSpec, options: &Options) -> Option<Plan> {
    match plan(problem, device, options) {
        Ok(plan) => Some(plan),
        Err(error @ Error::Limit { .. }) if options.execution == Execution::Streaming => {
            println!(
                "{} {} {} on {}: {error}",
                problem.program.name(),
                problem.shape,
                problem.dtype,
                device.name
            );
            None
        }
        Err(error) => panic!("{} {:?}: {error}", problem.program.name(), options),
    }
}

/// The inner sides of a slab have the plans and kernels of sides that hold zero, which other tests hold to the reference's
/// bits.
#[test]
fn open_sides_have_the_kernels_of_zeros() {
    let device = DeviceSpec::preset("h200").unwrap();
    let mut compared = 0;
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            let extents = &[512, 512, 512][..dimensions];
            for execution in
                [Execution::Auto, Execution::Stepwise, Execution::Streaming, Execution::Persistent]
            {
                let options = Options { execution, ..Options::default() };
                let of = |side: Boundary| {
                    let mut problem = problem(entry.name, extents, DType::F64, Boundary::Mirror);
                    let slowest = problem.slowest();
                    let mut boundaries = problem.boundaries;
                    boundaries.0[slowest] = [Boundary::Mirror, side];
                    problem.set_boundaries(boundaries);
                    let plan = planned(&problem, &device, &options)?;
                    // The first line describes the problem.
                    let text = kernel(&problem, &plan).unwrap().replace("+=open", "+=constant=0");
                    Some((text, plan.summary()))
                };
                let (open, zero) = (of(Boundary::Open), of(Boundary::Constant(0.0)));
                compared += usize::from(open.is_some());
                assert!(open == zero, "{} in {dimensions} axes, {execution}", entry.name);
            }
        }
    }
    assert!(compared > 60, "{compared} kernels");
}

/// Plain forms of random programs, with parameters that vary and choices at points; every second one notes values.
#[test]
fn plain_forms_compile() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let device = DeviceSpec::preset("h200").unwrap();
    let own = Options::default();
    let deep = Options { execution: Execution::Streaming, depth: Depth::Steps(2), ..own };
    let drawn = (0..16).filter_map(|seed| {
        let (mut problem, _) = timed::problem(seed).ok()?;
        let probe = Probe { field: 0, index: problem.shape.padded().map(|extent| extent / 2) };
        problem.record = (seed % 2 == 0).then(|| Record::new(&problem.program, 1, vec![probe]));
        Clock::on_device(&problem, true)
    });
    let forms: Vec<(Clock, Options)> =
        drawn.flat_map(|clock| [(clock.clone(), own), (clock, deep)]).collect();
    each(&forms, |(clock, options)| {
        let Some(plan) = planned(&clock.at_rest(), &device, options) else { return };
        let text = kernel(clock.plain(), &plan).unwrap();
        let compiled = nvrtc.compile(&text, &target(&device), &COMPILE_OPTIONS);
        compiled.unwrap_or_else(|error| panic!("{:?}: {error}", clock.plain().program.name()));
    });
}

/// Kernels of large domains that note values of several fields compile.
#[test]
fn kernels_that_note_values_compile() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let cases: [(&str, &[usize]); 4] = [
        ("2d5pt", &[8192, 8192]),
        ("gray-scott", &[4096, 4096]),
        ("fdtd-tm", &[4096, 4096]),
        ("3d7pt", &[512, 512, 512]),
    ];
    let device = devices(&nvrtc).pop().unwrap();
    each(&cases, |(name, extents)| {
        let program = Arc::new(catalogue::find(name).unwrap().program(extents.len()).unwrap());
        let mut problem = Problem::new(program, Shape::new(extents).unwrap(), DType::F32).unwrap();
        let fields = problem.program.fields().len();
        let probes = (0..3).map(|number| Probe {
            field: number % fields,
            index: problem.shape.padded().map(|extent| extent / (2 + number)),
        });
        problem.record = Some(Record::new(&problem.program, 1, probes.collect()));
        let clock = Clock::on_device(&problem, true).unwrap();
        let plan = planned(&clock.at_rest(), &device, &Options::default()).unwrap();
        assert!(plan.warp_streaming().is_some(), "{name}: {}", plan.summary());
        let text = kernel(clock.plain(), &plan).unwrap();
        let compiled = nvrtc.compile(&text, &target(&device), &COMPILE_OPTIONS);
        compiled.unwrap_or_else(|error| panic!("{name}: {error}"));
    });
}

fn every_entry_compiles_for_every_architecture(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let boundaries = [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror, Boundary::Constant(0.5)];
    // Deep kernels take long to compile, kernels of lines some seconds: each entry has a deep one for one of
    // the devices.
    let depths = |dimensions| {
        [if dimensions == 1 { Depth::Steps(5) } else { Depth::Auto }, Depth::Steps(1), Depth::Steps(2)]
    };
    let (mut runs, mut turn) = (Vec::new(), 0);
    for entry in catalogue::plain() {
        for dimensions in entry.dimensions.clone() {
            for device in devices(&nvrtc) {
                let extents = [&[1021][..], &[37, 211], &[13, 17, 67]][dimensions - 1];
                let boundary = boundaries[turn % boundaries.len()];
                let streaming = (Execution::Streaming, depths(dimensions)[(turn + turn / 3) % 3]);
                // Tiles that may hold a part of the domain, or, of every second entry, tiles that hold all of it.
                let cache = [CachePolicy::Mixed, CachePolicy::Auto][turn / 2 % 2];
                for (number, (execution, depth)) in
                    [(Execution::Stepwise, Depth::Auto), (Execution::Persistent, Depth::Auto), streaming]
                        .into_iter()
                        .enumerate()
                {
                    let cache = if execution == Execution::Persistent { cache } else { CachePolicy::Auto };
                    let dtype =
                        if (turn + number / 2 + dimensions) % 2 == 0 { DType::F32 } else { DType::F64 };
                    let problem = problem(entry.name, extents, dtype, boundary);
                    let options = Options { execution, depth, cache, ..Options::default() };
                    if let Some(plan) = planned(&problem, &device, &options) {
                        runs.push((problem, plan));
                    }
                }
                turn += 1;
            }
        }
    }
    each(&part(runs, is_other), |(problem, plan)| {
        let name = problem.program.name();
        let compiled = report(problem, plan, &target(&plan.device)).unwrap();
        let kernels = if plan.execution == Execution::Stepwise { problem.program.stages().len() } else { 1 };
        assert_eq!(compiled.len(), kernels, "{name}");
        for kernel in compiled {
            assert!(kernel.registers > 0 && kernel.registers <= 255, "{name}: {kernel:?}");
            assert_eq!(kernel.target, target(&plan.device));
        }
    });
}

/// Full-size domains: planes in registers must really be in registers, on every architecture and in both
/// types.
fn planes_in_registers_do_not_spill(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let domains: [(&str, &[usize], DType); 4] = [
        ("2d5pt", &[2304, 2304], DType::F64),
        ("2d25pt", &[1536, 2048], DType::F32),
        ("3d7pt", &[128, 192, 256], DType::F32),
        ("gray-scott", &[1024, 1024], DType::F64),
    ];
    let devices = devices(&nvrtc);
    for (number, (name, extents, dtype)) in part(domains.into_iter().enumerate(), is_other) {
        let device = &devices[devices.len() - 1 - number % devices.len()];
        let problem = problem(name, extents, dtype, Boundary::Fixed);
        let cache = CachePolicy::Mixed;
        let options = Options { execution: Execution::Persistent, cache, ..Options::default() };
        let asked = plan(&problem, device, &options).unwrap();
        let Fitted { plan: kept, code } = abide_cuda::fit(&nvrtc, &problem, &asked, &target(device)).unwrap();
        let worst = code.cubin.report.iter().map(|c| c.spill_bytes).max().unwrap_or(0);
        let [asked, used] = [&asked, &kept].map(|plan| plan.persistent().unwrap().planes_registers);
        println!(
            "{name} {dtype} {}: {used} of {asked} planes in registers, {:?}",
            device.name, code.cubin.report
        );
        assert!(worst == 0 || used == 0, "{name} {dtype} {} spills {worst} bytes", device.name);
        assert!(code.cubin.report[0].registers <= kept.persistent().unwrap().registers);
        assert!(worst == 0 || kept.notes.iter().any(|note| note.contains("spills")));
        assert_eq!(kept.compiled, code.cubin.report);
    }
}

/// Tiles that hold a whole domain have room for it, on every architecture and in both types.
fn tiles_of_whole_domains_do_not_spill(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let domains: [(&str, &[usize], DType); 5] = [
        ("2d5pt", &[1024, 1024], DType::F64),
        ("2d5pt", &[2304, 2304], DType::F32),
        ("3d7pt", &[96, 96, 96], DType::F64),
        ("wave", &[512, 512], DType::F64),
        ("2d9pt", &[256, 256], DType::F32),
    ];
    let devices = devices(&nvrtc);
    for (number, (name, extents, dtype)) in part(domains.into_iter().enumerate(), is_other) {
        let device = &devices[devices.len() - 1 - number / 2 % devices.len()];
        let boundary = [Boundary::Fixed, Boundary::Mirror][number % 2];
        let problem = problem(name, extents, dtype, boundary);
        let Ok(asked) = plan_resident(&problem, device, &Options::default()) else {
            println!("{name} {} {dtype} does not fit {}", problem.shape, device.name);
            continue;
        };
        let Fitted { plan: kept, code } = abide_cuda::fit(&nvrtc, &problem, &asked, &target(device)).unwrap();
        println!("{name} {dtype} {}: {} {:?}", device.name, kept.summary(), code.cubin.report);
        assert_eq!(
            code.cubin.report.iter().map(|c| c.spill_bytes).max(),
            Some(0),
            "{name} {dtype} {}",
            device.name
        );
    }
}

/// The same tiles exchange by counters and by tags, on every architecture: words with tags take no register that planes
/// need.
fn tags_do_not_spill_where_counters_do_not(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let domains: [(&str, &[usize], DType, Boundary); 5] = [
        ("2d5pt", &[1024, 1024], DType::F64, Boundary::Fixed),
        ("2d9pt", &[512, 512], DType::F32, Boundary::Mirror),
        ("gray-scott", &[512, 512], DType::F32, Boundary::Periodic),
        ("wave", &[512, 512], DType::F64, Boundary::Fixed),
        ("3d7pt", &[64, 64, 64], DType::F64, Boundary::Fixed),
    ];
    let devices = devices(&nvrtc);
    let all = devices.iter().flat_map(|device| domains.map(|domain| (device, domain)));
    each(&part(all, is_other), |&(device, (name, extents, dtype, boundary))| {
        let problem = &problem(name, extents, dtype, boundary);
        let plans = resident_plans(problem, device, &Options::default()).unwrap();
        let of = |exchange| {
            plans.iter().find_map(|plan| {
                let configuration = plan.resident()?.configuration();
                let other = resident::Configuration { exchange, ..configuration };
                (configuration.exchange == Exchange::Counted)
                    .then(|| abide_planner::resident::plan_configuration(problem, device, &other))
                    .flatten()
            })
        };
        let [counted, tagged] = &Exchange::ALL.map(|exchange| of(exchange).unwrap());
        let spilled = [counted, tagged].map(|plan| {
            let compiled = report(problem, plan, &target(&plan.device)).unwrap();
            let exchange = plan.resident().unwrap().exchange;
            println!(
                "{} {} {exchange:?}: {} {compiled:?}",
                problem.program.name(),
                problem.dtype,
                plan.summary()
            );
            compiled.iter().map(|kernel| kernel.spill_bytes).sum::<usize>()
        });
        assert!(spilled[0] > 0 || spilled[1] == 0, "{}: {spilled:?} {tagged:?}", problem.program.name());
    });
}

/// The linear stencils whose rates are measured.
const LINEAR: [&str; 13] = [
    "2d5pt", "2ds9pt", "2d13pt", "2d17pt", "2d21pt", "2ds25pt", "2d9pt", "2d25pt", "3d7pt", "3d13pt",
    "3d17pt", "3d27pt", "poisson",
];

/// Full-size domains: the values that a streaming kernel carries from plane to plane must fit the registers
/// that its plan grants, but for the few that the compiler moves out of the inner loop. Each stencil in both
/// types, on two architectures that take turns.
fn streaming_plans_do_not_spill(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let mut plans = Vec::new();
    // A model of several fields and one of several stages beside them.
    for (number, name) in LINEAR.into_iter().chain(["gray-scott", "fdtd-tm"]).enumerate() {
        let flat = catalogue::find(name).unwrap().dimensions.contains(&2);
        let extents = if flat { &[8352, 8352][..] } else { &[512, 512, 512] };
        let devices = devices(&nvrtc);
        for turn in 0..2 {
            let device = &devices[(number + turn) % devices.len()];
            let dtype = [DType::F64, DType::F32][(number / devices.len() + turn) % 2];
            let problem = problem(name, extents, dtype, Boundary::Fixed);
            let options = Options { execution: Execution::Streaming, ..Options::default() };
            let plan =
                plan(&problem, device, &options).unwrap_or_else(|error| panic!("{name} {dtype}: {error}"));
            plans.push((problem, plan));
        }
    }
    let spilling = Mutex::new(Vec::new());
    each(&part(plans, is_other), |(problem, plan)| {
        let target = target(&plan.device);
        let Fitted { plan: kept, code } = abide_cuda::fit(&nvrtc, problem, plan, &target).unwrap();
        assert_eq!(kept.compiled, code.cubin.report);
        for kernel in &code.cubin.report {
            let (bytes, registers) = (kernel.spill_bytes, kept.warp_streaming().unwrap().registers);
            let words = format!("{} {} {target}: {}", problem.program.name(), problem.dtype, kept.summary());
            println!("{words}: {} of {registers} registers, {bytes} bytes spilled", kernel.registers);
            assert!(kernel.registers <= registers, "{words}: {} of {registers} registers", kernel.registers);
            if bytes > slight_spills(&kept) {
                spilling.lock().unwrap().push(format!("{words}: {bytes} bytes"));
            }
        }
    });
    let spilling = spilling.into_inner().unwrap();
    assert!(spilling.is_empty(), "these spill:\n{}", spilling.join("\n"));
}

/// A slab's kernel that stores its outermost planes into its neighbours' memory has the depth of the one that does not, and spills no
/// more than any.
fn kernels_that_give_planes_do_not_spill(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let device = DeviceSpec::preset("h200").unwrap();
    let mut plans = Vec::new();
    for name in ["3d7pt", "3d27pt"] {
        for dtype in [DType::F64, DType::F32] {
            let problem = problem(name, &[4 * 512, 512, 512], dtype, Boundary::Fixed);
            let plan =
                plan_ranks(&problem, &Options::default(), &Alike { device: &device, count: 4 }).unwrap();
            let ranks = plan.ranks.unwrap();
            let weights = [1; 4];
            let slabs = Slabs::new(&problem, ranks.depth, &weights).unwrap();
            for rank in [0, 1] {
                let own = ranks.slabs[rank].clone();
                assert!(own.warp_streaming().unwrap().edges.is_some(), "{name} {dtype} {}", own.summary());
                plans.push((slabs.problem(rank, &problem).unwrap(), own));
            }
        }
    }
    each(&part(plans, is_other), |(problem, plan)| {
        let target = target(&plan.device);
        let Fitted { plan: kept, code } = abide_cuda::fit(&nvrtc, problem, plan, &target).unwrap();
        let words = format!("{} {} {target}: {}", problem.program.name(), problem.dtype, kept.summary());
        let [kernel] = &code.cubin.report[..] else { panic!("{words}: {:?}", code.cubin.report) };
        println!("{words}: {} registers, {} bytes spilled", kernel.registers, kernel.spill_bytes);
        assert!(kernel.spill_bytes <= slight_spills(&kept), "{words}: {kernel:?}");
        assert_eq!(kept.depth, plan.depth, "{words}");
        assert_eq!(kept.warp_streaming().unwrap().edges, plan.warp_streaming().unwrap().edges, "{words}");
    });
}
