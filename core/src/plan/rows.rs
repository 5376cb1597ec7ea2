//! The schedule of a CPU: rows of cells, shared among threads.

use serde::Serialize;

use super::{Depth, Execution, Options, Plan, Schedule, base, perks::Traffic};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::program::Problem;

/// Rows of cells, each evaluated in chunks that stay in the first-level cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rows {
    /// Threads.
    pub threads: usize,
    /// Cells of a chunk; a multiple of the widest vector.
    pub chunk: usize,
}

/// Plans for a CPU: all of a stage, then the next.
pub fn plan_rows(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<Plan> {
    problem.check()?;
    if !matches!(options.execution, Execution::Auto | Execution::Stepwise) {
        return Err(Error::Unsupported {
            backend: "cpu",
            reason: format!("it runs stepwise, and {} was asked for", options.execution),
            change: "leave --execution at auto, or choose --backend cuda".to_owned(),
        });
    }
    check_depth(options.depth)?;
    let rows = Rows { threads: device.multiprocessors.max(1), chunk: 512 };
    let traffic = Traffic::uncached(problem, device);
    Ok(base(problem, device, Execution::Stepwise, Schedule::Rows(rows), traffic))
}

/// Refuses a temporal depth that no kernel has.
pub(super) fn check_depth(depth: Depth) -> Result<()> {
    match depth {
        Depth::Auto | Depth::Steps(1) => Ok(()),
        Depth::Steps(more) => Err(Error::limit("temporal depth", more, 1, "use --depth auto or --depth 1")),
    }
}
