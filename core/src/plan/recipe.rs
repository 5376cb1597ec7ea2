//! A plan reduced to its free choices: small enough to keep on disk, enough to make the plan again.

use serde::{Deserialize, Serialize};

use super::options::CachePolicy;
use super::streaming::{portable, warp};
use super::{Plan, Schedule, overlapped, persistent, resident};

/// The free choices of a plan; the rest follows from them, the problem and the device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "schedule", rename_all = "kebab-case")]
pub enum Recipe {
    /// A launch per stage: nothing is free.
    Stepwise,
    /// A persistent kernel: tiles that stay on the chip.
    Persistent {
        /// Where the cells stay.
        cache: CachePolicy,
        /// The tiles' configuration.
        configuration: persistent::Configuration,
        /// Whether the whole domain stays on the chip: a fast configuration may be slow where it does not.
        whole: bool,
    },
    /// Tiles that hold the whole domain.
    Resident {
        /// The tiles' configuration.
        configuration: resident::Configuration,
    },
    /// Overlapped tiling.
    Overlapped {
        /// The windows' configuration.
        configuration: overlapped::Configuration,
    },
    /// 2.5-D streaming by warps.
    WarpStreaming {
        /// The windows' configuration.
        configuration: warp::Configuration,
    },
    /// 2.5-D streaming on any GPU.
    PortableStreaming {
        /// The windows' configuration.
        configuration: portable::Configuration,
    },
}

impl Recipe {
    /// Returns the free choices of a plan; `None` for a CPU's and for a program's persistent kernel,
    /// which have none.
    pub fn of(plan: &Plan) -> Option<Recipe> {
        match &plan.schedule {
            // A program that is not plain leaves nothing to tune.
            Schedule::Cpu(_) | Schedule::PersistentProgram(_) => None,
            Schedule::Stepwise(_) => Some(Recipe::Stepwise),
            Schedule::Persistent(persistent) => Some(Recipe::Persistent {
                cache: plan.cache,
                configuration: persistent.configuration(),
                whole: plan.cached_share() >= 1.0,
            }),
            Schedule::Resident(resident) => {
                Some(Recipe::Resident { configuration: resident.configuration() })
            }
            Schedule::Overlapped(overlapped) => {
                Some(Recipe::Overlapped { configuration: overlapped.configuration })
            }
            Schedule::WarpStreaming(streaming) => {
                Some(Recipe::WarpStreaming { configuration: streaming.configuration() })
            }
            Schedule::PortableStreaming(streaming) => {
                Some(Recipe::PortableStreaming { configuration: streaming.configuration })
            }
        }
    }
}
