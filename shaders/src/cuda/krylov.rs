//! The text of persistent solvers: the constants of a layout before the kernels' bodies.

use abide_core::solver::plan::krylov::{
    Division, Home, Krylov, RecomputedHalo, Space, UNDER_WAY, VECTOR_NAMES, applied,
};
use abide_core::solver::{GridOperator, Matrix, Measure, Method, Preconditioning, SolveOptions};
use abide_core::{DType, Result};

use super::{COMMON, DEVICE, TREE, arguments, constant, literal, parameters};
use crate::boundary;
use crate::record::c_fields;
use crate::state::{State, constants};
use crate::text::{LETTERS, Text};

const AHEAD: &str = include_str!("../../kernels/cuda/krylov/ahead.cuh");
const SLABS: &str = include_str!("../../kernels/cuda/krylov/slabs.cuh");
const NODES: &str = include_str!("../../kernels/cuda/krylov/nodes.cuh");
const TEAM: &str = include_str!("../../kernels/cuda/krylov/krylov.cuh");
const STOP_TEST: &str = include_str!("../../kernels/cuda/krylov/stop_test.cuh");
const SPREAD: &str = include_str!("../../kernels/cuda/krylov/spread.cuh");
const PRODUCT: &str = include_str!("../../kernels/cuda/krylov/product.cuh");
const STENCIL: &str = include_str!("../../kernels/cuda/krylov/stencil.cuh");
const RECOMPUTED: &str = include_str!("../../kernels/cuda/krylov/recomputed.cuh");
const PRECONDITION: &str = include_str!("../../kernels/cuda/krylov/precondition.cuh");
const CG: &str = include_str!("../../kernels/cuda/krylov/cg.cu");
const CG_SINGLE: &str = include_str!("../../kernels/cuda/krylov/cg_single.cu");
const CG_PIPELINED: &str = include_str!("../../kernels/cuda/krylov/cg_pipelined.cu");
const MINRES: &str = include_str!("../../kernels/cuda/krylov/minres.cu");
const BICGSTAB: &str = include_str!("../../kernels/cuda/krylov/bicgstab.cu");
const GMRES_BASIS: &str = include_str!("../../kernels/cuda/krylov/gmres_basis.cuh");
const GMRES_TRIANGLE: &str = include_str!("../../kernels/cuda/krylov/gmres_triangle.cuh");
const GMRES: &str = include_str!("../../kernels/cuda/krylov/gmres.cu");
const CHEBYSHEV: &str = include_str!("../../kernels/cuda/krylov/chebyshev.cu");
const JACOBI: &str = include_str!("../../kernels/cuda/krylov/jacobi.cu");
const KERNEL: &str = include_str!("../../kernels/cuda/krylov/krylov.cu");

/// The name of a solver's kernel.
pub const KRYLOV_ENTRY: &str = "krylov";

/// Numbers at the end of the kernels' `State` that are the method's own.
const SCALARS: usize = 8;

/// Bytes of the method's own numbers at the end of the kernels' `State`.
pub const KRYLOV_STATE_OWN: usize = 8 * SCALARS;

/// The tag of nodes that nobody tells, which holds in every sum.
pub const KRYLOV_ALWAYS: u32 = u32::MAX;

/// The enumerations whose names the constants use.
const NAMES: &str = "\
enum Home { DEVICE, SHARED, REGISTERS };
enum Space { BLOCK, CLUSTER, GRID };
enum Division { SLICED, SPLIT, MERGED, STENCIL };
enum Remaking { NOTHING, OF_SLABS, OF_BLOCKS };
enum Preconditioning { NONE, JACOBI, BLOCK_JACOBI, POLYNOMIAL };
";

