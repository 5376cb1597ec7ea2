//! Choices that a formula makes at one index of an axis, as that of a source is. Almost all cells have the other value.

use super::{Binary, Dag, Id, Node};

/// Returns the axis and the index at which a node chooses its first value, if it is such a choice.
pub fn choice(nodes: &[Node], node: Id) -> Option<(usize, f64)> {
    let Node::Select(condition, ..) = nodes[node as usize] else { return None };
    let Node::Binary(Binary::Equal, a, b) = nodes[condition as usize] else { return None };
    match (nodes[a as usize], nodes[b as usize]) {
        (Node::Coord(axis), Node::Const(index)) => Some((usize::from(axis), index.value())),
        _ => None,
    }
}

impl Dag {
    /// Returns the formula as it is at cells that make no [`choice`].
    pub fn elsewhere(&self) -> Dag {
        let mut instead: Vec<Id> = (0..self.nodes.len() as Id).collect();
        for (id, &node) in self.nodes.iter().enumerate() {
            if let Node::Select(_, _, no) = node
                && choice(&self.nodes, id as Id).is_some()
            {
                instead[id] = instead[no as usize];
            }
        }
        let nodes: Vec<Node> =
            self.nodes.iter().map(|node| node.map(|operand| instead[operand as usize])).collect();
        let outputs: Vec<Id> = self.outputs.iter().map(|&output| instead[output as usize]).collect();
        Dag::pruned(&nodes, &outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Constant, Tap};

    /// `x == 3 ? (y == 5 ? u + 1 : u) : u` is `u` elsewhere.
    #[test]
    fn elsewhere_no_choice_is_left() {
        let constant = |value: f64| Node::Const(Constant::new(value));
        let nodes = vec![
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
            Node::Select(3, 9, 0),
            Node::Binary(Binary::Mul, 10, 7),
        ];
        let dag = Dag::pruned(&nodes, &[11]);
        let last = dag.nodes.iter().rposition(|node| matches!(node, Node::Select(..))).unwrap();
        assert_eq!(choice(&dag.nodes, last as Id), Some((2, 3.0)));
        let plain = dag.elsewhere();
        assert_eq!(plain.nodes.len(), 3, "{plain:?}");
        assert!(matches!(plain.nodes[plain.outputs[0] as usize], Node::Binary(Binary::Mul, ..)));
    }
}
