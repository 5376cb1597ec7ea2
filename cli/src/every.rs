//! The interval of the files that a run writes on the way: steps, or marks of a computed scalar.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use abide::program::Marks;
use abide::{Builder, Error, Result, Running};

/// One `--every`.
#[derive(Debug, Clone, PartialEq)]
pub enum Every {
    /// So many steps, 1 or more.
    Steps(u64),
    /// The multiples of a number that the scalar of this name reaches.
    Marks(String, f64),
}

impl FromStr for Every {
    type Err = Error;

    fn from_str(text: &str) -> Result<Every> {
        let wrong = |reason: &str| {
            Error::invalid(format!("interval `{text}`"), reason, "write it like 100, or like time=0.5")
        };
        if let Some((scalar, by)) = text.split_once('=') {
            return match by.trim().parse::<f64>() {
                Ok(by) if by > 0.0 && by.is_finite() => Ok(Every::Marks(scalar.trim().to_owned(), by)),
                _ => Err(wrong("not a scalar and a number above 0")),
            };
        }
        match text.parse() {
            Ok(every) if every > 0 => Ok(Every::Steps(every)),
            _ => match abide_core::words::meant_number(text).filter(|every| *every > 0) {
                Some(every) => Err(Error::invalid(
                    format!("interval `{text}`"),
                    "not a whole number of 1 or more",
                    format!("did you mean {every}?"),
                )),
                None => Err(wrong("not a whole number of 1 or more")),
            },
        }
    }
}

impl Display for Every {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Every::Steps(steps) => write!(f, "every {steps} steps"),
            Every::Marks(scalar, by) => write!(f, "every {by} of {scalar}"),
        }
    }
}

impl Every {
    /// Returns the interval in steps; `None` for marks.
    pub fn steps(&self) -> Option<u64> {
        match self {
            Every::Steps(steps) => Some(*steps),
            Every::Marks(..) => None,
        }
    }

    /// Adds the marks to a description.
    pub fn apply(&self, builder: Builder) -> Builder {
        match self {
            Every::Steps(_) => builder,
            Every::Marks(scalar, by) => builder.marks(scalar, *by),
        }
    }

    /// Returns the number of the files of a step: the step over the interval, or the scalar over it, rounded
    /// down. `scalar` returns a scalar's value by its name.
    pub fn number(&self, step: u64, scalar: impl FnOnce(&str) -> Result<f64>) -> Result<u64> {
        let (name, by) = match self {
            Every::Steps(steps) => return Ok(step / steps),
            Every::Marks(name, by) => (name, *by),
        };
        let value = scalar(name)?;
        let number = Marks { scalar: 0, by }.number(value).and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| {
            Error::limit(
                "number of a frame",
                format!("{value} of {name} over {by}"),
                "0 to 2⁵³",
                format!("begin with {name} at 0 or above, or choose another interval"),
            )
        })
    }

    /// Returns whether files are due before the first step of a run that begins after so many: at the start, and of a
    /// run that goes on at a multiple of the steps. Whether a scalar has just reached a mark is not known there; the run
    /// before has written those files.
    pub fn is_due_at_first(&self, begun: u64) -> bool {
        match self {
            Every::Steps(steps) => begun.is_multiple_of(*steps),
            Every::Marks(..) => begun == 0,
        }
    }

    /// Returns whether files are due after an epoch: at the multiples of the steps, counted from the run's start.
    pub fn is_due(&self, running: &Running<'_>) -> bool {
        match self {
            Every::Steps(steps) => running.step().is_multiple_of(*steps),
            Every::Marks(..) => running.progress().is_at_mark,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_steps_or_marks() {
        assert_eq!("100".parse(), Ok(Every::Steps(100)));
        assert_eq!("time=0.5".parse(), Ok(Every::Marks("time".to_owned(), 0.5)));
        assert_eq!("time=5e-1".parse::<Every>().unwrap().to_string(), "every 0.5 of time");
        for bad in ["0", "-3", "1.5", "time=", "time=0", "time=-1", "time=nan", "time=inf", "often"] {
            let error = bad.parse::<Every>().unwrap_err().to_string();
            assert!(error.contains("like 100, or like time=0.5"), "{error}");
        }
    }
}
