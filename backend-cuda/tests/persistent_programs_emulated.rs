//! Programs as one persistent kernel, run without a GPU: blocks that wait for their neighbours alone have the bits of the
//! reference, and a kernel without one of the waits fails.
//!
//! Blocks run concurrently, and any of them may lead the others by far. A read-only load returns the value that the
//! block saw at its first load.
#![cfg(target_os = "linux")]

use crate::{common, decks};

use std::time::Instant;

use abide_core::program::{Marks, Probe, Record, Until};
use abide_emulator::{Compiler, Form, Program, all};
use abide_random::cases::{Case, cases, random};
use abide_random::partitions::partition;
use decks::decks;

/// Blocks of a kernel; some have no tiles of some tasks.
const BLOCKS: [usize; 4] = [3, 5, 1, 4];

/// Values that a block keeps at most.
const VALUES: usize = 1 << 15;

/// Compiles a case, its stages in random groups where the seed is odd.
fn compile<'a>(
    compiler: &Compiler,
    case: &'a Case,
    seed: u64,
    changes: &[(&str, &str)],
) -> Result<Program<'a>, String> {
    let groups = (seed % 2 == 1).then(|| partition(&case.problem, seed, 256, VALUES, false)).transpose();
    let form = Form {
        more_rows: usize::from(seed % 3 == 2),
        partition: groups.map_err(|why| why.to_string())?,
        blocks: Some(BLOCKS[seed as usize % BLOCKS.len()]),
        ..Form::default()
    };
    Program::compile_as(compiler, &case.problem, form, changes)
}

#[test]
fn persistent_programs_have_the_references_bits_without_a_gpu() {
    let Some(compiler) = common::compiler() else { return };
    check(&compiler, &common::part(tried(), false));
}

/// Returns whether a case's steps have no loops, which are no schedule that is known before.
fn has_no_loops(case: &Case) -> bool {
    !case.problem.program.has_loops() && !case.problem.program.has_levels()
}

/// Returns what is tried, each with a seed.
fn tried() -> Vec<(Case, u64)> {
    let mut tried: Vec<(Case, u64)> = Vec::new();
    for seed in 0..2 {
        tried.extend(decks().into_iter().map(|case| (case, seed)));
    }
    tried.extend(cases().unwrap().into_iter().zip(0..).filter(|(case, _)| has_no_loops(case)));
    tried.extend(random(200..214).into_iter().zip(1..));
    tried
}

#[test]
#[ignore = "a kernel for each program: a minute"]
fn more_persistent_programs_have_the_references_bits_without_a_gpu() {
    let Some(compiler) = common::compiler() else { return };
    check(&compiler, &common::part(tried(), true));
    check(&compiler, &random(214..240).into_iter().zip(15..).collect::<Vec<_>>());
}

/// Holds persistent programs to the reference's bits.
fn check(compiler: &Compiler, tried: &[(Case, u64)]) {
    all(tried, |(case, seed)| {
        let begun = Instant::now();
        let outcome = compile(compiler, case, *seed, &[])
            .and_then(|program| program.check(&case.start, case.steps.min(4)));
        println!("{} {seed}: {:.1} s", case.name, begun.elapsed().as_secs_f64());
        outcome.map_err(|why| format!("{} {seed}: {why}", case.name))
    });
}

/// A case of CloverLeaf that ends after its third step, which comes to 0.22.
fn ending() -> Case {
    let mut case = decks().swap_remove(0);
    case.problem.until = Some(Until::parse("time >= 0.2", &case.problem.program.clone()).unwrap());
    case
}

/// A condition ends a launch in the middle, for all blocks after the same step.
#[test]
fn ends_of_persistent_programs_without_a_gpu() {
    let Some(compiler) = common::compiler() else { return };
    let case = ending();
    let kernel = compile(&compiler, &case, 0, &[]).unwrap();
    kernel.check_beyond(&case.start, 3, 3).unwrap();
    assert!(kernel.check_beyond(&case.start, 4, 2).is_err());
}

/// Rows are recorded, and a mark ends a launch in the middle as a condition does.
#[test]
#[ignore = "a kernel of all loops for each case: half a minute"]
fn records_and_marks_of_persistent_programs_without_a_gpu() {
    let Some(compiler) = common::compiler() else { return };
    let mut case = ending();
    compile(&compiler, &case, 1, &[]).unwrap().check_beyond(&case.start, 3, 3).unwrap();
    let program = case.problem.program.clone();
    let probes = [("density0", [6, 12]), ("xvel0", [7, 13]), ("vol_flux_x", [3, 0])];
    let probes = probes.map(|(field, index)| Probe::new(&program, field, &index).unwrap());
    case.problem.first_step = 7;
    case.problem.record = Some(Record::new(&program, 2, probes.to_vec()));
    compile(&compiler, &case, 1, &[]).unwrap().check_beyond(&case.start, 3, 3).unwrap();
    case.problem.until = None;
    compile(&compiler, &case, 0, &[]).unwrap().check(&case.start, 5).unwrap();
    case.problem.marks = Some(Marks::new(&program, "time", 0.21).unwrap());
    compile(&compiler, &case, 3, &[]).unwrap().check_beyond(&case.start, 3, 4).unwrap();
}

/// Takes away from kernels what makes one block wait for another, or one tile for the one before; each defect is found.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_of_persistent_programs_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let mut tried: Vec<Case> = decks().into_iter().chain(cases().unwrap()).filter(has_no_loops).collect();
    tried[0] = ending();
    // What is taken away, and the words with those that replace them.
    let defects = [
        ("all waits", "if (wait.back > done) continue;", "continue;"),
        (
            "waits for the task before",
            "if (wait.back > done) continue;",
            "if (wait.back > done || wait.back == 1) continue;",
        ),
        (
            "waits for earlier tasks",
            "if (wait.back > done) continue;",
            "if (wait.back > done || wait.back > 1) continue;",
        ),
        ("the last task of a wait", "< done + 1 - wait.back) {}", "< done - wait.back) {}"),
        ("a barrier behind the waits", "    }\n    __syncthreads();\n}", "    }\n}"),
        (
            "a barrier before a task is done",
            "            __syncthreads();\n            if (threadIdx.x == 0) store",
            "            if (threadIdx.x == 0) store",
        ),
        (
            "a release of what the task has stored",
            "store_release(schedule.flags + blockIdx.x * 32, done + 1)",
            "schedule.flags[blockIdx.x * 32] = done + 1",
        ),
        ("loads that see other blocks' stores", "CHANGES || PERSISTENT", "CHANGES"),
        (
            "the question at the beginning of a step",
            "if (arguments.progress->stopped) return;\n            } else",
            "} else",
        ),
        (
            "the share of a block's tiles",
            "return unsigned((unsigned long long)block * tiles / BLOCKS);",
            "return block * (tiles / BLOCKS);",
        ),
    ];
    all(&defects, |&(what, words, instead)| {
        for seed in 0..8 {
            for case in &tried {
                let program = match compile(&compiler, case, seed, &[(words, instead)]) {
                    Ok(program) => program,
                    // Words that a kernel does not have are no defect of it.
                    Err(why) if why.contains("the kernel's text has 0 times") => continue,
                    Err(why) => return Err(why),
                };
                let steps = if case.problem.until.is_some() { [3, 2] } else { [case.steps.min(3), 0] };
                if program.check_beyond(&case.start, steps[0], steps[1]).is_err() {
                    return Ok(());
                }
            }
        }
        Err(format!("the bits are right without {what}"))
    });
}
