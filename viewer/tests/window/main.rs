//! Tests of the window without a display: its behaviour when its controls are used, and its look.

mod behaviour;
mod direct;
mod faults;
mod rig;
mod snapshots;
