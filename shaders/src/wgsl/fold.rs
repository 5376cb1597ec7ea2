//! Folding of the operators that WGSL must not see: those on constants alone.
//!
//! [`abide_core::expr::Dag::simplified`] folds the operators that every backend rounds alike. A WGSL compiler
//! may evaluate the others, such as `exp(2)`, itself, and refuse them where the result is infinite. In f64
//! WGSL has no such functions at all. The folded values are those of the reference.

use abide_core::expr::{Constant, Node, binary, unary};
use abide_core::{DType, Program, Real, Stage};

/// Returns the program's stages, simplified, with every operator whose operands are all constants replaced by
/// its value in `dtype`.
pub(super) fn folded(program: &Program, dtype: DType) -> Vec<Stage> {
    let mut stages = program.simplified(dtype).stages().to_vec();
    for stage in &mut stages {
        match dtype {
            DType::F32 => fold::<f32>(&mut stage.dag.nodes),
            DType::F64 => fold::<f64>(&mut stage.dag.nodes),
        }
    }
    stages
}

fn fold<T: Real>(nodes: &mut [Node]) {
    for number in 0..nodes.len() {
        let value = |operand: u32| match nodes[operand as usize] {
            Node::Const(c) => Some(T::from_f64(c.value())),
            _ => None,
        };
        let folded = match nodes[number] {
            Node::Unary(op, a) => value(a).map(|a| unary(op, a)),
            Node::Binary(op, a, b) => value(a).zip(value(b)).map(|(a, b)| binary(op, a, b)),
            Node::Fma(a, b, c) => value(a).zip(value(b)).zip(value(c)).map(|((a, b), c)| a.mul_add(b, c)),
            _ => None,
        };
        if let Some(value) = folded {
            nodes[number] = Node::Const(Constant::new(value.to_f64()));
        }
    }
}
