//! `cargo xtask test`: everything that must hold before a change is accepted.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use abide_chaos::Chaos;
use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo::{TESTS, build, cargo, command, command_of, lint, linted, published, root, succeeds};
use crate::fuzz::Fuzz;
use crate::summary::{Counts, Step, counted, summary};
use crate::web::Web;
use crate::{runner, setup};

/// The options of `cargo xtask test`, for what is run beside the steps that every change must pass.
#[derive(Args)]
pub struct Test {
    /// Run the tests that take minutes, fuzz each target for a minute, try hostile circumstances for ten, and check
    /// licences and packages: some three quarters of an hour more
    #[arg(long)]
    full: bool,

    /// Run only what `--full` adds, where all else has passed
    #[arg(long, conflicts_with = "full")]
    long: bool,

    /// Run, after what is needed is there, only the steps with these words in their name, as in the summary
    #[arg(long, value_name = "WORDS")]
    only: Option<String>,
}

/// Runs all steps, prints the summary and returns whether all succeeded. A failed step does not stop the
/// later ones.
pub fn run(test: &Test) -> Result<bool> {
    let mut steps = Steps::default();
    steps.run("rustfmt and clippy present", |_| setup::rust_components().map(|()| true));
    steps.run("Vulkan driver present", |_| setup::vulkan().map(|()| true));
    steps.run("C++ compiler present", |_| setup::cpp().map(|()| true));
    steps.run("Fortran compiler present", |_| setup::fortran().map(|()| true));
    steps.run("display present", |_| setup::display().map(|()| true));
    let mut nvrtc = None;
    steps.run("NVRTC present", |_| {
        nvrtc = setup::nvrtc()?;
        Ok(true)
    });

    steps.only = test.only.clone();
    if !test.long {
        plain(&mut steps, nvrtc.as_deref());
    }
    if test.full || test.long {
        long(&mut steps, nvrtc.as_deref());
    }

    print!("{}", summary(&steps.done));
    Ok(steps.done.iter().all(|step| step.ok))
}

/// Runs what every change must pass.
fn plain(steps: &mut Steps, nvrtc: Option<&Path>) {
    steps.run("format", |_| succeeds(&mut cargo(&["fmt", "--all", "--check"])));
    steps.run("build and lints", |_| lint());
    steps.run("tests", |counts| {
        // The tests may not skip these here: by now the driver and the compilers are installed, and the
        // linker's C compiler always is.
        let mut required = vec!["wgpu", "cc"];
        if cfg!(target_os = "linux") {
            required.extend(["c++", "gfortran", "pkg-config", "window"]);
        }
        required.extend(nvrtc.map(|_| "nvrtc"));
        let required = required.join(",");
        let mut environment = vec![("ABIDE_REQUIRE", OsStr::new(&required))];
        environment.extend(nvrtc.map(|folder| (setup::NVRTC_VARIABLE, folder.as_os_str())));
        runner::run(&build(TESTS)?, &environment, counts)
    });
    steps.run("documentation tests", |counts| {
        let mut tests = linted(&["test", "--workspace", "--doc", "--no-fail-fast"]);
        Ok(counted(&mut tests, counts)? && counts.passed > 0)
    });
    steps.run("examples", |_| examples());
    steps.run("chaos", |counts| {
        let (skipped, held) = abide_chaos::short(&root(), &command_of(TESTS)?)?;
        counts.skipped.extend(skipped);
        Ok(held)
    });
    steps.run("book", crate::book::check);
    steps.run("Python", crate::python::check_built);
}

