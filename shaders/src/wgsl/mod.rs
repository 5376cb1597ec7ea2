//! WGSL kernels, one per stage or one for all stages: constants, bindings and formulas from a plan, bodies
//! from `kernels/wgsl`.
//!
//! `domain.wgsl` maps taps through the boundary. `stepwise/tile.wgsl` is a stage whose tile is staged in
//! workgroup memory, `stepwise/direct.wgsl` a stage whose taps read device memory. `overlapped.wgsl` and
//! `streaming.wgsl` are all stages of several steps. `program/` has the stages of programs that are not
//! plain. A line `//@name` in these files is where the generated part `name` goes.

pub mod krylov;
mod language;
mod overlapped;
mod pieces;
mod program;
mod streaming;

use std::fmt::Display;

use abide_core::domain::Axes;
use abide_core::expr::{Looped, Node, Tap, Term};
use abide_core::functions::Function;
use abide_core::plan::{Lowering, Schedule, Stepwise, staged_fields};
use abide_core::program::Boxes;
use abide_core::{Boundaries, Boundary, DType, Error, Plan, Problem, Program, Result, Stage};

use crate::boundary;
use crate::emit::{Formula, formula};
use crate::functions;
use crate::loops::{self, Joint, Reads};
use crate::text::{LETTERS, Text};
use language::Wgsl;
use pieces::Pieces;

pub use program::{Place, ProgramKernels, ScalarLayout, program_kernels, scalars};

const DOMAIN: &str = include_str!("../../kernels/wgsl/common/domain.wgsl");
const TILE: &str = include_str!("../../kernels/wgsl/stepwise/tile.wgsl");
const DIRECT: &str = include_str!("../../kernels/wgsl/stepwise/direct.wgsl");
const RANDOM: &str = include_str!("../../kernels/wgsl/common/random.wgsl");
const RANDOM_F32: &str = include_str!("../../kernels/wgsl/common/random_f32.wgsl");
const RANDOM_F64: &str = include_str!("../../kernels/wgsl/common/random_f64.wgsl");
const PRECISION: &str = include_str!("../../kernels/wgsl/common/precision.wgsl");
const FUNCTIONS_F32: &str = include_str!("../../kernels/wgsl/common/functions_f32.wgsl");
const FUNCTIONS_F64: &str = include_str!("../../kernels/wgsl/common/functions_f64.wgsl");
const COUNT: &str = include_str!("../../kernels/wgsl/common/count.wgsl");
const COPY: &str = include_str!("../../kernels/wgsl/common/copy.wgsl");

/// The entry point of every kernel.
pub const ENTRY: &str = "main";

const COUNTS: &str = "\
const THREADS: i32 = THREADS_S * THREADS_Y * THREADS_X;
const BLOCKS: i32 = BLOCKS_S * BLOCKS_Y * BLOCKS_X;
";

/// The most cells of a domain. They are limited because indices are 32-bit and signed, and halos reach beyond
/// the domain.
pub const MAX_CELLS: usize = (1 << 31) - (1 << 16);

/// Returns the kernel that copies `bytes` bytes, a multiple of 16, from one buffer to another that is as
/// long.
pub fn copy(bytes: u64) -> Kernel {
    // Four turns per thread.
    let workgroups = (bytes / (4 * 16 * 256)).clamp(1, 65535) as usize;
    let (text, bindings) = (COPY.to_owned(), vec![Binding::Old(0, 0), Binding::New(0, 0)]);
    Kernel {
        name: "copy".to_owned(),
        text,
        bindings,
        piece_cells: usize::MAX,
        threads: 256,
        workgroups,
        workgroup_bytes: 0,
    }
}

