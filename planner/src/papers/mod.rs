//! The papers' own models, as they are published: [`perks`] (Zhang et al., ICS'23) projects what bandwidths
//! allow a persistent kernel, [`ebisu`] (Zhang et al., ICS'23) how deep and wide temporal blocking should be.
//!
//! The planner takes parts of these models. [`projections`] returns what each whole model would choose, and
//! [`compare`] puts that beside a plan and beside measured times. Neither model covers boundaries, latencies or
//! launches. From a formula, linear or not, the models take the cells that it reads and writes, and its count of
//! operations.

mod compared;
pub mod ebisu;
pub mod perks;
#[cfg(test)]
mod tests;

use abide_core::plan::traffic::Bound;
use abide_core::{DeviceSpec, Error, Plan, Problem, Result};
use serde::Serialize;

pub use compared::{Compared, Row, compare};

/// Steps of the run that is projected, N of PERKS's example (§5.2).
pub const STEPS: u64 = 1000;

/// The papers' choices for a problem on a device, and what they project to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Papers {
    /// PERKS's answer: what is cached where (eq. 4–12).
    pub perks: Answer,
    /// EBISU's answer: depth, width and tiling of temporal blocking (eq. 1–23).
    pub ebisu: Answer,
}

/// The answer of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The model's choice, and what it projects to.
    Projected(Box<Projected>),
    /// The reason why the model does not apply to this problem or device.
    NotApplicable(String),
}

/// A choice, and what it projects to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Projected {
    /// The choice in words.
    pub choice: String,
    /// Seconds per step.
    pub seconds: f64,
    /// The rate, in 10⁹ cells per second.
    pub gcells_per_s: f64,
    /// Bytes through device memory per cell and step.
    pub memory_bytes: f64,
    /// The bottleneck that bounds the choice.
    pub bound: Bound,
    /// Further notes, a sentence each.
    pub notes: Vec<String>,
    /// The choice in the model's own terms; `None` for a plan, which has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

/// A choice in its model's own terms.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Details {
    /// PERKS's terms.
    Perks(perks::Cached),
    /// EBISU's terms.
    Ebisu(ebisu::Design),
}

/// Returns what the papers' models would choose for a problem on a device, and what that projects to. If a
/// model does not apply, its answer says why.
///
/// # Errors
///
/// Those of [`Problem::check`].
pub fn projections(problem: &Problem, device: &DeviceSpec) -> Result<Papers> {
    problem.check()?;
    let answer = |projected: Result<Projected>| match projected {
        Ok(projected) => Answer::Projected(Box::new(projected)),
        Err(why) => Answer::NotApplicable(why.to_string()),
    };
    Ok(Papers {
        perks: answer(known(device).and_then(|()| perks_projects(problem, device))),
        ebisu: answer(known(device).and_then(|()| ebisu_projects(problem, device))),
    })
}

fn perks_projects(problem: &Problem, device: &DeviceSpec) -> Result<Projected> {
    let cached = perks::cache(problem, device)?;
    let (steps, projection) = (STEPS as f64, cached.projection);
    let mut notes = cached.notes();
    notes.extend(generalised(problem));
    Ok(Projected {
        choice: cached.summary(),
        seconds: projection.seconds / steps,
        gcells_per_s: projection.gcells_per_s,
        memory_bytes: projection.memory_bytes / steps / problem.shape.cells() as f64,
        bound: projection.bound,
        notes,
        details: Some(Details::Perks(cached)),
    })
}

fn ebisu_projects(problem: &Problem, device: &DeviceSpec) -> Result<Projected> {
    let design = ebisu::design(problem, device)?;
    let faster = *design.choice.faster();
    let mut notes = design.notes(problem, device);
    notes.extend(generalised(problem));
    Ok(Projected {
        choice: design.summary(problem.shape.dimensions()),
        seconds: problem.shape.cells() as f64 / (faster.gcells_per_s * 1e9),
        gcells_per_s: faster.gcells_per_s,
        memory_bytes: faster.memory_bytes,
        bound: faster.attainable.bound,
        notes,
        details: Some(Details::Ebisu(design)),
    })
}

impl Projected {
    /// Returns a plan as a choice, with the planner's own estimate in `seconds` per step; `None` if the
    /// planner made none.
    fn of_plan(plan: &Plan, seconds: f64) -> Option<Projected> {
        let projection = plan.project(STEPS);
        (seconds > 0.0).then(|| Projected {
            choice: plan.summary(),
            seconds,
            gcells_per_s: plan.traffic.cells / seconds / 1e9,
            memory_bytes: projection.memory_bytes / STEPS as f64 / plan.traffic.cells.max(1.0),
            bound: projection.bound,
            notes: Vec::new(),
            details: None,
        })
    }
}

/// Checks that a device reports all rates and sizes that both models need.
fn known(device: &DeviceSpec) -> Result<()> {
    let asked = [
        ("multiprocessors", device.multiprocessors > 0),
        ("registers", device.registers.is_some()),
        ("shared memory", device.shared_bytes_per_block > 0),
        ("bandwidth of memory", device.memory_bandwidth > 0.0),
        ("bandwidth of shared memory", device.shared_bandwidth > 0.0),
    ];
    let missing: Vec<&str> = asked.iter().filter(|(_, known)| !known).map(|(what, _)| *what).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(
        &*device.name,
        format!("the model needs what is not known of it: {}", missing.join(", ")),
        "plan for a CUDA device, or with --device a100 or h200",
    ))
}

/// Returns a note if a problem is more than a paper's stencil.
fn generalised(problem: &Problem) -> Option<String> {
    let (fields, stages) = (problem.program.fields().len(), problem.program.stages().len());
    (fields > 1 || stages > 1).then(|| {
        format!(
            "the paper's stencils have one field and one stage; summed here are the bytes of all fields \
             ({fields}) and the operations of all stages ({stages})"
        )
    })
}
