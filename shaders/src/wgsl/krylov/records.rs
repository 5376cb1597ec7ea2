//! The records of the phases.

use crate::record::{record, wgsl_fields};
use crate::state::State;

record! {
    /// What the method remembers, behind [`State`].
    OwnState {
        words {
            flag "what the method remembers",
            outcome "how the run would stand but for the cycle's end",
        }
        numbers {
            rho "(r, M^-1 r), or what stands for it; the norm that a cycle began with",
            delta "(u, A u); a square that waits for its test",
            alpha "the step's factor",
            beta "the old direction's factor; the next basis vector's norm",
            omega "the second step's factor; a square that waits for its test",
        }
    }
}

/// Writes the structs.
pub(super) fn declarations(text: &mut String) {
    text.push_str("struct State {\n");
    for (words, numbers) in [(State::WORDS, State::NUMBERS), (OwnState::WORDS, OwnState::NUMBERS)] {
        wgsl_fields(text, words, "u32");
        wgsl_fields(text, numbers, "real");
    }
    text.push_str("}\n\n");
}
