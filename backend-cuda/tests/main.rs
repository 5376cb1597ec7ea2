//! The backend's tests, as one program. Those of the modules `…_emulated` run kernels on the CPU, those of `…text` only compile
//! them; all others use a device.

// The deck's reader names the whole crate.
extern crate abide_core as abide;

mod common;
#[path = "common/domains.rs"]
mod domains;
#[path = "common/line.rs"]
mod line;
#[path = "common/parallel.rs"]
mod parallel;

#[path = "../../tests/cloverleaf/clover.rs"]
mod clover;
#[path = "../../examples/cloverleaf/deck.rs"]
#[allow(dead_code)]
mod deck;
#[path = "../../ranks/tests/common/mod.rs"]
mod ranks;

#[cfg(target_os = "linux")]
#[path = "emulated/case.rs"]
mod case;
#[cfg(target_os = "linux")]
#[path = "emulated/cases.rs"]
mod cases;
#[cfg(target_os = "linux")]
#[path = "emulated/decks.rs"]
mod decks;
#[cfg(target_os = "linux")]
#[path = "emulated/slabs.rs"]
mod emulated_slabs;
#[cfg(target_os = "linux")]
#[path = "emulated/handed.rs"]
mod handed;
#[cfg(target_os = "linux")]
#[path = "emulated/solver.rs"]
mod solver;
#[cfg(target_os = "linux")]
#[path = "emulated/systems.rs"]
mod systems;

mod batch_emulated;
mod batch_text;
mod beyond;
mod bits;
mod chains_emulated;
mod clock_emulated;
mod count_emulated;
mod drawn_emulated;
mod emulated;
mod functions_emulated;
mod gas_text;
mod groups_emulated;
mod krylov;
mod krylov_emulated;
mod krylov_slabs;
mod krylov_text;
mod lent;
mod loops_emulated;
mod meet_emulated;
mod passes_emulated;
mod persistent_programs_emulated;
mod programs;
mod programs_emulated;
mod programs_text;
mod puts_emulated;
mod quotients;
mod sanitize;
mod slabs;
mod soak;
mod stepwise_emulated;
mod stress;
mod tagged_emulated;
mod tails_emulated;
mod text;
mod tune;
