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
        let every: &[&str] = &[
            "--workspace",
            "--exclude",
            "xtask",
            "--exclude",
            "abide-chaos",
            "--lib",
            "--bins",
            "--tests",
            "--benches",
        ];
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
        // The command's tests find the command where cargo built it, and need no GPU.
        ("cli", "bin", false) => Some(target.clone()),
        ("abide" | "backend-cuda" | "backend-wgpu", "test", true) => Some(format!("tests/{package}")),
        ("backend-cuda" | "backend-wgpu", "lib", true) => Some(format!("tests/{package}-units")),
        // The benchmark of CPUs needs no GPU either.
        ("bench", "bench", _) if target == "cpu" => None,
        ("bench", "bench", _) => Some(format!("benches/{target}")),
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

#[cfg(all(test, unix))]
mod tests {
    use std::process::Output;

    use super::*;

    /// Runs the script in a folder of these programs, which are scripts too.
    fn run(programs: &[(&str, &str)], arguments: &[&str]) -> (Output, String) {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("run.sh");
        fs::write(&script, SCRIPT).unwrap();
        fs::create_dir(folder.path().join("tests")).unwrap();
        for (name, text) in programs {
            let path = folder.path().join("tests").join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}")).unwrap();
            make_executable(&path).unwrap();
        }
        let output = Command::new("bash").arg(&script).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        (output, text)
    }

    const GOOD: &str = "echo \"test result: ok. 1 passed; 0 failed\"";

    /// A stress test that fails in one of its two runs.
    fn stress(when: &str) -> (Output, String) {
        let parts = std::thread::available_parallelism().unwrap().get();
        let text = format!(
            "case \"$*\" in *--exact*) is=compiling/$ABIDE_PART ;; *soak::*) is=soaking ;; *) is=running/$ABIDE_PART ;; esac
            case $is in {when}) echo \"bad: $is $*\"; exit 1 ;; esac
            echo \"good: $is\"; {GOOD}"
        );
        let (output, text) = run(&[("backend-cuda", &*text)], &["--stress"]);
        assert!(text.contains(&format!("of {parts} processes failed")), "{text}");
        assert!(text.contains(": running/"), "it runs in one process whatever failed before: {text}");
        assert!(text.contains(": soaking"), "slabs of random domains are run whatever failed before: {text}");
        (output, text)
    }

    #[test]
    fn the_stress_test_is_compiled_in_parts_and_fails_with_any() {
        let last = std::thread::available_parallelism().unwrap().get() - 1;
        let (output, text) = stress("nothing");
        assert!(output.status.success() && text.contains(", 0 of "), "{text}");
        for when in ["compiling/0/*", &format!("compiling/{last}/*")] {
            let (output, text) = stress(when);
            assert!(!output.status.success() && text.contains(", 1 of "), "{text}");
            assert_eq!(text.matches("bad: compiling/").count(), 1, "{text}");
        }
        let (output, text) = stress("running/*");
        assert!(!output.status.success() && text.contains("bad: running/"), "{text}");
        let (output, text) = stress("soaking");
        assert!(!output.status.success() && text.contains("bad: soaking --ignored"), "{text}");
        // A test of another name would compile nothing.
        let none = ("backend-cuda", "echo \"test result: ok. 0 passed; 0 failed\"");
        let (output, _) = run(&[none], &["--stress"]);
        assert!(!output.status.success());
    }

    #[test]
    fn parts_that_fail_are_counted_and_told() {
        let cuda = |when: &str| {
            format!(
                "case $1 in
                --list) printf 'bits::a: test\\nbits::b: test\\nsome_text::c: test\\ntune::d: test\\n' ;;
                bits::) case $ABIDE_PART in {when}) echo bad $ABIDE_PART; exit 1 ;; esac; {GOOD} ;;
                some_text::) exit 1 ;;
                *) {GOOD} ;;
                esac"
            )
        };
        let (good, never) = (("abide", GOOD), cuda("none"));
        let (output, text) = run(&[good, ("backend-cuda", &never)], &[]);
        assert!(output.status.success() && text.ends_with("\n3 passed, 0 failed\n"), "{text}");
        assert!(text.contains("\nbackend-cuda tune ") && !text.contains("backend-cuda some_text"), "{text}");
        let last = std::thread::available_parallelism().unwrap().get() - 1;
        let fails = cuda(&format!("{last}/*"));
        let (output, text) = run(&[good, ("backend-cuda", &fails)], &[]);
        assert!(!output.status.success() && text.contains(&format!("bad {last}/")), "{text}");
        assert!(text.ends_with(" passed, 1 failed\n"), "{text}");
        // Words of a test's name are asked of each program.
        let (output, text) = run(&[good, ("backend-cuda", &never)], &["tune"]);
        assert!(output.status.success() && text.ends_with("\n2 passed, 0 failed\n"), "{text}");
    }
}
