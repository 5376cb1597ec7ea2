//! What functions return, and the text of the last failure in each thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use abide::ErrorKind;
use abide::solve::SolverError;
use abide_core::floating::standard;

/// What a function returns: `ABIDE_OK` or the kind of failure. The first five are the exit statuses of the command `abide`.
pub type AbideStatus = i32;

/// All went well.
pub const ABIDE_OK: AbideStatus = 0;
/// The request is understood and cannot be carried out: a file, a limit, a matrix that cannot be solved, an ability that a
/// backend lacks.
pub const ABIDE_REFUSED: AbideStatus = 1;
/// The request is wrong by itself: a name that is not known, a value that cannot be used, a null pointer.
pub const ABIDE_USAGE: AbideStatus = 2;
/// A solver began, and came to no solution.
pub const ABIDE_NOT_CONVERGED: AbideStatus = 3;
/// Values are not finite.
pub const ABIDE_NOT_FINITE: AbideStatus = 4;
/// A device, its driver or its compiler is not there or failed.
pub const ABIDE_DEVICE: AbideStatus = 5;
/// The caller ended a solve.
pub const ABIDE_INTERRUPTED: AbideStatus = 6;
/// Another thread is using the handle, or the call comes from within a run of the same handle.
pub const ABIDE_BUSY: AbideStatus = 7;
/// Abide stopped at a defect of its own. The handle can only be freed.
pub const ABIDE_DEFECT: AbideStatus = 8;

/// The status of each kind of error.
const KINDS: [(ErrorKind, AbideStatus); 6] = [
    (ErrorKind::Refusal, ABIDE_REFUSED),
    (ErrorKind::Usage, ABIDE_USAGE),
    (ErrorKind::NotConverged, ABIDE_NOT_CONVERGED),
    (ErrorKind::NotFinite, ABIDE_NOT_FINITE),
    (ErrorKind::Device, ABIDE_DEVICE),
    (ErrorKind::Interrupted, ABIDE_INTERRUPTED),
];

/// A failure as it crosses the border.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: AbideStatus,
    pub text: String,
}

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    fn of(kind: ErrorKind, text: String) -> Failure {
        let known = KINDS.iter().find(|(own, _)| *own == kind);
        Failure { status: known.map_or(ABIDE_DEFECT, |(_, status)| *status), text }
    }
}

impl From<abide::Error> for Failure {
    fn from(error: abide::Error) -> Failure {
        Failure::of(error.kind(), error.to_string())
    }
}

impl From<SolverError> for Failure {
    fn from(error: SolverError) -> Failure {
        Failure::of(error.kind(), error.to_string())
    }
}

/// Returns the failure of a value that cannot be used: what it is, why, and what to change.
pub(crate) fn invalid(
    what: impl Into<String>,
    reason: impl Into<String>,
    change: impl Into<String>,
) -> Failure {
    abide::Error::invalid(what, reason, change).into()
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Returns the failure in words of the last function that failed in this thread; an empty text where none did. The text
/// stays where it is until another function fails in this thread, or the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn abide_last_error() -> *const c_char {
    // A thread that is ending has no text any more.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Keeps a failure's words for [`abide_last_error`], and returns its status.
pub(crate) fn keep(failure: Failure) -> AbideStatus {
    let text = CString::new(failure.text.replace('\0', "\\0")).unwrap_or_default();
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
    failure.status
}

/// Does the work of a function that C calls, in the standard floating-point mode, whatever traps the caller's code has
/// set.
pub(crate) fn face(work: impl FnOnce() -> Outcome<()>) -> AbideStatus {
    match catch_unwind(AssertUnwindSafe(|| standard(work))) {
        Ok(Ok(())) => ABIDE_OK,
        Ok(Err(failure)) => keep(failure),
        Err(panic) => {
            let words = panic
                .downcast_ref::<&str>()
                .map(|words| (*words).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_default();
            let text = format!(
                "Abide stopped at a defect of its own ({words}); please report it, with what led to it"
            );
            keep(Failure { status: ABIDE_DEFECT, text })
        }
    }
}
