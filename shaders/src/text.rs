//! The text of kernels: generated lines, which are indented by their braces, and files, which stay as they
//! are.

use std::fmt::Write as _;

/// Spaces per level of indentation.
const LEVEL: usize = 4;

/// The letters of a kernel's axes, in names of constants and of variables: the axis that is swept, then the
/// slower and the faster of the others. Where a kernel sweeps nothing, they are the padded axes.
pub(crate) const LETTERS: [[&str; 2]; 3] = [["S", "s"], ["Y", "y"], ["X", "x"]];

/// Lines of C or WGSL whose indentation follows from the braces that the lines before them leave open.
#[derive(Debug, Default)]
pub(crate) struct Text {
    text: String,
    depth: usize,
}

impl Text {
    /// Adds a line, or several with line breaks between them.
    pub fn push(&mut self, lines: impl AsRef<str>) {
        for line in lines.as_ref().lines().map(str::trim) {
            let code = line.split("//").next().unwrap_or_default();
            let ended = code.len() - code.trim_start_matches('}').len();
            self.indented(LEVEL * self.depth.saturating_sub(ended), line);
            let opened = self.depth + code.matches('{').count();
            self.depth = opened.saturating_sub(code.matches('}').count());
        }
    }

    /// Adds an empty line, unless it would be the first or the second of two.
    pub fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    /// Adds a file as it is, after an empty line.
    pub fn file(&mut self, file: &str) {
        debug_assert_eq!(self.depth, 0, "what stands before a file is closed");
        self.blank();
        self.text.push_str(file);
    }

    /// Adds a file after an empty line. Each line `//@name` of the file is replaced by the part of that name,
    /// indented as the line was.
    pub fn filled(&mut self, file: &str, parts: &[(&str, Text)]) {
        self.blank();
        for line in file.lines() {
            let indent = line.len() - line.trim_start().len();
            let name = line.trim().strip_prefix("//@");
            match name.and_then(|name| parts.iter().find(|(part, _)| *part == name)) {
                Some((_, part)) => part.text.lines().for_each(|line| self.indented(indent, line)),
                None => self.indented(0, line),
            }
        }
    }

    fn indented(&mut self, indent: usize, line: &str) {
        if line.is_empty() {
            return self.blank();
        }
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:indent$}{line}", "");
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl From<Text> for String {
    fn from(text: Text) -> String {
        text.text
    }
}

impl<S: AsRef<str>> Extend<S> for Text {
    fn extend<I: IntoIterator<Item = S>>(&mut self, lines: I) {
        lines.into_iter().for_each(|line| self.push(line));
    }
}

impl<S: AsRef<str>> FromIterator<S> for Text {
    fn from_iter<I: IntoIterator<Item = S>>(lines: I) -> Text {
        let mut text = Text::default();
        text.extend(lines);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_indent() {
        let mut inner = Text::default();
        inner.extend(["{ // {", "x = {1};", "}", ""]);
        let mut text = Text::default();
        text.extend(["if a {", "b;", "} else {", "if c { d; }"]);
        text.push(&inner);
        text.blank();
        text.push("};\n// }\n\ne;");
        let (first, then) = ("if a {\n    b;\n} else {\n    if c { d; }\n", "\n};\n// }\n\ne;\n");
        assert_eq!(text.as_ref(), format!("{first}    {{ // {{\n        x = {{1}};\n    }}\n{then}"));
    }

    #[test]
    fn parts_take_the_place_of_their_lines() {
        let part: Text = ["if a {", "b;", "}"].into_iter().collect();
        let mut text = Text::default();
        text.push("a;");
        text.filled("{\n    //@part\n    //@other\n}\n", &[("part", part)]);
        assert_eq!(text.as_ref(), "a;\n\n{\n    if a {\n        b;\n    }\n    //@other\n}\n");
    }
}
