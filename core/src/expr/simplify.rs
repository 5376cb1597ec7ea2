//! Rewriting that changes no bit of any value.
//!
//! Constants are folded in the run's own type, never in a wider one. Identities are used only where they hold for signed zeros, infinities and NaN:
//! `x + 0` stays, because it is not `x` when `x` is −0; `x + (−0)` becomes `x`.

use super::{Binary, Constant, Dag, Graph, Id, Node, Unary, binary, unary};
use crate::real::{DType, Real};

impl Dag {
    /// Returns a formula of the same values, to the bit, with fewer operations in `dtype`.
    pub fn simplified(&self, dtype: DType) -> Dag {
        match dtype {
            DType::F32 => simplified::<f32>(self),
            DType::F64 => simplified::<f64>(self),
        }
    }
}

fn simplified<T: Real>(dag: &Dag) -> Dag {
    let graph = Graph::new();
    let mut new: Vec<Id> = Vec::with_capacity(dag.nodes.len());
    for &node in &dag.nodes {
        let node = node.map(|operand| new[operand as usize]);
        new.push(rewrite::<T>(&graph, node));
    }
    let outputs: Vec<Id> = dag.outputs.iter().map(|&id| new[id as usize]).collect();
    Dag::pruned(&graph.plain(), &outputs)
}

/// Returns the number of a node equal in value to `node`, whose operands are already rewritten.
fn rewrite<T: Real>(graph: &Graph, node: Node) -> Id {
    let constant = |id: Id| match graph.node(id) {
        Some(Node::Const(c)) => Some(T::from_f64(c.value())),
        _ => None,
    };
    let is =
        |id: Id, value: f64| constant(id).is_some_and(|c| c.to_bits64() == T::from_f64(value).to_bits64());
    let put = |node: Node| graph.add(node).id();
    let number = |value: T| put(Node::Const(Constant::new(value.to_f64())));
    let negated = |id: Id| match graph.node(id) {
        Some(Node::Unary(Unary::Neg, inner)) => Some(inner),
        _ => None,
    };
    match node {
        // The constant is rounded once here, so that equal values share a node and literals are printed as
        // the type holds them.
        Node::Const(c) => number(T::from_f64(c.value())),
        Node::Unary(op, a) => {
            if let Some(x) = constant(a) {
                return number(unary(op, x));
            }
            if op == Unary::Widened || op == Unary::RoundF32 && (T::DTYPE == DType::F32 || graph.is_single(a))
            {
                return a;
            }
            match (op, graph.node(a)) {
                (Unary::Neg, Some(Node::Unary(Unary::Neg, inner))) => inner,
                (Unary::Abs, Some(Node::Unary(Unary::Neg | Unary::Abs, inner))) => {
                    put(Node::Unary(Unary::Abs, inner))
                }
                _ => put(node),
            }
        }
        Node::Binary(op, a, b) => {
            if let (Some(x), Some(y)) = (constant(a), constant(b)) {
                return number(binary(op, x, y));
            }
            match op {
                Binary::Add if is(b, -0.0) => a,
                Binary::Add if is(a, -0.0) => b,
                Binary::Sub if is(b, 0.0) => a,
                Binary::Mul | Binary::Div if is(b, 1.0) => a,
                Binary::Mul if is(a, 1.0) => b,
                Binary::Mul | Binary::Div if is(b, -1.0) => rewrite::<T>(graph, Node::Unary(Unary::Neg, a)),
                Binary::Mul if is(a, -1.0) => rewrite::<T>(graph, Node::Unary(Unary::Neg, b)),
                Binary::Min | Binary::Max if a == b => a,
                Binary::Add => match negated(b) {
                    Some(inner) => rewrite::<T>(graph, Node::Binary(Binary::Sub, a, inner)),
                    None => put(node),
                },
                Binary::Sub => match negated(b) {
                    Some(inner) => rewrite::<T>(graph, Node::Binary(Binary::Add, a, inner)),
                    None => put(node),
                },
                Binary::Div => match constant(b).and_then(exact_reciprocal) {
                    Some(r) => {
                        let r = number(r);
                        put(Node::Binary(Binary::Mul, a, r))
                    }
                    None => put(node),
                },
                _ => put(node),
            }
        }
        Node::Fma(a, b, c) => {
            if let (Some(x), Some(y), Some(z)) = (constant(a), constant(b), constant(c)) {
                return number(x.mul_add(y, z));
            }
            if is(a, 1.0) {
                return rewrite::<T>(graph, Node::Binary(Binary::Add, b, c));
            }
            if is(b, 1.0) {
                return rewrite::<T>(graph, Node::Binary(Binary::Add, a, c));
            }
            if is(c, -0.0) {
                return rewrite::<T>(graph, Node::Binary(Binary::Mul, a, b));
            }
            put(node)
        }
        Node::Select(c, yes, no) => match constant(c) {
            Some(x) => {
                if x != T::ZERO {
                    yes
                } else {
                    no
                }
            }
            None if yes == no => yes,
            None => put(node),
        },
        Node::Param(_) | Node::Tap(_) | Node::Coord(_) | Node::Draw(..) => put(node),
    }
}

