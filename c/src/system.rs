//! Linear systems: a matrix in compressed rows, and solves with it.

use std::ffi::{c_char, c_void};
use std::ops::ControlFlow;

use abide::solve::{Matrix, Parameters, Report, Solve, SolverError, System};
use abide::sparse::{Csr, Offsets};
use abide::{Array, DType, Error};
use abide_core::memory;

use crate::handle::{Guarded, free};
use crate::options::{self, AbideOptions, Solving};
use crate::status::{AbideStatus, Outcome, face, invalid};
use crate::text::{array, given, hand_out, place, put};
use crate::view::{AbideView, Checked, Memory, dtype_of};

/// A matrix in compressed rows. The columns of each row ascend, each stands there once.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AbideCsr {
    /// The number of rows.
    pub rows: i64,
    /// The number of columns.
    pub columns: i64,
    /// Where each row begins among the entries, and the end of the last row: `rows + 1` integers.
    pub offsets: *const c_void,
    /// The column of each entry: as many integers as the last offset says.
    pub indices: *const c_void,
    /// The bytes of an integer, 4 or 8.
    pub index_bytes: i32,
    /// The number of the first row, column and entry: 0, or 1 as in Fortran.
    pub base: i32,
    /// The value of each entry.
    pub values: *const c_void,
    /// The type of the values, `ABIDE_F32` or `ABIDE_F64`.
    pub dtype: i32,
}

/// A matrix loaded on a device, for one right-hand side after the other.
pub struct AbideSystem {
    guarded: Guarded<State>,
}

struct State {
    system: System,
    /// The residuals of the last solve.
    history: Vec<f64>,
}

/// The report on a solve.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct AbideSolveReport {
    /// Iterations done.
    pub iterations: i64,
    /// 1 where the residual met the threshold, else 0.
    pub converged: i32,
    /// How many times BiCGStab broke down and started anew.
    pub restarts: i32,
    /// The norm of the residual that the method computed last.
    pub residual: f64,
    /// The norm of `b - A x` for the returned `x`, computed afresh; NaN where it was not.
    pub true_residual: f64,
    /// The norm of the right-hand side.
    pub norm: f64,
    /// What the residual was compared with.
    pub threshold: f64,
    /// Wall time in seconds.
    pub seconds: f64,
    /// 0. Later versions may use it.
    pub reserved: [f64; 8],
}

impl AbideSolveReport {
    fn of(report: &Report, converged: bool) -> AbideSolveReport {
        AbideSolveReport {
            iterations: report.iterations as i64,
            converged: i32::from(converged),
            restarts: report.restarts as i32,
            residual: report.history.last().copied().unwrap_or(f64::NAN),
            true_residual: report.true_residual.unwrap_or(f64::NAN),
            norm: report.norm,
            threshold: report.threshold,
            seconds: report.seconds,
            reserved: [0.0; 8],
        }
    }
}

/// An integer of the caller's.
trait Integer: Copy {
    fn wide(self) -> i64;
}

impl Integer for i32 {
    fn wide(self) -> i64 {
        i64::from(self)
    }
}

impl Integer for i64 {
    fn wide(self) -> i64 {
        self
    }
}

impl AbideCsr {
    /// Copies the matrix.
    ///
    /// # Safety
    ///
    /// The arrays are there.
    unsafe fn matrix(&self) -> Outcome<Csr> {
        // SAFETY: as promised.
        unsafe {
            match self.index_bytes {
                4 => self.matrix_of::<i32>(),
                8 => self.matrix_of::<i64>(),
                other => Err(invalid(
                    "the matrix's integers",
                    format!("{other} bytes are none's"),
                    "set index_bytes to 4 or 8",
                )),
            }
        }
    }

