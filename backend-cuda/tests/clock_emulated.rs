//! The kernels of clocks, compiled for every architecture, and run without a GPU: the scalars from one reduction to the next have
//! the bits of the host's.
#![cfg(target_os = "linux")]

use crate::common;

use abide_core::program::Clock;
use abide_core::{DType, Problem};
use abide_cuda::Nvrtc;
use abide_emulator::Kernel;
use abide_random::timed;
use abide_shaders::cuda::{COMPILE_OPTIONS, clock_kernels, stretch_entry};

use common::present;

/// Problems whose clocks make what varies between reductions, both types of each.
fn clocks(count: usize) -> impl Iterator<Item = (u64, Clock)> {
    let of = |(problem, _): (Problem, _)| Clock::on_device(&problem, true);
    let drawn = (0..).filter_map(move |seed| Some((seed, timed::reduced(seed).ok().and_then(of)?)));
    let mut left = [count; 2];
    drawn
        .filter(move |(_, clock)| {
            let own = &mut left[usize::from(clock.plain().dtype == DType::F64)];
            let is_taken = clock.is_read() && !clock.stretches().is_empty() && *own > 0;
            *own -= usize::from(is_taken);
            is_taken
        })
        .take(2 * count)
}

#[test]
fn the_kernels_compile_for_every_architecture() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    for (seed, clock) in clocks(2) {
        let text = clock_kernels(&clock).unwrap();
        for target in ["sm_70", "sm_80", "sm_90"].iter().skip(usize::from(nvrtc.version().0 >= 13)) {
            let report = nvrtc.compile(&text, target, &COMPILE_OPTIONS).unwrap().report;
            assert_eq!(report.len(), clock.stretches().len(), "{seed} {target}");
            assert!(report.iter().all(|kernel| kernel.spill_bytes == 0), "{seed} {target}: {report:?}");
        }
    }
}

#[test]
fn scalars_between_reductions_have_the_bits_of_the_hosts() {
    let Some(compiler) = common::compiler() else { return };
    for (seed, mut clock) in clocks(4) {
        let stretches = clock.stretches();
        let names: Vec<String> = (0..stretches.len()).map(stretch_entry).collect();
        let text = clock_kernels(&clock).unwrap();
        let text = format!("{text}\nvoid (*const STRETCHES[])(Clock) = {{{}}};\n", names.join(", "));
        let mut kernel = Kernel::new(&text, include_str!("emulated/clock.cc"));
        let emulation = kernel.launched([1, 1, 0], 1).compile(&compiler).unwrap();
        let varying = clock.plain().program.varying();
        let asked = |clock: &mut Clock| {
            let mut read = Vec::new();
            let found = std::iter::repeat_with(|| clock.step(&mut read)).find_map(|asked| asked);
            (found.map(|asked| asked.reduction), read)
        };
        asked(&mut clock);
        // Each stretch twice, from other scalars.
        for number in 0..2 * stretches.len() {
            let stretch = clock.next_stretch();
            assert_eq!(stretch, number % stretches.len(), "seed {seed}");
            let value = [0.75, -3.5, 0.0, f64::NAN, 1e-3][number % 5];
            let before: Vec<u8> = clock.all_values().iter().flat_map(|value| value.to_ne_bytes()).collect();
            emulation.write("values", &before).unwrap();
            let rows = stretches[stretch].stages() * varying.len() as u64;
            let found = emulation.run([stretch as u64, rows, value.to_bits()]).unwrap();
            let found: Vec<f64> =
                found.split_whitespace().map(|bits| f64::from_bits(bits.parse().unwrap())).collect();

            clock.reduced(value);
            let (reduction, read) = asked(&mut clock);
            assert_eq!(reduction, Some(stretches[stretch].reduction), "seed {seed}");
            let dtype = clock.plain().dtype;
            let rounded = |value: f64| if dtype == DType::F32 { f64::from(value as f32) } else { value };
            let read = read.chunks(clock.all_values().len());
            let rows = read.flat_map(|row| varying.iter().map(|&number| rounded(row[number])));
            let scalars = clock.values();
            let expected: Vec<f64> = std::iter::once(value)
                .chain(clock.all_values().iter().copied())
                .chain(scalars.iter().copied())
                .chain(scalars.iter().map(|&value| rounded(value)))
                .chain(rows)
                .collect();
            // NaN has more than one form.
            let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert_eq!(found.len(), expected.len(), "seed {seed}");
            assert!(
                found.iter().zip(&expected).all(same),
                "seed {seed}, stretch {stretch}:\n{found:?}\n{expected:?}\n{text}"
            );
        }
    }
}
