//! Groups of stages as one kernel each (fusion), some stages in parts (fission), run without a GPU: random partitions
//! with random tiles have the bits of the stages one by one, and what a wait or a rule is taken away from is found.
#![cfg(target_os = "linux")]

use crate::{common, decks};

use std::sync::atomic::{AtomicUsize, Ordering};

use abide_emulator::{Compiler, Form, Program, all};
use abide_random::cases::{Case, cases, random};
use abide_random::partitions::partition;
use common::{by_parts, part};
use decks::decks;

/// Threads of blocks.
const THREADS: [usize; 3] = [256, 64, 128];

/// Values that a block keeps at most.
const VALUES: usize = 1 << 16;

/// Checks a case with a random partition; returns the groups of several stages, and the stages in parts.
fn check(
    compiler: &Compiler,
    case: &Case,
    seed: u64,
    changes: &[(&str, &str)],
) -> Result<[usize; 2], String> {
    let partition = partition(&case.problem, seed, THREADS[seed as usize % THREADS.len()], VALUES, true)
        .map_err(|why| why.to_string())?;
    let several = partition.all().filter(|group| group.fused.is_some()).count();
    let counts = [several, partition.splits.len()];
    if counts != [0; 2] {
        let form = Form { partition: Some(partition), ..Form::default() };
        let program = Program::compile_as(compiler, &case.problem, form, changes)?;
        program.check(&case.start, case.steps)?;
    }
    Ok(counts)
}

by_parts!(groups_have_the_bits_of_their_stages_without_a_gpu);

fn groups_have_the_bits_of_their_stages_without_a_gpu(is_other: bool) {
    let Some(compiler) = common::compiler() else { return };
    let mut tried: Vec<(Case, u64)> = Vec::new();
    for seed in 0..2 {
        tried.extend(decks().into_iter().map(|case| (case, seed)));
    }
    tried.extend(cases().unwrap().into_iter().zip(0..));
    tried.extend(random(100..140).into_iter().zip(0..));
    let tried = part(tried, is_other);
    let [groups, splits] = [AtomicUsize::new(0), AtomicUsize::new(0)];
    all(&tried, |(case, seed)| {
        let [several, apart] =
            check(&compiler, case, *seed, &[]).map_err(|why| format!("{} {seed}: {why}", case.name))?;
        groups.fetch_add(several, Ordering::Relaxed);
        splits.fetch_add(apart, Ordering::Relaxed);
        Ok(())
    });
    let (groups, splits) = (groups.into_inner(), splits.into_inner());
    println!("{groups} groups, {splits} stages in parts");
    // The few cases of every run have no stage in parts.
    assert!(
        groups > if is_other { 10 } else { 4 } && (splits > 1 || !is_other),
        "only {groups} groups and {splits} stages in parts"
    );
}

/// Takes away from groups what makes one stage follow another, and what rows of a tile need; each defect is found.
#[test]
#[ignore = "a kernel for each defect: minutes"]
fn defects_of_groups_are_found() {
    let Some(compiler) = common::compiler() else { return };
    let tried: Vec<Case> = decks().into_iter().chain(cases().unwrap()).chain(random(100..140)).collect();
    // What is taken away, from which cases, and the words with those that replace them.
    let defects = [
        (
            "a barrier a turn",
            "cloverleaf",
            "if (!Copies::MEETS || R::JOINS) __syncthreads();",
            "if (R::JOINS) __syncthreads();",
        ),
        ("a lag", "cloverleaf", "row = turn.front - LAG;", "row = turn.front - (LAG > 1 ? LAG - 1 : LAG);"),
        (
            "what lies before a tile",
            "cloverleaf",
            "row >= -LOW && row < TILE + HIGH",
            "row >= 0 && row < TILE + HIGH",
        ),
        ("what lies beside a tile", "cloverleaf", "across_x >= -LOW_X &&\n", "across_x >= 0 &&\n"),
        (
            "a row of a ring",
            "cloverleaf",
            "slot<S, ROWS, D>(turn) * VALUES + place))[FIRST] = value",
            "slot<S, ROWS, D>(turn) / 2 * VALUES + place))[FIRST] = value",
        ),
        ("the sign of a mirror", "cloverleaf", "across != c.negated ? -stored : stored", "stored"),
        (
            "an index computed anew",
            "periodic",
            "S::WRAPS_X ? as_it_is(x) : K::ghost_x(s, x)",
            "K::ghost_x(s, x)",
        ),
        (
            "what a fixed side keeps",
            "",
            "if (K::All::holds(this->z, this->y, this->x)) this->",
            "if (false) this->",
        ),
        (
            "the end of what is asked ahead",
            "cloverleaf",
            "if (Asked::INSIDE || K::All::holds(this->z + DEEP",
            "if (true || K::All::holds(this->z + DEEP",
        ),
        ("a wait for copies", "cloverleaf", "copies_wait<AHEAD - 1>();", "copies_wait<AHEAD>();"),
        (
            "a barrier behind copies",
            "cloverleaf",
            "S::sign(*this, turn);\n        __syncthreads();",
            "S::sign(*this, turn);",
        ),
        ("the sign of what is copied", "cloverleaf", "if (negated && !constant) to[i] = -to[i];", ""),
        (
            "a constant beside what is copied",
            "",
            "bool constant = b.constant || c.constant,",
            "bool constant = false,",
        ),
        ("a column before what is copied", "cloverleaf", "+ across_x + S::COPIED_X;", "+ across_x;"),
        ("a leaf of a reduction", "", "const int row = last - (ROWS - 1)", "const int row = last - ROWS"),
    ];
    all(&defects, |&(what, cases, words, instead)| {
        for seed in 0..12 {
            for case in tried.iter().filter(|case| case.name.contains(cases)) {
                let outcome = check(&compiler, case, seed, &[(words, instead)]);
                // Words that a kernel does not have are no defect of it.
                if outcome.is_err_and(|why| !why.contains("the kernel's text has 0 times")) {
                    return Ok(());
                }
            }
        }
        Err(format!("the bits are right without {what}"))
    });
}
