//! The Python package: its wheel, its tests and its types, in an environment of its own under `target/python/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo::{TESTS, command_of, file_of, root, succeeds};
use crate::setup;
use crate::summary::{Counts, counted};

/// What is installed to build and test, beside the interpreter.
const NEEDS: &str = "python/tests/requirements.txt";

/// What is installed besides to run the notebooks, and to open files by VTK.
const NEEDS_BESIDES: &str = "python/tests/requirements-full.txt";

/// The interpreters beyond the first that the wheel is tested with, where they are.
const OTHERS: [&str; 3] = ["python3.12", "python3.13", "python3.14"];

/// The options of `cargo xtask python`.
#[derive(Args)]
pub struct Python {
    /// Test with the other versions of Python that are on the path too, and run the notebooks
    #[arg(long)]
    full: bool,
}

/// Runs what is asked for; returns whether it succeeded.
pub fn run(python: &Python) -> Result<bool> {
    let mut counts = Counts::default();
    let ok = if python.full { check_full(&mut counts)? } else { check(&mut counts)? };
    counts.skipped.iter().for_each(|skipped| println!("skipped: {skipped}"));
    Ok(ok)
}

/// Builds the wheel once, installs it, and checks what Python sees.
pub fn check(counts: &mut Counts) -> Result<bool> {
    let folder = folder()?;
    let venv = environment(&folder)?;
    Ok(installed_wheel(&folder, &venv)?.is_some() && seen(&venv, &folder, None, counts)?)
}

/// Checks what Python sees of the module that the workspace's tests were built with, beside the package's sources: a wheel is
/// of other features of the same crates, and all of them would be compiled once more.
pub fn check_built(counts: &mut Counts) -> Result<bool> {
    let folder = folder()?;
    let venv = environment(&folder)?;
    let module = file_of(TESTS, "_pyabide", std::env::consts::DLL_SUFFIX)?;
    let place = Command::new(program(&venv, "python"))
        .args(["-c", "import sysconfig; print(sysconfig.get_path('platlib'))"])
        .output()
        .context("cannot ask where Python looks for packages")?;
    let place = PathBuf::from(String::from_utf8_lossy(&place.stdout).trim()).join("pyabide");
    setup::clear(&place)?;
    std::fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let copy = |from: &Path, name: &std::ffi::OsStr| {
        let to = place.join(name);
        std::fs::copy(from, &to)
            .map(drop)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
    };
    let sources = root().join("python").join("pyabide");
    let entries =
        std::fs::read_dir(&sources).with_context(|| format!("cannot read {}", sources.display()))?;
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()) {
        copy(&path, path.file_name().unwrap_or_default())?;
    }
    copy(&module, if cfg!(windows) { "_pyabide.pyd" } else { "_pyabide.abi3.so" }.as_ref())?;
    seen(&venv, &folder, Some(&command_of(TESTS)?), counts)
}

/// Checks what Python sees of the installed package: types within and without, and tests, with the command where it was built.
fn seen(venv: &Path, folder: &Path, command: Option<&Path>, counts: &mut Counts) -> Result<bool> {
    let configured = root().join("python").join("pyproject.toml");

    println!("\n-- types");
    let mut mypy = tool(venv, "mypy", folder);
    mypy.arg("--config-file").arg(&configured).arg(root().join("python").join("pyabide"));
    let typed = succeeds(&mut mypy)?;
    let mut stubtest = tool(venv, "stubtest", folder);
    let stubs = succeeds(stubtest.arg("pyabide").arg("--mypy-config-file").arg(&configured))?;

    println!("\n-- tests");
    let passed = tests(venv, folder, command, counts)?;
    Ok(typed && stubs && passed)
}

/// Checks the wheel, tests it with other interpreters, and runs the examples and notebooks as they stand.
pub fn check_full(counts: &mut Counts) -> Result<bool> {
    let folder = folder()?;
    let mut ok = check(counts)?;
    let Some(wheel) = wheel_in(&folder.join("wheels")) else { return Ok(false) };
    for interpreter in OTHERS {
        if !setup::answers(interpreter, &["-c", "import venv, ensurepip"]) {
            counts.skipped.push(format!("python: {interpreter} is not on the path"));
            continue;
        }
        println!("\n-- {interpreter}");
        let venv = folder.join(format!("venv-{interpreter}"));
        setup::clear(&venv)?;
        ok &= succeeds(Command::new(interpreter).args(["-m", "venv"]).arg(&venv).current_dir(root()))?
            && install(&venv, &folder, NEEDS)?
            && succeeds(tool(&venv, "python", &folder).args(PIP).arg("--no-deps").arg(&wheel))?
            && tests(&venv, &folder, None, counts)?;
    }

    println!("\n-- examples");
    let venv = folder.join("venv");
    let mut examples = pytest(&venv, &folder, None);
    examples.args(["-k", "example"]).env("ABIDE_ALL", "1");
    ok &= counted(&mut examples, counts)?;

    ok &= install(&venv, &folder, NEEDS_BESIDES)?;

    println!("\n-- VTK");
    let mut images = pytest(&venv, &folder, Some(&command_of(TESTS)?));
    ok &= counted(images.args(["-k", "vtk"]), counts)?;

    println!("\n-- notebooks");
    let notebooks = root().join("python").join("notebooks");
    let entries =
        std::fs::read_dir(&notebooks).with_context(|| format!("cannot read {}", notebooks.display()))?;
    let mut found: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    found.sort();
    ok &= !found.is_empty();
    for notebook in found {
        ok &= succeeds(tool(&venv, "jupyter-execute", &folder).arg("--timeout=300").arg(notebook))?;
    }
    Ok(ok)
}

