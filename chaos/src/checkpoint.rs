//! Checkpoints, read by other code than the code that wrote them.

use std::io::{Cursor, Read as _};

use anyhow::{Context, Result};
use zip::ZipArchive;

/// Reads a whole checkpoint, with its checksums, and returns the steps done.
pub fn steps(bytes: &[u8]) -> Result<u64> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).context("not an archive")?;
    let mut steps = None;
    for number in 0..archive.len() {
        let mut entry = archive.by_index(number)?;
        let name = entry.name()?.into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).with_context(|| format!("entry {name}"))?;
        if name == "abide.json" {
            let about: serde_json::Value = serde_json::from_slice(&content).context("abide.json")?;
            steps = about["steps"].as_u64();
        } else if name.ends_with(".npy") {
            crate::complete::npy(&content).with_context(|| format!("entry {name}"))?;
        }
    }
    steps.context("it does not say how many steps are done")
}
