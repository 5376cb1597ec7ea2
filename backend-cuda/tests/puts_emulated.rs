//! The kernel by which devices store planes into each other's memory, compiled for every architecture, and run without a GPU.
#![cfg(target_os = "linux")]

use crate::common;

use abide_cuda::Nvrtc;
use abide_emulator::{Compiler, Emulation, Kernel, replaced};
use abide_shaders::cuda::{COMPILE_OPTIONS, PUTS, PUTS_ENTRY, PUTS_POST, PutsExchange, PutsWay};

use common::present;

/// Threads of a block: fewer than on a device, because each is a lane of its own.
const THREADS: usize = 32;

/// The words that say so.
const FEWER: (&str, &str) = ("constexpr int THREADS = 512,", "constexpr int THREADS = 32,");

#[test]
fn the_kernel_compiles_for_every_architecture() {
    let Some(nvrtc) = present("nvrtc", Nvrtc::open()) else { return };
    let targets =
        if nvrtc.version().0 >= 13 { &["sm_80", "sm_90"][..] } else { &["sm_70", "sm_80", "sm_90"] };
    // The host's structs are the kernel's, whose sizes the compiler checks here.
    let checks = format!(
        "static_assert(sizeof(Post) == {PUTS_POST} && sizeof(Way) == {} && sizeof(Exchange) == {}, \"layout\");",
        size_of::<PutsWay>(),
        size_of::<PutsExchange>(),
    );
    let text = [PUTS, &checks[..]].concat();
    for target in targets {
        let report = nvrtc.compile(&text, target, &COMPILE_OPTIONS).unwrap().report;
        let [kernel] = &report[..] else { panic!("{report:?}") };
        assert_eq!((kernel.kernel.as_str(), kernel.spill_bytes), (PUTS_ENTRY, 0), "{target}");
    }
}

/// Compiles the kernel, after words of it were replaced, for so many ranks of so many blocks.
fn build(compiler: &Compiler, [ranks, blocks]: [usize; 2], defect: &[(&str, &str)]) -> Emulation {
    let text = replaced(PUTS, &[&[FEWER], defect].concat()).unwrap();
    let mut kernel = Kernel::new(text, include_str!("emulated/puts.cc"));
    kernel.define("DEVICES_LAUNCHED", ranks).launched([ranks * blocks, THREADS, 0], 900);
    kernel.compile(compiler).unwrap()
}

/// Runs so many exchanges of ranks in a line or a ring.
fn run(emulation: &Emulation, ring: bool, seed: u32) -> Result<(), String> {
    const ROUNDS: u32 = 5;
    emulation.run([seed, u32::from(ring), ROUNDS]).map(drop)
}

#[test]
fn ranks_have_each_others_planes() {
    let Some(compiler) = common::compiler() else { return };
    // Two ranks of a ring are neighbours at both sides, and have one way; blocks are a multiple of the ways.
    for (ranks, blocks, rings) in [(2, 3, &[false, true][..]), (3, 4, &[false, true]), (4, 2, &[true])] {
        let emulation = build(&compiler, [ranks, blocks], &[]);
        for (ring, seed) in rings.iter().flat_map(|&ring| (1..4).map(move |seed| (ring, seed))) {
            run(&emulation, ring, seed)
                .unwrap_or_else(|why| panic!("{ranks} ranks, ring {ring}, {seed}: {why}"));
        }
    }
}

/// Takes a wait or what is waited for away; some order of lanes then shows it.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let defects = [
        ("if (here == 0) is_told = comes(&way.own->ready, e);", "if (here == 0) is_told = true;"),
        ("__syncthreads();                 // all places are told", ""),
        ("__syncthreads();                     // the block has stored all of its part", ""),
        ("__syncthreads();                     // the neighbour's places are there", ""),
        ("if (atomicAdd(way.stored, 1u) + 1 == blocks) {", "if (atomicAdd(way.stored, 1u) == 0) {"),
        ("            comes(&way.own->arrived, e);\n", ""),
        ("*way.stored = 0;", ""),
        // The places are told behind what they are, and a block counts behind what it has stored.
        (
            "fence_devices();\n            store_devices(&way.theirs->ready, e.round);",
            "way.theirs->ready = e.round;",
        ),
        ("fence_devices();\n        if (atomicAdd", "if (atomicAdd"),
        ("% sizeof(uint4) == 0", "% sizeof(unsigned) == 0"),
    ];
    for (from, to) in defects {
        let emulation = build(&compiler, [3, 4], &[(from, to)]);
        let found = (0..20).any(|seed| run(&emulation, true, seed).is_err());
        assert!(found, "nothing shows that this is gone: {from}");
    }
}
