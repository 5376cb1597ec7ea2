//! Chains: stages that go over few values each, one after another in one launch, run without a GPU. They have the bits of the
//! reference, and a wait that is taken away is found.
#![cfg(target_os = "linux")]

use crate::common;

use std::sync::atomic::{AtomicUsize, Ordering};

use abide_core::plan::fused::Partition;
use abide_emulator::{Compiler, Form, Program, all};
use abide_random::cases::{Case, cases, random};
use abide_random::partitions::{chained, partition};
use abide_random::systems::systems;
use common::{by_parts, part};

/// Checks a case, every second one in random groups, with all chains that it can have; returns their stages.
fn check(compiler: &Compiler, case: &Case, seed: u64, changes: &[(&str, &str)]) -> Result<usize, String> {
    let said = |error: abide_core::Error| error.to_string();
    let problem = &case.problem;
    let groups = match seed % 2 {
        0 => Partition::alone(&problem.program),
        _ => partition(problem, seed, 64, 1 << 14, true).map_err(said)?,
    };
    let partition = chained(problem, groups, seed).map_err(said)?;
    let stages = partition.chains.iter().map(|chain| chain.groups.len()).sum();
    let form = Form { partition: Some(partition), ..Form::default() };
    let program = Program::compile_as(compiler, problem, form, changes)?;
    program.check(&case.start, case.steps)?;
    Ok(stages)
}

by_parts!(chains_have_the_references_bits_without_a_gpu);

fn chains_have_the_references_bits_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let programs = cases().unwrap().into_iter().chain(random(140..180)).zip(0..);
    // Those that stay whole.
    let systems = systems().unwrap().into_iter().zip((0..).step_by(2));
    let cases: Vec<(Case, u64)> = systems.chain(programs).collect();
    let count = AtomicUsize::new(0);
    all(&part(cases, is_other), |(case, seed)| {
        let stages =
            check(&compiler, case, *seed, &[]).map_err(|why| format!("{} {seed}: {why}", case.name))?;
        count.fetch_add(stages, Ordering::Relaxed);
        Ok(())
    });
    let count = count.into_inner();
    println!("{count} stages in chains");
    assert!(count > 100, "only {count} stages in chains");
}

/// Takes away waits, and what makes values visible; each defect is found.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_of_chains_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let cases: Vec<(Case, u64)> = systems().unwrap().into_iter().zip((0..).step_by(2)).collect();
    for (what, from, to) in [
        ("a wait of all blocks", "if constexpr (ALL) cluster_barrier();", "if constexpr (ALL) {}"),
        (
            "a wait of a block",
            "if constexpr (ALL) cluster_barrier();\n    else __syncthreads();",
            "if constexpr (ALL) cluster_barrier();",
        ),
        ("a leaf of another warp", "leaf += count / WARP", "leaf += count / WARP + 1"),
        ("an index", "i += count)", "i += count + 1)"),
    ] {
        let found = cases.iter().any(|(case, seed)| {
            let text = [(from, to)];
            matches!(check(&compiler, case, *seed, &text), Err(why) if !why.contains("times and not once"))
        });
        assert!(found, "{what} is not missed");
    }
}
