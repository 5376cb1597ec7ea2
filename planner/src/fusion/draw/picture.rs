//! The order-of-execution graph laid out in layers, for whatever draws it.

use super::Drawing;
use super::layers::layered;
use crate::fusion::order::{Cause, Precedence};

/// The order-of-execution graph with a place for everything; y grows downwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The loops, by their numbers.
    pub loops: Vec<Placed>,
    /// The precedences that no path by way of other loops says.
    pub arrows: Vec<Arrow>,
    /// The extents of the whole along x and y.
    pub size: [f64; 2],
}

impl Picture {
    /// The height of a loop's box.
    pub const HEIGHT: f64 = 20.0;
}

/// A loop's box.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// The loop's number and name.
    pub title: String,
    /// The box's centre.
    pub centre: [f64; 2],
    /// The box's width; all are [`Picture::HEIGHT`] high.
    pub width: f64,
    /// Red, green and blue: the same for all loops of a group, and grey for a loop alone.
    pub colour: [u8; 3],
    /// The loop's group, in the order in which groups run.
    pub group: usize,
}

/// An arrow from a loop to one that waits for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrow {
    /// The loop that goes first.
    pub from: usize,
    /// The loop that waits.
    pub to: usize,
    /// The points that it runs through, from the lower side of one box to the upper side of the other. Between two it is
    /// a cubic curve that leaves and arrives upright, halfway in height.
    pub points: Vec<[f64; 2]>,
    /// What it waits for, as in `RAW pressure, WAR energy0`.
    pub causes: String,
}

impl Arrow {
    /// Returns the four control points of each curve (Bézier).
    pub fn curves(&self) -> impl Iterator<Item = [[f64; 2]; 4]> {
        self.points.windows(2).map(|pair| {
            let [from, to] = [pair[0], pair[1]];
            let middle = (from[1] + to[1]) / 2.0;
            [from, [from[0], middle], [to[0], middle], to]
        })
    }
}

impl Drawing<'_> {
    /// Returns for what a loop waits, in words.
    pub(super) fn causes(&self, edge: &Precedence) -> String {
        let cause = |&(array, cause): &(usize, Cause)| {
            format!("{} {}", cause.name(), self.graph.arrays[array].label())
        };
        edge.causes.iter().map(cause).collect::<Vec<_>>().join(", ")
    }

    /// Lays the order of execution out for boxes as wide as this says of each title.
    pub fn picture(&self, width: impl Fn(&str) -> f64) -> Picture {
        let titles: Vec<String> = (0..self.graph.loops.len()).map(|own| self.graph.title(own)).collect();
        let widths: Vec<f64> = titles.iter().map(|title| width(title)).collect();
        let edges: Vec<(usize, usize)> = self.order.needed().map(|edge| (edge.from, edge.to)).collect();
        let layout = layered(&widths, &edges);
        let arrow = |(edge, mut points): (&Precedence, Vec<[f64; 2]>)| {
            if let [first, .., last] = &mut points[..] {
                first[1] += Picture::HEIGHT / 2.0;
                last[1] -= Picture::HEIGHT / 2.0;
            }
            Arrow { from: edge.from, to: edge.to, points, causes: self.causes(edge) }
        };
        let (groups, colours) = (self.group_of(), self.colours());
        let placed = |(own, (title, width)): (usize, (String, f64))| Placed {
            title,
            centre: layout.nodes[own],
            width,
            colour: colours[own],
            group: groups[own],
        };
        Picture {
            loops: titles.into_iter().zip(widths).enumerate().map(placed).collect(),
            arrows: self.order.needed().zip(layout.routes.clone()).map(arrow).collect(),
            size: layout.size,
        }
    }
}
