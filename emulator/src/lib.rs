//! CUDA kernels without a GPU: their text is compiled as C++ for this machine, and every lane runs on its own.
//!
//! A [`Compiler`] makes a program of a [`Kernel`], which is a kernel's text with the C++ program that launches it. The folder
//! `include/` has what stands for CUDA: lanes, memory, the functions that kernels reach PTX by. Three hosts launch kernels that
//! many tests have: [`Launch`] those of a plan, [`Program`] those of a program of several stages, [`Solver`] those of linear
//! systems. The README says what is emulated, and how a defect is planted in a kernel.
#![cfg(target_os = "linux")]
#![deny(missing_docs)]

mod all;
mod compiler;
mod kernel;
mod launch;
mod program;
mod schedule;
mod solver;

pub use all::all;
pub use compiler::Compiler;
pub use kernel::{Emulation, Kernel, replaced};
pub use launch::Launch;
pub use program::{Ended, Form, Program};
pub use solver::{Outcome, Part, Slab, Solver};
