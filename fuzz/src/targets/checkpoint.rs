//! Checkpoints: each one that can be read is written, and reads back to the same bits.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use abide::io::checkpoint::{Checkpoint, Head, read, read_from, write};
use abide::{Parameter, Problem, Program, Scope, Stencil};

use super::{ensure, refused};

pub const WORDS: &[&str] = &[
    "abide.json",
    "u.npy",
    "\"format\"",
    "abide-checkpoint",
    "\"version\"",
    "\"program\"",
    "\"size\"",
    "\"dtype\"",
    "\"f32\"",
    "\"f64\"",
    "\"boundaries\"",
    "\"fixed\"",
    "\"periodic\"",
    "\"mirror\"",
    "\"constant=1\"",
    "\"parameters\"",
    "\"steps\"",
    "\"fields\"",
    "\\u001b",
    "\\n",
    "18446744073709551615",
    "1e999",
    "[",
    "]",
    "{",
    "}",
    ",",
    "null",
    "../",
];

/// Reads a checkpoint.
pub fn run(input: &[u8]) -> Result<(), String> {
    let checkpoint = match read_from(Cursor::new(input), input.len() as u64, Path::new("a.npz")) {
        Ok(checkpoint) => checkpoint,
        Err(error) => return refused(&error),
    };
    let (head, fields) = (&checkpoint.head, &checkpoint.fields);
    ensure(fields.len() == head.fields.len(), || {
        format!("{} fields of {}", fields.len(), head.fields.len())
    })?;
    let fit = fields.iter().all(|field| field.len() == head.shape.cells() && field.dtype() == head.dtype);
    ensure(fit, || "a field does not fit the domain".to_owned())?;
    back(&checkpoint)
}

/// Writes a checkpoint of a problem with this head, where there can be one, and reads it again.
fn back(Checkpoint { head, fields }: &Checkpoint) -> Result<(), String> {
    let Ok(program) = Program::new(&Held(head)) else { return Ok(()) };
    let mut problem = Problem::unchecked(Arc::new(program), head.shape, head.dtype);
    problem.boundaries = head.boundaries;
    problem.parameters = head.parameters.iter().map(|(_, value)| *value).collect();
    let folder = tempfile::tempdir().map_err(|e| format!("the fuzzer's own folder: {e}"))?;
    let path = folder.path().join("b.npz");
    let written = write(&path, &problem, head.steps, |number| Ok(fields[number].clone()));
    written.and_then(|staged| staged.commit()).map_err(|e| format!("what was read is not written: {e}"))?;
    let again = read(&path).map_err(|e| format!("what was written: {e}"))?;
    let bytes = |field: &abide::Array| field.as_bytes().to_vec();
    let same = again.head == *head && again.fields.iter().map(bytes).eq(fields.iter().map(bytes));
    ensure(same, || "a checkpoint that was written comes back otherwise".to_owned())
}

/// A program with the fields and parameters of a checkpoint, which changes nothing.
struct Held<'a>(&'a Head);

impl Stencil for Held<'_> {
    fn name(&self) -> &str {
        &self.0.program
    }

    fn dimensions(&self) -> usize {
        self.0.shape.dimensions()
    }

    fn fields(&self) -> Vec<String> {
        self.0.fields.clone()
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.0.parameters.iter().map(|(name, value)| Parameter::new(name, *value, "")).collect()
    }

    fn define(&self, s: &Scope<'_>) {
        for field in &self.0.fields {
            s.set(field, s.field(field).here());
        }
    }
}
