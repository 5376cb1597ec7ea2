//! The launchers of sessions' steps, one per schedule.

use abide_core::Result;

use crate::memory::Fields;
use crate::parameters::Parameters;
use crate::streaming::PutPlanes;

/// A way to launch steps.
pub(crate) trait Launcher: Send {
    /// Returns the most steps of one launch.
    fn most_steps(&self) -> u64;

    /// Prepares the launch of `steps` steps: work that is no part of the run and that the clock does not see.
    fn prepare(&mut self, fields: &Fields, parameters: &mut Parameters, steps: u64) -> Result<()>;

    /// Has passes store planes into the slabs of other devices, or into none; returns whether their kernel does.
    fn store_to_neighbours(&mut self, given: Option<PutPlanes>) -> bool {
        let _ = given;
        false
    }

    /// Puts `steps` steps on the fields' stream, and notes in which buffers they leave the fields, and what varies behind them.
    fn launch(&mut self, fields: &mut Fields, parameters: &mut Parameters, steps: u64) -> Result<()>;
}
