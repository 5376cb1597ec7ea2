//! The kernels by which launches and waits are timed, compiled for every architecture, and run without a GPU.
#![cfg(target_os = "linux")]

use crate::common;

use abide_cuda::Nvrtc;
use abide_emulator::{Compiler, Emulation, Kernel, replaced};
use abide_shaders::cuda::{COMPILE_OPTIONS, IDLE, MEET_ALL, MEET_BESIDE, MEET_THREADS, meet, meet_half, met};

use common::present;

#[test]
fn the_kernels_compile_for_every_architecture() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let targets =
        if nvrtc.version().0 >= 13 { &["sm_80", "sm_90"][..] } else { &["sm_70", "sm_80", "sm_90"] };
    for target in targets {
        let report = nvrtc.compile(&meet(), target, &COMPILE_OPTIONS).unwrap().report;
        let mut names: Vec<&str> = report.iter().map(|kernel| kernel.kernel.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, [IDLE, MEET_ALL, MEET_BESIDE], "{target}");
        assert!(report.iter().all(|kernel| kernel.spill_bytes == 0), "{report:?}");
    }
}

/// Compiles the kernels, after words of them were replaced, for so many blocks.
fn build(compiler: &Compiler, blocks: usize, defect: &[(&str, &str)]) -> Emulation {
    let mut kernel = Kernel::new(replaced(&meet(), defect).unwrap(), include_str!("emulated/meet.cc"));
    kernel.launched([blocks, MEET_THREADS as usize, 0], 900).compile(compiler).unwrap()
}

/// Runs a kernel and compares what its blocks leave with what they leave if they wait.
fn run(emulation: &Emulation, blocks: usize, all: bool, seed: u32) -> Result<(), String> {
    const PASSES: u32 = 7;
    emulation.run([seed, u32::from(all), PASSES])?;
    let bytes = emulation.read("result")?;
    let words: Vec<u32> =
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    let half = words.len() / 2;
    let right = words[meet_half(PASSES) * half..][..half] == met(blocks, PASSES);
    right.then_some(()).ok_or_else(|| "the blocks did not wait".to_owned())
}

#[test]
fn blocks_wait_for_each_other() {
    let Some(compiler) = common::compiler() else { return };
    for blocks in [1, 2, 5] {
        let emulation = build(&compiler, blocks, &[]);
        for (all, seed) in [(true, 1), (true, 2), (false, 1), (false, 2)] {
            run(&emulation, blocks, all, seed).unwrap_or_else(|why| panic!("{blocks} {all} {seed}: {why}"));
        }
    }
}

/// Takes a wait away; some order of lanes then shows it.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let defects = [
        (true, "while (load_acquire(rendezvous.counters) < pass * blocks) {}", ";"),
        (true, "< pass * blocks", "< pass"),
        (true, "add_release(rendezvous", "atomicAdd(rendezvous"),
        (false, "add_release(rendezvous", "atomicAdd(rendezvous"),
        (
            false,
            "while (load_acquire(rendezvous.counters + beside[threadIdx.x] * FLAG_STRIDE) < pass) {}",
            ";",
        ),
        (false, "else if (threadIdx.x < 2)", "else if (threadIdx.x < 1)"),
        (false, "__syncthreads();                 // all words of the block are there", ""),
        (false, "__syncthreads();                 // those that are awaited have arrived", ""),
    ];
    for (all, from, to) in defects {
        let emulation = build(&compiler, 5, &[(from, to)]);
        let found = (0..20).any(|seed| run(&emulation, 5, all, seed).is_err());
        assert!(found, "nothing shows that this is gone: {from}");
    }
}
