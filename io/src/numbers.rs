//! Numbers in JSON, which knows neither NaN nor infinity.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number that comes back to the bit: one of JSON where it is finite, else a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Number(
    /// The number.
    pub f64,
);

/// Before the bits of a NaN whose sign or payload is not that of [`f64::NAN`].
const NAN: &str = "NaN:";

/// Returns a number as a text that [`value`] reads to the bit.
pub(super) fn text(value: f64) -> String {
    match value.is_nan() && value.to_bits() != f64::NAN.to_bits() {
        true => format!("{NAN}{:016x}", value.to_bits()),
        false => format!("{value:?}"),
    }
}

/// Returns the number that a text is.
pub(super) fn value(text: &str) -> Option<f64> {
    let Some(bits) = text.strip_prefix(NAN) else { return text.parse().ok() };
    u64::from_str_radix(bits, 16).ok().map(f64::from_bits).filter(|value| value.is_nan())
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.is_finite() {
            true => serializer.serialize_f64(self.0),
            false => serializer.serialize_str(&text(self.0)),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        deserializer.deserialize_any(Numbers)
    }
}

struct Numbers;

impl Visitor<'_> for Numbers {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a text such as \"NaN\" or \"inf\"")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
        Ok(Number(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(number as f64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
        value(text).map(Number).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back_to_the_bit() {
        let negative = f64::from_bits(f64::NAN.to_bits() | 1 << 63);
        let payload = f64::from_bits(0x7ff8_0000_0000_0abc);
        for number in [
            0.0,
            -0.0,
            0.1,
            1e300,
            5e-324,
            f64::MAX,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            negative,
            payload,
        ] {
            assert_eq!(value(&text(number)).unwrap().to_bits(), number.to_bits(), "{number}");
            let json = serde_json::to_string(&Number(number)).unwrap();
            let Number(read) = serde_json::from_str(&json).unwrap();
            assert_eq!(read.to_bits(), number.to_bits(), "{json}");
        }
        for bad in ["NaN:", "NaN:7ff0000000000000", "NaN:g", "one", ""] {
            assert_eq!(value(bad).map(f64::to_bits), None, "{bad}");
            assert!(serde_json::from_str::<Number>(&format!("{bad:?}")).is_err(), "{bad}");
        }
        assert!(serde_json::from_str::<Number>("null").is_err());
        assert_eq!(serde_json::from_str::<Number>("7").unwrap().0, 7.0);
    }
}
