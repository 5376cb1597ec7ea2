//! Steps that solve a linear system, by each method.

use abide_core::program::{Centring, Definition, Program, Solve, SolveMethod};
use abide_core::{Array, Boundary, DType, Result};

use crate::cases::Case;

/// Conduction that varies from cell to cell, and a part of the field itself: symmetric, positive definite, of neighbours.
fn conduction(dimensions: usize, method: SolveMethod, tolerance: f64) -> Result<Program> {
    let mut p = Definition::new("conduction", dimensions);
    p.boundary(Boundary::Mirror)
        .field("u", Centring::CELL)
        .field("k", Centring::CELL)
        .field("f", Centring::CELL);
    let how = Solve { method, tolerance, most: 60, ..Solve::default() };
    p.step().solve(
        "u",
        &how,
        &|s| {
            let (u, k) = (s.field("u"), s.field("k"));
            let sides = (0..dimensions).flat_map(|axis| [(axis, -1), (axis, 1)]);
            let flows = sides.map(|(axis, by)| {
                let mean = 1.5 + 0.5 * (k.here() + k.along(axis, by));
                mean * (u.here() - u.along(axis, by))
            });
            flows.fold(0.125 * u.here(), |sum, flow| sum + flow)
        },
        &|s| s.field("f").here(),
    );
    p.build()
}

/// Conduction whose coefficients change along their own axis alone, differently for both sides of a cell, and a part of the field
/// itself.
fn separable(dimensions: usize, tolerance: f64) -> Result<Program> {
    let mut p = Definition::new("separable", dimensions);
    p.boundary(Boundary::Mirror).field("u", Centring::CELL).field("f", Centring::CELL);
    p.parameter("own", 0.125, "the part of the field itself");
    let how = Solve { method: SolveMethod::Direct, tolerance, most: 60, ..Solve::default() };
    p.step().solve(
        "u",
        &how,
        &|s| {
            let u = s.field("u");
            let flows = (0..dimensions).flat_map(|axis| [(axis, -1), (axis, 1)]).map(|(axis, by)| {
                // The same at both sides of a face: they are symmetric but for the cell's width.
                let face = s.coord(axis) + 0.5 * f64::from(by);
                let width = 1.0 + 0.0625 * s.coord(axis);
                (1.5 + 0.125 * face) / width * (u.here() - u.along(axis, by))
            });
            flows.fold(s.param("own") * u.here(), |sum, flow| sum + flow)
        },
        &|s| s.field("f").here(),
    );
    p.build()
}

/// Returns systems on 1 to 3 axes of odd extents, with several grids each where the method has coarser ones.
///
/// # Errors
///
/// None: the programs are complete.
pub fn systems() -> Result<Vec<Case>> {
    let mut all = Vec::new();
    for (axes, extents) in [&[37][..], &[13, 21], &[5, 6, 9]].into_iter().enumerate() {
        for (turn, method) in
            [SolveMethod::Multigrid, SolveMethod::Cg, SolveMethod::BiCgStab, SolveMethod::Direct]
                .into_iter()
                .enumerate()
        {
            let dtype = if (axes + turn) % 2 == 0 { DType::F64 } else { DType::F32 };
            let tolerance = if dtype == DType::F64 { 1e-9 } else { 1e-5 };
            let program = match method {
                SolveMethod::Direct => separable(extents.len(), tolerance)?,
                _ => conduction(extents.len(), method, tolerance)?,
            };
            let boundary = match method {
                SolveMethod::Direct => ["fixed", "-mirror", "constant=0.25"][axes % 3],
                _ => ["mirror", "periodic", "constant=0.25"][(axes + turn) % 3],
            };
            let name = format!("system by {method:?}");
            let mut case = Case::new(&name, program, boundary, extents, dtype, 2)?;
            // Vectors of a method start with zeros, as in a run.
            for field in 0..case.start.len() {
                if case.problem.program.kinds()[field].is_internal {
                    case.start[field] = Array::zeros(dtype, case.start[field].len())?;
                }
            }
            all.push(case);
        }
    }
    Ok(all)
}
