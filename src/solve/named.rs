//! Matrices and operators by name, for the command and the benchmarks.

use crate::sparse::{self, Csr};
use abide_core::{LinearStencil, catalogue};

use crate::memory::Budget;
use crate::{DType, Error, Result, Shape};

/// Forms of the names that [`matrix`] knows.
pub const MATRICES: [&str; 6] = [
    "laplacian2d:NxN",
    "laplacian3d:NxNxN",
    "hpcg:NxNxN",
    "trefethen:N",
    "random:ROWS:ENTRIES[:SEED]",
    "arrow:N",
];

/// A name taken apart.
enum Kind {
    Laplacian2d([usize; 2]),
    Laplacian3d([usize; 3]),
    Hpcg([usize; 3]),
    Trefethen(usize),
    Random { rows: usize, entries: usize, seed: u64 },
    Arrow(usize),
}

impl Kind {
    /// Returns the most bytes that making the matrix takes at once.
    fn bytes(&self, dtype: DType) -> u128 {
        let value = dtype.bytes() as u128;
        let cells =
            |extents: &[usize]| extents.iter().fold(1_u128, |product, &n| product.saturating_mul(n as u128));
        // Compressed rows beside offsets of both widths. Besides: the values of a stencil's constants, or a
        // sieve for primes.
        let (rows, a_row, besides) = match *self {
            Kind::Laplacian2d(extents) => (cells(&extents), 5, value),
            Kind::Laplacian3d(extents) => (cells(&extents), 7, value),
            Kind::Hpcg(extents) => (cells(&extents), 27, value),
            Kind::Trefethen(n) => (n as u128, 1 + 2 * u128::from(n.max(1).ilog2() + 1), 40),
            Kind::Arrow(n) => (n as u128, 3, 0),
            // Entries in any order, the entries drawn, and both by row.
            Kind::Random { rows, entries, .. } => return 64 * entries as u128 + 40 * rows as u128,
        };
        rows.saturating_mul(a_row * (4 + value) + 12 + besides)
    }
}

fn parse(text: &str) -> Result<Kind> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let wrong = |reason: &str, change: &str| Error::invalid(format!("matrix `{text}`"), reason, change);
    let shape = |change: &str| rest.parse::<Shape>().map_err(|_| wrong("it has no size", change));
    let square = |change: &str| match *shape(change)?.extents() {
        [ny, nx] => Ok([ny, nx]),
        _ => Err(wrong("it needs 2 extents", change)),
    };
    let order = |change: &str| rest.parse().map_err(|_| wrong("it has no order", change));
    let cube = |change: &str| match *shape(change)?.extents() {
        [nz, ny, nx] => Ok([nz, ny, nx]),
        _ => Err(wrong("it needs 3 extents", change)),
    };
    match name {
        "laplacian2d" => square("write it like laplacian2d:1000x999").map(Kind::Laplacian2d),
        "laplacian3d" => cube("write it like laplacian3d:100x100x100").map(Kind::Laplacian3d),
        "hpcg" => cube("write it like hpcg:64x64x64").map(Kind::Hpcg),
        "trefethen" => order("write it like trefethen:2000").map(Kind::Trefethen),
        "arrow" => order("write it like arrow:1000000").map(Kind::Arrow),
        "random" => {
            let numbers: Option<Vec<usize>> = rest.split(':').map(|part| part.parse().ok()).collect();
            match numbers.as_deref() {
                Some(&[rows, entries]) => Ok(Kind::Random { rows, entries, seed: 0 }),
                Some(&[rows, entries, seed]) => Ok(Kind::Random { rows, entries, seed: seed as u64 }),
                _ => Err(wrong(
                    "it needs its rows and its entries",
                    "write it like random:1138:4054 or random:1138:4054:7",
                )),
            }
        }
        _ => Err(Error::unknown("matrix", text, MATRICES)),
    }
}

/// Checks that [`matrix`] can read a name; the error says how the name is written.
///
/// # Errors
///
/// [`Error::Unknown`] for another name, [`Error::Invalid`] where its numbers are missing or not whole.
pub fn check(text: &str) -> Result<()> {
    parse(text).map(drop)
}

