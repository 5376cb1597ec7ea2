//! Advice of the library, which names options of the command, as Python says it.

/// What stands for an option of the command in Python.
struct Named {
    name: &'static str,
    /// The argument in Python; `None` where Python has none.
    argument: Argument,
}

enum Argument {
    /// An argument that takes one of these words: they get quotes.
    Word(&'static str, &'static [(&'static str, &'static str)]),
    /// An argument that takes a number.
    Number(&'static str),
    /// An argument that takes a list of numbers.
    List(&'static str),
    /// An argument whose value is never named in advice.
    Plain(&'static str),
}

macro_rules! words {
    ($($word:literal)*) => { &[$(($word, $word)),*] };
}

/// The options that advice names. Others are the command's alone, and are called so.
const OPTIONS: &[Named] = &[
    word("backend", "backend", words!["auto" "cuda" "wgpu" "cpu"]),
    word("cache", "cache", words!["auto" "none" "shared" "registers" "mixed"]),
    number("depth", "depth"),
    word("device", "device", words!["v100" "a100" "h100" "h200"]),
    Named { name: "device-list", argument: Argument::List("devices") },
    number("devices", "devices"),
    word("dtype", "dtype", &[("f32", "float32"), ("f64", "float64")]),
    number("every", "every"),
    word("exchange", "exchange", words!["auto" "stores" "copies" "network" "messages"]),
    word("execution", "execution", words!["auto" "stepwise" "overlapped" "streaming" "persistent"]),
    word("fuse", "fuse", words!["auto" "off" "greedy" "search"]),
    plain("pin", "pin"),
    number("record", "record"),
    plain("size", "shape"),
    number("steps", "steps"),
    word("tune", "tune", words!["kept" "off" "quick" "full"]),
    plain("until", "until"),
];

/// Sentences that name the command itself.
const PHRASES: &[(&str, &str)] = &[
    ("(--devices, --device-list or ", "(devices= or "),
    ("`abide run --checkpoint`", "`sim.checkpoint`"),
    ("name it .png, or give --every", "name it .png, or take sim.movie"),
    ("use --frames with .png", "take the pictures of sim.frames"),
    ("(assume-symmetric)", "(assume_symmetric=True)"),
    ("(nullspace constant)", "(nullspace=\"constant\")"),
    ("null space `constant`", "nullspace=\"constant\""),
    ("(gmres:", "(restart="),
];

const fn word(
    name: &'static str,
    argument: &'static str,
    words: &'static [(&'static str, &'static str)],
) -> Named {
    Named { name, argument: Argument::Word(argument, words) }
}

const fn number(name: &'static str, argument: &'static str) -> Named {
    Named { name, argument: Argument::Number(argument) }
}

const fn plain(name: &'static str, argument: &'static str) -> Named {
    Named { name, argument: Argument::Plain(argument) }
}

/// Returns a sentence whose options of the command are the arguments of Python: `use --depth 1` is `use depth=1`.
pub fn in_python(text: &str) -> String {
    let mut left = text.to_owned();
    for (from, to) in PHRASES {
        left = left.replace(from, to);
    }
    let mut translated = String::new();
    let mut rest = left.as_str();
    while let Some(at) = rest.find("--") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        translated.push_str(before);
        let name = leading(after, |letter| letter.is_ascii_lowercase() || letter == '-');
        let begins = before
            .chars()
            .next_back()
            .is_none_or(|letter| letter.is_whitespace() || "(`'\"".contains(letter));
        rest = &after[name.len()..];
        if !begins || !name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            translated.push_str("--");
            translated.push_str(name);
            continue;
        }
        match OPTIONS.iter().find(|option| option.name == name) {
            Some(option) => rest = argument(&mut translated, &option.argument, rest),
            None => {
                translated.push_str("the command's --");
                translated.push_str(name);
            }
        }
    }
    translated.push_str(rest);
    translated
}

/// Writes an argument with the value that follows, and returns what is behind that.
fn argument<'t>(translated: &mut String, argument: &Argument, rest: &'t str) -> &'t str {
    let (name, value) = match argument {
        Argument::Plain(name) => (name, None),
        Argument::Word(name, words) => (
            name,
            spaced(rest, |letter| letter.is_ascii_alphanumeric()).and_then(|(word, rest)| {
                words.iter().find(|(own, _)| *own == word).map(|(_, python)| (format!("\"{python}\""), rest))
            }),
        ),
        Argument::Number(name) => (
            name,
            spaced(rest, |letter| letter.is_ascii_alphanumeric()).and_then(|(word, rest)| {
                let is_number = word.bytes().all(|digit| digit.is_ascii_digit());
                match word {
                    "auto" | "all" => Some((format!("\"{word}\""), rest)),
                    _ if is_number || word == "N" => Some((word.to_owned(), rest)),
                    _ => None,
                }
            }),
        ),
        Argument::List(name) => (
            name,
            spaced(rest, |letter| letter.is_ascii_digit() || letter == ',')
                .map(|(list, rest)| (format!("[{}]", list.trim_end_matches(',').replace(',', ", ")), rest)),
        ),
    };
    translated.push_str(name);
    let Some((value, rest)) = value else { return rest };
    translated.push('=');
    translated.push_str(&value);
    others(translated, argument, rest)
}

/// Writes the other words of `a, b or c`, as far as they are values of the argument.
fn others<'t>(translated: &mut String, argument: &Argument, mut rest: &'t str) -> &'t str {
    let Argument::Word(_, words) = argument else { return rest };
    while let Some((joint, after)) =
        [", ", " or "].iter().find_map(|joint| Some((*joint, rest.strip_prefix(joint)?)))
    {
        let next = leading(after, |letter| letter.is_ascii_alphanumeric());
        let Some((_, python)) = words.iter().find(|(own, _)| *own == next) else { return rest };
        translated.push_str(&format!("{joint}\"{python}\""));
        rest = &after[next.len()..];
    }
    rest
}

/// Returns the word behind a space, and what follows it.
fn spaced(text: &str, is_part: impl Fn(char) -> bool) -> Option<(&str, &str)> {
    let text = text.strip_prefix(' ')?;
    let word = leading(text, is_part);
    (!word.is_empty()).then(|| (word, &text[word.len()..]))
}

fn leading(text: &str, is_part: impl Fn(char) -> bool) -> &str {
    let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    &text[..end]
}
