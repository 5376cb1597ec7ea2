//! Arithmetic in binary32 in formulas of a wider type.
//!
//! Values of some fields are of 24 bits or fewer. What an operator makes of such values alone is rounded to binary32, and what belongs to no
//! field (numbers, parameters, coordinates, tables, random numbers) is rounded before it meets one: that is binary32's own
//! arithmetic, since sums, products, quotients and roots of its values that are rounded to binary64 and then to binary32 are
//! those rounded once. A device may therefore take its operations of 32 bits.

use super::{Expr, Graph, Id, Node, Term, Unary};

/// What a term's values are; of an operator's operands the last one says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    /// They are no field's, and follow those that they meet.
    Any,
    /// Rounded to binary32, or to fewer bits.
    Single,
    /// Of the run's type.
    Run,
}

impl Unary {
    /// Returns whether the operator changes a sign alone, or rounds.
    fn keeps_single(self) -> bool {
        matches!(self, Unary::Neg | Unary::Abs) || self.is_rounding()
    }

    /// Returns whether the operator rounds to a precision.
    pub fn is_rounding(self) -> bool {
        matches!(self, Unary::RoundF32 | Unary::RoundF16 | Unary::RoundBf16)
    }
}

/// Returns whether binary32 has a number.
pub fn is_single(value: f64) -> bool {
    f64::from(value as f32).to_bits() == value.to_bits()
}

impl super::Nodes {
    /// Returns what a term's values are; operands have been stored.
    pub(super) fn width(&self, term: Term) -> Width {
        let of_field = |field: u16| match self.singles.contains(&field) {
            true => Width::Single,
            false => Width::Run,
        };
        let widest = |node: Node| node.operands().map(|id| self.widths[id as usize]).max();
        match term {
            Term::Node(Node::Tap(tap)) => of_field(tap.field),
            Term::Component(first, _) => of_field(first.field),
            Term::Node(Node::Unary(op, _)) if op.is_rounding() => Width::Single,
            Term::Node(Node::Unary(Unary::Widened, _)) => Width::Run,
            Term::Node(Node::Binary(op, ..)) if op.relation().is_some() => Width::Any,
            Term::Node(Node::Select(_, yes, no)) => self.widths[yes as usize].max(self.widths[no as usize]),
            Term::Node(Node::Draw(..)) => Width::Any,
            Term::Node(node) => widest(node).unwrap_or(Width::Any),
            // What turns of a loop add up is of the run's type, and so is what they make.
            Term::Carried(..) | Term::Result(..) => Width::Run,
            Term::Entry(..) | Term::Index(_) => Width::Any,
        }
    }
}

impl Graph {
    /// Has the values of these fields, by their numbers, computed with in binary32.
    pub(crate) fn set_singles(&self, fields: Vec<u16>) {
        self.nodes.borrow_mut().singles = fields;
    }

