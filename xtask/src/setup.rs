//! The tests' needs besides Rust: a Vulkan driver, compilers of C++ and Fortran, CUDA's run-time compiler, Python, MPI,
//! rustfmt and clippy.
//!
//! Each is looked for first. Only missing ones are installed, and every installation is announced.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::cargo::{root, succeeds};

/// Mesa's software driver, the loader, and the libraries that the loader's other clients look for.
const VULKAN_PACKAGES: [&str; 5] =
    ["mesa-vulkan-drivers", "libvulkan1", "libegl1", "libgl1-mesa-dri", "libgles2"];

/// A display in memory, and the libraries that windows load at run time.
const WINDOW_PACKAGES: [&str; 8] = [
    "xvfb",
    "xauth",
    "libxkbcommon-x11-0",
    "libxkbcommon0",
    "libxcursor1",
    "libxi6",
    "libxrandr2",
    "libx11-xcb1",
];

/// Open MPI with its launcher, and the library that reads its headers.
const MPI_PACKAGES: [&str; 4] = ["libopenmpi-dev", "openmpi-bin", "libclang-dev", "clang"];

/// The interpreter on the path.
pub const PYTHON: &str = "python3";

/// Debian's packages of the interpreter and of virtual environments.
const PYTHON_PACKAGES: [&str; 2] = ["python3", "python3-venv"];

/// The last release of the compiler that still knows Volta (sm_70).
const NVRTC_WHEEL: &str = "nvidia-cuda-nvrtc-cu12==12.8.93";

/// The environment variable that names the path of NVRTC; the CUDA backend reads it.
pub const NVRTC_VARIABLE: &str = "ABIDE_NVRTC";

/// Installs rustfmt and clippy if they are missing.
pub fn rust_components() -> Result<()> {
    for (tool, component) in [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")] {
        if answers(tool, &["--version"]) {
            continue;
        }
        println!("installing: the Rust component {component}");
        rustup_add("component", component)?;
    }
    Ok(())
}

/// Has rustup add a component or a target.
pub fn rustup_add(kind: &str, name: &str) -> Result<()> {
    if !answers("rustup", &["--version"]) {
        bail!("Rust's {kind} {name} is missing and there is no rustup to add it; install it with your Rust");
    }
    if !succeeds(Command::new("rustup").args([kind, "add", name]).current_dir(root()))? {
        bail!("rustup {kind} add {name} failed; see its message above");
    }
    Ok(())
}

/// Installs a software Vulkan driver if there is no driver at all.
pub fn vulkan() -> Result<()> {
    if !cfg!(target_os = "linux") || (has_vulkan_loader() && has_vulkan_driver()) {
        return Ok(());
    }
    println!("installing: {} (a software Vulkan driver; none was found)", VULKAN_PACKAGES.join(" "));
    apt_install(&VULKAN_PACKAGES).context("the tests need a Vulkan driver and none could be installed")
}

/// Installs a display in memory if there is none, because the viewer's tests open a real window on it.
pub fn display() -> Result<()> {
    // Each library is looked for by the file that programs open, the program by itself.
    let libraries =
        ["libxkbcommon-x11.so.0", "libxkbcommon.so.0", "libXcursor.so.1", "libXi.so.6", "libX11-xcb.so.1"];
    let there = answers("xvfb-run", &["--help"]) && libraries.iter().all(|name| has_library(name));
    if !cfg!(target_os = "linux") || there {
        return Ok(());
    }
    println!("installing: {} (a display in memory; none was found)", WINDOW_PACKAGES.join(" "));
    apt_install(&WINDOW_PACKAGES).context("the tests open a window and no display could be installed")
}

/// Installs g++ if there is no C++ compiler, because kernels run emulated on the CPU.
pub fn cpp() -> Result<()> {
    let there =
        std::env::var_os("CXX").is_some() || ["c++", "g++"].iter().any(|name| answers(name, &["--version"]));
    if !cfg!(target_os = "linux") || there {
        return Ok(());
    }
    println!("installing: g++ (a C++ compiler; none was found)");
    apt_install(&["g++"]).context("the tests run CUDA kernels as C++ and no compiler could be installed")
}

/// Installs gfortran and pkg-config where they are missing, because programs in Fortran and C link the library.
pub fn fortran() -> Result<()> {
    let has_fortran = std::env::var_os("FC").is_some() || answers("gfortran", &["--version"]);
    let needed = [("gfortran", has_fortran), ("pkg-config", answers("pkg-config", &["--version"]))];
    let missing: Vec<&str> = needed.iter().filter(|(_, there)| !there).map(|(name, _)| *name).collect();
    if !cfg!(target_os = "linux") || missing.is_empty() {
        return Ok(());
    }
    println!("installing: {} (for programs that link the library; not found)", missing.join(" "));
    apt_install(&missing)
        .context("the tests build programs in Fortran and what that takes could not be installed")
}

/// Installs Open MPI and libclang, if there is no MPI or nothing to read its headers.
pub fn mpi() -> Result<()> {
    let there =
        ["mpicc", "mpirun", "clang"].iter().all(|name| answers(name, &["--version"])) && has_libclang();
    if there {
        return Ok(());
    }
    println!(
        "installing: {} (MPI with its launcher, and libclang; some were not found)",
        MPI_PACKAGES.join(" ")
    );
    apt_install(&MPI_PACKAGES).context("the tests run processes as ranks and no MPI could be installed")
}

