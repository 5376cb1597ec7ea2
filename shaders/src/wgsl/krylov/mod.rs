//! Solvers of linear systems as phases, one dispatch per phase, and the phases that make an iteration.
//!
//! One module holds all phases of a method: a function per phase, which says what happens at a row or with the
//! sums, and an entry point around each, made by its form. A buffer has one binding number, whatever
//! phase binds it. The text holds no extent of a stored matrix, so that systems of one layout share their
//! pipelines.

mod entries;
mod fixed;
mod records;
mod script;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use abide_core::domain::Axes;
use abide_core::solver::plan::Dispatches;
use abide_core::solver::plan::krylov::{VECTOR_NAMES, Vector, applied};
use abide_core::solver::{GridOperator, Matrix, Measure, Method, Preconditioning, SolveOptions};
use abide_core::{DType, Error, Result};

use super::language::literal;
use super::{MAX_CELLS, constant, domain, domain_constants, moved};
use crate::state::constants;
use crate::text::{LETTERS, Text};

pub use fixed::Fixed;
pub use records::{Call, OwnState, Task};
pub use script::{Phase, Role, Script, Use, Work, script};

const TREE: &str = include_str!("../../../kernels/wgsl/common/tree.wgsl");
const SHARED: &str = include_str!("../../../kernels/wgsl/krylov/krylov.wgsl");
const STOP_TEST: &str = include_str!("../../../kernels/wgsl/krylov/stop_test.wgsl");
const ROWS: &str = include_str!("../../../kernels/wgsl/krylov/rows.wgsl");
const TAPS: &str = include_str!("../../../kernels/wgsl/krylov/taps.wgsl");
const PHASES: &str = include_str!("../../../kernels/wgsl/krylov/phases.wgsl");
const SCALE: &str = include_str!("../../../kernels/wgsl/krylov/scale.wgsl");
const BLOCKS: &str = include_str!("../../../kernels/wgsl/krylov/blocks.wgsl");
const POLYNOMIAL: &str = include_str!("../../../kernels/wgsl/krylov/polynomial.wgsl");
const SUSPECT: &str = include_str!("../../../kernels/wgsl/krylov/suspect.wgsl");
const CG: &str = include_str!("../../../kernels/wgsl/krylov/cg.wgsl");
const CG_SINGLE: &str = include_str!("../../../kernels/wgsl/krylov/cg_single.wgsl");
const CG_PIPELINED: &str = include_str!("../../../kernels/wgsl/krylov/cg_pipelined.wgsl");
const DIRECTIONS: &str = include_str!("../../../kernels/wgsl/krylov/directions.wgsl");
const DIRECTIONS_PLAIN: &str = include_str!("../../../kernels/wgsl/krylov/directions_plain.wgsl");
const MINRES: &str = include_str!("../../../kernels/wgsl/krylov/minres.wgsl");
const BICGSTAB: &str = include_str!("../../../kernels/wgsl/krylov/bicgstab.wgsl");
const CHEBYSHEV: &str = include_str!("../../../kernels/wgsl/krylov/chebyshev.wgsl");
const JACOBI: &str = include_str!("../../../kernels/wgsl/krylov/jacobi.wgsl");
const GMRES: &str = include_str!("../../../kernels/wgsl/krylov/gmres.wgsl");
const GMRES_TRIANGLE: &str = include_str!("../../../kernels/wgsl/krylov/gmres_triangle.wgsl");

/// The most workgroups of a dispatch. Each sum has as many places for the workgroups' shares of it.
pub const MOST_GROUPS: usize = 1024;

/// The most sums of a reduction.
pub const SUMS: usize = 3;

/// Entries of the history that the device keeps; iteration `k` is at `k % RING`.
pub const RING: usize = 4096;

/// Returns how many numbers GMRES's least-squares problem has for cycles of `restart` iterations.
pub fn triangle_numbers(restart: usize) -> usize {
    restart.saturating_mul(restart.saturating_add(5)).saturating_add(1)
}

impl Role {
    /// Returns the role's name in the kernels.
    pub fn name(self) -> String {
        match self {
            Role::Own(vector) => vector.name().to_lowercase(),
            Role::Gathered => "gathered".to_owned(),
            Role::Given => "given".to_owned(),
            Role::Made => "made".to_owned(),
            Role::Next => "next".to_owned(),
        }
    }

