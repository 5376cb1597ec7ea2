//! Helpers that the tests of this crate share.

use abide_core::Result;

/// Returns what was opened. Where it is absent, this is reported by name and nothing returned; it is a
/// failure where `ABIDE_REQUIRE` names it.
pub fn present<T>(name: &str, opened: Result<T>) -> Option<T> {
    let required =
        std::env::var("ABIDE_REQUIRE").is_ok_and(|list| list.split(',').any(|one| one.trim() == name));
    match opened {
        Ok(opened) => Some(opened),
        Err(reason) => {
            assert!(!required, "{name} is required: {reason}");
            println!("skipped: {name}: {reason}");
            None
        }
    }
}

/// Operands at which quotients and roots at once may be off, in one type or both, and a few ordinary ones.
#[cfg(target_os = "linux")]
pub const ODD_OPERANDS: [f64; 14] = [
    0.0,
    -0.0,
    1.5,
    -2.0,
    1e-320,
    -1e-40,
    1e-30,
    3e30,
    1e-160,
    f64::MAX,
    -1e300,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

/// Bytes that a kernel may spill around the calls of divisions' rare cases: a value or two, which the compiler keeps there to have more
/// warps.
pub const AROUND_CALLS: usize = 16;

/// One of so many cases is checked in every run.
const PARTS: usize = 24;

/// Returns a part of the cases, or the others.
pub fn part<T>(cases: impl IntoIterator<Item = T>, is_other: bool) -> Vec<T> {
    let is_chosen = |number| abide_random::is_one_in(PARTS, number) != is_other;
    cases.into_iter().enumerate().filter(|&(number, _)| is_chosen(number)).map(|(_, case)| case).collect()
}

/// Makes tests of functions that check a part of their cases, or the others, which `cargo xtask test --full` does: a compiler
/// takes seconds for each kernel, and all are made of the same few texts.
macro_rules! by_parts {
    ($($check:ident),* $(,)?) => {
        mod part {
            $(#[test]
            fn $check() {
                super::$check(false);
            })*
        }

        mod others {
            $(#[test]
            #[ignore = "a kernel for each case: minutes"]
            fn $check() {
                super::$check(true);
            })*
        }
    };
}

pub(crate) use by_parts;

/// Returns the C++ compiler of the emulator, if there is one.
#[cfg(target_os = "linux")]
pub fn compiler() -> Option<abide_emulator::Compiler> {
    present("c++", abide_emulator::Compiler::open(env!("CARGO_TARGET_TMPDIR")))
}
