//! `cargo xtask gpu`: the tests and benchmarks as one small folder for a machine with a GPU and without Rust:
//! an archive of programs, and the script that unpacks and runs them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo::{Program, build, root, succeeds};
use crate::setup::clear;

/// The most bytes that the folder may have, because it travels.
const LIMIT: u64 = 56 << 20;

/// How tests of the CUDA backend end that need no device: they run kernels on the CPU, or compile them.
const WITHOUT_DEVICE: [&str; 2] = ["emulated", "text"];

/// The script that drives the folder on the other machine.
const SCRIPT: &str = include_str!("run.sh");

/// The options of `cargo xtask gpu`, for a machine that has Rust and a GPU.
#[derive(Args)]
pub struct Gpu {
    /// Run the tests here once they are built: gpu/run.sh
    #[arg(long)]
    run: bool,

    /// Build only the CUDA tests, and run every protocol for thousands of steps on random domains: gpu/run.sh
    /// --stress
    #[arg(long)]
    stress: bool,

    /// Build only the CUDA tests, and run every kernel under compute-sanitizer: gpu/run.sh --sanitize
    #[arg(long)]
    sanitize: bool,
}

impl Gpu {
    /// Builds the folder and runs what was asked for; returns whether all of that succeeded.
    pub fn run(&self) -> Result<bool> {
        let every: &[&str] =
            &["--workspace", "--exclude", "xtask", "--lib", "--bins", "--tests", "--benches"];
        let cuda: &[&str] = &["--package", "abide-cuda", "--tests"];
        let only_cuda = (self.stress || self.sanitize) && !self.run;
        gather(if only_cuda { cuda } else { every })?;
        let asked = [(self.run, None), (self.sanitize, Some("--sanitize")), (self.stress, Some("--stress"))];
        let mut ok = true;
        for (_, argument) in asked.into_iter().filter(|(asked, _)| *asked) {
            // A script that fails does not stop the next.
            ok &= succeeds(Command::new(root().join("gpu").join("run.sh")).args(argument))?;
        }
        Ok(ok)
    }
}

/// Builds, strips and packs programs into `gpu/`, which is emptied first.
fn gather(which: &[&str]) -> Result<()> {
    let programs = build(&[&["test", "--release", "--no-run"], which].concat())?;
    let (folder, unpacked) = (root().join("gpu"), root().join("target").join("gpu"));
    clear(&folder)?;
    clear(&unpacked)?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for program in &programs {
        let Some(place) = place(program) else { continue };
        let to = unpacked.join(place);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        }
        let bytes = copy_stripped(&program.path, &to)?;
        println!(
            "{:>8.1} MiB  {}",
            bytes as f64 / f64::from(1 << 20),
            to.strip_prefix(&unpacked).unwrap_or(&to).display()
        );
    }
    // Programs that carry the same libraries pack to a third.
    let archive = folder.join("programs.tgz");
    if !succeeds(Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(&unpacked).arg("."))? {
        bail!("packing {} failed; is tar installed?", archive.display());
    }
    let total = fs::metadata(&archive).with_context(|| format!("cannot read {}", archive.display()))?.len();
    let script = folder.join("run.sh");
    fs::write(&script, SCRIPT).with_context(|| format!("cannot write {}", script.display()))?;
    make_executable(&script)?;
    println!("{:>8.1} MiB  packed, in {}", total as f64 / f64::from(1 << 20), folder.display());
    if total > LIMIT {
        bail!("the folder has {total} bytes, the limit is {LIMIT}; leave programs out in xtask/src/gpu.rs");
    }
    println!(
        "to run it elsewhere, copy the folder and start there: gpu/run.sh, with --stress or --sanitize for more"
    );
    Ok(())
}

/// Returns the place of a program in the folder, if it is wanted there: programs that use a device, and the
/// command.
fn place(program: &Program) -> Option<String> {
    let Program { package, target, kind, is_test, .. } = program;
    match (package.as_str(), kind.as_str(), is_test) {
        ("abide", "bin", false) => Some(target.clone()),
        // The command's tests find the command where cargo built it, and need no GPU.
        ("abide", "test", true) if !target.starts_with("cli") => Some(format!("tests/{target}")),
        ("backend-cuda", "test", true) if WITHOUT_DEVICE.iter().any(|end| target.ends_with(end)) => None,
        ("backend-cuda" | "backend-wgpu", "lib", true) => Some(format!("tests/{package}")),
        ("backend-cuda" | "backend-wgpu", "test", true) => Some(format!("tests/{package}-{target}")),
        // The benchmark of CPUs needs no GPU either.
        ("abide", "bench", _) if target == "cpu" => None,
        (_, "bench", _) => Some(format!("benches/{package}-{target}")),
        _ => None,
    }
}

fn copy_stripped(from: &Path, to: &Path) -> Result<u64> {
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    if !succeeds(Command::new("strip").arg(to))? {
        bail!("strip {} failed; is binutils installed?", to.display());
    }
    Ok(fs::metadata(to).with_context(|| format!("cannot read {}", to.display()))?.len())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", path.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}