/// Returns the kernel that counts which of `values` values of a type in its first buffer are NaN or infinite,
/// and adds their number to the `u32` in its second.
pub fn count(dtype: DType, values: usize) -> Kernel {
    let (words, exponent) = match dtype {
        DType::F32 => (1, "0x7f800000u"),
        DType::F64 => (2, "0x7ff00000u"),
    };
    let mut text = Text::default();
    text.push(format!("const WORDS = {words}u;\nconst EXPONENT = {exponent};"));
    text.file(COUNT);
    // Four turns per thread.
    let workgroups = values.div_ceil(4 * 256).clamp(1, 65535);
    Kernel {
        name: format!("count {dtype}"),
        text: text.into(),
        bindings: vec![Binding::Old(0, 0), Binding::New(0, 0)],
        piece_cells: usize::MAX,
        threads: 256,
        workgroups,
        workgroup_bytes: 0,
    }
}

/// The use that a kernel makes of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It reads a uniform buffer.
    Uniform,
    /// Each dispatch reads a uniform buffer of its own, at a dynamic offset.
    UniformOfDispatch,
    /// It reads a storage buffer.
    Read,
    /// It reads and writes a storage buffer.
    Write,
}

impl Access {
    /// Returns whether the buffer is a storage buffer.
    pub fn is_storage(self) -> bool {
        matches!(self, Access::Read | Access::Write)
    }
}

/// What a kernel expects at a binding of group 0.
pub trait Bound {
    /// Returns the use that the kernel makes of the buffer.
    fn access(&self) -> Access;
}

/// The buffer that a kernel of a plain problem expects at a binding of group 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// The uniform buffer of [`uniforms`].
    Parameters,
    /// The same with what varies in the stages of a dispatch; each dispatch has its own.
    VaryingParameters,
    /// A uniform buffer of one `u32`: the steps of the dispatch, for kernels that take several.
    Steps,
    /// A field's old values, to be read: the number of the field, and that of the piece in this buffer.
    Old(usize, usize),
    /// The place of a field's new values, to be written: the number of the field, and that of the piece.
    New(usize, usize),
}

impl Bound for Binding {
    fn access(&self) -> Access {
        match self {
            Binding::Parameters | Binding::Steps => Access::Uniform,
            Binding::VaryingParameters => Access::UniformOfDispatch,
            Binding::Old(..) => Access::Read,
            Binding::New(..) => Access::Write,
        }
    }
}

/// The kernel of one stage, or of all stages of several steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel<B = Binding> {
    /// The stage's name, or the program's.
    pub name: String,
    /// The text of a WGSL module.
    pub text: String,
    /// The buffers at the bindings 0, 1, … of group 0.
    pub bindings: Vec<B>,
    /// The most cells of a field in one buffer; further cells follow in the next buffer.
    pub piece_cells: usize,
    /// Threads of a workgroup.
    pub threads: usize,
    /// Workgroups. Any grid of two axes that holds as many will do, because kernels count through the grid
    /// and stop at the last workgroup.
    pub workgroups: usize,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: usize,
}

/// Returns the kernels of a plan for a plain problem, which depend on these two alone: one per stage, or one
/// for all stages where a dispatch takes several steps.
pub fn kernels(problem: &Problem, plan: &Plan) -> Result<Vec<Kernel>> {
    plan.check(problem)?;
    if !problem.is_plain() {
        let (what, reason) = (problem.program.name(), "it is not plain");
        return Err(Error::invalid(what, reason, "ask for its program_kernels"));
    }
    let stages = prepared(problem)?;
    match &plan.schedule {
        Schedule::Stepwise(stepwise) => {
            let shared_bytes = stepwise.shared_bytes.iter();
            Ok(stages
                .iter()
                .zip(shared_bytes)
                .map(|(stage, &bytes)| kernel(problem, stage, stepwise, bytes > 0))
                .collect())
        }
        Schedule::Overlapped(overlapped) => Ok(vec![overlapped::kernel(problem, &stages, overlapped)]),
        Schedule::PortableStreaming(streaming) => {
            Ok(vec![streaming::kernel(problem, &stages, streaming, false)])
        }
        _ => Err(Error::invalid("plan", "it is a CPU's or CUDA's", "make a plan for a wgpu device")),
    }
}

