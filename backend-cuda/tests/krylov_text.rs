//! Solvers' kernel text compiled with no device for every architecture: nothing spills.

use crate::{common, parallel};

use std::sync::Mutex;

use abide_core::solver::plan::krylov::Slabs;
use abide_core::solver::{
    Gmres, GridOperator, Matrix, Method, PipelinedCg, Preconditioning, SolveCache, SolveOptions, SolvePlan,
};
use abide_core::{Boundaries, Boundary, DType, DeviceSpec, LinearStencil, Shape};
use abide_cuda::{Nvrtc, fit_solver, plan_batch, target};
use abide_solvers::plan::krylov::{plan_krylov, plan_krylov_slabs};
use abide_solvers::sparse::{arrow, hpcg, laplacian_2d, laplacian_3d, trefethen};

use common::{by_parts, part, present};
use parallel::each;

fn stencil(extents: &[usize], dtype: DType) -> Matrix {
    let taps = [([-1, 0], -1.0), ([0, -1], -1.0), ([0, 0], 4.0), ([0, 1], -1.0), ([1, 0], -1.0)];
    let stencil = LinearStencil::new("laplacian", &taps).unwrap();
    let boundaries = Boundaries::all(Boundary::Constant(0.0));
    GridOperator::new(stencil, Shape::new(extents).unwrap(), boundaries, dtype).unwrap().into()
}

/// Returns matrices of every product and space, in either type.
fn matrices() -> Vec<(&'static str, Matrix)> {
    vec![
        ("trefethen 300", trefethen(300, DType::F64).unwrap().into()),
        ("trefethen 2000", trefethen(2000, DType::F64).unwrap().into()),
        ("laplacian 300×300", laplacian_2d(300, 300, DType::F64).unwrap().into()),
        ("laplacian 300×300 f32", laplacian_2d(300, 300, DType::F32).unwrap().into()),
        ("laplacian 40³", laplacian_3d(40, 40, 40, DType::F64).unwrap().into()),
        ("hpcg 24³ f32", hpcg(24, 24, 24, DType::F32).unwrap().into()),
        ("matrix-free 1000×999", stencil(&[1000, 999], DType::F64)),
        ("matrix-free 37×41 f32", stencil(&[37, 41], DType::F32)),
        ("arrow 300 000", arrow(300_000, DType::F64).unwrap().into()),
        ("arrow 1 000 000 f32", arrow(1_000_000, DType::F32).unwrap().into()),
    ]
}

by_parts!(
    every_method_compiles_without_spills,
    slabs_compile_without_spills,
    systems_that_are_measured_keep_their_threads,
);

