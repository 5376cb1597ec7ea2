//! A formula as a tape of operations on lanes: what a row's sweep carries out for each chunk of cells.
//!
//! Parts of the formula that are the same along a row (constants, parameters, the slower coordinates) become scalars,
//! computed once a row at most. The rest become steps. Sums of products with scalar weights, the bulk of every
//! stencil, become a single step that keeps its sum in registers; other steps store one value a node in a slot, and
//! slots are used again as soon as their value is dead.

use abide_core::expr::{Binary, Constant, Dag, Id, Node, Unary};

/// The most terms of one [`Op::Sum`]; longer sums are cut, and go on from the stored sum.
pub const MAX_TERMS: usize = 32;

/// Where a step finds the values of an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// In a slot of the scratch.
    Slot(usize),
    /// In a field's old values, by the number of the tap.
    Tap(usize),
    /// One value for the whole row, by its number among the scalars.
    Scalar(usize),
}

/// Where a step leaves its values. Never a slot that the step reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a slot of the scratch.
    Slot(usize),
    /// In the new values of an output of the formula.
    Output(usize),
}

/// An operand and the number of the scalar that weighs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The weight, by its number among the scalars.
    pub weight: usize,
    /// The operand; not a scalar.
    pub operand: Operand,
}

/// What a step does at each cell of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// The operand itself.
    Copy(Operand),
    /// The cell's index along the row.
    Index,
    /// One operand.
    Unary(Unary, Operand),
    /// Two operands.
    Binary(Binary, Operand, Operand),
    /// A sum or a difference of two operands, times the scalar of this number.
    Scaled(usize, Binary, Operand, Operand),
    /// `a * (b * c)`.
    Product(Operand, Operand, Operand),
    /// `a * b + c`, rounded once.
    Fma(Operand, Operand, Operand),
    /// The second where the first is not zero, else the third.
    Select(Operand, Operand, Operand),
    /// The first term's product, then one fused multiply-add for each later term, in order; at most [`MAX_TERMS`]. Then
    /// the whole is multiplied by a scalar, if there is one.
    Sum(Vec<Term>, Option<usize>),
}

impl Op {
    fn each_operand(&mut self, mut f: impl FnMut(&mut Operand)) {
        match self {
            Op::Index => {}
            Op::Copy(a) | Op::Unary(_, a) => f(a),
            Op::Binary(_, a, b) | Op::Scaled(_, _, a, b) => [a, b].into_iter().for_each(f),
            Op::Product(a, b, c) | Op::Fma(a, b, c) | Op::Select(a, b, c) => [a, b, c].into_iter().for_each(f),
            Op::Sum(terms, _) => terms.iter_mut().for_each(|term| f(&mut term.operand)),
        }
    }
}

/// One operation and the place of its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where the values go.
    pub place: Place,
    /// What is done.
    pub op: Op,
}

/// A row of a field that taps of the formula lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowAt {
    /// The field's number.
    pub field: usize,
    /// The number of the line.
    pub line: usize,
}

/// A tap of the formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TapAt {
    /// The number of its row.
    pub row: usize,
    /// Cells along the row.
    pub shift: isize,
}

/// A formula ready to be swept over rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tape {
    /// The nodes that are the same along a row; their values are the scalars.
    pub uniform: Dag,
    /// Whether they differ from row to row.
    pub varies_by_row: bool,
    /// The taps.
    pub taps: Vec<TapAt>,
    /// The rows that the taps lie in; of 27 taps in a box of three dimensions, nine.
    pub rows: Vec<RowAt>,
    /// The least and the greatest offset of a tap along each axis, slowest first.
    pub reach: [[isize; 2]; 3],
    /// Offsets of lines along the two slower axes: a line is where rows of several fields lie beside the computed one.
    pub lines: Vec<[isize; 2]>,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// How many slots the steps need.
    pub slots: usize,
}

impl Tape {
    /// The tape of a formula. With `fused`, additions count as multiply-adds with weight one, which rounds the same
    /// and lets long sums stay in registers; worth it only where a fused multiply-add is one instruction.
    pub fn new(dag: &Dag, fused: bool) -> Tape {
        let mut compiler = Compiler::new(dag, fused);
        let steps = compiler.select();
        let (steps, slots) = place(steps, &compiler.outputs());
        let Compiler { uniform, varies_by_row, taps, rows, lines, .. } = compiler;
        let mut reach = [[0; 2]; 3];
        for TapAt { row, shift } in &taps {
            let [dz, dy] = lines[rows[*row].line];
            for (reach, offset) in reach.iter_mut().zip([dz, dy, *shift]) {
                *reach = [reach[0].min(offset), reach[1].max(offset)];
            }
        }
        let uniform = Dag { nodes: uniform, outputs: Vec::new() };
        Tape { uniform, varies_by_row, taps, rows, reach, lines, steps, slots }
    }
}

