//! The targets of fuzzing, one module per kind of input.

mod arguments;
mod checkpoint;
mod gas;
mod market;
mod models;
mod npy;
mod options;
mod picture;
mod programs;
mod resume;

use std::io::Write;
use std::time::Duration;

use abide::Error;
use tempfile::NamedTempFile;

use crate::mutate::{self, Wrapping};

/// A function to be fuzzed, which takes any bytes.
pub struct Target {
    /// The target's name, and that of its folders.
    pub name: &'static str,
    /// A description, in one line.
    pub what: &'static str,
    /// The longest input that is tried, in bytes.
    pub longest: usize,
    /// The time that an execution may take, of optimised code.
    pub time: Duration,
    /// The most bytes of memory that an execution is given, whatever it asks for; more is refused.
    pub most: usize,
    /// The bytes that an input may ask for, beside a few MB for any.
    pub memory: fn(&[u8]) -> usize,
    /// Takes the input, and says in one line what is wrong with the result.
    pub run: fn(&[u8]) -> Result<(), String>,
    /// The wrappings that inputs may have.
    pub wrappings: &'static [Wrapping],
    /// Words of the input's language.
    pub words: &'static [&'static str],
}

/// Returns the memory granted by an input's length: values may be read from one digit each, and exist twice
/// while they are put in order.
fn by_length(input: &[u8]) -> usize {
    64 * input.len()
}

const fn target(name: &'static str, what: &'static str, run: fn(&[u8]) -> Result<(), String>) -> Target {
    let (time, most) = (Duration::from_secs(2), 16 << 20);
    Target { name, what, longest: 4096, time, most, memory: by_length, run, wrappings: &[], words: &[] }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        memory: market::memory,
        words: market::WORDS,
        ..target("matrix", "matrices in the Matrix Market format", market::matrix)
    },
    Target {
        memory: market::memory,
        words: market::WORDS,
        ..target("vector", "vectors in the Matrix Market format", market::vector)
    },
    Target {
        memory: market::packed_memory,
        wrappings: &[mutate::GZIP],
        words: market::WORDS,
        ..target("gzip", "matrices in the Matrix Market format, packed", market::packed)
    },
    Target { words: npy::WORDS, ..target("npy", "NumPy's arrays", npy::run) },
    Target {
        wrappings: &[mutate::ZIP],
        words: checkpoint::WORDS,
        ..target("checkpoint", "checkpoints", checkpoint::run)
    },
    Target {
        memory: picture::png_memory,
        most: picture::MOST,
        wrappings: &[mutate::CHUNKS, mutate::PIXELS],
        words: picture::WORDS,
        ..target("png", "pictures in PNG", picture::png)
    },
    Target {
        memory: picture::jpeg_memory,
        most: picture::MOST,
        ..target("jpeg", "pictures in JPEG", picture::jpeg)
    },
    Target {
        longest: 512,
        words: arguments::WORDS,
        ..target("arguments", "the command's arguments, one a line", arguments::run)
    },
    Target {
        memory: models::memory,
        most: 64 << 20,
        words: models::WORDS,
        ..target("models", "model files", models::run)
    },
    Target {
        memory: models::memory,
        most: 64 << 20,
        words: options::WORDS,
        ..target("options", "the options of model files, in their table `run`", options::run)
    },
    Target {
        memory: gas::cantera_memory,
        most: 512 << 20,
        words: gas::CANTERA_WORDS,
        ..target("cantera", "Cantera's YAML files of species", gas::cantera)
    },
    Target {
        memory: gas::memory,
        words: gas::TABLE_WORDS,
        ..target("species", "tables of species", gas::species)
    },
    Target {
        memory: gas::memory,
        words: gas::TABLE_WORDS,
        ..target("interactions", "tables of interactions of species", gas::interactions)
    },
    Target {
        memory: gas::memory,
        words: gas::TABLE_WORDS,
        ..target("states", "tables of states of gases", gas::states)
    },
    Target {
        longest: resume::KEY,
        time: Duration::from_secs(10),
        most: 64 << 20,
        // A session takes memory of its own, whatever the input.
        memory: |_| 64 << 20,
        ..target("resume", "checkpoints with scalars of any bits, and changed programs", resume::run)
    },
    Target {
        longest: programs::KEY,
        time: Duration::from_secs(10),
        most: 512 << 20,
        // A run that wants more is refused, which is no fault.
        memory: |_| usize::MAX,
        ..target("programs", "random programs in random plans, against the reference", programs::run)
    },
];

/// Returns the target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Checks the error of an input that is refused: it is one line that a terminal shows as it is.
fn refused(error: &Error) -> Result<(), String> {
    let text = error.to_string();
    match text.chars().find(|letter| letter.is_control()) {
        Some(letter) => Err(format!("its error holds {letter:?}: {}", text.escape_debug())),
        None => Ok(()),
    }
}

/// Makes a file with these contents, for readers that take a path; the file goes with the handle.
fn file(contents: &[u8], extension: &str) -> Result<NamedTempFile, String> {
    let named = || -> std::io::Result<NamedTempFile> {
        // Where files in memory are available, no disk is waited for.
        let memory = std::path::Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let mut file = tempfile::Builder::new().suffix(extension).tempfile_in(folder)?;
        file.write_all(contents)?;
        Ok(file)
    };
    named().map_err(|e| format!("the fuzzer's own file: {e}"))
}

/// Returns `wrong`'s words, unless a claim holds.
fn ensure(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}