/// Compiles the kernels of methods and systems, or all of the systems that `ABIDE_CASE` names.
fn every_method_compiles_without_spills(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let names = if nvrtc.version().0 >= 13 { &["a100", "h200"][..] } else { &["v100", "a100", "h200"] };
    let devices: Vec<DeviceSpec> = names.iter().map(|name| DeviceSpec::preset(name).unwrap()).collect();
    let policies = [SolveCache::Auto, SolveCache::None, SolveCache::Vectors, SolveCache::Matrix];
    let mut runs = Vec::new();
    for (number, (name, matrix)) in matrices().into_iter().enumerate() {
        for (turn, method) in Method::all().into_iter().enumerate() {
            // Devices, policies and preconditioners take turns.
            let preconditioner = Preconditioning::OF_KERNELS[(number + turn) % 4];
            let cache = policies[(number / 4 + turn) % 4];
            runs.push((
                name,
                matrix.clone(),
                SolveOptions { method, preconditioner, cache, ..SolveOptions::default() },
                devices[(number + turn) % devices.len()].clone(),
            ));
        }
    }
    // Cycles of many iterations, and several rows per thread.
    let long = Method::Gmres(Gmres { restart: 200 });
    for (number, device) in devices.iter().enumerate() {
        for matrix in
            [Matrix::from(laplacian_2d(700, 501, DType::F64).unwrap()), stencil(&[1000, 999], DType::F32)]
        {
            let preconditioner = Preconditioning::OF_KERNELS[(3 + number) % 4];
            let options = SolveOptions {
                method: long,
                preconditioner,
                cache: SolveCache::Auto,
                ..SolveOptions::default()
            };
            runs.push(("cycles of 200", matrix, options, device.clone()));
        }
    }
    match std::env::var("ABIDE_CASE") {
        Ok(only) => runs.retain(|(name, ..)| name.contains(&only)),
        Err(_) => runs = part(runs, is_other),
    }
    let wrong = Mutex::new(Vec::new());
    each(&runs, |(name, matrix, options, device)| {
        let plan = plan_krylov(matrix, device, options).unwrap();
        let words =
            format!("{name}, {}, {} {}, {}", device.name, options.method, options.preconditioner, plan.cache);
        match fit_solver(&nvrtc, matrix, &plan, options, &target(device), false) {
            Ok((plan, cubin)) => {
                let (report, layout) = (&cubin.report[0], plan.krylov().unwrap());
                assert_eq!(layout.spread_rows.len(), usize::from(name.starts_with("arrow")), "{words}");
                println!("{words}: {} registers; {}", report.registers, layout.describe());
                let granted = device.registers_for(layout.threads);
                if report.spill_bytes > 0 || report.registers > granted || plan.compiled != cubin.report {
                    wrong
                        .lock()
                        .unwrap()
                        .push(format!("{words}: {report:?}, granted {granted}; {}", layout.describe()));
                }
            }
            Err(error) => {
                let said = error.to_string();
                let lines: Vec<&str> = said.lines().filter(|line| line.contains("error")).collect();
                wrong.lock().unwrap().push(format!("{words}: {}", lines.join("; ")));
            }
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// On slabs of several devices, alone on each or two on one, kernels have the registers for the stores beyond as well.
fn slabs_compile_without_spills(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let device = DeviceSpec::preset("h200").unwrap();
    let (laplacian, cube) =
        (laplacian_2d(1000, 999, DType::F64).unwrap(), hpcg(60, 61, 62, DType::F64).unwrap());
    let options = |method, preconditioner| SolveOptions {
        method,
        preconditioner,
        cache: SolveCache::Auto,
        ..SolveOptions::default()
    };
    let pipelined = Method::PipelinedCg(PipelinedCg::default());
    let runs = [
        (Matrix::from(laplacian), options(Method::Cg, Preconditioning::None), [2, 1]),
        (Matrix::from(cube), options(pipelined, Preconditioning::Jacobi), [2, 1]),
        (stencil(&[1000, 999], DType::F32), options(Method::BiCgStab, Preconditioning::Jacobi), [8, 2]),
    ]
    .map(|(matrix, options, [count, of_a_device])| (matrix, options, Slabs { count, of_a_device }));
    let runs = part(runs, is_other);
    let wrong = Mutex::new(Vec::new());
    each(&runs, |(matrix, options, slabs)| {
        let alone = plan_krylov(matrix, &device, options).unwrap();
        let plan = plan_krylov_slabs(matrix, &device, options, *slabs, &alone).unwrap();
        let (plan, cubin) = fit_solver(&nvrtc, matrix, &plan, options, &target(&device), false).unwrap();
        let (report, layout) = (&cubin.report[0], plan.krylov().unwrap());
        assert_eq!((layout.slabs, plan.ranks.len()), (*slabs, slabs.count));
        let words = format!("{} {} on {slabs:?}", options.method, options.preconditioner);
        println!("{words}: {} registers; {}", report.registers, layout.describe());
        if report.spill_bytes > 0 || report.registers > device.registers_for(layout.threads) {
            wrong.lock().unwrap().push(format!("{words}: {report:?}; {}", layout.describe()));
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The systems that `abide bench scaling` solves, and one of many more rows, have as many threads on one device and on several as they
/// are planned with, and prefetch as much: no spill reduces either.
fn systems_that_are_measured_keep_their_threads(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let device = DeviceSpec::preset("h200").unwrap();
    let options = SolveOptions::with_method(Method::Cg);
    let systems = [
        ("laplacian", laplacian_2d(1000, 999, DType::F64).unwrap().into()),
        ("matrix-free", stencil(&[1000, 999], DType::F64)),
        ("hpcg", hpcg(104, 104, 104, DType::F64).unwrap().into()),
        ("many rows", stencil(&[10_000, 9999], DType::F64)),
    ];
    let runs: Vec<_> = systems.iter().flat_map(|system| [1, 2, 4, 8].map(|count| (system, count))).collect();
    let wrong = Mutex::new(Vec::new());
    each(&part(runs, is_other), |((name, matrix), count)| {
        let alone = plan_krylov(matrix, &device, &options).unwrap();
        let slabs = Slabs { count: *count, of_a_device: 1 };
        let planned = match count {
            1 => alone,
            _ => plan_krylov_slabs(matrix, &device, &options, slabs, &alone).unwrap(),
        };
        let (fitted, cubin) =
            fit_solver(&nvrtc, matrix, &planned, &options, &target(&device), false).unwrap();
        let of = |plan: &SolvePlan| plan.krylov().map(|layout| (layout.threads, layout.ahead));
        let runs_of_a_lane = fitted.krylov().map_or(0, |layout| layout.sums.each);
        println!("{name} on {count}: {} registers, {runs_of_a_lane} runs a lane", cubin.report[0].registers);
        if of(&fitted) != of(&planned) || cubin.report[0].spill_bytes > 0 {
            let words = format!("{name} on {count}: {:?} of {:?}", of(&fitted), of(&planned));
            wrong.lock().unwrap().push(words);
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn batches_compile_without_spills() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let options = |method, preconditioner| SolveOptions {
        method,
        preconditioner,
        cache: SolveCache::Auto,
        ..SolveOptions::default()
    };
    let runs = [
        (laplacian_2d(23, 21, DType::F64).unwrap(), options(Method::Cg, Preconditioning::Jacobi), "a100"),
        (
            trefethen(99, DType::F32).unwrap(),
            options(Method::BiCgStab, Preconditioning::BlockJacobi { size: 4 }),
            "h200",
        ),
    ];
    each(&runs, |(matrix, options, name)| {
        let (device, matrix) = (DeviceSpec::preset(name).unwrap(), Matrix::from(matrix.clone()));
        let plan = plan_batch(&matrix, &device, options).unwrap();
        let (plan, cubin) = fit_solver(&nvrtc, &matrix, &plan, options, &target(&device), true).unwrap();
        let layout = plan.krylov().unwrap();
        println!("{}: {:?}; {}", options.method, cubin.report, layout.describe());
        assert_eq!(cubin.report[0].spill_bytes, 0);
        // Several systems share a multiprocessor.
        assert!(
            layout.threads <= 256 && layout.regions.total * 4 <= device.shared_bytes,
            "{}",
            layout.regions.total
        );
    });
}
