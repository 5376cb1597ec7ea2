//! Runs of cargo, and the programs that its messages name.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Returns the workspace's root.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map(Path::to_path_buf).unwrap_or(package)
}

/// Returns a command of the cargo that runs this task, in the workspace's root.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command with its output shown; an error names the command where it cannot start.
pub fn succeeds(command: &mut Command) -> Result<bool> {
    let status =
        command.status().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    Ok(status.success())
}

/// Returns the names of the workspace's packages that are published.
pub fn published() -> Result<Vec<String>> {
    let output = cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo metadata failed");
    }
    let metadata = serde_json::from_slice(&output.stdout).context("cargo's description is no JSON")?;
    Ok(published_of(&metadata))
}

/// Returns the names of the packages in a description that may go to a registry: `publish = false` is a list of none.
fn published_of(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let goes = packages.filter(|package| package["publish"].as_array().is_none_or(|to| !to.is_empty()));
    goes.filter_map(|package| package["name"].as_str().map(str::to_owned)).collect()
}

/// A program that cargo built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The package's folder name; `abide` for the root.
    pub package: String,
    /// The target's name, as in `tests/NAME.rs`.
    pub target: String,
    /// `bin`, `example`, `test`, `bench` or `lib`.
    pub kind: String,
    /// Whether it holds unit tests instead of a plain `main`.
    pub is_test: bool,
    /// The program's file.
    pub path: PathBuf,
    /// The package's folder, in which its tests run.
    pub folder: PathBuf,
}

/// The arguments that build what the tests run, linted in the same go ([`linted`]).
pub const TESTS: &[&str] = &["test", "--workspace", "--no-run", "--quiet"];

/// Returns a command of cargo that compiles the workspace's crates by Clippy's driver, which is the compiler with more lints: a
/// check of its own would read all crates and their dependencies once more. What it builds is not what plain cargo builds.
pub fn linted(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver");
    command
}

/// Builds the tests and prints what the compiler and Clippy say against them. Returns whether they say nothing.
pub fn lint() -> Result<bool> {
    let said: Vec<_> = messages(TESTS)?.iter().filter_map(warning).collect();
    said.iter().for_each(|text| print!("{text}"));
    println!("{} warnings", said.len());
    Ok(said.is_empty())
}

/// Returns what a message of cargo says against the code.
fn warning(message: &Value) -> Option<String> {
    message["message"]["rendered"].as_str().map(str::to_owned)
}

/// Builds with the given arguments and returns the programs that were built.
pub fn build(arguments: &[&str]) -> Result<Vec<Program>> {
    Ok(messages(arguments)?.iter().filter_map(program).collect())
}

/// Builds the command as released and returns its path.
pub fn command() -> Result<PathBuf> {
    command_of(&["build", "--release", "--package", "abide-cli", "--bin", "abide"])
}

/// Builds with the given arguments and returns the path of the command among what was built.
pub fn command_of(arguments: &[&str]) -> Result<PathBuf> {
    let programs = build(arguments)?;
    let found = programs.into_iter().find(|p| p.kind == "bin" && p.target == "abide" && !p.is_test);
    Ok(found.context("cargo built no command")?.path)
}

/// Builds with the given arguments and returns the file with this ending that was built of a target.
pub fn file_of(arguments: &[&str], target: &str, ending: &str) -> Result<PathBuf> {
    let found = messages(arguments)?.iter().find_map(|message| file(message, target, ending));
    found.with_context(|| format!("cargo {} built no {target}{ending}", arguments.join(" ")))
}

/// Returns a target's file with this ending, if a message of cargo names it.
fn file(message: &Value, target: &str, ending: &str) -> Option<PathBuf> {
    let files = message["filenames"].as_array().filter(|_| message["target"]["name"] == target)?;
    files.iter().filter_map(|file| file.as_str()).find(|path| path.ends_with(ending)).map(PathBuf::from)
}

/// Builds with the given arguments and returns cargo's messages. Those of the compiler are printed where it fails.
fn messages(arguments: &[&str]) -> Result<Vec<Value>> {
    let mut command = if arguments == TESTS { linted(arguments) } else { cargo(arguments) };
    command.arg("--message-format=json").stdout(Stdio::piped());
    let output =
        command.spawn().context("cannot start cargo")?.wait_with_output().context("cargo was interrupted")?;
    let text = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    let messages = text.lines().map(message).collect::<Result<Vec<_>>>()?;
    if !output.status.success() {
        messages.iter().filter_map(warning).for_each(|text| print!("{text}"));
        bail!("cargo {} failed", arguments.join(" "));
    }
    Ok(messages)
}

/// Reads one of cargo's messages.
fn message(line: &str) -> Result<Value> {
    serde_json::from_str(line).with_context(|| format!("not a message of cargo: {line}"))
}

/// Returns the program of one of cargo's messages, if it names one.
fn program(message: &Value) -> Option<Program> {
    let path = message["executable"].as_str()?;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let folder = Path::new(message["manifest_path"].as_str().unwrap_or_default())
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default();
    let package = match folder.file_name() {
        Some(name) if folder != root() => name.to_string_lossy().into_owned(),
        _ => "abide".to_owned(),
    };
    Some(Program {
        package,
        target: word(&message["target"]["name"]),
        kind: word(&message["target"]["kind"][0]),
        is_test: message["profile"]["test"].as_bool().unwrap_or(false),
        path: PathBuf::from(path),
        folder,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_are_not_published_are_left_out() {
        let text = r#"{"packages":[{"name":"a","publish":null},{"name":"b","publish":[]},{"name":"c","publish":["d"]}]}"#;
        assert_eq!(published_of(&serde_json::from_str(text).unwrap()), ["a", "c"]);
    }

    #[test]
    fn a_message_with_an_executable_names_a_program() {
        let built = serde_json::json!({
            "reason": "compiler-artifact", "manifest_path": "/a/backend-cpu/Cargo.toml", "profile": { "test": true },
            "target": { "kind": ["lib"], "name": "abide_cpu" }, "executable": "/a/target/debug/deps/abide_cpu-1",
        });
        let found = program(&built).unwrap();
        assert_eq!(
            (found.package.as_str(), found.kind.as_str(), found.is_test),
            ("backend-cpu", "lib", true)
        );
        assert_eq!(program(&serde_json::json!({ "reason": "build-finished", "success": true })), None);
        assert!(message("warning: x").is_err());
    }

    #[test]
    fn a_message_that_names_a_file_is_found() {
        let line = |name: &str, files: &[&str]| serde_json::json!({ "target": { "name": name }, "filenames": files });
        let found = |message: &Value| file(message, "abide_web", ".wasm");
        let files = ["/t/libabide_web.rlib", "/t/abide_web.wasm"];
        assert_eq!(found(&line("abide_web", &files)), Some(PathBuf::from("/t/abide_web.wasm")));
        assert_eq!(found(&line("wgpu", &files)), None);
        assert_eq!(found(&line("abide_web", &["/t/libabide_web.rlib"])), None);
        assert_eq!(found(&Value::Null), None);
    }

    #[test]
    fn what_a_lint_says_is_a_warning() {
        let said =
            serde_json::json!({ "reason": "compiler-message", "message": { "rendered": "warning: unused" } });
        assert_eq!(warning(&said).as_deref(), Some("warning: unused"));
        assert_eq!(warning(&serde_json::json!({ "reason": "compiler-artifact" })), None);
    }
}
