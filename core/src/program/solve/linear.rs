//! Formulas that are linear in a field: whether they are, and what they are of another field.

use super::{Centring, Definition, Node, Scope, Solve, SolveMethod, SystemFormula};
use crate::domain::axis_name;
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
        Node::Unary(Unary::Neg | Unary::Widened, a) => Some(of(a)),
        Node::Binary(Binary::Add | Binary::Sub, a, b) => sum(of(a), of(b)),
        Node::Binary(Binary::Mul, a, b) => product(of(a), of(b)),
        Node::Binary(Binary::Div, a, b) => is_free(b).then(|| of(a)),
        Node::Fma(a, b, c) => sum(product(of(a), of(b))?, of(c)),
        Node::Select(condition, a, b) => is_free(condition).then(|| sum(of(a), of(b))).flatten(),
        other => other.operands().all(is_free).then_some(Free),
    }
}

/// What is known of a system.
pub(super) struct Checked {
    /// Whether the operator's diagonal varies from cell to cell.
    pub varies: bool,
    /// Whether the right-hand side reads the field.
    pub keeps: bool,
    /// The operator's coefficients of the neighbours before and behind a cell along each axis, where they are the same in all cells.
    pub even: Option<Dag>,
}

/// Checks that an operator is linear in a field.
pub(super) fn check(
    definition: &Definition,
    unknown: &str,
    [operator, rhs]: [SystemFormula<'_>; 2],
    how: &Solve,
) -> Result<Checked> {
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
    if how.null_space && how.method == SolveMethod::BiCgStab {
        return fault(
            "bicgstab takes no care of its null space".to_owned(),
            "take the method direct, multigrid or cg, or add a small multiple of the field",
        );
    }
    let number = definition.fields().iter().position(|known| known == unknown).unwrap_or(0) as u16;
    if let Some(precision) = definition.names.precision(number) {
        return Err(Error::invalid(
            format!("unknown {unknown} of a solve"),
            format!("its values are rounded to {precision}"),
            "solve for a field of the run's type, and set this one in a stage behind",
        ));
    }
    let graph = Graph::new();
    let scope = Scope::new(&graph, &definition.names);
    let value = operator(&scope);
    let diagonal = self::diagonal(&scope, value, unknown);
    let places = (0..definition.dimensions()).flat_map(|axis| [(axis, -1), (axis, 1)]);
    let neighbours: Vec<Expr<'_>> =
        places.map(|place| beside(&scope, operator(&scope), unknown, place)).collect();
    let right = rhs(&scope);
    let unfit = match how.method {
        SolveMethod::Multigrid => unfit_for_grids(definition, &scope, operator, unknown, number),
        _ => None,
    };
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
    if let Some(why) = unfit {
        return fault(why, "take the method cg or bicgstab");
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
    let neighbours = graph.dag(&neighbours).simplified(crate::real::DType::F64);
    Ok(Checked {
        varies: diagonal.nodes.iter().any(varies),
        keeps,
        even: (!neighbours.nodes.iter().any(varies)).then_some(neighbours),
    })
}

/// Returns why coarser grids cannot stand for an operator, if they cannot.
fn unfit_for_grids(
    definition: &Definition,
    s: &Scope<'_>,
    operator: SystemFormula<'_>,
    unknown: &str,
    number: u16,
) -> Option<String> {
    if definition.on(unknown) != Some(Centring::CELL) {
        return Some(format!("multigrid is for fields on cells, and {unknown} stands elsewhere"));
    }
    let dag = s.graph().dag(&[operator(s)]);
    let mut read = dag.taps().filter(|tap| tap.field == number).map(|tap| tap.offset);
    if let Some(far) = read.find(|offset| offset.iter().map(|by| by.unsigned_abs()).sum::<u32>() > 1) {
        let far = &far[3 - definition.dimensions()..];
        return Some(format!(
            "multigrid takes the cell and its neighbours along the axes, and it reads {unknown} at {far:?}"
        ));
    }
    let is_symmetric = |axis: usize| {
        let [before, behind] =
            [-1, 1].map(|by| s.graph().dag(&[beside(s, operator(s), unknown, (axis, by))]));
        (0..8).all(|seed| {
            let place = [0, 1, 2].map(|axis| 40 + 7 * seed + 3 * axis);
            let mut next = place;
            next[3 - definition.dimensions() + axis] += 1;
            // Coefficients may be above 0, or marks of both signs.
            let low = if seed % 2 == 0 { 0.5 } else { -0.5 };
            let [one, other] =
                [(&behind, place), (&before, next)].map(|(dag, at)| sample(dag, definition, at, low));
            let is_known = one.is_finite() && other.is_finite();
            !is_known || (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
        })
    };
    match (0..definition.dimensions()).find(|&axis| !is_symmetric(axis)) {
        None => None,
        Some(axis) => {
            let axis = axis_name(3 - definition.dimensions() + axis);
            Some(format!("multigrid is for symmetric operators, and it is none along {axis}"))
        }
    }
}

/// Returns the value of a formula at a place among fields and parameters that look random, of a range of 1 from a number on.
fn sample(dag: &Dag, definition: &Definition, place: [isize; 3], low: f64) -> f64 {
    let random = |all: [i64; 4]| {
        let mixed = all.into_iter().fold(0x9e37_79b9_7f4a_7c15_u64, |sum, own| {
            let sum = (sum ^ own as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            sum ^ sum >> 29
        });
        low + (mixed >> 11) as f64 / (1u64 << 53) as f64
    };
    let numbers = 0..definition.scalars().len() as i64;
    let parameters: Vec<f64> = numbers.map(|number| random([number, -1, -1, -1])).collect();
    let mut values = Vec::new();
    dag.evaluate(&mut values, &parameters, place, |tap| {
        let at = [0, 1, 2].map(|axis| place[axis] as i64 + i64::from(tap.offset[axis]));
        random([i64::from(tap.field), at[0], at[1], at[2]])
    });
    dag.outputs.first().map_or(f64::NAN, |&output| values[output as usize])
}

/// Returns an operator of a field applied to another one, in the run's type as to the field.
pub(super) fn applied<'g>(s: &Scope<'g>, operator: Expr<'g>, field: &str, to: &str) -> Expr<'g> {
    let [from, to] = [field, to].map(|name| s.number(name));
    let other = |tap: Tap| s.graph().add(Node::Tap(Tap { field: to, ..tap })).id();
    rewritten(s, operator, |tap| (tap.field == from).then(|| Node::Unary(Unary::Widened, other(tap))))
}

/// Returns an operator's entry on the diagonal away from sides: its value for a field that is 1 at the cell and 0 elsewhere.
pub(super) fn diagonal<'g>(s: &Scope<'g>, operator: Expr<'g>, field: &str) -> Expr<'g> {
    coefficient(s, operator, field, [0; 3])
}

/// Returns an operator's coefficient of the field so many cells along an axis, counted from the slowest.
pub(super) fn beside<'g>(
    s: &Scope<'g>,
    operator: Expr<'g>,
    field: &str,
    (axis, by): (usize, i32),
) -> Expr<'g> {
    let mut offset = [0; 3];
    offset[3 - s.dimensions() + axis] = by;
    coefficient(s, operator, field, offset)
}

/// Returns an operator's coefficient of the field at an offset: its value for a field that is 1 there and 0 elsewhere.
fn coefficient<'g>(s: &Scope<'g>, operator: Expr<'g>, field: &str, offset: [i32; 3]) -> Expr<'g> {
    let own = s.number(field);
    rewritten(s, operator, |tap| {
        let value = if tap.offset == offset { 1.0 } else { 0.0 };
        (tap.field == own).then_some(Node::Const(Constant::new(value)))
    })
}

/// Returns an operator's value for a field that is 1 everywhere; beside the cell along an axis, if one is given, for another field's
/// values.
pub(super) fn of_ones<'g>(
    s: &Scope<'g>,
    operator: Expr<'g>,
    field: &str,
    beside: Option<(usize, &str)>,
) -> Expr<'g> {
    let own = s.number(field);
    let beside = beside.map(|(axis, other)| (3 - s.dimensions() + axis, s.number(other)));
    rewritten(s, operator, |tap| {
        let one = Node::Const(Constant::new(1.0));
        let value = match beside {
            Some((axis, other)) if tap.offset[axis] != 0 => Node::Tap(Tap { field: other, ..tap }),
            _ => one,
        };
        (tap.field == own).then_some(value)
    })
}

fn rewritten<'g>(s: &Scope<'g>, operator: Expr<'g>, put: impl Fn(Tap) -> Option<Node>) -> Expr<'g> {
    let graph = s.graph();
    let rewritten = graph.rewritten(operator, |node| {
        let own = if let Node::Tap(tap) = node { put(tap) } else { None };
        graph.computed(own.unwrap_or(node))
    });
    rewritten.unwrap_or_else(|| {
        let reason = "it has a loop over components";
        s.fail(Error::invalid("operator of a solve", reason, "write the terms out"));
        operator
    })
}
