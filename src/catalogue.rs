//! The stencils and models that come with Abide: those of [`abide_core::catalogue`], and flows of [real gases](crate::gas).

pub use abide_core::catalogue::*;

use crate::{Error, Result};

/// Returns all entries: those of the core, and where the feature `gas` is on, flows of real gases.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    #[cfg(feature = "gas")]
    let gases = abide_gas::ENTRIES;
    #[cfg(not(feature = "gas"))]
    let gases: &[Entry] = &[];
    abide_core::catalogue::entries().chain(gases)
}

/// Returns the entry of a name.
///
/// # Errors
///
/// [`Error::Unknown`] where there is none.
pub fn find(name: &str) -> Result<&'static Entry> {
    let found = entries().find(|entry| entry.name == name);
    found.ok_or_else(|| Error::unknown("stencil", name, entries().map(|entry| entry.name)))
}
