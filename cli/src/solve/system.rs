//! The arguments that say which system is solved.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use abide::solve::{GridOperator, Matrix, named};
use abide::{Array, Boundaries, Boundary, DType, Error, Result, Shape};
use clap::Args;

/// Where the matrix comes from.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct One {
    /// A matrix in Matrix Market's format, .mtx or .mtx.gz
    #[arg(value_name = "A.mtx")]
    file: Option<PathBuf>,

    /// A matrix by name, as in laplacian2d:1000x999
    #[arg(long, value_name = "NAME")]
    matrix: Option<String>,

    /// A linear stencil, which is never stored; needs --size
    #[arg(long, value_name = "NAME", requires = "size")]
    operator: Option<String>,
}

/// The matrix, and what an operator needs beside its name.
#[derive(Args)]
pub struct Source {
    #[command(flatten)]
    one: One,

    /// Extents of an operator's domain, slowest axis first, as in 128x128x128
    #[arg(long, value_name = "NxN", conflicts_with_all = ["file", "matrix"])]
    size: Option<Shape>,

    #[arg(long, allow_hyphen_values = true, conflicts_with_all = ["file", "matrix"], help = format!(
        "An operator's boundary: {}, where C is 0; per axis as in y=periodic,x=mirror [default: constant=0]",
        Boundary::names(),
    ))]
    boundary: Option<String>,
}

/// A matrix with its name, and the shape of its vectors.
pub struct System {
    pub name: String,
    pub matrix: Matrix,
    pub shape: Shape,
}

impl Source {
    /// Returns the file that the matrix is read from.
    pub fn file(&self) -> Option<&Path> {
        self.one.file.as_deref()
    }

    /// Reads or makes the matrix.
    pub fn load(&self, dtype: DType) -> Result<System> {
        match (&self.one.file, &self.one.matrix, &self.one.operator, self.size) {
            (Some(path), ..) => {
                let matrix = abide::solve::read_matrix(path, dtype)?;
                System::stored(path.display().to_string(), matrix)
            }
            (_, Some(name), ..) => System::stored(name.clone(), named::matrix(name, dtype)?),
            (_, _, Some(name), Some(shape)) => {
                let zero = Boundary::Constant(0.0);
                let boundaries = match &self.boundary {
                    Some(text) => Boundaries::parse(text, zero)?,
                    None => Boundaries::all(zero),
                };
                let operator = GridOperator::new(named::operator(name)?, shape, boundaries, dtype)?;
                let name = format!("{name} on {shape}, boundary {}", boundaries.describe(shape.dimensions()));
                Ok(System { name, matrix: operator.into(), shape })
            }
            // The arguments' own rules leave no other case.
            _ => {
                Err(Error::invalid("the system", "no matrix is given", "give a file, --matrix or --operator"))
            }
        }
    }
}

impl System {
    fn stored(name: String, matrix: abide::sparse::Csr) -> Result<System> {
        // A matrix without rows is refused as a matrix, not for the shape of its vectors.
        let shape = Shape::new(&[matrix.rows().max(1)])?;
        Ok(System { name, matrix: matrix.into(), shape })
    }
}

/// The value of `--rhs`.
#[derive(Clone)]
pub enum RightHandSide {
    Ones,
    Random(u64),
    File(PathBuf),
}

impl FromStr for RightHandSide {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "ones" {
            return Ok(RightHandSide::Ones);
        }
        if let Some(seed) = text.strip_prefix("random:") {
            return seed.parse().map(RightHandSide::Random).map_err(|_| {
                Error::invalid(
                    format!("right-hand side `{text}`"),
                    "the seed is no whole number",
                    "write it like random:7",
                )
            });
        }
        let name = text.strip_suffix(".gz").unwrap_or(text);
        match Path::new(name).extension().and_then(|e| e.to_str()) {
            Some("mtx" | "npy") => Ok(RightHandSide::File(PathBuf::from(text))),
            _ => Err(Error::unknown(
                "right-hand side",
                text,
                ["ones", "random:SEED", "or a .mtx, .mtx.gz or .npy file"],
            )),
        }
    }
}

impl RightHandSide {
    /// Returns the file that the vector is read from.
    pub fn file(&self) -> Option<&Path> {
        match self {
            RightHandSide::File(path) => Some(path),
            _ => None,
        }
    }

    /// Reads or makes the vector for a matrix of `rows` rows.
    pub fn load(&self, dtype: DType, rows: usize) -> Result<Array> {
        match self {
            RightHandSide::Ones => abide::solve::ones_vector(dtype, rows),
            RightHandSide::Random(seed) => abide::solve::random_vector(dtype, rows, *seed),
            RightHandSide::File(path) => abide::solve::read_vector(path, dtype, rows),
        }
    }
}
