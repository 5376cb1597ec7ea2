//! The records of the phases.

use crate::record::{record, wgsl_fields};
use crate::state::State;
use crate::text::Text;

record! {
    /// The values that the method remembers, behind [`State`].
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
            gamma "MINRES: the length of Lanczos' vector",
            gamma_before "that of the one before",
            eta "the norm of the residual that M^-1 has, with its sign",
            cosine "of the last rotation",
            sine "and its sine",
            above "what the rotation before left above the diagonal",
            beyond "and beyond that",
            inverse "of a length that is divided by",
            length_of_step "along the direction",
        }
    }
}

record! {
    /// The values that do not change in a solve.
    Task {
        words {
            rows "of the system",
            groups "workgroups of a phase over vectors",
            product_groups "and of one with a product",
            share "rows of a workgroup that sums, a power of two",
            product_share "and of one with a product",
            size "rows of a block of block-Jacobi",
            most "iterations",
            stagnation "iterations without progress; ~0 for any number",
            factors "pairs of Chebyshev iteration's factors",
            restart "iterations of GMRES's cycle",
        }
        numbers {
            limit "what the history holds, the square of a residual's norm or the norm, that is small enough",
            near "and of a true one, where the recurred one's is",
            weight "of Jacobi's method",
        }
    }
}

record! {
    /// The values that differ from phase to phase.
    Call {
        words {
            when "the phase runs while the run stands like this",
            unused "so that numbers stand where they may",
        }
        numbers {
            keep "the polynomial's factor of the old direction",
            add "and of the residual",
        }
    }
}

/// Writes the structs `State`, `Task` and `Call`.
pub(super) fn declarations(text: &mut Text) {
    let (state, own) = ((State::WORDS, State::NUMBERS), (OwnState::WORDS, OwnState::NUMBERS));
    let (task, call) = ((Task::WORDS, Task::NUMBERS), (Call::WORDS, Call::NUMBERS));
    for (name, parts) in [("State", &[state, own][..]), ("Task", &[task]), ("Call", &[call])] {
        text.push(format!("struct {name} {{"));
        for (words, numbers) in parts {
            wgsl_fields(text, words, "u32");
            wgsl_fields(text, numbers, "real");
        }
        text.push("}");
        text.blank();
    }
}
