//! A kernel's text with the program that launches it, and that program compiled.

use std::fmt::Display;
use std::path::Path;
use std::process::Command;

use crate::compiler::{Compiler, STANDARD, output_of};

/// What stands for CUDA.
const INCLUDED: [(&str, &str); 5] = [
    ("standard.h", STANDARD),
    ("memory.h", include_str!("../include/memory.h")),
    ("lanes.h", include_str!("../include/lanes.h")),
    ("cuda.h", include_str!("../include/cuda.h")),
    ("device.h", include_str!("../include/device.h")),
];

/// A kernel's text, the C++ program that launches it, and the macros that describe the launch.
///
/// The program includes `device.h`, then `kernel.h`, which is the kernel's text.
pub struct Kernel {
    files: Vec<(String, String)>,
    macros: Vec<String>,
}

impl Kernel {
    /// Returns a kernel's text with the program that launches it.
    pub fn new(text: impl Into<String>, host: &str) -> Kernel {
        let own = [("kernel.h".to_owned(), text.into()), ("main.cc".to_owned(), host.to_owned())];
        let included = INCLUDED.map(|(name, text)| (name.to_owned(), text.to_owned()));
        Kernel { files: own.into_iter().chain(included).collect(), macros: Vec::new() }
    }

    /// Adds a file that the program includes.
    pub fn file(&mut self, name: &str, content: impl Into<String>) -> &mut Kernel {
        self.files.push((name.to_owned(), content.into()));
        self
    }

    /// Defines a macro.
    pub fn define(&mut self, name: &str, value: impl Display) -> &mut Kernel {
        self.macros.push(format!("-D{name}={value}"));
        self
    }

    /// Describes the launch: the most blocks, threads of a block and bytes of its shared memory, and the device's compute
    /// capability times 100.
    pub fn launched(&mut self, [blocks, threads, shared]: [usize; 3], architecture: u32) -> &mut Kernel {
        self.define("BLOCKS_LAUNCHED", blocks).define("THREADS_LAUNCHED", threads);
        self.define("SHARED_BYTES", shared).define("ARCHITECTURE", architecture)
    }

    /// Compiles the program into a folder of its own.
    ///
    /// # Errors
    ///
    /// What the compiler says.
    pub fn compile(&self, compiler: &Compiler) -> Result<Emulation, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        for (name, content) in &self.files {
            std::fs::write(folder.path().join(name), content).map_err(|error| format!("{name}: {error}"))?;
        }
        compiler.compile(folder.path(), &self.macros, &folder.path().join(PROGRAM))?;
        Ok(Emulation { folder })
    }
}

/// The name of a compiled program.
const PROGRAM: &str = "launch";

/// A kernel compiled with its program, in a folder of its own. The program's first argument is the folder, in which it finds
/// what the kernel starts from, and leaves what has become of it.
pub struct Emulation {
    folder: tempfile::TempDir,
}

impl Emulation {
    /// Writes a file for the program.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), String> {
        std::fs::write(self.path().join(name), bytes).map_err(|error| format!("{name}: {error}"))
    }

    /// Returns what a file of the program holds.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.path().join(name)).map_err(|error| format!("{name}: {error}"))
    }

    /// Runs the program, with these arguments behind the folder; returns what it prints.
    ///
    /// # Errors
    ///
    /// What the program says where it fails.
    pub fn run<T: Display>(&self, arguments: impl IntoIterator<Item = T>) -> Result<String, String> {
        let arguments = arguments.into_iter().map(|argument| argument.to_string());
        output_of(Command::new(self.path().join(PROGRAM)).arg(self.path()).args(arguments))
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Replaces words in a kernel's text.
///
/// # Errors
///
/// The text has not each of them exactly once.
pub fn replaced(text: &str, changes: &[(&str, &str)]) -> Result<String, String> {
    let mut text = text.to_owned();
    for (from, to) in changes {
        let places = text.matches(from).count();
        if places != 1 {
            return Err(format!("the kernel's text has {places} times and not once: {from}"));
        }
        text = text.replace(from, to);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_there_once_are_an_error() {
        assert_eq!(replaced("a b", &[("b", "c")]).unwrap(), "a c");
        for words in ["c", "a"] {
            let said = replaced("a b a", &[(words, "")]).unwrap_err();
            assert!(said.contains("times and not once"), "{said}");
        }
    }

    /// All PTX of the kernels is in one file, which has another implementation here.
    #[test]
    fn kernels_reach_ptx_in_one_place() {
        let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shaders/kernels/cuda");
        let device = kernels.join("common/device.cuh");
        let (mut folders, mut files) = (vec![kernels], 0);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path != device {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let is_ptx = |line: &&str| {
                        ["asm(", "asm volatile", "__cvta", "__shared__"]
                            .iter()
                            .any(|word| line.contains(word))
                    };
                    assert_eq!(text.lines().find(is_ptx), None, "{}", path.display());
                    files += 1;
                }
            }
        }
        assert!(files > 10, "{files} files");
    }
}
