//! Types in which a device may store a field's values that are narrower than the run's.
//!
//! A field's new values are rounded to its precision by an operator of its formula ([`Precision::operator`]), so that they are
//! the same wherever they are computed, whatever they are stored in.

use crate::expr::{Unary, unary};
use crate::named::named;
use crate::real::{Array, DType, Real};
use crate::{Result, memory, with_array};

named! {
    /// The precision to which a field's values are rounded, and in which a device may store them.
    Precision "precision" {
        /// IEEE 754 binary32: 24 bits, magnitudes up to 3.4e38.
        #[default]
        F32 = "f32",
        /// IEEE 754 binary16: 11 bits, magnitudes up to 65504.
        F16 = "f16",
        /// The upper half of a binary32: 8 bits, magnitudes up to 3.4e38.
        Bf16 = "bf16",
    }
}

impl Precision {
    /// Returns the bytes of a stored value.
    pub fn bytes(self) -> usize {
        match self {
            Precision::F32 => 4,
            Precision::F16 | Precision::Bf16 => 2,
        }
    }

    /// Returns the bytes of a value of a type that may be stored in a precision.
    pub fn stored_bytes(precision: Option<Precision>, dtype: DType) -> usize {
        precision.map_or(dtype.bytes(), Precision::bytes)
    }

    /// Returns the operator that rounds to this precision.
    pub fn operator(self) -> Unary {
        match self {
            Precision::F32 => Unary::RoundF32,
            Precision::F16 => Unary::RoundF16,
            Precision::Bf16 => Unary::RoundBf16,
        }
    }

    /// Returns whether stored values are narrower than those of a type.
    pub fn is_narrower(self, dtype: DType) -> bool {
        self.bytes() < dtype.bytes()
    }

    /// Returns a number rounded to this precision, to nearest, ties to even.
    ///
    /// ```
    /// use abide_core::Precision;
    ///
    /// assert_eq!(Precision::F16.rounded(1.0 / 3.0), 0.333251953125);
    /// assert_eq!(Precision::Bf16.rounded(1.0f32 / 3.0), 0.333984375);
    /// ```
    pub fn rounded<T: Real>(self, value: T) -> T {
        unary(self.operator(), value)
    }

    /// Returns the bytes of all values of an array, each rounded and stored in this precision, in the machine's byte order.
    ///
    /// # Errors
    ///
    /// [`Error::Limit`](crate::Error::Limit) where the machine has no memory for them.
    pub fn pack(self, values: &Array) -> Result<Vec<u8>> {
        let bytes = values.len() * self.bytes();
        let mut packed = memory::filled(0, bytes, "a field", "choose a smaller size")?;
        match self {
            Precision::F32 => put(values, &mut packed, f32::to_ne_bytes),
            Precision::F16 => put(values, &mut packed, |value| half::f16::from_f32(value).to_ne_bytes()),
            Precision::Bf16 => put(values, &mut packed, |value| half::bf16::from_f32(value).to_ne_bytes()),
        }
        Ok(packed)
    }

    /// Returns values of a type that are stored in this precision.
    ///
    /// # Errors
    ///
    /// Those of [`Precision::pack`].
    pub fn unpack(self, packed: &[u8], dtype: DType) -> Result<Array> {
        let value = |at: usize| {
            let bits = || u16::from_ne_bytes([packed[2 * at], packed[2 * at + 1]]);
            match self {
                Precision::F32 => {
                    f32::from_ne_bytes(std::array::from_fn(|byte| packed[4 * at + byte])).into()
                }
                Precision::F16 => half::f16::from_bits(bits()).to_f64(),
                Precision::Bf16 => half::bf16::from_bits(bits()).to_f64(),
            }
        };
        Array::try_from_fn(dtype, packed.len() / self.bytes(), value)
    }

    /// Rounds all values of an array.
    pub fn round(self, values: &mut Array) {
        with_array!(values, values => values.iter_mut().for_each(|value| *value = self.rounded(*value)));
    }
}

/// Puts the bytes of each value, rounded to f32, behind those of the one before.
fn put<const N: usize>(values: &Array, packed: &mut [u8], bytes: impl Fn(f32) -> [u8; N]) {
    with_array!(values, values => for (to, value) in packed.chunks_exact_mut(N).zip(values) {
        to.copy_from_slice(&bytes(value.to_f64() as f32));
    });
}
