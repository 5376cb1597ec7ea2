//! What the page needs besides: Rust's library for WebAssembly, and a browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::setup::{answers, apt_install, rustup_add};

/// Names of Chromium's programs.
const BROWSERS: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

/// Debian's package of Chromium.
const BROWSER_PACKAGE: &str = "chromium";

/// The environment variable that names the browser's program.
const BROWSER_VARIABLE: &str = "ABIDE_BROWSER";

/// Installs the standard library for a target, if it is missing.
pub fn wasm(target: &str) -> Result<()> {
    let there = || {
        let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
        output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
    };
    if there() {
        return Ok(());
    }
    println!("installing: Rust's standard library for {target}");
    rustup_add("target", target)
}

/// Returns the browser that pages are tested in: the one that the environment names, one that is present, or
/// one installed now.
pub fn browser() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(BROWSER_VARIABLE) {
        return Ok(PathBuf::from(named));
    }
    let found = || BROWSERS.iter().find(|name| answers(name, &["--version"])).map(PathBuf::from);
    if let Some(browser) = found() {
        return Ok(browser);
    }
    println!("installing: {BROWSER_PACKAGE} (a browser with WebGPU; none was found)");
    let installed = apt_install(&[BROWSER_PACKAGE]).and_then(|()| found().context("it is not on the path"));
    installed.with_context(|| {
        format!(
            "the page needs Chromium or Chrome and none could be installed; {BROWSER_VARIABLE} can name the program"
        )
    })
}
