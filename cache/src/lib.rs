//! What is kept on disk between runs, for every backend: files by the digest of what made them ([`folder`], [`key`],
//! [`write`](fn@write)), and the plans that tuning found fastest ([`winners`], [`tuned`]).
//!
//! A cache is a convenience: where it cannot be read or written, work is done anew, and nothing is lost.
#![deny(missing_docs)]

pub mod tuned;
pub mod winners;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use sha2::{Digest, Sha256};

/// The environment variable that names the folder of what is kept, instead of the user's cache folder.
pub const FOLDER_VARIABLE: &str = "ABIDE_CACHE";

/// The folder of one kind of what is kept; `None` where the user has no cache folder.
pub fn folder(kind: &str) -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    Some(named.or_else(dirs::cache_dir)?.join("abide").join(kind))
}

/// The name of a file for a content given in parts.
pub fn key(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes a file whole, or leaves what was there.
pub fn write(folder: &Path, key: &str, bytes: &[u8]) {
    // Under a name of its own first, so that no other process or thread reads half a file.
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let partial = folder.join(format!("{key}.{}.{number}", std::process::id()));
    let written = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&partial, bytes))
        .and_then(|()| fs::rename(&partial, folder.join(key)));
    if written.is_err() {
        let _ = fs::remove_file(partial);
    }
}
