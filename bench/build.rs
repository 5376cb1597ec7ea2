//! Sets the commit that the command is built from, which results of benchmarks record: the variable
//! `ABIDE_COMMIT` if it is set, else git's commit, else `unknown`.

use std::path::Path;
use std::process::Command;

/// The sources of the command, from this folder.
const SOURCES: [&str; 17] = [
    "../Cargo.lock",
    "../backend-cpu/src",
    "../backend-cuda/src",
    "../backend-wgpu/src",
    "../cli/src",
    "../console/src",
    "../core/src",
    "../gas/src",
    "../io/src",
    "../planner/src",
    "../ranks/src",
    "../shaders",
    "../solvers/src",
    "../src",
    "../text/src",
    "../tuning/src",
    "src",
];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=ABIDE_COMMIT");
    let given = std::env::var("ABIDE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = given.or_else(from_git).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=ABIDE_COMMIT={commit}");
}

/// Returns the commit, with `-dirty` where files differ from it. Builds without optimisation have none:
/// nobody keeps their rates, and each commit would rebuild them.
fn from_git() -> Option<String> {
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        return None;
    }
    let folder = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    // Inside another project, git would report the other project's commit.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != Path::new(&folder).canonicalize().ok()?.parent()? {
        return None;
    }
    // Every commit and every change of the sources may change the answer. A path that does not exist would
    // cause a rebuild every time.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    for path in SOURCES.iter().copied().chain([log.as_str()]).filter(|path| Path::new(path).exists()) {
        println!("cargo:rerun-if-changed={path}");
    }
    git(&["describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
