//! What only a few cells need: the operations of a choice that is made at one index of an axis, as that of a source is. They stand in a
//! branch, which other cells pass by together.

use abide_core::expr::{Binary, Id, Node};

/// Returns for each node the choice in whose branch it stands; `None` where it stands in none. A branch itself may stand in
/// another.
pub(super) fn of(nodes: &[Node], outputs: &[Id], computed: &[bool]) -> Vec<Option<usize>> {
    let mut within: Vec<Option<usize>> = vec![None; nodes.len()];
    // Whether a reader has been met.
    let mut is_read = vec![false; nodes.len()];
    outputs.iter().for_each(|&id| is_read[id as usize] = true);
    // Readers stand behind what they read.
    for reader in (0..nodes.len()).rev().filter(|&reader| computed[reader]) {
        let rare = rare(nodes, reader);
        for operand in nodes[reader].operands() {
            let operand = operand as usize;
            let is_condition =
                matches!(nodes[reader], Node::Select(condition, ..) if condition as usize == operand);
            let is_other = matches!(nodes[reader], Node::Select(_, _, no) if no as usize == operand);
            let own = match rare && !is_condition && !is_other {
                true => Some(reader),
                false => within[reader],
            };
            within[operand] = match is_read[operand] {
                true => around(&within, within[operand], own),
                false => own,
            };
            is_read[operand] = true;
        }
    }
    within
}

/// Returns whether a node is a choice that is made at one index of an axis.
fn rare(nodes: &[Node], node: usize) -> bool {
    let Node::Select(condition, ..) = nodes[node] else { return false };
    let Node::Binary(Binary::Equal, a, b) = nodes[condition as usize] else { return false };
    matches!((nodes[a as usize], nodes[b as usize]), (Node::Coord(_), Node::Const(_)))
}

/// Returns the innermost branch in which both of these stand.
fn around(within: &[Option<usize>], a: Option<usize>, b: Option<usize>) -> Option<usize> {
    let (mut a, mut b) = (a, b);
    // A branch stands in one whose choice has a larger number.
    while a != b {
        match (a, b) {
            (Some(first), Some(second)) if first < second => a = within[first],
            (Some(_), Some(second)) => b = within[second],
            _ => return None,
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide_core::expr::{Constant, Tap};

    /// `x == 3 ? (y == 5 ? u + 1 : u) : u * u`: the inner choice stands in the branch of the outer one, and its sum in its own.
    #[test]
    fn what_a_choice_alone_needs_stands_in_its_branch() {
        let constant = |value: f64| Node::Const(Constant::new(value));
        let nodes = [
            Node::Tap(Tap { field: 0, offset: [0; 3] }),
            Node::Coord(2),
            constant(3.0),
            Node::Binary(Binary::Equal, 1, 2),
            Node::Coord(1),
            constant(5.0),
            Node::Binary(Binary::Equal, 4, 5),
            constant(1.0),
            Node::Binary(Binary::Add, 0, 7),
            Node::Select(6, 8, 0),
            Node::Binary(Binary::Mul, 0, 0),
            Node::Select(3, 9, 10),
        ];
        let found = of(&nodes, &[11], &[true; 12]);
        let none = [0, 1, 2, 3, 10, 11];
        assert!(none.iter().all(|&node| found[node].is_none()), "{found:?}");
        assert!([4, 5, 6, 9].iter().all(|&node| found[node] == Some(11)), "{found:?}");
        assert!([7, 8].iter().all(|&node| found[node] == Some(9)), "{found:?}");
        // Another reader of the sum takes it out.
        assert_eq!(of(&nodes, &[11, 8], &[true; 12])[8], None);
    }
}
