//! Formulas as Python records them, and their replay into Abide's expressions.

use std::collections::HashMap;

use abide::Expr;
use abide::expr::{Binary, Composed, Node, Unary};
use abide::program::{Distribution, Scope};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::raise;

/// One recorded operation; operands are numbers of earlier ones.
#[derive(Clone)]
pub enum Op {
    Constant(f64),
    Scalar(String),
    /// A field's value at an offset; at the place of the value itself where there is none.
    Tap(String, Option<Vec<i32>>),
    Coord(usize),
    /// A random number of a distribution, from a stream.
    Draw(&'static Distribution, usize),
    Unary(Unary, usize),
    Binary(Binary, usize, usize),
    Fma(usize, usize, usize),
    Select(usize, usize, usize),
    /// A function that is a formula of operators, and as many operands as it has.
    Composed(&'static Composed, [usize; 3]),
}

impl Op {
    fn operands(&self) -> impl Iterator<Item = usize> {
        let (list, len) = match *self {
            Op::Composed(row, operands) => (operands, row.operands),
            Op::Constant(_) | Op::Scalar(_) | Op::Tap(..) | Op::Coord(_) | Op::Draw(..) => ([0; 3], 0),
            Op::Unary(_, a) => ([a, 0, 0], 1),
            Op::Binary(_, a, b) => ([a, b, 0], 2),
            Op::Fma(a, b, c) | Op::Select(a, b, c) => ([a, b, c], 3),
        };
        list.into_iter().take(len)
    }
}

/// The recorded operations of a program, operands first.
pub struct Tape(Vec<Op>);

impl Tape {
    /// Reads what `pyabide.expressions` records: tuples that begin with the operation's name.
    pub fn read(recorded: &[Bound<'_, PyTuple>]) -> PyResult<Tape> {
        let mut tape = Tape(Vec::with_capacity(recorded.len()));
        for entry in recorded {
            let op = operation(entry)?;
            if op.operands().any(|operand| operand >= tape.0.len()) {
                return Err(raise(
                    "Defect",
                    "a recorded formula names an operand that follows it".to_owned(),
                ));
            }
            tape.0.push(op);
        }
        Ok(tape)
    }

    /// Has parameters stand in the place of formulas. They have been checked.
    pub fn name(&mut self, named: Vec<(String, usize)>) {
        for (name, number) in named {
            self.0[number] = Op::Scalar(name);
        }
    }

    /// Checks that formulas of these numbers were recorded.
    pub fn check(&self, mut numbers: impl Iterator<Item = usize>) -> PyResult<()> {
        match numbers.all(|number| number < self.0.len()) {
            true => Ok(()),
            false => Err(raise("Defect", "a formula that was not recorded is used".to_owned())),
        }
    }

    /// Returns the expressions of the formulas of these numbers, in a scope. They have been checked.
    pub fn replay<'g>(&self, scope: &Scope<'g>, outputs: &[usize]) -> Vec<Expr<'g>> {
        let last = outputs.iter().copied().max().map_or(0, |last| last + 1);
        let mut needed = vec![false; last];
        for &output in outputs {
            needed[output] = true;
        }
        for number in (0..last).rev() {
            if needed[number] {
                self.0[number].operands().for_each(|operand| needed[operand] = true);
            }
        }
        let graph = scope.constant(0.0).graph();
        let mut made: HashMap<usize, Expr<'g>> = HashMap::new();
        for number in (0..last).filter(|&number| needed[number]) {
            let id = |operand: &usize| made[operand].id();
            let expr = match &self.0[number] {
                Op::Constant(value) => scope.constant(*value),
                Op::Scalar(name) => scope.param(name),
                Op::Tap(field, None) => scope.field(field).here(),
                Op::Tap(field, Some(offset)) => scope.field(field).at_slice(offset),
                Op::Coord(axis) => scope.coord(*axis),
                Op::Draw(distribution, stream) => (distribution.draw)(scope, *stream),
                Op::Unary(op, a) => graph.computed(Node::Unary(*op, id(a))),
                Op::Binary(op, a, b) => graph.computed(Node::Binary(*op, id(a), id(b))),
                Op::Fma(a, b, c) => graph.computed(Node::Fma(id(a), id(b), id(c))),
                Op::Select(a, b, c) => graph.computed(Node::Select(id(a), id(b), id(c))),
                Op::Composed(row, operands) => {
                    let all: Vec<Expr<'g>> = operands[..row.operands].iter().map(|at| made[at]).collect();
                    row.of(&all).unwrap_or_else(|| scope.constant(f64::NAN))
                }
            };
            made.insert(number, expr);
        }
        outputs.iter().map(|output| made[output]).collect()
    }
}

fn operation(entry: &Bound<'_, PyTuple>) -> PyResult<Op> {
    let kind: String = entry.get_item(0)?.extract()?;
    let operand = |at: usize| entry.get_item(at)?.extract::<usize>();
    Ok(match kind.as_str() {
        "constant" => Op::Constant(entry.get_item(1)?.extract()?),
        "scalar" => Op::Scalar(entry.get_item(1)?.extract()?),
        "tap" => Op::Tap(entry.get_item(1)?.extract()?, entry.get_item(2)?.extract()?),
        "coord" => Op::Coord(operand(1)?),
        "fma" => Op::Fma(operand(1)?, operand(2)?, operand(3)?),
        "select" => Op::Select(operand(1)?, operand(2)?, operand(3)?),
        name => {
            // An operator's name is that of its variant.
            if let Some(row) = name.strip_prefix("composed ").and_then(Composed::named) {
                let mut operands = [0; 3];
                for (at, own) in operands.iter_mut().enumerate().take(row.operands) {
                    *own = operand(at + 1)?;
                }
                return Ok(Op::Composed(row, operands));
            }
            if let Some(row) = name.strip_prefix("draw ").and_then(Distribution::named) {
                return Ok(Op::Draw(row, operand(1)?));
            }
            let unary = Unary::ALL.iter().find(|op| format!("{op:?}") == name);
            let binary = Binary::ALL.iter().find(|op| format!("{op:?}") == name);
            match (unary, binary) {
                (Some(op), _) => Op::Unary(*op, operand(1)?),
                (None, Some(op)) => Op::Binary(*op, operand(1)?, operand(2)?),
                (None, None) => return Err(raise("Defect", format!("no operator is named `{name}`"))),
            }
        }
    })
}
