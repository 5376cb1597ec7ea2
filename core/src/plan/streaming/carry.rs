//! The values that a stage carries from plane to plane when its input arrives one plane at a time.
//!
//! A formula's nodes are computed as early as their taps allow: a node whose farthest tap along the swept
//! axis is at `d` is computed for the cell in the plane `d` before the one that arrives. If later planes
//! still need its value, a slot carries the value on. A linear stencil of radius r thus carries 2r partial
//! sums and no cell twice. A slot of a *raw* value holds a cell of an earlier plane itself, shared by all
//! outputs that still need it.

use crate::domain::Axes;
use crate::expr::{Constant, Id, Node, Tap, choice};
use crate::program::Stage;

/// A place that holds one value per cell between two planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The value of a node for the cell whose plane at offset `cut` has arrived last.
    Node {
        /// The node.
        node: Id,
        /// The offset, from the cell's own, of the plane that arrived last.
        cut: i32,
    },
    /// A cell of the plane that arrived `age` planes before the last one; `across` is its offset in the plane
    /// (slower, faster axis).
    Raw {
        /// The field.
        field: u16,
        /// Planes since the cell's plane arrived.
        age: i32,
        /// The cell's offset in its plane.
        across: [i32; 2],
    },
}

/// A stage cut into one part for each plane on which its formula taps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carry {
    /// The formula's nodes, and behind them a tap of the cell itself for every field that the stage passes on
    /// unchanged.
    pub nodes: Vec<Node>,
    /// For each field of the program, the node that is its new value.
    pub values: Vec<Id>,
    /// The first and the last plane for which a part waits, by their offset from the cell's; the last is 0 or
    /// more.
    pub planes: [i32; 2],
    /// For each node, the plane after whose arrival it can be computed; `None` for one that taps nothing.
    pub ready: Vec<Option<i32>>,
    /// The slots of the values that are carried.
    pub slots: Vec<Slot>,
}

impl Carry {
    /// Cuts the stages of a step of a program that has `fields` fields.
    pub fn all(stages: &[Stage], fields: usize, axes: Axes) -> Vec<Carry> {
        stages.iter().map(|stage| Carry::of(stage, fields, axes)).collect()
    }

    /// Cuts a stage of a program that has `fields` fields.
    pub fn of(stage: &Stage, fields: usize, axes: Axes) -> Carry {
        Carry::passing(stage, &vec![true; fields], axes)
    }

    /// Cuts a stage that passes on those fields of a program alone that are so said; the others are 0 behind it. Taps of fields
    /// that the program does not have are of marks ([`Masked`](super::masks::Masked)), which no slot carries.
    pub fn passing(stage: &Stage, passes: &[bool], axes: Axes) -> Carry {
        let mut nodes = stage.dag.nodes.clone();
        let values: Vec<Id> = (0..passes.len())
            .map(|field| match stage.writes.iter().position(|&written| written == field) {
                Some(output) => stage.dag.outputs[output],
                None => {
                    let here = match passes[field] {
                        true => Node::Tap(Tap { field: field as u16, offset: [0; 3] }),
                        false => Node::Const(Constant::new(0.0)),
                    };
                    nodes.iter().position(|&node| node == here).unwrap_or_else(|| {
                        nodes.push(here);
                        nodes.len() - 1
                    }) as Id
                }
            })
            .collect();
        let mut ready: Vec<Option<i32>> = Vec::with_capacity(nodes.len());
        for &node in &nodes {
            ready.push(match node {
                Node::Tap(tap) => Some(axes.order(tap.offset)[0]),
                other => other.operands().filter_map(|operand| ready[operand as usize]).max(),
            });
        }
        postpone(&nodes, &values, &mut ready, axes);
        let arrivals = || ready.iter().flatten().copied();
        let planes = [arrivals().min().unwrap_or(0).min(0), arrivals().max().unwrap_or(0).max(0)];
        let mut carry = Carry { nodes, values, planes, ready, slots: Vec::new() };
        carry.slots = carry.find_slots(axes);
        carry
    }

