//! The kernels that count the values of a field that are NaN or infinite: one for each type, for any problem.

use abide_core::DType;

/// The text of both kernels.
pub const COUNT: &str = include_str!("../../kernels/cuda/common/count.cu");

/// Threads of a block, and values of a row that a block counts at a time.
const THREADS: u64 = 256;
const SPAN: u64 = 8 * THREADS;

/// The most blocks of a launch.
const BLOCKS: u64 = 1 << 16;

/// Returns the name of the kernel for a type.
pub fn count_entry(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "count_f32",
        DType::F64 => "count_f64",
    }
}

/// Returns the blocks and threads of a launch, and the kernel's argument `Values`, for rows of values that lie
/// at an address, `pitch` values apart. The count is added to the 64 bits at another.
pub fn count_launch(first: u64, count: u64, [rows, width, pitch]: [u64; 3]) -> ([u32; 2], [u64; 7]) {
    let spans = width.div_ceil(SPAN);
    let blocks = (rows * spans).clamp(1, BLOCKS);
    ([blocks as u32, THREADS as u32], [first, count, rows, width, pitch, spans, blocks])
}