    /// # Safety
    ///
    /// The arrays are there, and `I` is the type of their integers.
    unsafe fn matrix_of<I: Integer>(&self) -> Outcome<Csr> {
        let (base, dtype) = (i64::from(self.base), dtype_of(self.dtype, "the matrix")?);
        if !matches!(base, 0 | 1) {
            let reason = format!("its first row has number {base}");
            return Err(invalid("the matrix", reason, "set base to 0 or 1"));
        }
        let size = |what: &str, count: i64| {
            let least =
                || Error::limit(format!("{what} of the matrix"), count, "1 or more", "give one at least");
            usize::try_from(count).ok().filter(|&count| count > 0).ok_or_else(least)
        };
        let (rows, columns) = (size("rows", self.rows)?, size("columns", self.columns)?);
        // SAFETY: as promised.
        let offsets = unsafe { array(self.offsets.cast::<I>(), rows + 1, "the offsets of the matrix") }?;
        let from = |what: &str, value: I| {
            let number = value.wide().checked_sub(base).and_then(|number| u64::try_from(number).ok());
            let reason = format!("{what} {} is below the base {base}", value.wide());
            number.ok_or_else(|| invalid("the matrix", reason, "correct it, or set base"))
        };
        let mut starts = reserved(rows + 1)?;
        for &offset in offsets {
            starts.push(from("offset", offset)?);
        }
        let entries = starts.last().copied().unwrap_or(0) as usize;
        // Before any entry is read: other offsets would say that there are entries which are not.
        if starts.first() != Some(&0) {
            let reason = format!("its first offset is {}, and the base {base}", offsets[0].wide());
            return Err(invalid("the matrix", reason, "begin the offsets with the base, 0 or 1"));
        }
        if let Some(row) = starts.windows(2).position(|pair| pair[0] > pair[1]) {
            let reason = format!("the offset behind row {row} is less than the one before it");
            return Err(invalid("the matrix", reason, "give offsets that never fall"));
        }
        // SAFETY: as promised.
        let indices = unsafe { array(self.indices.cast::<I>(), entries, "the columns of the matrix") }?;
        let mut own: Vec<u32> = reserved(entries)?;
        for &index in indices {
            let column = from("column", index)?;
            own.push(u32::try_from(column).map_err(|_| {
                Error::limit("column of the matrix", column, u32::MAX, "give a smaller matrix")
            })?);
        }
        let what = "the values of the matrix";
        let values = match dtype {
            // SAFETY: as promised.
            DType::F32 => Array::F32(copied(unsafe { array(self.values.cast::<f32>(), entries, what) }?)?),
            // SAFETY: as promised.
            DType::F64 => Array::F64(copied(unsafe { array(self.values.cast::<f64>(), entries, what) }?)?),
        };
        Ok(Csr::new(columns, Offsets::narrowest(starts)?, own, values)?)
    }
}

/// Returns an empty vector with room for so many values of a matrix.
fn reserved<T>(count: usize) -> abide::Result<Vec<T>> {
    memory::reserved(count, "a matrix", "give a smaller one")
}

fn copied<T: Copy>(values: &[T]) -> abide::Result<Vec<T>> {
    let mut copy = reserved(values.len())?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// Loads a matrix on a device. It is copied. `options` may be null; they are those of `abide solve`: `method`, `preconditioner`,
/// `tolerance`, `max-iterations`, `backend` … `abide_system_free` frees it.
///
/// # Safety
///
/// `matrix` points to a matrix whose arrays are there; `options` is null or a handle; `system` is the address of a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_system_new(
    matrix: *const AbideCsr,
    options: *const AbideOptions,
    system: *mut *mut AbideSystem,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        let (matrix, own) = unsafe { (given(matrix, "matrix")?.matrix()?, options::of(options)?) };
        let rows = matrix.rows();
        let parameters = Parameters { relative: 1e-8, ..Parameters::DEFAULT };
        let solving = Solving { solve: Solve::new(Matrix::from(matrix)), parameters, rows };
        let opened = options::apply_solve(solving, &own)?.open()?;
        let made = AbideSystem {
            guarded: Guarded::new("the system", State { system: opened, history: Vec::new() }),
        };
        // SAFETY: as promised.
        unsafe { hand_out(made, system, "system") }
    })
}

