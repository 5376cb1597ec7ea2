//! Checkpoints: each one that can be read is written, and reads back to the same bits.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use abide::io::checkpoint::{Checkpoint, Formulas, Head, read, read_from, write};
use abide::program::{Centring, Definition};
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
    "\"scalars\"",
    "\"boundaries_of_fields\"",
    "\"members\"",
    "\"formulas\"",
    "sha256-1:",
    "abide.formulas.txt",
    "\"NaN\"",
    "NaN:fff8000000000000",
    "abide.parameters.npy",
    "abide.scalars.npy",
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
    let Checkpoint { head, fields, shapes } = &checkpoint;
    ensure(fields.len() == head.fields.len(), || {
        format!("{} fields of {}", fields.len(), head.fields.len())
    })?;
    let fit = fields.iter().zip(shapes).all(|(field, shape)| {
        field.len() == shape.cells() * head.members().unwrap_or(1)
            && field.dtype() == head.dtype
            && shape.dimensions() == head.shape.dimensions()
    });
    ensure(fit, || "a field does not fit the domain".to_owned())?;
    back(&checkpoint)
}

/// Writes a checkpoint of a problem with this head, where there can be one, and reads it again.
fn back(checkpoint: &Checkpoint) -> Result<(), String> {
    let Checkpoint { head, fields, shapes } = checkpoint;
    let is_plain = head.scalars.is_empty() && shapes.iter().all(|shape| *shape == head.shape);
    let program = if is_plain { Program::new(&Held(head)) } else { staggered(checkpoint) };
    let Ok(program) = program else { return Ok(()) };
    let mut problem = Problem::unchecked(Arc::new(program), head.shape, head.dtype);
    problem.boundaries = head.boundaries;
    problem.scalars = head.scalars.iter().map(|(_, value)| *value).collect();
    if !head.sides.is_empty() {
        problem.sides = head.sides.clone();
    }
    // The shapes of fields follow from the boundaries, which the head may have otherwise.
    if (0..fields.len()).any(|field| problem.shape_of(field).ok() != Some(shapes[field])) {
        return Ok(());
    }
    problem.parameters = head.parameters.iter().map(|(_, value)| *value).collect();
    problem.batch = head.batch.clone();
    let folder = tempfile::tempdir().map_err(|e| format!("the fuzzer's own folder: {e}"))?;
    let path = folder.path().join("b.npz");
    let written = write(&path, &problem, head.steps, |number| Ok(fields[number].clone()));
    written.and_then(|staged| staged.commit()).map_err(|e| format!("what was read is not written: {e}"))?;
    let again = read(&path).map_err(|e| format!("what was written: {e}"))?;
    let bytes = |field: &abide::Array| field.as_bytes().to_vec();
    // JSON has other texts for one number, and NaN differs from itself.
    let bits = |head: &Head| {
        let of_members = head.batch.iter().flat_map(|member| member.parameters.iter().chain(&member.scalars));
        let all = head.scalars.iter().map(|(_, value)| value).chain(of_members);
        all.map(|value| value.to_bits()).collect::<Vec<_>>()
    };
    // The program that holds its fields has formulas of its own.
    let without = |head: &Head| Head {
        scalars: Vec::new(),
        batch: Vec::new(),
        formulas: Formulas::Unknown,
        ..head.clone()
    };
    let same = without(&again.head) == without(head)
        && again.head.members() == head.members()
        && bits(&again.head) == bits(head)
        && again.fields.iter().map(bytes).eq(fields.iter().map(bytes));
    ensure(same, || "a checkpoint that was written comes back otherwise".to_owned())
}

/// Returns a program with the fields, parameters and scalars of a checkpoint, which changes nothing.
fn staggered(Checkpoint { head, shapes, .. }: &Checkpoint) -> abide::Result<Program> {
    let axes = head.shape.dimensions();
    let mut p = Definition::new(&head.program, axes);
    for (name, shape) in head.fields.iter().zip(shapes) {
        let on_nodes: Vec<bool> =
            shape.extents().iter().zip(head.shape.extents()).map(|(own, cells)| own != cells).collect();
        let count = on_nodes.iter().filter(|on| **on).count();
        let only = |on: bool| on_nodes.iter().position(|own| *own == on).unwrap_or(0);
        p.field(
            name,
            match count {
                0 => Centring::CELL,
                1 => Centring::face(axes, only(true)),
                _ if count == axes => Centring::NODE,
                _ => Centring::edge(axes, only(false)),
            },
        );
    }
    for (name, value) in &head.parameters {
        p.parameter(name, *value, "");
    }
    for (name, value) in &head.scalars {
        p.scalar(name, Some(*value), "");
    }
    let mut step = p.step();
    for name in &head.fields {
        step.stage("keep", |s| s.set(name, s.field(name).here()));
    }
    p.build()
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
