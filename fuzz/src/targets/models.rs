//! Model files: a text that is read has the same meaning when it is written and read again, and the same bits in a small
//! run.

use std::sync::Arc;

use abide::program::Start;
use abide::{Array, DType, Problem, Program, Shape, text};
use abide_cpu::reference;

use super::{ensure, refused};

pub const WORDS: &[&str] = &[
    "name = \"m\"\n",
    "base = \"wave\"\n",
    "axes = 2\n",
    "boundary = \"periodic\"\n",
    "boundary = \"x-=mirror,x+=constant=k\"\n",
    "until = \"time >= 1\"\n",
    "[fields]\n",
    "u = 1\n",
    "{ on = \"x-faces\" }",
    "components = 3",
    "\"random:1\"",
    "seeds = 1",
    "[temporaries]\n",
    "[parameters]\n",
    "k = 0.1\n",
    "formula = \"k*k\"",
    "parts = { a = \"k\" }",
    "\"given\"",
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
    ensure(again == written, || format!("written and read again, it is\n{again}, not\n{written}"))?;
    ensure(text::formulas(&model.program) == text::formulas(&read.program), || {
        format!("written and read again, it has other formulas:\n{written}")
    })?;
    same_bits(model.program, read.program).map_err(|fault| format!("{fault}:\n{written}"))
}

/// The most values of all fields of a program that is run, and the most terms at all cells.
const MOST: [usize; 2] = [1 << 14, 1 << 18];

/// Steps of a small run.
const STEPS: u64 = 2;

/// Runs two programs for some steps, with their own parameters and with others, and holds their bits against each other.
/// Programs that no small domain holds are not run.
fn same_bits(one: Program, other: Program) -> Result<(), String> {
    let terms = one.stages().iter().map(|stage| stage.dag.nodes.len()).sum::<usize>();
    let programs = [Arc::new(one), Arc::new(other)];
    let axes = programs[0].dimensions();
    for extents in [[3, 5, 7], [9, 9, 9]] {
        let Ok(shape) = Shape::new(&extents[..axes]) else { continue };
        let cells = shape.cells();
        if programs[0].fields().len() * cells > MOST[0] || terms * cells > MOST[1] {
            continue;
        }
        let problem = |program: &Arc<Program>| Problem::new(program.clone(), shape, DType::F64);
        let (mut one, mut other) = match (problem(&programs[0]), problem(&programs[1])) {
            (Ok(one), Ok(other)) => (one, other),
            (Err(one), Err(other)) if one == other => continue,
            (one, other) => return Err(format!("on {shape} it is {:?} and {:?}", one.err(), other.err())),
        };
        for turn in 0..2 {
            let (left, right) = (left_by(&one)?, left_by(&other)?);
            ensure(left == right, || {
                format!("on {shape} it has other bits, of parameters {:?}", one.parameters)
            })?;
            for problem in [&mut one, &mut other] {
                problem
                    .parameters
                    .iter_mut()
                    .for_each(|value| *value = 0.75 * *value + 0.1 + f64::from(turn));
                problem.derive();
            }
        }
        return Ok(());
    }
    Ok(())
}

/// Returns the bits of all fields and scalars after a small run.
fn left_by(problem: &Problem) -> Result<Vec<u64>, String> {
    let start = |field: usize| -> abide::Result<Array> {
        let start = match problem.program.start(field) {
            Start::Given => Start::Random { seed: 1, low: -1.0, high: 1.0 },
            start => start.clone(),
        };
        start.fill(&problem.shape_of(field)?, problem.dtype)
    };
    let fields: abide::Result<Vec<Array>> = (0..problem.program.fields().len()).map(start).collect();
    let ran = fields.and_then(|mut fields| {
        let scalars = reference::run_program(problem, &mut fields, STEPS, |_, _, _| {})?;
        Ok(fields.iter().flat_map(Array::to_f64).chain(scalars).collect::<Vec<f64>>())
    });
    // A NaN has no sign that counts.
    let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    match ran {
        Ok(values) => Ok(values.into_iter().map(bits).collect()),
        Err(error) => refused(&error).map(|()| Vec::new()),
    }
}
