//! What kernels cannot do: refusals that several schedules share.

use abide_core::program::MAX_FIELDS;
use abide_core::{CachePolicy, Depth, DeviceSpec, Error, Execution, Options, Problem, Result};

/// Refuses a temporal depth that no kernel has.
pub(super) fn check_depth(depth: Depth) -> Result<()> {
    match depth {
        Depth::Auto | Depth::Steps(1) => Ok(()),
        Depth::Steps(more) => Err(Error::limit("temporal depth", more, 1, "use --depth auto or --depth 1")),
    }
}

/// Refuses all that a program that is not plain cannot do, and all but launches per stage of one with thousands of components;
/// allows every option of another plain one.
pub(super) fn refuse_others(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<()> {
    if problem.is_plain() {
        return refuse_components(problem, device, options);
    }
    let asked = match (options.execution, options.cache, options.depth) {
        (execution @ (Execution::Streaming | Execution::Persistent | Execution::Overlapped), ..) => {
            format!("execution {execution}")
        }
        (_, cache @ (CachePolicy::Shared | CachePolicy::Registers | CachePolicy::Mixed), _) => {
            format!("cache policy {cache}")
        }
        (.., Depth::Steps(depth)) if depth > 1 => format!("depth {depth}"),
        _ => return Ok(()),
    };
    Err(Error::unsupported(
        device.name.clone(),
        format!(
            "{asked} is for stencils over fields that stand on cells and share a plain boundary, on axes no shorter than \
             they reach, and {} runs a launch per stage",
            problem.program.name()
        ),
        "use --execution stepwise, without cache policy and depth",
    ))
}

/// Refuses kernels that take the address of each component where there are too many for it.
fn refuse_components(problem: &Problem, device: &DeviceSpec, options: &Options) -> Result<()> {
    let fields = problem.program.fields().len();
    match options.execution {
        Execution::Streaming | Execution::Persistent | Execution::Overlapped if fields > MAX_FIELDS => {
            let what = format!("fields and components of execution {} on {}", options.execution, device.name);
            Err(Error::limit(what, fields, MAX_FIELDS, "use --execution stepwise"))
        }
        _ => Ok(()),
    }
}

/// Refuses a problem whose fields are too large for a kernel to bind each as one buffer.
pub(super) fn check_buffer(problem: &Problem, device: &DeviceSpec) -> Result<()> {
    let bytes = problem.shape.bytes(problem.dtype) as u64;
    if bytes <= device.buffer_bytes {
        return Ok(());
    }
    Err(Error::limit(
        format!("bytes of one field on {}", device.name),
        bytes,
        device.buffer_bytes,
        "choose a smaller size, f32 or another backend",
    ))
}
