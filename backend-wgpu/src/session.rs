//! A problem in progress, whose steps and transfers can be awaited.

use std::any::Any;

use abide_core::backend::{LaunchTime, check_field, check_values};
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
}

/// The session of either kind of problem.
enum Inner {
    Plain(Box<PlainSession>),
    Program(Box<ProgramSession>),
}

impl From<PlainSession> for WgpuSession {
    fn from(session: PlainSession) -> Self {
        WgpuSession { inner: Inner::Plain(Box::new(session)) }
    }
}

impl From<ProgramSession> for WgpuSession {
    fn from(session: ProgramSession) -> Self {
        WgpuSession { inner: Inner::Program(Box::new(session)) }
    }
}

impl WgpuSession {
    fn problem(&self) -> &Problem {
        match &self.inner {
            Inner::Plain(session) => &session.problem,
            Inner::Program(session) => &session.problem,
        }
    }

    fn check_field(&self, field: usize) -> Result<()> {
        check_number("field", field, self.problem().program.fields().len())
    }

    /// Advances as [`Session::advance`] does, without blocking.
    pub async fn advance_async(&mut self, steps: u64) -> Result<f64> {
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
        match &mut self.inner {
            Inner::Plain(_) => Ok(Vec::new()),
            Inner::Program(session) => session.scalars().await,
        }
    }

    /// Sets a parameter as [`Session::set_parameter`] does, without blocking.
    pub async fn set_parameter_async(&mut self, parameter: usize, value: f64) -> Result<()> {
        check_number("parameter", parameter, self.problem().parameters.len())?;
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

    fn time_step(&mut self) -> Result<Vec<LaunchTime>> {
        match &mut self.inner {
            Inner::Plain(_) => Ok(Vec::new()),
            Inner::Program(session) => block_on(session.time_step()),
        }
    }

    fn remaining(&self) -> u64 {
        match &self.inner {
            Inner::Plain(_) => 0,
            Inner::Program(session) => session.remaining,
        }
    }

    fn take_rows(&mut self) -> Result<Rows> {
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