    /// Returns the slot of a node for the cell whose plane at offset `cut` arrived last.
    pub fn slot(&self, node: Id, cut: i32, axes: Axes) -> Option<usize> {
        let wanted = self.slot_of(node, cut, axes);
        self.slots.iter().position(|&slot| slot == wanted)
    }

    /// Returns the slot that carries a node which an earlier plane made ready, when the plane at offset
    /// `plane` from the cell arrives.
    pub fn known(&self, node: Id, plane: i32, axes: Axes) -> Option<usize> {
        let ready = self.ready[node as usize]?;
        (ready < plane).then(|| self.slot(node, plane - 1, axes)).flatten()
    }

    /// Returns the nodes that the arrival of the plane at offset `plane` from the cell makes, and the slots
    /// of those carried on. The nodes are the new values, if it is the last plane, and then those carried on.
    pub fn wanted(&self, plane: i32) -> (Vec<Id>, Vec<usize>) {
        let mut wanted = if plane == self.planes[1] { self.values.clone() } else { Vec::new() };
        let mut kept = Vec::new();
        for (slot, what) in self.slots.iter().enumerate() {
            if let Slot::Node { node, cut } = *what
                && cut == plane
            {
                wanted.push(node);
                kept.push(slot);
            }
        }
        (wanted, kept)
    }

    fn slot_of(&self, node: Id, cut: i32, axes: Axes) -> Slot {
        match self.nodes[node as usize] {
            Node::Tap(tap) => {
                let [swept, slower, faster] = axes.order(tap.offset);
                Slot::Raw { field: tap.field, age: cut - swept, across: [slower, faster] }
            }
            _ => Slot::Node { node, cut },
        }
    }

    fn find_slots(&self, axes: Axes) -> Vec<Slot> {
        // For each node, the last plane whose part needs it.
        let mut last: Vec<Option<i32>> = vec![None; self.nodes.len()];
        let mut needed_by = |node: Id, plane: i32| {
            let slot = &mut last[node as usize];
            *slot = Some(slot.map_or(plane, |before| before.max(plane)));
        };
        for (id, node) in self.nodes.iter().enumerate() {
            if let Some(plane) = self.ready[id] {
                node.operands().for_each(|operand| needed_by(operand, plane));
            }
        }
        for &value in &self.values {
            needed_by(value, self.planes[1]);
        }
        let mut slots = Vec::new();
        let is_mark = |id: usize| matches!(self.nodes[id], Node::Tap(tap) if usize::from(tap.field) >= self.values.len());
        let carried = self.ready.iter().zip(&last).enumerate().filter(|(id, _)| !is_mark(*id));
        for (id, (&ready, &last)) in carried {
            if let (Some(ready), Some(last)) = (ready, last) {
                for cut in ready..last {
                    let slot = self.slot_of(id as Id, cut, axes);
                    if !slots.contains(&slot) {
                        slots.push(slot);
                    }
                    // A raw value grows older from plane to plane: it passes through every younger slot.
                    if let Slot::Raw { field, age, across } = slot {
                        for age in 0..age {
                            let younger = Slot::Raw { field, age, across };
                            if !slots.contains(&younger) {
                                slots.push(younger);
                            }
                        }
                    }
                }
            }
        }
        slots
    }
}

