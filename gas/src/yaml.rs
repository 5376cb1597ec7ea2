//! YAML from others: its events are counted before anything is built of them.
//!
//! An alias stands for all of what it names, so that a few hundred bytes can stand for more nodes than any memory has; and
//! the library reads nodes within nodes on the stack.

use std::collections::HashMap;

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::{Yaml, YamlLoader};

/// The most nodes within nodes.
const DEEPEST: usize = 64;

/// The most nodes of a file, those that its aliases stand for included.
const MOST_NODES: usize = 1 << 20;

/// The most bytes of the texts of all nodes, those that its aliases stand for included.
const MOST_BYTES: usize = 32 << 20;

/// The bytes that a node takes beside its text, in a map of few entries.
const NODE: usize = 256;

/// The most letters of a fault of the library's, which may show what the file holds.
const LONGEST_FAULT: usize = 300;

/// Reads the one document of a text; `None` where there is none. The error says in one line what is wrong.
pub(crate) fn read(text: &str) -> Result<Option<Yaml>, String> {
    let size = measured(text)?;
    // The library takes what it needs, and ends the process where it is refused.
    let bytes = size.nodes * NODE + size.bytes;
    let what = format!("the {} nodes of the file", size.nodes);
    abide_core::memory::reserved::<u8>(bytes, &what, "give a smaller one")
        .map_err(|error| error.to_string())?;
    let mut documents = YamlLoader::load_from_str(text).map_err(|error| shortened(&error.to_string()))?;
    if documents.len() > 1 {
        return Err(format!("it has {} documents, where one is due", documents.len()));
    }
    Ok(documents.pop())
}

/// What nodes come to.
#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    bytes: usize,
}

impl Size {
    fn add(&mut self, other: Size) {
        self.nodes = self.nodes.saturating_add(other.nodes);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    fn since(self, before: Size) -> Size {
        Size { nodes: self.nodes - before.nodes, bytes: self.bytes - before.bytes }
    }
}

/// Returns what building a text's nodes comes to, with a copy of each that has an anchor.
fn measured(text: &str) -> Result<Size, String> {
    let mut parser = Parser::new_from_str(text);
    let (mut all, mut copies) = (Size::default(), Size::default());
    let mut anchored: HashMap<usize, Size> = HashMap::new();
    // The nodes that are open: their anchors, and what there was before them.
    let mut open: Vec<(usize, Size)> = Vec::new();
    loop {
        let (event, mark) = parser.next_token().map_err(|error| {
            // The scanner reads further than the nodes, and has a limit of its own.
            let is_deep = error.info().contains("recursion limit");
            let deep =
                || format!("line {}: {}", error.marker().line(), beyond("nodes within nodes", DEEPEST));
            if is_deep { deep() } else { shortened(&error.to_string()) }
        })?;
        let (anchor, before) = match event {
            Event::StreamEnd => break,
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                open.push((anchor, all));
                all.add(Size { nodes: 1, bytes: 0 });
                (0, all)
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().unwrap_or_default(),
            Event::Scalar(text, _, anchor, _) => {
                let before = all;
                all.add(Size { nodes: 1, bytes: text.len() });
                (anchor, before)
            }
            Event::Alias(anchor) => {
                all.add(anchored.get(&anchor).copied().unwrap_or(Size { nodes: 1, bytes: 0 }));
                (0, all)
            }
            _ => (0, all),
        };
        if anchor > 0 {
            anchored.insert(anchor, all.since(before));
            copies.add(all.since(before));
        }
        let fault = |what: &str, limit: usize| Err(format!("line {}: {}", mark.line(), beyond(what, limit)));
        if open.len() > DEEPEST {
            return fault("nodes within nodes", DEEPEST);
        }
        if all.nodes.saturating_add(copies.nodes) > MOST_NODES {
            return fault("nodes, with those that aliases stand for", MOST_NODES);
        }
        if all.bytes.saturating_add(copies.bytes) > MOST_BYTES {
            return fault("bytes in its nodes, with those that aliases stand for", MOST_BYTES);
        }
    }
    all.add(copies);
    Ok(all)
}

fn beyond(what: &str, limit: usize) -> String {
    format!("it has more than {limit} {what}, the limit")
}

/// Returns the start of a fault's words, on one line.
fn shortened(words: &str) -> String {
    let mut letters = words.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let start: String = letters.by_ref().take(LONGEST_FAULT).collect();
    if letters.next().is_some() { start + "…" } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        read(text).unwrap_err()
    }

    #[test]
    fn aliases_stand_for_what_they_name() {
        let read = read("a: &a [1, 2]\nb: [*a, *a]\n").unwrap().unwrap();
        assert_eq!(read["b"][1][0].as_i64(), Some(1));
        let size = measured("a: &a [1, 2]\nb: [*a, *a]\n").unwrap();
        // The map, two keys, the list of three nodes and its copy, the list of two of them.
        assert_eq!(size.nodes, 1 + 2 + 3 + 3 + (1 + 2 * 3));
    }

    #[test]
    fn expansion_is_limited() {
        let levels = (1..27).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1)).collect::<String>();
        let words = fault(&format!("a0: &a0 [x, x]\n{levels}"));
        assert!(words.contains("more than 1048576 nodes, with those that aliases stand for"), "{words}");
        let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(40));
        assert!(fault(&long).contains("more than 33554432 bytes in its nodes"));
        let endless = format!("a: &a [{}]\n", "1,".repeat(MOST_NODES));
        assert!(fault(&endless).contains("nodes"));
    }

    #[test]
    fn depth_is_limited() {
        for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "1"), ("? ", ""), ("&a [", "]"), ("! [", "]")]
        {
            let deep = |levels: usize| open.repeat(levels) + &close.repeat(levels.min(1 << 10));
            let words = fault(&deep(20_000));
            assert!(words.contains("more than 64 nodes within nodes"), "{open}: {words}");
        }
        assert!(read(&("[".repeat(64) + &"]".repeat(64))).is_ok());
    }

    #[test]
    fn faults_are_short_lines() {
        let words = fault(&format!("{{? [{}] : 1, ? [{0}] : 1}}", "a\\u1b".repeat(1000)));
        assert!(words.chars().count() < 400 && !words.contains(char::is_control), "{words}");
        assert!(fault("a: 1\n---\nb: 2\n").contains("2 documents"));
        assert!(read("").unwrap().is_none());
    }
}
