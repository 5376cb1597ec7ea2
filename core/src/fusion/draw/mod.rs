//! Pictures of a program's graphs: the data-dependency graph and the order-of-execution graph, the groups of loops in
//! colours.

mod dot;
mod layers;
mod svg;
#[cfg(test)]
mod tests;

use super::graph::{Graph, Use};
use super::order::Order;

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

    /// Returns the colour of each group: light, so that black text is read on it, and grey for a loop alone.
    fn colours(&self) -> Vec<String> {
        let mut several = 0;
        let mut colour = |group: &Vec<usize>| match group.len() {
            0 | 1 => "#e8e8e8".to_owned(),
            _ => {
                several += 1;
                shade(several - 1)
            }
        };
        self.groups.iter().map(&mut colour).collect()
    }

    /// Returns the numbers of the loops in the order in which groups run.
    fn in_order(&self) -> Vec<usize> {
        self.groups.iter().flatten().copied().collect()
    }
}

/// Returns a light colour that differs from those of the numbers before: hues a golden angle apart.
fn shade(number: usize) -> String {
    let hue = (200.0 + 137.508 * number as f64) % 360.0;
    let channel = |offset: f64| {
        let position = (offset + hue / 30.0) % 12.0;
        let value = 0.83 - 0.13 * (position - 3.0).min(9.0 - position).clamp(-1.0, 1.0);
        (255.0 * value).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(0.0), channel(8.0), channel(4.0))
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
