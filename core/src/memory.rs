//! Vectors whose memory is asked for before it is taken.

use crate::{Error, Result};

/// Returns an empty vector with room for `len` values.
///
/// # Errors
///
/// [`refused`] if the machine does not have that much memory.
pub fn reserved<T>(len: usize, what: &str, change: &str) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| refused::<T>(len, what, change))?;
    Ok(values)
}

/// Returns `len` copies of `value`; the same error as [`reserved`].
pub fn filled<T: Clone>(value: T, len: usize, what: &str, change: &str) -> Result<Vec<T>> {
    let mut values = reserved(len, what, change)?;
    values.resize(len, value);
    Ok(values)
}

/// Returns a copy; the same error as [`reserved`].
pub fn copied<T: Copy>(values: &[T], what: &str, change: &str) -> Result<Vec<T>> {
    let mut copy = reserved(values.len(), what, change)?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// Makes the error for `len` values for which the machine has no memory; `what` is the memory's use, `change`
/// the advice.
pub fn refused<T>(len: usize, what: &str, change: &str) -> Error {
    let bytes = len as u128 * size_of::<T>() as u128;
    Error::limit(
        format!("memory for {what}"),
        format!("{bytes} bytes"),
        "what the operating system grants",
        change,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_an_error_that_names_it() {
        let error =
            reserved::<f64>(usize::MAX / 2, "a field", "choose a smaller size").unwrap_err().to_string();
        assert!(
            error.contains("memory for a field") && error.contains("73786976294838206456 bytes"),
            "{error}"
        );
        assert!(error.contains("choose a smaller size"), "{error}");
        assert_eq!(filled(7, 3, "a field", "").unwrap(), [7, 7, 7]);
    }
}
