//! The parts that the plans of all schedules share.

use abide_core::plan::Schedule;
use abide_core::plan::traffic::Traffic;
use abide_core::{CachePolicy, DeviceSpec, Execution, Plan, Problem};

/// Makes a plan of the parts that all schedules share.
pub(crate) fn base(
    problem: &Problem,
    device: &DeviceSpec,
    execution: Execution,
    schedule: Schedule,
    traffic: Traffic,
) -> Plan {
    Plan {
        program: problem.program.name().to_owned(),
        shape: problem.shape,
        dtype: problem.dtype,
        boundaries: problem.boundaries,
        device: device.clone(),
        execution,
        cache: CachePolicy::None,
        depth: 1,
        schedule,
        traffic,
        estimated_seconds: 0.0,
        batch: None,
        ranks: None,
        compiled: Vec::new(),
        notes: problem.note_of_coefficients().into_iter().chain(problem.note_of_loops()).collect(),
    }
}
