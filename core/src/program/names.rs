//! Names that come from others: of programs, fields and all that a program declares.

use super::Program;
use crate::error::{Error, Result};

/// What is named, and so what its name may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A program. Its name may become a file's.
    Program,
    /// A field. Its name is that of an entry of an archive, and may become a file's.
    Field,
    /// A temporary, a parameter, a scalar or a stage, whose name may be a formula.
    Other(&'static str),
}

/// Checks a name where it is read: it reaches terminals, files and archives as it is.
///
/// # Errors
///
/// [`Error::Invalid`] for control characters, and for characters that only change how others are shown; of a program or
/// a field also for parts of a path.
pub fn check_name(named: Named, name: &str) -> Result<()> {
    let (kind, is_file) = match named {
        Named::Program => ("program", true),
        Named::Field => ("field", true),
        Named::Other(kind) => (kind, false),
    };
    let refused = |reason: &str| {
        let change = "name it by letters, digits, - and _";
        Err(Error::invalid(format!("{kind} `{name}`"), reason, change))
    };
    if name.chars().any(is_hidden) {
        return refused("its name holds a control character");
    }
    if is_file && (name.contains(['/', '\\']) || name == "." || name == "..") {
        return refused("its name is a path");
    }
    Ok(())
}

/// Returns whether a character moves a terminal's cursor, or changes how others are shown.
fn is_hidden(letter: char) -> bool {
    let is_format = matches!(letter,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    letter.is_control() || is_format
}

impl Program {
    /// Checks the names of all parts, and the meanings, which are printed unchanged.
    pub(crate) fn check_names(&self) -> Result<()> {
        check_name(Named::Program, self.name())?;
        self.fields().iter().try_for_each(|name| check_name(Named::Field, name))?;
        let temporaries = self.temporaries().iter().map(|temporary| ("temporary", &temporary.name));
        let parameters = self.parameters().iter().map(|parameter| ("parameter", &parameter.name));
        let scalars = self.scalars().iter().map(|scalar| ("scalar", &scalar.name));
        temporaries
            .chain(parameters)
            .chain(scalars)
            .try_for_each(|(kind, name)| check_name(Named::Other(kind), name))?;
        self.stages().iter().try_for_each(|stage| check_name(Named::Other("stage"), &stage.name))?;
        let abouts = self.parameters().iter().map(|parameter| (&parameter.name, &parameter.about));
        let abouts = abouts.chain(self.scalars().iter().map(|scalar| (&scalar.name, &scalar.about)));
        let is_hidden = |letter| is_hidden(letter) && letter != '\n';
        match abouts.into_iter().find(|(_, about)| about.chars().any(is_hidden)) {
            Some((name, _)) => Err(Error::invalid(
                format!("the meaning of {name}"),
                "it holds a control character",
                "write it in plain text",
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Centring, Definition, LinearStencil};

    #[test]
    fn names_reach_terminals_and_files_as_they_are() {
        for good in ["u", "heat", "gray-scott", "2d5pt", "Y[0]", "ρ", "a b", "..."] {
            assert_eq!(check_name(Named::Program, good), Ok(()), "{good}");
        }
        assert_eq!(check_name(Named::Other("parameter"), "dt / dx"), Ok(()));
        for bad in ["../etc/x", "a/b", "..", "a\\b", "\u{1b}[31mred", "a\nb", "\u{202e}x", "\u{7}"] {
            let error = check_name(Named::Field, bad).unwrap_err().to_string();
            assert!(error.contains("its name") && !error.contains('\u{1b}'), "{error}");
        }
        let named = |program: &str, field: &str, parameter: &str, about: &str| {
            let mut p = Definition::new(program, 1);
            p.field(field, Centring::CELL);
            p.parameter(parameter, 1.0, about);
            p.step().stage("stage", |s| s.set(field, s.field(field).here() * s.param(parameter)));
            p.build().map(drop)
        };
        assert_eq!(named("p", "u", "k", "rate"), Ok(()));
        assert!(named("p/q", "u", "k", "").is_err() && named("p", "../u", "k", "").is_err());
        assert!(named("p", "u", "\u{1b}[2J", "").is_err() && named("p", "u", "k", "\u{1b}[2J").is_err());
        let stencil = LinearStencil::new("\u{1b}[31mred", &[([-1], 0.5), ([1], 0.5)]).unwrap();
        assert!(Program::new(&stencil).is_err());
    }
}