    /// Returns the number of the role's binding.
    pub fn binding(self) -> u32 {
        let before = Fixed::ALL.len();
        let number = match self {
            Role::Gathered => 0,
            Role::Given => 1,
            Role::Made => 2,
            Role::Next => 3,
            Role::Own(vector) => {
                4 + VECTOR_NAMES.iter().position(|(own, _)| *own == vector).unwrap_or_default()
            }
        };
        (before + number) as u32
    }

    /// Checks whether kernels write to a vector of this role in any phase.
    pub fn is_written(self) -> bool {
        !matches!(self, Role::Gathered | Role::Given | Role::Own(Vector::Inverse))
    }
}

/// Returns the text of the module of a solver's phases.
pub fn module(
    matrix: &Matrix,
    options: &SolveOptions,
    layout: &Dispatches,
    script: &Script,
) -> Result<String> {
    let (dtype, applied) = (matrix.dtype(), applied(options));
    let mut text = Text::default();
    text.push(format!("// {}, preconditioner {applied}, in {dtype}", options.method));
    text.blank();
    text.push(format!("alias real = {dtype};"));
    text.blank();
    let is_pointwise = script::is_fused(options.method, applied);
    for (name, value) in [
        ("THREADS", layout.threads),
        ("MOST_GROUPS", MOST_GROUPS),
        ("SUMS", SUMS),
        ("RING", RING),
        ("LANES", layout.lanes),
        ("LONGEST", layout.longest.unwrap_or(u32::MAX as usize)),
    ] {
        text.push(format!("const {name}: u32 = {value}u;"));
    }
    text.push(format!("const HAS_LONG: bool = {};", layout.longest.is_some()));
    let measure = options.method.profile().measure;
    text.push(format!("const BY_ENERGY: bool = {};", measure == Measure::Energy));
    for (name, value) in
        [("ZERO", 0.0), ("NOTHING", -0.0), ("ONE", 1.0), ("LEAST_SHARE", Measure::least_share(dtype))]
    {
        text.push(format!("const {name}: real = {};", literal(dtype, value)));
    }
    constants(&mut text, ["const ", ": u32 = ", "u;"]);
    text.blank();
    records::declarations(&mut text);
    declarations(&mut text, script);
    text.push(finite(dtype));
    functions(&mut text, options.method, applied, is_pointwise);
    text.push("fn join(a: real, b: real) -> real { return a + b; }");
    text.file(TREE);
    text.file(SHARED);
    text.file(STOP_TEST);
    match matrix {
        Matrix::Stored(_) => text.file(ROWS),
        Matrix::Stencil(operator) => taps(&mut text, operator)?,
    }
    let method: &[&str] = match options.method {
        Method::Cg => &[CG],
        Method::SingleReductionCg => &[CG_SINGLE, SUSPECT],
        Method::PipelinedCg(_) if applied == Preconditioning::None => {
            &[CG_PIPELINED, DIRECTIONS_PLAIN, SUSPECT]
        }
        Method::PipelinedCg(_) => &[CG_PIPELINED, DIRECTIONS, SUSPECT],
        Method::Minres => &[MINRES],
        Method::BiCgStab => &[BICGSTAB],
        Method::Chebyshev(_) => &[CHEBYSHEV],
        Method::Jacobi(_) => &[JACOBI],
        Method::Gmres(_) => &[GMRES_TRIANGLE, GMRES],
    };
    let preconditioner = match applied {
        Preconditioning::Jacobi if !is_pointwise => SCALE,
        // `script` refuses the host's own.
        Preconditioning::None
        | Preconditioning::Jacobi
        | Preconditioning::Ilu
        | Preconditioning::Amg { .. } => "",
        Preconditioning::BlockJacobi { .. } => BLOCKS,
        Preconditioning::Chebyshev { .. } => POLYNOMIAL,
    };
    for part in [PHASES, preconditioner].iter().chain(method).filter(|part| !part.is_empty()) {
        text.file(part);
    }
    let mut known = HashSet::new();
    for entry in script.phases().map(entries::entry) {
        if known.insert(entry.clone()) {
            text.file(&entry);
        }
    }
    Ok(text.into())
}

