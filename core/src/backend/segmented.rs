//! Runs that are cut at the steps after which there is something to note.

use std::any::Any;

use super::{Advances, Part, RankReport, Session};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::program::{Clock, Probe, Problem, Rows, Watch};
use crate::real::Array;

/// The most steps whose scalars are made at a time.
const STEPS: u64 = 4096;

/// The most values that kernels note before they are read.
const NOTED: u64 = 1 << 20;

/// What a session that takes no note of marks and records by itself needs around it: its advances end where a
/// row is due, whose values are then read one by one; with marks, after each step.
///
/// Plain programs run so where a run has a record: their kernels and schedules stay what they are, and the
/// host's trips are as many as the rows.
///
/// With a [`Clock`], scalars are known before the steps: advances go on over conditions, marks and rows of scalars alone; and
/// over rows of probes where kernels note them.
pub struct Segmented {
    watch: Watch,
    problem: Problem,
    clock: Option<Clock>,
    /// What the stages of the next steps read, where that changes from step to step.
    read: Vec<f64>,
    /// Steps counted from the start.
    step: u64,
    /// Steps of the last advance that were not done.
    remaining: u64,
}

impl Segmented {
    fn of(watch: Watch, problem: Problem, clock: Option<Clock>) -> Segmented {
        let step = problem.first_step;
        Segmented { watch, problem, clock, read: Vec::new(), step, remaining: 0 }
    }

    /// Returns what a problem needs, whose initial fields are given; `None` if it has neither marks nor a
    /// record.
    pub fn new(problem: &Problem, fields: &[Array]) -> Result<Option<Segmented>> {
        if problem.record.is_none() && problem.marks.is_none() {
            return Ok(None);
        }
        // A condition that ends the run stays with the session.
        let problem = Problem { until: None, ..problem.clone() };
        Ok(Some(Segmented::of(Watch::new(&problem, fields)?, problem, None)))
    }

    /// Returns what a problem needs whose scalars this clock makes, around the session of the clock's plain problem.
    ///
    /// # Errors
    ///
    /// Those of a record that does not fit the fields.
    pub fn clocked(problem: &Problem, clock: Clock, fields: &[Array]) -> Result<Segmented> {
        Ok(Segmented::of(Watch::new(problem, fields)?, problem.clone(), Some(clock)))
    }

    /// Returns the session of a problem with what it needs around it, as [`Segmented::new`] and [`Segmented::around`] do, by values
    /// that are read from the session itself, before its first step.
    pub fn of_session(problem: &Problem, mut session: Box<dyn Session>) -> Result<Box<dyn Session>> {
        if problem.record.is_none() && problem.marks.is_none() {
            return Ok(session);
        }
        let problem = Problem { until: None, ..problem.clone() };
        let watch = Watch::probing(&problem, |probe| probed(session.as_mut(), probe))?;
        Ok(Segmented::around(Some(Segmented::of(watch, problem, None)), session))
    }

    /// Returns the session with all that is needed around it.
    pub fn around(cut: Option<Segmented>, session: Box<dyn Session>) -> Box<dyn Session> {
        match cut {
            Some(cut) => Box::new(SegmentedSession { inner: session, cut, advances: Advances::default() }),
            None => session,
        }
    }

    /// Begins an advance of so many steps.
    pub fn begin(&mut self, steps: u64) {
        self.remaining = steps;
        self.watch.begin();
    }

    /// Returns the next steps that the session within does at once, in passes of so many, and whether a row or a mark is to be
    /// noted then; `None` at the advance's end. A clock makes their scalars, and what is noted of these alone is noted here.
    pub fn segment(&mut self, depth: u32) -> Result<Option<(u64, bool)>> {
        if self.remaining == 0 || !self.watch.goes_on() {
            return Ok(None);
        }
        let noted = self.noted() as u64;
        let Some(clock) = self.clock.as_mut().filter(|clock| clock.has_scalars() || noted > 0) else {
            let due = self.watch.until_due(self.step).unwrap_or(u64::MAX);
            return Ok(Some((due.min(self.remaining), due <= self.remaining)));
        };
        let depth = u64::from(depth).max(1);
        let passes = (STEPS.min(NOTED / noted.max(1)) / depth).max(1);
        let probed = self.problem.record.as_ref().filter(|record| !record.probes.is_empty() && noted == 0);
        let due = probed.map_or(u64::MAX, |record| record.until_due(self.step));
        let most = due.min(self.remaining).min(passes * depth);
        self.read.clear();
        for now in 1..=most {
            clock.step(&mut self.read);
            if now == due {
                return Ok(Some((now, true)));
            }
            let scalars = clock.scalars();
            self.watch.step(self.step + now, |number| scalars[number], |_| Ok(f64::NAN))?;
            if !self.watch.goes_on() {
                return Ok(Some((now, false)));
            }
        }
        Ok(Some((most, false)))
    }

