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
//!
//! A formula may have loops ([`Graph::repeat`], [`Graph::sum`]). Its [`Dag`] has each of their turns; a [`Looped`] is the
//! same formula with the loops in it.

mod arrange;
mod choices;
mod composed;
mod cost;
mod dag;
mod draw;
mod forms;
mod live;
#[cfg(test)]
mod loop_tests;
mod looped;
mod loops;
mod operator;
mod ops;
mod rows;
mod simplify;
mod single;
mod stores;
mod tree;

use std::cell::RefCell;
use std::collections::HashMap;

pub use choices::{Cells, choice};
pub use composed::{COMPOSED, Composed};
pub use cost::places;
pub use dag::Dag;
pub use draw::{Draw, STEPS_OF_TURN, philox};
pub use forms::{QuadraticForm, factors};
pub use looped::{Carried, Item, Loop, Looped};
pub use loops::{
    Components, Entries, Index, LoopId, MAX_ENTRIES, MAX_LOOPS, MAX_NESTED, MAX_TURNS, Place, Table, Term,
    Turns,
};
pub use operator::{Binary, Elementary, Text, Unary, binary, unary};
pub use ops::IntoExpr;
pub use rows::{Group, Rows};
pub use single::is_single;
pub use stores::Store;
pub use tree::MAX_LANES;

use crate::error::Error;
use crate::functions::Function;
use loops::{Built, leaked};
use single::Width;
use stores::BuiltStore;

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
    /// A random number of these operands.
    Draw(Draw, [Id; Draw::OPERANDS]),
}

impl Node {
    /// Returns the operands, in order.
    pub fn operands(self) -> impl Iterator<Item = Id> {
        let mut list = [0; Draw::OPERANDS];
        let len = match self {
            Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => 0,
            Node::Unary(_, a) => {
                list[0] = a;
                1
            }
            Node::Binary(_, a, b) => {
                list[..2].copy_from_slice(&[a, b]);
                2
            }
            Node::Fma(a, b, c) | Node::Select(a, b, c) => {
                list[..3].copy_from_slice(&[a, b, c]);
                3
            }
            Node::Draw(_, operands) => {
                list = operands;
                Draw::OPERANDS
            }
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
            Node::Draw(draw, operands) => Node::Draw(draw, operands.map(f)),
        }
    }
}

#[derive(Default)]
struct Nodes {
    list: Vec<Term>,
    index: HashMap<Term, Id>,
    /// Of each term the innermost loop on whose turn it depends.
    homes: Vec<Option<LoopId>>,
    /// Of each term what its values are, and the fields whose values are rounded to binary32 or fewer bits.
    widths: Vec<Width>,
    singles: Vec<u16>,
    loops: Vec<Built>,
    /// What turns of loops store, and of each group of results their number.
    stores: Vec<BuiltStore>,
    stored: Vec<usize>,
    tables: Vec<Entries>,
    /// The innermost of the loops that are being built.
    open: Option<LoopId>,
    /// What was wrong with a loop or a table, first of all.
    fault: Option<Error>,
}

impl Nodes {
    /// Returns whether a loop is `outer`, or within it.
    fn is_within(&self, inner: Option<LoopId>, outer: Option<LoopId>) -> bool {
        let Some(outer) = outer else { return true };
        let around = |number: &LoopId| self.loops[usize::from(*number)].parent;
        std::iter::successors(inner, around).any(|number| number == outer)
    }

    /// Returns the least and the greatest number that a place has; `None` outside of its loop.
    fn reach(&self, place: Place) -> Option<[i64; 2]> {
        let offset = i64::from(place.offset);
        match place.of {
            None => Some([offset; 2]),
            Some(number) if self.is_within(self.open, Some(number)) => {
                Some(self.loops[usize::from(number)].reach.map(|index| index + offset))
            }
            Some(_) => None,
        }
    }

