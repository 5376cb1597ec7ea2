//! Batches: domains of one shape that run the same program at the same time.

use super::Problem;
use crate::error::{Error, Result};

/// What one domain of a batch has of its own besides its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The parameters' values, in the program's order.
    pub parameters: Vec<f64>,
    /// The computed scalars' values before the first step, as in [`Problem::scalars`].
    pub scalars: Vec<f64>,
}

impl Problem {
    /// Makes the problem a batch of so many members, each with the problem's own parameters and scalars so
    /// far.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`] where there are none, or more than could be counted in bytes or held in memory.
    pub fn repeat(&mut self, members: usize) -> Result<()> {
        check_members(members)?;
        let change = "choose a smaller batch";
        let all = members.checked_mul(16).and_then(|bytes| bytes.checked_mul(self.shape.cells()));
        if all.is_none_or(|bytes| bytes > isize::MAX as usize) {
            let asked = format!("{members} members of {}", self.shape);
            return Err(Error::limit(
                "cells of a batch",
                asked,
                format!("{} bytes a field", isize::MAX),
                change,
            ));
        }
        let own = Member { parameters: self.parameters.clone(), scalars: self.scalars.clone() };
        self.batch = crate::memory::filled(own, members, "the parameters of a batch", change)?;
        Ok(())
    }

    /// Returns whether the problem is a batch of domains, of one member or more.
    pub fn is_batch(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Returns the number of domains: the members of a batch, or 1.
    pub fn members(&self) -> usize {
        self.batch.len().max(1)
    }

    /// Refuses a batch for a caller, which the error names, that has one domain to show or to run.
    pub fn refuse_batch(&self, caller: &str) -> Result<()> {
        match self.is_batch() {
            true => Err(Error::unsupported(
                caller,
                format!("it is for a single domain, this is a batch of {} members", self.members()),
                "run a member alone, or the batch with `abide run`",
            )),
            false => Ok(()),
        }
    }

    /// Returns the problem of one member alone: the same problem where it is no batch, or has not so many.
    pub fn member(&self, number: usize) -> Problem {
        let own = self.batch.get(number);
        let (parameters, scalars) =
            own.map_or((&self.parameters, &self.scalars), |own| (&own.parameters, &own.scalars));
        // Not a clone that is changed: that would copy the whole batch for each of its members.
        Problem {
            program: self.program.clone(),
            shape: self.shape,
            dtype: self.dtype,
            boundaries: self.boundaries,
            sides: self.sides.clone(),
            parameters: parameters.clone(),
            scalars: scalars.clone(),
            batch: Vec::new(),
            first_step: self.first_step,
            until: self.until,
            marks: self.marks,
            record: self.record.clone(),
            noted: self.noted.clone(),
        }
    }

    /// Checks that each member has all values, and that nothing is asked that follows one domain alone.
    pub(super) fn check_batch(&self) -> Result<()> {
        let needs = [self.program.parameters().len(), self.program.scalars().len()];
        for (number, member) in self.batch.iter().enumerate() {
            let given = [member.parameters.len(), member.scalars.len()];
            if let Some(at) = (0..2).find(|&at| given[at] != needs[at]) {
                let what = ["parameters", "computed scalars"][at];
                let what = format!("{what} of member {number}");
                return Err(Error::limit(what, given[at], needs[at], "give one value each"));
            }
        }
        let single = [
            ("an end by a condition (until)", self.until.is_some()),
            ("halts at marks", self.marks.is_some()),
            ("a record", self.record.is_some()),
        ];
        match single.into_iter().find(|(_, asked)| *asked && self.is_batch()) {
            Some((what, _)) => Err(Error::unsupported(
                format!("a batch of {} members", self.members()),
                format!("{what} was asked for, which follows a single domain"),
                "leave it out, or run the members one by one",
            )),
            None => Ok(()),
        }
    }
}

/// Checks that a batch has a member.
pub fn check_members(members: usize) -> Result<()> {
    match members {
        0 => Err(Error::limit("members of a batch", 0, "at least 1", "give one member or more")),
        _ => Ok(()),
    }
}
