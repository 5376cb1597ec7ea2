//! What the tests of this crate share.

use abide_core::Result;

/// What was opened, or nothing where it is absent: that is reported by name, and a failure where
/// `ABIDE_REQUIRE` names it.
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
