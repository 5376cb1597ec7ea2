//! The names by which bodies of kernels that go from plane to plane are told whether any of their cells makes a choice that few
//! cells make.
//!
//! - `CHOOSES`: some cell of the plane that is finished makes a choice at a single plane.
//! - `AT_S`, `AT_Y`, `AT_X`: the cells may lie at a side of the domain along that axis. Windows that do not begin or end where
//!   the domain does hold no outermost cell, or hold it so near to their own edge that a tap beyond the domain reaches beyond
//!   the window: such cells are not kept.

use abide_core::domain::Axes;
use abide_core::expr::Cells;
use abide_core::{Boundary, Problem, Stage};

use crate::emit::Told;

/// The most outermost cells of which a thread knows at which of its own they begin.
const MOST_TOLD: f64 = 6.0;

/// The part of a stage's formula that the arrival of a plane computes.
#[derive(Clone, Copy)]
pub(super) struct Few {
    axes: Axes,
    /// The cells of each axis, and whether it is periodic: swept, slower, faster.
    extents: [usize; 3],
    wraps: [bool; 3],
    /// How many outermost cells a body knows at each side of the axes.
    known: [[usize; 2]; 3],
    /// The offset of the plane from the cell's.
    plane: i32,
    /// Whether `CHOOSES` is of the plane that is finished now.
    pub chooses: bool,
}

impl Few {
    pub(super) fn new(problem: &Problem, stage: &Stage, axes: Axes, plane: i32, chooses: bool) -> Few {
        let taps = |axis: usize| stage.dag.taps().map(move |tap| tap.offset[axis]);
        let reach = |axis: usize| {
            let (low, high) = (taps(axis).min().unwrap_or(0), taps(axis).max().unwrap_or(0));
            [low.min(0).unsigned_abs() as usize, high.max(0) as usize]
        };
        let radius = problem.program.radius();
        let known = axes.0.map(|axis| match axis == axes.0[0] {
            // Planes near the ends have a body of their own, as far from them as the program's radius.
            true => [radius[axis]; 2],
            false => reach(axis).map(|reach| reach.max(1).min(radius[axis])),
        });
        let wraps = problem.boundaries.0.map(|sides| sides[0] == Boundary::Periodic);
        let (extents, wraps) = (axes.order(problem.shape.padded()), axes.order(wraps));
        Few { axes, extents, wraps, known, plane, chooses }
    }

    /// Returns the axis along which planes arrive.
    pub(super) fn swept(&self) -> usize {
        self.axes.0[0]
    }

    /// Returns how a body asks for a choice in these cells of an axis; `None` where each cell compares its index.
    pub(super) fn told(&self, axis: usize, cells: Cells) -> Option<Told> {
        let place = self.axes.0.iter().position(|&own| own == axis)?;
        if place == 0 && self.chooses && matches!(cells, Cells::At(_)) {
            return Some(Told { by: "CHOOSES", instead: None });
        }
        // Of the outermost cells at a side, their number.
        let known = |side: usize| {
            let outermost = cells.outermost(side, self.extents[place]);
            // A plane before the last ones arrives while other cells than those at the end are on their way.
            let is_there = place > 0 || side == 0 || self.plane >= 0;
            outermost.filter(|&count| is_there && count <= self.known[place][side] as f64)
        };
        let (side, count) = (0..2).find_map(|side| Some((side, known(side)?)))?;
        if self.wraps[place] {
            return None;
        }
        // A thread knows at which of its own cells the domain ends.
        let is_whole = place > 0 && !matches!(cells, Cells::At(_)) && (1.0..=MOST_TOLD).contains(&count);
        let name = ["first", "last"][side];
        let instead = is_whole.then(|| format!("u.template {name}<{axis}, {}>()", count.ceil() as usize));
        Some(Told { by: ["AT_S", "AT_Y", "AT_X"][place], instead })
    }
}