/// Returns the kernel for fewer steps than a plan's depth, whose number is a uniform. Returns `None` where
/// the kernels of [`kernels`] take any number of steps, or one step.
pub fn shorter(problem: &Problem, plan: &Plan) -> Result<Option<Kernel>> {
    match &plan.schedule {
        Schedule::PortableStreaming(planes) if planes.configuration.depth > 1 => {
            Ok(Some(streaming::kernel(problem, &prepared(problem)?, planes, true)))
        }
        _ => Ok(None),
    }
}

/// Checks that WGSL can express a problem: the number of cells.
pub fn check(problem: &Problem) -> Result<()> {
    match problem.is_plain() {
        true => prepared(problem).map(|_| ()),
        false => problem.check().and_then(|()| program::check(problem, &Boxes::of(problem)?)),
    }
}

/// Returns the values of the uniform buffer: the parameters, an infinity and a NaN, which WGSL cannot write as
/// literals, and the parameters that vary, of each stage of a dispatch. Both parts fill words of 16 bytes.
pub fn uniforms(parameters: &[f64], varying: &[f64], dtype: DType) -> Vec<f64> {
    let word = word(dtype);
    let mut values = [parameters, &[f64::INFINITY, f64::NAN]].concat();
    values.resize(values.len().next_multiple_of(word), 0.0);
    values.extend(varying);
    values.resize(values.len().next_multiple_of(word), 0.0);
    values
}

/// Returns the number of the stages that a dispatch of a plan carries out, for which [`uniforms`] have what varies.
pub fn levels(problem: &Problem, plan: &Plan) -> usize {
    match plan.schedule {
        Schedule::Stepwise(_) => 1,
        _ => problem.program.stages().len() * plan.depth as usize,
    }
}

/// Returns the values in 16 bytes.
fn word(dtype: DType) -> usize {
    16 / dtype.bytes()
}

/// Returns the stages of a plain problem as they are lowered: simplified.
fn prepared(problem: &Problem) -> Result<Vec<Stage>> {
    problem.check()?;
    let cells = problem.shape.cells();
    if cells > MAX_CELLS {
        return Err(Error::limit(
            "cells of a domain on wgpu",
            cells,
            MAX_CELLS,
            "choose a smaller size or another backend",
        ));
    }
    Ok(problem.program.simplified(problem.dtype).stages().to_vec())
}

fn kernel(problem: &Problem, stage: &Stage, tiles: &Stepwise, in_tile: bool) -> Kernel {
    let program = &*problem.program;
    let staged = if in_tile { staged_fields(stage) } else { Vec::new() };
    let side: [usize; 3] = std::array::from_fn(|axis| tiles.tile[axis] + 2 * stage.footprint.radius[axis]);
    let staged_bytes = staged.len() * side.iter().product::<usize>() * problem.dtype.bytes();
    let keeps = keeps(problem, program);
    let pieces = Pieces { cells: problem.shape.cells(), piece: tiles.piece_cells };
    let bindings = bindings(program, stage, keeps, &pieces);
    let workgroups = tiles.blocks(problem.shape.padded());
    let looped = stage.looped.as_ref().filter(|_| tiles.lowering == Lowering::Loops);
    let body = body(problem, stage, looped.map(|looped| (looped, tiles.rows)), side, &staged, &pieces);

    let mut text = header(problem, &format!("stage {:?}", stage.name), &bindings, [1, 1]);
    if bindings.contains(&Binding::VaryingParameters) {
        text.push("// A dispatch is of one stage.");
        constant(&mut text, "level", 0);
    }
    pieces.functions(&mut text, &bindings);
    problem_constants(&mut text, Axes::PADDED, problem);
    constants(&mut text, stage, tiles, workgroups, staged.len());
    if let Some(looped) = looped {
        loops::tables(&mut text, &Wgsl::of(program), problem.dtype, 0, looped, &[]);
    }
    let template = if staged.is_empty() { DIRECT } else { TILE };
    let each_staged = |line: &dyn Fn(usize, usize) -> String| -> Text {
        staged.iter().enumerate().map(|(slot, &field)| line(slot, field)).collect()
    };
    let stores = |value: &dyn Fn(usize) -> String| -> Text {
        let stores = stage.writes.iter().enumerate();
        stores.map(|(output, &field)| pieces.store(field, "at", &value(output))).collect()
    };
    let mut computing: Text = body.statements.iter().collect();
    computing.push(stores(&|output| body.outputs[output].clone()));
    let keeping =
        if keeps { stores(&|output| pieces.load(stage.writes[output], "at")) } else { Text::default() };
    let text = finished(
        text,
        problem.dtype,
        template,
        &[
            ("domain", domain()),
            ("taps", tap_functions(staged_fields(stage), |field| pieces.load(field, "at"))),
            (
                "load",
                each_staged(&|slot, field| {
                    format!("tile[slot{}] = {};", volumes(slot), pieces.load(field, "at"))
                }),
            ),
            ("fill", each_staged(&|slot, _| format!("tile[slot{}] = value;", volumes(slot)))),
            ("formula", computing),
            ("keep", keeping),
        ],
    );
    Kernel {
        name: stage.name.clone(),
        text,
        bindings,
        piece_cells: pieces.piece,
        threads: tiles.threads_per_block(),
        workgroups: workgroups.iter().product(),
        workgroup_bytes: staged_bytes.next_multiple_of(16),
    }
}

