//! Both graphs in Graphviz's language.

use std::fmt::{self, Write};

use super::{Drawing, hex, tint};
use crate::fusion::graph::Holds;

impl Drawing<'_> {
    /// Returns both graphs in the language of Graphviz's `dot`, one beside the other.
    pub fn dot(&self) -> String {
        let mut text = String::new();
        // Writing to a string never fails.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let colours = self.colours();
        writeln!(text, "digraph {} {{", quoted(&self.graph.name))?;
        writeln!(text, "  label={};\n  labelloc=t;", quoted(self.title))?;
        writeln!(text, "  node [fontname=\"sans-serif\", fontsize=11];")?;
        let fill = |own: usize| hex(colours[own]);
        writeln!(text, "  subgraph cluster_order {{\n    label=\"order of execution\";")?;
        for (number, group) in self.groups.iter().enumerate() {
            writeln!(text, "    subgraph cluster_group_{number} {{\n      label=\"group {number}\";")?;
            for &own in group {
                let (label, fill) = (quoted(&self.graph.title(own)), fill(own));
                writeln!(text, "      o{own} [label={label}, style=filled, fillcolor=\"{fill}\"];")?;
            }
            writeln!(text, "    }}")?;
        }
        for edge in self.order.needed() {
            writeln!(text, "    o{} -> o{} [tooltip={}];", edge.from, edge.to, quoted(&self.causes(edge)))?;
        }
        writeln!(text, "  }}\n  subgraph cluster_data {{\n    label=\"data dependencies\";")?;
        for own in 0..self.graph.loops.len() {
            let (label, fill) = (quoted(&self.graph.title(own)), fill(own));
            writeln!(text, "    k{own} [label={label}, style=filled, fillcolor=\"{fill}\"];")?;
        }
        for (array, own) in self.graph.arrays.iter().enumerate() {
            let shape = if own.holds == Holds::Scalar { "note" } else { "diamond" };
            let fill = tint(self.graph.use_of(array));
            let label = quoted(&own.label());
            writeln!(
                text,
                "    d{array} [label={label}, shape={shape}, style=filled, fillcolor=\"{fill}\"];"
            )?;
        }
        for (own, node) in self.graph.loops.iter().enumerate() {
            for access in &node.accesses {
                if access.reads.is_some() {
                    writeln!(text, "    d{} -> k{own};", access.array)?;
                }
                if access.writes {
                    writeln!(text, "    k{own} -> d{};", access.array)?;
                }
            }
        }
        writeln!(text, "  }}\n}}")
    }
}

/// Returns a text as Graphviz quotes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
