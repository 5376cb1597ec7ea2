//! Choices that a stage makes of its results alone, as that of a source is: once all cells of a sweep are made, so that no body
//! of a cell asks for them.

use abide_core::Problem;
use abide_core::domain::Axes;
use abide_core::expr::{Cells, Id, Node, choice};
use abide_core::plan::streaming::carry::Carry;

use super::Cuda;
use crate::emit::part;
use crate::text::Text;

/// Writes whether a stage's choices in single planes are made of its results alone, and the function that makes them.
pub(super) fn late(text: &mut Text, problem: &Problem, carry: &Carry, axes: Axes) {
    let swept = axes.order([0, 1, 2])[0];
    let nodes = &carry.nodes;
    let is_choice = |id: Id| {
        choice(nodes, id).is_some_and(|(axis, cells)| axis == swept && matches!(cells, Cells::At(_)))
    };
    let bases: Vec<Id> = carry.values.iter().map(|&value| base(nodes, value, &is_choice)).collect();
    let of = |outputs: &[Id], ends: &[Id]| -> Vec<Id> {
        let needed = needed(nodes, outputs, ends);
        (0..nodes.len() as Id).filter(|&id| needed[id as usize]).collect()
    };
    let is_late = bases != carry.values
        && !of(&bases, &[]).into_iter().any(is_choice)
        && !of(&carry.values, &bases).into_iter().any(|id| matches!(nodes[id as usize], Node::Tap(_)));
    text.push("// Whether choices are made of the stage's results alone, and what makes them.");
    text.push(format!("static constexpr bool LATE = {is_late};"));
    text.push("template <class View>");
    text.push("__device__ static __forceinline__ void late(const View& u, real (&value)[FIELDS]) {");
    if is_late {
        let language = Cuda { plane: Some(0), ..Cuda::PLAIN };
        let known = |id: Id| bases.iter().position(|&base| base == id).map(|field| format!("made{field}"));
        let body = part(nodes, &carry.values, known, &language, problem.dtype, |_| String::new());
        text.extend((0..bases.len()).map(|field| format!("const real made{field} = value[{field}];")));
        text.extend(&body.statements);
        let chosen =
            body.outputs.iter().enumerate().filter(|(field, _)| carry.values[*field] != bases[*field]);
        text.extend(chosen.map(|(field, value)| format!("value[{field}] = {value};")));
    }
    text.push("}");
}

/// Returns the node that stands for a value where no choice is made.
fn base(nodes: &[Node], value: Id, is_choice: &impl Fn(Id) -> bool) -> Id {
    match nodes[value as usize] {
        Node::Select(_, _, no) if is_choice(value) => base(nodes, no, is_choice),
        _ => value,
    }
}

/// Returns for each node whether outputs need it, where `ends` are known.
fn needed(nodes: &[Node], outputs: &[Id], ends: &[Id]) -> Vec<bool> {
    let mut needed = vec![false; nodes.len()];
    outputs.iter().for_each(|&id| needed[id as usize] = true);
    for id in (0..nodes.len()).rev() {
        if ends.contains(&(id as Id)) {
            needed[id] = false;
        }
        if needed[id] {
            nodes[id].operands().for_each(|operand| needed[operand as usize] = true);
        }
    }
    needed
}