/// Makes the matrix of a name, as in `laplacian2d:1000x999`, `trefethen:2000` or `random:1138:4054:7`;
/// [`MATRICES`] lists the names.
///
/// ```
/// use abide::{DType, solve::named};
///
/// let matrix = named::matrix("laplacian2d:30x31", DType::F64)?;
/// assert_eq!(matrix.rows(), 930);
/// assert!(named::matrix("laplacian2d:30", DType::F64).is_err());
/// # Ok::<(), abide::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`check`]; [`Error::Limit`] where the machine has no memory for it, or indices of 32 bits cannot count it.
pub fn matrix(text: &str, dtype: DType) -> Result<Csr> {
    let kind = parse(text)?;
    let budget = Budget::new("memory for a matrix").with(text, kind.bytes(dtype));
    budget.check(match dtype {
        DType::F32 => "choose a smaller one, or an --operator, which is not stored",
        DType::F64 => "choose a smaller one, an --operator, which is not stored, or --dtype f32",
    })?;
    match kind {
        Kind::Laplacian2d([ny, nx]) => sparse::laplacian_2d(ny, nx, dtype),
        Kind::Laplacian3d([nz, ny, nx]) => sparse::laplacian_3d(nz, ny, nx, dtype),
        Kind::Hpcg([nz, ny, nx]) => sparse::hpcg(nz, ny, nx, dtype),
        Kind::Trefethen(order) => sparse::trefethen(order, dtype),
        Kind::Random { rows, entries, seed } => sparse::random_spd(rows, entries, seed, dtype),
        Kind::Arrow(order) => sparse::arrow(order, dtype),
    }
}

/// Returns the linear stencil of a name: `laplacian1d`, `laplacian2d`, `laplacian3d`, `hpcg`, or a stencil of
/// the catalogue with its own weights.
///
/// # Errors
///
/// [`Error::Unknown`] where neither this list nor the catalogue has such a linear stencil.
pub fn operator(name: &str) -> Result<LinearStencil> {
    match name {
        "laplacian1d" => sparse::laplacian(1),
        "laplacian2d" => sparse::laplacian(2),
        "laplacian3d" => sparse::laplacian(3),
        "hpcg" => sparse::hpcg_stencil(),
        _ => catalogue::linear(name).map_err(|error| match error {
            Error::Unknown { asked, known, .. } => {
                let known = format!("laplacian1d, laplacian2d, laplacian3d, hpcg, {known}");
                Error::Unknown { kind: "operator", asked, known }
            }
            other => other,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_made_by_name() {
        let size = |text: &str| matrix(text, DType::F64).map(|m| (m.rows(), m.nnz()));
        assert_eq!(size("laplacian2d:300x300"), Ok((90_000, 448_800)));
        assert_eq!(size("laplacian3d:10x10x10"), Ok((1000, 6400)));
        assert_eq!(size("hpcg:4x5x6"), Ok((120, 10 * 13 * 16)));
        assert_eq!(size("trefethen:2000"), Ok((2000, 41_906)));
        assert_eq!(size("arrow:1000"), Ok((1000, 2998)));
        assert!(size("arrow").is_err());
        assert_eq!(size("random:1138:4054"), Ok((1138, 4054)));
        assert_eq!(size("random:2003:83883:5"), Ok((2003, 83_883)));
        assert_ne!(matrix("random:50:200:1", DType::F64), matrix("random:50:200:2", DType::F64));
        for bad in [
            "",
            "laplacian2d",
            "laplacian2d:3",
            "hpcg:3x3",
            "trefethen:x",
            "random:5",
            "random:5:25",
            "cube:3",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn operators_are_the_catalogues_and_a_few_more() {
        assert_eq!(operator("laplacian3d").map(|stencil| stencil.taps().len()), Ok(7));
        assert_eq!(operator("3d27pt").map(|stencil| stencil.taps().len()), Ok(27));
        let error = operator("heat").unwrap_err().to_string();
        assert!(error.contains("hpcg") && error.contains("2d5pt"), "{error}");
    }
}
