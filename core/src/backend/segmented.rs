//! Runs that are cut at the steps after which there is something to note.

use std::any::Any;
use std::collections::VecDeque;
use std::time::Instant;

use super::{Advances, Part, RankReport, Session, beside};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::program::{Clock, Probe, Problem, Rows, Stretch, Watch};
use crate::real::Array;

/// The most steps whose scalars are made at a time.
const STEPS: u64 = 4096;

/// The most values that kernels note before they are read.
const NOTED: u64 = 1 << 20;

/// The most stretches between reductions that a device does by itself before the host takes note of them.
const AHEAD: usize = 64;

/// What a session that takes no note of marks and records by itself needs around it: its advances end where a
/// row is due, whose values are then read one by one; with marks, after each step.
///
/// Plain programs run so where a run has a record: their kernels and schedules stay what they are, and the
/// host's trips are as many as the rows.
///
/// With a [`Clock`], scalars are known before the steps: advances go on over conditions, marks and rows of scalars alone; and
/// over rows of probes where kernels note them. They end where the clock needs a reduction of fields.
pub struct Segmented {
    watch: Watch,
    problem: Problem,
    clock: Option<Clock>,
    reducer: Option<Box<dyn Reducer>>,
    /// The values of the next reductions, where a device has gone on beyond them, and done the steps between.
    known: VecDeque<f64>,
    /// Whether the session within has done the fields of a step whose scalars the clock does not have yet.
    is_behind: bool,
    /// What the stages of the next steps read, where that changes from step to step.
    read: Vec<f64>,
    /// Steps counted from the start.
    step: u64,
    /// Steps of the last advance that were not done.
    remaining: u64,
}

/// Why a session halts after some steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// Nothing waits for their values.
    Never,
    /// A row or a mark is to be noted.
    Note,
    /// The clock needs the value of this reduction.
    Reduction(usize),
}

/// Reduces fields of a session between its passes: a stage of [`Clock::reductions`].
pub trait Reducer: Send {
    /// Returns the value of a reduction, by its number, of the fields as they are, for a clock that has asked for it. Goes on by
    /// itself where it is asked to: then the values of the reductions that follow come behind it.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the device fails.
    fn reduce(
        &mut self,
        session: &mut dyn Session,
        reduction: usize,
        clock: &Clock,
        ahead: Option<Ahead>,
    ) -> Result<Vec<f64>>;

    /// Returns whether the device can go on by itself.
    fn goes_ahead(&self) -> bool {
        false
    }
}

/// What a device does behind a reduction without the host: so many of [`Clock::stretches`], in turn from
/// [`Clock::next_stretch`], each with the reduction that ends it.
pub struct Ahead {
    /// The stretches.
    pub stretches: usize,
    /// What [`Peer::reserve`](super::Peer::reserve) returned.
    pub reserved: Box<dyn Any>,
}

/// What became of a segment that ends with a reduction.
struct Reduced {
    seconds: f64,
    /// The steps that the session within did: none where it had done them before, more than the segment's where it went ahead.
    steps: u64,
}

