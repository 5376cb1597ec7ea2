//! Writing matrices and vectors: the shortest digits that read back as the same number.

use std::io::{self, BufWriter, Write};

use abide_core::sparse::Csr;
use abide_core::{Array, Real, with_array};

/// Writes a matrix as `coordinate real`: the lower triangle if the matrix is symmetric, under `symmetric`,
/// else all entries, under `general`.
///
/// Fails with [`io::ErrorKind::InvalidInput`], and writes nothing, if a value is not finite: the format has
/// no notation for it.
pub fn write_matrix(matrix: &Csr, out: impl Write) -> io::Result<()> {
    check(matrix.values(), "matrix")?;
    let symmetric = matrix.is_symmetric_to_the_bit();
    let mut out = BufWriter::new(out);
    let listed =
        |row: usize| matrix.range(row).filter(move |&at| !symmetric || matrix.indices()[at] as usize <= row);
    let entries: usize = (0..matrix.rows()).map(|row| listed(row).count()).sum();
    writeln!(
        out,
        "%%MatrixMarket matrix coordinate real {}",
        if symmetric { "symmetric" } else { "general" }
    )?;
    writeln!(out, "{} {} {entries}", matrix.rows(), matrix.columns())?;
    for row in 0..matrix.rows() {
        for at in listed(row) {
            write!(out, "{} {} ", row + 1, u64::from(matrix.indices()[at]) + 1)?;
            with_array!(matrix.values(), v => number(&mut out, v[at]))?;
        }
    }
    out.flush()
}

/// Writes a vector as `array real general` of one column.
///
/// Fails with [`io::ErrorKind::InvalidInput`], and writes nothing, if a value is not finite: the format has
/// no notation for it.
pub fn write_vector(vector: &Array, out: impl Write) -> io::Result<()> {
    check(vector, "vector")?;
    let mut out = BufWriter::new(out);
    writeln!(out, "%%MatrixMarket matrix array real general")?;
    writeln!(out, "{} 1", vector.len())?;
    with_array!(vector, v => v.iter().try_for_each(|&value| number(&mut out, value)))?;
    out.flush()
}

/// Writes a value and the end of its line. `Debug` turns to an exponent where plain digits would be many;
/// `Display` does not.
fn number<T: Real>(out: &mut impl Write, value: T) -> io::Result<()> {
    writeln!(out, "{value:?}")
}

fn check(values: &Array, what: &str) -> io::Result<()> {
    match values.non_finite() {
        0 => Ok(()),
        count => {
            let message = format!(
                "{count} values of the {what} are not finite; a Matrix Market file holds finite ones"
            );
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}
