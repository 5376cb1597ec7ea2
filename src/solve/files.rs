//! Matrices and vectors of systems from files. A file is refused by its header where it cannot be of use or
//! takes too much memory.

use std::path::Path;

use abide_core::sparse::Csr;
use abide_solvers::sparse::market;

use crate::memory::Budget;
use crate::{Array, DType, Error, Result, io};

/// Returns the advice for a system that memory has no room for.
fn smaller(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "choose a smaller system",
        DType::F64 => "choose a smaller system or --dtype f32",
    }
}

/// Reads the matrix of a system from a Matrix Market file, its values rounded to `dtype`.
///
/// # Errors
///
/// Those of [`market::read_matrix`]; [`Error::File`] where the file lists so few entries that a row must be
/// empty; [`Error::Limit`] where the machine has no memory to read it. The last two come before the entries
/// are read.
pub fn read_matrix(path: impl AsRef<Path>, dtype: DType) -> Result<Csr> {
    let path = path.as_ref();
    market::read_matrix_if(path, dtype, |size| {
        // Even with a symmetric matrix, a listed entry stands in at most two rows.
        if size.listed.saturating_mul(2) < size.rows as u64 {
            let message = format!("line {}: {} entries in {} rows", size.line, size.listed, size.rows);
            return Err(Error::file(path, message + ": the matrix is singular", "give every row an entry"));
        }
        let reading = format!("{} entries in {} rows", size.entries, size.rows);
        Budget::new("memory to read a matrix").with(reading, size.matrix_bytes(dtype)).check(smaller(dtype))
    })
}

/// Reads a vector with one value per row, rounded to `dtype`: `.npy`, else Matrix Market.
///
/// # Errors
///
/// Those of [`io::read`] and [`market::read_vector`]; [`Error::File`] where the vector has another length;
/// [`Error::Limit`] where the machine has no memory for it. The last two come before the values are read.
pub fn read_vector(path: impl AsRef<Path>, dtype: DType, rows: usize) -> Result<Array> {
    let path = path.as_ref();
    let fits = |len: usize| {
        if len == rows {
            return Ok(());
        }
        let reason = format!("{len} values for a matrix of {rows} rows");
        Err(Error::file(path, reason, "give one value a row"))
    };
    if path.extension().is_some_and(|e| e == "npy") {
        if let Some(announced) = io::announced(path)? {
            fits(announced.shape.cells())?;
        }
        let values = io::read(path)?.values;
        fits(values.len())?;
        return if values.dtype() == dtype { Ok(values) } else { values.cast(dtype) };
    }
    market::read_vector_if(path, dtype, |size| {
        fits(size.rows)?;
        Budget::new("memory for a vector")
            .with(format!("{rows} values"), size.vector_bytes(dtype))
            .check(smaller(dtype))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_refused_before_anything_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mtx");
        let write = |text: &str| std::fs::write(&path, format!("%%MatrixMarket matrix {text}")).unwrap();
        write("coordinate real general\n500000000 500000000 1\n1 1 1\n");
        let error = read_matrix(&path, DType::F64).unwrap_err().to_string();
        assert!(
            error.contains("line 2: 1 entries in 500000000 rows") && error.contains("singular"),
            "{error}"
        );
        write("coordinate real symmetric\n2 2 1\n2 1 1\n");
        assert_eq!(read_matrix(&path, DType::F64).unwrap().nnz(), 2);

        for text in
            ["coordinate real general\n300000000 1 1\n1 1 1\n", "array real general\n300000000 1\n1\n"]
        {
            write(text);
            let error = read_vector(&path, DType::F32, 2).unwrap_err().to_string();
            assert!(
                error.contains("300000000 values for a matrix of 2 rows") && error.contains("a.mtx"),
                "{error}"
            );
        }
        write("coordinate real general\n3 1 1\n2 1 5\n");
        assert_eq!(read_vector(&path, DType::F32, 3), Ok(Array::F32(vec![0.0, 5.0, 0.0])));
    }

    #[test]
    fn an_array_of_another_length_is_refused_by_its_header() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.npy");
        let shape = crate::Shape::new(&[3]).unwrap();
        io::npy::write(&path, &shape, &Array::F64(vec![0.5, 1.5, 2.5])).unwrap().commit().unwrap();
        assert_eq!(read_vector(&path, DType::F32, 3), Ok(Array::F32(vec![0.5, 1.5, 2.5])));
        assert!(
            read_vector(&path, DType::F32, 4)
                .unwrap_err()
                .to_string()
                .contains("3 values for a matrix of 4 rows")
        );
    }
}
