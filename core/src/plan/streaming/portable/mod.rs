//! 2.5-D streaming with temporal blocking, the portable form: for devices without a barrier of all workgroups
//! (Nguyen et al., SC'10).
//!
//! A workgroup owns a *window* across the swept axis, each of its threads a block of a plane's cells, and
//! sweeps a *share* of the planes. The stages of `depth` steps are *levels*, one behind another. Each level
//! turns the plane that arrives into a plane of its result and carries partial sums ([`Carry`]), so that it
//! reads neighbours in the newest plane only. Levels work a plane apart, from the last to the first, and one
//! barrier per plane serves all. Where a window is one subgroup whose threads can shuffle, levels work from
//! the first to the last without a barrier. Windows overlap by the reach of all steps, and only along the two
//! axes of a plane. The warp form for CUDA is [`WarpStreaming`](super::warp::WarpStreaming).

mod description;

use serde::{Deserialize, Serialize};

use super::carry::{Carry, Slot};
use crate::domain::Axes;
use crate::expr::{Node, Tap};
use crate::plan::overlapped::Exchange;

/// The free choices of planes. Pairs are (slower, faster) axis of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Configuration {
    /// Steps per dispatch.
    pub depth: usize,
    /// Threads of a window.
    pub threads: [usize; 2],
    /// Cells of a plane that a thread owns.
    pub cells: [usize; 2],
    /// Planes by which loads precede their use.
    pub ahead: usize,
    /// The way in which threads give each other cells of a plane.
    pub handover: Handover,
    /// Parts into which the planes of a window are cut.
    pub shares: usize,
}

/// The way in which the threads of a window give each other cells of a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Handover {
    /// Through workgroup memory.
    Slots,
    /// Through two places of workgroup memory, of which one is read while the other is written.
    DoubleSlots,
    /// By shuffles: the window is one row of threads, which are a subgroup. For 32-bit values alone. As there
    /// is no barrier to save, a level takes what the level before it has just made.
    Shuffles,
}

impl Handover {
    /// All handovers, by increasing barriers per plane.
    pub const ALL: [Handover; 3] = [Handover::Shuffles, Handover::DoubleSlots, Handover::Slots];

    /// Returns the barriers of a workgroup per plane.
    pub fn barriers(self) -> usize {
        match self {
            Handover::Slots => 2,
            Handover::DoubleSlots => 1,
            Handover::Shuffles => 0,
        }
    }

    /// Returns the planes by which a level is behind the level before it, beside those for which its formula
    /// waits.
    pub fn lag(self) -> usize {
        usize::from(self != Handover::Shuffles)
    }

    /// Returns the copies of the cells that threads put into workgroup memory.
    pub fn copies(self) -> usize {
        match self {
            Handover::Slots => 1,
            Handover::DoubleSlots => 2,
            Handover::Shuffles => 0,
        }
    }
}

/// Planes that stream through several steps per dispatch. Pairs are (slower, faster) axis of a plane; triples
/// begin with the swept axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PortableStreaming {
    /// The free choices.
    pub configuration: Configuration,
    /// Cells below and above the kept ones that go wrong where the domain goes on beyond a window or share.
    pub margin: [[usize; 2]; 3],
    /// Cells below and above the domain that the outermost windows or shares hold.
    pub lead: [[usize; 2]; 3],
    /// Windows of the domain along the two axes of a plane.
    pub tiles: [usize; 2],
    /// Rows and columns of windows that lie at a side of the domain where it does not go on.
    pub sides: [usize; 2],
    /// Parts into which the planes of windows at a side are cut: these windows ask the boundary and take
    /// longer.
    pub side_shares: usize,
    /// Cells of a row that are loaded and stored at once.
    pub lanes: usize,
    /// Planes by which the result is behind the arriving plane.
    pub behind: usize,
    /// Values that a thread carries from plane to plane in registers.
    pub carried: usize,
    /// Bytes of workgroup memory of a window.
    pub shared_bytes: usize,
    /// The share of the computed cells that are kept; less than 1 because windows and shares overlap. It is
    /// the valid portion V of EBISU (eq. 9).
    pub valid: f64,
}

impl PortableStreaming {
    /// Returns the cells of a window's plane along its two axes.
    pub fn window(&self) -> [usize; 2] {
        std::array::from_fn(|axis| self.configuration.threads[axis] * self.configuration.cells[axis])
    }

    /// Returns the cells of a plane that a window in the middle keeps along the two axes.
    pub fn tile(&self) -> [usize; 2] {
        std::array::from_fn(|axis| self.window()[axis].saturating_sub(self.margin[axis + 1].iter().sum()))
    }

    /// Returns the threads of a workgroup.
    pub fn threads_per_block(&self) -> usize {
        self.configuration.threads.iter().product()
    }

    /// Returns the number of windows that lie at no side, and of those that do.
    pub fn windows(&self) -> [usize; 2] {
        count_windows(self.tiles, self.sides)
    }

    /// Returns the workgroups of a dispatch.
    pub fn workgroups(&self) -> usize {
        let [middle, sides] = self.windows();
        middle * self.configuration.shares + sides * self.side_shares
    }
}

/// A stage as a level sees it: cut by plane of arrival, with the cells that the level's threads give each
/// other of the arriving plane.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrival {
    /// The parts, and the values carried between them.
    pub carry: Carry,
    /// Cells of the arriving plane that the stage reads, as offsets from a cell; 0 along the swept axis.
    pub taps: Vec<Tap>,
    /// The cells that threads give each other.
    pub exchange: Exchange,
}

impl Arrival {
    /// Collects the cells of the stages of a step, for threads and cells of a plane.
    pub fn all(carries: &[Carry], axes: Axes, threads: [usize; 2], cells: [usize; 2]) -> Vec<Arrival> {
        carries.iter().map(|carry| Arrival::of(carry.clone(), axes, threads, cells)).collect()
    }

    fn of(carry: Carry, axes: Axes, threads: [usize; 2], cells: [usize; 2]) -> Arrival {
        let fields = carry.values.len();
        let mut taps: Vec<Tap> = Vec::new();
        let formula = carry.nodes.iter().filter_map(|node| match node {
            Node::Tap(tap) => {
                let [_, slower, faster] = axes.order(tap.offset);
                Some((tap.field, [slower, faster]))
            }
            _ => None,
        });
        let carried = carry.slots.iter().filter_map(|slot| match slot {
            Slot::Raw { field, across, .. } => Some((*field, *across)),
            Slot::Node { .. } => None,
        });
        for (field, [slower, faster]) in formula.chain(carried) {
            let tap = Tap { field, offset: axes.padded([0, slower, faster]) };
            if !taps.contains(&tap) {
                taps.push(tap);
            }
        }
        let across = |pair: [usize; 2]| axes.padded([1, pair[0], pair[1]]);
        let exchange = Exchange::at_once(taps.iter().copied(), fields, across(threads), across(cells));
        Arrival { carry, taps, exchange }
    }

    /// Returns the planes by which the stage's result is behind the arriving plane.
    pub fn delay(&self) -> usize {
        self.carry.planes[1].unsigned_abs() as usize
    }
}

/// Returns the number of windows that lie at no side, and of those that do.
pub fn count_windows(tiles: [usize; 2], sides: [usize; 2]) -> [usize; 2] {
    let middle = (tiles[0] - sides[0]) * (tiles[1] - sides[1]);
    [middle, tiles[0] * tiles[1] - middle]
}