    /// Returns the loop in whose turns a term is computed: the innermost that it depends on.
    fn home(&self, term: Term) -> Option<LoopId> {
        let deeper = |a: Option<LoopId>, b: Option<LoopId>| if self.is_within(b, a) { b } else { a };
        match term {
            Term::Node(node) => {
                node.operands().map(|operand| self.homes[operand as usize]).fold(None, deeper)
            }
            Term::Entry(_, [row, column]) => deeper(row.of, column.of),
            Term::Component(_, place) | Term::Index(place) => place.of,
            Term::Carried(number, _) => Some(number),
            Term::Result(number, _) => self.loops[usize::from(number)].parent,
        }
    }
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
        if node.operands().all(|operand| self.is_seen(operand)) {
            return self.put(Term::Node(node));
        }
        self.fail(leaked());
        self.constant(f64::NAN)
    }

    /// Returns the handle of a term, which is stored now unless an equal one was stored before.
    fn put(&self, term: Term) -> Expr<'_> {
        let nodes = &mut *self.nodes.borrow_mut();
        let id = match nodes.index.get(&term) {
            Some(&id) => id,
            None => {
                let (id, home, width) = (nodes.list.len() as Id, nodes.home(term), nodes.width(term));
                nodes.list.push(term);
                nodes.widths.push(width);
                nodes.homes.push(home);
                nodes.index.insert(term, id);
                id
            }
        };
        Expr { graph: self, id }
    }

    /// Returns whether a term may be used where the formula is being built: outside of its loop it has no value.
    fn is_seen(&self, id: Id) -> bool {
        let nodes = self.nodes.borrow();
        nodes.is_within(nodes.open, nodes.homes[id as usize])
    }

    fn fail(&self, error: Error) {
        self.nodes.borrow_mut().fault.get_or_insert(error);
    }

    /// Returns what was wrong with a loop, an index or a table of the formulas built so far; values that could not be
    /// built are NaN.
    pub fn fault(&self) -> Option<Error> {
        self.nodes.borrow().fault.clone()
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

    fn term(&self, id: Id) -> Term {
        self.nodes.borrow().list[id as usize]
    }

    /// Returns the operation that a term is; `None` for what belongs to loops and tables.
    pub(crate) fn node(&self, id: Id) -> Option<Node> {
        match self.term(id) {
            Term::Node(node) => Some(node),
            _ => None,
        }
    }

    /// Returns the needed part of the graph, in evaluation order, with each turn of every loop.
    pub fn dag(&self, outputs: &[Expr<'_>]) -> Dag {
        match self.looped(outputs) {
            Some(looped) => looped.unrolled(),
            None => {
                let outputs: Vec<Id> = outputs.iter().map(|e| e.id).collect();
                Dag::pruned(&self.plain(), &outputs)
            }
        }
    }

    /// Returns the needed part of the graph with its loops; `None` if it has none.
    pub fn looped(&self, outputs: &[Expr<'_>]) -> Option<Looped> {
        if self.nodes.borrow().loops.is_empty() {
            return None;
        }
        let seen = |output: &Expr<'_>| match self.is_seen(output.id) {
            true => output.id,
            false => {
                self.fail(leaked());
                self.constant(f64::NAN).id
            }
        };
        let outputs: Vec<Id> = outputs.iter().map(seen).collect();
        arrange::arranged(&self.nodes.borrow(), &outputs)
    }

    /// Returns the operations, by their numbers; what belongs to loops, which no formula without them needs, is NaN.
    fn plain(&self) -> Vec<Node> {
        let nodes = self.nodes.borrow();
        let plain = nodes.list.iter().map(|term| match term {
            Term::Node(node) => *node,
            _ => Node::Const(Constant::new(f64::NAN)),
        });
        plain.collect()
    }

    /// Returns a formula whose operations `put` has stored again, operands first, in other form; `None` if it has a loop.
    pub(crate) fn rewritten<'g>(
        &'g self,
        expr: Expr<'g>,
        mut put: impl FnMut(Node) -> Expr<'g>,
    ) -> Option<Expr<'g>> {
        let mut needed = vec![false; expr.id as usize + 1];
        needed[expr.id as usize] = true;
        for id in (0..=expr.id).rev() {
            if needed[id as usize] {
                self.node(id)?.operands().for_each(|operand| needed[operand as usize] = true);
            }
        }
        let mut new: Vec<Id> = vec![0; expr.id as usize + 1];
        for id in (0..=expr.id).filter(|&id| needed[id as usize]) {
            let node = self.node(id)?.map(|operand| new[operand as usize]);
            new[id as usize] = put(node).id;
        }
        Some(Expr { graph: self, id: new[expr.id as usize] })
    }

    /// Returns an output of another graph's formulas, made in this one.
    pub(crate) fn grafted(&self, dag: &Dag, output: usize) -> Expr<'_> {
        let mut new: Vec<Id> = Vec::with_capacity(dag.nodes.len());
        for &node in &dag.nodes {
            new.push(self.add(node.map(|operand| new[operand as usize])).id);
        }
        Expr { graph: self, id: new[dag.outputs[output] as usize] }
    }

    /// Returns the same formula with each addition or subtraction of a product made one fused multiply-add.
    ///
    /// This changes bits: it is part of a definition, never of simplification. If both operands are products,
    /// the right one is fused, so that `a*b + c*d` is `fma(c, d, a*b)`: the order in which a linear stencil
    /// sums. What loops carry stays as it is.
    pub fn contracted<'g>(&'g self, expr: Expr<'g>) -> Expr<'g> {
        let mut new: Vec<Expr<'g>> = Vec::with_capacity(expr.id as usize + 1);
        let product = |e: Expr<'g>| match self.node(e.id) {
            Some(Node::Binary(Binary::Mul, a, b)) => {
                Some((Expr { graph: self, id: a }, Expr { graph: self, id: b }))
            }
            _ => None,
        };
        for id in 0..=expr.id {
            // What a loop's turns are made of is not seen here.
            let node = self.node(id).filter(|_| self.is_seen(id));
            let Some(node) = node.map(|node| node.map(|operand| new[operand as usize].id)) else {
                new.push(Expr { graph: self, id });
                continue;
            };
            let done = match node {
                Node::Binary(Binary::Add, a, b) => {
                    let (a, b) = (Expr { graph: self, id: a }, Expr { graph: self, id: b });
                    match (product(a), product(b)) {
                        (_, Some((x, y))) => x.mul_add(y, a),
                        (Some((x, y)), None) => x.mul_add(y, b),
                        (None, None) => self.add(node),
                    }
                }
                Node::Binary(Binary::Sub, a, b) => {
                    let (a, b) = (Expr { graph: self, id: a }, Expr { graph: self, id: b });
                    match (product(a), product(b)) {
                        (_, Some((x, y))) => (-x).mul_add(y, a),
                        (Some((x, y)), None) => x.mul_add(y, -b),
                        (None, None) => self.add(node),
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
        write!(f, "Expr({}: {:?})", self.id, self.graph.term(self.id))
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
