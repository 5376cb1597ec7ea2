//! Fields in one buffer each, or in several where a device binds no buffer that holds a whole field.

use super::Binding;
use crate::text::Text;

/// The buffers in which stepwise kernels find the cells of fields.
pub(super) struct Pieces {
    /// Cells of a field.
    pub cells: usize,
    /// Cells of a field that one buffer holds.
    pub piece: usize,
}

impl Pieces {
    /// Returns the number of buffers of a field.
    pub fn count(&self) -> usize {
        self.cells.div_ceil(self.piece.max(1)).max(1)
    }

    /// Returns the bindings of a field's buffers; `binding` returns that of one buffer.
    pub fn bindings(&self, binding: impl Fn(usize) -> Binding) -> impl Iterator<Item = Binding> {
        (0..self.count()).map(binding)
    }

    /// Returns the expression for a field's old value at an index.
    pub fn load(&self, field: usize, at: &str) -> String {
        if self.count() == 1 { format!("old_{field}[{at}]") } else { format!("load_{field}({at})") }
    }

    /// Returns the statement that stores a field's new value at an index.
    pub fn store(&self, field: usize, at: &str, value: &str) -> String {
        if self.count() == 1 {
            format!("new_{field}[{at}] = {value};")
        } else {
            format!("store_{field}({at}, {value});")
        }
    }

    /// Writes the functions that `load` and `store` call, for the fields of these bindings. Each function
    /// looks for the buffer that holds a cell.
    pub fn functions(&self, text: &mut Text, bindings: &[Binding]) {
        if self.count() == 1 {
            return;
        }
        for &binding in bindings {
            match binding {
                Binding::Old(field, 0) => {
                    text.push(format!("fn load_{field}(at: i32) -> real {{"));
                    text.push(self.each(|piece, at| format!("return {}[{at}];", old(field, piece))));
                    text.push("}");
                    text.blank();
                }
                Binding::New(field, 0) => {
                    text.push(format!("fn store_{field}(at: i32, value: real) {{"));
                    text.push(self.each(|piece, at| format!("{}[{at}] = value;", new(field, piece))));
                    text.push("}");
                    text.blank();
                }
                _ => {}
            }
        }
    }

    /// Returns text that runs `statement` for the piece that holds the cell. The arguments of `statement` are
    /// the piece and the index in that piece.
    fn each(&self, statement: impl Fn(usize, &str) -> String) -> String {
        let one = |piece: usize| {
            let index = if piece == 0 { "at".to_owned() } else { format!("at - {}", piece * self.piece) };
            let body = statement(piece, &index);
            let below = (piece + 1) * self.piece;
            if piece + 1 == self.count() {
                format!("{{ {body} }}")
            } else {
                format!("if at < {below} {{ {body} }}")
            }
        };
        let all: Vec<String> = (0..self.count()).map(one).collect();
        all.join("\nelse ")
    }
}

/// Returns the name of a buffer of old values.
pub(super) fn old(field: usize, piece: usize) -> String {
    format!("old_{field}{}", further(piece))
}

/// Returns the name of a buffer of new values.
pub(super) fn new(field: usize, piece: usize) -> String {
    format!("new_{field}{}", further(piece))
}

fn further(piece: usize) -> String {
    if piece == 0 { String::new() } else { format!("_{piece}") }
}
