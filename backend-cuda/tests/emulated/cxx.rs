//! Kernels' text as C++: the rewriting of its PTX, and the compiler.

use std::io::Write as _;
use std::process::{Command, Stdio};

use abide_core::{Error, Result};

/// What kernels say to the device alone, and what stands for it here.
pub type Words = [(&'static str, &'static str)];

/// The text with other words in places that must be there, exactly once each.
pub fn replaced(text: &str, words: &[(&str, &str)]) -> std::result::Result<String, String> {
    let mut text = text.to_owned();
    for (from, to) in words {
        let places = text.matches(from).count();
        if places != 1 {
            return Err(format!("the kernel's text has {places} times and not once: {from}"));
        }
        text = text.replace(from, to);
    }
    Ok(text)
}

/// A kernel's text as C++.
pub fn rewritten(text: &str, words: &[(&str, &str)]) -> std::result::Result<String, String> {
    let text = replaced(text, words)?;
    match text.lines().find(|line| line.contains("asm(") || line.contains("asm volatile") || line.contains("__cvta")) {
        Some(line) => Err(format!("nothing is known to stand for: {}", line.trim())),
        None => Ok(text),
    }
}

/// The compiler's command: `CXX`, else the first of the usual names that can compile and link C++20 and what the lanes need.
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
        // A compiler that does not read says why below.
        let _ = input.write_all(probe.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

/// Runs a program; what it says if it fails is the error.
pub fn succeeds(command: &mut Command) -> std::result::Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first: Vec<&str> = said.lines().take(20).collect();
    Err(format!("{}: {}", output.status, first.join("\n")))
}