/// Writes the declarations of the buffers that any phase binds.
fn declarations(text: &mut Text, script: &Script) {
    for fixed in Fixed::ALL {
        if script.phases().any(|phase| phase.fixed.contains(fixed)) {
            text.push(fixed.declaration());
        }
    }
    let mut roles: Vec<Role> = script.phases().flat_map(|phase| &phase.uses).map(|used| used.role).collect();
    roles.sort_by_key(|role| role.binding());
    roles.dedup();
    for role in roles {
        let access = if role.is_written() { "read_write" } else { "read" };
        let (number, name) = (role.binding(), role.name());
        text.push(format!("@group(0) @binding({number}) var<storage, {access}> {name}: array<real>;"));
    }
    text.blank();
}

/// Returns the function that checks whether a value is finite. Compilers may assume that there are no
/// infinities, so an f32 is tested by its bits. WGSL does not show the bits of an f64, so an f64 is compared
/// with the largest finite number.
fn finite(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => {
            "fn finite(value: real) -> bool { return (bitcast<u32>(value) & 0x7f800000u) != 0x7f800000u; }"
        }
        DType::F64 => "fn finite(value: real) -> bool { return abs(value) <= 1.7976931348623157e308lf; }",
    }
}

/// Writes the functions for M^-1 r at a row, and for r at a row where a product may have r bound already.
fn functions(text: &mut Text, method: Method, applied: Preconditioning, is_pointwise: bool) {
    let made = match method {
        // GMRES needs neither function.
        Method::Gmres(_) => return,
        Method::PipelinedCg(_) => Vector::U,
        Method::BiCgStab => Vector::SHat,
        _ => Vector::Z,
    };
    let value = match applied {
        Preconditioning::None => "value".to_owned(),
        Preconditioning::Jacobi if is_pointwise => "inverse[i] * value".to_owned(),
        _ => format!("{}[i]", Role::Own(made).name()),
    };
    text.blank();
    text.push("// M^-1 r at row i, where r is `value`.");
    text.push(format!("fn preconditioned(i: u32, value: real) -> real {{ return {value}; }}"));
    if matches!(method, Method::SingleReductionCg | Method::BiCgStab) {
        let from = if applied == Preconditioning::None { Role::Gathered } else { Role::Own(Vector::R) };
        text.blank();
        text.push("// r at a row of a product with M^-1 r.");
        text.push(format!("fn residual_at(row: u32) -> real {{ return {}[row]; }}", from.name()));
    }
}

/// Writes the product with a stencil: its domain, and its taps in order. The first tap is a plain product,
/// every later one is fused.
fn taps(text: &mut Text, operator: &GridOperator) -> Result<()> {
    let (shape, dtype, radius) = (operator.shape(), operator.dtype(), operator.radius());
    if shape.cells() > MAX_CELLS {
        let change = "choose a smaller size or another backend";
        return Err(Error::limit("cells of a domain on wgpu", shape.cells(), MAX_CELLS, change));
    }
    let extents = shape.padded();
    domain_constants(text, Axes::PADDED, extents, &operator.boundaries(), radius, dtype);
    for (axis, [letter, _]) in LETTERS.into_iter().enumerate() {
        constant(text, &format!("RADIUS_{letter}"), radius[axis]);
    }
    let each = |value: &dyn Fn([isize; 3]) -> String| -> Text {
        let taps = operator.stencil().taps().iter().enumerate();
        let line = |(number, (offset, weight)): (usize, &([i32; 3], f64))| {
            let weight =
                literal(dtype, if dtype == DType::F32 { f64::from(*weight as f32) } else { *weight });
            let value = value(offset.map(|offset| offset as isize));
            if number == 0 {
                format!("sum = {weight} * {value};")
            } else {
                format!("sum = fma({weight}, {value}, sum);")
            }
        };
        taps.map(line).collect()
    };
    let [_, rows, columns] = extents.map(|extent| extent as isize);
    let inside = each(&|[s, y, x]| format!("gathered[at{}]", moved((s * rows + y) * columns + x)));
    let outside = each(&|[s, y, x]| format!("tap(s{}, y{}, x{})", moved(s), moved(y), moved(x)));
    text.filled(TAPS, &[("domain", domain()), ("inside", inside), ("outside", outside)]);
    Ok(())
}
