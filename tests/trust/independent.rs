//! Linear stencils against programs that know nothing of Abide: one in C, and one that pads its arrays by
//! hand.
//!
//! The stencils' weights come from a table that was copied from the published codes, not from the catalogue.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use abide::{Array, Boundaries, Boundary, DType, Error, Options, Problem, Real, Result, Shape};
use serde_json::Value;

use crate::trust::subject::{Subject, entry, fields, problem, skip};

const TABLE: &str = include_str!("../independent/stencils.json");
const PROGRAM: &str = include_str!("../independent/linear.c");

/// A stencil of the table; offsets padded to three axes.
struct Stencil {
    name: String,
    axes: usize,
    taps: Vec<([i64; 3], f64)>,
}

fn table() -> Vec<Stencil> {
    let table: Value = serde_json::from_str(TABLE).expect("the table is JSON");
    let stencils = table.as_object().expect("the table maps names to stencils").iter();
    let stencil = |(name, value): (&String, &Value)| {
        let axes = value["dimensions"].as_u64().expect("dimensions") as usize;
        let tap = |tap: &Value| {
            let mut offset = [0; 3];
            for (axis, o) in tap[0].as_array().expect("an offset").iter().enumerate() {
                offset[3 - axes + axis] = o.as_i64().expect("an offset");
            }
            (offset, tap[1].as_f64().expect("a weight"))
        };
        let taps: Vec<_> = value["taps"].as_array().expect("taps").iter().map(tap).collect();
        assert_eq!(taps.len() as u64, value["points"].as_u64().expect("points"), "{name}");
        Stencil { name: name.clone(), axes, taps }
    };
    let all: Vec<Stencil> = stencils.map(stencil).collect();
    assert_eq!(all.len(), 14);
    all
}

/// Returns the C program, compiled once; `None` where there is no C compiler.
fn program() -> Option<&'static Path> {
    static PROGRAM_FILE: OnceLock<std::result::Result<(tempfile::TempDir, std::path::PathBuf), String>> =
        OnceLock::new();
    let compiled = PROGRAM_FILE.get_or_init(|| {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (source, program) = (folder.path().join("linear.c"), folder.path().join("linear"));
        std::fs::write(&source, PROGRAM).map_err(|error| error.to_string())?;
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-ffp-contract=off", "-o"]).arg(&program).arg(&source).arg("-lm");
        let output = cc.output().map_err(|error| format!("cc: {error}"))?;
        assert!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
        Ok((folder, program))
    });
    match compiled {
        Ok((_, program)) => Some(program),
        Err(reason) => {
            skip("cc", reason);
            None
        }
    }
}

/// Returns the field that the C program computes.
fn by_c(program: &Path, stencil: &Stencil, shape: Shape, input: &Array, steps: u64) -> Array {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name);
    let line = |(o, weight): &([i64; 3], f64)| format!("{} {} {} {weight:?}\n", o[0], o[1], o[2]);
    // The taps are in reverse, because the program must find the order of summation itself.
    let taps: String = stencil.taps.iter().rev().map(line).collect();
    std::fs::write(file("taps"), taps).expect("taps written");
    std::fs::write(file("input"), input.as_bytes()).expect("input written");
    let mut command = Command::new(program);
    command.arg(input.dtype().name()).args(shape.padded().map(|n| n.to_string())).arg(steps.to_string());
    command.args(["taps", "input", "output"].map(file));
    let output = command.output().expect("the C program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::read(file("output")).expect("output read");
    match input.dtype() {
        DType::F32 => Array::F32(
            bytes.chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().expect("4 bytes"))).collect(),
        ),
        DType::F64 => Array::F64(
            bytes.chunks_exact(8).map(|b| f64::from_ne_bytes(b.try_into().expect("8 bytes"))).collect(),
        ),
    }
}

pub fn linear_stencils_equal_a_c_program(subject: &Subject) -> Result<()> {
    let Some(program) = program() else { return Ok(()) };
    for stencil in table() {
        let dtypes = subject.dtypes();
        for dtype in if subject.has_all_cases() { dtypes } else { vec![DType::F32] } {
            let extents: &[usize] = [&[1021][..], &[61, 83], &[17, 19, 23]][stencil.axes - 1];
            let problem = entry(&stencil.name, extents, dtype, Boundary::Fixed)?;
            let input = fields(&problem, 17)?;
            let expected = by_c(program, &stencil, problem.shape, &input[0], 20);
            subject.compare_with(&problem, &subject.variants(&problem), &input, 20, &[expected])?;
        }
    }
    Ok(())
}

