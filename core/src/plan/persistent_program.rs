//! A program that is not plain as one persistent kernel: all steps of a launch in blocks that wait for each other, where
//! a launch per stage or group would wait for the whole device.

use serde::Serialize;

use super::description::{Describe, Line};
use super::stepwise::Stepwise;
use super::{Plan, Schedule};

/// All steps of a launch in one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PersistentProgram {
    /// The stages' tiles and groups, as for a launch each.
    pub tiles: Stepwise,
    /// The number of blocks, all of them on the device at once.
    pub blocks: usize,
    /// Blocks of a multiprocessor.
    pub blocks_per_multiprocessor: usize,
    /// Bytes of shared memory that a block asks for at its launch: the most of any group.
    pub shared_bytes: usize,
}

impl PersistentProgram {
    /// Returns the threads of a block.
    pub fn threads(&self) -> usize {
        self.tiles.threads_per_block()
    }
}

impl Describe for PersistentProgram {
    fn summary(&self, plan: &Plan) -> String {
        let tiles = Describe::summary(&self.tiles, plan);
        let tiles = tiles.strip_prefix("stepwise, ").unwrap_or(&tiles);
        format!("persistent, {} blocks, {tiles}", self.blocks)
    }

    fn lines(&self, plan: &Plan) -> Vec<Line> {
        let mut lines = vec![
            (
                "blocks",
                format!(
                    "{} of {} threads, {} per multiprocessor, all on the device at once; {} bytes of shared memory each",
                    self.blocks,
                    self.threads(),
                    self.blocks_per_multiprocessor,
                    self.shared_bytes
                ),
            ),
            ("waits", "by flags, for the blocks whose tiles a block's taps reach".to_owned()),
        ];
        lines.extend(Describe::lines(&self.tiles, plan));
        lines
    }
}

impl Plan {
    /// Returns the persistent kernel of a program that is not plain.
    pub fn persistent_program(&self) -> Option<&PersistentProgram> {
        match &self.schedule {
            Schedule::PersistentProgram(persistent) => Some(persistent),
            _ => None,
        }
    }

    /// Returns the tiles and groups of stages, whether each is launched or all are one persistent kernel.
    pub fn stages(&self) -> Option<&Stepwise> {
        self.persistent_program().map(|persistent| &persistent.tiles).or_else(|| self.stepwise())
    }
}