/// Returns the text of the kernel of a layout, which depends on the arguments alone. The text holds no entry
/// and no extent of a stored matrix, so that matrices of one layout share a kernel.
///
/// With `batched`, the kernel solves many systems of one pattern, one per block, and the layout is that of
/// one block.
pub fn krylov(matrix: &Matrix, options: &SolveOptions, layout: &Krylov, batched: bool) -> Result<String> {
    let dtype = matrix.dtype();
    let (real, column) = (
        if dtype == DType::F32 { "float" } else { "double" },
        if layout.column_bytes == 2 { "unsigned short" } else { "unsigned" },
    );
    let applied = applied(options);
    applied.check_kernels()?;
    let method: &[&str] = match options.method {
        Method::Cg => &[CG],
        Method::SingleReductionCg => &[CG_SINGLE],
        Method::PipelinedCg(_) => &[CG_PIPELINED],
        Method::Minres => &[MINRES],
        Method::BiCgStab => &[BICGSTAB],
        Method::Gmres(_) => &[GMRES_BASIS, GMRES_TRIANGLE, GMRES],
        Method::Chebyshev(_) => &[CHEBYSHEV],
        Method::Jacobi(_) => &[JACOBI],
    };
    let mut text = Text::default();
    text.push(format!("// {}, preconditioner {applied}", options.method));
    text.file(DEVICE);
    text.blank();
    text.push(format!("typedef {real} real;"));
    text.push(format!("typedef {column} Column;"));
    text.push(NAMES);
    constants(&mut text, ["constexpr int ", " = ", ";"]);
    state(&mut text);
    arguments::declarations(&mut text);
    let clustered = if layout.space == Space::Cluster {
        format!(" __cluster_dims__({}, 1, 1)", layout.blocks)
    } else {
        String::new()
    };
    text.push(format!("#define CLUSTERED{clustered}"));
    text.push(format!("constexpr unsigned ALWAYS = {KRYLOV_ALWAYS}u;"));
    let measure = options.method.profile().measure;
    text.push(format!("constexpr bool BY_ENERGY = {};", measure == Measure::Energy));
    text.push(format!("constexpr double LEAST_SHARE = {:e};", Measure::least_share(dtype)));
    let mut names = |name: &str, value: &str| constant(&mut text, name, value);
    names(
        "SPACE",
        match layout.space {
            Space::Block => "BLOCK",
            Space::Cluster => "CLUSTER",
            Space::Grid => "GRID",
        },
    );
    let (division, width, lanes, items) = match layout.division {
        Division::Sliced { width } => ("SLICED", width.unwrap_or(0), 1, 1),
        Division::Split { lanes } => ("SPLIT", 0, lanes, 1),
        Division::Merged { items } => ("MERGED", 0, 1, items),
        Division::Stencil => ("STENCIL", 0, 1, 1),
    };
    names("PRODUCT", division);
    names(
        "RECOMPUTED",
        match layout.recomputed {
            RecomputedHalo::Nothing => "NOTHING",
            RecomputedHalo::Slabs => "OF_SLABS",
            RecomputedHalo::Blocks => "OF_BLOCKS",
        },
    );
    let (preconditioner, size, degree) = match applied {
        Preconditioning::None | Preconditioning::Ilu | Preconditioning::Amg { .. } => ("NONE", 1, 0),
        Preconditioning::Jacobi => ("JACOBI", 1, 0),
        Preconditioning::BlockJacobi { size } => ("BLOCK_JACOBI", size, 0),
        Preconditioning::Chebyshev { degree } => ("POLYNOMIAL", 1, degree),
    };
    names("PRECONDITIONER", preconditioner);
    // Loads in flight: all of a short row, some of a long one.
    let unroll = if width > 0 { width.min(UNDER_WAY) } else { 4 };
    let (regions, [summed, projected]) = (&layout.regions, layout.dots());
    for (name, value) in [
        ("BLOCKS", layout.blocks),
        ("SLABS", layout.slabs.count),
        ("HERE", layout.slabs.of_a_device),
        ("THREADS", layout.threads),
        ("ROWS", if layout.is_unrolled() { layout.rows_per_thread } else { 1 }),
        ("UNROLLED", usize::from(layout.is_unrolled())),
        ("BATCHED", usize::from(batched)),
        ("VECTORS", layout.vectors.len()),
        ("TURNS", layout.turns),
        ("AHEAD", layout.ahead),
        ("RESTART", layout.restart),
        ("REPLICA_ROWS", if layout.space == Space::Grid { 0 } else { matrix.rows() }),
        ("WIDTH", width),
        ("LANES", lanes),
        ("ITEMS", items),
        ("UNROLL", unroll),
        ("SIZE", size),
        ("DEGREE", degree),
        ("RUN", layout.sums.run),
        ("RUNS", layout.sums.runs),
        ("EACH", layout.sums.each),
        ("JOINING", layout.sums.lanes),
        ("PASSES", layout.sums.passes),
        ("WINDOWS", layout.sums.windows),
        ("WINDOW_LANES", layout.sums.window_lanes),
        ("GROUPS", layout.sums.groups),
        ("LINKS", layout.sums.links),
        ("SLOTS", layout.sums.slots),
        ("STEP", layout.sums.step),
        ("GROUP", layout.group()),
        ("SUMMED", summed),
        ("PROJECTED", projected),
        ("TOGETHER", layout.together(matrix.dtype().bytes())),
        ("SPREAD", layout.spread_rows.len()),
        ("OFFSETS_KEPT", usize::from(layout.offsets_kept)),
        ("EVICT_FIRST", usize::from(layout.evict_first)),
        ("SCRATCH_AT", regions.scratch),
        ("TOTALS_AT", regions.totals),
        ("DERIVED_AT", regions.derived),
        ("LOST_AT", regions.lost),
        ("TRIANGLE_AT", regions.triangle),
        ("PARTS_AT", regions.parts),
        ("PROJECTED_AT", regions.projected),
        ("REPLICA_AT", regions.replica),
        ("PIECES_AT", regions.pieces),
        ("PIECE_OFFSETS_AT", regions.piece_offsets),
        ("OFFSETS_AT", regions.offsets),
        ("TILE_AT", regions.tile),
        ("CARRIES_AT", regions.carries),
        ("CLOSED_AT", regions.closed),
        ("VALUES_AT", regions.values),
        ("COLUMNS_AT", regions.columns),
    ] {
        constant(&mut text, name, value);
    }
    vectors(&mut text, layout);
    let mut stencil = Text::default();
    if let Matrix::Stencil(operator) = matrix {
        taps(&mut text, operator);
        text.file(COMMON);
        stencil.file(STENCIL);
    }
    text.file(TREE);
    text.file(SLABS);
    text.file(NODES);
    text.file(AHEAD);
    text.file(TEAM);
    text.file(STOP_TEST);
    text.file(SPREAD);
    text.filled(PRODUCT, &[("stencil", stencil)]);
    for part in [RECOMPUTED, PRECONDITION].iter().chain(method).chain(&[KERNEL]) {
        text.file(part);
    }
    Ok(text.into())
}

