//! Selection of the steps that carry out a formula: over its graph, from the last node to the first.

use abide_core::expr::{Binary, Constant, Dag, Id, Node};

use super::slots::Draft;
use super::step::{MAX_TERMS, Op, Operand, RowAt, TapAt, Term};

/// A formula while its steps are selected.
pub struct Compiler<'d> {
    dag: &'d Dag,
    fused: bool,
    /// The nodes that are the same along a row, as in the [`Tape`](super::Tape).
    pub uniform: Vec<Node>,
    pub varies_by_row: bool,
    pub taps: Vec<TapAt>,
    pub rows: Vec<RowAt>,
    pub lines: Vec<[isize; 2]>,
    /// The place of each node's value; `Slot` holds the number of the value, not of a slot.
    operands: Vec<Operand>,
    /// The number of times that each node is read by nodes that vary along the row, or is an output.
    uses: Vec<usize>,
}

impl<'d> Compiler<'d> {
    /// Finds each node's operand: a node that is the same along a row becomes a scalar, a tap becomes a tap,
    /// and the rest become values.
    pub fn new(dag: &'d Dag, fused: bool) -> Self {
        let mut c = Compiler {
            dag,
            fused,
            uniform: Vec::new(),
            varies_by_row: false,
            taps: Vec::new(),
            rows: Vec::new(),
            lines: Vec::new(),
            operands: Vec::with_capacity(dag.nodes.len()),
            uses: vec![0; dag.nodes.len()],
        };
        for (id, &node) in dag.nodes.iter().enumerate() {
            let operand = c.classify(id, node);
            c.operands.push(operand);
            if operand == Operand::Slot(id) {
                node.operands().for_each(|operand| c.uses[operand as usize] += 1);
            }
        }
        dag.outputs.iter().for_each(|&output| c.uses[output as usize] += 1);
        c
    }

    fn classify(&mut self, id: usize, node: Node) -> Operand {
        match node {
            Node::Tap(tap) => {
                let [dz, dy, dx] = tap.offset.map(|o| o as isize);
                let line = number(&mut self.lines, [dz, dy]);
                let row = number(&mut self.rows, RowAt { field: tap.field as usize, line });
                self.taps.push(TapAt { row, shift: dx });
                return Operand::Tap(self.taps.len() - 1);
            }
            Node::Coord(2) => return Operand::Slot(id),
            Node::Coord(_) => self.varies_by_row = true,
            _ => {}
        }
        let mut numbers = [0; 3];
        for (number, operand) in numbers.iter_mut().zip(node.operands()) {
            match self.operands[operand as usize] {
                Operand::Scalar(scalar) => *number = scalar as Id,
                _ => return Operand::Slot(id),
            }
        }
        let mut numbers = numbers.into_iter();
        self.uniform.push(node.map(|operand| numbers.next().unwrap_or(operand)));
        Operand::Scalar(self.uniform.len() - 1)
    }

    /// Returns the operands that are the formula's outputs.
    pub fn outputs(&self) -> Vec<Operand> {
        self.dag.outputs.iter().map(|&id| self.operand(id)).collect()
    }

    fn operand(&self, id: Id) -> Operand {
        self.operands[id as usize]
    }

