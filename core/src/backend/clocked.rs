//! Runs of programs whose scalars a host knows before each step.

use std::any::Any;

use super::Session;
use crate::error::Result;
use crate::plan::{Advances, Plan};
use crate::program::{Clock, Probe, Problem, Rows, Watch};
use crate::real::Array;

/// The most steps whose scalars are made at a time.
const STEPS: u64 = 4096;

/// A session of a plain problem, and the clock that sets its last parameters in each step. It notes what a run ends at, halts
/// at or records of the scalars, so that the device is not asked.
pub struct ClockedSession {
    inner: Box<dyn Session>,
    clock: Clock,
    watch: Watch,
    problem: Problem,
    /// Steps counted from the start.
    step: u64,
    /// Steps of the last advance that were not done.
    remaining: u64,
    /// The advances of the session within.
    advances: Advances,
    /// What the stages of the next steps read.
    read: Vec<f64>,
}

impl ClockedSession {
    /// Opens the session of a problem that has this clock; `open` opens that of the plain problem.
    ///
    /// # Errors
    ///
    /// Those of `open`, and of a record that does not fit the fields.
    pub fn open(
        problem: &Problem,
        clock: Clock,
        fields: Vec<Array>,
        open: impl FnOnce(&Problem, Vec<Array>) -> Result<Box<dyn Session>>,
    ) -> Result<Box<dyn Session>> {
        let watch = Watch::new(problem, &fields)?;
        let inner = open(clock.plain(), fields)?;
        Ok(Box::new(ClockedSession {
            inner,
            clock,
            watch,
            problem: problem.clone(),
            step: problem.first_step,
            remaining: 0,
            advances: Advances::default(),
            read: Vec::new(),
        }))
    }

    /// Returns the steps up to the next row with values of fields, which is noted when they are there.
    fn until_probed(&self) -> Option<u64> {
        let record = self.problem.record.as_ref().filter(|record| !record.probes.is_empty())?;
        Some(record.until_due(self.step))
    }

    /// Takes note of a step, at which no row with values of fields is due.
    fn note(&mut self, step: u64) -> Result<()> {
        let scalars = self.clock.scalars();
        self.watch.step(step, |number| scalars[number], |_| Ok(f64::NAN))
    }

    /// Takes note of the step that was just done, at which such a row is due.
    fn note_probed(&mut self) -> Result<()> {
        let (scalars, inner) = (self.clock.scalars(), &mut self.inner);
        let probed = |probe: &Probe| super::segmented::probed(inner.as_mut(), probe);
        self.watch.step(self.step, |number| scalars[number], probed)
    }
}

impl Session for ClockedSession {
    fn plan(&self) -> &Plan {
        self.inner.plan()
    }

    fn prepare(&mut self, steps: u64) -> Result<bool> {
        self.inner.prepare(steps)
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        let mut seconds = 0.0;
        self.remaining = steps;
        self.watch.begin();
        let depth = u64::from(self.inner.plan().depth).max(1);
        // Whole passes.
        let most = (STEPS / depth).max(1) * depth;
        while self.remaining > 0 && self.watch.goes_on() {
            let probed = self.until_probed();
            let asked = self.remaining.min(most).min(probed.unwrap_or(u64::MAX));
            self.read.clear();
            let mut now = 0;
            let mut is_probed = false;
            while now < asked && self.watch.goes_on() {
                self.clock.step(&mut self.read);
                now += 1;
                is_probed = probed == Some(now);
                if !is_probed {
                    self.note(self.step + now)?;
                }
            }
            seconds += match self.clock.is_read() {
                true => self.inner.advance_by(now, &self.read)?,
                false => self.inner.advance(now)?,
            };
            self.advances.add(now, 1);
            self.step += now;
            self.remaining -= now;
            if is_probed {
                self.note_probed()?;
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
        Ok(self.clock.scalars().to_vec())
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        if parameter >= self.problem.parameters.len() {
            let names = self.problem.program.parameters().iter().map(|parameter| parameter.name.as_str());
            return Err(crate::error::Error::unknown("parameter", parameter.to_string(), names));
        }
        self.watch.go_on();
        self.clock.set_parameter(parameter, value);
        self.inner.set_parameter(parameter, value)
    }

    fn take_advances(&mut self) -> Option<Advances> {
        Some(std::mem::take(&mut self.advances))
    }
}
