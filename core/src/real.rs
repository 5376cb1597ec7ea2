//! The two number types, and the arrays that hold a field in either.

use std::fmt::{self, Debug, Display};
use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::expr::Elementary;
use crate::functions::Number;
use crate::memory;

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl DType {
    /// Returns the bytes of one value.
    pub fn bytes(self) -> usize {
        match self {
            DType::F32 => 4,
            DType::F64 => 8,
        }
    }

    /// Checks whether the type tells all indices below `extent` from one another, as formulas that compare them must.
    pub fn tells_indices(self, extent: usize) -> bool {
        let digits = match self {
            DType::F32 => f32::MANTISSA_DIGITS,
            DType::F64 => f64::MANTISSA_DIGITS,
        };
        extent as u64 <= 1 << digits
    }

    /// Returns `f32` or `f64`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Returns the largest finite number of the type.
    pub fn largest(self) -> f64 {
        match self {
            DType::F32 => f64::from(f32::MAX),
            DType::F64 => f64::MAX,
        }
    }

    /// Checks whether a number, rounded to the type, is finite.
    pub fn is_finite(self, value: f64) -> bool {
        match self {
            DType::F32 => (value as f32).is_finite(),
            DType::F64 => value.is_finite(),
        }
    }
}

impl Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "f32" => Ok(DType::F32),
            "f64" => Ok(DType::F64),
            _ => Err(Error::unknown("dtype", text, ["f32", "f64"])),
        }
    }
}

/// A real number type in which the kernels compute: `f32` or `f64`.
///
/// The operations are exactly those of the expression language, whose functions are [`Elementary`]; each
/// operation rounds once, to nearest even.
pub trait Real:
    Copy
    + Send
    + Sync
    + PartialEq
    + PartialOrd
    + Debug
    + Display
    + Default
    + bytemuck::Zeroable
    + Number<Truth = bool>
    + Elementary
    + 'static
{
    /// The type's tag.
    const DTYPE: DType;
    /// 1.
    const ONE: Self;
    /// 0.
    const ZERO: Self;
    /// Rounds a constant of an expression to this type.
    fn from_f64(value: f64) -> Self;
    /// Returns the exact value in f64.
    fn to_f64(self) -> f64;
    /// Returns the exact value in this type of what `narrow` makes of this, rounded to f32.
    fn through_f32(self, narrow: impl Fn(f32) -> f32) -> Self;
    /// Returns the bits, widened to 64.
    fn to_bits64(self) -> u64;
    /// Checks whether the number is neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// Turns a vector of this type's values into an [`Array`].
    fn into_array(values: Vec<Self>) -> Array;
    /// Returns the values of an array of this type; `None` if it holds the other type.
    fn slice(array: &Array) -> Option<&[Self]>;
    /// Returns the values of an array of this type; `None` if it holds the other type.
    fn slice_mut(array: &mut Array) -> Option<&mut [Self]>;
}

macro_rules! real {
    ($real:ident, $tag:ident) => {
        impl Real for $real {
            const DTYPE: DType = DType::$tag;
            const ONE: Self = 1.0;
            const ZERO: Self = 0.0;
            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as $real
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn through_f32(self, narrow: impl Fn(f32) -> f32) -> Self {
                $real::from(narrow(self as f32))
            }
            #[inline(always)]
            fn to_bits64(self) -> u64 {
                u64::from(self.to_bits())
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $real::is_finite(self)
            }
            fn into_array(values: Vec<Self>) -> Array {
                Array::$tag(values)
            }
            fn slice(array: &Array) -> Option<&[Self]> {
                match array {
                    Array::$tag(values) => Some(values),
                    _ => None,
                }
            }
            fn slice_mut(array: &mut Array) -> Option<&mut [Self]> {
                match array {
                    Array::$tag(values) => Some(values),
                    _ => None,
                }
            }
        }
    };
}

real!(f32, F32);
real!(f64, F64);

/// The values of one field, the slowest axis first, without padding.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    /// Values in f32.
    F32(Vec<f32>),
    /// Values in f64.
    F64(Vec<f64>),
}