    /// Returns the next segment, with what its stages read.
    fn next_segment(&mut self, depth: u32) -> Result<Option<Segment>> {
        let segment = self.segment(depth)?;
        Ok(segment.map(|(steps, is_due)| Segment { steps, is_due, read: std::mem::take(&mut self.read) }))
    }

    /// Returns what the stages of the segment's steps read, as [`Session::advance_by`] takes it; nothing where parameters stay.
    pub fn read(&self) -> &[f64] {
        &self.read
    }

    /// Returns whether segments are made before the steps of the one before are done: a clock knows their scalars.
    fn is_ahead(&self) -> bool {
        self.clock.as_ref().is_some_and(|clock| clock.has_scalars() || !clock.noted().is_empty())
    }

    /// Notes that so many steps of a segment were done.
    pub fn advanced(&mut self, steps: u64) {
        self.step += steps;
        self.remaining -= steps;
    }

    /// Returns how many values the kernels of the session within note after each step.
    pub fn noted(&self) -> usize {
        self.clock.as_ref().map_or(0, |clock| clock.noted().len())
    }

    /// Takes over what kernels have noted.
    fn fill(&mut self, values: &Noted) -> Result<()> {
        let (Noted { first, steps, values }, noted) = (values, self.noted());
        if values.len() as u128 != u128::from(*steps) * noted as u128 {
            return Err(Error::device("a session", "reading noted values", "there are too few or too many"));
        }
        self.watch.fill(*first..first + steps, |step| {
            let row = (step - first - 1) as usize;
            &values[row * noted..(row + 1) * noted]
        });
        Ok(())
    }

    /// Takes note of the step that was just done, after which the session within has these scalars.
    pub fn note(&mut self, scalars: &[f64], probed: impl FnMut(&Probe) -> Result<f64>) -> Result<()> {
        let scalar = |number: usize| scalars.get(number).copied().unwrap_or(f64::NAN);
        self.watch.step(self.step, scalar, probed)
    }

    /// Returns the probes whose values are noted.
    pub fn probes(&self) -> &[Probe] {
        self.problem.record.as_ref().map_or(&[], |record| &record.probes)
    }

    /// Returns the steps of the last advance that were not done.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Returns whether the last step reached a mark.
    pub fn is_at_mark(&self) -> bool {
        self.watch.is_at_mark()
    }

    /// Returns the rows since the last call.
    pub fn take_rows(&mut self) -> Rows {
        self.watch.take_rows()
    }

    /// Lets a run go on that a condition has ended, because a field or a parameter was set.
    pub fn go_on(&mut self) {
        self.watch.go_on();
    }

    /// Returns the scalars after the last step, which a clock knows.
    pub fn scalars(&self) -> Option<Vec<f64>> {
        self.clock.as_ref().map(|clock| clock.scalars().to_vec())
    }

    /// Sets a parameter for the steps that follow, of which a clock takes note.
    ///
    /// # Errors
    ///
    /// Those of [`Clock::set_parameter`].
    pub fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        self.go_on();
        self.clock.as_mut().map_or(Ok(()), |clock| clock.set_parameter(parameter, value))
    }
}

/// Calls `here`, and meanwhile `there` in a thread of its own; one after the other where no thread can be started.
fn beside<A, B: Send>(here: impl FnOnce() -> A, there: &mut (impl FnMut() -> B + Send)) -> (A, B) {
    let there = std::sync::Mutex::new(there);
    let call = || (there.lock().unwrap_or_else(std::sync::PoisonError::into_inner))();
    std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, call) {
        Ok(thread) => {
            let done = here();
            (done, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        }
        Err(_) => (here(), call()),
    })
}

