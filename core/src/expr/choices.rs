//! Choices that a formula makes in few cells of an axis, as that of a source or of a value beyond a side is. Almost all cells have
//! the other value.

use super::{Binary, Dag, Id, Node};

/// The most outermost cells of an axis that are few.
const MOST_OUTERMOST: f64 = 16.0;

/// The cells of an axis in which a choice is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cells {
    /// That of this index.
    At(f64),
    /// So many of the first, as in `x < 2`.
    First(f64),
    /// So many before the end of an axis whose last index is the first number, as in `99 - x < 2`.
    Last(f64, f64),
}

impl Cells {
    /// Returns the outermost cells of a side (0 is the low one) of an axis of so many that hold all cells of the choice; `None`
    /// where these lie nearer to the other side.
    pub fn outermost(self, side: usize, extent: usize) -> Option<f64> {
        let end = extent as f64;
        match (self, side) {
            (Cells::At(index), 0) => Some(index + 1.0),
            (Cells::At(index), _) => Some(end - index),
            (Cells::First(count), 0) => Some(count),
            (Cells::Last(last, count), 1) => Some(end - 1.0 - last + count),
            _ => None,
        }
    }
}

/// Returns the axis and the cells in which a node chooses its first value, if it is such a choice.
pub fn choice(nodes: &[Node], node: Id) -> Option<(usize, Cells)> {
    let Node::Select(condition, ..) = nodes[node as usize] else { return None };
    let constant = |id: Id| match nodes[id as usize] {
        Node::Const(value) => Some(value.value()),
        _ => None,
    };
    let Node::Binary(relation, a, b) = nodes[condition as usize] else { return None };
    match (relation, nodes[a as usize]) {
        (Binary::Equal, Node::Coord(axis)) => Some((usize::from(axis), Cells::At(constant(b)?))),
        (Binary::Less, of) => {
            let count = constant(b).filter(|count| (1.0..=MOST_OUTERMOST).contains(count))?;
            match of {
                Node::Coord(axis) => Some((usize::from(axis), Cells::First(count))),
                Node::Binary(Binary::Sub, last, at) => match nodes[at as usize] {
                    Node::Coord(axis) => Some((usize::from(axis), Cells::Last(constant(last)?, count))),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    }
}

impl Dag {
    /// Returns the formula as it is at cells that make no [`choice`].
    pub fn elsewhere(&self) -> Dag {
        self.elsewhere_along([true; 3])
    }

    /// Returns the formula as it is at cells that make no [`choice`] along some of the axes.
    pub fn elsewhere_along(&self, axes: [bool; 3]) -> Dag {
        let mut instead: Vec<Id> = (0..self.nodes.len() as Id).collect();
        for (id, &node) in self.nodes.iter().enumerate() {
            if let Node::Select(_, _, no) = node
                && choice(&self.nodes, id as Id).is_some_and(|(axis, _)| axes[axis])
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
        assert_eq!(choice(&dag.nodes, last as Id), Some((2, Cells::At(3.0))));
        let plain = dag.elsewhere();
        assert_eq!(plain.nodes.len(), 3, "{plain:?}");
        assert!(matches!(plain.nodes[plain.outputs[0] as usize], Node::Binary(Binary::Mul, ..)));
    }

    /// `9 - x < 2 ? -u : (x < 2 ? 0 : u)` is made in two cells of each side, and is `u` elsewhere.
    #[test]
    fn outermost_cells_are_few() {
        let constant = |value: f64| Node::Const(Constant::new(value));
        let nodes = vec![
            Node::Tap(Tap { field: 0, offset: [0; 3] }),
            Node::Coord(2),
            constant(2.0),
            Node::Binary(Binary::Less, 1, 2),
            constant(0.0),
            Node::Select(3, 4, 0),
            constant(9.0),
            Node::Binary(Binary::Sub, 6, 1),
            Node::Binary(Binary::Less, 7, 2),
            Node::Unary(crate::expr::Unary::Neg, 0),
            Node::Select(8, 9, 5),
        ];
        let [low, high] = [5, 10].map(|id| choice(&nodes, id).unwrap());
        assert_eq!([low, high], [(2, Cells::First(2.0)), (2, Cells::Last(9.0, 2.0))]);
        assert_eq!([0, 1].map(|side| low.1.outermost(side, 10)), [Some(2.0), None]);
        assert_eq!([0, 1].map(|side| high.1.outermost(side, 10)), [None, Some(2.0)]);
        assert_eq!([0, 1].map(|side| Cells::At(8.0).outermost(side, 10)), [Some(9.0), Some(2.0)]);
        let dag = Dag::pruned(&nodes, &[10]);
        assert_eq!(dag.elsewhere().nodes.len(), 1);
    }
}
