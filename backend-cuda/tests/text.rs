//! Kernel text compiled with no device for every architecture: the compiler's report is held to the plan.

mod common;

use std::sync::Arc;

use abide_core::plan::{Execution, Options, plan};
use abide_core::{Boundaries, Boundary, DType, DeviceSpec, Plan, Problem, Shape, catalogue};
use abide_cuda::{Nvrtc, report, target};

use common::present;

fn problem(name: &str, extents: &[usize], dtype: DType, boundary: Boundary) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    let mut problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
    problem.boundaries = Boundaries::all(boundary);
    problem
}

/// Compiler 13 no longer knows Volta; the wheel that the tests install does.
fn devices(nvrtc: &Nvrtc) -> Vec<DeviceSpec> {
    let names = if nvrtc.version().0 >= 13 { &["a100", "h200"][..] } else { &["v100", "a100", "h200"] };
    names.iter().map(|name| DeviceSpec::preset(name).unwrap()).collect()
}

#[test]
fn every_entry_compiles_for_every_architecture() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let boundaries = [Boundary::Fixed, Boundary::Periodic, Boundary::Mirror, Boundary::Constant(0.5)];
    let mut number = 0;
    for entry in catalogue::entries() {
        for dimensions in entry.dimensions.clone() {
            for device in devices(&nvrtc) {
                for execution in [Execution::Stepwise, Execution::Persistent] {
                    number += 1;
                    let dtype = if (number / 2 + dimensions) % 2 == 0 { DType::F32 } else { DType::F64 };
                    let extents = [&[1021][..], &[37, 211], &[13, 17, 67]][dimensions - 1];
                    let problem = problem(entry.name, extents, dtype, boundaries[number / 3 % 4]);
                    let options = Options { execution, ..Options::default() };
                    let plan = plan(&problem, &device, &options).unwrap();
                    let compiled = report(&problem, &plan, &target(&device)).unwrap();
                    let kernels = if execution == Execution::Stepwise { problem.program.stages().len() } else { 1 };
                    assert_eq!(compiled.len(), kernels, "{}", entry.name);
                    for kernel in compiled {
                        assert!(kernel.registers > 0 && kernel.registers <= 255, "{}: {kernel:?}", entry.name);
                        assert_eq!(kernel.target, target(&device));
                    }
                }
            }
        }
    }
}

/// Full-size domains: planes in registers must really be in registers, on every architecture and in both types.
#[test]
fn planes_in_registers_do_not_spill() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let domains: [(&str, &[usize], DType); 4] = [
        ("2d5pt", &[2304, 2304], DType::F64),
        ("2d25pt", &[1536, 2048], DType::F32),
        ("3d7pt", &[128, 192, 256], DType::F32),
        ("gray-scott", &[1024, 1024], DType::F64),
    ];
    let devices = devices(&nvrtc);
    for (number, (name, extents, dtype)) in domains.into_iter().enumerate() {
        let device = &devices[devices.len() - 1 - number % devices.len()];
        let problem = problem(name, extents, dtype, Boundary::Fixed);
        let options = Options { execution: Execution::Persistent, ..Options::default() };
        let asked = plan(&problem, device, &options).unwrap();
        let (kept, cubin): (Plan, _) = abide_cuda::fit(&nvrtc, &problem, &asked, &target(device)).unwrap();
        let worst = cubin.report.iter().map(|c| c.spill_bytes).max().unwrap_or(0);
        let [asked, used] = [&asked, &kept].map(|plan| plan.sweep().unwrap().planes_registers);
        println!("{name} {dtype} {}: {used} of {asked} planes in registers, {:?}", device.name, cubin.report);
        assert!(worst == 0 || used == 0, "{name} {dtype} {} spills {worst} bytes", device.name);
        assert!(cubin.report[0].registers <= kept.sweep().unwrap().registers);
        assert!(worst == 0 || kept.notes.iter().any(|note| note.contains("spills")));
        assert_eq!(kept.compiled, cubin.report);
    }
}
