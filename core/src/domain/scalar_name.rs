//! The names of scalars in boundaries.

use std::fmt::{self, Display};
use std::str::FromStr;

use arrayvec::ArrayString;
use serde::Serialize;

use crate::error::{Error, Result};

/// The most bytes of a scalar's name in a boundary.
const MOST_BYTES: usize = 31;

/// The name of a parameter or of a computed scalar whose value ghost cells hold: a letter, and then letters,
/// digits, `_` or `-`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
pub struct ScalarName(ArrayString<MOST_BYTES>);

impl ScalarName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<ScalarName> for String {
    fn from(name: ScalarName) -> String {
        name.as_str().to_owned()
    }
}

impl Display for ScalarName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ScalarName {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut letters = text.chars();
        let begins = letters.next().is_some_and(char::is_alphabetic);
        if !begins || !letters.all(|c| c.is_alphanumeric() || c == '_' || c == '-') {
            return Err(Error::invalid(
                format!("scalar `{text}`"),
                "a name begins with a letter and has letters, digits, `_` and `-`",
                "name a parameter or a computed scalar of the program",
            ));
        }
        ArrayString::from(text).map(ScalarName).map_err(|_| {
            let what = "bytes of a scalar's name in a boundary";
            Error::limit(what, text.len(), MOST_BYTES, "give the scalar a shorter name")
        })
    }
}
