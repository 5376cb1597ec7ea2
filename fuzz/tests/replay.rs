//! Every file of the corpus and of the regressions as a test of its own, and a short run of each target on
//! mutations.
//!
//! The mutations are blind; `cargo xtask fuzz` finds new branches.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use abide_fuzz::files::{File, corpus, folders, regressions};
use abide_fuzz::{TARGETS, Target, execute, mutate, targets};
use libtest_mimic::{Arguments, Failed, Trial};

/// Time for which each target's mutations are run.
const TIME: Duration = Duration::from_millis(400);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Only one execution at a time is watched.
    arguments.test_threads = Some(1);
    let mut trials = vec![Trial::test("every_folder_belongs_to_a_target", every_folder_belongs_to_a_target)];
    for target in TARGETS {
        for (kind, files) in [("corpus", corpus(target.name)), ("regressions", regressions(target.name))] {
            trials.extend(files.into_iter().map(|(name, contents)| {
                Trial::test(format!("{kind}::{}::{name}", target.name), move || {
                    Ok(execute(target, contents)?)
                })
            }));
        }
        trials.push(Trial::test(format!("mutations::{}", target.name), || mutations(target)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn every_folder_belongs_to_a_target() -> Result<(), Failed> {
    match folders().iter().find(|folder| targets::find(folder).is_none()) {
        Some(folder) => Err(format!("no target is named as the folder {folder}").into()),
        None => Ok(()),
    }
}

/// Runs the same mutations each time, as many as the time allows.
fn mutations(target: &'static Target) -> Result<(), Failed> {
    let files: Vec<File> = corpus(target.name);
    let begun = Instant::now();
    let mut session = mutatis::Session::new().seed(1);
    for seed in 0.. {
        if begun.elapsed() > TIME {
            break;
        }
        let (name, contents) = &files[seed % files.len()];
        let mut input = contents.to_vec();
        // Sometimes several changes, because an earlier change may make a later one possible.
        for change in 0..=seed / files.len() % 4 {
            mutate::mutate(target, &mut input, (seed + change) as u64, &mut |bytes| {
                // Bytes that cannot be changed stay.
                let _ = session.mutate(bytes);
            });
        }
        input.truncate(target.longest);
        execute(target, &input)
            .map_err(|fault| format!("mutation {seed}, of {name}: {fault}: {}", input.escape_ascii()))?;
    }
    Ok(())
}
