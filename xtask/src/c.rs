//! `cargo xtask c`: the library for C, C++ and Fortran, with its header, its module and its description for pkg-config.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::cargo::{file_of, root};

/// The options of `cargo xtask c`.
#[derive(Args)]
pub struct C {
    /// The folder to install into, as in /usr/local
    #[arg(long, value_name = "FOLDER", default_value = "target/c")]
    prefix: PathBuf,
}

/// What builds the library as released.
const BUILD: [&str; 4] = ["build", "--release", "--package", "abide-c"];

impl C {
    /// Builds and installs; returns whether that succeeded.
    pub fn run(&self) -> Result<bool> {
        if cfg!(windows) {
            bail!(
                "cargo xtask c lays files out as Unix has them; on Windows take target/release/abide_c.dll and c/include/abide.h"
            );
        }
        let prefix = std::path::absolute(root().join(&self.prefix)).context("the prefix is no path")?;
        let (lib, source) = (prefix.join("lib"), root().join("c"));
        let ending = std::env::consts::DLL_SUFFIX;
        let shared = file_of(&BUILD, "abide_c", ending)?;
        let plain = lib.join(format!("libabide_c{ending}"));
        let numbered =
            if cfg!(target_os = "linux") { lib.join(format!("libabide_c{ending}.0")) } else { plain.clone() };
        put(&shared, &numbered)?;
        put(&file_of(&BUILD, "abide_c", ".a")?, &lib.join("libabide_c.a"))?;
        #[cfg(target_os = "linux")]
        link(&numbered, &plain)?;
        for name in ["abide.h", "abide.hpp"] {
            put(&source.join("include").join(name), &prefix.join("include").join(name))?;
        }
        for name in ["abide_binding.f90", "abide_support.f90", "abide.f90"] {
            put(
                &source.join("fortran").join(name),
                &prefix.join("share").join("abide").join("fortran").join(name),
            )?;
        }
        let described = lib.join("pkgconfig").join("abide.pc");
        make_folder(&described)?;
        let text = fs::read_to_string(source.join("abide.pc.in")).context("cannot read c/abide.pc.in")?;
        let text = text
            .replace("@prefix@", &prefix.display().to_string())
            .replace("@version@", env!("CARGO_PKG_VERSION"));
        fs::write(&described, text).with_context(|| format!("cannot write {}", described.display()))?;
        println!("installed in {}:", prefix.display());
        println!("  export PKG_CONFIG_PATH={}", lib.join("pkgconfig").display());
        println!("  cc program.c $(pkg-config --cflags --libs abide)");
        Ok(true)
    }
}

/// Makes the folder of a file.
fn make_folder(file: &Path) -> Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Copies a file.
fn put(from: &Path, to: &Path) -> Result<()> {
    make_folder(to)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Has a name stand for a file beside it.
#[cfg(target_os = "linux")]
fn link(file: &Path, name: &Path) -> Result<()> {
    if fs::symlink_metadata(name).is_ok() {
        fs::remove_file(name).with_context(|| format!("cannot replace {}", name.display()))?;
    }
    let target = file.file_name().unwrap_or_default();
    std::os::unix::fs::symlink(target, name).with_context(|| format!("cannot make {}", name.display()))
}
