//! Checks the page in a headless browser: its steps against the CPU, its buttons, and a screenshot of its
//! picture.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::browser::Page;
use super::needs;
use super::serve::Server;
use crate::cargo::{Program, TESTS, build, succeeds};

/// A domain that no tile divides, its cells, and the steps that are also compared with the command's.
const SIZE: &str = "127x131";
const CELLS: usize = 127 * 131;
const STEPS: u64 = 100;

/// Links for other kernels, because a browser has its own compiler: a dispatch per stage, taps that reach
/// far, several stages, fields that stay.
const OTHERS: [&str; 4] = [
    "?model=gray-scott&execution=stepwise&size=37x41&steps=5&check",
    "?model=2ds25pt&size=67x61&steps=5&check",
    "?model=fdtd-dielectric&size=37x41&steps=5&check",
    FORMULAS,
];

/// A link with formulas: a field that moves to the right, and decays.
const FORMULAS: &str = "?size=37x41&steps=5&check&formulas=axes%20%3D%202%0A%5Bfields%5D%0Au%20%3D%20%22random%3A1%22%0A\
                        %5B%5Bstages%5D%5D%0Au%20%3D%20%220.75*u%5B0%2C-1%5D%22%0A";

/// The domain and steps of the screenshot: as small as will do, because steps are slow without a GPU, and as
/// many as let spots grow.
const PICTURE_SIZE: &str = "96x96";
const PICTURE_STEPS: u64 = 1200;

/// The longest that a page may take, on a slow machine's CPU.
const LIMIT: Duration = Duration::from_secs(240);

/// Checks the page in `folder`; returns whether all checks held.
pub fn check(folder: &Path) -> Result<bool> {
    let browser = needs::browser()?;
    let expected = on_this_machine()?;
    let server = Server::start(folder)?;
    let mut page = Page::open(&browser)?;
    let mut ok = true;
    let mut hold = |what: &str, holds: bool| {
        if !holds {
            println!("WRONG: {what}");
            ok = false;
        }
    };

    let own = format!("?size={SIZE}&steps={STEPS}&check");
    for link in [own.as_str()].into_iter().chain(OTHERS) {
        let report = report(&mut page, &server, link)?;
        let number =
            |name: &str| report[name].as_f64().with_context(|| format!("the report has no number `{name}`"));
        hold("a step is off by more than the backend states", number("off")? <= number("bound")?);
        hold("all steps in one call are not those one by one", report["same_bits"] == true);
        if link == own {
            println!("cpu here  {expected}");
            hold(
                "the CPU reference has other bits in WebAssembly than here",
                report["reference"] == expected.as_str(),
            );
            hold("the page did other steps than it was asked for", report["steps"] == STEPS);
        }
    }

    page.load(&format!("{}?size={PICTURE_SIZE}&steps={PICTURE_STEPS}", server.address()))?;
    page.wait_for("done", LIMIT)?;
    println!("\nrate      {}", page.text("rate")?);
    let picture = folder.join("page.png");
    fs::write(&picture, page.screenshot()?).with_context(|| format!("cannot write {}", picture.display()))?;
    println!("wrote     {}", picture.display());

    for (button, state) in [("restart", "running"), ("toggle", "stopped")] {
        page.press(button)?;
        page.wait_for(state, LIMIT)?;
    }
    let steps: u64 = page.text("steps")?.parse().context("the page counts no steps")?;
    hold("it did not begin anew when it was told to", steps < PICTURE_STEPS);
    hold(
        "the formulas of the model are not shown",
        page.value("document.getElementById('formulas').value")?.contains("[[stages]]"),
    );
    page.press("toggle")?;
    page.wait_for("running", LIMIT)?;

    // Formulas that are run load the page anew, with a link that says them.
    page.press("use")?;
    page.wait_for("running", LIMIT)?;
    page.load(&format!("{}?formulas=axes", server.address()))?;
    page.wait_for("failed", LIMIT)?;
    hold("a faulty formula is not told", page.text("message")?.contains("formulas, line 1"));
    page.load(&format!("{}?size=512", server.address()))?;
    page.wait_for("failed", LIMIT)?;
    hold(
        "a link that cannot be understood is not told to the reader",
        page.text("message")?.contains("size=512x512"),
    );
    Ok(ok)
}

/// Returns the report on its steps of the page at a link, and prints it here too.
fn report(page: &mut Page, server: &Server, link: &str) -> Result<Value> {
    page.load(&format!("{}{link}", server.address()))?;
    page.wait_for("done", LIMIT)?;
    println!("\n{}", page.text("check")?);
    println!("plan      {}", page.text("plan")?);
    println!("on        {}", page.text("device")?);
    serde_json::from_str(&page.value("document.body.dataset.check")?)
        .context("the page's report cannot be read")
}

/// Returns the digest of the shown field after the same steps by the command, from the same random values, on
/// this machine's CPU.
fn on_this_machine() -> Result<String> {
    let folder = tempfile::tempdir().context("cannot make a folder for the command's result")?;
    let output = folder.path().join("shown.npy");
    let steps = STEPS.to_string();
    // The command as the tests have built it. Built alone it would have other features, and most of it would
    // be compiled once more.
    let programs = build(TESTS)?;
    let is_command =
        |program: &&Program| program.package == "cli" && program.kind == "bin" && !program.is_test;
    let abide = programs.iter().find(is_command).context("cargo names no program abide")?;
    let mut command = Command::new(&abide.path);
    command.args([
        "run",
        "gray-scott",
        "--backend",
        "cpu",
        "--dtype",
        "f32",
        "--size",
        SIZE,
        "--steps",
        &steps,
        "--json",
    ]);
    command.args(["--input", "u=random:1", "--input", "v=random:2", "--output"]).arg(&output);
    if !succeeds(command.stdout(Stdio::null()))? {
        bail!("the command cannot run the model on the CPU");
    }
    let bytes = fs::read(&output).with_context(|| format!("cannot read {}", output.display()))?;
    // An npy file is a header, followed by the values as they are.
    let Some(values) =
        bytes.len().checked_sub(4 * CELLS).filter(|&header| header > 0).map(|from| &bytes[from..])
    else {
        bail!("{} has {} bytes, too few for {CELLS} values of f32", output.display(), bytes.len());
    };
    Ok(Sha256::digest(values).iter().map(|byte| format!("{byte:02x}")).collect())
}
