//! Conditions at walls as users write them: a kind, each a row of a table, and its numbers or scalars.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::Serialize;

use super::scalar_name::ScalarName;
use crate::error::{Error, Result};

/// The kind of a condition that a field meets at a wall, to second order.
///
/// A wall is the outer face of the outermost cells. The derivative ∂u/∂n is along the outward normal, in the units of the
/// program's spacing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// u = g.
    Dirichlet,
    /// ∂u/∂n = q.
    Neumann,
    /// a u + b ∂u/∂n = c.
    Robin,
}

/// Of each kind: its name, and the letters of its values.
const KINDS: [(Condition, &str, &[&str]); 3] = [
    (Condition::Dirichlet, "dirichlet", &["G"]),
    (Condition::Neumann, "neumann", &["Q"]),
    (Condition::Robin, "robin", &["A", "B", "C"]),
];

impl Condition {
    /// Returns all kinds.
    pub fn all() -> impl Iterator<Item = Condition> {
        KINDS.iter().map(|(kind, ..)| *kind)
    }

    /// Returns the kind of a name, if there is one.
    pub fn of_name(name: &str) -> Option<Condition> {
        KINDS.iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| *kind)
    }

    fn row(self) -> (&'static str, &'static [&'static str]) {
        let row = KINDS.iter().find(|(kind, ..)| *kind == self);
        row.map_or(("", &[]), |&(_, name, letters)| (name, letters))
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns the number of its values: g, or q, or a, b and c.
    pub fn values(self) -> usize {
        self.row().1.len()
    }

    /// Returns the notation, as in `robin=A/B/C`.
    pub fn notation(self) -> String {
        format!("{}={}", self.name(), self.row().1.join("/"))
    }
}

/// A number, or the value of a parameter or a computed scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Given {
    /// The number.
    Number(f64),
    /// The name of the scalar.
    Scalar(ScalarName),
}

impl Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Given::Number(number) => write!(f, "{number}"),
            Given::Scalar(name) => write!(f, "{name}"),
        }
    }
}

/// A condition at a wall as in `dirichlet=1` or `robin=h/k/loss`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConditionText {
    /// The kind.
    pub condition: Condition,
    values: [Given; 3],
}

impl ConditionText {
    /// Returns the values, as many as the kind has.
    pub fn values(&self) -> &[Given] {
        &self.values[..self.condition.values()]
    }

    /// Reads a condition; `None` if the text does not begin with the name of one.
    pub(super) fn parse(text: &str) -> Option<Result<ConditionText>> {
        let (name, values) = text.split_once('=').unwrap_or((text, ""));
        Condition::of_name(name.trim()).map(|condition| read(condition, values, text))
    }
}

fn read(condition: Condition, values: &str, text: &str) -> Result<ConditionText> {
    let invalid = |reason: String| {
        let change = format!("write {}, each a finite number or a scalar's name", condition.notation());
        Error::invalid(format!("boundary `{text}`"), reason, change)
    };
    let parts: Vec<&str> = values.split('/').map(str::trim).collect();
    if parts.len() != condition.values() || parts.contains(&"") {
        let given = parts.iter().filter(|part| !part.is_empty()).count();
        return Err(invalid(format!(
            "it has {given} values, and {} takes {}",
            condition.name(),
            condition.values()
        )));
    }
    let mut all = [Given::Number(0.0); 3];
    for (own, part) in all.iter_mut().zip(parts) {
        *own = match part.parse::<f64>() {
            Ok(number) if number.is_finite() => Given::Number(number),
            Ok(_) => return Err(invalid(format!("{part} is no finite number"))),
            Err(_) => Given::Scalar(ScalarName::from_str(part)?),
        };
    }
    Ok(ConditionText { condition, values: all })
}

impl Display for ConditionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values().iter().map(Given::to_string).collect();
        write!(f, "{}={}", self.condition.name(), values.join("/"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_written_as_they_are_read() {
        for text in ["dirichlet=1.5", "dirichlet=g", "neumann=-2", "robin=1/0.5/loss"] {
            let read = ConditionText::parse(text).unwrap().unwrap();
            assert_eq!(read.to_string(), text);
        }
        assert!(ConditionText::parse("mirror").is_none());
        for (text, says) in [
            ("robin=1/2", "it has 2 values, and robin takes 3"),
            ("dirichlet", "it has 0 values"),
            ("neumann=inf", "inf is no finite number"),
            ("neumann=", "write neumann=Q"),
            ("dirichlet=1+2", "a name begins with a letter"),
        ] {
            let error = ConditionText::parse(text).unwrap().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
