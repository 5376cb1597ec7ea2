//! A problem in progress, whose steps and transfers can be awaited.

use std::any::Any;

use abide_core::backend::{Halt, LaunchTime, Segmented, Turns, check_field, check_values};
use abide_core::program::Rows;
use abide_core::{Array, DType, Error, Plan, Problem, Result, Session};

use crate::NAME;
use crate::blocking::block_on;
use crate::gpu::Gpu;
use crate::plain::PlainSession;
use crate::program::ProgramSession;

/// A session on a wgpu device, whose steps and transfers can be awaited.
///
/// The methods of [`Session`] block until they are done, which nothing may in a browser; the methods that end
/// in `_async` do the same for callers that await them. A future that is dropped before its end leaves values
/// of which nothing is known.
pub struct WgpuSession {
    inner: Inner,
    /// The whole problem, and what is noted of its steps, where a clock makes the scalars of the session within.
    clocked: Option<(Problem, Segmented)>,
}

/// The session of either kind of problem.
enum Inner {
    Plain(Box<PlainSession>),
    Program(Box<ProgramSession>),
}

impl From<PlainSession> for WgpuSession {
    fn from(session: PlainSession) -> Self {
        WgpuSession { inner: Inner::Plain(Box::new(session)), clocked: None }
    }
}

impl From<ProgramSession> for WgpuSession {
    fn from(session: ProgramSession) -> Self {
        WgpuSession { inner: Inner::Program(Box::new(session)), clocked: None }
    }
}

impl WgpuSession {
    /// Makes the session of a problem around that of its clock's plain problem.
    pub(crate) fn clocked(session: PlainSession, problem: &Problem, cut: Segmented) -> WgpuSession {
        WgpuSession { clocked: Some((problem.clone(), cut)), ..session.into() }
    }

    fn problem(&self) -> &Problem {
        if let Some((problem, _)) = &self.clocked {
            return problem;
        }
        match &self.inner {
            Inner::Plain(session) => &session.problem,
            Inner::Program(session) => &session.problem,
        }
    }

    /// Lets a run go on that a condition has ended.
    fn go_on(&mut self) {
        self.clocked.iter_mut().for_each(|(_, cut)| cut.go_on());
    }

    fn check_field(&self, field: usize) -> Result<()> {
        check_number("field", field, self.problem().program.fields().len())
    }

    /// Advances as [`Session::advance`] does, without blocking.
    pub async fn advance_async(&mut self, steps: u64) -> Result<f64> {
        if let (Inner::Plain(session), Some((_, cut))) = (&mut self.inner, &mut self.clocked) {
            return advance_clocked(session, cut, steps).await;
        }
        match &mut self.inner {
            Inner::Plain(_) if steps == 0 => Ok(0.0),
            Inner::Plain(session) => session.advance(steps).await,
            Inner::Program(session) => session.advance(steps).await,
        }
    }

    /// Reads as [`Session::read`] does, without blocking.
    pub async fn read_async(&mut self, field: usize) -> Result<Array> {
        self.check_field(field)?;
        match &mut self.inner {
            Inner::Plain(session) => session.read(field).await,
            Inner::Program(session) => session.read(field).await,
        }
    }

    /// Reads as [`Session::read_window`] does, without blocking.
    pub async fn read_window_async(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
    ) -> Result<Array> {
        self.check_field(field)?;
        match &mut self.inner {
            Inner::Plain(session) => session.read_window(field, low, high).await,
            Inner::Program(session) => session.read_window(field, low, high).await,
        }
    }

    /// Writes as [`Session::write`] does, without blocking.
    pub async fn write_async(&mut self, field: usize, values: &Array) -> Result<()> {
        self.check_field(field)?;
        check_field(self.problem(), field, values)?;
        self.go_on();
        match &mut self.inner {
            Inner::Plain(session) => session.write(field, values).await,
            Inner::Program(session) => session.write(field, values).await,
        }
    }

    /// Writes as [`Session::write_window`] does, without blocking.
    pub async fn write_window_async(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        self.check_field(field)?;
        check_values(self.problem(), field, low, high, values)?;
        self.go_on();
        match &mut self.inner {
            Inner::Plain(session) => session.write_window(field, [low, high], values).await,
            Inner::Program(session) => session.write_window(field, [low, high], values).await,
        }
    }

    /// Counts as [`Session::non_finite`] does, without blocking.
    pub async fn non_finite_async(&mut self, field: usize) -> Result<u64> {
        self.check_field(field)?;
        match &mut self.inner {
            Inner::Plain(session) => session.non_finite(field).await,
            Inner::Program(session) => session.non_finite(field).await,
        }
    }

    /// Returns what [`Session::scalars`] returns, without blocking.
    pub async fn scalars_async(&mut self) -> Result<Vec<f64>> {
        if let Some(scalars) = self.clocked.as_ref().and_then(|(_, cut)| cut.scalars()) {
            return Ok(scalars);
        }
        match &mut self.inner {
            Inner::Plain(_) => Ok(Vec::new()),
            Inner::Program(session) => session.scalars().await,
        }
    }

