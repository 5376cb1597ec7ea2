//! The kernels that count values that are not finite, compiled for every architecture, and run without a GPU.
#![cfg(target_os = "linux")]

use crate::common;

use abide_core::{Array, DType};
use abide_cuda::Nvrtc;
use abide_emulator::Kernel;
use abide_shaders::cuda::{COMPILE_OPTIONS, COUNT, count_entry, count_launch};

use common::present;

#[test]
fn the_kernels_compile_for_every_architecture() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let targets =
        if nvrtc.version().0 >= 13 { &["sm_80", "sm_90"][..] } else { &["sm_70", "sm_80", "sm_90"] };
    for target in targets {
        let report = nvrtc.compile(COUNT, target, &COMPILE_OPTIONS).unwrap().report;
        let mut names: Vec<&str> = report.iter().map(|kernel| kernel.kernel.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, [DType::F32, DType::F64].map(count_entry), "{target}");
        assert!(report.iter().all(|kernel| kernel.spill_bytes == 0), "{report:?}");
    }
}

/// The kernels count as the host does; what lies behind a row does not count.
#[test]
fn the_kernels_count_as_the_host_does() {
    let Some(compiler) = common::compiler() else { return };
    let mut kernel = Kernel::new(COUNT, include_str!("emulated/count.cc"));
    let emulation = kernel.launched([1, 1, 0], 900).compile(&compiler).unwrap();
    for dtype in [DType::F32, DType::F64] {
        let largest = if dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
        let strange = [f64::NAN, 1.0, f64::INFINITY, -largest, f64::NEG_INFINITY, largest, -0.0];
        for (rows, width, pitch) in
            [(1, 1, 1), (1, 5000, 5000), (7, 2049, 2056), (40, 3, 4), (13, 2048, 2048)]
        {
            let value = |i: usize| {
                let (row, x) = (i / pitch, i % pitch);
                if x < width { strange[(row * width + x) % 7] } else { f64::NAN }
            };
            let values = Array::from_fn(dtype, rows * pitch, value);
            let expected = (0..rows * pitch).filter(|i| i % pitch < width && !value(*i).is_finite()).count();
            emulation.write("values", values.as_bytes()).unwrap();
            let shape = [rows, width, pitch].map(|n| n as u64);
            let ([blocks, threads], numbers) = count_launch(0, 0, shape);
            // The rest of the argument follows the two addresses; few blocks take turns.
            for blocks in [u64::from(blocks), 1, 2] {
                let numbers = numbers[2..6].iter().copied().chain([blocks, u64::from(threads)]);
                let found =
                    emulation.run([u64::from(dtype == DType::F64)].into_iter().chain(numbers)).unwrap();
                assert_eq!(found, expected.to_string(), "{dtype} {rows} {width} {pitch} {blocks}");
            }
        }
    }
}
