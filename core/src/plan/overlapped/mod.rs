//! Overlapped tiling: each launch advances several steps, and tiles recompute the halo that they share (Meng
//! and Skadron, ICS'09).
//!
//! A workgroup owns a *window*: a tile of the domain with a halo around it. Each of its threads keeps a block
//! of cells in registers for as many steps as the depth, and gives the block's edges to its neighbours
//! through workgroup memory ([`Exchange`]). In each step, cells near the window's sides go wrong as far as
//! the step reaches; when the halo is used up, the tile is written. An axis that a window holds *whole* needs
//! no halo: a domain that fits into one window stays there for hundreds of steps.

mod description;
mod exchange;

use serde::{Deserialize, Serialize};

use crate::program::{Problem, Program};

pub use self::exchange::{Exchange, Given, Source, refreshes};

/// The free choices of windows. Triples are along the three axes, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configuration {
    /// Steps per dispatch.
    pub depth: usize,
    /// Threads of a window.
    pub threads: [usize; 3],
    /// Cells per thread.
    pub cells: [usize; 3],
    /// Whether new values have slots of their own, so that a stage needs one barrier instead of two.
    pub double: bool,
}

/// Windows that advance several steps per dispatch. Triples are along the three axes, slowest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overlapped {
    /// The free choices.
    pub configuration: Configuration,
    /// Axes that a window holds whole.
    pub whole: [bool; 3],
    /// Cells of a window below and above its tile: halo, or ghost cells of an axis that is held whole.
    pub halo: [[usize; 2]; 3],
    /// Cells of a tile.
    pub tile: [usize; 3],
    /// Windows of the domain.
    pub blocks: [usize; 3],
    /// Bytes of workgroup memory of a window.
    pub shared_bytes: usize,
    /// The share of the computed cells that are kept; less than 1 because windows overlap. It is the valid
    /// portion V of EBISU (eq. 9).
    pub valid: f64,
}

impl Overlapped {
    /// Returns the cells of a window along the three axes, slowest first.
    pub fn window(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.configuration.threads[axis] * self.configuration.cells[axis])
    }

    /// Returns the threads of a window.
    pub fn threads_per_block(&self) -> usize {
        self.configuration.threads.iter().product()
    }

    /// Checks whether ghost cells are refreshed from slots along any axis.
    pub fn refreshes(&self, problem: &Problem) -> bool {
        let radius = problem.program.radius();
        (0..3).any(|axis| refreshes(problem, axis, self.whole[axis], radius[axis]))
    }

    /// Returns the exchange among a window's threads, for the program simplified for the problem's type.
    pub fn exchange(&self, problem: &Problem, simplified: &Program) -> Exchange {
        let Configuration { threads, cells, double, .. } = self.configuration;
        Exchange::of(simplified, threads, cells, self.refreshes(problem), double)
    }
}
