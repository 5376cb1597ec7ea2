//! The boundary kinds in kernels: a number of each, and the cell that a ghost cell shows.

use std::fmt::Write as _;

use abide_core::{Boundary, domain::KindText};

/// Returns their text in C: the numbers, `below`, `above` and `shows_this_side`.
pub fn c() -> String {
    let function = |name: &str, shown: fn(&KindText) -> &'static str| {
        let cases = chain(|text| format!("kind == {} ? Offset({}) : ", text.constant, shown(text)));
        format!(
            "__device__ constexpr Offset {name}(int kind, Offset i, Offset n) {{ return {cases}Offset(0); }}\n"
        )
    };
    let numbers: Vec<&str> = Boundary::TEXTS.iter().map(|text| text.constant).collect();
    let near =
        chain(
            |text| {
                if text.shows_this_side { format!("kind == {} || ", text.constant) } else { String::new() }
            },
        );
    let mut all = format!("enum Boundary {{ {} }};\n", numbers.join(", "));
    all.push_str(
        "// The index of the cell that the ghost cell at i, below the first or above the last of n, shows.\n",
    );
    all.push_str(&function("below", |text| text.below));
    all.push_str(&function("above", |text| text.above));
    let _ = writeln!(all, "__device__ constexpr bool shows_this_side(int kind) {{ return {near}false; }}");
    all
}

/// Returns their text in WGSL: the numbers, `below` and `above`.
pub fn wgsl() -> String {
    let mut all = String::new();
    for (number, text) in Boundary::TEXTS.iter().enumerate() {
        let _ = writeln!(all, "const {}: i32 = {number};", text.constant);
    }
    all.push_str("\n// The index of the cell that the ghost cell at i, below the first or above the last of n, shows.\n");
    for (name, shown) in
        [("below", (|text| text.below) as fn(&KindText) -> &'static str), ("above", |text| text.above)]
    {
        let cases = chain(|text| format!("    if kind == {} {{ return {}; }}\n", text.constant, shown(text)));
        let _ = writeln!(all, "fn {name}(kind: i32, i: i32, n: i32) -> i32 {{\n{cases}    return 0;\n}}");
    }
    all
}

fn chain(case: impl Fn(&KindText) -> String) -> String {
    Boundary::TEXTS.iter().map(case).collect()
}
