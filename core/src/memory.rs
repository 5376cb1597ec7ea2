//! Vectors whose memory is asked for before it is taken.

use crate::{Error, Result};

/// An empty vector with room for `len` values.
///
/// # Errors
///
/// [`refused`] where the machine has not that much memory.
pub fn reserved<T>(len: usize, what: &str, change: &str) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| refused::<T>(len, what, change))?;
    Ok(values)
}

/// `len` copies of `value`, or an error as of [`reserved`].
pub fn filled<T: Clone>(value: T, len: usize, what: &str, change: &str) -> Result<Vec<T>> {
    let mut values = reserved(len, what, change)?;
    values.resize(len, value);
    Ok(values)
}

/// A copy, or an error as of [`reserved`].
pub fn copied<T: Copy>(values: &[T], what: &str, change: &str) -> Result<Vec<T>> {
    let mut copy = reserved(values.len(), what, change)?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// The error for room for `len` values that the machine does not have: what it is for, and what to change.
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