/// Returns whether libclang is where its users look: named by the environment, known to the linker, or in LLVM's folders.
fn has_libclang() -> bool {
    let in_folder = |folder: PathBuf| {
        let files = std::fs::read_dir(folder.join("lib")).into_iter().flatten().flatten();
        files.into_iter().any(|file| file.file_name().to_string_lossy().starts_with("libclang.so"))
    };
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let mut llvm = folders.filter(|folder| folder.file_name().to_string_lossy().starts_with("llvm"));
    std::env::var_os("LIBCLANG_PATH").is_some()
        || has_library("libclang.so")
        || llvm.any(|folder| in_folder(folder.path()))
}

/// Installs Python with its virtual environments, if it is missing.
pub fn python() -> Result<()> {
    // An old one is there and of no use: nothing newer can be installed beside it without asking.
    let is_new = ["-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"];
    if answers(PYTHON, &is_new) {
        return Ok(());
    }
    println!("installing: {} (Python with virtual environments; none was found)", PYTHON_PACKAGES.join(" "));
    apt_install(&PYTHON_PACKAGES).context("the package pyabide needs Python 3.11 or newer")?;
    if !answers(PYTHON, &is_new) {
        bail!("{PYTHON} is older than 3.11, which pyabide needs; put a newer one first on the path");
    }
    Ok(())
}

/// Returns the folder of NVRTC: the one that the environment names, else the project's own, filled if it is
/// empty.
///
/// `None` on systems for which NVIDIA makes no such compiler.
pub fn nvrtc() -> Result<Option<PathBuf>> {
    if let Some(folder) = std::env::var_os(NVRTC_VARIABLE) {
        return Ok(Some(PathBuf::from(folder)));
    }
    if !cfg!(target_os = "linux") {
        println!("no NVRTC for this system: CUDA kernels are not compiled in the tests");
        return Ok(None);
    }
    let private = root().join(".private").join("nvrtc");
    if !private.join("libnvrtc.so.12").exists() {
        println!(
            "installing: the wheel {NVRTC_WHEEL} into {} (CUDA's run-time compiler; no GPU needed)",
            private.display()
        );
        install_wheel(NVRTC_WHEEL, Path::new("nvidia/cuda_nvrtc/lib"), &private)
            .context("the tests compile CUDA kernels and NVRTC could not be installed")?;
    }
    Ok(Some(private))
}

fn has_vulkan_loader() -> bool {
    has_library("libvulkan.so.1")
}

/// Returns whether the system's linker finds a library.
fn has_library(name: &str) -> bool {
    let listed = ["ldconfig", "/sbin/ldconfig"].iter().any(|ldconfig| {
        let output = Command::new(ldconfig).arg("-p").output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(name))
    });
    let paths = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    listed || std::env::split_paths(&paths).any(|folder| folder.join(name).exists())
}

/// Returns whether any driver is registered with the loader, in the places that the loader searches.
fn has_vulkan_driver() -> bool {
    let named = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"];
    let folders = ["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
    let holds_driver = |folder: &&str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
    };
    named.iter().any(|name| std::env::var_os(name).is_some()) || folders.iter().any(holds_driver)
}

/// Installs packages of Debian's, as root or by sudo.
pub fn apt_install(packages: &[&str]) -> Result<()> {
    let by_hand = format!("install by hand what your system calls {}", packages.join(" "));
    if !answers("apt-get", &["--version"]) {
        bail!("there is no apt-get on this system; {by_hand}");
    }
    let user = Command::new("id").arg("-u").output().context("cannot ask for the user")?;
    let is_root = user.stdout.trim_ascii() == b"0";
    if !is_root && !answers("sudo", &["--version"]) {
        bail!("apt-get needs root and there is no sudo; as root run: apt-get install {}", packages.join(" "));
    }
    let apt = |arguments: &[&str]| {
        let mut command = if is_root { Command::new("env") } else { Command::new("sudo") };
        if !is_root {
            command.arg("env");
        }
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y"]).args(arguments);
        succeeds(&mut command)
    };
    // A stale list may still do; else the installation fails.
    if !apt(&["update"])? {
        println!("apt-get update failed; trying with the lists there are");
    }
    let install: Vec<&str> =
        ["install", "--no-install-recommends"].into_iter().chain(packages.iter().copied()).collect();
    if !apt(&install)? {
        bail!("apt-get {} failed; see its message above, or {by_hand}", install.join(" "));
    }
    Ok(())
}

/// Unpacks one folder of a wheel to a place of its own; none of it reaches the system's Python.
fn install_wheel(wheel: &str, part: &Path, folder: &Path) -> Result<()> {
    if !answers("python3", &["-m", "pip", "--version"]) {
        println!("installing: python3 python3-pip (to fetch the wheel; pip was not found)");
        apt_install(&["python3", "python3-pip"])?;
    }
    // A broken download must not look like an installation, so it is unpacked beside and then renamed.
    let partial = folder.with_extension("partial");
    clear(&partial)?;
    std::fs::create_dir_all(&partial).with_context(|| format!("cannot make {}", partial.display()))?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check"]);
    pip.env("PIP_ROOT_USER_ACTION", "ignore");
    pip.arg("--target").arg(&partial).arg(wheel).current_dir(root());
    if !succeeds(&mut pip)? {
        bail!(
            "pip could not install {wheel}; see its message above, or set {NVRTC_VARIABLE} to a folder with libnvrtc.so.12"
        );
    }
    clear(folder)?;
    let unpacked = partial.join(part);
    std::fs::rename(&unpacked, folder)
        .with_context(|| format!("cannot rename {} to {}", unpacked.display(), folder.display()))?;
    clear(&partial)
}

/// Removes a folder with all its contents, if it exists.
pub fn clear(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot clear {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Returns whether a program exists and answers.
pub fn answers(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