    /// Sets a parameter as [`Session::set_parameter`] does, without blocking.
    pub async fn set_parameter_async(&mut self, parameter: usize, value: f64) -> Result<()> {
        check_number("parameter", parameter, self.problem().parameters.len())?;
        if let Some((problem, cut)) = &mut self.clocked {
            problem.parameters[parameter] = value;
            cut.set_parameter(parameter, value)?;
        }
        match &mut self.inner {
            Inner::Plain(session) => session.set_parameter(parameter, value).await,
            Inner::Program(session) => session.set_parameter(parameter, value).await,
        }
    }
}

impl Session for WgpuSession {
    fn plan(&self) -> &Plan {
        match &self.inner {
            Inner::Plain(session) => &session.plan,
            Inner::Program(session) => &session.plan,
        }
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        block_on(self.advance_async(steps))
    }

    fn advance_phase(&mut self, turns: u64) -> Result<Turns> {
        match &mut self.inner {
            Inner::Program(session) => {
                let (turns, is_over, seconds) = block_on(session.turns(turns))?;
                Ok(Turns { turns, is_over, seconds })
            }
            Inner::Plain(session) => Err(Error::unsupported(
                session.plan.summary(),
                "its steps have no loops",
                "call Session::advance",
            )),
        }
    }

    fn time_step(&mut self) -> Result<Vec<LaunchTime>> {
        match &mut self.inner {
            Inner::Plain(_) => Ok(Vec::new()),
            Inner::Program(session) => block_on(session.time_step()),
        }
    }

    fn remaining(&self) -> u64 {
        if let Some((_, cut)) = &self.clocked {
            return cut.remaining();
        }
        match &self.inner {
            Inner::Plain(_) => 0,
            Inner::Program(session) => session.remaining,
        }
    }

    fn is_at_mark(&self) -> bool {
        match (&self.clocked, &self.inner) {
            (Some((_, cut)), _) => cut.is_at_mark(),
            (None, Inner::Program(session)) => session.is_at_mark(),
            (None, Inner::Plain(_)) => false,
        }
    }

    fn take_rows(&mut self) -> Result<Rows> {
        if let Some((_, cut)) = &mut self.clocked {
            return Ok(cut.take_rows());
        }
        Ok(match &mut self.inner {
            Inner::Plain(_) => Rows::default(),
            Inner::Program(session) => session.take_rows(),
        })
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        block_on(self.read_async(field))
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        block_on(self.read_window_async(field, low, high))
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        block_on(self.write_async(field, values))
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        block_on(self.write_window_async(field, low, high, values))
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        block_on(self.non_finite_async(field))
    }

    fn device_buffer(&self, field: usize) -> Option<Box<dyn Any>> {
        self.check_field(field).ok()?;
        let stored = match &self.inner {
            Inner::Plain(session) => session.stored(field),
            Inner::Program(session) => session.stored(field),
        };
        match stored.pieces {
            [whole] => Some(Box::new(whole.clone())),
            _ => None,
        }
    }

    fn scalars(&mut self) -> Result<Vec<f64>> {
        block_on(self.scalars_async())
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        block_on(self.set_parameter_async(parameter, value))
    }
}

/// Advances a session whose scalars a clock makes.
async fn advance_clocked(session: &mut PlainSession, cut: &mut Segmented, steps: u64) -> Result<f64> {
    let mut seconds = 0.0;
    cut.begin(steps);
    while let Some((now, halt)) = cut.segment(session.plan.depth)? {
        seconds += match cut.read() {
            [] => session.advance(now).await?,
            read => session.advance_by(now, read).await?,
        };
        cut.advanced(now);
        if halt == Halt::Note {
            let mut values = Vec::new();
            for probe in cut.probes() {
                let [low, high] = probe.window();
                let value = session.read_window(probe.field, low, high).await?;
                values.push(value.get(0).unwrap_or(f64::NAN));
            }
            let (scalars, mut values) = (cut.scalars().unwrap_or_default(), values.into_iter());
            cut.note(&scalars, |_| Ok(values.next().unwrap_or(f64::NAN)))?;
        }
    }
    Ok(seconds)
}

fn check_number(what: &str, number: usize, count: usize) -> Result<()> {
    if number < count {
        return Ok(());
    }
    Err(Error::limit(
        format!("number of a {what}, counted from 0"),
        number,
        format!("below {count}"),
        format!("name a {what} of the program"),
    ))
}

/// Checks that the device can compute with a type's values.
pub(crate) fn check_type(gpu: &Gpu, dtype: DType) -> Result<()> {
    if dtype == DType::F32 || gpu.adapter.f64 {
        return Ok(());
    }
    Err(Error::unsupported(
        format!("backend {}", NAME),
        format!("{} does not compute in f64 through {}", gpu.adapter.name, gpu.adapter.interface),
        "use --dtype f32, another adapter or another backend",
    ))
}