/// Returns the whole text: its beginning, a kernel's body with its parts, and the functions that it calls.
fn finished(mut text: Text, dtype: DType, body: &str, parts: &[(&str, Text)]) -> String {
    text.filled(body, parts);
    called(&mut text, dtype);
    text.into()
}

/// Writes the elementary functions that a text calls.
fn called(text: &mut Text, dtype: DType) {
    let is_called = |function: &&Function| text.as_ref().contains(&format!("formula_{}(", function.name()));
    let all = Function::ALL.iter().filter(is_called).copied().collect();
    let (operations, fraction) = match dtype {
        DType::F32 => (FUNCTIONS_F32, RANDOM_F32),
        DType::F64 => (FUNCTIONS_F64, RANDOM_F64),
    };
    functions::write(text, operations, &Wgsl::here(), dtype, &all);
    if text.as_ref().contains("round_") {
        text.file(PRECISION);
    }
    if text.as_ref().contains("drawn(") {
        text.file(RANDOM);
        text.file(fraction);
    }
}

fn volumes(slot: usize) -> String {
    if slot == 0 { String::new() } else { format!(" + {slot} * VOLUME") }
}

/// Checks whether any cell is at a fixed side. Where one is, every written field's old values must be at
/// hand.
fn keeps(problem: &Problem, program: &Program) -> bool {
    let radius = program.radius();
    (0..3).any(|axis| radius[axis] > 0 && problem.boundaries.0[axis].contains(&Boundary::Fixed))
}

fn bindings(program: &Program, stage: &Stage, keeps: bool, pieces: &Pieces) -> Vec<Binding> {
    let fields = 0..program.fields().len();
    let old = |field: &usize| {
        stage.footprint.field_radius[*field].is_some() || (keeps && stage.writes.contains(field))
    };
    let parameters = parameters(program, std::slice::from_ref(stage));
    let olds = fields.filter(old).flat_map(|field| pieces.bindings(move |piece| Binding::Old(field, piece)));
    let news =
        stage.writes.iter().flat_map(|&field| pieces.bindings(move |piece| Binding::New(field, piece)));
    parameters.into_iter().chain(olds).chain(news).collect()
}

/// Returns the binding of what stages read from the uniform buffer.
fn parameters(program: &Program, stages: &[Stage]) -> Option<Binding> {
    let varies = !program.varying().is_empty();
    let binding = if varies { Binding::VaryingParameters } else { Binding::Parameters };
    stages.iter().any(uses_parameters).then_some(binding)
}

/// Checks whether a stage's formula reads the uniform buffer.
fn uses_parameters(stage: &Stage) -> bool {
    let uses = |node: &Node| match node {
        Node::Param(_) => true,
        Node::Const(c) => !c.value().is_finite(),
        _ => false,
    };
    let looped = || stage.looped.iter().flat_map(|looped| &looped.terms);
    stage.dag.nodes.iter().any(uses) || looped().any(|term| matches!(term, Term::Node(node) if uses(node)))
}