pub fn a_long_run_equals_a_c_program(subject: &Subject) -> Result<()> {
    let Some(program) = program() else { return Ok(()) };
    let Some(stencil) = table().into_iter().find(|stencil| stencil.name == "2d5pt") else {
        panic!("the table has no 2d5pt");
    };
    for dtype in subject.dtypes() {
        let problem = entry("2d5pt", &[509, 1021], dtype, Boundary::Fixed)?;
        let input = fields(&problem, 1)?;
        let expected = by_c(program, &stencil, problem.shape, &input[0], 100);
        subject.compare_with(&problem, &[Options::default()], &input, 100, &[expected])?;
    }
    Ok(())
}

/// A field with its ghost cells around it.
struct Padded<T> {
    extents: [usize; 3],
    radius: [usize; 3],
    values: Vec<T>,
}

impl<T: Real> Padded<T> {
    /// Fills the ghost cells axis by axis, the fastest first, so that the slower axis decides in the corners.
    fn new(field: &[T], extents: [usize; 3], radius: [usize; 3], boundaries: &Boundaries) -> Self {
        let size = [0, 1, 2].map(|a| extents[a] + 2 * radius[a]);
        let mut padded =
            Padded { extents: size, radius, values: vec![T::from_f64(f64::NAN); size.iter().product()] };
        for z in 0..extents[0] {
            for y in 0..extents[1] {
                for x in 0..extents[2] {
                    let to = padded.index([z + radius[0], y + radius[1], x + radius[2]]);
                    padded.values[to] = field[(z * extents[1] + y) * extents[2] + x];
                }
            }
        }
        for axis in [2, 1, 0] {
            for side in 0..2 {
                padded.fill(axis, side, boundaries.0[axis][side]);
            }
        }
        padded
    }

    fn index(&self, at: [usize; 3]) -> usize {
        (at[0] * self.extents[1] + at[1]) * self.extents[2] + at[2]
    }

    fn fill(&mut self, axis: usize, side: usize, boundary: Boundary) {
        let (radius, whole) = (self.radius[axis], self.extents[axis]);
        let inner = whole - 2 * radius;
        for depth in 0..radius {
            // The `depth`-th ghost cell counted from the edge outwards, and the cell that it copies.
            let ghost = if side == 0 { radius - 1 - depth } else { radius + inner + depth };
            let source = match (boundary, side) {
                (Boundary::Mirror, 0) => radius + depth,
                (Boundary::Mirror, _) => radius + inner - 1 - depth,
                (
                    Boundary::MinusMirror
                    | Boundary::Reflect
                    | Boundary::MinusReflect
                    | Boundary::Scalar(_)
                    | Boundary::Open,
                    _,
                ) => {
                    unreachable!("no suite of plain problems has {boundary}")
                }
                (Boundary::Clamp, 0) => radius,
                (Boundary::Clamp, _) => radius + inner - 1,
                (Boundary::Periodic, 0) => radius + inner - 1 - depth,
                (Boundary::Periodic, _) => radius + depth,
                // Nothing may read a ghost cell beyond a fixed edge: its NaN would show.
                (Boundary::Fixed | Boundary::Constant(_), _) => ghost,
            };
            for index in 0..self.values.len() {
                let mut at = [
                    index / (self.extents[1] * self.extents[2]),
                    index / self.extents[2] % self.extents[1],
                    index % self.extents[2],
                ];
                if at[axis] == ghost {
                    self.values[index] = match boundary {
                        Boundary::Constant(value) => T::from_f64(value),
                        Boundary::Fixed => T::from_f64(f64::NAN),
                        _ => {
                            at[axis] = source;
                            self.values[self.index(at)]
                        }
                    };
                }
            }
        }
    }
}

