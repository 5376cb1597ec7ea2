//! The kernel by which devices store planes into each other's memory, compiled for every architecture, and run without a GPU.
#![cfg(target_os = "linux")]

mod common;
#[path = "emulated/rig.rs"]
#[allow(dead_code)]
mod rig;

use std::path::Path;
use std::process::Command;

use abide_cuda::Nvrtc;
use abide_shaders::cuda::{COMPILE_OPTIONS, PUTS, PUTS_ENTRY, PUTS_POST, PutsExchange, PutsWay};

use common::present;

/// Threads of a block: fewer than on a device, because each is a lane of its own.
const THREADS: usize = 32;

/// The words that only the device understands.
const WORDS: [(&str, &str); 6] = [
    ("constexpr int THREADS = 512,", "constexpr int THREADS = 32,"),
    (r#"asm volatile("fence.acq_rel.sys;" ::: "memory");"#, "emulated::sometimes();"),
    (
        r#"asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");"#,
        "emulated::pause(); v = *p;",
    ),
    (r#"asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");"#, "*p = v;"),
    (r#"asm volatile("mov.u64 %0, %globaltimer;" : "=l"(v));"#, "v = 0;"),
    ("__shared__ bool is_told;", "bool& is_told = *reinterpret_cast<bool*>(emulated::shared_memory());"),
];

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
fn build(compiler: &[String], folder: &Path, [ranks, blocks]: [usize; 2], defect: &[(&str, &str)]) {
    let text = rig::rewritten(&rig::replaced(PUTS, defect).unwrap(), &WORDS).unwrap();
    for (name, text) in [
        ("main.cc", include_str!("emulated/puts.cc")),
        ("cuda.h", include_str!("emulated/cuda.h")),
        ("lanes.h", include_str!("emulated/lanes.h")),
        ("kernel.h", &text),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let mut command = rig::Compilation::new(compiler, folder, "stores");
    command.arg(format!("-DRANKS_LAUNCHED={ranks}")).arg(format!("-DBLOCKS_LAUNCHED={}", ranks * blocks));
    command.arg(format!("-DTHREADS_LAUNCHED={THREADS}"));
    command.arg("-DARCHITECTURE=900").arg("-DSHARED_BYTES=16").run().unwrap();
}

/// Runs so many exchanges of ranks in a line or a ring.
fn run(folder: &Path, ring: bool, seed: u32) -> Result<(), String> {
    const ROUNDS: u32 = 5;
    let mut command = Command::new(folder.join("stores"));
    command.arg(folder).args([seed, u32::from(ring), ROUNDS].map(|number| number.to_string()));
    rig::succeeds(&mut command)
}

#[test]
fn ranks_have_each_others_planes() {
    let Some(compiler) = present("c++", rig::compiler()) else { return };
    // Two ranks of a ring are neighbours at both sides, and have one way; blocks are a multiple of the ways.
    for (ranks, blocks, rings) in [(2, 3, &[false, true][..]), (3, 4, &[false, true]), (4, 2, &[true])] {
        let folder = tempfile::tempdir().unwrap();
        build(&compiler, folder.path(), [ranks, blocks], &[]);
        for (ring, seed) in rings.iter().flat_map(|&ring| (1..4).map(move |seed| (ring, seed))) {
            run(folder.path(), ring, seed)
                .unwrap_or_else(|why| panic!("{ranks} ranks, ring {ring}, {seed}: {why}"));
        }
    }
}

/// Takes a wait or what is waited for away; some order of lanes then shows it.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_are_found() {
    let Some(compiler) = present("c++", rig::compiler()) else { return };
    let defects = [
        ("if (here == 0) is_told = comes(&way.own->ready, e);", "if (here == 0) is_told = true;"),
        ("__syncthreads();                 // all places are told", ""),
        ("__syncthreads();                     // the block has stored all of its part", ""),
        ("__syncthreads();                     // the neighbour's places are there", ""),
        ("if (atomicAdd(way.stored, 1u) + 1 == blocks) {", "if (atomicAdd(way.stored, 1u) == 0) {"),
        ("            comes(&way.own->arrived, e);\n", ""),
        ("*way.stored = 0;", ""),
        ("% sizeof(uint4) == 0", "% sizeof(unsigned) == 0"),
    ];
    for (from, to) in defects {
        let folder = tempfile::tempdir().unwrap();
        build(&compiler, folder.path(), [3, 4], &[(from, to)]);
        let found = (0..20).any(|seed| run(folder.path(), true, seed).is_err());
        assert!(found, "nothing shows that this is gone: {from}");
    }
}