/// Returns the beginning of a kernel's text: a comment that names the kernel, and its bindings. Fields are
/// bound as vectors of `lanes` values. A dispatch carries out so many `levels`, each a stage.
fn header(problem: &Problem, part: &str, bindings: &[Binding], [lanes, levels]: [usize; 2]) -> Text {
    let (program, shape, dtype) = (problem.program.name(), problem.shape, problem.dtype);
    let boundaries = problem.boundaries.describe(shape.dimensions());
    let mut text = Text::default();
    // Names are quoted, so that none can end the comment.
    text.push(format!("// {program:?}, {part}, on {shape} {dtype}, boundary {boundaries}"));
    text.blank();
    text.push(format!("alias real = {dtype};"));
    text.blank();
    uniform_structs(&mut text, problem, bindings, levels);
    binding_lines(&mut text, &problem.program, bindings, lanes);
    text
}

/// Writes the structs of the uniform buffers among the bindings.
fn uniform_structs(text: &mut Text, problem: &Problem, bindings: &[Binding], levels: usize) {
    let program = &*problem.program;
    if bindings.contains(&Binding::Steps) {
        text.extend(["struct Run {", "steps: u32,", "}"]);
    }
    let varies = bindings.contains(&Binding::VaryingParameters);
    if varies || bindings.contains(&Binding::Parameters) {
        let parameters = program.parameters().iter().enumerate();
        text.push("struct Parameters {");
        text.extend(parameters.map(|(number, own)| format!("p{number}: real, // {:?}", own.name)));
        text.extend(["infinity: real,", "nan: real,"]);
        let (word, values) = (word(problem.dtype), levels * program.varying().len());
        let words = values.div_ceil(word);
        text.extend(varies.then(|| format!("varied: array<vec{word}<real>, {words}>,")));
        text.push("}");
        if varies {
            text.push("fn varied(place: i32) -> real {");
            text.push(format!("return parameters.varied[place / {word}][place % {word}];"));
            text.push("}");
        }
    }
}

fn binding_lines(text: &mut Text, program: &Program, bindings: &[Binding], lanes: usize) {
    let element = vector(lanes);
    for (number, binding) in bindings.iter().enumerate() {
        let variable = match *binding {
            Binding::Parameters | Binding::VaryingParameters => {
                "var<uniform> parameters: Parameters;".to_owned()
            }
            Binding::Steps => "var<uniform> run: Run;".to_owned(),
            Binding::Old(field, piece) => {
                let (name, of) = (pieces::old(field, piece), &program.fields()[field]);
                format!("var<storage, read> {name}: array<{element}>; // {of:?}")
            }
            Binding::New(field, piece) => {
                format!("var<storage, read_write> {}: array<{element}>;", pieces::new(field, piece))
            }
        };
        text.push(format!("@group(0) @binding({number}) {variable}"));
    }
    text.blank();
}

/// Returns the type of `lanes` values of a row.
fn vector(lanes: usize) -> String {
    if lanes == 1 { "real".to_owned() } else { format!("vec{lanes}<real>") }
}

/// Writes the extents, boundaries and computed cells of the axes that a kernel calls S, Y and X.
fn problem_constants(text: &mut Text, axes: Axes, problem: &Problem) {
    let (extents, radius) = (problem.shape.padded(), problem.program.radius());
    domain_constants(text, axes, extents, &problem.boundaries, radius, problem.dtype);
}

fn domain_constants(
    text: &mut Text,
    axes: Axes,
    extents: [usize; 3],
    boundaries: &Boundaries,
    radius: [usize; 3],
    dtype: DType,
) {
    for ([letter, _], axis) in LETTERS.into_iter().zip(axes.0) {
        let computed = boundaries.computed(axis, extents[axis], radius[axis]);
        for (name, value) in [("EXTENT", extents[axis]), ("FIRST", computed.start), ("END", computed.end)] {
            constant(text, &format!("{name}_{letter}"), value);
        }
        for (side, boundary) in ["LOW", "HIGH"].into_iter().zip(boundaries.0[axis]) {
            let value = language::literal(dtype, boundary.value());
            constant(text, &format!("{side}_{letter}"), boundary.constant());
            text.push(format!("const {side}_VALUE_{letter}: real = {value};"));
        }
    }
}