/// A step whose value still has a number of its own instead of a place.
struct Draft {
    value: usize,
    op: Op,
}

struct Compiler<'d> {
    dag: &'d Dag,
    fused: bool,
    uniform: Vec<Node>,
    varies_by_row: bool,
    taps: Vec<TapAt>,
    rows: Vec<RowAt>,
    lines: Vec<[isize; 2]>,
    /// Where each node's value is; `Slot` holds the number of the value, not of a slot.
    operands: Vec<Operand>,
    /// How often each node is read by nodes that vary along the row, or is an output.
    uses: Vec<usize>,
}

impl<'d> Compiler<'d> {
    fn new(dag: &'d Dag, fused: bool) -> Self {
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

    fn outputs(&self) -> Vec<Operand> {
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

    /// The number of a literal among the scalars.
    fn literal(&mut self, value: f64) -> usize {
        number(&mut self.uniform, Node::Const(Constant::new(value)))
    }

    /// The steps, found from the last node to the first, so that a sum is found from its end.
    fn select(&mut self) -> Vec<Draft> {
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

    /// A product together with the one factor that nothing else reads, as one step; and that factor. Which factor comes
    /// first makes no difference.
    fn pair(&self, id: usize) -> Option<(Op, Id)> {
        let Node::Binary(Binary::Mul, a, b) = self.dag.nodes[id] else { return None };
        let (inner, other) = if self.is_inner(b) { (b, a) } else { (a, b) };
        if !self.is_inner(inner) {
            return None;
        }
        let Node::Binary(op, c, d) = self.dag.nodes[inner as usize] else { return None };
        let (c, d, lanes) = (self.operand(c), self.operand(d), self.scalar(c).is_none() && self.scalar(d).is_none());
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
            // Of the rest only the coordinate along the row varies.
            Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => Op::Index,
        }
    }

    /// Whether the node's value is needed only by its one reader, and so may stay in that reader's registers.
    fn is_inner(&self, id: Id) -> bool {
        self.operand(id) == Operand::Slot(id as usize) && self.uses[id as usize] == 1
    }

    /// A node that adds a weighted operand to a sum: the weight (a scalar's number, or ±1), the operand, and the sum.
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
                    self.is_inner(id) && matches!(node, Node::Fma(..) | Node::Binary(Binary::Add | Binary::Sub, ..))
                };
                let (term, rest) = if !sums(a) && sums(b) { (a, b) } else { (b, a) };
                Some((Err(1.0), term, rest))
            }
            Node::Binary(Binary::Sub, a, b) if self.fused && varies(a) && varies(b) => Some((Err(-1.0), b, a)),
            _ => None,
        }
    }

    /// The sum that ends at a node, or that a node multiplies by a scalar, and the number of that scalar.
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

    /// The sum that ends at a node, first term first, and the nodes inside it; nothing unless it is longer than a plain step.
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
            Node::Binary(Binary::Mul, a, b) if self.is_inner(head) => match (self.scalar(a), self.scalar(b)) {
                (Some(weight), None) => Some((weight, b)),
                (None, Some(weight)) => Some((weight, a)),
                _ => None,
            },
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

