//! Caches with contents that the command never wrote: it works as without them, and with the same bits.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::Bench;
use crate::start::{Start, peace};
use crate::trial::{Trial, short};

/// A run on a backend that keeps pipelines on disk; the CPU's backend keeps nothing.
const LINE: &str = "run gray-scott --backend wgpu --size 32x32 --steps 20 --output u.npy";
const OUTPUT: &str = "u.npy";
const FOLDER: &str = "ABIDE_CACHE";

/// The files that a run leaves in its cache, by path within it, and its output.
struct Kept {
    files: Vec<(PathBuf, Vec<u8>)>,
    output: Vec<u8>,
}

/// Runs once with an empty cache. The result is the same for all trials, so it is made once.
fn kept(bench: &Bench) -> &'static Result<Kept, String> {
    static KEPT: OnceLock<Result<Kept, String>> = OnceLock::new();
    KEPT.get_or_init(|| make(bench).map_err(|error| short(&format!("{error:#}"))))
}

fn make(bench: &Bench) -> Result<Kept> {
    let (place, cache) = (bench.folder.join("cached"), bench.folder.join("cache"));
    peace(&Start::of(LINE).with(FOLDER, &cache), &bench.binary, &place)?;
    let output = fs::read(place.join(OUTPUT)).context("it leaves no output")?;
    let mut files = Vec::new();
    gather(&cache, &cache, &mut files)?;
    anyhow::ensure!(!files.is_empty(), "this driver hands out no pipelines to keep");
    for folder in [place, cache] {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(Kept { files, output })
}

fn gather(root: &Path, folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("no cache in {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            gather(root, &path, files)?;
        } else {
            files.push((path.strip_prefix(root)?.to_owned(), fs::read(&path)?));
        }
    }
    Ok(())
}

/// Checks that there is a device whose backend keeps something.
pub fn can_keep(bench: &Bench) -> Result<(), String> {
    kept(bench).as_ref().map(drop).map_err(Clone::clone)
}

/// Tries a cache of files that are cut, overwritten, other programs', or no files.
pub fn foreign(trial: &mut Trial<'_>) -> Result<()> {
    let Ok(Kept { files, output }) = kept(trial.bench) else { return Ok(()) };
    let cache = trial.folder.join("cache");
    match trial.number % 5 {
        0 => {
            fs::write(&cache, "no folder")?;
            trial.remark("the cache is a file");
        }
        1 => {
            // Files stand in the places of the cache's folders.
            fs::create_dir(&cache)?;
            fs::write(cache.join("abide"), "no folder")?;
            trial.remark("the cache's folder is a file");
        }
        _ => {
            for (path, bytes) in files {
                let path = cache.join(path);
                fs::create_dir_all(path.parent().unwrap_or(&cache))?;
                spoil(trial, &path, bytes)?;
            }
        }
    }
    let place = trial.place();
    let start = Start::of(LINE).with(FOLDER, &cache);
    // The first run meets the spoilt cache, the second the cache that the first left.
    for turn in ["first", "second"] {
        let ending = trial.start(&start, &place)?.finish(Duration::from_secs(300))?;
        trial.check_end(&ending, &start);
        trial.succeeded(&ending);
        let same = fs::read(place.join(OUTPUT)).is_ok_and(|found| found == *output);
        trial.hold(same, || format!("the {turn} run with a foreign cache has other bits"));
    }
    Ok(())
}

/// Spoils a file that is to be found in a cache.
fn spoil(trial: &mut Trial<'_>, path: &Path, whole: &[u8]) -> Result<()> {
    let mut bytes = whole.to_vec();
    let what = trial.random.u32(0..7);
    let at = trial.random.usize(0..bytes.len().max(1));
    match what {
        0 => bytes.truncate(at),
        1 => bytes.clear(),
        2 => trial.random.fill(&mut bytes),
        3 => bytes[at] ^= 1 << trial.random.u32(0..8),
        4 => {
            let end = bytes.len().min(at + 64);
            trial.random.fill(&mut bytes[at..end]);
        }
        5 => bytes.extend(std::iter::repeat_n(0, 1 << 20)),
        _ => {
            trial.remark(format!("mkdir {}", path.display()));
            return fs::create_dir_all(path).context("cannot make a folder");
        }
    }
    trial.remark(format!("{} is spoilt, kind {what}", path.display()));
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
