//! The Python package: its wheel, its tests and its types, in an environment of its own under `target/python/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::{root, succeeds};
use crate::setup;
use crate::summary::Counts;
use crate::test::counted;

/// What is installed to build and test, beside the interpreter.
const NEEDS: &str = "python/tests/requirements.txt";

/// Builds the wheel once, installs it, and checks what Python sees: tests, and types within and without.
pub fn check(counts: &mut Counts) -> Result<bool> {
    let folder = target().join("python");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let venv = environment(&folder)?;
    println!("\n-- wheel");
    let Some(wheel) = wheel(&folder, &venv)? else { return Ok(false) };
    let mut install = tool(&venv, "python", &folder);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    if !succeeds(install.arg("--force-reinstall").arg(wheel))? {
        return Ok(false);
    }
    let configured = root().join("python").join("pyproject.toml");

    println!("\n-- types");
    let mut mypy = tool(&venv, "mypy", &folder);
    mypy.arg("--config-file").arg(&configured).arg(root().join("python").join("pyabide"));
    let typed = succeeds(&mut mypy)?;
    let mut stubtest = tool(&venv, "stubtest", &folder);
    let stubs = succeeds(stubtest.arg("pyabide").arg("--mypy-config-file").arg(&configured))?;

    println!("\n-- tests");
    let mut tests = tool(&venv, "pytest", &folder);
    tests.args(["-q", "-p", "no:cacheprovider", "-c"]).arg(&configured);
    tests.arg("--rootdir").arg(root().join("python")).arg(root().join("python").join("tests"));
    // A run without any results is no success.
    let passed = counted(&mut tests, counts)? && counts.passed > 0;
    Ok(typed && stubs && passed)
}

/// Returns cargo's folder for what it builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Returns the virtual environment with everything in it that is needed; made anew when the needs change.
fn environment(folder: &Path) -> Result<PathBuf> {
    let needs = root().join(NEEDS);
    let wanted = std::fs::read(&needs).with_context(|| format!("cannot read {}", needs.display()))?;
    let (venv, installed) = (folder.join("venv"), folder.join("installed.txt"));
    if std::fs::read(&installed).is_ok_and(|had| had == wanted) && program(&venv, "python").exists() {
        return Ok(venv);
    }
    setup::python()?;
    println!("installing: {NEEDS} into {}", venv.display());
    setup::clear(&venv)?;
    if !succeeds(Command::new(setup::PYTHON).args(["-m", "venv"]).arg(&venv).current_dir(root()))? {
        bail!("{} -m venv failed; see its message above", setup::PYTHON);
    }
    let mut pip = tool(&venv, "python", folder);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(&needs);
    if !succeeds(&mut pip)? {
        bail!("pip could not install what {NEEDS} lists; see its message above");
    }
    std::fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(venv)
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
    let files = std::fs::read_dir(&wheels).with_context(|| format!("cannot read {}", wheels.display()))?;
    let paths = files.flatten().map(|file| file.path());
    let wheel = paths.into_iter().find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheel.map(Some).context("maturin made no wheel")
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