    /// Returns the value of an operation, in binary32 if all of the fields that it follows from are rounded to that or fewer bits.
    pub fn computed(&self, node: Node) -> Expr<'_> {
        let is_seen = node.operands().all(|operand| self.is_seen(operand));
        if !is_seen || self.nodes.borrow().singles.is_empty() {
            return self.add(node);
        }
        let width = |id: Id| self.nodes.borrow().widths[id as usize];
        let widest = match node {
            Node::Draw(..) => None,
            // The condition of a choice is no part of its value.
            Node::Select(_, yes, no) => Some(width(yes).max(width(no))),
            Node::Unary(Unary::Widened, _) => Some(Width::Run),
            node => node.operands().map(width).max(),
        };
        if widest != Some(Width::Single) {
            return self.add(node);
        }
        let node = match node {
            Node::Select(condition, yes, no) => Node::Select(condition, self.single(yes), self.single(no)),
            Node::Unary(op, a) if op == Unary::RoundF32 && self.is_single(a) => {
                return Expr { graph: self, id: a };
            }
            node => node.map(|id| self.single(id)),
        };
        let value = self.add(node);
        match node {
            Node::Unary(op, _) if op.keeps_single() => value,
            Node::Binary(op, ..) if op.relation().is_some() => value,
            Node::Select(..) => value,
            _ => self.add(Node::Unary(Unary::RoundF32, value.id)),
        }
    }

    /// Returns a value that belongs to no field rounded to binary32, and others as they are.
    fn single(&self, id: Id) -> Id {
        if self.nodes.borrow().widths[id as usize] != Width::Any || self.is_single(id) {
            return id;
        }
        match self.node(id) {
            Some(Node::Const(constant)) => self.constant(f64::from(constant.value() as f32)).id,
            _ => self.add(Node::Unary(Unary::RoundF32, id)).id,
        }
    }

    /// Returns whether an operation's values are of binary32 whatever it reads.
    pub(crate) fn is_single(&self, id: Id) -> bool {
        match self.node(id) {
            Some(Node::Const(constant)) => is_single(constant.value()),
            Some(Node::Unary(op, a)) => op.is_rounding() || op.keeps_single() && self.is_single(a),
            Some(Node::Binary(op, ..)) => op.relation().is_some(),
            Some(Node::Select(_, yes, no)) => self.is_single(yes) && self.is_single(no),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::{Binary, Constant, Dag, Tap};

    const UNARY: [Unary; 4] = [Unary::Neg, Unary::Abs, Unary::Sqrt, Unary::Floor];
    const BINARY: [Binary; 6] =
        [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Min, Binary::Max];

    /// Returns a formula of random operations, made by `put`: of two fields, a parameter and numbers.
    fn made<'g>(graph: &'g Graph, seed: u64, put: impl Fn(Node) -> Expr<'g>) -> Dag {
        let mut rng = fastrand::Rng::with_seed(seed);
        let tap = |field: u16| Node::Tap(Tap { field, offset: [0; 3] });
        let leaves = [tap(0), tap(1), Node::Param(0), Node::Const(Constant::new(0.1))];
        let mut all: Vec<Id> = leaves.map(|leaf| graph.add(leaf).id()).to_vec();
        for _ in 0..30 {
            let [a, b, c] = [(); 3].map(|()| all[rng.usize(..all.len())]);
            let node = match rng.usize(..8) {
                0 | 1 => Node::Unary(UNARY[rng.usize(..UNARY.len())], a),
                2 => Node::Select(put(Node::Binary(Binary::Less, a, b)).id(), b, c),
                _ => Node::Binary(BINARY[rng.usize(..BINARY.len())], a, b),
            };
            all.push(put(node).id());
        }
        // A value that follows from a field.
        let last = Expr { graph, id: all[all.len() - 1] };
        graph.dag(&[put(Node::Binary(Binary::Add, last.id, all[0]))])
    }

    fn value<T: crate::Real>(dag: &Dag, param: f64, fields: [f32; 2]) -> T {
        let mut values = Vec::new();
        let field = |tap: Tap| T::from_f64(f64::from(fields[usize::from(tap.field)]));
        dag.evaluate(&mut values, &[T::from_f64(param)], [0; 3], field);
        values[dag.outputs[0] as usize]
    }

    /// Formulas of f64 in which all fields are of binary32 have the bits of the same formulas in f32, subnormal numbers included: what
    /// meets a field is rounded, and operations of numbers and parameters among themselves, which are exact here, are not.
    #[test]
    fn fields_of_binary32_are_computed_with_in_binary32() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut differs = 0;
        for seed in 0..3000 {
            let (single, plain) = (Graph::new(), Graph::new());
            single.set_singles(vec![0, 1]);
            let [of_single, of_plain] = [
                made(&single, seed, |node| single.computed(node)),
                made(&plain, seed, |node| plain.computed(node)),
            ];
            let scale = [1.0, 1e-38, 1e30][rng.usize(..3)];
            let fields = [(); 2].map(|()| (rng.f32() - 0.5) * scale);
            let computed: f64 = value(&of_single, 0.75, fields);
            let simplified: f64 = value(&of_single.simplified(crate::DType::F64), 0.75, fields);
            let [expected, wide] =
                [f64::from(value::<f32>(&of_plain, 0.75, fields)), value(&of_plain, 0.75, fields)];
            // Numbers and parameters alone are computed in the run's type.
            let is_exact = of_plain.nodes.iter().all(|node| match *node {
                Node::Binary(_, a, b) => [a, b].iter().any(|&id| follows(&of_plain, id)),
                Node::Unary(_, a) => follows(&of_plain, a),
                _ => true,
            });
            if !is_exact {
                continue;
            }
            assert!(same(computed, expected), "{seed}: {computed} {expected}\n{of_single:?}");
            assert!(same(simplified, expected), "{seed}: {simplified} {expected}");
            differs += usize::from(!same(wide, expected));
        }
        assert!(differs > 300, "{differs} formulas have other values in f64");
    }

    /// Returns whether a value follows from a field, not only the choice of it.
    fn follows(dag: &Dag, id: Id) -> bool {
        match dag.nodes[id as usize] {
            Node::Tap(_) => true,
            Node::Select(_, yes, no) => follows(dag, yes) || follows(dag, no),
            node => node.operands().any(|operand| follows(dag, operand)),
        }
    }

    fn same(a: f64, b: f64) -> bool {
        a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
    }

    /// A field of the run's type among the operands keeps all bits of what it follows from.
    #[test]
    fn what_meets_a_field_of_the_runs_type_is_of_that_type() {
        let graph = Graph::new();
        graph.set_singles(vec![0]);
        let [narrow, wide] = [0, 1].map(|field| graph.add(Node::Tap(Tap { field, offset: [0; 3] })));
        let dag = graph.dag(&[narrow * wide, 0.1 * narrow, 0.1 * (narrow + wide)]);
        let (x, y) = (1.0 / 3.0_f32, 1.0 / 7.0_f32);
        let mut values = Vec::new();
        dag.evaluate(&mut values, &[], [0; 3], |tap| f64::from([x, y][usize::from(tap.field)]));
        let [x, y] = [x, y].map(f64::from);
        let expected = [x * y, f64::from(0.1_f32 * (1.0 / 3.0_f32)), 0.1 * (x + y)];
        assert_eq!([0, 1, 2].map(|output: usize| values[dag.outputs[output] as usize]), expected);
    }
}
