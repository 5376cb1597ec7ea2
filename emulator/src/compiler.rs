//! The C++ compiler, and the programs that it has made: each is kept by a hash of all that it was made from, so that a
//! kernel whose text is as before is not compiled again.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use abide_core::{Error, Result};

/// How kernels become programs: without contraction, because the formula says where to contract; warnings are the CUDA
/// compiler's business; jumps between stacks are meant, which the checks of some systems' C libraries forbid.
const COMPILATION: [&str; 5] = ["-std=c++20", "-O1", "-ffp-contract=off", "-w", "-U_FORTIFY_SOURCE"];

/// How stores, and nothing else, are noted: by a call before each. Compilers have different words for that.
const NOTED: [&[&str]; 2] = [
    &[
        "-fsanitize=kernel-address",
        "--param=asan-instrumentation-with-call-threshold=0",
        "--param=asan-instrument-reads=0",
        "--param=asan-stack=0",
        "--param=asan-globals=0",
    ],
    &[
        "-fsanitize=kernel-address",
        "-mllvm",
        "-asan-instrumentation-with-call-threshold=0",
        "-mllvm",
        "-asan-instrument-reads=0",
        "-mllvm",
        "-asan-stack=0",
        "-mllvm",
        "-asan-globals=0",
    ],
];

/// The time after which a program that no test has asked for is removed.
const KEPT: Duration = Duration::from_secs(14 * 24 * 3600);

/// The headers of the standard library that kernels need.
pub(crate) const STANDARD: &str = include_str!("../include/standard.h");

/// A compiler of C++, and the folder of the programs that it has made.
pub struct Compiler {
    command: Vec<String>,
    version: String,
    folder: PathBuf,
    /// The compiled headers of the standard library.
    standard: OnceLock<Option<PathBuf>>,
}

impl Compiler {
    /// Opens `CXX`, else the first of the usual names that can compile and link C++20 and what the lanes need. Programs are
    /// kept in a folder in `folder`; a test's is `CARGO_TARGET_TMPDIR`.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] where no compiler can, or where the folder cannot be made.
    pub fn open(folder: impl AsRef<Path>) -> Result<Compiler> {
        let unavailable = |reason: String| Error::Unavailable { backend: "c++", reason };
        let folder = folder.as_ref().join("emulated");
        let kept = folder.join("kept");
        let made = fs::create_dir_all(&kept);
        made.map_err(|error| unavailable(format!("cannot make {}: {error}", kept.display())))?;
        forget_old(&kept);
        let named = std::env::var("CXX").ok().filter(|named| !named.trim().is_empty());
        let names = named.map_or_else(|| vec!["c++".to_owned(), "g++".to_owned()], |name| vec![name]);
        let mut reasons = Vec::new();
        for name in names {
            for noted in NOTED {
                let own = name.split_whitespace().chain(COMPILATION).chain(noted.iter().copied());
                let command: Vec<String> = own.map(str::to_owned).collect();
                match try_compiler(&command) {
                    Ok(()) => {
                        let version = Command::new(&command[0]).arg("--version").output();
                        let version = version.map_or_else(
                            |_| String::new(),
                            |said| String::from_utf8_lossy(&said.stdout).into_owned(),
                        );
                        return Ok(Compiler { command, version, folder, standard: OnceLock::new() });
                    }
                    Err(reason) => reasons.push(format!("{name}: {reason}")),
                }
            }
        }
        Err(unavailable(format!(
            "no compiler of C++20 with ucontext.h ({}); name one in CXX",
            reasons.join("; ")
        )))
    }

    /// Links `program` to what `main.cc` in a folder compiles to with these macros, which was made before, or is made now, of
    /// the same files.
    pub(crate) fn compile(
        &self,
        folder: &Path,
        macros: &[String],
        program: &Path,
    ) -> std::result::Result<(), String> {
        let said = |error: std::io::Error| error.to_string();
        let made = self.folder.join("kept").join(self.key(folder, macros).map_err(said)?);
        match fs::File::open(&made) {
            // Its age is that of its last use.
            Ok(file) => drop(file.set_modified(SystemTime::now())),
            Err(_) => self.compile_anew(folder, macros, &made)?,
        }
        std::os::unix::fs::symlink(&made, program).map_err(said)
    }

    /// Compiles into a file of its own, which then takes the name: another process may ask for the same program.
    fn compile_anew(&self, folder: &Path, macros: &[String], made: &Path) -> std::result::Result<(), String> {
        let own = tempfile::NamedTempFile::new_in(self.folder.join("kept"))
            .map_err(|error| error.to_string())?
            .into_temp_path();
        let mut command = self.command();
        command.current_dir(folder);
        if let Some(header) = self.standard.get_or_init(|| self.compile_standard()) {
            command.arg("-include").arg(header);
        }
        output_of(command.args(macros).arg("main.cc").arg("-o").arg(&own))?;
        own.persist(made).map_err(|error| error.to_string())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command
    }

    /// Returns the hash of what a program is made from.
    fn key(&self, folder: &Path, macros: &[String]) -> std::io::Result<String> {
        let mut files: Vec<(OsString, String)> = fs::read_dir(folder)?
            .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), fs::read_to_string(entry.path())?))))
            .collect::<std::io::Result<_>>()?;
        files.sort();
        let words = [self.version.clone(), self.command.join(" ")];
        let files = files.into_iter().flat_map(|(name, text)| [name.to_string_lossy().into_owned(), text]);
        let parts: Vec<String> = words.into_iter().chain(macros.iter().cloned()).chain(files).collect();
        // Lengths keep apart what would read the same one after another.
        let parts: Vec<String> = parts.iter().map(|part| format!("{} {part}", part.len())).collect();
        Ok(abide_tuning::key(&parts.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    /// Compiles the headers of the standard library once, because they take as long as a kernel; returns the file to include.
    /// Where that is not possible, each program reads them.
    fn compile_standard(&self) -> Option<PathBuf> {
        let header = self.folder.join("standard.h");
        fs::write(&header, STANDARD).ok()?;
        // Another process may read the file that is there.
        let compiled = tempfile::NamedTempFile::new_in(&self.folder).ok()?.into_temp_path();
        let mut command = self.command();
        command.args(["-x", "c++-header"]).arg(&header).arg("-o").arg(&compiled);
        output_of(&mut command).ok()?;
        compiled.persist(self.folder.join("standard.h.gch")).ok()?;
        Some(header)
    }
}

/// Removes programs that no test has asked for lately.
fn forget_old(kept: &Path) {
    for entry in fs::read_dir(kept).into_iter().flatten().flatten() {
        let used = entry.metadata().and_then(|data| data.modified()).ok();
        if used.and_then(|used| used.elapsed().ok()).is_some_and(|age| age > KEPT) {
            drop(fs::remove_file(entry.path()));
        }
    }
}

fn try_compiler(command: &[String]) -> std::result::Result<(), String> {
    let probe = "#include <stdlib.h>\n#include <ucontext.h>\nstatic_assert(__cplusplus >= 202002L);\n\
                 extern \"C\" void __asan_store4_noabort(size_t) {}\n\
                 int main(int, char** words) { ucontext_t here; *(int*)words[0] = 1; return getcontext(&here); }\n";
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .args(["-x", "c++", "-", "-o"])
        .arg(folder.path().join("probe"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that does not read its input fails below, with the reason.
        let _ = input.write_all(probe.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

/// Runs a program and returns what it prints; if it fails, its messages are the error.
pub(crate) fn output_of(command: &mut Command) -> std::result::Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = said.lines().take(20).collect();
    Err(format!("{}: {}", output.status, first.join("\n")))
}
