//! What launches the steps of a session, whatever its schedule.

use abide_core::Result;

use crate::memory::Fields;

/// A way to launch steps.
pub(crate) trait Launcher: Send {
    /// The most steps of one launch.
    fn most_steps(&self) -> u64;

    /// What must be done before `steps` steps can be launched and is no part of the run: the clock does not
    /// see it.
    fn prepare(&mut self, fields: &Fields, parameters: &mut [u8], steps: u64) -> Result<()>;

    /// Puts `steps` steps on the fields' stream, and notes in which buffers they leave the fields.
    fn launch(&mut self, fields: &mut Fields, parameters: &mut [u8], steps: u64) -> Result<()>;
}