/// The number of an item in a list, at whose end it is put if it is not in it.
fn number<I: PartialEq>(list: &mut Vec<I>, item: I) -> usize {
    list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// Gives each value a place: the output where only the output needs it, else a slot that is free again after its last reader.
fn place(mut drafts: Vec<Draft>, outputs: &[Operand]) -> (Vec<Step>, usize) {
    let values = drafts.iter().map(|draft| draft.value + 1).max().unwrap_or(0);
    let mut last_reader = vec![None; values];
    for (number, draft) in drafts.iter_mut().enumerate() {
        draft.op.each_operand(|operand| {
            if let Operand::Slot(value) = *operand {
                last_reader[value] = Some(number);
            }
        });
    }
    let is_output_once = |value| outputs.iter().filter(|&&output| output == Operand::Slot(value)).count() == 1;
    let mut slot_of = vec![0; values];
    let (mut free, mut slots) = (Vec::new(), 0);
    let mut copied: Vec<bool> = outputs.iter().map(|_| true).collect();
    let mut steps = Vec::new();
    for (number, Draft { value, mut op }) in drafts.into_iter().enumerate() {
        let direct = (last_reader[value].is_none() && is_output_once(value))
            .then(|| outputs.iter().position(|&output| output == Operand::Slot(value)))
            .flatten();
        let place = match direct {
            Some(output) => {
                copied[output] = false;
                Place::Output(output)
            }
            None => {
                let slot = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
                slot_of[value] = slot;
                Place::Slot(slot)
            }
        };
        op.each_operand(|operand| {
            if let Operand::Slot(value) = *operand {
                *operand = Operand::Slot(slot_of[value]);
                let is_output = outputs.contains(&Operand::Slot(value));
                if last_reader[value] == Some(number) && !is_output {
                    last_reader[value] = None;
                    free.push(slot_of[value]);
                }
            }
        });
        steps.push(Step { place, op });
    }
    for (number, &output) in outputs.iter().enumerate().filter(|(number, _)| copied[*number]) {
        let operand = match output {
            Operand::Slot(value) => Operand::Slot(slot_of[value]),
            other => other,
        };
        steps.push(Step { place: Place::Output(number), op: Op::Copy(operand) });
    }
    (steps, slots)
}
#[cfg(test)]
mod tests {
    use abide_core::{DType, catalogue};

    use super::*;

    fn tapes(name: &str, dimensions: usize) -> Vec<Tape> {
        let program = catalogue::find(name).unwrap().program(dimensions).unwrap().simplified(DType::F64);
        program.stages().iter().flat_map(|stage| [true, false].map(|fused| Tape::new(&stage.dag, fused))).collect()
    }

    #[test]
    fn a_linear_stencil_is_one_sum_into_its_output() {
        for (name, dimensions, taps) in [("1d3pt", 1, 3), ("2d5pt", 2, 5), ("3d27pt", 3, 27)] {
            for tape in tapes(name, dimensions) {
                assert_eq!(tape.slots, 0);
                let [Step { place: Place::Output(0), op: Op::Sum(terms, None) }] = &tape.steps[..] else {
                    panic!("{:?}", tape.steps)
                };
                assert!(terms.iter().map(|term| term.operand).eq((0..taps).map(Operand::Tap)));
            }
        }
    }

    #[test]
    fn additions_join_sums_only_where_they_are_fused() {
        let lengths: Vec<usize> = tapes("gray-scott", 2).iter().map(|tape| tape.steps.len()).collect();
        assert!(lengths[0] * 3 < lengths[1] * 2, "{lengths:?}");
    }

    #[test]
    fn products_of_three_and_scaled_differences_are_one_step() {
        for tape in tapes("gray-scott", 2) {
            let count = |of: fn(&Op) -> bool| tape.steps.iter().filter(|step| of(&step.op)).count();
            assert_eq!(count(|op| matches!(op, Op::Product(..))), 1, "{:#?}", tape.steps);
            assert_eq!(count(|op| matches!(op, Op::Scaled(_, Binary::Sub, ..))), 1, "{:#?}", tape.steps);
        }
    }

    #[test]
    fn a_sum_is_scaled_where_nothing_else_reads_it() {
        for tape in tapes("gray-scott", 2) {
            let scaled = tape.steps.iter().filter(|step| matches!(step.op, Op::Sum(_, Some(_)))).count();
            assert_eq!(scaled, if tape.steps.len() == 7 { 2 } else { 0 }, "{:#?}", tape.steps);
        }
    }

    #[test]
    fn taps_share_rows() {
        for (name, dimensions, taps, rows) in
            [("1d3pt", 1, 3, 1), ("2d5pt", 2, 5, 3), ("3d27pt", 3, 27, 9), ("gray-scott", 2, 10, 6)]
        {
            for tape in tapes(name, dimensions) {
                assert_eq!((tape.taps.len(), tape.rows.len()), (taps, rows), "{name}");
            }
        }
    }

    #[test]
    fn no_step_reads_the_slot_it_writes() {
        for entry in catalogue::entries() {
            for mut step in tapes(entry.name, *entry.dimensions.end()).into_iter().flat_map(|tape| tape.steps) {
                let Place::Slot(slot) = step.place else { continue };
                step.op.each_operand(|operand| assert_ne!(*operand, Operand::Slot(slot), "{}", entry.name));
            }
        }
    }
}