/// Writes the kernels' `State`.
fn state(text: &mut Text) {
    constant(text, "SCALARS", SCALARS);
    text.push("struct State {");
    c_fields(text, State::WORDS, "unsigned");
    c_fields(text, State::NUMBERS, "double");
    text.extend(["double scalars[SCALARS];  // the method's own", "};"]);
}

/// Writes the vectors' numbers and places. Vectors that the method does not have get the number of the first,
/// and are never touched.
fn vectors(text: &mut Text, layout: &Krylov) {
    for (vector, name) in VECTOR_NAMES {
        let number = layout.vectors.iter().position(|(own, _)| own == vector).unwrap_or(0);
        constant(text, name, number);
    }
    let homes = layout.vectors.iter().map(|(_, home)| match home {
        Home::Device => "DEVICE",
        Home::Shared => "SHARED",
        Home::Registers => "REGISTERS",
    });
    let places = layout.regions.vectors.iter().map(usize::to_string);
    let (homes, places): (Vec<&str>, Vec<String>) = (homes.collect(), places.collect());
    text.push(format!("constexpr int PLACE[] = {{{}}};", homes.join(", ")));
    text.push(format!("constexpr unsigned SHARED_AT[] = {{{}}};", places.join(", ")));
}

/// Writes the domain and the taps of a stencil.
fn taps(text: &mut Text, operator: &GridOperator) {
    let (extents, radius, dtype) = (operator.shape().padded(), operator.radius(), operator.dtype());
    let strides = [extents[1] * extents[2], extents[2], 1];
    // Halos reach beyond the domain; leave room below the limit of 32 bits.
    let offset = if operator.shape().cells() < (1 << 30) { "int" } else { "long long" };
    text.push(format!("typedef {offset} Offset;"));
    boundary::c(text);
    let boundaries = operator.boundaries();
    for (axis, [letter, _]) in LETTERS.into_iter().enumerate() {
        let (extent, stride) = (extents[axis], strides[axis]);
        text.push(format!("constexpr Offset EXTENT_{letter} = {extent}, STRIDE_{letter} = {stride};"));
        constant(text, &format!("FIX_{letter}"), radius[axis]);
        for (side, name) in boundaries.0[axis].iter().zip(["LOW", "HIGH"]) {
            constant(text, &format!("{name}_{letter}"), side.constant());
            text.push(format!("constexpr real {name}_VALUE_{letter} = 0;"));
        }
    }
    parameters(text, 0, &[], 0);
    text.push("constexpr bool NOTES = false;");
    let all = operator.stencil().taps();
    constant(text, "TAPS", all.len());
    for (axis, [letter, _]) in LETTERS.into_iter().enumerate() {
        let offsets: Vec<String> = all.iter().map(|(offset, _)| offset[axis].to_string()).collect();
        text.push(format!("constexpr int TAP_{letter}[] = {{{}}};", offsets.join(", ")));
    }
    let weights: Vec<String> = all.iter().map(|(_, weight)| literal(dtype, *weight)).collect();
    text.push(format!("constexpr real WEIGHT[] = {{{}}};", weights.join(", ")));
}
