//! The places where a field's values stand.

use serde::Serialize;

use super::levels::Levels;
use crate::domain::{Boundaries, Boundary, Shape, axis_name};
use crate::error::{Error, Result};

/// Where the values of a field or temporary stand: at the centres of cells, or on the nodes of some axes.
///
/// Node `i` of an axis is the low end of cell `i`, so a face normal to the axis lies between cells `i - 1`
/// and `i`. There are no half indices: taps count whole steps from the index of the value computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
pub struct Centring {
    /// Whether values stand on the nodes of each axis, slowest of the padded three first.
    nodes: [bool; 3],
    /// Whether the axes are still to be chosen by the number of axes of a program.
    every: bool,
    /// How often the cells are joined in pairs along each axis.
    level: u8,
}

/// The most levels of grids below the domain's own.
pub const MAX_LEVEL: u8 = 24;

impl Centring {
    /// At the centres of cells.
    pub const CELL: Centring = Centring { nodes: [false; 3], every: false, level: 0 };
    /// On the nodes of all axes.
    pub const NODE: Centring = Centring { nodes: [false; 3], every: true, level: 0 };

    /// On the faces normal to one of `dimensions` axes, counted from the slowest.
    pub fn face(dimensions: usize, axis: usize) -> Centring {
        let mut nodes = [false; 3];
        if let Some(on) = nodes.get_mut(3_usize.saturating_sub(dimensions) + axis) {
            *on = true;
        }
        Centring { nodes, ..Centring::CELL }
    }

    /// On the edges that lie along one of `dimensions` axes, counted from the slowest: on the nodes of all
    /// other axes.
    pub fn edge(dimensions: usize, axis: usize) -> Centring {
        let mut centring = Centring::NODE.of(dimensions);
        if let Some(on) = centring.nodes.get_mut(3_usize.saturating_sub(dimensions) + axis) {
            *on = false;
        }
        centring
    }

    /// Reads `cells`, `nodes`, or as in `x-faces` (the faces normal to an axis) and `x-edges` (those that lie along
    /// it), for a program of `dimensions` axes; behind them, as in `cells of level 2`, how coarse the grid is.
    pub fn parse(text: &str, dimensions: usize) -> Result<Centring> {
        if let Some((places, level)) = text.split_once(" of level ") {
            let level = level.parse().ok().filter(|level| *level <= MAX_LEVEL).ok_or_else(|| {
                let change = "write as in \"cells of level 2\"";
                Error::limit("level of a grid", level, format!("a whole number up to {MAX_LEVEL}"), change)
            })?;
            return Ok(Centring::parse(places, dimensions)?.on_level(level));
        }
        let names: Vec<&str> = (3 - dimensions.min(3)..3).map(axis_name).collect();
        let axis = |name: &str| names.iter().position(|known| *known == name);
        let known = match text.rsplit_once('-') {
            None if text == "cells" => Some(Centring::CELL),
            None if text == "nodes" => Some(Centring::NODE.of(dimensions)),
            Some((name, "faces")) => axis(name).map(|axis| Centring::face(dimensions, axis)),
            Some((name, "edges")) => axis(name).map(|axis| Centring::edge(dimensions, axis)),
            _ => None,
        };
        known.ok_or_else(|| {
            let on_axes = |kind: &str| names.iter().map(|axis| format!("{axis}-{kind}")).collect::<Vec<_>>();
            let all =
                [vec!["cells".to_owned(), "nodes".to_owned()], on_axes("faces"), on_axes("edges")].concat();
            Error::unknown("place of values", text, &all)
        })
    }

    /// Returns the words that [`Centring::parse`] reads.
    pub fn words(self, dimensions: usize) -> String {
        let axes = 3 - dimensions.min(3)..3;
        let on = |is_node: bool| -> Vec<usize> {
            axes.clone().filter(|&axis| self.nodes[axis] == is_node).collect()
        };
        let places = match (on(true).as_slice(), on(false).as_slice()) {
            ([], _) if !self.every => "cells".to_owned(),
            (_, []) | ([], _) => "nodes".to_owned(),
            (&[axis], _) => format!("{}-faces", axis_name(axis)),
            (_, &[axis, ..]) => format!("{}-edges", axis_name(axis)),
        };
        if self.level == 0 { places } else { format!("{places} of level {}", self.level) }
    }

