//! Rates that stages reach, as shares of a device's.

/// The share of a device's bandwidth that stages reach.
pub(crate) const MEMORY_SHARE: f64 = 0.85;

/// The time of a stage's arithmetic, with its operands from shared memory, over that at the device's peak.
pub(crate) const ARITHMETIC: f64 = 2.7;
