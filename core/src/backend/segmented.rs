//! Runs that are cut at the steps after which there is something to note.

use std::any::Any;

use super::{Advances, Part, RankReport, Session};
use crate::error::Result;
use crate::plan::Plan;
use crate::program::{Probe, Problem, Rows, Watch};
use crate::real::Array;

/// What a session that takes no note of marks and records by itself needs around it: its advances end where a
/// row is due, whose values are then read one by one; with marks, after each step.
///
/// Plain programs run so where a run has a record: their kernels and schedules stay what they are, and the
/// host's trips are as many as the rows.
pub struct Segmented {
    watch: Watch,
    problem: Problem,
}

impl Segmented {
    /// Returns what a problem needs, whose initial fields are given; `None` if it has neither marks nor a
    /// record.
    pub fn new(problem: &Problem, fields: &[Array]) -> Result<Option<Segmented>> {
        if problem.record.is_none() && problem.marks.is_none() {
            return Ok(None);
        }
        // A condition that ends the run stays with the session.
        let problem = Problem { until: None, ..problem.clone() };
        Ok(Some(Segmented { watch: Watch::new(&problem, fields)?, problem }))
    }

    /// Returns the session of a problem with what it needs around it, as [`Segmented::new`] and [`Segmented::around`] do, by values
    /// that are read from the session itself, before its first step.
    pub fn of_session(problem: &Problem, mut session: Box<dyn Session>) -> Result<Box<dyn Session>> {
        if problem.record.is_none() && problem.marks.is_none() {
            return Ok(session);
        }
        let problem = Problem { until: None, ..problem.clone() };
        let watch = Watch::probing(&problem, |probe| probed(session.as_mut(), probe))?;
        Ok(Segmented::around(Some(Segmented { watch, problem }), session))
    }

    /// Returns the session with all that is needed around it.
    pub fn around(cut: Option<Segmented>, session: Box<dyn Session>) -> Box<dyn Session> {
        match cut {
            Some(Segmented { watch, problem }) => {
                let step = problem.first_step;
                Box::new(SegmentedSession {
                    inner: session,
                    watch,
                    problem,
                    step,
                    remaining: 0,
                    advances: Advances::default(),
                })
            }
            None => session,
        }
    }
}

/// Reads the value of a probe.
pub(super) fn probed(session: &mut dyn Session, probe: &Probe) -> Result<f64> {
    let [low, high] = probe.window();
    let value = session.read_window(probe.field, low, high)?;
    Ok(value.get(0).unwrap_or(f64::NAN))
}

struct SegmentedSession {
    inner: Box<dyn Session>,
    watch: Watch,
    problem: Problem,
    /// Steps counted from the start.
    step: u64,
    /// Steps of the last advance that were not done.
    remaining: u64,
    /// The advances of the session within.
    advances: Advances,
}

impl SegmentedSession {
    /// Takes note of the step that was just done.
    fn note(&mut self) -> Result<()> {
        let scalars = match self.problem.program.scalars() {
            [] => Vec::new(),
            _ => self.inner.scalars()?,
        };
        let inner = &mut self.inner;
        let probed = |probe: &Probe| probed(inner.as_mut(), probe);
        self.watch.step(self.step, |number| scalars.get(number).copied().unwrap_or(f64::NAN), probed)
    }
}

impl Session for SegmentedSession {
    fn plan(&self) -> &Plan {
        self.inner.plan()
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        let mut seconds = 0.0;
        self.remaining = steps;
        self.watch.begin();
        while self.remaining > 0 && self.watch.goes_on() {
            let due = self.watch.until_due(self.step).unwrap_or(self.remaining);
            let asked = due.min(self.remaining);
            seconds += self.inner.advance(asked)?;
            let done = asked - self.inner.remaining();
            self.advances.add(done, 1);
            self.step += done;
            self.remaining -= done;
            if done == due {
                self.note()?;
            }
            if done < asked {
                break;
            }
        }
        Ok(seconds)
    }

    fn remaining(&self) -> u64 {
        self.remaining
    }

    fn is_at_mark(&self) -> bool {
        self.watch.is_at_mark()
    }

    fn take_rows(&mut self) -> Result<Rows> {
        Ok(self.watch.take_rows())
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        self.inner.read(field)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.inner.read_window(field, low, high)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.watch.go_on();
        self.inner.write(field, values)
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        self.watch.go_on();
        self.inner.write_window(field, low, high, values)
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        self.inner.non_finite(field)
    }

    fn device_buffer(&self, field: usize) -> Option<Box<dyn Any>> {
        self.inner.device_buffer(field)
    }

    fn device_buffer_mut(&mut self, field: usize) -> Result<Option<Box<dyn Any>>> {
        self.watch.go_on();
        self.inner.device_buffer_mut(field)
    }

    fn scalars(&mut self) -> Result<Vec<f64>> {
        self.inner.scalars()
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        self.watch.go_on();
        self.inner.set_parameter(parameter, value)
    }

    fn most(&mut self, own: f64) -> Result<f64> {
        self.inner.most(own)
    }

    fn part(&mut self) -> Option<&mut dyn Part> {
        self.inner.part()
    }

    fn take_advances(&mut self) -> Option<Advances> {
        Some(std::mem::take(&mut self.advances))
    }

    fn take_ranks(&mut self) -> Result<Vec<RankReport>> {
        self.inner.take_ranks()
    }
}
