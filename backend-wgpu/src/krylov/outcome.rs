//! What came back from a submission, and what it means.

use std::ops::ControlFlow;

use abide_core::solver::{Run, SolverError};
use abide_core::{Array, DType, Error, Real, Result};
use abide_shaders::wgsl::krylov::{QUANTITIES, RING, STATE_NUMBERS, STATE_WORDS, Status};

use crate::NAME;

/// The kernels' `State`, as far as the host reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct State {
    pub status: Status,
    /// Entries of the history.
    pub length: u32,
    quantity: usize,
    value: f64,
    /// The square of the true residual's norm.
    pub true_square: f64,
}

/// Bytes of the kernels' `State`.
pub(super) fn state_bytes(dtype: DType) -> usize {
    4 * STATE_WORDS + dtype.bytes() * STATE_NUMBERS
}

/// The state before the first phase: nothing but an infinite least residual.
pub(super) fn fresh(dtype: DType) -> Vec<u8> {
    let mut bytes = vec![0; 4 * STATE_WORDS];
    let numbers =
        Array::from_fn(dtype, STATE_NUMBERS, |number| if number == 2 { f64::INFINITY } else { 0.0 });
    bytes.extend_from_slice(numbers.as_bytes());
    bytes
}

/// The number of a type at a place counted in such numbers.
fn number(dtype: DType, bytes: &[u8], place: usize) -> Option<f64> {
    match dtype {
        DType::F32 => bytes.get(4 * place..)?.first_chunk().map(|b| f64::from(f32::from_ne_bytes(*b))),
        DType::F64 => bytes.get(8 * place..)?.first_chunk().map(|b| f64::from_ne_bytes(*b)),
    }
}

impl State {
    /// Reads a `State`.
    pub fn read(dtype: DType, bytes: &[u8]) -> Result<State> {
        let word = |place: usize| bytes.get(4 * place..)?.first_chunk().map(|b| u32::from_ne_bytes(*b));
        let double = |place: usize| number(dtype, bytes.get(4 * STATE_WORDS..)?, place);
        let read = || {
            Some(State {
                status: Status::of(word(0)?)?,
                quantity: word(1)? as usize,
                length: word(2)?,
                value: double(0)?,
                true_square: double(1)?,
            })
        };
        read().ok_or_else(|| Error::device(NAME, "reading a solver's state", "it is no such state"))
    }

    /// The entries from `known` of the history on, of which the device keeps the last.
    pub fn entries<'a>(
        &self,
        dtype: DType,
        ring: &'a [u8],
        known: u32,
    ) -> impl Iterator<Item = f64> + use<'a> {
        (known..self.length).filter_map(move |k| number(dtype, ring, k as usize % RING))
    }

    /// Passes new residuals through the run's own tests, and then what else ended it. `Break` once it has
    /// converged.
    pub fn told<T: Real>(
        &self,
        run: &mut Run<'_>,
        residuals: &[f64],
    ) -> Result<ControlFlow<()>, SolverError> {
        // GMRES goes on from a residual that is small enough by the recurrence alone.
        let mut is_small = false;
        for &residual in residuals {
            is_small = run.converged_norm(residual)?;
        }
        let quantity = QUANTITIES.get(self.quantity).unwrap_or(&QUANTITIES[0]).1;
        let value = T::from_f64(self.value);
        match self.status {
            Status::Running => Ok(ControlFlow::Continue(())),
            Status::Converged if is_small => Ok(ControlFlow::Break(())),
            Status::Stagnant => Err(run.stagnation()),
            Status::NotFinite => Err(run.not_finite(quantity)),
            Status::NotPositive => {
                Err(run.positive(quantity, value).err().unwrap_or_else(|| run.stagnation()))
            }
            Status::Vanished => Err(run.breakdown(quantity, value)),
            // The history is the same here and there, and so are the tests; what is suspected was looked
            // into.
            Status::Converged
            | Status::Ended
            | Status::Suspect
            | Status::Restart
            | Status::Confirm
            | Status::Closing => {
                let message =
                    format!("the device ended the run ({:?}) where the host would not", self.status);
                Err(Error::device(NAME, "running a solver", message).into())
            }
        }
    }
}

/// The largest number of a type that is at most `threshold`: what the device compares norms with, so that it
/// decides as the host does.
pub(super) fn norm_limit(dtype: DType, threshold: f64) -> f64 {
    match dtype {
        DType::F32 => {
            let nearest = (threshold as f32).min(f32::MAX);
            f64::from(if f64::from(nearest) > threshold { nearest.next_down() } else { nearest })
        }
        DType::F64 => threshold,
    }
}

/// The largest number of a type whose root is at most `threshold`: the same for squares.
pub(super) fn square_limit(dtype: DType, threshold: f64) -> f64 {
    let square = threshold * threshold;
    match dtype {
        DType::F32 => {
            let root = |value: f32| f64::from(value).sqrt();
            let mut value = (square as f32).min(f32::MAX);
            while root(value) > threshold {
                value = value.next_down();
            }
            while value < f32::MAX && root(value.next_up()) <= threshold {
                value = value.next_up();
            }
            f64::from(value)
        }
        DType::F64 => {
            let mut value = square.min(f64::MAX);
            while value.sqrt() > threshold {
                value = value.next_down();
            }
            while value < f64::MAX && value.next_up().sqrt() <= threshold {
                value = value.next_up();
            }
            value
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_the_kernels_write_it() {
        for dtype in [DType::F32, DType::F64] {
            let mut bytes = fresh(dtype);
            assert_eq!(bytes.len(), state_bytes(dtype));
            assert_eq!(State::read(dtype, &bytes).unwrap().status, Status::Running);
            for (place, word) in [(0, 4_u32), (4, 2), (8, RING as u32 + 2)] {
                bytes[place..place + 4].copy_from_slice(&word.to_ne_bytes());
            }
            let numbers = Array::from_fn(dtype, 2, |k| [-2.5, 0.25][k]);
            bytes[24..24 + numbers.as_bytes().len()].copy_from_slice(numbers.as_bytes());
            let state = State::read(dtype, &bytes).unwrap();
            assert_eq!((state.status, state.quantity, state.value), (Status::NotPositive, 2, -2.5));
            assert_eq!(state.true_square, 0.25);
            // The last two entries stand where the first did.
            let ring = Array::from_fn(dtype, RING, |k| k as f64);
            let last: Vec<f64> = state.entries(dtype, ring.as_bytes(), RING as u32 - 1).collect();
            assert_eq!(last, [(RING - 1) as f64, 0.0, 1.0]);
            assert!(State::read(dtype, &bytes[..30]).is_err());
        }
    }

    #[test]
    fn limits_decide_as_the_host_does() {
        for threshold in [0.0, 1e-30, 1e-22, 3.7e-9, 0.1, 1.0, 1234.5, 1e19, 1e200, f64::MAX] {
            let norm = norm_limit(DType::F32, threshold) as f32;
            assert!(f64::from(norm) <= threshold, "{threshold}");
            assert!(norm == f32::MAX || f64::from(norm.next_up()) > threshold, "{threshold}");
            let single = square_limit(DType::F32, threshold) as f32;
            assert!(f64::from(single).sqrt() <= threshold, "{threshold}");
            assert!(single == f32::MAX || f64::from(single.next_up()).sqrt() > threshold, "{threshold}");
            let double = square_limit(DType::F64, threshold);
            assert!(double.sqrt() <= threshold, "{threshold}");
            assert!(double == f64::MAX || double.next_up().sqrt() > threshold, "{threshold}");
        }
    }
}
