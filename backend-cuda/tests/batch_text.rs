//! Kernels of batches, compiled with no device: what the compiler reports is what the plan of a block has room for.

use crate::common;

use std::sync::Arc;

use abide_core::plan::Options;
use abide_core::{Boundaries, Boundary, DType, DeviceSpec, Problem, Shape, catalogue};
use abide_cuda::{Nvrtc, fit, target};
use abide_planner::plan;
use abide_shaders::cuda::kernel;

use common::{by_parts, part, present};

by_parts!(blocks_of_members_fit_as_planned);

fn batch(name: &str, extents: &[usize], dtype: DType, boundary: Boundary, members: usize) -> Problem {
    let program = catalogue::find(name).unwrap().program(extents.len()).unwrap();
    let mut problem = Problem::new(Arc::new(program), Shape::new(extents).unwrap(), dtype).unwrap();
    problem.set_boundaries(Boundaries::all(boundary));
    problem.repeat(members).unwrap();
    problem
}

/// Blocks that use no more than they were given share multiprocessors as planned.
fn blocks_of_members_fit_as_planned(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let devices = ["a100", "h200"].map(|name| DeviceSpec::preset(name).unwrap());
    let domains = [
        ("2d5pt", &[64, 64][..], Boundary::Fixed),
        ("2d9pt", &[64, 64], Boundary::Periodic),
        ("2d5pt", &[33, 61], Boundary::Mirror),
        ("gray-scott", &[64, 64], Boundary::Periodic),
        ("fdtd-tm", &[48, 60], Boundary::Fixed),
        ("1d3pt", &[200], Boundary::Clamp),
        ("3d7pt", &[16, 16, 32], Boundary::Fixed),
    ];
    let each = devices.iter().flat_map(|device| [(device, DType::F32), (device, DType::F64)]);
    let cases = each.flat_map(|each| domains.map(|domain| (domain, each)));
    for ((name, extents, boundary), (device, dtype)) in part(cases, is_other) {
        let problem = batch(name, extents, dtype, boundary, 4096);
        let planned = plan(&problem, device, &Options::default()).unwrap();
        assert!(planned.is_at_once(), "{name} {extents:?} {dtype}: {:?}", planned.notes);
        let plan = fit(&nvrtc, &problem, &planned, &target(device)).unwrap().plan;
        assert_eq!(plan.batch, planned.batch);
        let (tiles, report) = (plan.resident().unwrap(), &plan.compiled[0]);
        let words = format!(
            "{name} {extents:?} {dtype} on {}: {} blocks of {} warps, {}x{:?} cells, {} of {} planes in registers, {} B, \
                 {} registers, {} spilled, {:.3} ns per member and step; {:?}",
            device.name,
            tiles.blocks_per_multiprocessor,
            tiles.warps,
            tiles.planes,
            tiles.cells_per_thread,
            tiles.planes_registers,
            planned.resident().unwrap().planes_registers,
            tiles.shared_bytes,
            report.registers,
            report.spill_bytes,
            1e9 * plan.estimated_seconds,
            plan.notes,
        );
        println!("{words}");
        assert_eq!(report.spill_bytes, 0, "{words}");
        assert!(report.registers <= tiles.registers, "{words}");
    }
}

/// A kernel is compiled once for batches of all sizes.
#[test]
fn the_number_of_members_is_not_in_the_text() {
    let device = DeviceSpec::preset("h200").unwrap();
    let text = |members: usize| {
        let problem = batch("2d5pt", &[64, 64], DType::F64, Boundary::Fixed, members);
        kernel(&problem, &plan(&problem, &device, &Options::default()).unwrap()).unwrap()
    };
    assert_eq!(text(4096), text(8192));
}