/// Runs `$body` with `$values` bound to the vector inside an [`Array`], whichever type it holds.
#[macro_export]
macro_rules! with_array {
    ($array:expr, $values:ident => $body:expr) => {
        match $array {
            $crate::Array::F32($values) => $body,
            $crate::Array::F64($values) => $body,
        }
    };
}

impl Array {
    /// Makes a few values by `value(index)`, rounded to `dtype`. For as many values as a user asks for there
    /// is [`Array::try_from_fn`].
    pub fn from_fn(dtype: DType, len: usize, mut value: impl FnMut(usize) -> f64) -> Self {
        match dtype {
            DType::F32 => Array::F32((0..len).map(|i| value(i) as f32).collect()),
            DType::F64 => Array::F64((0..len).map(value).collect()),
        }
    }

    /// Makes `len` values by `value(index)`, rounded to `dtype`. Fails if the machine does not have that much
    /// memory.
    pub fn try_from_fn(dtype: DType, len: usize, mut value: impl FnMut(usize) -> f64) -> Result<Self> {
        Ok(match dtype {
            DType::F32 => {
                let mut values = reserved(len)?;
                values.extend((0..len).map(|i| value(i) as f32));
                Array::F32(values)
            }
            DType::F64 => {
                let mut values = reserved(len)?;
                values.extend((0..len).map(value));
                Array::F64(values)
            }
        })
    }

