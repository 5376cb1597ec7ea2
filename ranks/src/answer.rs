//! What ranks answer, as bytes for the ranks of other processes.

use std::borrow::Cow;

use abide_core::{Array, DType};

/// An answer that goes from a rank to all others.
pub trait Answer: Sized + Send + 'static {
    /// Returns its bytes.
    fn bytes(&self) -> Cow<'_, [u8]>;

    /// Returns the answer of these bytes; `None` where they are of none. Arrays are of the type given.
    fn of(bytes: &[u8], dtype: DType) -> Option<Self>;
}

impl Answer for Array {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.as_bytes())
    }

    fn of(bytes: &[u8], dtype: DType) -> Option<Array> {
        bytes.len().is_multiple_of(dtype.bytes()).then(|| Array::from_bytes(dtype, bytes))
    }
}

impl Answer for u64 {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.to_le_bytes().to_vec())
    }

    fn of(bytes: &[u8], _: DType) -> Option<u64> {
        bytes.try_into().ok().map(u64::from_le_bytes)
    }
}

impl Answer for [f64; 2] {
    fn bytes(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.map(f64::to_le_bytes).as_flattened().to_vec())
    }

    fn of(bytes: &[u8], _: DType) -> Option<[f64; 2]> {
        match bytes.as_chunks::<8>() {
            ([one, other], []) => Some([one, other].map(|bytes| f64::from_le_bytes(*bytes))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_from_their_bytes() {
        fn check<A: Answer + PartialEq + std::fmt::Debug>(answer: A, dtype: DType) {
            assert_eq!(A::of(&answer.bytes(), dtype), Some(answer));
        }
        check(Array::F32(vec![0.5, -1.0, 3.0]), DType::F32);
        check(Array::F64(vec![]), DType::F64);
        check(1_u64 << 40, DType::F32);
        check([0.25, 1e300], DType::F32);
        assert!(u64::of(&[0; 7], DType::F32).is_none() && <[f64; 2]>::of(&[0; 24], DType::F32).is_none());
        assert!(Array::of(&[0; 6], DType::F32).is_none());
    }
}
