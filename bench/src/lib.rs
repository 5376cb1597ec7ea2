//! Benchmarks of Abide: rates of stencils, programs, solvers and gas properties, measured and checked.
//!
//! [`command`] is `abide bench` and `abide evaluate`.
//!
//! A [`Domain`] is one of the published sizes; [`measure`] times a problem on it and returns a [`Row`]: the
//! median rate of several runs, how far the runs spread, the share of the [`ceiling`], and the outcome of
//! comparing the fields.
//!
//! ```
//! use abide_bench::{Settings, measure, problem};
//! use abide::{DType, Shape, backend};
//!
//! let problem = problem("2d5pt", Shape::new(&[96, 64])?, DType::F64)?;
//! let settings = Settings { steps: Some(10), ..Settings::quick() };
//! let row = measure(&backend::open("cpu")?, &problem, &settings)?;
//! assert!(row.holds() && row.gcells_per_s > 0.0);
//! # Ok::<(), abide::Error>(())
//! ```
#![deny(missing_docs)]

mod ahead;
mod case;
mod check;
pub mod command;
mod domain;
mod feature;
mod gas;
mod measure;
mod multigrid;
mod program;
mod regret;
mod scaling;
pub mod solving;
#[cfg(test)]
mod tests;
mod timing;

use measure::{afford, begin, random};

pub use ahead::{Wanted, Worker, compiled_ahead, workers};
pub use case::{Case, words};
pub use check::{Check, Checked, stepwise};
pub use domain::{Domain, STENCILS, problem};
pub use feature::{FeatureCase, FeatureRow, measure_feature};
pub use gas::{GasCase, GasRow, SIX, measure_gas};
pub use measure::{Row, Settings, ceiling, measure};
pub use program::{ProgramRow, Way, measure_program};
pub use regret::{Looked, Regret, regret, tried};
pub use scaling::{Scaling, ScalingCase, ScalingRow, measure_scaling};
pub use timing::{Rates, rates};
