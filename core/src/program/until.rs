//! Conditions that end a run.

use super::Program;
use crate::error::{Error, Result};
use crate::expr::Binary;

/// A condition on a computed scalar, tested after each step, that ends a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// The number of the scalar among [`Program::scalars`].
    pub scalar: usize,
    /// The relation of the scalar to the value: one of the six comparisons.
    pub relation: Binary,
    /// The value that the scalar is compared with.
    pub value: f64,
}

/// The relations as they are written; the longer of two that begin alike comes first.
const RELATIONS: [(&str, Binary); 6] = [
    (">=", Binary::GreaterEqual),
    ("<=", Binary::LessEqual),
    ("==", Binary::Equal),
    ("!=", Binary::NotEqual),
    (">", Binary::Greater),
    ("<", Binary::Less),
];

impl Until {
    /// Reads `SCALAR OP NUMBER`, as in `time >= 15.5`, for a program.
    pub fn parse(text: &str, program: &Program) -> Result<Until> {
        let written = || {
            let change = "write a scalar, one of >= <= == != > <, and a number, as in \"time >= 15.5\"";
            Error::invalid(format!("until `{text}`"), "it is no condition", change)
        };
        let at = |(sign, relation)| Some((text.find(sign)?, sign, relation));
        let (at, sign, relation) = RELATIONS.into_iter().find_map(at).ok_or_else(written)?;
        let value: f64 = text[at + str::len(sign)..].trim().parse().map_err(|_| written())?;
        if value.is_nan() {
            return Err(written());
        }
        Ok(Until { scalar: program.scalar(text[..at].trim())?, relation, value })
    }

    /// Returns whether a run whose scalar has this value ends: where the condition holds, and where the value
    /// is NaN.
    pub fn ends(&self, value: f64) -> bool {
        value.is_nan() || crate::expr::binary(self.relation, value, self.value) != 0.0
    }

    /// Returns the condition in words.
    pub fn describe(&self, program: &Program) -> String {
        let name = program.scalars().get(self.scalar).map_or("", |scalar| &scalar.name);
        format!("{name} {} {}", self.relation.relation().unwrap_or("=="), self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::cloverleaf;

    #[test]
    fn conditions_are_read_and_hold() {
        let program = cloverleaf().unwrap();
        let until = Until::parse(" time >= 1.5e1", &program).unwrap();
        assert_eq!(until.describe(&program), "time >= 15");
        assert!(until.ends(15.0) && until.ends(f64::NAN) && !until.ends(14.999));
        assert!(Until::parse("dt<1e-7", &program).unwrap().ends(0.0));
        for bad in ["time", "time >= x", "time >= nan", ">= 3", "time => 3", "dx > 1"] {
            let error = Until::parse(bad, &program).unwrap_err().to_string();
            assert!(error.contains("as in") || error.contains("no scalar is named"), "{bad}: {error}");
        }
    }
}
