//! Expressions: the new value of a cell as a formula of old values around it.
//!
//! A [`Graph`] holds hash-consed [`Node`]s: equal nodes are stored once, and a node's operands always
//! have smaller numbers than the node. An [`Expr`] is a copyable handle into a graph with Rust's operators
//! overloaded, so that a formula reads as in a paper. A [`Dag`] is what is left when the formula is
//! complete: the needed nodes in evaluation order and the outputs.
//!
//! **The order of operations is part of the meaning.** Nothing is reassociated, and a multiplication and an
//! addition become one [`Expr::mul_add`] only where the formula says so (or asks for it by
//! [`Graph::contracted`]). [`Dag::simplified`] changes no bit of any value.

mod dag;
mod operator;
mod ops;
mod simplify;

use std::cell::RefCell;
use std::collections::HashMap;

pub use dag::Dag;
pub use operator::{Binary, Elementary, Text, Unary, binary, unary};
pub use ops::IntoExpr;

use crate::functions::Function;

/// The number of a node in its graph.
pub type Id = u32;

/// A constant of an expression, stored as the bits of an f64 and rounded to the run's type when evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Constant(u64);

impl Constant {
    /// Makes the constant with this value.
    pub fn new(value: f64) -> Self {
        Constant(value.to_bits())
    }

    /// Returns the value.
    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// A field's old value at a constant offset from the cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tap {
    /// The field's number in its program.
    pub field: u16,
    /// The offset in cells along the three axes, slowest first; leading axes that the stencil lacks are 0.
    pub offset: [i32; 3],
}

/// One operation of an expression; operands are numbers of earlier nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// A literal.
    Const(Constant),
    /// A parameter of the program, by number; constant in space, settable between steps.
    Param(u16),
    /// An old value of a field.
    Tap(Tap),
    /// The cell's index along an axis of the padded three (0 is the slowest), counted from 0.
    Coord(u8),
    /// An operator on one operand.
    Unary(Unary, Id),
    /// An operator on two operands.
    Binary(Binary, Id, Id),
    /// `a * b + c`, rounded once.
    Fma(Id, Id, Id),
    /// The second operand if the first is not zero, else the third.
    Select(Id, Id, Id),
}

impl Node {
    /// Returns the operands, in order.
    pub fn operands(self) -> impl Iterator<Item = Id> {
        let (list, len) = match self {
            Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => ([0; 3], 0),
            Node::Unary(_, a) => ([a, 0, 0], 1),
            Node::Binary(_, a, b) => ([a, b, 0], 2),
            Node::Fma(a, b, c) | Node::Select(a, b, c) => ([a, b, c], 3),
        };
        list.into_iter().take(len)
    }

    /// Returns the elementary function that the operation is, if it is one.
    pub fn function(self) -> Option<Function> {
        match self {
            Node::Unary(op, _) => op.function(),
            Node::Binary(op, ..) => op.function(),
            _ => None,
        }
    }

    /// Returns the same operation on renumbered operands.
    pub fn map(self, mut f: impl FnMut(Id) -> Id) -> Node {
        match self {
            Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => self,
            Node::Unary(op, a) => Node::Unary(op, f(a)),
            Node::Binary(op, a, b) => Node::Binary(op, f(a), f(b)),
            Node::Fma(a, b, c) => Node::Fma(f(a), f(b), f(c)),
            Node::Select(a, b, c) => Node::Select(f(a), f(b), f(c)),
        }
    }
}

#[derive(Default)]
struct Nodes {
    list: Vec<Node>,
    index: HashMap<Node, Id>,
}

/// A store of hash-consed nodes.
#[derive(Default)]
pub struct Graph {
    nodes: RefCell<Nodes>,
}

impl Graph {
    /// Makes an empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the handle of a node, which is stored now unless an equal one was stored before.
    pub fn add(&self, node: Node) -> Expr<'_> {
        let mut nodes = self.nodes.borrow_mut();
        let nodes = &mut *nodes;
        let id = *nodes.index.entry(node).or_insert_with(|| {
            nodes.list.push(node);
            (nodes.list.len() - 1) as Id
        });
        Expr { graph: self, id }
    }

    /// Returns a literal.
    pub fn constant(&self, value: f64) -> Expr<'_> {
        self.add(Node::Const(Constant::new(value)))
    }

    /// Returns the number of distinct nodes.
    pub fn len(&self) -> usize {
        self.nodes.borrow().list.len()
    }

    /// Returns whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn node(&self, id: Id) -> Node {
        self.nodes.borrow().list[id as usize]
    }

    /// Returns the needed part of the graph, in evaluation order.
    pub fn dag(&self, outputs: &[Expr<'_>]) -> Dag {
        let nodes = self.nodes.borrow();
        let outputs: Vec<Id> = outputs.iter().map(|e| e.id).collect();
        Dag::pruned(&nodes.list, &outputs)
    }

    /// Returns the same formula with each addition or subtraction of a product made one fused multiply-add.
    ///
    /// This changes bits: it is part of a definition, never of simplification. If both operands are products,
    /// the right one is fused, so that `a*b + c*d` is `fma(c, d, a*b)`: the order in which a linear stencil
    /// sums.
    pub fn contracted<'g>(&'g self, expr: Expr<'g>) -> Expr<'g> {
        let mut new: Vec<Expr<'g>> = Vec::with_capacity(expr.id as usize + 1);
        let product = |e: Expr<'g>| match self.node(e.id) {
            Node::Binary(Binary::Mul, a, b) => {
                Some((Expr { graph: self, id: a }, Expr { graph: self, id: b }))
            }
            _ => None,
        };
        for id in 0..=expr.id {
            let done = match self.node(id).map(|operand| new[operand as usize].id) {
                Node::Binary(Binary::Add, a, b) => {
                    let (a, b) = (Expr { graph: self, id: a }, Expr { graph: self, id: b });
                    match (product(a), product(b)) {
                        (_, Some((x, y))) => x.mul_add(y, a),
                        (Some((x, y)), None) => x.mul_add(y, b),
                        (None, None) => a + b,
                    }
                }
                Node::Binary(Binary::Sub, a, b) => {
                    let (a, b) = (Expr { graph: self, id: a }, Expr { graph: self, id: b });
                    match (product(a), product(b)) {
                        (_, Some((x, y))) => (-x).mul_add(y, a),
                        (Some((x, y)), None) => x.mul_add(y, -b),
                        (None, None) => a - b,
                    }
                }
                node => self.add(node),
            };
            new.push(done);
        }
        new[expr.id as usize]
    }
}

/// A formula: a copyable handle to a node of a [`Graph`].
#[derive(Clone, Copy)]
pub struct Expr<'g> {
    graph: &'g Graph,
    id: Id,
}

impl std::fmt::Debug for Expr<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expr({}: {:?})", self.id, self.graph.node(self.id))
    }
}

impl<'g> Expr<'g> {
    /// Returns the graph that the formula lives in.
    pub fn graph(self) -> &'g Graph {
        self.graph
    }

    /// Returns the node's number in its graph.
    pub fn id(self) -> Id {
        self.id
    }
}
