//! How a device will run a problem: the search for its plan.
//!
//! [`plan()`] and its like choose among the schedules of a device by estimates of their time; [`candidates`] lists plans
//! that are worth timing. [`refit()`] takes another plan where the compiler's report shows that registers do not do.
//! [`plan_ranks`] divides a domain among several devices. [`fusion`] searches for the stages of a
//! program that become one kernel. The papers' models of streaming and persistent kernels are in [`papers`].
//!
//! What a plan says is in [`abide_core::plan`]. This crate knows no device and starts no thread.
#![deny(missing_docs)]

mod base;
mod choice;
mod cpu;
mod estimate;
#[cfg(test)]
mod figures;
pub mod fused;
pub mod fusion;
mod limits;
pub mod overlapped;
pub mod papers;
mod passes;
pub mod persistent;
mod portable;
mod ranks;
mod rates;
mod recipe;
mod refit;
pub mod report;
pub mod resident;
mod stepwise;
pub mod streaming;
mod workgroups;

pub use choice::{
    candidates, is_of_clock, notes_probes, on_chip_plans, plan, plan_batch, plan_members, plan_of_clock,
    plan_on_chip,
};
pub use cpu::{MAX_CPU_DEPTH, is_too_small_to_choose, plan_cpu};
pub use overlapped::{overlapped_plans, plan_overlapped};
pub use persistent::{MAX_PERSISTENT_RADIUS, persistent_plans, plan_persistent};
pub use portable::{plan_absent, plan_portable, portable_candidates};
pub use ranks::{Alike, Devices, plan_ranks};
pub use recipe::plan_recipe;
pub use refit::{Compile, Fitted, refit, refit_alone, slight_spills};
pub use resident::{plan_resident, resident_plans};
pub use stepwise::{plan_grouped, plan_persistent_program, plan_searched, plan_stepwise, with_fewer_blocks};
pub use streaming::portable::{plan_portable_streaming, portable_streaming_plans};
pub use streaming::warp::{plan_streaming, streaming_plans};
