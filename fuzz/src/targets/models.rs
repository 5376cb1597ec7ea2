//! Model files: a text that is read has the same meaning when it is written and read again.

use abide::text;

use super::{ensure, refused};

pub const WORDS: &[&str] = &[
    "name = \"m\"\n",
    "base = \"wave\"\n",
    "axes = 2\n",
    "boundary = \"periodic\"\n",
    "[fields]\n",
    "u = 1\n",
    "{ on = \"x-faces\" }",
    "components = 3",
    "\"random:1\"",
    "seeds = 1",
    "[temporaries]\n",
    "[parameters]\n",
    "k = 0.1\n",
    "vary = \"time\"",
    "[scalars]\n",
    "extent = \"x\"",
    "[[stages]]\n",
    "[[steps]]\n",
    "[[steps.stages]]\n",
    "u = \"u + k*u[-1,0]\"\n",
    "where = \"u > 0\"\n",
    "over = \"nodes\"\n",
    "points = [[1, 2]]\n",
    "sum(",
    " for i in range(3))",
    "fold(",
    " with s = 0",
    "range(i + 1, 9)",
    "len(u)",
    "u[i]",
    "[tables]\n",
    "w = [1, 2]\n",
    "where(",
    "fma(",
    "coord(x)",
    "laplacian(u)",
    "**2",
    "<=",
    "[run]\n",
    "steps = 3\n",
];

/// Formulas make some nodes for each sign, an entry of the catalogue brings its own, and a loop as many as its turns have,
/// up to the limit.
pub fn memory(input: &[u8]) -> usize {
    let has_loops = input.windows(3).any(|word| word == b"for");
    (8 << 20) + 4096 * input.len() + if has_loops { 48 << 20 } else { 0 }
}

pub fn run(input: &[u8]) -> Result<(), String> {
    let Ok(input) = std::str::from_utf8(input) else { return Ok(()) };
    let model = match text::read(input, "model.toml") {
        Ok(model) => model,
        Err(error) => return refused(&error),
    };
    // Names that TOML has and formulas have not are refused.
    let written = match text::write(&model.program) {
        Ok(written) => written,
        Err(error) => return refused(&error),
    };
    let read = text::read(&written, "model.toml").map_err(|error| format!("{error} in\n{written}"))?;
    let again = text::write(&read.program).map_err(|error| error.to_string())?;
    ensure(again == written, || format!("written and read again, it is\n{again}, not\n{written}"))
}