/// Reads the value of a probe; NaN where there is none.
///
/// # Errors
///
/// Those of [`Session::read_window`].
pub fn probed(session: &mut dyn Session, probe: &Probe) -> Result<f64> {
    let [low, high] = probe.window();
    let value = session.read_window(probe.field, low, high)?;
    Ok(value.get(0).unwrap_or(f64::NAN))
}

/// What kernels have noted in so many steps after the first.
struct Noted {
    first: u64,
    steps: u64,
    values: Vec<f64>,
}

/// Steps that the session within does at once, whether a row or a mark is to be noted then, and what they read.
struct Segment {
    steps: u64,
    is_due: bool,
    read: Vec<f64>,
}

struct SegmentedSession {
    inner: Box<dyn Session>,
    cut: Segmented,
    /// The advances of the session within.
    advances: Advances,
}

impl SegmentedSession {
    /// Takes note of the step that was just done.
    fn note(&mut self) -> Result<()> {
        let scalars = match self.cut.problem.program.scalars() {
            [] => Vec::new(),
            _ => self.scalars()?,
        };
        let SegmentedSession { inner, cut, .. } = self;
        cut.note(&scalars, |probe| probed(inner.as_mut(), probe))
    }
}

impl Session for SegmentedSession {
    fn plan(&self) -> &Plan {
        self.inner.plan()
    }

    fn prepare(&mut self, steps: u64) -> Result<bool> {
        match &self.cut.clock {
            Some(_) => self.inner.prepare(steps),
            None => Ok(false),
        }
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        let depth = self.inner.plan().depth;
        let (mut seconds, mut noted) = (0.0, None);
        self.cut.begin(steps);
        let mut next = self.cut.next_segment(depth)?;
        while let Some(Segment { steps: asked, is_due, read }) = next.take() {
            let first = self.cut.step;
            let SegmentedSession { inner, cut, .. } = self;
            let mut advance = || match &read[..] {
                [] => inner.advance(asked),
                read => inner.advance_by(asked, read),
            };
            let is_ahead = cut.is_ahead() && !is_due;
            if is_ahead {
                // The device does these steps while the host makes the scalars of the next and fills the rows of the last.
                cut.advanced(asked);
                let has_work = noted.is_some() || cut.remaining() > 0;
                let mut prepare = || -> Result<Option<Segment>> {
                    if let Some(noted) = noted.take() {
                        cut.fill(&noted)?;
                    }
                    cut.next_segment(depth)
                };
                let (taken, prepared) =
                    if has_work { beside(advance, &mut prepare) } else { (advance(), prepare()) };
                seconds += taken?;
                next = prepared?;
            } else {
                seconds += advance()?;
            }
            let done = asked - self.inner.remaining();
            self.advances.add(done, 1);
            if !is_ahead {
                self.cut.advanced(done);
            }
            if self.cut.noted() > 0 {
                noted = Some(Noted { first, steps: done, values: self.inner.take_noted()? });
            }
            if done < asked {
                break;
            }
            if is_due {
                self.note()?;
            }
            if !is_ahead {
                next = self.cut.next_segment(depth)?;
            }
        }
        if let Some(noted) = noted {
            self.cut.fill(&noted)?;
        }
        Ok(seconds)
    }

    fn remaining(&self) -> u64 {
        self.cut.remaining()
    }

    fn is_at_mark(&self) -> bool {
        self.cut.is_at_mark()
    }

    fn take_rows(&mut self) -> Result<Rows> {
        Ok(self.cut.take_rows())
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        self.inner.read(field)
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.inner.read_window(field, low, high)
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        self.cut.go_on();
        self.inner.write(field, values)
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        self.cut.go_on();
        self.inner.write_window(field, low, high, values)
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        self.inner.non_finite(field)
    }

    fn device_buffer(&self, field: usize) -> Option<Box<dyn Any>> {
        self.inner.device_buffer(field)
    }

    fn device_buffer_mut(&mut self, field: usize) -> Result<Option<Box<dyn Any>>> {
        self.cut.go_on();
        self.inner.device_buffer_mut(field)
    }

    fn scalars(&mut self) -> Result<Vec<f64>> {
        self.cut.scalars().map_or_else(|| self.inner.scalars(), Ok)
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        self.cut.set_parameter(parameter, value)?;
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
