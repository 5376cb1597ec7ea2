//! The kernels that count the values of a field that are NaN or infinite: one for each type of stored values, for any problem.

use abide_core::{DType, Precision};

/// The text of all kernels.
pub const COUNT: &str = include_str!("../../kernels/cuda/common/count.cu");

/// Threads of a block, and values of a row that a block counts at a time.
const THREADS: u64 = 256;
const SPAN: u64 = 8 * THREADS;

/// The most blocks of a launch.
const BLOCKS: u64 = 1 << 16;

/// The names of the kernels.
pub const COUNT_ENTRIES: [&str; 4] = ["count_f32", "count_f64", "count_f16", "count_bf16"];

/// Returns the number of the kernel among [`COUNT_ENTRIES`] for values of a type that may be stored in a narrower one.
pub fn count_entry(dtype: DType, precision: Option<Precision>) -> usize {
    match (precision, dtype) {
        (Some(Precision::F32), _) | (None, DType::F32) => 0,
        (None, DType::F64) => 1,
        (Some(Precision::F16), _) => 2,
        (Some(Precision::Bf16), _) => 3,
    }
}

/// Returns the blocks and threads of a launch, and the kernel's argument `Values`, for rows of values that lie
/// at an address, `pitch` values apart. The count is added to the 64 bits at another.
pub fn count_launch(first: u64, count: u64, [rows, width, pitch]: [u64; 3]) -> ([u32; 2], [u64; 7]) {
    let spans = width.div_ceil(SPAN);
    let blocks = (rows * spans).clamp(1, BLOCKS);
    ([blocks as u32, THREADS as u32], [first, count, rows, width, pitch, spans, blocks])
}
