//! Builds the page that runs Abide in a browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

use super::needs;
use crate::cargo::{cargo, root};
use crate::setup;

/// The compiler's target for a page.
const TARGET: &str = "wasm32-unknown-unknown";

/// Builds the page, as it is served, into the folder `web` of `target`.
pub fn build() -> Result<PathBuf> {
    needs::wasm(TARGET)?;
    let wasm = compile()?;
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

/// Compiles the page's crate and returns the module's path.
fn compile() -> Result<PathBuf> {
    let mut command = cargo(&["build", "--package", "abide-web", "--target", TARGET, "--profile", "wasm"]);
    command.arg("--message-format=json-render-diagnostics").stdout(Stdio::piped());
    let output =
        command.spawn().context("cannot start cargo")?.wait_with_output().context("cargo was interrupted")?;
    if !output.status.success() {
        bail!("the page does not compile for {TARGET}");
    }
    let text = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    text.lines().find_map(module).context("cargo names no WebAssembly module")
}

/// Returns the page's module, if one of cargo's messages names it.
fn module(line: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(line).ok()?;
    let is_page = message["target"]["name"] == "abide_web";
    let files = message["filenames"].as_array().filter(|_| is_page)?;
    let paths = files.iter().filter_map(|file| file.as_str()).map(Path::new);
    paths
        .into_iter()
        .find(|path| path.extension().is_some_and(|extension| extension == "wasm"))
        .map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_names_the_module_is_found() {
        let line = |name: &str, files: &str| {
            format!(r#"{{"reason":"compiler-artifact","target":{{"name":"{name}"}},"filenames":[{files}]}}"#)
        };
        let files = r#""/t/libabide_web.rlib","/t/abide_web.wasm""#;
        assert_eq!(module(&line("abide_web", files)), Some(PathBuf::from("/t/abide_web.wasm")));
        assert_eq!(module(&line("wgpu", files)), None);
        assert_eq!(module(&line("abide_web", r#""/t/libabide_web.rlib""#)), None);
        assert_eq!(module("warning: x"), None);
    }
}
