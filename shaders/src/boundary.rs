//! The boundary kinds in kernels: the number of each, and functions for the cell that a ghost cell shows.

use abide_core::{Boundary, domain::KindText};

use crate::text::Text;

const WHAT: &str =
    "// The index of the cell that the ghost cell at i, below the first or above the last of n, shows.";

/// A choice of the expression that a generated function returns for a kind.
type GhostText = fn(&KindText) -> &'static str;

/// The generated functions that return the index of the cell that a ghost cell shows.
const FUNCTIONS: [(&str, GhostText); 2] = [("below", |text| text.below), ("above", |text| text.above)];

/// Writes the boundary kinds in C: the numbers, `below`, `above` and `shows_this_side`.
pub fn c(text: &mut Text) {
    let numbers: Vec<&str> = Boundary::TEXTS.iter().map(|text| text.constant).collect();
    text.push(format!("enum Boundary {{ {} }};", numbers.join(", ")));
    text.push(WHAT);
    for (name, shown) in FUNCTIONS {
        let case = |text: &KindText| format!("kind == {} ? Offset({}) : ", text.constant, shown(text));
        let cases: String = Boundary::TEXTS.iter().map(case).collect();
        text.push(format!(
            "__device__ constexpr Offset {name}(int kind, Offset i, Offset n) {{ return {cases}Offset(0); }}"
        ));
    }
    let near = Boundary::TEXTS.iter().filter(|text| text.shows_this_side);
    let near: String = near.map(|text| format!("kind == {} || ", text.constant)).collect();
    text.push(format!("__device__ constexpr bool shows_this_side(int kind) {{ return {near}false; }}"));
}

/// A property of a boundary.
type Holds = fn(Boundary) -> bool;

/// The generated functions that return whether a property of a kind holds.
const SIGNS: [(&str, Holds); 2] =
    [("is_negated", Boundary::is_negated), ("mirrors_a_value", Boundary::mirrors_a_value)];

/// Returns the condition that a property of a `kind` holds, in either language.
fn any(holds: Holds) -> String {
    let kinds = Boundary::each(0.0).into_iter().filter(|&kind| holds(kind));
    let kinds: String = kinds.map(|kind| format!("kind == {} || ", kind.constant())).collect();
    format!("{kinds}false")
}

/// Writes `is_negated` and `mirrors_a_value` in C: whether ghost cells of a kind show cells with the opposite sign, and
/// whether they mirror the outermost value.
pub fn c_signs(text: &mut Text) {
    for (name, holds) in SIGNS {
        text.push(format!("__device__ constexpr bool {name}(int kind) {{ return {}; }}", any(holds)));
    }
}

/// Writes the boundary kinds in WGSL: the numbers, `below` and `above`.
pub fn wgsl(text: &mut Text) {
    for (number, kind) in Boundary::TEXTS.iter().enumerate() {
        text.push(format!("const {}: i32 = {number};", kind.constant));
    }
    text.blank();
    text.push(WHAT);
    for (name, shown) in FUNCTIONS {
        let case = |text: &KindText| format!("if kind == {} {{ return {}; }}", text.constant, shown(text));
        text.push(format!("fn {name}(kind: i32, i: i32, n: i32) -> i32 {{"));
        text.extend(Boundary::TEXTS.iter().map(case));
        text.extend(["return 0;", "}"]);
    }
}

/// Writes what [`c_signs`] does, in WGSL.
pub fn wgsl_signs(text: &mut Text) {
    for (name, holds) in SIGNS {
        text.push(format!("fn {name}(kind: i32) -> bool {{"));
        text.push(format!("return {};", any(holds)));
        text.push("}");
    }
}
