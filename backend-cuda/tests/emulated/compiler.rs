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

/// Returns the compiler's command: `CXX`, else the first of the usual names that can compile and link C++20
/// and what the lanes need.
pub fn compiler() -> Result<Vec<String>> {
    let named = std::env::var("CXX").ok().filter(|named| !named.trim().is_empty());
    let names = named.map_or_else(|| vec!["c++".to_owned(), "g++".to_owned()], |name| vec![name]);
    let mut reasons = Vec::new();
    for name in names {
        let command: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
        match try_compiler(&command) {
            Ok(()) => return Ok(command),
            Err(reason) => reasons.push(format!("{name}: {reason}")),
        }
    }
    let reason = format!("no compiler of C++20 with ucontext.h ({}); name one in CXX", reasons.join("; "));
    Err(Error::Unavailable { backend: "c++", reason })
}

fn try_compiler(command: &[String]) -> std::result::Result<(), String> {
    let probe = "#include <ucontext.h>\nstatic_assert(__cplusplus >= 202002L);\n\
                 int main() { ucontext_t here; return getcontext(&here); }\n";
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .args(["-std=c++20", "-x", "c++", "-", "-o"])
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

/// How kernels become programs: without contraction, because the formula says where to contract; warnings are the CUDA
/// compiler's business.
const COMPILATION: [&str; 4] = ["-std=c++20", "-O1", "-ffp-contract=off", "-w"];

/// The time after which a program that no test has asked for is removed.
const KEPT: Duration = Duration::from_secs(14 * 24 * 3600);

/// The headers of the standard library that kernels need.
const STANDARD: &str = include_str!("standard.h");

/// The compilation of the file `main.cc` in a folder into a program there.
pub struct Compilation {
    compiler: Vec<String>,
    folder: PathBuf,
    program: String,
    arguments: Vec<String>,
}

impl Compilation {
    /// Returns the compilation into a program of this name; what it needs to know of the launch is to be added.
    pub fn new(compiler: &[String], folder: &Path, program: &str) -> Compilation {
        let (folder, program) = (folder.to_owned(), program.to_owned());
        Compilation { compiler: compiler.to_vec(), folder, program, arguments: Vec::new() }
    }

    /// Adds an argument.
    pub fn arg(&mut self, argument: impl Into<String>) -> &mut Self {
        self.arguments.push(argument.into());
        self
    }

    /// Makes the program, or links to the one that was made of the same files with the same arguments.
    ///
    /// # Errors
    ///
    /// What the compiler says.
    pub fn run(&self) -> std::result::Result<(), String> {
        let said = |error: std::io::Error| error.to_string();
        let kept = kept().ok_or("the folder of compiled kernels cannot be made")?;
        let program = kept.join(self.key().map_err(said)?);
        match fs::File::open(&program) {
            // Its age is that of its last use.
            Ok(file) => drop(file.set_modified(SystemTime::now())),
            Err(_) => self.compile(&program)?,
        }
        std::os::unix::fs::symlink(&program, self.folder.join(&self.program)).map_err(said)
    }

    /// Compiles into a file of its own, which then takes the name: another process may ask for the same program.
    fn compile(&self, program: &Path) -> std::result::Result<(), String> {
        let own = tempfile::NamedTempFile::new_in(program.parent().unwrap_or(program))
            .map_err(|error| error.to_string())?
            .into_temp_path();
        let mut command = Command::new(&self.compiler[0]);
        command.args(&self.compiler[1..]).current_dir(&self.folder).args(COMPILATION);
        if let Some(header) = standard(&self.compiler) {
            command.arg("-include").arg(header);
        }
        succeeds(command.args(&self.arguments).arg("main.cc").arg("-o").arg(&own))?;
        own.persist(program).map_err(|error| error.to_string())
    }

    /// Returns the hash of what the program is made from.
    fn key(&self) -> std::io::Result<String> {
        static VERSION: OnceLock<String> = OnceLock::new();
        let version = VERSION.get_or_init(|| {
            let output = Command::new(&self.compiler[0]).args(&self.compiler[1..]).arg("--version").output();
            output
                .map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
        });
        let mut files: Vec<(OsString, String)> = fs::read_dir(&self.folder)?
            .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), fs::read_to_string(entry.path())?))))
            .collect::<std::io::Result<_>>()?;
        files.sort();
        let words = [version, &self.compiler.join(" "), &COMPILATION.join(" "), STANDARD].map(str::to_owned);
        let files = files.into_iter().flat_map(|(name, text)| [name.to_string_lossy().into_owned(), text]);
        let parts: Vec<String> =
            words.into_iter().chain(self.arguments.iter().cloned()).chain(files).collect();
        // Lengths keep apart what would read the same one after another.
        let parts: Vec<String> = parts.iter().map(|part| format!("{} {part}", part.len())).collect();
        Ok(abide_tuning::key(&parts.iter().map(String::as_str).collect::<Vec<_>>()))
    }
}

/// Returns the folder of compiled kernels, without those that no test has asked for lately; `None` where it cannot be made.
fn kept() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulated").join("kept");
        fs::create_dir_all(&folder).ok()?;
        for entry in fs::read_dir(&folder).ok()?.flatten() {
            let used = entry.metadata().and_then(|data| data.modified()).ok();
            if used.and_then(|used| used.elapsed().ok()).is_some_and(|age| age > KEPT) {
                drop(fs::remove_file(entry.path()));
            }
        }
        Some(folder)
    });
    folder.as_deref()
}

/// Compiles the headers of the standard library once, because they take as long as a kernel; returns the file to include.
/// Where that is not possible, each program reads them.
fn standard(compiler: &[String]) -> Option<&'static Path> {
    static HEADER: OnceLock<Option<PathBuf>> = OnceLock::new();
    HEADER.get_or_init(|| compile_standard(compiler)).as_deref()
}

fn compile_standard(compiler: &[String]) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulated");
    fs::create_dir_all(&folder).ok()?;
    let header = folder.join("standard.h");
    fs::write(&header, STANDARD).ok()?;
    // Another process may read the file that is there.
    let compiled = tempfile::NamedTempFile::new_in(&folder).ok()?.into_temp_path();
    let mut command = Command::new(&compiler[0]);
    command
        .args(&compiler[1..])
        .args(COMPILATION)
        .args(["-x", "c++-header"])
        .arg(&header)
        .arg("-o")
        .arg(&compiled);
    succeeds(&mut command).ok()?;
    compiled.persist(folder.join("standard.h.gch")).ok()?;
    Some(header)
}

/// Runs a program; if it fails, its output is the error.
pub fn succeeds(command: &mut Command) -> std::result::Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = said.lines().take(20).collect();
    Err(format!("{}: {}", output.status, first.join("\n")))
}
