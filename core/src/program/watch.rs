//! What is watched after each step: the condition that ends a run, the marks at which it halts, and its record.

use std::ops::Range;

use super::{Marks, Probe, Problem, Record, Rows, Until};
use crate::error::Result;
use crate::real::Array;

/// The watch of a session that is the host's own after each step. Sessions whose steps follow each other on a
/// device watch there.
#[derive(Debug, Clone)]
pub struct Watch {
    until: Option<Until>,
    marks: Option<Marks>,
    /// The mark that the scalar reaches next.
    mark: f64,
    record: Option<Record>,
    rows: Rows,
    has_ended: bool,
    is_at_mark: bool,
}

impl Watch {
    /// Begins to watch a problem, which has been checked, as have its initial fields: the record's first row
    /// holds the values before the first step.
    pub fn new(problem: &Problem, fields: &[Array]) -> Result<Watch> {
        let rows = problem.record.as_ref().map(|record| record.first(problem, fields)).transpose()?;
        Watch::with_rows(problem, rows)
    }

    /// Begins to watch as [`Watch::new`] does, where `probed` returns the value of a probe before the first step.
    pub(crate) fn probing(problem: &Problem, probed: impl FnMut(&Probe) -> Result<f64>) -> Result<Watch> {
        let rows = problem.record.as_ref().map(|record| record.first_with(problem, probed)).transpose()?;
        Watch::with_rows(problem, rows)
    }

    fn with_rows(problem: &Problem, rows: Option<Rows>) -> Result<Watch> {
        Ok(Watch {
            until: problem.until,
            marks: problem.marks,
            mark: problem.marks.map_or(f64::NAN, |marks| marks.next(problem.scalars[marks.scalar])),
            record: problem.record.clone(),
            rows: rows.unwrap_or_default(),
            has_ended: false,
            is_at_mark: false,
        })
    }

    /// Leaves a mark behind, where a call advances further.
    pub fn begin(&mut self) {
        self.is_at_mark = false;
    }

    /// Forgets that a condition has ended the run, because a field or a parameter was set since.
    pub fn go_on(&mut self) {
        self.has_ended = false;
    }

    /// Returns whether the run goes on: no condition has ended it, and it is at no mark.
    pub fn goes_on(&self) -> bool {
        !self.has_ended && !self.is_at_mark
    }

    /// Returns whether the last step reached a mark.
    pub fn is_at_mark(&self) -> bool {
        self.is_at_mark
    }

    /// Takes note of a step, counted from the start. `scalar` returns the computed scalar of a number, `probed`
    /// the value of a probe.
    pub fn step(
        &mut self,
        step: u64,
        scalar: impl Fn(usize) -> f64,
        probed: impl FnMut(&Probe) -> Result<f64>,
    ) -> Result<()> {
        if let Some(record) = self.record.as_ref().filter(|record| step.is_multiple_of(record.every.max(1))) {
            let probed = record.probes.iter().map(probed).collect::<Result<Vec<_>>>()?;
            self.rows.push(step, record.scalars.iter().map(|&number| scalar(number)).chain(probed))?;
        }
        self.has_ended = self.until.is_some_and(|until| until.ends(scalar(until.scalar)));
        if let Some(marks) = self.marks {
            let value = scalar(marks.scalar);
            self.has_ended |= value.is_nan();
            self.is_at_mark = value >= self.mark;
            if self.is_at_mark {
                self.mark = marks.next(value);
            }
        }
        Ok(())
    }

    /// Returns the steps from one, counted from the start, after which there is something to note; `None` if
    /// there never is.
    pub fn until_due(&self, step: u64) -> Option<u64> {
        match (&self.record, self.until.is_some() || self.marks.is_some()) {
            (_, true) => Some(1),
            (Some(record), false) => Some(record.until_due(step)),
            (None, false) => None,
        }
    }

    /// Gives the rows behind the first of these steps, up to the last, their probes' values: `noted` returns those of a step.
    pub(crate) fn fill<'a>(&mut self, steps: Range<u64>, noted: impl Fn(u64) -> &'a [f64]) {
        let first = self.record.as_ref().map_or(0, |record| record.scalars.len());
        self.rows.fill(steps, first, noted);
    }

    /// Returns the rows recorded since the last call.
    pub fn take_rows(&mut self) -> Rows {
        self.rows.take()
    }
}
