//! Stages that repeat one formula as passes of a streaming kernel, which keep them on the chip from one to the next.

use std::collections::HashMap;

use abide_core::device::Capability;
use abide_core::plan::Schedule;
use abide_core::plan::fused::Group;
use abide_core::plan::streaming::warp::Configuration;
use abide_core::program::{Boxes, Repeated};
use abide_core::{Depth, DeviceSpec, Execution, Options, Plan, Problem, Tune};

use crate::streaming::warp::{plan_configuration, plan_streaming};

/// The most stages of a pass that are tried.
const MOST_STAGES: usize = 24;

/// Returns the plan of some stages as one pass of a streaming kernel of this configuration, and the problem that it is of; `None`
/// where they are none.
pub fn plan_pass(
    problem: &Problem,
    boxes: &Boxes,
    device: &DeviceSpec,
    stages: &[usize],
    configuration: &Configuration,
) -> Option<(Repeated, Plan)> {
    let repeated = problem.repeated(boxes, stages)?;
    if configuration.depth != stages.len() {
        return None;
    }
    let plan = plan_configuration(&repeated.problem, device, configuration)?;
    Some((repeated, alone(plan)))
}

/// Returns the seconds of a group that is a pass, its launch included; `None` where it is none.
pub fn pass_seconds(problem: &Problem, boxes: &Boxes, device: &DeviceSpec, group: &Group) -> Option<f64> {
    let (_, plan) = plan_pass(problem, boxes, device, &group.stages, group.pass.as_ref()?)?;
    Some(seconds(&plan))
}

/// Returns the seconds of a plan's pass, its launch included.
fn seconds(plan: &Plan) -> f64 {
    plan.estimated_seconds * f64::from(plan.depth)
}

/// Returns a plan of passes each of which is a launch by itself, of as many stages as it has, whatever the compiler reports.
fn alone(plan: Plan) -> Plan {
    let mut plan = plan.unchained().unwrap_or(plan);
    if let Schedule::WarpStreaming(streaming) = &mut plan.schedule {
        streaming.depth_asked = true;
    }
    plan
}

/// The passes of a problem's stages that were planned.
#[derive(Default)]
pub struct Passes {
    /// Of the first stage that has the formula, and so many stages.
    known: HashMap<(usize, usize), Option<(f64, Configuration)>>,
}

impl Passes {
    /// Returns the fastest pass of some stages, and its seconds; `None` where they do not repeat one formula, or the device has
    /// no such kernel.
    pub fn of(
        &mut self,
        problem: &Problem,
        boxes: &Boxes,
        device: &DeviceSpec,
        stages: &[usize],
    ) -> Option<(f64, Configuration)> {
        if !device.has(Capability::Warps) || !(2..=MOST_STAGES).contains(&stages.len()) {
            return None;
        }
        let repeated = problem.repeated(boxes, stages)?;
        let all = problem.program.stages();
        let own = &all[stages[0]];
        let first = all.iter().position(|stage| stage.dag == own.dag && stage.writes == own.writes)?;
        let planned = || {
            let options = Options {
                execution: Execution::Streaming,
                depth: Depth::Steps(stages.len() as u32),
                tune: Tune::Off,
                ..Options::default()
            };
            let plan = alone(plan_streaming(&repeated.problem, device, &options).ok()?);
            Some((seconds(&plan), plan.warp_streaming()?.configuration()))
        };
        *self.known.entry((first, stages.len())).or_insert_with(planned)
    }
}

/// Returns the stages of a step, each in a group of its own, that follow one another and repeat one formula: the longest such
/// parts, by their places.
pub fn runs(problem: &Problem, boxes: &Boxes, step: &[Vec<usize>]) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut begin = 0;
    while begin < step.len() {
        let mut end = begin + 1;
        while end < step.len() && problem.repeated(boxes, &[step[end - 1][0], step[end][0]]).is_some() {
            end += 1;
        }
        if end > begin + 1 {
            found.push(begin..end);
        }
        begin = end;
    }
    found
}
