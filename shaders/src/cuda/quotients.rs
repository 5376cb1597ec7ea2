//! Formulas whose quotients and roots are computed at once, in kernels that launch a stage or a group of stages.

use abide_core::expr::{Binary, Dag, Node, Unary};

use super::Cuda;
use crate::emit::Formula;
use crate::text::Text;

/// What such formulas call; it needs the elementary functions' file before it.
pub const QUOTIENTS: &str = include_str!("../../kernels/cuda/common/quotients.cuh");

impl Cuda {
    /// A formula in a launch of a stage or of a group of stages.
    pub(super) fn of_launch(dag: &Dag) -> Cuda {
        let is_at_once =
            |node: &Node| matches!(node, Node::Binary(Binary::Div, ..) | Node::Unary(Unary::Sqrt, _));
        Cuda { at_once: dag.nodes.iter().any(is_at_once), ..Cuda::PLAIN }
    }

    /// The same for formulas of a type of 64 bits, in which values of these fields are of binary32 or fewer bits.
    pub(super) fn with_singles(self, singles: Vec<u16>) -> Cuda {
        Cuda { singles: Some(singles), ..self }
    }
}

/// Writes the statements of a formula, part of a stage's, and returns the names of its values. Quotients and roots are computed all
/// at once, and again one by one where that could be off.
pub fn evaluated(text: &mut Text, formula: &Formula, language: &Cuda) -> Vec<String> {
    if !language.at_once {
        text.extend(&formula.statements);
        return formula.outputs.clone();
    }
    let count = formula.outputs.len();
    text.push("const auto values = evaluate(u, [&](const auto& u, auto& exact) {");
    text.extend(&formula.statements);
    text.push(format!("return Values<{count}>{{{{{}}}}};\n}});", formula.outputs.join(", ")));
    (0..count).map(|output| format!("values.v[{output}]")).collect()
}
