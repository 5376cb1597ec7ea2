//! The timing of plans, and the data kept on disk between runs, for every backend.
//!
//! A backend gives its device as a [`Stand`] on which one plan after another is timed ([`tuned`]). Kept are
//! the fastest plans ([`tuned_plans`]), the groups that a search found for a program ([`tuned::Tuning::grouped`]), rates of the machine ([`rates`]), and files by the digest of what made
//! them ([`folder`], [`key`], [`keep`], [`find`]).
//!
//! A cache is a convenience: where it cannot be read or written, work is done anew, and nothing is lost.
//! Whoever can write there decides what runs, so a folder that others can write to is not used ([`refusal`]
//! says why).
#![deny(missing_docs)]

pub mod rates;
pub mod tuned;
pub mod tuned_plans;

mod groups;
mod measure;
mod place;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub use measure::{Run, Stand, brief};

/// The environment variable that names the folder of kept data, instead of the user's cache folder.
pub const FOLDER_VARIABLE: &str = "ABIDE_CACHE";

/// Returns the folder of one kind of kept data; `None` where the user has no cache folder, or it is not the
/// user's alone.
pub fn folder(kind: &str) -> Option<PathBuf> {
    debug_assert!(KINDS.contains(&kind));
    let root = root()?;
    let folder = root.join(kind);
    (place::check(&root).is_ok() && place::check(&folder).is_ok()).then_some(folder)
}

/// Returns the folders of all kinds of kept data, which no output of a user may be written into; none without a
/// cache folder.
pub fn folders() -> Vec<PathBuf> {
    root().map_or(Vec::new(), |root| KINDS.iter().map(|kind| root.join(kind)).collect())
}

/// Says why nothing is kept, where a folder of kept data is not the user's alone.
pub fn refusal() -> Option<String> {
    let root = root()?;
    let folders = std::iter::once(root.clone()).chain(KINDS.map(|kind| root.join(kind)));
    folders.map(|folder| place::check(&folder)).find_map(Result::err)
}

/// The kinds of kept data: compiled CUDA kernels, wgpu's pipelines, tuning's answers, and rates of the
/// machine.
const KINDS: [&str; 4] = ["kernels", "pipelines", "tuned", "rates"];

/// Returns the folder of all kinds.
fn root() -> Option<PathBuf> {
    // An empty variable names no folder.
    let named = std::env::var_os(FOLDER_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    // A user's folder that is named relative to wherever a program runs does not count.
    let own = || dirs::cache_dir().filter(|folder| folder.is_absolute());
    Some(named.or_else(own)?.join("abide"))
}

/// Returns the name of a file for a content given in parts.
pub fn key(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    hexadecimal(digest)
}

fn hexadecimal(digest: Sha256) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first line of a file that [`keep`] wrote begins with this; the digest of its key and content follows.
const MARK: &str = "abide-cache 1 ";

fn head(key: &str, content: &[u8]) -> String {
    let digest = Sha256::new().chain_update(key).chain_update(content);
    format!("{MARK}{}\n", hexadecimal(digest))
}

/// Keeps a content that is handed to a driver as it is, under the digest of what made it.
pub fn keep(folder: &Path, key: &str, content: &[u8]) {
    write(folder, key, &[head(key, content).as_bytes(), content].concat());
}

/// Returns the content that [`keep`] kept under this key; a file that holds anything else, whole or in part,
/// does not count and is deleted.
pub fn find(folder: &Path, key: &str) -> Option<Vec<u8>> {
    let path = folder.join(key);
    let mut bytes = read(&path)?;
    let length = head(key, &[]).len();
    let is_whole =
        bytes.get(length..).is_some_and(|content| head(key, content).as_bytes() == &bytes[..length]);
    if !is_whole {
        let _ = fs::remove_file(path);
        return None;
    }
    bytes.drain(..length);
    Some(bytes)
}

/// The most bytes of a file that is read.
const LONGEST: u64 = 1 << 28;

/// Returns a file's bytes, if it is one of ours: regular, not behind a link, and of a length that kernels
/// have.
pub(crate) fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = place::open(path).ok()?.take(LONGEST + 1).read_to_end(&mut bytes).ok()?;
    (read as u64 <= LONGEST).then_some(bytes)
}

/// Writes a file whole, or leaves the earlier one.
pub fn write(folder: &Path, key: &str, bytes: &[u8]) {
    // Nothing depends on the result: a content that is not kept is made anew.
    let _ = place::write(folder, key, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("kernels");
        let content = b"\x7fELF\n\nmachine code".as_slice();
        assert_eq!(find(&folder, "a"), None);
        keep(&folder, "a", content);
        assert_eq!(find(&folder, "a").as_deref(), Some(content));
        let whole = fs::read(folder.join("a")).unwrap();
        let mut flipped = whole.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for damaged in
            [&whole[..whole.len() - 1], &whole[..20], &[], content, &flipped, &[&whole[..], b"x"].concat()]
        {
            fs::write(folder.join("a"), damaged).unwrap();
            assert_eq!(find(&folder, "a"), None);
            assert!(!folder.join("a").exists(), "a miss is made anew");
        }
        // Another kernel's file under this one's name.
        fs::write(folder.join("b"), &whole).unwrap();
        assert_eq!(find(&folder, "b"), None);
        keep(&folder, "a", b"");
        assert_eq!(find(&folder, "a").as_deref(), Some(&b""[..]));
    }
}