    /// Returns the type of the values.
    pub fn dtype(&self) -> DType {
        match self {
            Array::F32(_) => DType::F32,
            Array::F64(_) => DType::F64,
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        with_array!(self, v => v.len())
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value at `index` in f64, exactly; `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<f64> {
        with_array!(self, v => v.get(index).map(|x| x.to_f64()))
    }

    /// Returns all values in f64, exactly.
    pub fn to_f64(&self) -> Vec<f64> {
        with_array!(self, v => v.iter().map(|x| x.to_f64()).collect())
    }

    /// Returns a copy. Fails if the machine has no memory for it.
    pub fn try_clone(&self) -> Result<Array> {
        fn copied<T: Real>(values: &[T]) -> Result<Array> {
            memory::copied(values, WHAT, CHANGE).map(T::into_array)
        }
        with_array!(self, v => copied(v))
    }

    /// Returns a copy of some of the values; none where they are not all there. Fails if the machine has no
    /// memory for them.
    pub fn part(&self, values: std::ops::Range<usize>) -> Result<Array> {
        fn copied<T: Real>(values: Option<&[T]>) -> Result<Array> {
            memory::copied(values.unwrap_or_default(), WHAT, CHANGE).map(T::into_array)
        }
        with_array!(self, v => copied(v.get(values)))
    }

    /// Returns the values of several arrays of this type, each behind the one before. Fails if the machine has
    /// no memory for `len` of them; values of the other type are rounded.
    pub fn join(dtype: DType, len: usize, parts: impl IntoIterator<Item = Result<Array>>) -> Result<Array> {
        let mut joined = match dtype {
            DType::F32 => Array::F32(reserved(len)?),
            DType::F64 => Array::F64(reserved(len)?),
        };
        for part in parts {
            match (&mut joined, part?) {
                (Array::F32(all), Array::F32(part)) => all.extend_from_slice(&part),
                (Array::F64(all), Array::F64(part)) => all.extend_from_slice(&part),
                (Array::F32(all), Array::F64(part)) => all.extend(part.iter().map(|&x| x as f32)),
                (Array::F64(all), Array::F32(part)) => all.extend(part.iter().map(|&x| f64::from(x))),
            }
        }
        Ok(joined)
    }

    /// Returns the same values rounded to `dtype`. Fails if the machine has no memory for them.
    pub fn cast(&self, dtype: DType) -> Result<Array> {
        if dtype == self.dtype() {
            return self.try_clone();
        }
        with_array!(self, v => Array::try_from_fn(dtype, v.len(), |i| v[i].to_f64()))
    }

    /// Counts the values that are NaN or infinite.
    pub fn non_finite(&self) -> usize {
        with_array!(self, v => v.iter().filter(|x| !x.is_finite()).count())
    }

    /// Returns the values as bytes, in the machine's byte order.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: f32 and f64 have no padding and every byte pattern is a valid u8; the length is the slice's
        // own.
        with_array!(self, v => unsafe { std::slice::from_raw_parts(v.as_ptr().cast::<u8>(), std::mem::size_of_val(v.as_slice())) })
    }

    /// Returns the values of a type whose bytes these are. Zeros complete the last value.
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Array {
        match dtype {
            DType::F32 => Array::F32(bytemuck::pod_collect_to_vec(bytes)),
            DType::F64 => Array::F64(bytemuck::pod_collect_to_vec(bytes)),
        }
    }

    /// Returns `len` zeros. Fails if the machine does not have that much memory.
    pub fn zeros(dtype: DType, len: usize) -> Result<Array> {
        fn zeros<T: Real>(len: usize) -> Result<Array> {
            memory::filled(T::ZERO, len, WHAT, CHANGE).map(T::into_array)
        }
        match dtype {
            DType::F32 => zeros::<f32>(len),
            DType::F64 => zeros::<f64>(len),
        }
    }

    /// Returns the largest difference from `other` in units in the last place, with NaN equal to NaN; `None`
    /// if the types or lengths differ.
    ///
    /// A NaN against a number, or an infinity against anything else, counts as `u64::MAX`.
    pub fn ulp_distance(&self, other: &Array) -> Option<u64> {
        fn distance<T: Real>(a: &[T], b: &[T], sign: u64) -> Option<u64> {
            if a.len() != b.len() {
                return None;
            }
            let ordered = |x: T| {
                let bits = x.to_bits64() as i64 as i128;
                let bits = bits & ((i128::from(sign) << 1) - 1);
                if bits & i128::from(sign) != 0 { -(bits & (i128::from(sign) - 1)) } else { bits }
            };
            let one = |(x, y): (&T, &T)| {
                if x.to_f64().is_nan() && y.to_f64().is_nan() {
                    0
                } else if x.is_finite() && y.is_finite() {
                    u64::try_from((ordered(*x) - ordered(*y)).unsigned_abs()).unwrap_or(u64::MAX)
                } else if x == y {
                    0
                } else {
                    u64::MAX
                }
            };
            Some(a.iter().zip(b).map(one).max().unwrap_or(0))
        }
        match (self, other) {
            (Array::F32(a), Array::F32(b)) => distance(a, b, 1 << 31),
            (Array::F64(a), Array::F64(b)) => distance(a, b, 1 << 63),
            _ => None,
        }
    }

    /// Returns the largest absolute value among the finite ones; 0 if there is none.
    pub fn magnitude(&self) -> f64 {
        with_array!(self, v => v.iter().filter(|x| x.is_finite()).fold(0.0, |most, x| x.to_f64().abs().max(most)))
    }

    /// Returns the largest difference from `other` in units of the type's epsilon times `magnitude`; `None`
    /// if the types or lengths differ. These are units in the last place of the field's largest value, so
    /// that values where large ones cancel do not count as wrong.
    ///
    /// NaN equals NaN; a NaN against a number, or an infinity against anything else, counts as infinite.
    pub fn scaled_ulp_distance(&self, other: &Array, magnitude: f64) -> Option<f64> {
        fn distance<T: Real>(a: &[T], b: &[T], unit: f64) -> Option<f64> {
            let one = |(x, y): (&T, &T)| {
                let (x, y) = (x.to_f64(), y.to_f64());
                if x == y || (x.is_nan() && y.is_nan()) {
                    0.0
                } else if x.is_finite() && y.is_finite() {
                    (x - y).abs() / unit
                } else {
                    f64::INFINITY
                }
            };
            (a.len() == b.len()).then(|| a.iter().zip(b).map(one).fold(0.0, f64::max))
        }
        match (self, other) {
            (Array::F32(a), Array::F32(b)) => distance(a, b, magnitude * f64::from(f32::EPSILON)),
            (Array::F64(a), Array::F64(b)) => distance(a, b, magnitude * f64::EPSILON),
            _ => None,
        }
    }

    /// Checks whether both arrays have the same type, the same length and the same bits everywhere; any NaN
    /// equals any NaN.
    pub fn same_bits(&self, other: &Array) -> bool {
        fn same<T: Real>(a: &[T], b: &[T]) -> bool {
            let one = |(x, y): (&T, &T)| {
                x.to_bits64() == y.to_bits64() || (x.to_f64().is_nan() && y.to_f64().is_nan())
            };
            a.len() == b.len() && a.iter().zip(b).all(one)
        }
        match (self, other) {
            (Array::F32(a), Array::F32(b)) => same(a, b),
            (Array::F64(a), Array::F64(b)) => same(a, b),
            _ => false,
        }
    }
}

/// The use of the memory that is asked for, and what to change if there is none.
const WHAT: &str = "an array";
const CHANGE: &str = "choose a smaller size or f32";

/// Returns an empty vector with room for `len` values. Fails if the machine does not have that much memory.
fn reserved<T: Real>(len: usize) -> Result<Vec<T>> {
    memory::reserved(len, WHAT, CHANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ulp_distance_counts_representable_values_between() {
        let a = Array::F64(vec![1.0, -0.0, f64::NAN, 2.0]);
        let b = Array::F64(vec![1.0 + f64::EPSILON, 0.0, f64::NAN, 2.0]);
        assert_eq!(a.ulp_distance(&b), Some(1));
        let tiny = f32::from_bits(1);
        assert_eq!(Array::F32(vec![-tiny]).ulp_distance(&Array::F32(vec![tiny])), Some(2));
        assert_eq!(Array::F32(vec![f32::INFINITY]).ulp_distance(&Array::F32(vec![f32::MAX])), Some(u64::MAX));
        assert_eq!(Array::F32(vec![1.0]).ulp_distance(&Array::F64(vec![1.0])), None);
    }

    #[test]
    fn scaled_distance_counts_at_the_largest_magnitude() {
        let a = Array::F64(vec![4.0, 1e-30, f64::NAN, f64::INFINITY]);
        let b = Array::F64(vec![4.0 + 4.0 * f64::EPSILON, 0.0, f64::NAN, f64::INFINITY]);
        assert_eq!(a.magnitude(), 4.0);
        assert_eq!(a.scaled_ulp_distance(&b, 4.0), Some(1.0));
        assert_eq!(a.scaled_ulp_distance(&b, 1.0), Some(4.0));
        assert_eq!(Array::F32(vec![0.0]).scaled_ulp_distance(&Array::F32(vec![-0.0]), 0.0), Some(0.0));
        assert_eq!(
            Array::F32(vec![0.0]).scaled_ulp_distance(&Array::F32(vec![f32::NAN]), 1.0),
            Some(f64::INFINITY)
        );
        assert_eq!(Array::F32(vec![0.0]).scaled_ulp_distance(&Array::F64(vec![0.0]), 1.0), None);
    }

    #[test]
    fn signed_zeros_differ_in_bits_and_nans_do_not() {
        assert!(!Array::F64(vec![0.0]).same_bits(&Array::F64(vec![-0.0])));
        assert!(Array::F64(vec![f64::NAN]).same_bits(&Array::F64(vec![-f64::NAN])));
    }

    #[test]
    fn too_much_memory_is_an_error() {
        let most = usize::MAX / 16;
        assert!(matches!(Array::zeros(DType::F64, most), Err(Error::Limit { .. })));
        assert!(matches!(Array::try_from_fn(DType::F32, most, |_| 1.0), Err(Error::Limit { .. })));
    }

    #[test]
    fn casts_round_once() {
        let tenths = Array::try_from_fn(DType::F64, 3, |i| i as f64 / 10.0).unwrap();
        assert_eq!(tenths.cast(DType::F32), Ok(Array::F32(vec![0.0, 0.1, 0.2])));
        assert_eq!(tenths.cast(DType::F64), Ok(tenths));
    }
}
