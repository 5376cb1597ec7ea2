//! What an observer may do between two epochs of a run.

use std::path::Path;

use super::values;
use crate::backend::{Progress, Session};
use crate::program::{Problem, Rows};
use crate::{Array, Result, files, io};

/// A simulation between two epochs of [`Simulation::run_with`](crate::Simulation::run_with).
pub struct Running<'a> {
    pub(super) problem: &'a mut Problem,
    pub(super) session: &'a mut dyn Session,
    pub(super) step: u64,
    pub(super) progress: Progress,
    pub(super) pictured: &'a mut Option<io::Range>,
}

impl Running<'_> {
    /// Returns the progress of the run.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Returns the steps done since the start, those before a checkpoint included.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Says what range of values the pictures of this run have shown so far, as [`Simulation::set_pictured`](crate::Simulation::set_pictured) does.
    pub fn set_pictured(&mut self, range: Option<io::Range>) {
        *self.pictured = range;
    }

    /// Returns the maximum of `own` over all processes that advance the domain; in a single process, `own`. With it,
    /// all processes decide alike on a signal or on the clock.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) where another process is gone or has given up.
    pub fn most(&mut self, own: f64) -> Result<f64> {
        self.session.most(own)
    }

    /// Returns the names and the current values of the computed scalars.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::scalars`](crate::Simulation::scalars).
    pub fn scalars(&mut self) -> Result<Vec<(String, f64)>> {
        values::scalars(self.problem, self.session)
    }

    /// Returns the current value of a computed scalar.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::scalar`](crate::Simulation::scalar).
    pub fn scalar(&mut self, name: &str) -> Result<f64> {
        values::scalar(self.problem, self.session, name)
    }

    /// Returns the rows recorded since the last call, as [`Simulation::records`](crate::Simulation::records) does.
    ///
    /// # Errors
    ///
    /// The [device's](crate::Simulation#errors-of-the-device).
    pub fn records(&mut self) -> Result<Rows> {
        self.session.take_rows()
    }

    /// Reads a field's values.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::field`](crate::Simulation::field).
    pub fn field(&mut self, name: &str) -> Result<Array> {
        values::read(self.problem, self.session, name)
    }

    /// Reads fields, as [`Simulation::snapshot`](crate::Simulation::snapshot) does.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::snapshot`](crate::Simulation::snapshot).
    pub fn snapshot(&mut self, names: &[String]) -> Result<io::Snapshot<'static>> {
        values::snapshot(self.problem, self.session, self.step, names)
    }

    /// Reads the values of a field in the box `low..high`, slowest of three axes first.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::window`](crate::Simulation::window).
    pub fn window(&mut self, name: &str, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        self.session.read_window(self.problem.program.field(name)?, low, high)
    }

    /// Returns a field's buffer on the device, as [`Simulation::device_buffer`](crate::Simulation::device_buffer) does.
    pub fn device_buffer<B: 'static>(&self, name: &str) -> Option<B> {
        values::device_buffer(self.problem, self.session, name)
    }

    /// Returns a field's buffer for writing, as [`Simulation::device_buffer_mut`](crate::Simulation::device_buffer_mut) does.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::device_buffer_mut`](crate::Simulation::device_buffer_mut).
    pub fn device_buffer_mut<B: 'static>(&mut self, name: &str) -> Result<Option<B>> {
        values::device_buffer_mut(self.problem, self.session, name)
    }

    /// Counts the values of all fields that are NaN or infinite, where they lie.
    ///
    /// # Errors
    ///
    /// The [device's](crate::Simulation#errors-of-the-device).
    pub fn non_finite(&mut self) -> Result<u64> {
        values::non_finite(self.problem, self.session)
    }

    /// Replaces a field's values.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::write`](crate::Simulation::write).
    pub fn write(&mut self, name: &str, values: &Array) -> Result<()> {
        values::write(self.problem, self.session, name, values)
    }

    /// Replaces the values of a field in the box `low..high`, slowest of three axes first.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::write_window`](crate::Simulation::write_window).
    pub fn write_window(
        &mut self,
        name: &str,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        values::write_window(self.problem, self.session, name, [low, high], values)
    }

    /// Sets a parameter for the steps that follow.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::set_parameters`](crate::Simulation::set_parameters).
    pub fn set_parameter(&mut self, name: &str, value: f64) -> Result<()> {
        values::set_parameters(self.problem, self.session, &[(name, value)])
    }

    /// Writes a checkpoint from which [`Simulation::resume`](crate::Simulation::resume) goes on to the bit. An error leaves an earlier
    /// file as it was, and the run can go on.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::checkpoint`](crate::Simulation::checkpoint).
    pub fn checkpoint(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let put = io::Staged::replace_durably;
        files::write_checkpoint(self.problem, self.session, self.step, *self.pictured, path.as_ref(), put)
    }

    /// Writes a field to a `.npy` file, as [`Simulation::write_npy`](crate::Simulation::write_npy) does.
    ///
    /// # Errors
    ///
    /// Those of [`Simulation::write_npy`](crate::Simulation::write_npy).
    pub fn write_npy(&mut self, name: &str, path: impl AsRef<Path>) -> Result<Option<io::Staged>> {
        files::write_npy(self.problem, self.session, name, path.as_ref())
    }
}
