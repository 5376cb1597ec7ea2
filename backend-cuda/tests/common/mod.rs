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

/// Returns the C++ compiler of the emulator, if there is one.
#[cfg(target_os = "linux")]
#[allow(dead_code)] // Not every test that has this module emulates.
pub fn compiler() -> Option<abide_emulator::Compiler> {
    present("c++", abide_emulator::Compiler::open(env!("CARGO_TARGET_TMPDIR")))
}