impl Segmented {
    fn of(watch: Watch, problem: Problem, clock: Option<Clock>) -> Segmented {
        let (step, read, known) = (problem.first_step, Vec::new(), VecDeque::new());
        Segmented { watch, problem, clock, reducer: None, known, is_behind: false, read, step, remaining: 0 }
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

    /// Returns what a problem needs whose scalars this clock makes, around the session of the clock's plain problem. A clock with
    /// reductions needs what makes them.
    ///
    /// # Errors
    ///
    /// Those of a record that does not fit the fields.
    pub fn clocked(
        problem: &Problem,
        clock: Clock,
        fields: &[Array],
        reducer: Option<Box<dyn Reducer>>,
    ) -> Result<Segmented> {
        let own = Segmented::of(Watch::new(problem, fields)?, problem.clone(), Some(clock));
        Ok(Segmented { reducer, ..own })
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
        // Fields may have been set since.
        self.known.clear();
        self.watch.begin();
    }

    /// Returns the next steps that the session within does at once, in passes of so many, and why they end; `None` at the
    /// advance's end. A clock makes their scalars, and what is noted of these alone is noted here.
    pub fn segment(&mut self, depth: u32) -> Result<Option<(u64, Halt)>> {
        self.read.clear();
        if self.is_behind {
            let halt = self.end_step()?;
            if halt != Halt::Never {
                return Ok(Some((0, halt)));
            }
        }
        if self.remaining == 0 || !self.watch.goes_on() {
            return Ok(None);
        }
        let noted = self.noted() as u64;
        let Some(clock) = self.clock.as_mut().filter(|clock| clock.has_scalars() || noted > 0) else {
            let due = self.watch.until_due(self.step).unwrap_or(u64::MAX);
            let halt = if due <= self.remaining { Halt::Note } else { Halt::Never };
            return Ok(Some((due.min(self.remaining), halt)));
        };
        let due = until_probed(&self.problem, noted, self.step);
        let most = due.min(self.remaining).min(at_a_time(noted, depth));
        for now in 1..=most {
            if let Some(asked) = clock.step(&mut self.read) {
                self.is_behind = asked.is_behind;
                return Ok(Some((now - 1 + u64::from(asked.is_behind), Halt::Reduction(asked.reduction))));
            }
            if now == due {
                return Ok(Some((now, Halt::Note)));
            }
            let scalars = clock.scalars();
            self.watch.step(self.step + now, |number| scalars[number], |_| Ok(f64::NAN))?;
            if !self.watch.goes_on() {
                return Ok(Some((now, Halt::Never)));
            }
        }
        Ok(Some((most, Halt::Never)))
    }

    /// Ends a step whose fields are done.
    fn end_step(&mut self) -> Result<Halt> {
        let (noted, Some(clock)) = (self.noted() as u64, &mut self.clock) else { return Ok(Halt::Never) };
        if let Some(asked) = clock.step(&mut self.read) {
            return Ok(Halt::Reduction(asked.reduction));
        }
        self.is_behind = false;
        if until_probed(&self.problem, noted, self.step - 1) == 1 {
            return Ok(Halt::Note);
        }
        let scalars = clock.scalars();
        self.watch.step(self.step, |number| scalars[number], |_| Ok(f64::NAN))?;
        Ok(Halt::Never)
    }

    /// Gives the clock the value of a reduction that it needs, of the fields after a segment's steps, which are done here. Where a
    /// device takes both one behind the other, the host waits for it once; where it goes on by itself, once in many segments.
    fn reduce(
        &mut self,
        session: &mut dyn Session,
        segment: &Segment,
        reduction: usize,
        depth: u32,
    ) -> Result<Reduced> {
        let noted = self.noted();
        let (Some(clock), Some(reducer)) = (&mut self.clock, &mut self.reducer) else {
            return Err(Error::device("a session", "reducing fields between passes", "nothing does"));
        };
        if let Some(value) = self.known.pop_front() {
            clock.reduced(value);
            return Ok(Reduced { seconds: 0.0, steps: 0 });
        }
        let begun = Instant::now();
        let may_end = self.problem.until.is_some() || self.problem.marks.is_some();
        let mut ahead = None;
        let mut steps = segment.steps;
        if !may_end && reducer.goes_ahead() {
            let next = self.step + segment.steps;
            let due = until_probed(&self.problem, noted as u64, next).saturating_sub(1);
            let left = (self.remaining - segment.steps).min(due);
            let all = stretches(clock, left.min(at_a_time(noted as u64, depth).saturating_sub(steps)));
            let most = all.iter().copied().max().unwrap_or(0).max(segment.steps);
            steps += all.iter().sum::<u64>();
            if !all.is_empty()
                && let Some(peer) = session.peer()
                && let Some(reserved) = peer.reserve(steps, most)?
            {
                ahead = Some(Ahead { stretches: all.len(), reserved });
            } else {
                steps = segment.steps;
            }
        }
        let mut is_queued = ahead.is_some();
        if segment.steps > 0 {
            is_queued = session.peer().map_or(Ok(false), |peer| peer.begin(segment.steps, &segment.read))?;
            if !is_queued {
                segment.advance(session)?;
            }
        }
        let values = reducer.reduce(session, reduction, clock, ahead);
        if let Some(peer) = session.peer().filter(|_| is_queued) {
            peer.finish()?;
        }
        self.known = values?.into();
        let value = self.known.pop_front();
        let none = || Error::device("a session", "reducing fields between passes", "there is no value");
        clock.reduced(value.ok_or_else(none)?);
        Ok(Reduced { seconds: begun.elapsed().as_secs_f64(), steps })
    }

    /// Returns the next segment, with what its stages read.
    fn next_segment(&mut self, depth: u32) -> Result<Option<Segment>> {
        let segment = self.segment(depth)?;
        Ok(segment.map(|(steps, halt)| Segment { steps, halt, read: std::mem::take(&mut self.read) }))
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

/// Steps that the session within does at once, why they end, and what they read.
struct Segment {
    steps: u64,
    halt: Halt,
    read: Vec<f64>,
}

impl Segment {
    /// Lets the session within do the steps; returns the seconds that they took.
    fn advance(&self, session: &mut dyn Session) -> Result<f64> {
        match &self.read[..] {
            _ if self.steps == 0 => Ok(0.0),
            [] => session.advance(self.steps),
            read => session.advance_by(self.steps, read),
        }
    }
}

/// Returns the most steps that are made at a time, in passes of so many, with so many values noted after each.
fn at_a_time(noted: u64, depth: u32) -> u64 {
    let depth = u64::from(depth).max(1);
    (STEPS.min(NOTED / noted.max(1)) / depth).max(1) * depth
}

/// Returns the steps of each of the stretches behind the reduction that a clock asks for, as far as their reductions are of the
/// next so many steps.
fn stretches(clock: &Clock, most: u64) -> Vec<u64> {
    let of = |own: &Stretch| (own.steps(), own.is_behind);
    let all: Vec<(u64, bool)> = clock.stretches().iter().map(of).collect();
    let mut left = most;
    let turns = all.iter().cycle().skip(clock.next_stretch());
    let fit = turns.map_while(|&(steps, is_behind)| {
        // A reduction before the fields of its step is of a step that is not done yet.
        let fits = steps + u64::from(!is_behind) <= left;
        left = left.saturating_sub(steps);
        fits.then_some(steps)
    });
    fit.take(AHEAD).collect()
}

/// Returns the steps to the next row of probes for which a run halts, or a number beyond all steps.
fn until_probed(problem: &Problem, noted: u64, step: u64) -> u64 {
    let probed = problem.record.as_ref().filter(|record| !record.probes.is_empty() && noted == 0);
    probed.map_or(u64::MAX, |record| record.until_due(step))
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
        while let Some(segment) = next.take() {
            let (first, asked, halt) = (self.cut.step, segment.steps, segment.halt);
            let SegmentedSession { inner, cut, .. } = self;
            let is_ahead = cut.is_ahead() && halt == Halt::Never;
            if !matches!(halt, Halt::Reduction(_)) && !cut.known.is_empty() {
                return Err(Error::device("a session", "going on by itself", "it went beyond this step"));
            }
            let mut reduced = None;
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
                let mut advance = || segment.advance(inner.as_mut());
                let (taken, prepared) =
                    if has_work { beside(advance, &mut prepare) } else { (advance(), prepare()) };
                seconds += taken?;
                next = prepared?;
            } else if let Halt::Reduction(number) = halt {
                let found = cut.reduce(inner.as_mut(), &segment, number, depth)?;
                seconds += found.seconds;
                reduced = Some(found.steps);
            } else {
                seconds += segment.advance(inner.as_mut())?;
            }
            let done = if asked == 0 { 0 } else { asked - self.inner.remaining() };
            // A device may have done a segment's steps before, and may do more than them.
            let now = reduced.unwrap_or(done);
            self.advances.add(done, 1);
            if !is_ahead {
                self.cut.advanced(done);
            }
            if self.cut.noted() > 0 && now > 0 {
                let last = Noted { first, steps: now, values: self.inner.take_noted()? };
                if let Some(before) = noted.replace(last) {
                    self.cut.fill(&before)?;
                }
            }
            if done < asked {
                break;
            }
            if halt == Halt::Note {
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
