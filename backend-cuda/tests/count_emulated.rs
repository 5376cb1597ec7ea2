//! The kernels that count values that are not finite, compiled for every architecture, and run without a GPU.
#![cfg(target_os = "linux")]

use crate::common;

use abide_core::{Array, DType, Precision};
use abide_cuda::Nvrtc;
use abide_emulator::Kernel;
use abide_shaders::cuda::{COMPILE_OPTIONS, COUNT, COUNT_ENTRIES, count_entry, count_launch};

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
        let mut all = COUNT_ENTRIES;
        all.sort_unstable();
        assert_eq!(names, all, "{target}");
        assert!(report.iter().all(|kernel| kernel.spill_bytes == 0), "{report:?}");
    }
}

/// The kernels count as the host does; what lies behind a row does not count.
#[test]
fn the_kernels_count_as_the_host_does() {
    let Some(compiler) = common::compiler() else { return };
    let mut kernel = Kernel::new(COUNT, include_str!("emulated/count.cc"));
    let emulation = kernel.launched([1, 1, 0], 900).compile(&compiler).unwrap();
    let narrow = [Precision::F32, Precision::F16, Precision::Bf16].map(|own| (DType::F64, Some(own)));
    for (dtype, precision) in [(DType::F32, None), (DType::F64, None)].into_iter().chain(narrow) {
        let largest = match (dtype, precision) {
            (DType::F64, None) => f64::MAX,
            (_, Some(Precision::F16)) => 65504.0,
            _ => f64::from(f32::MAX) * (1.0 - 1.0 / 256.0),
        };
        let strange = [f64::NAN, 1.0, f64::INFINITY, -largest, f64::NEG_INFINITY, largest, -0.0];
        for (rows, width, pitch) in
            [(1, 1, 1), (1, 5000, 5000), (7, 2049, 2056), (40, 3, 4), (13, 2048, 2048)]
        {
            let value = |i: usize| {
                let (row, x) = (i / pitch, i % pitch);
                if x < width { strange[(row * width + x) % 7] } else { f64::NAN }
            };
            let values = Array::from_fn(dtype, rows * pitch, value);
            let packed = precision.map(|own| own.pack(&values).unwrap());
            let bytes = packed.as_deref().unwrap_or(values.as_bytes());
            let expected = (0..rows * pitch).filter(|i| i % pitch < width && !value(*i).is_finite()).count();
            emulation.write("values", bytes).unwrap();
            let shape = [rows, width, pitch].map(|n| n as u64);
            let ([blocks, threads], numbers) = count_launch(0, 0, shape);
            // The rest of the argument follows the two addresses; few blocks take turns.
            for blocks in [u64::from(blocks), 1, 2] {
                let numbers = numbers[2..6].iter().copied().chain([blocks, u64::from(threads)]);
                let found =
                    emulation.run([count_entry(dtype, precision) as u64].into_iter().chain(numbers)).unwrap();
                assert_eq!(found, expected.to_string(), "{dtype} {rows} {width} {pitch} {blocks}");
            }
        }
    }
}
