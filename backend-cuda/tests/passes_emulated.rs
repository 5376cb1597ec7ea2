//! Stages that repeat one formula as passes of a streaming kernel between other launches, run without a GPU: random programs
//! have the bits of their stages one by one.
#![cfg(target_os = "linux")]

use std::sync::atomic::{AtomicUsize, Ordering};

use abide_core::plan::fused::{Group, GroupKernel, Partition};
use abide_core::program::Boxes;
use abide_core::{Array, Depth, DeviceSpec, Execution, Options, Problem, Tune};
use abide_emulator::{Compiler, Form, Program, all};
use abide_planner::plan_streaming;
use abide_random::swept;

use crate::common::{self, by_parts, part};

/// Returns the partition in which stages that repeat one formula are passes of 2 to 4 of them, as many as there are; `None`
/// where there are none.
fn passes(problem: &Problem, seed: u64) -> Option<(Partition, usize)> {
    let (boxes, device) = (Boxes::of(problem).unwrap(), DeviceSpec::preset("h200").unwrap());
    let mut partition = Partition::alone(&problem.program);
    let mut count = 0;
    for step in &mut partition.steps {
        let mut place = 0;
        while place < step.len() {
            let most = (2 + seed as usize % 3).min(step.len() - place);
            for depth in (2..=most).rev() {
                let stages: Vec<usize> = (0..depth).map(|by| step[place + by].stages[0]).collect();
                let Some(repeated) = problem.repeated(&boxes, &stages) else { continue };
                let options = Options {
                    execution: Execution::Streaming,
                    depth: Depth::Steps(depth as u32),
                    tune: Tune::Off,
                    ..Options::default()
                };
                let Ok(plan) = plan_streaming(&repeated.problem, &device, &options) else { continue };
                let pass = GroupKernel::Pass(plan.warp_streaming()?.configuration());
                step.splice(place..place + depth, [Group::new(stages, Some(pass))]);
                count += 1;
                break;
            }
            place += 1;
        }
    }
    (count > 0).then_some((partition, count))
}

/// Checks the program of a seed; returns the passes of a step.
fn check(compiler: &Compiler, problem: &Problem, start: &[Array], seed: u64) -> Result<usize, String> {
    let Some((partition, count)) = passes(problem, seed) else { return Ok(0) };
    let form = Form { partition: Some(partition), ..Form::default() };
    Program::compile_as(compiler, problem, form, &[])?.check(start, 3)?;
    Ok(count)
}

by_parts!(passes_have_the_bits_of_their_stages_without_a_gpu);

fn passes_have_the_bits_of_their_stages_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let drawn = (0..100).filter_map(|seed| Some((seed, swept::problem(seed).ok()?)));
    let tried = part(drawn, is_other);
    let passes = AtomicUsize::new(0);
    all(&tried, |(seed, (problem, start))| {
        let count = check(&compiler, problem, start, *seed).map_err(|why| format!("{seed}: {why}"))?;
        passes.fetch_add(count, Ordering::Relaxed);
        Ok(())
    });
    let passes = passes.into_inner();
    assert!(passes > if is_other { 60 } else { 2 }, "only {passes} passes");
}
