//! How the members of a batch share a device.

use serde::Serialize;

use super::Plan;
use super::traffic::Projection;
use crate::error::{Error, Result};
use crate::program::Problem;
use crate::units::count;

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
