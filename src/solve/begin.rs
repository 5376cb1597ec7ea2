//! Opens a solver's session on the chosen backend, or on the first that can solve the system.

use abide_core::backend::{LinearBackend, LinearSession};
use abide_core::solver::{Gmres, Matrix, Method, Parameters, Preconditioning, SolveOptions, SolverError};
use abide_cpu::{Threads, threaded_operator};
use abide_solvers::Refinement;

use super::Precision;
use crate::backend::{self, Devices, Kind, Opened};
use crate::memory::Budget;
use crate::{Choice, DType, Error, Result};

/// A session, the backend that opened it, and why other backends did not.
pub(super) struct Begun {
    pub backend: &'static str,
    pub kind: Kind,
    pub session: Box<dyn LinearSession>,
    pub notes: Vec<String>,
}

/// Chooses conjugate gradients where they may be expected to work, else GMRES. Returns why, too.
pub(super) fn suitable(matrix: &Matrix, assume_symmetric: bool) -> Result<(Method, String), SolverError> {
    let options = SolveOptions { assume_symmetric, ..SolveOptions::with_method(Method::Cg) };
    let gmres = Method::Gmres(Gmres::suited(matrix.rows()));
    match matrix.check(&options) {
        Ok(()) => {
            let why = if assume_symmetric { "taken as symmetric" } else { "symmetric within rounding" };
            Ok((
                Method::Cg,
                format!("method cg was chosen by the matrix: it is {why}, its diagonal positive"),
            ))
        }
        Err(SolverError::NotSymmetric { row, column, value, mirror, .. }) => {
            let why = format!("{value:e} at row {row}, column {column} and {mirror:e} across the diagonal");
            Ok((gmres, format!("method gmres was chosen by the matrix: it is not symmetric, with {why}")))
        }
        Err(SolverError::NotPositive { row, value, .. }) => {
            let why = format!("{value:e} on the diagonal of row {row}");
            Ok((
                gmres,
                format!("method gmres was chosen by the matrix: it is not positive definite, with {why}"),
            ))
        }
        Err(error) => Err(error),
    }
}

/// Where a session is opened, and in which type.
pub(super) struct Place {
    pub choice: Choice,
    pub devices: Devices,
    pub opened: Option<Opened>,
    pub precision: Precision,
}

/// Returns the matrix with every sign changed; `None` where it has none. Asks for memory first.
pub(super) fn negated(matrix: &Matrix) -> Result<Option<Matrix>> {
    Budget::new("memory for a solve")
        .with("the matrix with every sign changed", stored(matrix, matrix.dtype()))
        .check("choose a smaller system, or change the signs of A and b beforehand")?;
    matrix.negated()
}