fn by_padding<T: Real>(stencil: &Stencil, problem: &Problem, input: &[T], steps: u64) -> Array {
    let extents = problem.shape.padded();
    let radius =
        [0, 1, 2].map(|a| stencil.taps.iter().map(|(o, _)| o[a].unsigned_abs() as usize).max().unwrap_or(0));
    let mut taps = stencil.taps.clone();
    taps.sort_by_key(|tap| tap.0);
    let kept = |at: [usize; 3]| {
        (0..3).any(|a| {
            let [low, high] = problem.boundaries.0[a];
            (low == Boundary::Fixed && at[a] < radius[a])
                || (high == Boundary::Fixed && at[a] + radius[a] >= extents[a])
        })
    };
    let mut now = input.to_vec();
    for _ in 0..steps {
        let padded = Padded::new(&now, extents, radius, &problem.boundaries);
        for (cell, value) in now.iter_mut().enumerate() {
            let at = [cell / (extents[1] * extents[2]), cell / extents[2] % extents[1], cell % extents[2]];
            if kept(at) {
                continue;
            }
            let tap = |o: [i64; 3]| {
                padded.values
                    [padded.index([0, 1, 2].map(|a| (at[a] + radius[a]).wrapping_add_signed(o[a] as isize)))]
            };
            let first = T::from_f64(taps[0].1) * tap(taps[0].0);
            *value =
                taps[1..].iter().fold(first, |sum, (o, weight)| T::from_f64(*weight).mul_add(tap(*o), sum));
        }
    }
    T::into_array(now)
}

pub fn all_boundaries_equal_padded_arrays(subject: &Subject) -> Result<()> {
    use Boundary::{Clamp, Constant, Fixed, Mirror, Periodic};
    let mixtures = [
        Boundaries::all(Fixed),
        Boundaries::all(Periodic),
        Boundaries::all(Mirror),
        Boundaries::all(Clamp),
        Boundaries::all(Constant(1.5)),
        Boundaries([[Constant(2.0), Mirror], [Constant(-1.0), Constant(0.5)], [Mirror, Constant(3.0)]]),
        Boundaries([[Fixed, Constant(2.0)], [Periodic, Periodic], [Mirror, Fixed]]),
        Boundaries([[Periodic, Periodic], [Fixed, Mirror], [Constant(0.25), Fixed]]),
        Boundaries([[Clamp, Fixed], [Mirror, Clamp], [Clamp, Constant(0.25)]]),
    ];
    for (number, stencil) in table().iter().enumerate() {
        for (turn, boundaries) in
            subject.sampled(mixtures.iter().enumerate().cycle().skip(number).take(mixtures.len()))
        {
            let extents: &[usize] = [&[67][..], &[13, 41], &[7, 5, 19]][stencil.axes - 1];
            let dtypes = subject.dtypes();
            let dtype = dtypes[(number + turn) % dtypes.len()];
            let program = abide::catalogue::find(&stencil.name)?.program(stencil.axes)?;
            let problem = problem(program.into(), extents, dtype, *boundaries)?;
            let input = fields(&problem, turn as u64)?;
            let expected = abide::with_array!(&input[0], values => by_padding(stencil, &problem, values, 6));
            subject.compare_with(&problem, &[Options::default()], &input, 6, &[expected])?;
        }
    }
    Ok(())
}

#[test]
fn the_table_and_the_catalogue_name_the_same_linear_stencils() {
    let mut catalogued = Vec::new();
    for entry in abide::catalogue::entries() {
        let linear = entry
            .program(*entry.dimensions.start())
            .is_ok_and(|p| p.parameters().is_empty() && p.stages()[0].footprint.linear);
        if linear {
            catalogued.push(entry.name.to_owned());
        }
    }
    let mut named: Vec<String> = table().into_iter().map(|stencil| stencil.name).collect();
    catalogued.sort();
    named.sort();
    assert_eq!(catalogued, named);
}

#[test]
fn the_c_program_refuses_an_input_of_another_size() -> Result<(), Error> {
    let Some(program) = program() else { return Ok(()) };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("taps"), "0 0 0 1\n").expect("taps written");
    std::fs::write(file("input"), [0; 9]).expect("input written");
    let mut command = Command::new(program);
    command.args(["f64", "1", "1", "1", "1"]).args(["taps", "input", "output"].map(file));
    assert!(!command.output().expect("the C program starts").status.success());
    Ok(())
}
