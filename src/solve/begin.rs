//! Opening a solver's session on the backend chosen, or on the first that can.

use abide_core::solver::Gmres;
use abide_core::solver::{LinearBackend, LinearSession, Matrix, Method, Refinement, SolveOptions, SolverError};
use abide_cpu::{Threads, threaded_operator};

use super::Precision;
use crate::backend::{self, Kind, Opened};
use crate::{Choice, DType, Error, Result, memory};

/// A session, the backend that opened it, and why others did not.
pub(super) struct Begun {
    pub backend: &'static str,
    pub session: Box<dyn LinearSession>,
    pub notes: Vec<String>,
}

/// Conjugate gradients where they may be expected to work, else GMRES.
pub(super) fn suitable(matrix: &Matrix) -> Result<Method, SolverError> {
    match matrix.check(&SolveOptions::with_method(Method::Cg)) {
        Ok(()) => Ok(Method::Cg),
        Err(SolverError::NotSymmetric { .. } | SolverError::NotPositive { .. }) => Ok(Method::Gmres(Gmres::default())),
        Err(error) => Err(error),
    }
}

pub(super) fn begin(
    choice: Choice,
    opened: Option<&Opened>,
    matrix: &Matrix,
    precision: Precision,
    options: &SolveOptions,
) -> Result<Begun, SolverError> {
    if let Some(opened) = opened {
        return begin_on(opened, matrix, precision, options);
    }
    let names = match choice {
        Choice::Named(name) => return begin_on(&backend::open(name)?, matrix, precision, options),
        Choice::Auto => backend::names(),
    };
    let mut refusals: Vec<String> = Vec::new();
    for name in names {
        let begun = backend::open(name).map_err(SolverError::from).and_then(|opened| match opened.kind {
            Kind::Software => {
                let reason = "only a software driver is there".to_owned();
                Err(Error::Unavailable { backend: name, reason }.into())
            }
            _ => begin_on(&opened, matrix, precision, options),
        });
        match begun {
            Ok(begun) => {
                let mut notes: Vec<String> = refusals.iter().map(|refusal| format!("auto: {refusal}")).collect();
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
    Err(Error::Unsupported { backend: "auto", reason, change: "make one of them able".to_owned() }.into())
}

fn begin_on(
    opened: &Opened,
    matrix: &Matrix,
    precision: Precision,
    options: &SolveOptions,
) -> Result<Begun, SolverError> {
    let name = opened.backend.name();
    let linear = opened.backend.linear().ok_or_else(|| Error::Unsupported {
        backend: name,
        reason: "it has no linear solvers".to_owned(),
        change: "use --backend cpu".to_owned(),
    })?;
    // The host keeps b, x and, beside a device of its own memory, nothing else; others hold the method's vectors too.
    let vectors = if opened.kind == Kind::Gpu { 2 } else { 2 + options.method.vectors() };
    let bytes = vectors as u128 * matrix.rows() as u128 * matrix.dtype().bytes() as u128;
    memory::check("memory for a solver's vectors", bytes)?;
    let session = match precision {
        Precision::Plain(_) => open(linear, matrix, options)?,
        Precision::Mixed => {
            // What is wrong with the matrix is told of the one that was given, not of its rounded copy.
            matrix.check(options)?;
            let inner = open(linear, &matrix.cast(DType::F32)?, options)?;
            let engine = Threads::<f64>::new(None, matrix.rows())?;
            Box::new(Refinement::new(engine, threaded_operator::<f64>(matrix)?, inner)?)
        }
    };
    Ok(Begun { backend: name, session, notes: Vec::new() })
}

fn open(
    linear: &dyn LinearBackend,
    matrix: &Matrix,
    options: &SolveOptions,
) -> Result<Box<dyn LinearSession>, SolverError> {
    matrix.check_extents()?;
    let plan = linear.plan_solve(matrix, options)?;
    linear.open_solver(matrix, &plan, options)
}
