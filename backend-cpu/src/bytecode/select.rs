//! What a formula consists of: taps, parts that are the same along a row, and the one sum that it may be.

use abide_core::expr::{Binary, Constant, Dag, Draw, Id, Node};

use super::step::{MAX_TERMS, Operand, RowAt, TapAt, Term, Weighted};

/// Weights, by their numbers among the scalars, and what they weigh.
type Products = Vec<(usize, Id)>;

/// A formula while its parts are classified.
pub struct Compiler<'d> {
    dag: &'d Dag,
    fused: bool,
    /// The nodes that are the same along a row, as in the [`Bytecode`](super::Bytecode).
    pub uniform: Vec<Node>,
    pub varies_by_row: bool,
    pub taps: Vec<TapAt>,
    pub rows: Vec<RowAt>,
    pub lines: Vec<[isize; 2]>,
    /// The random numbers by their nodes, and the first of the scalars of each.
    pub draws: Vec<(Id, usize)>,
    /// The place of each node's value; `None` if it has to be computed.
    pub operands: Vec<Option<Operand>>,
    /// The number of times that each node is read by nodes that vary along the row, or is an output.
    uses: Vec<usize>,
}

impl<'d> Compiler<'d> {
    /// Finds each node's place: a node that is the same along a row becomes a scalar, a tap becomes a tap, and
    /// the rest are computed.
    pub fn new(dag: &'d Dag, fused: bool) -> Self {
        let mut c = Compiler {
            dag,
            fused,
            uniform: Vec::new(),
            varies_by_row: false,
            taps: Vec::new(),
            rows: Vec::new(),
            lines: Vec::new(),
            draws: Vec::new(),
            operands: Vec::with_capacity(dag.nodes.len()),
            uses: vec![0; dag.nodes.len()],
        };
        for &node in &dag.nodes {
            let operand = c.classify(node);
            c.operands.push(operand);
            if operand.is_none() {
                node.operands().for_each(|operand| c.uses[operand as usize] += 1);
            }
        }
        dag.outputs.iter().for_each(|&output| c.uses[output as usize] += 1);
        c
    }

    fn classify(&mut self, node: Node) -> Option<Operand> {
        match node {
            Node::Tap(tap) => {
                let [dz, dy, dx] = tap.offset.map(|o| o as isize);
                let line = number(&mut self.lines, [dz, dy]);
                let row = number(&mut self.rows, RowAt { field: tap.field as usize, line });
                self.taps.push(TapAt { row, shift: dx });
                return Some(Operand::Tap(self.taps.len() - 1));
            }
            Node::Coord(2) => return Some(Operand::Along),
            Node::Coord(_) => self.varies_by_row = true,
            _ => {}
        }
        let mut numbers = [0; Draw::OPERANDS];
        for (number, operand) in numbers.iter_mut().zip(node.operands()) {
            match self.operands[operand as usize] {
                Some(Operand::Scalar(scalar)) => *number = scalar as Id,
                _ => {
                    self.draw(node);
                    return None;
                }
            }
        }
        let mut numbers = numbers.into_iter();
        self.uniform.push(node.map(|operand| numbers.next().unwrap_or(operand)));
        Some(Operand::Scalar(self.uniform.len() - 1))
    }

    /// Adds the scalars of a random number, one behind the other: its operands but for the index along the row, and which one it
    /// is. All but that index are the same along a row.
    fn draw(&mut self, node: Node) {
        let Node::Draw(draw, operands) = node else { return };
        self.draws.push((self.operands.len() as Id, self.uniform.len()));
        for operand in along_rows(operands) {
            let node = self.dag.nodes[operand as usize];
            let copy = node.map(|id| self.scalar(id).unwrap_or_default() as Id);
            self.uniform.push(copy);
        }
        let number = 2.0 * f64::from(draw.stream) + f64::from(draw.part);
        self.uniform.push(Node::Const(Constant::new(number)));
    }

    fn operand(&self, id: Id) -> Option<Operand> {
        self.operands[id as usize]
    }

    fn scalar(&self, id: Id) -> Option<usize> {
        match self.operand(id) {
            Some(Operand::Scalar(number)) => Some(number),
            _ => None,
        }
    }

    /// Returns the number of a literal among the scalars.
    fn literal(&mut self, value: f64) -> usize {
        number(&mut self.uniform, Node::Const(Constant::new(value)))
    }

    /// Returns the whole formula as one sum of taps, if it is one.
    pub fn weighted(&mut self) -> Option<Weighted> {
        let &[output] = &self.dag.outputs[..] else { return None };
        let (sum, scale) = self.scaled(output)?;
        let mut terms = Vec::with_capacity(sum.len());
        for (weight, operand) in sum {
            match self.operand(operand) {
                Some(Operand::Tap(tap)) => terms.push(Term { weight, tap }),
                _ => return None,
            }
        }
        (terms.len() <= MAX_TERMS).then_some(Weighted { terms, scale })
    }

    /// Returns whether only one reader needs the node's value, which may stay in that reader's registers.
    fn is_inner(&self, id: Id) -> bool {
        self.operand(id).is_none() && self.uses[id as usize] == 1
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
    fn scaled(&mut self, id: Id) -> Option<(Products, Option<usize>)> {
        if let Some(terms) = self.sum(id) {
            return Some((terms, None));
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
        Some((self.sum(of)?, Some(scale)))
    }

    /// Returns the sum that ends at a node, first term first.
    fn sum(&mut self, id: Id) -> Option<Products> {
        let mut terms = Vec::new();
        let mut head = id;
        while head == id || self.is_inner(head) {
            let Some((weight, term, rest)) = self.link(head) else { break };
            terms.push((weight.unwrap_or_else(|sign| self.literal(sign)), term));
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
        terms.push(product.unwrap_or_else(|| (self.literal(1.0), head)));
        terms.reverse();
        Some(terms)
    }
}

/// Returns those of the operands of a random number that are the same along a row.
fn along_rows(operands: [Id; Draw::OPERANDS]) -> [Id; Draw::OPERANDS - 1] {
    let [z, y, _, seed, step, turn] = operands;
    [z, y, seed, step, turn]
}

/// Returns the number of an item in a list, to which it is added if it is missing.
fn number<I: PartialEq>(list: &mut Vec<I>, item: I) -> usize {
    list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}
