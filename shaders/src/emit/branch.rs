//! What only a few cells need: the operations of a choice that is made in few cells of an axis, as that of a source is. They stand in a
//! branch, which other cells pass by together.

use abide_core::expr::{Cells, Id, Node, choice};

/// Returns for each node the choice in whose branch it stands; `None` where it stands in none. A branch itself may stand in
/// another.
pub(super) fn of(nodes: &[Node], outputs: &[Id], computed: &[bool]) -> Vec<Option<usize>> {
    let mut within: Vec<Option<usize>> = vec![None; nodes.len()];
    // Whether a reader has been met.
    let mut is_read = vec![false; nodes.len()];
    outputs.iter().for_each(|&id| is_read[id as usize] = true);
    // Readers stand behind what they read.
    for reader in (0..nodes.len()).rev().filter(|&reader| computed[reader]) {
        let rare = choice(nodes, reader as Id).is_some();
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

/// Where a choice is made: its index along each axis of the padded three, `None` for any.
pub type Place = [Option<usize>; 3];

/// Returns the choices along an axis that stand in no branch of another, and where each is made, if it can be made at all. A
/// choice within the first value of another that has the same second value narrows it.
pub(super) fn places(nodes: &[Node], computed: &[bool], within: &[Option<usize>], axis: usize) -> Vec<Place> {
    let mut all: Vec<Place> = Vec::new();
    for outer in (0..nodes.len()).filter(|&node| computed[node] && within[node].is_none()) {
        let (mut node, mut place) = (outer, [None; 3]);
        let at = |node: usize| match choice(nodes, node as Id) {
            Some((axis, Cells::At(index))) => Some((axis, index)),
            _ => None,
        };
        let mut is_possible = at(outer).is_some_and(|(along, _)| along == axis);
        while let (Some((axis, index)), Node::Select(_, yes, no)) = (at(node), nodes[node]) {
            let known = *place[axis].get_or_insert(index as usize);
            is_possible &= index >= 0.0 && known as f64 == index;
            match nodes[yes as usize] {
                Node::Select(_, _, other) if other == no && within[yes as usize] == Some(node) => {
                    node = yes as usize;
                }
                _ => break,
            }
        }
        if is_possible && !all.contains(&place) {
            all.push(place);
        }
    }
    all
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
    use abide_core::expr::{Binary, Constant, Tap};

    /// Returns the nodes of a source, `at[axis] == 5 ? u + 1 : u`, as the last one, and before them `x == index`, the fourth.
    fn source(axis: u8, index: f64) -> Vec<Node> {
        let constant = |value: f64| Node::Const(Constant::new(value));
        vec![
            Node::Tap(Tap { field: 0, offset: [0; 3] }),
            Node::Coord(2),
            constant(index),
            Node::Binary(Binary::Equal, 1, 2),
            Node::Coord(axis),
            constant(5.0),
            Node::Binary(Binary::Equal, 4, 5),
            constant(1.0),
            Node::Binary(Binary::Add, 0, 7),
            Node::Select(6, 8, 0),
        ]
    }

    /// `x == 3 ? (y == 5 ? u + 1 : u) : u * u`: the inner choice stands in the branch of the outer one, and its sum in its own.
    #[test]
    fn what_a_choice_alone_needs_stands_in_its_branch() {
        let mut nodes = source(1, 3.0);
        nodes.extend([Node::Binary(Binary::Mul, 0, 0), Node::Select(3, 9, 10)]);
        let found = of(&nodes, &[11], &[true; 12]);
        let none = [0, 1, 2, 3, 10, 11];
        assert!(none.iter().all(|&node| found[node].is_none()), "{found:?}");
        assert!([4, 5, 6, 9].iter().all(|&node| found[node] == Some(11)), "{found:?}");
        assert!([7, 8].iter().all(|&node| found[node] == Some(9)), "{found:?}");
        assert_eq!(places(&nodes, &[true; 12], &found, 2), [[None, None, Some(3)]]);
        // Another reader of the sum takes it out.
        assert_eq!(of(&nodes, &[11, 8], &[true; 12])[8], None);
    }

    /// `x == 3 ? (y == 5 ? u + 1 : u) : u` is made at a point; `x == 3.5` and a corner at two indices of an axis nowhere.
    #[test]
    fn choices_with_the_same_second_value_are_one() {
        let nodes = |axis: u8, x: f64| {
            let mut nodes = source(axis, x);
            nodes.push(Node::Select(3, 9, 0));
            nodes
        };
        let found = |nodes: &[Node]| places(nodes, &[true; 11], &of(nodes, &[10], &[true; 11]), 2);
        assert_eq!(found(&nodes(1, 3.0)), [[None, Some(5), Some(3)]]);
        assert!(found(&nodes(1, 3.5)).is_empty() && found(&nodes(2, 3.0)).is_empty());
    }
}