/// Postpones values that can be computed later from values that are carried anyway, so that they need no slot
/// of their own. A [`choice`] waits for a cell, too, that is carried for another tap.
fn postpone(nodes: &[Node], values: &[Id], ready: &mut [Option<i32>], axes: Axes) {
    let end = ready.iter().flatten().copied().max().unwrap_or(0).max(0);
    for id in (0..nodes.len()).rev() {
        let consumers = |of: usize, ready: &[Option<i32>]| -> Vec<(usize, i32)> {
            let by_nodes = nodes.iter().enumerate().filter(|(_, n)| n.operands().any(|o| o as usize == of));
            let by_nodes = by_nodes.filter_map(|(user, _)| Some((user, ready[user]?)));
            let by_values = values.iter().filter(|&&value| value as usize == of).map(|_| (usize::MAX, end));
            by_nodes.chain(by_values).collect()
        };
        // Whether a cell that was tapped is carried until a plane arrives, because another tap of its field needs it then.
        let is_raw_there = |tap: Tap, then: i32, ready: &[Option<i32>]| {
            let [swept, own @ ..] = axes.order(tap.offset);
            nodes.iter().enumerate().any(|(other, node)| match *node {
                Node::Tap(Tap { field, offset }) if field == tap.field && offset != tap.offset => {
                    let [from, across @ ..] = axes.order(offset);
                    let last = consumers(other, ready).iter().map(|(_, plane)| *plane).max();
                    across == own && last.is_some_and(|last| last - from >= then - swept)
                }
                _ => false,
            })
        };
        let is_choice = choice(nodes, id as Id).is_some();
        let (Some(now), false) = (ready[id], matches!(nodes[id], Node::Tap(_))) else { continue };
        let Some(then) =
            consumers(id, ready).iter().map(|(_, plane)| *plane).min().filter(|&then| then > now)
        else {
            continue;
        };
        // The nodes that only this value needs. The values below them must wait until then for other values
        // too.
        let mut cone = vec![id];
        let mut carried = true;
        let mut next = 0;
        while next < cone.len() && carried {
            for operand in nodes[cone[next]].operands().map(|operand| operand as usize) {
                if ready[operand].is_none() || cone.contains(&operand) {
                    continue;
                }
                let others: Vec<i32> = consumers(operand, ready)
                    .iter()
                    .filter(|(user, _)| !cone.contains(user))
                    .map(|c| c.1)
                    .collect();
                if others.iter().any(|&plane| plane >= then) {
                    continue;
                }
                match nodes[operand] {
                    Node::Tap(tap) if usize::from(tap.field) >= values.len() => {}
                    Node::Tap(tap) => carried = is_choice && is_raw_there(tap, then, ready),
                    _ if others.is_empty() => cone.push(operand),
                    _ => carried = false,
                }
            }
            next += 1;
        }
        if carried {
            cone.into_iter().for_each(|node| ready[node] = Some(then));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    fn carried(name: &str, dimensions: usize) -> Vec<(usize, usize)> {
        let program = catalogue::find(name).unwrap().program(dimensions).unwrap();
        let axes = Axes::of(dimensions);
        let cut = |stage: &Stage| Carry::of(stage, program.fields().len(), axes);
        program.stages().iter().map(cut).map(|carry| (carry.slots.len(), carry.planes[1] as usize)).collect()
    }

    /// A linear stencil of radius r carries 2r partial sums, whatever its neighbourhood.
    #[test]
    fn linear_stencils_carry_partial_sums_alone() {
        for (name, dimensions, radius) in [
            ("2d5pt", 2, 1),
            ("2ds25pt", 2, 6),
            ("2d25pt", 2, 2),
            ("3d7pt", 3, 1),
            ("3d27pt", 3, 1),
            ("3d13pt", 3, 2),
        ] {
            assert_eq!(carried(name, dimensions), [(2 * radius, radius)], "{name}");
        }
        assert_eq!(carried("1d3pt", 1), [(0, 0)]);
    }

    /// Gray–Scott: the cell's u and v and two sums of neighbours. The reaction waits, because u and v are
    /// carried anyway.
    #[test]
    fn what_carried_values_give_is_not_carried() {
        assert_eq!(carried("gray-scott", 2), [(4, 1)]);
        assert_eq!(carried("heat", 2), [(2, 1)]);
        assert_eq!(carried("wave", 2), [(3, 1)]);
    }

    /// The field that a stage does not write waits beside the sums, so that all fields leave in step.
    #[test]
    fn fields_passed_on_are_carried_too() {
        let heat = carried("heat-conductivity", 2);
        let plain = carried("heat", 2);
        assert!(heat[0].0 > plain[0].0, "{heat:?} {plain:?}");
        // Yee's two stages tap to one side each.
        assert_eq!(carried("fdtd-tm", 2).iter().map(|(_, delay)| *delay).sum::<usize>(), 1);
    }
}
