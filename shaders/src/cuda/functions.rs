//! Kernels of one elementary function each, for its bits and its rate.

use abide_core::DType;
use abide_core::functions::Function;

use super::{Cuda, DEVICE, FUNCTIONS};
use crate::functions;
use crate::text::Text;

const EACH: &str = include_str!("../../kernels/cuda/common/each.cuh");

/// Threads of a block.
pub const EACH_THREADS: u32 = 256;

/// Whose function a kernel computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The one that formulas have.
    Formula,
    /// CUDA's own.
    Cuda,
}

/// Returns the name of the kernel of a function.
///
/// It takes a struct of five words: the addresses of the first arguments, of the second ones and of the values,
/// their number, and how often each is computed.
pub fn each_entry(function: Function, whose: Whose) -> String {
    match whose {
        Whose::Formula => format!("formula_of_{}", function.name()),
        Whose::Cuda => format!("cuda_of_{}", function.name()),
    }
}

/// Returns the text of the kernels of all functions in a type, [`Whose::Formula`] and, where asked for, CUDA's own.
pub fn each_kernels(dtype: DType, with_cuda: bool) -> String {
    let mut text = Text::default();
    text.file(DEVICE);
    text.blank();
    text.push(format!("typedef {} real;", if dtype == DType::F32 { "float" } else { "double" }));
    let all = Function::ALL.iter().copied().collect();
    functions::write(&mut text, FUNCTIONS, &Cuda::PLAIN, dtype, &all);
    text.file(EACH);
    for &function in Function::ALL {
        let arguments = if function.arguments() == 1 { "x" } else { "x, y" };
        for whose in [Whose::Formula, Whose::Cuda] {
            let called = match whose {
                Whose::Formula => format!("formula_{}", function.name()),
                Whose::Cuda if with_cuda => function.name().to_owned(),
                Whose::Cuda => continue,
            };
            text.push(format!(
                "extern \"C\" __global__ void {}(const __grid_constant__ Each each)",
                each_entry(function, whose)
            ));
            text.push("{");
            text.push(format!("each_of(each, [](real x, real y) {{ return {called}({arguments}); }});"));
            text.push("}");
        }
    }
    text.into()
}
