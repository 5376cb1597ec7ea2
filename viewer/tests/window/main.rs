//! The window without a display: what it does when its controls are used, and what it looks like.

mod behaviour;
mod direct;
mod faults;
mod rig;
mod snapshots;