/// Returns 1/x if x is a power of two whose reciprocal is a normal number, because then division and
/// multiplication round alike.
fn exact_reciprocal<T: Real>(x: T) -> Option<T> {
    let (mantissa, smallest) = match T::DTYPE {
        DType::F32 => (23, f64::from(f32::MIN_POSITIVE)),
        DType::F64 => (52, f64::MIN_POSITIVE),
    };
    let power_of_two = x.to_bits64() & ((1 << mantissa) - 1) == 0;
    let reciprocal = T::ONE / x;
    let normal = |v: T| v.is_finite() && v.to_f64().abs() >= smallest;
    (power_of_two && normal(x) && normal(reciprocal)).then_some(reciprocal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::expr::{Expr, Tap};

    fn tap(field: u16) -> Node {
        Node::Tap(Tap { field, offset: [0, 0, 0] })
    }

    fn value<T: Real>(dag: &Dag, taps: [f64; 3]) -> T {
        let mut values = Vec::new();
        dag.evaluate(&mut values, &[T::from_f64(0.3)], [1, 2, 3], |t| T::from_f64(taps[t.field as usize]));
        values[dag.outputs[0] as usize]
    }

    #[test]
    fn equal_parts_are_shared() {
        let graph = Graph::new();
        let (u, v) = (graph.add(tap(0)), graph.add(tap(1)));
        let twice = (u + v) * (u + v);
        assert_eq!(graph.len(), 4);
        assert_eq!(graph.dag(&[twice]).nodes.len(), 4);
    }

    #[test]
    fn signed_zero_survives() {
        let graph = Graph::new();
        let u = graph.add(tap(0));
        let dag = graph.dag(&[u + 0.0]);
        assert_eq!(dag.simplified(DType::F64).nodes.len(), 3, "x + 0 is not x for x = -0");
        assert_eq!(graph.dag(&[u + -0.0]).simplified(DType::F64).nodes.len(), 1);
    }

    #[test]
    fn constants_fold_in_the_type_of_the_run() {
        let graph = Graph::new();
        let sum = graph.constant(0.1) + graph.constant(0.2);
        let folded = |dtype| match graph.dag(&[sum]).simplified(dtype).nodes[..] {
            [Node::Const(c)] => c.value(),
            _ => panic!("not folded"),
        };
        assert_eq!(folded(DType::F64), 0.1 + 0.2);
        assert_eq!(folded(DType::F32), f64::from(0.1f32 + 0.2f32));
    }

    #[test]
    fn contraction_follows_the_order_of_a_linear_stencil() {
        let graph = Graph::new();
        let (u, v) = (graph.add(tap(0)), graph.add(tap(1)));
        let plain = 2.0 * u + 3.0 * v;
        let fused = graph.constant(3.0).mul_add(v, 2.0 * u);
        assert_eq!(graph.contracted(plain).id(), fused.id());
    }

    /// Grows a formula from a list of random choices: each new node takes operands among the earlier ones.
    fn grow<'g>(graph: &'g Graph, choices: &[(u8, u8, u8, u8)]) -> Expr<'g> {
        let mut all: Vec<Expr<'g>> = vec![graph.add(tap(0)), graph.add(tap(1)), graph.add(tap(2))];
        all.push(graph.add(Node::Param(0)));
        for value in [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 0.1, 3.0, f64::INFINITY, 1e-320, 1e-40] {
            all.push(graph.constant(value));
        }
        for &(op, a, b, c) in choices {
            let at = |i: u8| all[i as usize % all.len()];
            let (a, b, c) = (at(a), at(b), at(c));
            all.push(match op % 19 {
                0 => a + b,
                1 => a - b,
                2 => a * b,
                3 => a / b,
                4 => a.min(b),
                5 => a.max(b),
                6 => a.mul_add(b, c),
                7 => a.select(b, c),
                8 => -a,
                9 => a.abs(),
                10 => a.sqrt(),
                11 => a.lt(b),
                12 => a.eq(b),
                13 => a.exp(),
                14 => a.pow(b),
                15 => a.ge(b),
                16 => a.ne(b),
                17 => a.floor(),
                _ => a.tanh(),
            });
        }
        all[all.len() - 1]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn simplification_never_changes_a_bit(
            choices in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..24),
            taps in prop::array::uniform3(prop_oneof![
                any::<f64>(), -10.0..10.0f64, Just(0.0), Just(-0.0), Just(1.0), Just(f64::NAN), Just(f64::INFINITY),
            ]),
        ) {
            let graph = Graph::new();
            let dag = graph.dag(&[grow(&graph, &choices)]);
            let (a, b) = (value::<f64>(&dag, taps), value::<f64>(&dag.simplified(DType::F64), taps));
            prop_assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "f64: {a:e} {b:e}");
            let (a, b) = (value::<f32>(&dag, taps), value::<f32>(&dag.simplified(DType::F32), taps));
            prop_assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "f32: {a:e} {b:e}");
            let operations = |dag: &Dag| dag.nodes.iter().filter(|node| node.operands().count() > 0).count();
            prop_assert!(operations(&dag.simplified(DType::F64)) <= operations(&dag));
        }
    }
}
