//! A page that runs a model of the catalogue in a browser: the core and the wgpu backend of every other
//! program, through WebGPU. `cargo xtask web` builds it.
//!
//! The parts that need no browser ([`asked`], [`rhythm`], [`rate`], [`pixels`]) are built and tested
//! anywhere; the page itself exists in WebAssembly only.
#![deny(missing_docs)]

pub mod asked;
pub mod pixels;
pub mod rate;
pub mod rhythm;

#[cfg(target_arch = "wasm32")]
mod check;
#[cfg(target_arch = "wasm32")]
mod page;
#[cfg(target_arch = "wasm32")]
mod run;
