//! Mixtures and ranges as they are written on the command line.

use std::str::FromStr;

use abide::{Error, Result};

/// A mixture's fractions: `CH4:0.3,O2:0.7`.
#[derive(Debug, Clone, PartialEq)]
pub struct Fractions(pub Vec<(String, f64)>);

impl FromStr for Fractions {
    type Err = Error;

    fn from_str(text: &str) -> Result<Fractions> {
        let part = |part: &str| {
            let wrong = || {
                let reason = format!("`{part}` is no NAME:FRACTION");
                Error::invalid(format!("mixture `{text}`"), reason, "write it like CH4:0.3,O2:0.7")
            };
            let (name, fraction) = match part.rsplit_once(':') {
                Some((name, fraction)) => (name, fraction.trim().parse().map_err(|_| wrong())?),
                // A gas of one species is all of it.
                None if !text.contains([',', ':']) => (part, 1.0),
                None => return Err(wrong()),
            };
            if name.trim().is_empty() {
                return Err(wrong());
            }
            Ok((name.trim().to_owned(), fraction))
        };
        Ok(Fractions(text.split(',').map(part).collect::<Result<_>>()?))
    }
}

impl Fractions {
    /// Returns the names of the species.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| &**name).collect()
    }
}

/// The most values of a range.
const MOST: usize = 1_000_000;

/// Values of a quantity: `300`, or `150:1000:50`, the last with the step by which they rise.
#[derive(Debug, Clone, PartialEq)]
pub struct Values(pub Vec<f64>);

impl FromStr for Values {
    type Err = Error;

    fn from_str(text: &str) -> Result<Values> {
        let fault = |reason: &str| {
            Err(Error::invalid(
                format!("range `{text}`"),
                reason,
                "write it like 300, or FIRST:LAST:STEP like 150:1000:50",
            ))
        };
        let numbers: Option<Vec<f64>> = text
            .split(':')
            .map(|part| part.trim().parse().ok().filter(|value: &f64| value.is_finite()))
            .collect();
        match numbers.as_deref() {
            Some(&[value]) => Ok(Values(vec![value])),
            Some(&[first, last, step]) => {
                if !(step > 0.0 && last >= first) {
                    return fault("it does not rise");
                }
                // The last is met where it is a whole number of steps away, whatever rounding says.
                let steps = ((last - first) / step * (1.0 + 1e-12) + 1e-9).floor();
                if steps >= MOST as f64 {
                    return Err(Error::limit(
                        format!("values of range `{text}`"),
                        steps + 1.0,
                        MOST,
                        "take larger steps",
                    ));
                }
                Ok(Values((0..=steps as usize).map(|number| first + step * number as f64).collect()))
            }
            _ => fault("it is neither a number nor three"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixtures_are_read() {
        let read = |text: &str| text.parse::<Fractions>();
        assert_eq!(read("CH4:0.3, O2:0.7").unwrap().names(), ["CH4", "O2"]);
        assert_eq!(read("CH2(S)").unwrap().0, [("CH2(S)".to_owned(), 1.0)]);
        for bad in ["CH4:0.3,O2", "CH4:x", ":1", "", "CH4,O2"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_reach_their_last_value() {
        let read = |text: &str| text.parse::<Values>().map(|values| values.0);
        assert_eq!(read("300").unwrap(), [300.0]);
        assert_eq!(read("150:300:50").unwrap(), [150.0, 200.0, 250.0, 300.0]);
        assert_eq!(read("1:1.3:0.1").unwrap().len(), 4);
        assert_eq!(read("150:299:50").unwrap().len(), 3);
        for bad in ["1:2", "2:1:1", "1:2:0", "a", "1:2:3:4", "nan", "0:1:1e-9"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
