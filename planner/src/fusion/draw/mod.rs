//! Pictures of a program's graphs: the data-dependency graph and the order-of-execution graph, the groups of loops in
//! colours.

mod dot;
mod layers;
mod picture;
mod svg;
#[cfg(test)]
mod tests;

use super::graph::{Graph, Use};
use super::order::Order;

pub use picture::{Arrow, Picture, Placed};

/// A program's graphs with their loops in groups.
#[derive(Debug, Clone, Copy)]
pub struct Drawing<'a> {
    /// The data-dependency graph.
    pub graph: &'a Graph,
    /// The order-of-execution graph.
    pub order: &'a Order,
    /// The loops of each group, in the order in which groups run.
    pub groups: &'a [Vec<usize>],
    /// A line above the picture.
    pub title: &'a str,
}

/// A colour: red, green and blue.
type Colour = [u8; 3];

impl Drawing<'_> {
    /// Returns the group of each loop.
    fn group_of(&self) -> Vec<usize> {
        let mut of = vec![0; self.graph.loops.len()];
        for (number, group) in self.groups.iter().enumerate() {
            for &own in group {
                of[own] = number;
            }
        }
        of
    }

    /// Returns the colour of each loop: light, so that black text is read on it, the same for all of a group, and grey for
    /// a loop alone.
    fn colours(&self) -> Vec<Colour> {
        let mut colours = vec![[255; 3]; self.graph.loops.len()];
        let mut several = 0;
        for group in self.groups {
            let own = match group.len() {
                0 | 1 => [232; 3],
                _ => {
                    several += 1;
                    shade(several - 1)
                }
            };
            group.iter().for_each(|&number| colours[number] = own);
        }
        colours
    }

    /// Returns the numbers of the loops in the order in which groups run.
    fn in_order(&self) -> Vec<usize> {
        self.groups.iter().flatten().copied().collect()
    }
}

/// Returns a colour as the web writes it.
fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Returns a light colour that differs from those of the numbers before: hues a golden angle apart.
fn shade(number: usize) -> Colour {
    let hue = (200.0 + 137.508 * number as f64) % 360.0;
    [0.0, 8.0, 4.0].map(|offset: f64| {
        let position = (offset + hue / 30.0) % 12.0;
        let value = 0.83 - 0.13 * (position - 3.0).min(9.0 - position).clamp(-1.0, 1.0);
        (255.0 * value).round() as u8
    })
}

/// Returns the colour of an array by its use: the paper's red, yellow, blue and green, light.
fn tint(of: Use) -> &'static str {
    match of {
        Use::ReadOnly => "#f4a6a0",
        Use::ReadWrite => "#f5dd83",
        Use::Expandable => "#9fc3ee",
        Use::WriteOnly => "#a9d9a0",
    }
}