/// Runs what takes longer.
fn long(steps: &mut Steps, nvrtc: Option<&Path>) {
    // Benchmarks too, and what makes the page.
    steps.run("all lints", |_| {
        let all =
            ["clippy", "--workspace", "--all-targets", "--features", "xtask/page", "--", "-D", "warnings"];
        succeeds(&mut cargo(&all))
    });
    steps.run("documentation", |_| {
        succeeds(cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.run("what makes the page", |counts| {
        Ok(counted(&mut cargo(&["test", "--package", "xtask", "--features", "page", "web::"]), counts)?
            && counts.passed > 0)
    });
    steps.run("features of the library", |_| features());
    steps.run("tests that take minutes", |counts| ignored(counts, "abide", "", nvrtc));
    steps.run("ranks, depths and boundaries", |counts| ignored(counts, "abide-ranks", "bits::", nvrtc));
    steps.run("many random programs", |counts| ignored(counts, "abide-cpu", "programs::", nvrtc));
    steps.run("all cases on wgpu", |counts| {
        let library = whole(counts, "abide", &["wgpu::", "on_wgpu", "solvers::cpu::random"])?;
        let sampled = ["behaviour::", "catalogue::", "groups::", "overlapped::", "programs::", "streaming::"];
        Ok(whole(counts, "abide-wgpu", &sampled)? && library)
    });
    steps.run("more kernels, and their defects", |counts| ignored(counts, "abide-cuda", "emulated::", nvrtc));
    steps.run("more kernels compiled", |counts| ignored(counts, "abide-cuda", "text::", nvrtc));
    steps.run("programs in C under sanitizers", |counts| {
        let programs = build(TESTS)?;
        let found = programs.iter().find(|program| program.package == "c" && program.is_test);
        let program = found.context("cargo built no tests of the C interface")?;
        let mut tests = Command::new(&program.path);
        tests.current_dir(&program.folder).env("ABIDE_REQUIRE", "cc").args(["--ignored", "sanitized::"]);
        Ok(counted(&mut tests, counts)? && counts.passed > 0)
    });
    steps.run("processes as ranks (MPI)", crate::mpi::check);
    steps.run("wheel, other Pythons and notebooks", crate::python::check_full);
    steps.run("page in a browser", |_| Web { check: true, serve: false }.run());
    steps.run("fuzzing", |_| Fuzz::all(1.0).run());
    steps.run("chaos, for long", |_| Chaos::all(Duration::from_secs(600)).run(&root(), command));
    steps.run("elementary functions of all f32", functions);
    steps.run("licences and advisories", dependencies);
    steps.run("packages", |_| packages());
}

/// Checks the library with each of its features alone, and without any: it then needs none of the crates that features add.
fn features() -> Result<bool> {
    const ALONE: [&str; 4] = ["--package", "abide", "--no-default-features", "--features"];
    for feature in ["", "cuda", "wgpu", "gas"] {
        if !succeeds(cargo(&["check", "--quiet"]).args(ALONE).arg(feature))? {
            println!("the library does not compile with `{feature}` alone");
            return Ok(false);
        }
    }
    let tree = cargo(&["tree", "--edges", "normal", "--prefix", "none"]).args(ALONE).arg("").output();
    let tree = tree.context("cannot start cargo")?;
    if !tree.status.success() {
        bail!("cargo tree failed");
    }
    let tree = String::from_utf8_lossy(&tree.stdout);
    let added = ["abide-cuda ", "abide-wgpu ", "abide-gas "];
    let found: Vec<&str> =
        tree.lines().filter(|line| added.iter().any(|name| line.starts_with(name))).collect();
    found.iter().for_each(|line| println!("without features the library needs {line}"));
    Ok(found.is_empty() && tree.lines().any(|line| line.starts_with("abide-cpu ")))
}

/// Holds the dependencies to deny.toml: their licences, sources and known faults. Needs the network for the last.
fn dependencies(counts: &mut Counts) -> Result<bool> {
    if !setup::answers("cargo-deny", &["--version"]) {
        let how = "cargo-deny is not installed; cargo install --locked cargo-deny";
        counts.skipped.push(format!("licences and advisories: {how}"));
        return Ok(true);
    }
    succeeds(&mut cargo(&["deny", "--workspace", "check"]))
}

/// Packs every package that is published. Nothing is compiled: this finds files that are missing or may not be packed, and
/// manifests that lack something.
fn packages() -> Result<bool> {
    let mut packing = cargo(&["package", "--no-verify", "--allow-dirty", "--offline", "--quiet"]);
    packing.args(published()?.iter().flat_map(|name| ["--package", name]));
    succeeds(&mut packing)
}

/// Holds the elementary functions of all f32, and of many f64, to their bounds: compiled for this machine, because without
/// its fused multiply-adds it takes hours.
fn functions(counts: &mut Counts) -> Result<bool> {
    let mut tests = cargo(&["test", "--release", "--package", "abide-core", "--test", "integration"]);
    tests.env("RUSTFLAGS", "-C target-cpu=native").args([
        "--target-dir",
        "target/native",
        "--",
        "functions::",
    ]);
    tests.args(["--ignored", "--skip", "a_billion"]);
    Ok(counted(&mut tests, counts)? && counts.passed > 0)
}

/// Runs those tests of a package with these words in their names that are ignored otherwise, compiled as released: decks are of
/// millions of cells.
fn ignored(counts: &mut Counts, package: &str, words: &str, nvrtc: Option<&Path>) -> Result<bool> {
    let mut tests = cargo(&["test", "--release", "--package", package, "--test", "integration"]);
    if let Some(folder) = nvrtc {
        tests.env(setup::NVRTC_VARIABLE, folder).env("ABIDE_REQUIRE", "nvrtc");
    }
    tests.args(["--", "--ignored", words]);
    Ok(counted(&mut tests, counts)? && counts.passed > 0)
}

/// Runs those tests of a package with one of these words in their names, with all cases: the plain run has a part of those that take
/// a software driver longest.
fn whole(counts: &mut Counts, package: &str, words: &[&str]) -> Result<bool> {
    let mut tests = cargo(&["test", "--release", "--package", package, "--test", "integration", "--"]);
    tests.args(words).env("ABIDE_ALL", "1").env("ABIDE_REQUIRE", "wgpu");
    Ok(counted(&mut tests, counts)? && counts.passed > 0)
}

#[derive(Default)]
struct Steps {
    done: Vec<Step>,
    /// Words in the names of those that are run; all where there are none.
    only: Option<String>,
}

impl Steps {
    fn run(&mut self, name: &str, work: impl FnOnce(&mut Counts) -> Result<bool>) {
        if self.only.as_ref().is_some_and(|words| !name.contains(&**words)) {
            return;
        }
        println!("\n== {name}");
        let (begun, mut counts) = (Instant::now(), Counts::default());
        let ok = work(&mut counts).unwrap_or_else(|error| {
            println!("{error:#}");
            false
        });
        self.done.push(Step { name: name.to_owned(), ok, time: begun.elapsed(), counts });
    }
}

/// Runs each example in an empty folder of its own.
fn examples() -> Result<bool> {
    let programs = build(TESTS)?;
    let folder = root().join("target").join("examples-run");
    let mut examples = programs.iter().filter(|program| program.kind == "example").peekable();
    let mut ok = examples.peek().is_some();
    for example in examples {
        let own = folder.join(&example.target);
        setup::clear(&own)?;
        std::fs::create_dir_all(&own).with_context(|| format!("cannot make {}", own.display()))?;
        println!("\n-- example {}", example.target);
        if !succeeds(Command::new(&example.path).current_dir(&own))? {
            println!("example {} failed", example.target);
            ok = false;
        }
    }
    Ok(ok)
}
