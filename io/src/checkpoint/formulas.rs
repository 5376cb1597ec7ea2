//! The formulas of the program that a checkpoint's fields belong to.

use std::fmt::Write;

use abide_core::Program;
use abide_text as text;
use sha2::{Digest, Sha256};

/// The most bytes of the formulas' text that a checkpoint holds. The digest is of all of it.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// The digest's function, and the version of the text that it is of.
const SCHEME: &str = "sha256-1:";

/// The most letters of a formula in a message.
const SHOWN: usize = 160;

/// What a checkpoint says of the formulas of its program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Formulas {
    /// Nothing: it was written before checkpoints had a digest, or by a version that has another one.
    #[default]
    Unknown,
    /// Their digest.
    Known {
        /// The digest of [`text::formulas`], with the name of its function.
        digest: String,
        /// That text, or its beginning where it is longer than a checkpoint holds.
        text: String,
    },
}

impl Formulas {
    /// Returns what a checkpoint of a program says.
    pub fn of(program: &Program) -> Formulas {
        let mut text = text::formulas(program);
        let digest = digest(&text);
        let most = (0..=MOST_BYTES.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
        text.truncate(most.unwrap_or(0));
        Formulas::Known { digest, text }
    }

    /// Makes what a checkpoint says from what is stored.
    pub(super) fn read(digest: Option<String>, text: String) -> Formulas {
        match digest.filter(|digest| digest.starts_with(SCHEME)) {
            Some(digest) => Formulas::Known { digest, text },
            None => Formulas::Unknown,
        }
    }

    /// Returns in words in what the formulas differ from a program's; `None` where they are the same, or unknown.
    pub fn differs(&self, program: &Program) -> Option<String> {
        let Formulas::Known { digest: stored, text } = self else { return None };
        let own = text::formulas(program);
        if digest(&own) == *stored {
            return None;
        }
        let (mut stored, mut given) = (text.lines(), own.lines());
        let is_cut = !text.ends_with('\n');
        loop {
            return Some(match (stored.next(), given.next()) {
                (Some(stored), Some(given)) if stored == given => continue,
                (Some(stored), Some(given)) if is_cut && given.starts_with(stored) => continue,
                (Some(stored), Some(given)) => {
                    let same = common(stored, given);
                    format!("the checkpoint has `{}`, given is `{}`", shown(stored, same), shown(given, same))
                }
                (Some(stored), None) => {
                    format!("the checkpoint has `{}`, and the program has not", shown(stored, 0))
                }
                (None, Some(given)) if !is_cut => format!("the checkpoint has no `{}`", shown(given, 0)),
                (None, _) => "its formulas differ beyond what the checkpoint holds of them".to_owned(),
            });
        }
    }
}

/// Returns the bytes that both lines begin with.
fn common(a: &str, b: &str) -> usize {
    let letters = a.char_indices().zip(b.chars()).take_while(|((_, a), b)| a == b);
    letters.last().map_or(0, |((at, letter), _)| at + letter.len_utf8())
}

/// Returns a line as a message shows it: whole if it is short, else what stands around the place where it differs.
fn shown(line: &str, differs: usize) -> String {
    let before = line[..differs].char_indices().rev().nth(SHOWN / 2).map_or(0, |(at, _)| at);
    // A file from others may hold what a terminal would obey.
    let letters = line[before..].chars().filter(|letter| !letter.is_control());
    let mut part: String = letters.take(SHOWN).collect();
    if before > 0 {
        let label = line.split(": ").next().filter(|label| label.len() < before.min(40));
        part.insert_str(0, &label.map_or("…".to_owned(), |label| format!("{label}: …")));
    }
    if before + part.len() < line.len() {
        part.push('…');
    }
    part
}

fn digest(text: &str) -> String {
    let mut words = SCHEME.to_owned();
    for byte in Sha256::digest(text.as_bytes()) {
        write!(words, "{byte:02x}").ok();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(formula: &str) -> Program {
        let model = format!("axes = 1\n[fields]\nu = 1\n[parameters]\nk = 2\n[[stages]]\nu = '{formula}'\n");
        text::read(&model, "m").unwrap().program
    }

    #[test]
    fn what_differs_is_said() {
        let stored = Formulas::of(&program("u + k*u[-1]"));
        assert_eq!(stored.differs(&program("u + k*u[-1]")), None);
        let words = stored.differs(&program("u + k*u[1]")).unwrap();
        assert!(words.contains("u = u + k*u[-1]") && words.contains("u = u + k*u[1]"), "{words}");
        assert_eq!(Formulas::Unknown.differs(&program("u")), None);
        assert_eq!(Formulas::read(Some("other-7:00".to_owned()), String::new()), Formulas::Unknown);
    }

    /// Long formulas are shown where they differ, and what is not stored counts too.
    #[test]
    fn long_formulas_are_shown_in_part() {
        let long = |last: &str| {
            let terms: Vec<String> = (0..200).map(|i| format!("{i}.5*u[{}]", i % 9)).collect();
            program(&format!("{} + {last}", terms.join(" + ")))
        };
        let stored = Formulas::of(&long("u[-3]"));
        let words = stored.differs(&long("u[-2]")).unwrap();
        assert!(words.len() < 600 && words.contains("u[-3]") && words.contains("u[-2]"), "{words}");
        let Formulas::Known { digest, mut text } = stored else { panic!() };
        text.truncate(text.len() / 2);
        let cut = Formulas::Known { digest, text };
        assert_eq!(cut.differs(&long("u[-3]")), None);
        let words = cut.differs(&long("u[-2]")).unwrap();
        assert!(words.contains("beyond what the checkpoint holds") || words.contains("given is"), "{words}");
    }
}
