//! Matrices and vectors in NIST's Matrix Market format (Boisvert, Pozo, Remington: *The Matrix Market
//! Exchange Formats: Initial Design*, NISTIR 5935, 1996).
//!
//! Two kinds of files are read. Matrices are `coordinate` files with `real` (or `double`), `integer` or
//! `pattern` entries (a `pattern` entry is 1) that are `general`, `symmetric` or `skew-symmetric`; of the
//! latter two a file lists the lower triangle. Vectors are `array`s, or `coordinate` matrices of one column.
//!
//! Comments and blank lines may stand anywhere below the banner, lines may end with CR LF, and exponents may
//! be written with a `D` as Fortran does. Entries that stand twice are added up in the order of the file. A
//! file whose name ends with `.gz`, or which starts as gzip data do, is decompressed on the way. A value
//! below the type's range becomes 0. That is an error if a row of a matrix, or a whole vector, has nothing
//! else. Every error names the file and the line or row.
//!
//! ```
//! use abide_core::DType;
//! use abide_solvers::sparse::{laplacian_2d, market};
//!
//! let matrix = laplacian_2d(4, 3, DType::F64)?;
//! let mut file = Vec::new();
//! market::write_matrix(&matrix, &mut file)?;
//! assert_eq!(market::read_matrix_from(&file[..], "laplacian.mtx", DType::F64)?, matrix);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod header;
mod lines;
mod read;
#[cfg(test)]
mod tests;
mod vanished;
mod write;

pub use read::{
    Announced, read_matrix, read_matrix_from, read_matrix_if, read_vector, read_vector_from, read_vector_if,
};
pub use write::{write_matrix, write_vector};