fn constant(text: &mut Text, name: &str, value: impl Display) {
    text.push(format!("const {name}: i32 = {value};"));
}

/// Writes the constants of the tile.
fn constants(text: &mut Text, stage: &Stage, tiles: &Stepwise, workgroups: [usize; 3], staged: usize) {
    for (axis, [letter, _]) in LETTERS.into_iter().enumerate() {
        let numbers = [
            ("RADIUS", stage.footprint.radius[axis]),
            ("TILE", tiles.tile[axis]),
            ("THREADS", tiles.threads[axis]),
            ("BLOCKS", workgroups[axis]),
        ];
        for (name, value) in numbers {
            constant(text, &format!("{name}_{letter}"), value);
        }
    }
    text.push(COUNTS);
    if staged > 0 {
        constant(text, "STAGED", staged);
    }
}

/// Returns the text by which a kernel finds the cell that a tap means: the boundary kinds, and `domain.wgsl`.
fn domain() -> Text {
    let mut text = Text::default();
    boundary::wgsl(&mut text);
    text.file(DOMAIN);
    text
}

/// Returns the formula with its taps, which read from the tile, from the cell's own place, or through the
/// boundary.
fn body(
    problem: &Problem,
    stage: &Stage,
    looped: Option<(&Looped, usize)>,
    side: [usize; 3],
    staged: &[usize],
    pieces: &Pieces,
) -> Formula {
    let tap = |tap: Tap| {
        let field = tap.field as usize;
        let [ds, dy, dx] = tap.offset.map(|offset| offset as isize);
        match staged.iter().position(|&f| f == field) {
            Some(slot) => {
                let from_here = (ds * side[1] as isize + dy) * side[2] as isize + dx;
                format!("tile[here{}{}]", volumes(slot), moved(from_here))
            }
            None if tap.offset == [0; 3] => pieces.load(field, "at"),
            None => format!("tap_{field}(s{}, y{}, x{})", moved(ds), moved(dy), moved(dx)),
        }
    };
    let language = Wgsl::of(&problem.program);
    match looped {
        // Bindings have no index.
        Some((looped, rows)) => {
            let component = |_: Tap, _: [i64; 2], _: &str| None;
            let tables = loops::table_texts(0, looped, &[]);
            let alone = looped.outputs.len();
            // What loops store goes by way of a local array.
            let store = |first: usize, index: &str, value: &str| {
                format!("stored[{} + {index}] = {value};", first - alone)
            };
            let reads = Reads { tap, component, store: &store };
            let together = Joint { rows, team: 1 };
            let mut body = loops::formula(looped, &language, problem.dtype, &tables, together, reads);
            if looped.stored > 0 {
                body.statements.insert(0, format!("var stored: array<real, {}>;", looped.stored));
                body.outputs.extend((0..looped.stored).map(|number| format!("stored[{number}]")));
            }
            body
        }
        None => formula(&stage.dag, &language, problem.dtype, tap),
    }
}

fn moved(offset: isize) -> String {
    match offset {
        0 => String::new(),
        1.. => format!(" + {offset}"),
        _ => format!(" - {}", -offset),
    }
}

/// Returns a function per field that reads the field through the boundary; `load` returns the expression that
/// reads a field at an index `at`.
fn tap_functions(fields: impl IntoIterator<Item = usize>, load: impl Fn(usize) -> String) -> Text {
    let mut text = Text::default();
    for field in fields {
        text.push(format!("fn tap_{field}(s: i32, y: i32, x: i32) -> real {{"));
        text.push("let at = place(s, y, x);");
        text.push("if at < 0 { return ghost(s, y, x); }");
        text.push(format!("return {};", load(field)));
        text.push("}");
    }
    text
}

#[cfg(test)]
mod tests;
