//! Kernels of programs that are not plain, compiled with no device for every architecture.

mod common;

use std::sync::Arc;

use abide_core::plan::{Fuse, Options, plan};
use abide_core::program::{Marks, Probe, Record, Until};
use abide_core::{DType, DeviceSpec, Problem, Shape, catalogue};
use abide_cuda::{Nvrtc, report, target};

use common::present;

/// CloverLeaf's kernels do not spill, and stages that do the same share one.
#[test]
fn cloverleaf_does_not_spill() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["a100", "h200"][..] } else { &["v100", "a100", "h200"] };
    for name in names {
        let device = DeviceSpec::preset(name).unwrap();
        for (program, extents) in
            [(catalogue::cloverleaf(), &[960, 960][..]), (catalogue::cloverleaf_3d(), &[96, 96, 96])]
        {
            let shape = Shape::new(extents).unwrap();
            let problem = Problem::new(Arc::new(program.unwrap()), shape, DType::F64).unwrap();
            let plan = plan(&problem, &device, &Options::default()).unwrap();
            println!("{name} {shape}: {:.0} µs a step by the model", plan.estimated_seconds * 1e6);
            let compiled = report(&problem, &plan, &target(&device)).unwrap();
            for kernel in &compiled {
                println!("{} {}: {} registers", kernel.target, kernel.kernel, kernel.registers);
                assert_eq!(kernel.spill_bytes, 0, "{kernel:?}");
            }
            assert!(compiled.len() < problem.program.stages().len(), "{} kernels", compiled.len());
        }
    }
}

/// Groups of CloverLeaf's stages compile; what their registers and spills are is printed.
#[test]
fn groups_of_cloverleaf_compile() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["a100", "h200"][..] } else { &["v100", "h200"] };
    for name in names {
        let device = DeviceSpec::preset(name).unwrap();
        for (program, extents) in
            [(catalogue::cloverleaf(), &[3840, 3840][..]), (catalogue::cloverleaf_3d(), &[256, 256, 256])]
        {
            let shape = Shape::new(extents).unwrap();
            let problem = Problem::new(Arc::new(program.unwrap()), shape, DType::F64).unwrap();
            let options = Options { fuse: Fuse::Greedy, ..Options::default() };
            let plan = plan(&problem, &device, &options).unwrap();
            let begun = std::time::Instant::now();
            let compiled = report(&problem, &plan, &target(&device)).unwrap();
            let groups: Vec<_> =
                compiled.iter().filter(|kernel| kernel.kernel.starts_with("group")).collect();
            println!("{name} {shape}: {:.1} s", begun.elapsed().as_secs_f64());
            for kernel in &groups {
                println!(
                    "{}: {} registers, {} bytes spilt",
                    kernel.kernel, kernel.registers, kernel.spill_bytes
                );
            }
            assert!(groups.len() > 3, "{} groups", groups.len());
            // A value or two around the calls of divisions' rare cases.
            assert!(groups.iter().all(|kernel| kernel.spill_bytes <= 16), "{groups:?}");
        }
    }
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
        assert!(compiled.iter().all(|kernel| kernel.spill_bytes == 0), "{compiled:?}");
    }
}