    /// Returns the same centring with its axes chosen, for a program of `dimensions` axes.
    pub(super) fn of(self, dimensions: usize) -> Centring {
        match self.every {
            true => Centring { nodes: [0, 1, 2].map(|axis| axis + dimensions >= 3), every: false, ..self },
            false => self,
        }
    }

    /// Returns the same places on a coarser grid, on which as many times two cells are one along each axis. The last cell is alone
    /// where their number is odd.
    ///
    /// ```
    /// use abide_core::Shape;
    /// use abide_core::domain::{Boundaries, Boundary};
    /// use abide_core::program::Centring;
    ///
    /// let shape = Shape::new(&[5, 8])?;
    /// assert_eq!(Centring::CELL.on_level(2).extents(&shape, &Boundaries::all(Boundary::Fixed)), [1, 2, 2]);
    /// # Ok::<(), abide_core::Error>(())
    /// ```
    pub fn on_level(self, level: u8) -> Centring {
        Centring { level: level.min(MAX_LEVEL), ..self }
    }

    /// Returns how many times coarser the grid is than the domain's: 0 on the domain's own.
    pub fn level(self) -> u8 {
        self.level
    }

    /// Returns how an index on this grid becomes one on another.
    pub fn to(self, other: Centring) -> Levels {
        Levels(other.level as i8 - self.level as i8)
    }

    /// Returns whether values stand on the nodes of an axis of the padded three.
    pub fn is_on_nodes(self, axis: usize) -> bool {
        self.nodes[axis]
    }

    /// Returns whether values stand on the nodes of an axis of `dimensions`, counted from the slowest.
    pub(super) fn on_nodes_of(self, dimensions: usize, axis: usize) -> bool {
        self.nodes.get(3_usize.saturating_sub(dimensions) + axis).copied().unwrap_or(false)
    }

    /// Returns whether values stand at the centres of cells along every axis.
    pub fn is_cell(self) -> bool {
        self == Centring::CELL
    }

    /// Returns the extents of the values on a domain: along an axis on whose nodes they stand, one more than
    /// there are cells, unless the axis is periodic.
    pub fn extents(self, shape: &Shape, boundaries: &Boundaries) -> [usize; 3] {
        let cells = shape.padded();
        [0, 1, 2].map(|axis| {
            let one_more = self.nodes[axis] && boundaries.0[axis][0] != Boundary::Periodic;
            cells[axis].div_ceil(1 << self.level) + usize::from(one_more)
        })
    }
}

impl std::fmt::Display for Centring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let axes: Vec<&str> = (0..3).filter(|&axis| self.nodes[axis]).map(axis_name).collect();
        match axes.as_slice() {
            _ if self.every => f.write_str("nodes"),
            [] => f.write_str("cells"),
            [axis] => write!(f, "faces normal to {axis}"),
            axes => write!(f, "nodes of {}", axes.join(" and ")),
        }?;
        match self.level {
            0 => Ok(()),
            level => write!(f, " of level {level}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_every_centring() {
        for dimensions in 1..=3 {
            let axes = 0..dimensions;
            let coarse = Centring::face(dimensions, 0).on_level(3);
            let on_axes =
                axes.flat_map(|axis| [Centring::face(dimensions, axis), Centring::edge(dimensions, axis)]);
            for centring in on_axes.chain([Centring::CELL, Centring::NODE.of(dimensions), coarse]) {
                let words = centring.words(dimensions);
                assert_eq!(Centring::parse(&words, dimensions), Ok(centring), "{words}");
            }
            for bad in ["", "cell", "x-cells", "faces", "w-faces", "-faces"] {
                let words = Centring::parse(bad, dimensions).unwrap_err().to_string();
                assert!(words.contains("x-faces") && words.contains("cells"), "{words}");
            }
        }
        assert!(Centring::parse("y-faces", 1).is_err());
        for bad in ["cells of level 25", "cells of level x", "cell of level 1"] {
            assert!(Centring::parse(bad, 2).is_err(), "{bad}");
        }
    }
}
