//! Builds the page that runs Abide in a browser.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use super::needs;
use crate::cargo::{file_of, root};
use crate::setup;

/// The compiler's target for a page.
const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the page, as it is served, into the folder `web` of `target`.
pub fn build() -> Result<PathBuf> {
    needs::wasm(TARGET)?;
    let build = ["build", "--package", "abide-web", "--target", TARGET, "--profile", "wasm"];
    let wasm = file_of(&build, "abide_web", ".wasm")?;
    let folder = root().join("target").join("web");
    setup::clear(&folder)?;
    // Writes the module's calls into the page, and the module with those calls in it.
    let mut bindings = Bindgen::new();
    bindings.input_path(&wasm).out_name("abide_web").typescript(false);
    bindings.remove_name_section(true).remove_producers_section(true).omit_default_module_path(false);
    bindings
        .web(true)
        .and_then(|bindings| bindings.generate(&folder))
        .with_context(|| format!("cannot make a module for pages of {}", wasm.display()))?;
    let (from, to) = (root().join("web").join("page").join("index.html"), folder.join("index.html"));
    fs::copy(&from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    let module = folder.join("abide_web_bg.wasm");
    let bytes = fs::metadata(&module).with_context(|| format!("cannot read {}", module.display()))?.len();
    println!("{}: {:.2} MiB of WebAssembly", folder.display(), bytes as f64 / f64::from(1 << 20));
    Ok(folder)
}