/// Solves `A x = b`. `x` has the first guess, and gets the solution; where the status is `ABIDE_NOT_CONVERGED`, the last or the
/// best iterate. Both arrays have a value for each row and may have any strides and up to three axes, as a grid has, slowest
/// first. `report` may be null.
///
/// # Safety
///
/// `system` is a handle; `b` and `x` describe arrays of the host's that nobody else uses; `report` is null or points to a
/// report.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_system_solve(
    system: *mut AbideSystem,
    b: *const AbideView,
    x: *const AbideView,
    report: *mut AbideSolveReport,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        unsafe {
            let (system, report) = (given(system, "system")?, report.as_mut());
            let (b, x) = (given(b, "the right-hand side")?, given(x, "the solution")?);
            system.guarded.with(|state| {
                let b = state.vector(b, "the right-hand side")?;
                let x = state.vector(x, "the solution")?;
                x.check_places("the solution")?;
                state.solve(&b, &x, report)
            })
        }
    })
}

impl State {
    fn vector(&self, view: &AbideView, what: &str) -> Outcome<Checked> {
        let checked = view.checked(what)?;
        if checked.memory != Memory::Host {
            return Err(invalid(what, "its values lie on a device", "give an array of the host's"));
        }
        let rows = self.system.matrix().rows();
        if checked.len() != rows {
            let limit = format!("{rows}, the rows of the matrix");
            return Err(Error::limit(
                format!("values of {what}"),
                checked.len(),
                limit,
                "give one for each row",
            )
            .into());
        }
        Ok(checked)
    }

    /// # Safety
    ///
    /// Both arrays have values at their places, and nobody else uses them.
    unsafe fn solve(&mut self, b: &Checked, x: &Checked, to: Option<&mut AbideSolveReport>) -> Outcome<()> {
        let dtype = self.system.matrix().dtype();
        let typed = |view: &Checked| -> Outcome<Array> {
            // SAFETY: as promised.
            let values = unsafe { view.gather() }?;
            Ok(if values.dtype() == dtype { values } else { values.cast(dtype)? })
        };
        let (b, mut solution) = (typed(b)?, typed(x)?);
        let outcome = self.system.solve_observed(&b, &mut solution, &mut |_, _| ControlFlow::Continue(()));
        // An error of the method leaves its iterate.
        let (report, error) = match outcome {
            Ok(report) => (report, None),
            Err(error) => match error.report().cloned() {
                Some(report) => (report, Some(error)),
                None => return Err(SolverError::into(error)),
            },
        };
        // SAFETY: as promised.
        unsafe { x.scatter(&solution) }?;
        if let Some(to) = to {
            *to = AbideSolveReport::of(&report, error.is_none());
        }
        self.history = report.history;
        error.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Copies the residuals of the last solve: that of the first guess, and one for each iteration; at most `room` of them. `count`
/// gets how many there are.
///
/// # Safety
///
/// `system` is a handle; `residuals` has room for `room` numbers; `count` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_system_history(
    system: *const AbideSystem,
    residuals: *mut f64,
    room: usize,
    count: *mut usize,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        unsafe {
            given(system, "system")?.guarded.with(|state| {
                *place(count, "count")? = state.history.len();
                let most = room.min(state.history.len());
                if most > 0 {
                    place(residuals, "the place of the residuals")?;
                    std::ptr::copy_nonoverlapping(state.history.as_ptr(), residuals, most);
                }
                Ok(())
            })
        }
    })
}

/// Puts what was chosen for the caller, and why, into a buffer, a line each, as `abide_simulation_text` does.
///
/// # Safety
///
/// `system` is a handle; `buffer` has room for `size` bytes, or both are 0; `needed` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_system_notes(
    system: *const AbideSystem,
    buffer: *mut c_char,
    size: usize,
    needed: *mut usize,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        unsafe {
            let system = given(system, "system")?;
            system.guarded.with(|state| put(&state.system.notes().join("\n"), buffer, size, needed))
        }
    })
}

/// Frees a system. A null pointer is ignored. One that is at work is not freed, and `abide_last_error` says so.
///
/// # Safety
///
/// `system` is null, or a handle that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_system_free(system: *mut AbideSystem) {
    // SAFETY: as promised.
    unsafe { free(system, |system| &system.guarded) }
}
