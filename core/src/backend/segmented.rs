//! Runs that are cut at the steps after which there is something to note.

use std::any::Any;

use super::{Advances, Part, RankReport, Session};
use crate::error::Result;
use crate::plan::Plan;
use crate::program::{Clock, Probe, Problem, Rows, Watch};
use crate::real::Array;

/// The most steps whose scalars are made at a time.
const STEPS: u64 = 4096;

/// What a session that takes no note of marks and records by itself needs around it: its advances end where a
/// row is due, whose values are then read one by one; with marks, after each step.
///
/// Plain programs run so where a run has a record: their kernels and schedules stay what they are, and the
/// host's trips are as many as the rows.
///
/// With a [`Clock`], scalars are known before the steps: advances go on over conditions, marks and rows of scalars alone.
pub struct Segmented {
    watch: Watch,
    problem: Problem,
    clock: Option<Clock>,
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
        Ok(Some(Segmented { watch: Watch::new(&problem, fields)?, problem, clock: None }))
    }

    /// Returns what a problem needs whose scalars this clock makes, around the session of the clock's plain problem.
    ///
    /// # Errors
    ///
    /// Those of a record that does not fit the fields.
    pub fn clocked(problem: &Problem, clock: Clock, fields: &[Array]) -> Result<Segmented> {
        let watch = Watch::new(problem, fields)?;
        Ok(Segmented { watch, problem: problem.clone(), clock: Some(clock) })
    }

    /// Returns the session of a problem with what it needs around it, as [`Segmented::new`] and [`Segmented::around`] do, by values
    /// that are read from the session itself, before its first step.
    pub fn of_session(problem: &Problem, mut session: Box<dyn Session>) -> Result<Box<dyn Session>> {
        if problem.record.is_none() && problem.marks.is_none() {
            return Ok(session);
        }
        let problem = Problem { until: None, ..problem.clone() };
        let watch = Watch::probing(&problem, |probe| probed(session.as_mut(), probe))?;
        Ok(Segmented::around(Some(Segmented { watch, problem, clock: None }), session))
    }

    /// Returns the session with all that is needed around it.
    pub fn around(cut: Option<Segmented>, session: Box<dyn Session>) -> Box<dyn Session> {
        match cut {
            Some(Segmented { watch, problem, clock }) => {
                let step = problem.first_step;
                Box::new(SegmentedSession {
                    inner: session,
                    watch,
                    problem,
                    clock,
                    read: Vec::new(),
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
fn probed(session: &mut dyn Session, probe: &Probe) -> Result<f64> {
    let [low, high] = probe.window();
    let value = session.read_window(probe.field, low, high)?;
    Ok(value.get(0).unwrap_or(f64::NAN))
}

struct SegmentedSession {
    inner: Box<dyn Session>,
    watch: Watch,
    problem: Problem,
    clock: Option<Clock>,
    /// What the stages of the next steps read, where that changes from step to step.
    read: Vec<f64>,
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
            _ => self.scalars()?,
        };
        let inner = &mut self.inner;
        let probed = |probe: &Probe| probed(inner.as_mut(), probe);
        self.watch.step(self.step, |number| scalars.get(number).copied().unwrap_or(f64::NAN), probed)
    }

    /// Returns the next steps that the session within does at once, and whether there is something to note then. A clock
    /// makes their scalars, and what is noted of these alone is noted here.
    fn segment(&mut self) -> Result<(u64, bool)> {
        let Some(clock) = &mut self.clock else {
            let due = self.watch.until_due(self.step).unwrap_or(u64::MAX);
            return Ok((due.min(self.remaining), due <= self.remaining));
        };
        let depth = u64::from(self.inner.plan().depth).max(1);
        let passes = (STEPS / depth).max(1);
        let probed = self.problem.record.as_ref().filter(|record| !record.probes.is_empty());
        let due = probed.map_or(u64::MAX, |record| record.until_due(self.step));
        let most = due.min(self.remaining).min(passes * depth);
        self.read.clear();
        for now in 1..=most {
            clock.step(&mut self.read);
            if now == due {
                return Ok((now, true));
            }
            let scalars = clock.scalars();
            self.watch.step(self.step + now, |number| scalars[number], |_| Ok(f64::NAN))?;
            if !self.watch.goes_on() {
                return Ok((now, false));
            }
        }
        Ok((most, false))
    }
}

impl Session for SegmentedSession {
    fn plan(&self) -> &Plan {
        self.inner.plan()
    }

    fn prepare(&mut self, steps: u64) -> Result<bool> {
        match &self.clock {
            Some(_) => self.inner.prepare(steps),
            None => Ok(false),
        }
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        let mut seconds = 0.0;
        self.remaining = steps;
        self.watch.begin();
        while self.remaining > 0 && self.watch.goes_on() {
            let (asked, is_due) = self.segment()?;
            seconds += match self.read.is_empty() {
                true => self.inner.advance(asked)?,
                false => self.inner.advance_by(asked, &self.read)?,
            };
            let done = asked - self.inner.remaining();
            self.advances.add(done, 1);
            self.step += done;
            self.remaining -= done;
            if done < asked {
                break;
            }
            if is_due {
                self.note()?;
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
        match &self.clock {
            Some(clock) => Ok(clock.scalars().to_vec()),
            None => self.inner.scalars(),
        }
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        if let Some(clock) = &mut self.clock {
            clock.set_parameter(parameter, value)?;
        }
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
