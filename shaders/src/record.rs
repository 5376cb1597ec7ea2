//! Records that pass between hosts and kernels. One table per record gives the host a struct and its bytes,
//! and the kernel the same fields in the same order.

use abide_core::{Array, DType};

use crate::text::Text;

/// A field: its name, and what it holds.
pub(crate) type Field = (&'static str, &'static str);

/// A record of 32-bit words and, behind them, numbers of the kernel's type.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident {
        words { $($word:ident $word_is:literal,)* }
        numbers { $($number:ident $number_is:literal,)* }
    }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct $name {
            $(#[doc = $word_is] pub $word: u32,)*
            $(#[doc = $number_is] pub $number: f64,)*
        }

        impl $name {
            pub(crate) const WORDS: &'static [$crate::record::Field] = &[$((stringify!($word), $word_is)),*];
            pub(crate) const NUMBERS: &'static [$crate::record::Field] =
                &[$((stringify!($number), $number_is)),*];

            /// Returns the record's size in bytes if its numbers are of this type.
            pub fn size(dtype: abide_core::DType) -> usize {
                4 * $name::WORDS.len() + dtype.bytes() * $name::NUMBERS.len()
            }

            /// Returns the record's bytes.
            pub fn bytes(&self, dtype: abide_core::DType) -> Vec<u8> {
                $crate::record::bytes(dtype, &[$(self.$word),*], &[$(self.$number),*])
            }

            /// Returns the record that these bytes hold, or `None` where there are too few.
            pub fn read(dtype: abide_core::DType, bytes: &[u8]) -> Option<$name> {
                let (words, numbers) = bytes.split_at_checked(4 * $name::WORDS.len())?;
                let mut words = words.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
                let mut numbers = $crate::record::numbers(dtype, numbers);
                Some($name { $($word: words.next()?,)* $($number: numbers.next()?,)* })
            }
        }
    };
}
pub(crate) use record;

pub(crate) fn bytes(dtype: DType, words: &[u32], numbers: &[f64]) -> Vec<u8> {
    let numbers = Array::from_fn(dtype, numbers.len(), |k| numbers[k]);
    let words = words.iter().flat_map(|word| word.to_ne_bytes());
    words.chain(numbers.as_bytes().iter().copied()).collect()
}

/// Returns the numbers of type `dtype` that stand one behind the other in these bytes.
pub fn numbers(dtype: DType, bytes: &[u8]) -> impl Iterator<Item = f64> {
    bytes.chunks_exact(dtype.bytes()).map(move |number| match number.first_chunk::<8>() {
        Some(double) => f64::from_ne_bytes(*double),
        None => number.first_chunk().map_or(f64::NAN, |single| f64::from(f32::from_ne_bytes(*single))),
    })
}

/// Writes fields of a WGSL struct.
pub(crate) fn wgsl_fields(text: &mut Text, fields: &[Field], kind: &str) {
    text.extend(fields.iter().map(|(name, what)| format!("{name}: {kind}, // {what}")));
}

/// Writes members of a C++ struct.
pub(crate) fn c_fields(text: &mut Text, fields: &[Field], kind: &str) {
    text.extend(fields.iter().map(|(name, what)| format!("{kind} {name};  // {what}")));
}
