//! How the members of a batch share a device.

use serde::Serialize;

use super::description::count;
use super::{Options, Plan, papers::perks::Projection, plan as plan_alone, resident};
use crate::device::DeviceSpec;
use crate::error::{Error, Result};
use crate::program::Problem;

/// Whether the members of a batch run one after another or side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// One after another, each on the whole device, as if it ran alone.
    InTurn,
    /// Side by side: each member has a part of the device.
    AtOnce,
}

/// The part of a plan that is for a batch. The rest of the plan is that of each member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Batched {
    /// The number of members.
    pub members: usize,
    /// How they share the device.
    pub order: Order,
}

impl Batched {
    /// Returns the words that a summary begins with.
    pub(super) fn summary(&self) -> String {
        let members = count(self.members, "member");
        match self.order {
            Order::InTurn => format!("{members} in turn, each "),
            Order::AtOnce => format!("{members} side by side, each "),
        }
    }

    /// Returns the line of an explanation.
    pub(super) fn line(&self) -> String {
        let members = count(self.members, "member");
        match self.order {
            Order::InTurn => format!("{members}, one after another, each on the whole device"),
            Order::AtOnce => format!("{members}, side by side, each on a part of the device"),
        }
    }
}

/// Plans a batch whose members run by the plan of a member alone, which `plan` makes.
pub fn plan_members(
    problem: &Problem,
    order: Order,
    plan: impl FnOnce(&Problem) -> Result<Plan>,
) -> Result<Plan> {
    problem.check()?;
    let mut plan = plan(&problem.member(0))?;
    plan.batch = Some(Batched { members: problem.members(), order });
    if order == Order::InTurn && problem.members() > 1 {
        plan.notes.push("the members of the batch run one after another".to_owned());
    }
    Ok(plan)
}

/// Plans a batch for a device of blocks: its members side by side, a block for each, where they fit and that is
/// estimated to be faster. Otherwise they run in turn, each by the plan of a member alone, which `alone` makes, and
/// a note says why.
pub fn plan_batch(
    problem: &Problem,
    device: &DeviceSpec,
    options: &Options,
    alone: impl FnOnce(&Problem) -> Result<Plan>,
) -> Result<Plan> {
    let why = match at_once(problem, device, options) {
        Ok(plan) => return Ok(plan),
        Err(why) => why,
    };
    let mut plan = plan_members(problem, Order::InTurn, alone)?;
    if problem.members() > 1 {
        plan.notes.push(format!("not side by side because {why}"));
    }
    Ok(plan)
}

/// Returns the plan of all members side by side; where they are to run in turn, the error is the reason.
fn at_once(problem: &Problem, device: &DeviceSpec, options: &Options) -> std::result::Result<Plan, String> {
    let cannot = |why: Error| format!("that cannot be: {why}");
    let plan = resident::plan_batch(problem, device, options).map_err(cannot)?;
    if let Ok(alone) = plan_alone(&problem.member(0), device, options)
        && alone.estimated_seconds < plan.estimated_seconds
    {
        let micros = |plan: &Plan| 1e6 * plan.estimated_seconds * problem.members() as f64;
        return Err(format!(
            "that is estimated at {:.2} µs a step of all members, and one after another at {:.2} µs",
            micros(&plan),
            micros(&alone)
        ));
    }
    Ok(plan)
}

impl Plan {
    /// Returns whether the members of a batch run side by side.
    pub fn is_at_once(&self) -> bool {
        self.batch.is_some_and(|batch| batch.order == Order::AtOnce)
    }

    /// Returns the number of domains: the members of a batch, or 1.
    pub fn members(&self) -> usize {
        self.batch.map_or(1, |batch| batch.members)
    }

    /// Returns the total number of cells of all domains.
    pub fn cells(&self) -> usize {
        self.shape.cells().saturating_mul(self.members())
    }

    /// Returns the plan of a member of a batch alone.
    pub fn of_member(&self) -> Plan {
        Plan { batch: None, ..self.clone() }
    }

    /// Checks that the plan is for as many domains as the problem has.
    pub(super) fn check_members(&self, problem: &Problem) -> Result<()> {
        let words = |members: usize| match members {
            0 => "a single domain".to_owned(),
            members => format!("a batch of {}", count(members, "member")),
        };
        let (own, other) = (self.batch.map_or(0, |batch| batch.members), problem.batch.len());
        match own == other {
            true => Ok(()),
            false => Err(Error::invalid(
                "plan",
                format!("it is for {}, the problem is {}", words(own), words(other)),
                "make a plan for this problem",
            )),
        }
    }

    /// Returns the projection of all members, from that of one: they share the device's rates.
    pub(super) fn of_all(&self, one: Projection) -> Projection {
        let members = self.members() as f64;
        Projection {
            memory_bytes: one.memory_bytes * members,
            least_bytes: one.least_bytes * members,
            memory_seconds: one.memory_seconds * members,
            halo_seconds: one.halo_seconds * members,
            shared_seconds: one.shared_seconds * members,
            arithmetic_seconds: one.arithmetic_seconds * members,
            seconds: one.seconds * members,
            ..one
        }
    }
}
