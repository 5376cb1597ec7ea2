//! The data that come back from a submission, state and history; and the limits that the device compares
//! residuals with.

use abide_core::DType;
use abide_shaders::numbers;
use abide_shaders::state::State;
use abide_shaders::wgsl::krylov::{OwnState, RING};

/// Returns the bytes of the kernels' `State`.
pub(super) fn state_bytes(dtype: DType) -> usize {
    State::size(dtype) + OwnState::size(dtype)
}

/// Returns the state before the first phase.
pub(super) fn fresh(dtype: DType) -> Vec<u8> {
    State::fresh(dtype, OwnState::size(dtype))
}

/// Returns the entries from `known` on of a history of `length` entries, of which the device keeps the last.
pub(super) fn entries(dtype: DType, ring: &[u8], [known, length]: [u32; 2]) -> Vec<f64> {
    let ring: Vec<f64> = numbers(dtype, ring).collect();
    (known..length).filter_map(|k| ring.get(k as usize % RING).copied()).collect()
}

/// Returns the largest number of a type that is at most `threshold`. The device compares norms with it, and
/// so decides as the host does.
pub(super) fn norm_limit(dtype: DType, threshold: f64) -> f64 {
    match dtype {
        DType::F32 => {
            let nearest = (threshold as f32).min(f32::MAX);
            f64::from(if f64::from(nearest) > threshold { nearest.next_down() } else { nearest })
        }
        DType::F64 => threshold,
    }
}

/// Returns the largest number of a type whose root is at most `threshold`, for comparisons of squares.
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
    use abide_core::Array;

    use super::*;

    #[test]
    fn the_last_entries_stand_where_the_first_did() {
        for dtype in [DType::F32, DType::F64] {
            let ring = Array::from_fn(dtype, RING, |k| k as f64);
            let last = entries(dtype, ring.as_bytes(), [RING as u32 - 1, RING as u32 + 2]);
            assert_eq!(last, [(RING - 1) as f64, 0.0, 1.0]);
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