pub(super) fn begin(
    place: &Place,
    matrix: &Matrix,
    options: &SolveOptions,
    parameters: &Parameters,
) -> Result<Begun, SolverError> {
    let Place { choice, devices, opened, precision } = place;
    let precision = *precision;
    if let Some(opened) = opened {
        return begin_on(opened, matrix, precision, options, parameters);
    }
    let names = match *choice {
        Choice::Named(name) => {
            return begin_on(&backend::open_on(name, devices)?, matrix, precision, options, parameters);
        }
        Choice::Auto => backend::names(),
    };
    let mut refusals: Vec<String> = Vec::new();
    for name in names {
        let opened = backend::open_on(name, devices).map_err(SolverError::from);
        let begun = opened.and_then(|opened| match opened.kind {
            Kind::Software => {
                let reason = "only a software driver is there".to_owned();
                Err(Error::Unavailable { backend: name, reason }.into())
            }
            _ => begin_on(&opened, matrix, precision, options, parameters),
        });
        match begun {
            Ok(begun) => {
                let mut notes: Vec<String> =
                    refusals.iter().map(|refusal| format!("{}{refusal}", backend::PASSED_OVER)).collect();
                notes.extend(begun.notes);
                return Ok(Begun { notes, ..begun });
            }
            Err(SolverError::Invalid(
                error @ (Error::Unavailable { .. } | Error::Unsupported { .. } | Error::Limit { .. }),
            )) => refusals.push(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    let reason = format!("none of them can ({})", refusals.join("; "));
    Err(Error::unsupported("backend auto", reason, "make one of them able").into())
}

fn begin_on(
    opened: &Opened,
    matrix: &Matrix,
    precision: Precision,
    options: &SolveOptions,
    parameters: &Parameters,
) -> Result<Begun, SolverError> {
    let name = opened.backend.name();
    let linear = opened.backend.linear().ok_or_else(|| {
        Error::unsupported(format!("backend {}", name), "it has no linear solvers", "use --backend cpu")
    })?;
    budget(opened.kind, matrix, precision, options, parameters)
        .check("choose a smaller system, another method or f32")?;
    let session = match precision {
        Precision::Plain(_) => open(linear, matrix, options)?,
        Precision::Mixed => {
            // Errors speak of the matrix that was given, not of its rounded copy.
            matrix.check(options)?;
            let inner = open(linear, &cast(matrix, DType::F32)?, options)?;
            let engine = Threads::<f64>::new(None, matrix.rows())?;
            Box::new(Refinement::new(engine, threaded_operator::<f64>(matrix)?, inner)?)
        }
    };
    Ok(Begun { backend: name, kind: opened.kind, session, notes: Vec::new() })
}

/// Iterations whose residuals the memory check counts in advance. A history grows with the iterations, and few solves
/// have more.
const HISTORY: usize = 1 << 20;

/// Sums up what a solve will hold of the host's memory beside the matrix, which is there already.
fn budget(
    kind: Kind,
    matrix: &Matrix,
    precision: Precision,
    options: &SolveOptions,
    parameters: &Parameters,
) -> Budget {
    let rows = matrix.rows() as u128;
    let vectors = |count: usize, dtype: DType| (count as u128).saturating_mul(rows) * dtype.bytes() as u128;
    let (outer, inner) = match precision {
        Precision::Plain(dtype) => (dtype, dtype),
        Precision::Mixed => (DType::F64, DType::F32),
    };
    let budget = Budget::new("memory for a solve").with("b and x", vectors(2, outer));
    let budget = match precision {
        Precision::Plain(_) => budget,
        // The right-hand side and solution of a correction, and the residual in f64.
        Precision::Mixed => budget
            .with("the matrix in f32", stored(matrix, inner))
            .with("the corrections", vectors(2, inner) + vectors(1, outer)),
    };
    let preconditioner = match options.preconditioner {
        Preconditioning::None => 0,
        Preconditioning::Jacobi => vectors(1, inner),
        // Blocks are inverted in f64, one at a time.
        Preconditioning::BlockJacobi { size } => {
            let size = size.min(matrix.rows());
            vectors(size, inner).saturating_add(4 * 8 * (size as u128).pow(2))
        }
        Preconditioning::Chebyshev { .. } => vectors(4, inner),
        // The entries and their factors.
        Preconditioning::Ilu => 2 * assembled(matrix, inner) + vectors(4, inner),
        // The matrix in f64 with its interpolation and product; smaller ones of the same kind.
        Preconditioning::Amg { .. } => 5 * assembled(matrix, DType::F64) + vectors(8, inner),
    };
    // Data for a device with its own memory is packed as numbers and then as bytes; the device holds the
    // rest.
    let preconditioner = preconditioner.saturating_mul(if kind == Kind::Gpu { 3 } else { 1 });
    let budget = match kind {
        Kind::Gpu => budget.with("the matrix on its way to the device", 2 * stored(matrix, inner)),
        _ => budget
            .with(format!("the vectors of {}", options.method), vectors(options.method.vectors(), inner)),
    };
    let history = 8 * parameters.iterations.saturating_add(1).min(HISTORY) as u128;
    // Callers that check the solver compute the residual in f64, apart from the solver.
    let residual = match outer {
        DType::F64 => vectors(1, DType::F64),
        DType::F32 => stored(matrix, DType::F64) + vectors(3, DType::F64),
    };
    budget
        .with(format!("preconditioner {}", options.preconditioner), preconditioner)
        .with("the history", history)
        .with("the residual in f64", residual)
}

/// Returns the bytes of a matrix in a type; 0 where the matrix is not stored.
fn stored(matrix: &Matrix, dtype: DType) -> u128 {
    match matrix {
        Matrix::Stored(csr) => {
            (csr.bytes() - csr.nnz() * csr.dtype().bytes()) as u128
                + csr.nnz() as u128 * dtype.bytes() as u128
        }
        Matrix::Stencil(_) => 0,
    }
}

/// Returns the bytes of a matrix in a type if it is stored.
fn assembled(matrix: &Matrix, dtype: DType) -> u128 {
    matrix.nonzeros() as u128 * (4 + dtype.bytes() as u128) + 4 * matrix.rows() as u128
}

/// Returns the matrix in a type; asks for memory where that differs from the matrix's own type.
pub(super) fn cast(matrix: &Matrix, dtype: DType) -> Result<Matrix> {
    if matrix.dtype() != dtype {
        let copy =
            Budget::new("memory for a solve").with(format!("the matrix in {dtype}"), stored(matrix, dtype));
        copy.check("choose a smaller system, or solve it in the matrix's own type")?;
    }
    matrix.cast(dtype)
}

fn open(
    linear: &dyn LinearBackend,
    matrix: &Matrix,
    options: &SolveOptions,
) -> Result<Box<dyn LinearSession>, SolverError> {
    matrix.check_extents()?;
    let plan = linear.plan_solve(matrix, options)?;
    if !plan.ranks.is_empty() {
        // Each device has its rows, and room for what they read.
        let vector = matrix.rows() as u128 * matrix.dtype().bytes() as u128;
        Budget::new(format!("memory for a solve on {} devices", plan.ranks.len()))
            .with("the rows of each", stored(matrix, matrix.dtype()))
            .with("their parts of b and x, and what they read", 3 * vector)
            .check("choose a smaller system, or one device")?;
    }
    linear.open_solver(matrix, &plan, options)
}