/// The arguments of Python that install something.
const PIP: [&str; 5] = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];

/// Installs what a file lists.
fn install(venv: &Path, folder: &Path, needs: &str) -> Result<bool> {
    println!("installing: {needs} into {}", venv.display());
    succeeds(tool(venv, "python", folder).args(PIP).arg("--requirement").arg(root().join(needs)))
}

/// Runs the package's tests in an environment. A run without any results is no success.
fn tests(venv: &Path, folder: &Path, command: Option<&Path>, counts: &mut Counts) -> Result<bool> {
    let before = counts.passed;
    Ok(counted(&mut pytest(venv, folder, command), counts)? && counts.passed > before)
}

/// Returns the command that runs the package's tests, those of Abide's own command where there is one.
fn pytest(venv: &Path, folder: &Path, command: Option<&Path>) -> Command {
    let sources = root().join("python");
    let mut tests = tool(venv, "pytest", folder);
    // Two at a time: most tests wait for a process of their own or compile one kernel.
    tests.args(["-q", "-n", "2", "-p", "no:cacheprovider", "-c"]).arg(sources.join("pyproject.toml"));
    tests.arg("--rootdir").arg(&sources).arg(sources.join("tests"));
    command.map(|command| tests.env("ABIDE_COMMAND", command));
    tests
}

/// Returns the folder of all that is made for Python, in cargo's for what it builds.
fn folder() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let folder = target.map_or_else(|| root().join("target"), |folder| root().join(folder)).join("python");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Returns the virtual environment with everything in it that is needed; made anew when the needs change.
fn environment(folder: &Path) -> Result<PathBuf> {
    let wanted = std::fs::read(root().join(NEEDS)).with_context(|| format!("cannot read {NEEDS}"))?;
    let (venv, installed) = (folder.join("venv"), folder.join("installed.txt"));
    if std::fs::read(&installed).is_ok_and(|had| had == wanted) && program(&venv, "python").exists() {
        return Ok(venv);
    }
    setup::python()?;
    setup::clear(&venv)?;
    if !succeeds(Command::new(setup::PYTHON).args(["-m", "venv"]).arg(&venv).current_dir(root()))? {
        bail!("{} -m venv failed; see its message above", setup::PYTHON);
    }
    if !install(&venv, folder, NEEDS)? {
        bail!("pip could not install what {NEEDS} lists; see its message above");
    }
    std::fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(venv)
}

/// Builds the wheel and installs it; returns its file, or `None` if either failed.
fn installed_wheel(folder: &Path, venv: &Path) -> Result<Option<PathBuf>> {
    println!("\n-- wheel");
    let Some(wheel) = wheel(folder, venv)? else { return Ok(None) };
    let mut pip = tool(venv, "python", folder);
    Ok(succeeds(pip.args(PIP).args(["--no-deps", "--force-reinstall"]).arg(&wheel))?.then_some(wheel))
}

/// Builds the wheel as the other tests' programs are built, in cargo's own folder, and returns its file.
fn wheel(folder: &Path, venv: &Path) -> Result<Option<PathBuf>> {
    let wheels = folder.join("wheels");
    setup::clear(&wheels)?;
    let mut maturin = tool(venv, "maturin", &root());
    maturin.args(["build", "--profile", "dev", "--manifest-path", "python/Cargo.toml", "--out"]).arg(&wheels);
    if !succeeds(maturin.env("VIRTUAL_ENV", venv))? {
        return Ok(None);
    }
    wheel_in(&wheels).map(Some).context("maturin made no wheel")
}

/// Returns the wheel in a folder.
fn wheel_in(folder: &Path) -> Option<PathBuf> {
    let mut paths = std::fs::read_dir(folder).ok()?.flatten().map(|file| file.path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"))
}

/// Returns the file of a program of a virtual environment.
fn program(venv: &Path, name: &str) -> PathBuf {
    if cfg!(windows) { venv.join("Scripts").join(format!("{name}.exe")) } else { venv.join("bin").join(name) }
}

/// Returns a command of a program of the environment, which finds its own interpreter first. In `folder`, so
/// that Python imports what is installed and not what lies in the sources.
fn tool(venv: &Path, name: &str, folder: &Path) -> Command {
    let mut command = Command::new(program(venv, name));
    command.current_dir(folder).env("PIP_ROOT_USER_ACTION", "ignore").env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
