//! Values of binary32 in C, in formulas of a wider type: what is rounded to binary32 is declared in that type, and so are operations
//! on such values, which round once what the formula rounds twice to the same.

use abide_core::DType;
use abide_core::expr::{self, Binary, Id, Node, Text, Unary, choice};

use super::Language;

/// Which of a formula's values are of binary32.
pub(super) struct Singles {
    is_single: Vec<bool>,
    /// Of each value the operation of binary32 that makes it, if there is one.
    operations: Vec<Option<Node>>,
    /// The names of those that were declared so.
    names: Vec<Option<String>>,
}

impl Singles {
    /// Finds the values of a formula that are of binary32; none where the language or the type tells none apart.
    pub fn of(nodes: &[Node], language: &dyn Language, dtype: DType) -> Singles {
        let mut all = Singles {
            is_single: vec![false; nodes.len()],
            operations: vec![None; nodes.len()],
            names: vec![None; nodes.len()],
        };
        let Some(fields) = language.singles().filter(|_| dtype == DType::F64) else { return all };
        for (id, node) in nodes.iter().enumerate() {
            let is_single = |a: Id| all.is_single[a as usize];
            // What is rounded anyway, and the operations that make values of binary32 of such values by themselves.
            let rounds = |a: Id| match nodes[a as usize] {
                Node::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div, a, b) => {
                    is_single(a) && is_single(b)
                }
                Node::Unary(Unary::Sqrt | Unary::Floor, a) => is_single(a),
                Node::Coord(_) => true,
                _ => false,
            };
            let operation = match *node {
                Node::Unary(Unary::RoundF32, a) if rounds(a) => Some(nodes[a as usize]),
                Node::Unary(Unary::Neg | Unary::Abs, a) if is_single(a) => Some(*node),
                // A choice that few cells make stands in a branch.
                Node::Select(_, yes, no) if is_single(yes) && is_single(no) => {
                    choice(nodes, id as Id).is_none().then_some(*node)
                }
                _ => None,
            };
            let is_known = match *node {
                Node::Const(constant) => expr::is_single(constant.value()),
                Node::Tap(tap) => fields.contains(&tap.field),
                Node::Unary(op, _) if op.is_rounding() => true,
                _ => operation.is_some(),
            };
            (all.is_single[id], all.operations[id]) = (is_known, operation);
        }
        all
    }

    /// Returns the operation of binary32 that makes a value.
    pub fn operation(&self, id: usize) -> Option<Node> {
        self.operations[id]
    }

    /// Returns the values that are needed of the formula as it stands, of those that are `computed`.
    pub fn with_operations(&self, nodes: &[Node], computed: &[bool]) -> Vec<bool> {
        let mut all = computed.to_vec();
        for (id, node) in nodes.iter().enumerate().filter(|(id, _)| computed[*id]) {
            if self.operations[id].is_some() {
                node.operands().for_each(|operand| all[operand as usize] = true);
            }
        }
        all
    }

    /// Returns the text of a value in binary32; `None` for one that is of the formula's type, or is named elsewhere. `names` are those of the values
    /// before, in the formula's type; `holds` has the text of a comparison.
    pub fn value(
        &self,
        id: usize,
        nodes: &[Node],
        names: &[String],
        holds: impl Fn(Id) -> Option<String>,
        language: &dyn Language,
    ) -> Option<String> {
        let of = |a: Id| match (&self.names[a as usize], nodes[a as usize]) {
            (Some(name), _) => name.clone(),
            (None, Node::Const(constant)) => language.literal(DType::F32, constant.value()),
            (None, _) => format!("float({})", names[a as usize]),
        };
        Some(match self.operations[id] {
            Some(Node::Binary(op, a, b)) => match op.text() {
                Text::Infix(sign) => format!("{} {sign} {}", of(a), of(b)),
                _ => return None,
            },
            Some(Node::Select(condition, yes, no)) => {
                let condition =
                    holds(condition).unwrap_or_else(|| format!("{} != 0", names[condition as usize]));
                language.choose(&condition, &of(yes), &of(no))
            }
            Some(Node::Unary(Unary::Neg, a)) => format!("-{}", of(a)),
            Some(Node::Unary(op, a)) => format!("{}f({})", op.c(), of(a)),
            Some(Node::Coord(axis)) => language.coordinate(DType::F32, axis),
            Some(_) => return None,
            None => match nodes[id] {
                Node::Unary(Unary::RoundF32, a) if self.is_single[id] => of(a),
                _ => return None,
            },
        })
    }

    /// Takes down that a value was declared in binary32, and returns its text in the formula's type.
    pub fn declare(&mut self, id: usize, name: &str, real: &str) -> String {
        self.names[id] = Some(name.to_owned());
        format!("{real}({name})")
    }
}
