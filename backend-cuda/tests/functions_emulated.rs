//! The elementary functions in CUDA's text: compiled for every architecture, and run without a GPU.
#![cfg(target_os = "linux")]

use crate::common;

use abide_core::expr::{Binary, Unary, binary, unary};
use abide_core::functions::Function;
use abide_core::{Array, DType, Real, with_array};
use abide_cuda::Nvrtc;
use abide_emulator::Kernel;
use abide_shaders::cuda::{COMPILE_OPTIONS, Whose, each_entry, each_kernels};

use common::{by_parts, present};

by_parts!(the_kernels_compile_for_every_architecture);

fn the_kernels_compile_for_every_architecture(is_other: bool) {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let targets = match (is_other, nvrtc.version().0 >= 13) {
        (false, _) => &["sm_90"][..],
        (true, true) => &["sm_80"],
        (true, false) => &["sm_70", "sm_80"],
    };
    for dtype in [DType::F32, DType::F64] {
        for target in targets {
            let report = nvrtc.compile(&each_kernels(dtype, true), target, &COMPILE_OPTIONS).unwrap().report;
            for &function in Function::ALL {
                let of = |whose| {
                    let name = each_entry(function, whose);
                    report.iter().find(|kernel| kernel.kernel == name).unwrap()
                };
                let (own, cuda) = (of(Whose::Formula), of(Whose::Cuda));
                println!("{target} {dtype} {}: {own:?}, CUDA's {cuda:?}", function.name());
                assert_eq!(own.spill_bytes, 0, "{own:?}");
            }
        }
    }
}

/// Returns arguments of all magnitudes, ordinary ones, and special ones.
fn arguments(dtype: DType, salt: u64) -> Array {
    let mut state = 0x2545_f491_4f6c_dd1d ^ salt;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1e-310,
        1e-40,
        0.5,
        -3.0,
        262144.0,
    ];
    let values: Vec<f64> = (0..60_000)
        .map(|i| match i % 4 {
            0 => special[random() as usize % special.len()],
            1 if dtype == DType::F32 => f64::from(f32::from_bits(random() as u32)),
            1 => f64::from_bits(random()),
            _ => (random() >> 11) as f64 / (1u64 << 53) as f64 * if i % 4 == 2 { 4.0 } else { 400.0 } - 2.0,
        })
        .collect();
    Array::from_fn(dtype, values.len(), |i| values[i])
}

#[test]
fn the_text_has_the_bits_of_the_core() {
    let Some(compiler) = common::compiler() else { return };
    for dtype in [DType::F32, DType::F64] {
        let runs: Vec<String> =
            Function::ALL.iter().map(|function| format!("of({})", function.name())).collect();
        let head = format!("#define FUNCTIONS(of) {}\n", runs.join(" "));
        let mut kernel =
            Kernel::new(head + &each_kernels(dtype, false), include_str!("emulated/functions.cc"));
        let emulation = kernel.launched([1, 1, 0], 900).compile(&compiler).unwrap();
        let (x, y) = (arguments(dtype, 0), arguments(dtype, 20));
        for (name, values) in [("x", &x), ("y", &y)] {
            emulation.write(name, values.as_bytes()).unwrap();
        }
        emulation.run([""; 0]).unwrap();
        for &function in Function::ALL {
            let bytes = emulation.read(function.name()).unwrap();
            with_array!(&x, x => check(function, x, Real::slice(&y).unwrap(), &bytes));
        }
    }
}

fn check<T: Real>(function: Function, x: &[T], y: &[T], bytes: &[u8]) {
    let one = Unary::ALL.iter().find(|op| op.function() == Some(function));
    let two = Binary::ALL.iter().find(|op| op.function() == Some(function));
    assert_eq!(bytes.len(), size_of_val(x));
    for (i, got) in bytes.chunks_exact(size_of::<T>()).enumerate() {
        let expected = match one {
            Some(&op) => unary(op, x[i]),
            None => binary(*two.unwrap(), x[i], y[i]),
        };
        let got = got.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        let is_nan = match T::DTYPE {
            DType::F32 => f32::from_bits(got as u32).is_nan(),
            DType::F64 => f64::from_bits(got).is_nan(),
        };
        let same = got == expected.to_bits64() || (is_nan && expected.to_f64().is_nan());
        assert!(same, "{}({}, {}): {got:x}, not {:x}", function.name(), x[i], y[i], expected.to_bits64());
    }
}
