//! What a formula costs: places in an arithmetic pipe, and values that are held at once.

use super::{Binary, Dag, Draw, Node, Unary};
use crate::DType;

/// The places in an arithmetic pipe that an exact division or root takes, in f32 and f64: an estimate, its corrections, and the test of
/// whether they do.
const OF_DIVISION: [f64; 2] = [10.0, 11.0];

/// The places of an elementary function for each operation that it counts as, a multiply-add as two: 0.55 to 0.7 by the rates of
/// eleven functions on an H200, in either type.
const OF_FUNCTION: f64 = 0.65;

/// Returns the places in an arithmetic pipe that a node takes; a sum, a product and a fused multiply-add take one.
pub fn places(node: Node, dtype: DType) -> f64 {
    let of = |flops: usize| if node.function().is_some() { OF_FUNCTION * flops as f64 } else { 1.0 };
    match node {
        Node::Binary(Binary::Div, ..) | Node::Unary(Unary::Sqrt, _) => {
            OF_DIVISION[usize::from(dtype == DType::F64)]
        }
        Node::Unary(op, _) => of(op.flops()),
        Node::Binary(op, ..) => of(op.flops()),
        Node::Fma(..) | Node::Select(..) => 1.0,
        Node::Draw(..) => Draw::PLACES[usize::from(dtype == DType::F64)],
        Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => 0.0,
    }
}

impl Dag {
    /// Returns the operations at most cells; a fused multiply-add is one.
    pub(crate) fn operations(&self) -> usize {
        self.elsewhere().nodes.iter().filter(|node| node.operands().next().is_some()).count()
    }

    /// Returns the places in an arithmetic pipe that the operations take beyond one each, at most cells: those of divisions, roots
    /// and elementary functions.
    pub fn more_places(&self, dtype: DType) -> f64 {
        self.elsewhere().nodes.iter().map(|&node| (places(node, dtype) - 1.0).max(0.0)).sum()
    }

    /// Returns the most values, beside taps, constants and parameters, that are made and still to be read where nodes are computed
    /// in their order.
    pub fn most_held(&self) -> usize {
        let mut last: Vec<usize> = (0..self.nodes.len()).collect();
        for (reader, node) in self.nodes.iter().enumerate() {
            node.operands().for_each(|operand| last[operand as usize] = reader);
        }
        self.outputs.iter().for_each(|&output| last[output as usize] = self.nodes.len());
        let mut ends = vec![0_usize; self.nodes.len() + 1];
        let (mut held, mut most) = (0, 0);
        for (id, node) in self.nodes.iter().enumerate() {
            if node.operands().next().is_some() {
                held = held + 1 - ends[id];
                most = most.max(held);
                ends[last[id]] += 1;
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use crate::DType;
    use crate::expr::{Graph, Node};

    #[test]
    fn divisions_roots_and_functions_take_more_places_than_sums() {
        let graph = Graph::new();
        let u = graph.add(Node::Param(0));
        let of = |expr| graph.dag(&[expr]).more_places(DType::F32);
        assert_eq!(of(u + 2.0), 0.0);
        assert_eq!(of((u + 2.0) / u), 9.0);
        assert_eq!(of((u / (u + 1.0)).sqrt()), 18.0);
        assert!(of(u.sin()) > 20.0 && of(u.pow(u + 1.0)) > of(u.exp()));
    }

    #[test]
    fn values_are_held_from_where_they_are_made_to_their_last_reader() {
        let graph = Graph::new();
        let u = graph.add(Node::Param(0));
        // A chain holds one value, four products that are read at the end all of them.
        let chain = (0..9).fold(u + 1.0, |sum, _| sum * sum);
        assert_eq!(graph.dag(&[chain]).most_held(), 1);
        let products: Vec<_> = (1..=4).map(|k| u * f64::from(k + 1)).collect();
        assert_eq!(graph.dag(&products).most_held(), 4);
        let doubled: Vec<_> = products.iter().map(|&product| product + 1.0).collect();
        assert!(graph.dag(&doubled).most_held() >= 4);
    }
}
