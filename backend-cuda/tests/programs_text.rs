//! Kernels of programs that are not plain, compiled with no device for every architecture.

mod common;

use std::sync::Arc;

use abide_core::plan::{Options, plan};
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
