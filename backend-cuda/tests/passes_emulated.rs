//! Stages that repeat one formula as passes of a streaming kernel between other launches, run without a GPU: random programs
//! have the bits of their stages one by one.
#![cfg(target_os = "linux")]

use std::sync::atomic::{AtomicUsize, Ordering};

use abide_core::{Array, DeviceSpec, Problem};
use abide_emulator::{Compiler, Form, Program, all};
use abide_random::partitions::passes;
use abide_random::swept;

use crate::common::{self, by_parts, part};

/// Checks the program of a seed; returns the passes of a step.
fn check(compiler: &Compiler, problem: &Problem, start: &[Array], seed: u64) -> Result<usize, String> {
    let device = DeviceSpec::preset("h200").map_err(|error| error.to_string())?;
    let partition = passes(problem, &device, seed).map_err(|error| error.to_string())?;
    let count = partition.all().filter(|group| group.pass.is_some()).count();
    if count == 0 {
        return Ok(0);
    }
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
