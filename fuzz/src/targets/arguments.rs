//! The command's arguments, one per line: they are read, and nothing is run.

use std::ffi::OsString;

use abide_cli::check_arguments;

use super::ensure;

pub const WORDS: &[&str] = &[
    "run",
    "solve",
    "view",
    "list",
    "devices",
    "plan",
    "bench",
    "verify",
    "completions",
    "man",
    "--size",
    "--steps",
    "--dtype",
    "f32",
    "f64",
    "--boundary",
    "x=fixed,y-=mirror",
    "periodic",
    "constant=1e39",
    "--param",
    "kappa=1",
    "--input",
    "u=gaussian",
    "--output",
    "--frames",
    "f%04d.png",
    "--every",
    "time=0.5",
    "--record",
    "--record-every",
    "--probe",
    "u@1,2",
    "--checkpoint",
    "--resume",
    "--backend",
    "cpu",
    "--execution",
    "streaming",
    "persistent",
    "--depth",
    "--cache",
    "--range",
    "0:1",
    "--matrix",
    "laplacian2d:10x9",
    "--method",
    "gmres",
    "cg",
    "--preconditioner",
    "chebyshev:8",
    "--tolerance",
    "1e-8",
    "--max-iterations",
    "--time-limit",
    "--rhs",
    "--history",
    "--json",
    "--help",
    "--operator",
    "\n",
    "=",
    "-1",
    "0",
    "1e999",
    "nan",
    "18446744073709551615",
    "99999999999999999999",
    "64x64",
    "x",
    ",",
    "--",
    "=",
];

/// Reads a command line.
pub fn run(input: &[u8]) -> Result<(), String> {
    let arguments = input.split(|&byte| byte == b'\n').map(argument);
    match check_arguments(arguments) {
        Ok(()) => Ok(()),
        Err(text) => ensure(!text.trim().is_empty(), || "an error without words".to_owned()),
    }
}

#[cfg(unix)]
fn argument(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn argument(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}
