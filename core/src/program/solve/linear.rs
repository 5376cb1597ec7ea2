//! Formulas that are linear in a field: whether they are, and what they are of another field.

use super::{Definition, Node, Scope, Solve, SolveMethod, SystemFormula};
use crate::error::{Error, Result};
use crate::expr::{Binary, Constant, Dag, Expr, Graph, Id, Tap, Unary};

/// How a part of a formula depends on a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Degree {
    /// It is 0.
    Zero,
    /// It does not.
    Free,
    /// It is linear in the field's values, and 0 where they are.
    Linear,
}

/// Returns how an operation depends on a field whose operands do so; `None` if it is neither independent nor linear.
fn degree(node: Node, field: u16, of: impl Fn(Id) -> Degree) -> Option<Degree> {
    use Degree::{Free, Linear, Zero};
    let sum = |a: Degree, b: Degree| match (a, b) {
        (Zero, other) | (other, Zero) => Some(other),
        (a, b) => (a == b).then_some(a),
    };
    let product = |a: Degree, b: Degree| match (a, b) {
        (Zero, _) | (_, Zero) => Some(Zero),
        (Linear, Linear) => None,
        (Linear, Free) | (Free, Linear) => Some(Linear),
        (Free, Free) => Some(Free),
    };
    let is_free = |id: Id| of(id) != Linear;
    match node {
        Node::Const(constant) if constant.value() == 0.0 => Some(Zero),
        Node::Tap(Tap { field: own, .. }) if own == field => Some(Linear),
        Node::Const(_) | Node::Param(_) | Node::Tap(_) | Node::Coord(_) => Some(Free),
        Node::Unary(Unary::Neg, a) => Some(of(a)),
        Node::Binary(Binary::Add | Binary::Sub, a, b) => sum(of(a), of(b)),
        Node::Binary(Binary::Mul, a, b) => product(of(a), of(b)),
        Node::Binary(Binary::Div, a, b) => is_free(b).then(|| of(a)),
        Node::Fma(a, b, c) => sum(product(of(a), of(b))?, of(c)),
        Node::Select(condition, a, b) => is_free(condition).then(|| sum(of(a), of(b))).flatten(),
        other => other.operands().all(is_free).then_some(Free),
    }
}

/// Checks that an operator is linear in a field, and returns whether its diagonal varies from cell to cell, and whether the
/// right-hand side reads the field.
pub(super) fn check(
    definition: &Definition,
    unknown: &str,
    [operator, rhs]: [SystemFormula<'_>; 2],
    how: &Solve,
) -> Result<(bool, bool)> {
    let fault = |reason: String, change: &str| {
        Err(Error::invalid(format!("operator of the solve for {unknown}"), reason, change))
    };
    if how.tolerance.is_nan() || how.tolerance <= 0.0 || !how.tolerance.is_finite() {
        let what = format!("tolerance of the solve for {unknown}");
        return Err(Error::limit(what, how.tolerance, "above 0", "give a small number, as 1e-8"));
    }
    if how.most == 0 {
        let what = format!("most iterations of the solve for {unknown}");
        return Err(Error::limit(what, 0, "at least 1", "give more"));
    }
    if how.null_space && how.method != SolveMethod::Cg {
        return fault(
            "its null space is taken care of by conjugate gradients alone".to_owned(),
            "take the method cg, or add a small multiple of the field",
        );
    }
    let graph = Graph::new();
    let scope = Scope::new(&graph, &definition.names);
    let value = operator(&scope);
    let number = definition.fields().iter().position(|known| known == unknown).unwrap_or(0) as u16;
    let diagonal = self::diagonal(&scope, value, unknown);
    let right = rhs(&scope);
    scope.finish()?;
    if let Some(fault) = graph.fault() {
        return Err(fault);
    }
    let dag: Dag = graph.dag(&[value]);
    let mut degrees: Vec<Degree> = Vec::with_capacity(dag.nodes.len());
    for &node in &dag.nodes {
        match degree(node, number, |id| degrees[id as usize]) {
            Some(own) => degrees.push(own),
            None => {
                return fault(
                    format!("it is not linear in {unknown}, or has a part that does not read it"),
                    "multiply its values by what does not read it, and move other parts to the right-hand side",
                );
            }
        }
    }
    match dag.outputs.first().map(|&output| degrees[output as usize]) {
        Some(Degree::Linear) => {}
        _ => return fault(format!("it does not read {unknown}"), "read the unknown"),
    }
    let diagonal = graph.dag(&[diagonal]).simplified(crate::real::DType::F64);
    let varies = |node: &Node| matches!(node, Node::Tap(_) | Node::Coord(_) | Node::Draw(..));
    let right = graph.dag(&[right]);
    let mut read = right.taps().filter(|tap| tap.field == number).peekable();
    let keeps = read.peek().is_some();
    if read.any(|tap| tap.offset != [0; 3]) {
        return Err(Error::invalid(
            format!("right-hand side of the solve for {unknown}"),
            format!("it reads {unknown} at other cells than the own one, while the solve changes it"),
            "keep it in another field before the solve, and read that",
        ));
    }
    Ok((diagonal.nodes.iter().any(varies), keeps))
}

/// Returns an operator of a field applied to another one.
pub(super) fn applied<'g>(s: &Scope<'g>, operator: Expr<'g>, field: &str, to: &str) -> Expr<'g> {
    let [from, to] = [field, to].map(|name| s.number(name));
    rewritten(s, operator, |tap| (tap.field == from).then_some(Node::Tap(Tap { field: to, ..tap })))
}

/// Returns an operator's entry on the diagonal away from sides: its value for a field that is 1 at the cell and 0 elsewhere.
pub(super) fn diagonal<'g>(s: &Scope<'g>, operator: Expr<'g>, field: &str) -> Expr<'g> {
    let own = s.number(field);
    rewritten(s, operator, |tap| {
        let value = if tap.offset == [0; 3] { 1.0 } else { 0.0 };
        (tap.field == own).then_some(Node::Const(Constant::new(value)))
    })
}

fn rewritten<'g>(s: &Scope<'g>, operator: Expr<'g>, put: impl Fn(Tap) -> Option<Node>) -> Expr<'g> {
    let graph = s.graph();
    let rewritten = graph.rewritten(operator, |node| {
        let own = if let Node::Tap(tap) = node { put(tap) } else { None };
        graph.add(own.unwrap_or(node))
    });
    rewritten.unwrap_or_else(|| {
        let reason = "it has a loop over components";
        s.fail(Error::invalid("operator of a solve", reason, "write the terms out"));
        operator
    })
}