    fn scalar(&self, id: Id) -> Option<usize> {
        match self.operand(id) {
            Operand::Scalar(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the number of a literal among the scalars.
    fn literal(&mut self, value: f64) -> usize {
        number(&mut self.uniform, Node::Const(Constant::new(value)))
    }

    /// Selects the steps from the last node to the first, so that a sum is found from its end.
    pub fn select(&mut self) -> Vec<Draft> {
        let mut absorbed = vec![false; self.dag.nodes.len()];
        let mut fresh = self.dag.nodes.len();
        let mut drafts = Vec::new();
        for id in (0..self.dag.nodes.len()).rev() {
            if self.operands[id] != Operand::Slot(id) || absorbed[id] {
                continue;
            }
            let Some((terms, inner, scale)) = self.scaled(id as Id) else {
                let op = match self.pair(id) {
                    Some((op, inner)) => {
                        absorbed[inner as usize] = true;
                        op
                    }
                    None => self.plain(id),
                };
                drafts.push(Draft { value: id, op });
                continue;
            };
            let mut scale = scale;
            inner.into_iter().for_each(|id| absorbed[id as usize] = true);
            let mut rest = terms;
            let mut value = id;
            while rest.len() > MAX_TERMS {
                let tail = rest.split_off(rest.len() - (MAX_TERMS - 1));
                let head = Term { weight: self.literal(1.0), operand: Operand::Slot(fresh) };
                drafts.push(Draft { value, op: Op::Sum([vec![head], tail].concat(), scale.take()) });
                value = fresh;
                fresh += 1;
            }
            drafts.push(Draft { value, op: Op::Sum(rest, scale) });
        }
        drafts.reverse();
        drafts
    }

    /// Returns a product together with the one factor that nothing else reads, as one step; and that factor.
    /// The order of the factors makes no difference.
    fn pair(&self, id: usize) -> Option<(Op, Id)> {
        let Node::Binary(Binary::Mul, a, b) = self.dag.nodes[id] else { return None };
        let (inner, other) = if self.is_inner(b) { (b, a) } else { (a, b) };
        if !self.is_inner(inner) {
            return None;
        }
        let Node::Binary(op, c, d) = self.dag.nodes[inner as usize] else { return None };
        let (c, d, lanes) =
            (self.operand(c), self.operand(d), self.scalar(c).is_none() && self.scalar(d).is_none());
        match (op, self.operand(other)) {
            (Binary::Add | Binary::Sub, Operand::Scalar(scale)) => Some((Op::Scaled(scale, op, c, d), inner)),
            (Binary::Mul, Operand::Slot(_) | Operand::Tap(_)) if lanes => {
                Some((Op::Product(self.operand(other), c, d), inner))
            }
            _ => None,
        }
    }

    fn plain(&self, id: usize) -> Op {
        let at = |id: Id| self.operand(id);
        match self.dag.nodes[id] {
            Node::Unary(op, a) => Op::Unary(op, at(a)),
            Node::Binary(op, a, b) => Op::Binary(op, at(a), at(b)),
            // A scalar factor comes first; the product is the same.
            Node::Fma(a, b, c) if self.scalar(b).is_some() => Op::Fma(at(b), at(a), at(c)),
            Node::Fma(a, b, c) => Op::Fma(at(a), at(b), at(c)),
            Node::Select(c, yes, no) => Op::Select(at(c), at(yes), at(no)),
            // Of the other nodes only the coordinate along the row varies.
            Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => Op::Index,
        }
    }

    /// Returns whether only one reader needs the node's value, which may stay in that reader's registers.
    fn is_inner(&self, id: Id) -> bool {
        self.operand(id) == Operand::Slot(id as usize) && self.uses[id as usize] == 1
    }

    /// Splits a node that adds a weighted operand to a sum: the weight (a scalar's number, or ±1), the
    /// operand, and the sum.
    fn link(&self, id: Id) -> Option<(Result<usize, f64>, Id, Id)> {
        let varies = |id: Id| self.scalar(id).is_none();
        match self.dag.nodes[id as usize] {
            Node::Fma(a, b, c) if varies(c) => match (self.scalar(a), self.scalar(b)) {
                (Some(weight), None) => Some((Ok(weight), b, c)),
                (None, Some(weight)) => Some((Ok(weight), a, c)),
                _ => None,
            },
            Node::Binary(Binary::Add, a, b) if self.fused && varies(a) && varies(b) => {
                let sums = |id: Id| {
                    let node = self.dag.nodes[id as usize];
                    self.is_inner(id)
                        && matches!(node, Node::Fma(..) | Node::Binary(Binary::Add | Binary::Sub, ..))
                };
                let (term, rest) = if !sums(a) && sums(b) { (a, b) } else { (b, a) };
                Some((Err(1.0), term, rest))
            }
            Node::Binary(Binary::Sub, a, b) if self.fused && varies(a) && varies(b) => {
                Some((Err(-1.0), b, a))
            }
            _ => None,
        }
    }

    /// Returns the sum that ends at a node, or that a node multiplies by a scalar, and the number of that
    /// scalar.
    fn scaled(&mut self, id: Id) -> Option<(Vec<Term>, Vec<Id>, Option<usize>)> {
        if let Some((terms, inner)) = self.sum(id) {
            return Some((terms, inner, None));
        }
        let Node::Binary(Binary::Mul, a, b) = self.dag.nodes[id as usize] else { return None };
        let (scale, of) = match (self.scalar(a), self.scalar(b)) {
            (Some(scale), None) => (scale, b),
            (None, Some(scale)) => (scale, a),
            _ => return None,
        };
        if !self.is_inner(of) {
            return None;
        }
        let (terms, mut inner) = self.sum(of)?;
        inner.push(of);
        Some((terms, inner, Some(scale)))
    }

    /// Returns the sum that ends at a node, first term first, and the nodes inside it; `None` unless it is
    /// longer than a plain step.
    fn sum(&mut self, id: Id) -> Option<(Vec<Term>, Vec<Id>)> {
        let (mut terms, mut inner) = (Vec::new(), Vec::new());
        let mut head = id;
        while head == id || self.is_inner(head) {
            let Some((weight, term, rest)) = self.link(head) else { break };
            let weight = weight.unwrap_or_else(|sign| self.literal(sign));
            terms.push(Term { weight, operand: self.operand(term) });
            if head != id {
                inner.push(head);
            }
            head = rest;
        }
        if terms.is_empty() {
            return None;
        }
        let product = match self.dag.nodes[head as usize] {
            Node::Binary(Binary::Mul, a, b) if self.is_inner(head) => {
                match (self.scalar(a), self.scalar(b)) {
                    (Some(weight), None) => Some((weight, b)),
                    (None, Some(weight)) => Some((weight, a)),
                    _ => None,
                }
            }
            _ => None,
        };
        terms.push(match product {
            Some((weight, operand)) => {
                inner.push(head);
                Term { weight, operand: self.operand(operand) }
            }
            None => Term { weight: self.literal(1.0), operand: self.operand(head) },
        });
        terms.reverse();
        (!inner.is_empty()).then_some((terms, inner))
    }
}

/// Returns the number of an item in a list, to which it is added if it is missing.
fn number<I: PartialEq>(list: &mut Vec<I>, item: I) -> usize {
    list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}
