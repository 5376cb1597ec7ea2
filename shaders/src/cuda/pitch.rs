//! The layout of a field in a CUDA device's memory. Rows begin where lines or sectors of memory begin,
//! whatever the extents, so that kernels move whole words.

use abide_core::program::Buffer;
use abide_core::{DType, Problem};

/// Bytes of a line of device memory, and of a sector, the smallest unit that is moved.
const UNITS: [usize; 2] = [128, 32];

/// The limit on the growth of a row: one part in this many.
const LEAST_SHARE: usize = 8;

/// Returns the cells from the beginning of one row to the beginning of the next. A row is rounded up to
/// lines, or to sectors where lines would cost much, or not at all where sectors would cost much too. The
/// space behind a row is never read as a cell.
pub fn row_pitch(problem: &Problem) -> usize {
    pitch(problem.shape.padded()[2], problem.dtype.bytes())
}

/// Returns the cells of a field in device memory, including the space behind its rows.
pub fn pitched_cells(problem: &Problem) -> usize {
    let [planes, rows, _] = problem.shape.padded();
    planes * rows * row_pitch(problem)
}

/// Returns the values from the beginning of one row of a buffer to the beginning of the next, by the same rule.
pub fn buffer_pitch(buffer: &Buffer, dtype: DType) -> usize {
    pitch(buffer.extents[2], buffer.bytes(dtype))
}

/// Returns the values of a buffer in device memory, including the space behind its rows.
pub fn pitched_values(buffer: &Buffer, dtype: DType) -> usize {
    buffer.extents[0] * buffer.extents[1] * buffer_pitch(buffer, dtype)
}

/// Returns the bytes of a buffer in device memory, including the space behind its rows.
pub fn pitched_bytes(buffer: &Buffer, dtype: DType) -> usize {
    pitched_values(buffer, dtype) * buffer.bytes(dtype)
}

fn pitch(row: usize, bytes: usize) -> usize {
    let rounded = UNITS.map(|unit| row.next_multiple_of(unit / bytes));
    rounded.into_iter().find(|pitch| (pitch - row) * LEAST_SHARE <= row).unwrap_or(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_rounded_up_where_it_costs_little() {
        for (row, dtype, expected) in [
            (8352, DType::F64, 8352),
            (8209, DType::F64, 8224),
            (8209, DType::F32, 8224),
            (251, DType::F64, 256),
            (33, DType::F64, 36),
            (9, DType::F64, 9),
            (8, DType::F32, 8),
            (1, DType::F32, 1),
        ] {
            assert_eq!(pitch(row, dtype.bytes()), expected, "{row} {dtype}");
        }
    }
}
