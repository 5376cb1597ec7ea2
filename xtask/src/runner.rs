//! Runs test programs two at a time: many of them have long stretches that keep one core alone, such as the compiler of CUDA
//! kernels, which takes one kernel at a time.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::cargo::Program;
use crate::summary::Counts;

/// Programs side by side.
const SIDE_BY_SIDE: usize = 2;

/// The packages whose programs are begun first, because they take longest.
const LONG: [&str; 4] = ["backend-cuda", "abide", "backend-wgpu", "cli"];

/// Programs that run when all others have ended, because they hold times to limits.
const ALONE: [&str; 1] = ["window"];

/// Runs all tests among some programs, prints each one's output once it has ended, and counts its results. Returns whether all
/// succeeded and there were any.
pub fn run(programs: &[Program], environment: &[(&str, &OsStr)], counts: &mut Counts) -> Result<bool> {
    let tests = programs.iter().filter(|program| program.is_test);
    let (alone, mut others): (Vec<_>, Vec<_>) =
        tests.partition(|program| ALONE.contains(&program.target.as_str()));
    let rank = |program: &&Program| LONG.iter().position(|name| program.package == *name);
    others.sort_by_key(|program| rank(program).unwrap_or(LONG.len()));
    let others = side_by_side(others, SIDE_BY_SIDE, environment, counts)?;
    let alone = side_by_side(alone, 1, environment, counts)?;
    Ok(others && alone && counts.passed > 0)
}

/// Runs programs, so many at a time.
fn side_by_side(
    programs: Vec<&Program>,
    at_a_time: usize,
    environment: &[(&str, &OsStr)],
    counts: &mut Counts,
) -> Result<bool> {
    let waiting = Mutex::new(VecDeque::from(programs));
    let outcome = Mutex::new((counts, Ok(true)));
    let work = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(program) = next else { return };
            let begun = Instant::now();
            let ran = one(program, environment);
            let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
            let (counts, all) = &mut *outcome;
            let name =
                format!("{} {}, {:.1} s", program.package, program.target, begun.elapsed().as_secs_f64());
            match ran {
                Ok((succeeded, text)) => {
                    println!("\n-- {name}\n{text}");
                    text.lines().for_each(|line| counts.read(line));
                    if !succeeded && all.as_ref().is_ok_and(|all| *all) {
                        *all = Ok(false);
                    }
                }
                Err(error) => *all = Err(error),
            }
        }
    };
    std::thread::scope(|scope| (0..at_a_time).for_each(|_| drop(scope.spawn(work))));
    outcome.into_inner().unwrap_or_else(PoisonError::into_inner).1
}

/// Runs one program as `cargo test` does, and returns whether it succeeded, and its output.
fn one(program: &Program, environment: &[(&str, &OsStr)]) -> Result<(bool, String)> {
    // Errors come in order with the rest.
    let (mut reader, writer) = std::io::pipe().context("no pipe can be made")?;
    let mut command = Command::new(&program.path);
    command
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(writer.try_clone().context("no pipe can be shared")?)
        .stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot start {}", program.path.display()))?;
    // The ends for writing that this process holds would keep the pipe open.
    drop(command);
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut reader, &mut text).context("cannot read a test's output")?;
    let status = child.wait().context("the tests were interrupted")?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if !status.success() {
        text.push_str(&format!("{} ended with {status}\n", program.target));
    }
    Ok((status.success(), text))
}
