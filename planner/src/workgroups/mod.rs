//! What the kernels of several steps have in common on devices that report almost nothing about themselves.

pub(crate) mod rates;

use abide_core::{CachePolicy, DeviceSpec, Error, Execution, Options, Problem, Result};

use crate::limits::{check_buffer, refuse_others};
use crate::passes;

/// The most operations of a kernel's unrolled formulas: compilers take time for each.
pub(super) const MOST_OPERATIONS: usize = 3000;

/// The most arguments of a stage's function, mostly its taps: WGSL allows 255.
pub(super) const MOST_ARGUMENTS: usize = 240;

/// Makes the error for a device that has no room for a kind of kernels of several steps; `room` says how much
/// room there is.
pub(super) fn no_room(
    what: &str,
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    room: String,
) -> Error {
    let domain = format!("{} {}", problem.shape, problem.dtype);
    passes::no_room(format!("{what} on {}", device.name), problem, domain, options.depth, room)
}

/// Refuses what no kernel of several steps can do on a device: programs that run a launch per stage, fields that the
/// device cannot bind, and cells that stay on the chip from dispatch to dispatch.
pub(super) fn check_several_steps(
    problem: &Problem,
    device: &DeviceSpec,
    execution: Execution,
    options: &Options,
) -> Result<()> {
    problem.check()?;
    refuse_others(problem, device, &Options { execution, ..*options })?;
    check_buffer(problem, device)?;
    if options.cache == CachePolicy::Auto {
        return Ok(());
    }
    Err(Error::invalid(
        format!("--cache {} with several steps per launch", options.cache),
        "such a kernel keeps no cell from launch to launch",
        "leave --cache at auto, or choose a device that runs persistent kernels",
    ))
}

/// Returns the most 32-bit registers that a thread may use for cells: `most`, but no more than half of all its
/// registers if the device reports their number.
pub(super) fn most_words(device: &DeviceSpec, most: usize) -> usize {
    device.registers_per_thread.map_or(most, |registers| most.min(registers / 2))
}

/// Returns all pairs of two lists.
pub(super) fn product<const N: usize, const M: usize>(
    a: [usize; N],
    b: [usize; M],
) -> impl Iterator<Item = [usize; 2]> {
    a.into_iter().flat_map(move |a| b.map(|b| [a, b]))
}
