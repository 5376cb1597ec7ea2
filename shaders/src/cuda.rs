//! CUDA C++ kernels: constants and formulas from a plan, bodies from `kernels/cuda`.

mod addresses;
mod arguments;
mod clock;
mod count;
mod few;
mod functions;
mod krylov;
mod late;
mod meet;
mod noted;
mod pitch;
mod program;
mod puts;
mod quotients;
mod resident;
mod streaming;

use std::collections::HashSet;
use std::fmt::Display;

use abide_core::domain::Axes;
use abide_core::expr::{Cells, Tap, Unary};
use abide_core::plan::{Lowering, Persistent, Schedule, Stepwise, Synchronisation, staged_fields};
use abide_core::{Boundary, DType, Error, Neighbourhood, Plan, Problem, Program, Result, Stage};

use self::few::Few;
use self::quotients::{QUOTIENTS, evaluated};
use crate::boundary;
use crate::emit::{Language, Told, formula};
use crate::loops::{self, Joint, Reads};
use crate::text::{LETTERS, Text};

pub use arguments::{KrylovArguments, KrylovArrays, KrylovNumbers, KrylovShare};
pub use clock::{ClockArguments, clock_kernels, stretch_entry};
pub use count::{COUNT, COUNT_ENTRIES, count_entry, count_launch};
pub use functions::{EACH_THREADS, Whose, each_entry, each_kernels};
pub use krylov::{KRYLOV_ALWAYS, KRYLOV_ENTRY, KRYLOV_STATE_OWN, krylov};
pub use meet::{COUNTER_STRIDE, IDLE, MEET_ALL, MEET_BESIDE, MEET_THREADS, meet, meet_half, met};
pub use noted::Noted;
pub use pitch::{buffer_pitch, pitched_bytes, pitched_cells, pitched_values, row_pitch};
pub use program::{
    ChainKernel, KernelLaunch, Launched, LoopKernels, ProgramKernels, STEPS_ENTRY, StageKernels, StepEnd,
    TaskSchedule, persistent_kernels, program_kernels, program_scalars,
};
pub use puts::{
    PUTS, PUTS_ENTRY, PUTS_GIVEN_UP, PUTS_LATE, PUTS_PIECES, PUTS_POST, PUTS_THREADS, PUTS_WAYS,
    PutsExchange, PutsWay,
};
pub use resident::exchange_bytes;

const COPIES: &str = include_str!("../kernels/cuda/common/copies.cuh");
const BESIDE: &str = include_str!("../kernels/cuda/persistent/beside.cuh");
const DEVICE: &str = concat!(
    include_str!("../kernels/cuda/common/device.cuh"),
    include_str!("../kernels/cuda/common/precision.cuh")
);
const FUNCTIONS: &str = include_str!("../kernels/cuda/common/functions.cuh");
const COMMON: &str = include_str!("../kernels/cuda/common/common.cuh");
const TREE: &str = include_str!("../kernels/cuda/common/tree.cuh");
const BLOCK: &str = include_str!("../kernels/cuda/persistent/block.cuh");
const SWEEP: &str = include_str!("../kernels/cuda/common/sweep.cuh");
const PERSISTENT: &str = include_str!("../kernels/cuda/persistent/persistent.cu");
const RANDOM: &str = include_str!("../kernels/cuda/common/random.cuh");
const POINTS: &str = include_str!("../kernels/cuda/common/points.cuh");
const STEPWISE_POINTS: &str = include_str!("../kernels/cuda/stepwise/points.cuh");
const STEPWISE_TEAM: &str = include_str!("../kernels/cuda/stepwise/team.cuh");
const STEPWISE_TABLES: &str = include_str!("../kernels/cuda/stepwise/tables.cuh");
const STEPWISE: &str = include_str!("../kernels/cuda/stepwise/stepwise.cu");

/// The name of the persistent kernel.
pub const PERSISTENT_ENTRY: &str = "persistent";

/// The name of the kernel that keeps the whole domain on the chip.
pub const RESIDENT_ENTRY: &str = "resident";

/// The name of the streaming kernel.
pub const STREAM_ENTRY: &str = "stream";

/// Returns the name of a stage's kernel.
pub fn stage_entry(stage: usize) -> String {
    format!("stage_{stage}")
}

/// The options that make CUDA round as every other backend does: no contraction, no flushing of subnormals,
/// precise division and root.
pub const COMPILE_OPTIONS: [&str; 5] =
    ["--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"];

/// CUDA C++ for [`crate::emit`].
struct Cuda {
    /// The offset of the arriving plane from the cell's, where planes arrive one by one.
    plane: Option<i32>,
    /// Whether `exact` of `quotients.cuh` divides and takes roots.
    at_once: bool,
    /// Whether values are of several points of a thread.
    points: bool,
    /// Where choices are made in few cells that bodies are told of.
    few: Option<Few>,
    /// The fields whose values are of binary32 or fewer bits, where such values have a type of their own.
    singles: Option<Vec<u16>>,
}

impl Cuda {
    /// Formulas of plain programs.
    const PLAIN: Cuda = Cuda { plane: None, at_once: false, points: false, few: None, singles: None };
    /// Formulas of plain programs that go over several points of a thread.
    const OF_POINTS: Cuda = Cuda { plane: None, at_once: false, points: true, few: None, singles: None };
}

impl Language for Cuda {
    fn real(&self, _: DType) -> &'static str {
        if self.points { "Points" } else { "real" }
    }

    fn literal(&self, dtype: DType, value: f64) -> String {
        literal(dtype, value)
    }

    fn declare(&self, dtype: DType, name: &str, value: &str) -> String {
        let of = match (self.points, dtype, &self.singles) {
            // What is the same for all points stays one number.
            (true, ..) => "auto",
            (_, DType::F32, Some(_)) => "float",
            _ => "real",
        };
        format!("const {of} {name} = {value}")
    }

    fn singles(&self) -> Option<&[u16]> {
        self.singles.as_deref()
    }

    fn variable(&self, _: DType, name: &str, value: &str) -> Option<String> {
        (!self.points).then(|| format!("real {name} = {value}"))
    }

    fn told(&self, axis: usize, cells: Cells) -> Option<Told> {
        self.few?.told(axis, cells)
    }

    fn placed(&self) -> Option<usize> {
        let few = self.few?;
        few.chooses.then_some(few.swept())
    }

    fn choose(&self, condition: &str, yes: &str, no: &str) -> String {
        match self.points {
            true => format!("choose({condition}, {yes}, {no})"),
            false => format!("{condition} ? {yes} : {no}"),
        }
    }

    fn own<'t>(&self, c: &'t str, _: &'t str) -> &'t str {
        c
    }

    fn divide(&self, a: &str, b: &str) -> String {
        if self.at_once { format!("exact.divide({a}, {b})") } else { format!("{a} / {b}") }
    }

    fn divide_asked(&self, a: &str, b: &str) -> String {
        if self.at_once { format!("exact.divide_asked({a}, {b})") } else { self.divide(a, b) }
    }

    fn divide_by(&self, dtype: DType, a: &str, constant: f64) -> String {
        let inverse = match dtype {
            DType::F32 => f64::from(1.0 / constant as f32),
            DType::F64 => 1.0 / constant,
        };
        let [b, y] = [constant, inverse].map(|value| literal(dtype, value));
        match constant.abs() {
            // Of ordinary size in both types (quotients.cuh).
            1e-18..=1e18 if self.at_once => format!("exact.divide({a}, {b}, {y})"),
            _ => self.divide(a, &b),
        }
    }

    fn function(&self, op: Unary) -> &'static str {
        if self.at_once && op == Unary::Sqrt { "exact.root" } else { op.c() }
    }

    fn coordinate(&self, dtype: DType, axis: u8) -> String {
        match self.plane {
            None if dtype == DType::F32 && self.singles.is_some() => {
                format!("u.template coordinate<{axis}, float>()")
            }
            Some(plane) => format!("u.template coordinate<{axis}, {plane}>()"),
            None => format!("u.template coordinate<{axis}>()"),
        }
    }

    fn parameter(&self, number: u16) -> String {
        format!("u.template parameter<{number}>()")
    }
}

/// Returns a literal that the compiler reads back as exactly this value.
fn literal(dtype: DType, value: f64) -> String {
    let suffix = if dtype == DType::F32 { "f" } else { "" };
    if value.is_nan() {
        return match dtype {
            DType::F32 => "__int_as_float(0x7fc00000)".to_owned(),
            DType::F64 => "__longlong_as_double(0x7ff8000000000000ll)".to_owned(),
        };
    }
    if value.is_infinite() {
        let sign = if value < 0.0 { "-" } else { "" };
        return match dtype {
            DType::F32 => format!("({sign}__int_as_float(0x7f800000))"),
            DType::F64 => format!("({sign}__longlong_as_double(0x7ff0000000000000ll))"),
        };
    }
    // Rust's shortest decimal that reads back exactly; the compiler rounds correctly.
    let digits = match dtype {
        DType::F32 => format!("{:?}", value as f32),
        DType::F64 => format!("{value:?}"),
    };
    if value.is_sign_negative() { format!("({digits}{suffix})") } else { format!("{digits}{suffix}") }
}

/// The text of a plan's kernels.
#[derive(Debug, Clone)]
pub struct Source {
    /// The text.
    pub text: String,
    /// Of a program that is not plain, the kernels in the text and their launches.
    pub program: Option<ProgramKernels>,
}

/// Returns the text of a plan's kernels, and of a program that is not plain how they are launched.
///
/// # Errors
///
/// [`Error::Invalid`] for a plan of another backend or problem.
pub fn source(problem: &Problem, plan: &Plan) -> Result<Source> {
    plan.check(problem)?;
    let of_program = |mut kernels: ProgramKernels| {
        let text = std::mem::take(&mut kernels.text);
        Ok(Source { text, program: Some(kernels) })
    };
    if let Some(tiles) = plan.stepwise().filter(|_| !problem.is_plain()) {
        return of_program(program_kernels(&plan.split_problem(problem)?, tiles)?);
    }
    if let Some(persistent) = plan.persistent_program() {
        return of_program(persistent_kernels(&plan.split_problem(problem)?, persistent)?);
    }
    let program = problem.program.simplified(problem.dtype);
    let text = match &plan.schedule {
        Schedule::Persistent(tiles) => persistent(problem, &program, tiles),
        Schedule::Resident(tiles) => resident::resident(problem, &program, tiles, plan.is_at_once()),
        Schedule::Stepwise(tiles) => stepwise(problem, &program, tiles),
        Schedule::WarpStreaming(streaming) => streaming::streaming(problem, &program, streaming),
        Schedule::Cpu(_)
        | Schedule::Overlapped(_)
        | Schedule::PortableStreaming(_)
        | Schedule::PersistentProgram(_) => {
            return Err(Error::invalid("plan", "it is a CPU's or for wgpu", "make a plan for a CUDA device"));
        }
    };
    Ok(Source { text, program: None })
}

/// Returns the text of a plan's kernels, as [`source`] does.
pub fn kernel(problem: &Problem, plan: &Plan) -> Result<String> {
    Ok(source(problem, plan)?.text)
}

fn persistent(problem: &Problem, program: &Program, persistent: &Persistent) -> String {
    let mut text = constants(problem, program);
    let mut define = |name: &str, value: usize| constant(&mut text, name, value);
    define("THREADS_Y", persistent.threads[0]);
    define("THREADS_X", persistent.threads[1]);
    define("OWN_Y", persistent.cells_per_thread[0]);
    define("OWN_X", persistent.cells_per_thread[1]);
    define("TILES_S", persistent.tiles[0]);
    define("TILES_Y", persistent.tiles[1]);
    define("TILES_X", persistent.tiles[2]);
    define("BLOCKS", persistent.blocks);
    define("BLOCKS_PER_MULTIPROCESSOR", persistent.blocks_per_multiprocessor);
    define("PLANES_LEAST", persistent.planes[0]);
    define("PLANES_REGISTERS", persistent.planes_registers);
    define("PLANES_SHARED", persistent.planes_shared);
    define("CHUNK", persistent.chunk);
    define("HALO_AHEAD", persistent.halo_ahead);
    define("NEIGHBOURS", usize::from(persistent.synchronisation == Synchronisation::Neighbours));
    text.file(COMMON);
    let stages = 0..program.stages().len();
    let parts = Parts { staged: true, tiles: None };
    stages.clone().for_each(|number| stage(&mut text, problem, program, number, parts));
    text.file(BESIDE);
    text.file(BLOCK);
    text.file(SWEEP);
    let step = stages.map(|number| format!("stage<Stage{number}>(block, kept, flags, done);"));
    text.filled(PERSISTENT, &[("step", step.collect())]);
    text.into()
}

/// How a stage of a launch begins where each block has one tile.
const BEGIN: [&str; 3] = [
    "DYNAMIC_SHARED;",
    "real* tile = reinterpret_cast<real*>(shared);",
    "const unsigned block = blockIdx.x;",
];

/// How it begins and ends where each block loads the stage's tables, and goes over tiles.
const BEGIN_WITH_TABLES: [&str; 4] = [
    "real* tile = shared_values() + S::TABLE_VALUES;",
    "S::load_tables(shared_values());",
    "__syncthreads();",
    "for (unsigned block = blockIdx.x; block < TILES; block += LAUNCHED) {",
];
const END_WITH_TABLES: [&str; 2] = ["if constexpr (S::STAGED && S::WIDE > 0) __syncthreads();", "}"];

fn stepwise(problem: &Problem, program: &Program, tiles: &Stepwise) -> String {
    let mut text = constants(problem, program);
    let axes = Axes::of(problem.shape.dimensions());
    for ([letter, _], (cells, threads)) in
        LETTERS.iter().zip(axes.order(tiles.tile).iter().zip(axes.order(tiles.threads)))
    {
        constant(&mut text, &format!("TILE_{letter}"), *cells);
        constant(&mut text, &format!("THREADS_{letter}"), threads);
    }
    constant(&mut text, "POINTS", tiles.points);
    constant(&mut text, "TEAM", tiles.team);
    let cells = tiles.tile.iter().product();
    constant(&mut text, "BESIDE", if tiles.is_repeated { cells } else { 1 });
    if let Some(launched) = tiles.launched {
        constant(&mut text, "LAUNCHED", launched);
    }
    text.file(COMMON);
    if tiles.launched.is_some() {
        text.file(STEPWISE_TABLES);
    }
    addresses::write(&mut text, problem, program);
    let is_at_once = |number: usize| language(&program.stages()[number], Some(tiles)).at_once;
    if (0..program.stages().len()).any(is_at_once) {
        let nodes = program.stages().iter().flat_map(|stage| &stage.dag.nodes);
        if crate::functions::of(nodes).is_empty() {
            text.file(FUNCTIONS);
        }
        text.file(QUOTIENTS);
    }
    let (begin, end): (&[&str], &[&str]) = match tiles.launched {
        None => (&BEGIN, &[]),
        Some(_) => (&BEGIN_WITH_TABLES, &END_WITH_TABLES),
    };
    text.filled(STEPWISE, &[("begin", begin.iter().collect()), ("end", end.iter().collect())]);
    if tiles.points > 1 {
        points(&mut text, program, tiles.points);
    }
    if tiles.team > 1 {
        text.file(TREE);
        text.file(STEPWISE_TEAM);
    }
    for number in 0..program.stages().len() {
        let parts = Parts { staged: tiles.shared_bytes[number] > 0, tiles: Some(tiles) };
        stage(&mut text, problem, program, number, parts);
        text.push("extern \"C\" __global__ void __launch_bounds__(THREADS)");
        text.push(format!(
            "{}(const __grid_constant__ Buffers buffers, const __grid_constant__ Parameters parameters)",
            stage_entry(number)
        ));
        text.push("{");
        text.push(format!("stage<Stage{number}>(buffers, parameters);"));
        text.push("}");
    }
    text.into()
}

/// Writes what formulas of several points need: their operations, and the elementary functions that they call.
fn points(text: &mut Text, program: &Program, count: usize) {
    text.file(POINTS);
    if crate::functions::draws(program) {
        text.push("__device__ __forceinline__ Points drawn(const Points& z, const Points& y, const Points& x, real seed, real step, real turn, unsigned stream, unsigned part)");
        text.push("{ return each_point([&](int k) { return drawn(z.at[k], y.at[k], x.at[k], seed, step, turn, stream, part); }); }");
    }
    let nodes = program.stages().iter().flat_map(|stage| &stage.dag.nodes);
    for function in crate::functions::of(nodes) {
        let name = format!("formula_{}", function.name());
        let (arguments, values) = match function.arguments() {
            1 => ("const Points& a", "a.at[k]"),
            _ => ("const Points& a, const Points& b", "a.at[k], b.at[k]"),
        };
        text.push(format!("__device__ __forceinline__ Points {name}({arguments}) {{ return each_point([&](int k) {{ return {name}({values}); }}); }}"));
    }
    let views: Vec<String> = (0..count).map(|k| format!("view({k})")).collect();
    let views = format!("const Views<S> views = {{{{{}}}}};", views.join(", "));
    text.filled(STEPWISE_POINTS, &[("views", [views].into_iter().collect())]);
}

fn constant(text: &mut Text, name: &str, value: impl Display) {
    text.push(format!("constexpr int {name} = {value};"));
}

/// Returns the types and constants of the problem: extents, strides, boundaries, fixed zones, and how fields
/// are tapped and written.
fn constants(problem: &Problem, program: &Program) -> Text {
    let axes = Axes::of(problem.shape.dimensions());
    let padded = problem.shape.padded();
    let pitch = row_pitch(problem);
    let strides = [padded[1] * pitch, pitch, 1];
    let (real, vector) = match problem.dtype {
        DType::F32 => ("float", "float4"),
        DType::F64 => ("double", "double2"),
    };
    // Halos reach beyond the domain; leave room below the limit of 32 bits.
    let offset = if pitched_cells(problem) < (1 << 30) { "int" } else { "long long" };
    let mut text = Text::default();
    text.push(format!(
        "// {} on {} {}, boundary {}",
        program.name(),
        problem.shape,
        problem.dtype,
        problem.boundaries.describe(problem.shape.dimensions()),
    ));
    text.file(DEVICE);
    text.blank();
    text.push(format!("typedef {real} real;"));
    text.push(format!("typedef {vector} DeviceVector;"));
    text.push(format!("typedef {offset} Offset;"));
    boundary::c(&mut text);
    let mut line = |what: String| text.push(format!("constexpr {what};"));
    // The program as it was written says how many cells are fixed, even if simplification dropped its
    // farthest tap.
    let (fixed, radius) = (problem.boundaries.0, problem.program.radius());
    for ([letter, _], axis) in LETTERS.iter().zip(axes.0) {
        line(format!("int AXIS_{letter} = {axis}"));
        line(format!("Offset EXTENT_{letter} = {}", padded[axis]));
        line(format!("Offset STRIDE_{letter} = {}", strides[axis]));
        line(format!("int FIX_{letter} = {}", radius[axis]));
        for (side, name) in fixed[axis].iter().zip(["LOW", "HIGH"]) {
            line(format!("int {name}_{letter} = {}", side.constant()));
            line(format!("real {name}_VALUE_{letter} = real({:?})", side.value()));
        }
    }
    let sides = || axes.0.iter().filter(|&&axis| radius[axis] > 0).flat_map(|&axis| fixed[axis]);
    line(format!("Offset PITCH = {pitch}"));
    line(format!("bool HAS_FIXED = {}", sides().any(|b| b == Boundary::Fixed)));
    line(format!("bool HAS_CONSTANT = {}", sides().any(|b| b.held().is_some())));
    line(format!("int FIELDS = {}", program.fields().len()));
    line(format!("int ARRAYS = {}", program.arrays().len()));
    parameters(&mut text, program.parameters().len(), &program.varying(), program.stages().len());
    text.push(format!("constexpr bool NOTES = {};", !problem.noted.is_empty()));
    text.push("struct Buffers { real* current[ARRAYS]; real* next[ARRAYS]; };");
    text.push("// How far into a neighbour any stage taps a field along S, Y and X, and whether any stage writes it.");
    // Neighbours of the same value are told together: components may be thousands.
    let per_field = |of: &dyn Fn(usize) -> String| -> String {
        let mut runs: Vec<(usize, String)> = Vec::new();
        for field in 0..program.fields().len() {
            let value = of(field);
            match runs.last_mut() {
                Some((end, known)) if *known == value => *end = field + 1,
                _ => runs.push((field + 1, value)),
            }
        }
        runs.into_iter().map(|(end, value)| format!("F < {end} ? {value} : ")).collect()
    };
    let reach = |axis: usize| {
        let of = |f: usize| {
            let radii = program.stages().iter().filter_map(|s| s.footprint.field_radius[f]);
            let radius = radii.map(|r| axes.order(r)[axis]).max().unwrap_or(0);
            radius.max(problem.boundaries.shown_at_side(axes.0[axis], radius)).to_string()
        };
        per_field(&of)
    };
    text.push(format!(
        "template <int F> __device__ constexpr int reach(int axis) \
         {{ return axis == 0 ? ({}0) : axis == 1 ? ({}0) : ({}0); }}",
        reach(0),
        reach(1),
        reach(2)
    ));
    let written: HashSet<usize> = program.stages().iter().flat_map(|stage| &stage.writes).copied().collect();
    let written = per_field(&|f| written.contains(&f).to_string());
    text.push(format!("template <int F> __device__ constexpr bool written() {{ return {written}false; }}"));
    functions_of(&mut text, problem, program);
    text
}

/// Writes how many parameters there are, and which of them vary from one of so many stages to the next.
fn parameters(text: &mut Text, count: usize, varying: &[usize], stages: usize) {
    constant(text, "PARAMETERS", count);
    constant(text, "VARYING", varying.len());
    constant(text, "STAGE_COUNT", stages);
    let places = varying.iter().enumerate().map(|(place, number)| format!("i == {number} ? {place} : "));
    let places: String = places.collect();
    text.push(
        "// The place of a parameter among those that vary from stage to stage; -1 for one that does not.",
    );
    text.push(format!("__device__ constexpr int place_of_varying(int i) {{ return {places}-1; }}"));
}

/// Writes the elementary functions of a program's formulas.
fn functions_of(text: &mut Text, problem: &Problem, program: &Program) {
    let nodes = program.stages().iter().flat_map(|stage| &stage.dag.nodes);
    crate::functions::write(text, FUNCTIONS, &Cuda::PLAIN, problem.dtype, &crate::functions::of(nodes));
    if crate::functions::draws(program) {
        text.file(RANDOM);
    }
}

/// How the kernel of a stage is made.
#[derive(Clone, Copy)]
struct Parts<'a> {
    /// Whether a tile lies in shared memory.
    staged: bool,
    /// The tiles of a launch per stage.
    tiles: Option<&'a Stepwise>,
}

/// Returns how a stage's formula is written.
fn language(stage: &Stage, tiles: Option<&Stepwise>) -> Cuda {
    match tiles {
        Some(tiles) if tiles.lowering == Lowering::Jammed => Cuda::OF_POINTS,
        // A cell for each thread, whose values are all stored where they are made.
        Some(tiles) if tiles.points == 1 && tiles.team == 1 && stage.looped.is_none() => {
            Cuda::of_launch(&stage.dag)
        }
        _ => Cuda::PLAIN,
    }
}

/// Writes the struct of a stage: radii, fields and the formula.
fn stage(
    text: &mut Text,
    problem: &Problem,
    program: &Program,
    number: usize,
    Parts { staged, tiles }: Parts<'_>,
) {
    let lowering = tiles.map_or(Lowering::Straight, |tiles| tiles.lowering);
    let stage = &program.stages()[number];
    let axes = Axes::of(problem.shape.dimensions());
    let [rs, ry, rx] = axes.order(stage.footprint.radius);
    let looped = stage.looped.as_ref().filter(|_| lowering != Lowering::Straight);
    // A launch per stage stores what loops set where it is made: it may be thousands of values.
    let writes = if tiles.is_some() { stage.set_alone() } else { &stage.writes };
    let wide = staged_fields(stage);
    let narrow = narrow_fields(stage, &wide, writes);
    let place = |field: usize, offset: [i32; 3]| {
        let [s, y, x] = axes.order(offset);
        match wide.iter().position(|&f| f == field) {
            Some(w) => format!("u.template wide<{w}, {s}, {y}, {x}>()"),
            None => format!("u.template narrow<{}>()", narrow.iter().position(|&f| f == field).unwrap_or(0)),
        }
    };
    let tap = |tap: Tap| place(tap.field as usize, tap.offset);
    text.blank();
    let language = language(stage, tiles);
    let tables = tiles.and_then(|tiles| tiles.tables.get(number)).map_or(&[][..], |tables| tables);
    let body = match looped {
        Some(looped) => {
            // What a cell itself has is in device memory, of fields that are staged too.
            let component = |first: Tap, _: [i64; 2], index: &str| {
                (first.offset == [0; 3]).then(|| format!("u.template component<{}>({index})", first.field))
            };
            let store = |first: usize, index: &str, value: &str| {
                format!("u.template store<{}>({index}, {value});", stage.writes[first])
            };
            loops::tables(text, &language, problem.dtype, number, looped, tables);
            let tables = loops::table_texts(number, looped, tables);
            let together = Joint {
                rows: tiles.map_or(1, |tiles| tiles.rows),
                team: tiles.map_or(1, |tiles| tiles.team),
            };
            let reads = Reads { tap, component, store: &store };
            loops::formula(looped, &language, problem.dtype, &tables, together, reads)
        }
        None => {
            let mut body = formula(&stage.dag, &language, problem.dtype, tap);
            let stored = body.outputs.split_off(writes.len()).into_iter().zip(&stage.writes[writes.len()..]);
            body.statements
                .extend(stored.map(|(value, field)| format!("u.template store<{field}>(0, {value});")));
            body
        }
    };
    text.push(format!("// {}", stage.name));
    text.push(format!("struct Stage{number} {{"));
    text.push(format!("static constexpr int NUMBER = {number};"));
    text.push(format!("static constexpr int RADIUS_S = {rs}, RADIUS_Y = {ry}, RADIUS_X = {rx};"));
    text.push(format!(
        "static constexpr int WIDE = {}, NARROW = {}, WRITES = {}, VALUES = {};",
        wide.len(),
        narrow.len(),
        writes.len(),
        writes.len().max(1)
    ));
    let boxed = stage.footprint.neighbourhood == Neighbourhood::Box;
    text.push(format!("static constexpr bool STAGED = {staged}, BOX = {boxed};"));
    if let Some(tiles) = tiles.filter(|tiles| tiles.launched.is_some()) {
        let values = tiles.table_bytes(number) / problem.dtype.bytes();
        text.push("// The stage's tables in shared memory.");
        text.push(format!("static constexpr int TABLE_VALUES = {values};"));
        text.push("__device__ static __forceinline__ void load_tables(real* to)\n{");
        text.extend(loops::loads(number, tables));
        text.push("}");
    }
    text.push("// Fields tapped around the cell, fields read at the cell alone, fields written.");
    text.push(list("wide", &wide));
    text.push(list("narrow", &narrow));
    text.push(list("writes", writes));
    text.push(match lowering {
        Lowering::Jammed => method("compute", "VALUES").replace("real (&value)", "Points (&value)"),
        _ => method("compute", "VALUES"),
    });
    let outputs = evaluated(text, &body, &language);
    text.extend(values(&outputs));
    text.push("}");
    text.push(method("keep", "VALUES"));
    text.extend(values(writes.iter().map(|&field| place(field, [0; 3]))));
    text.extend(["}", "};"]);
}

/// Returns the beginning of a stage's function that computes `values` values of a cell from a view.
fn method(name: &str, values: &str) -> String {
    format!(
        "template <class View>\n\
         __device__ static __forceinline__ void {name}(const View& u, real (&value)[{values}])\n{{"
    )
}

/// Returns the statements that store a cell's values.
fn values(all: impl IntoIterator<Item = impl Display>) -> impl Iterator<Item = String> {
    all.into_iter().enumerate().map(|(number, value)| format!("value[{number}] = {value};"))
}

/// Returns the text of a stage's function that lists the numbers of fields.
fn list(name: &str, fields: &[usize]) -> String {
    let numbers: Vec<String> = fields.iter().map(usize::to_string).collect();
    let numbers = if numbers.is_empty() { "-1".to_owned() } else { numbers.join(", ") };
    format!(
        "__device__ static constexpr int {name}(int i) \
         {{ constexpr int list[] = {{{numbers}}}; return list[i]; }}"
    )
}

/// Returns the fields that a stage reads at the cell alone, or writes without reading. A field that is only
/// written counts because its old value is kept where the boundary is fixed.
fn narrow_fields(stage: &Stage, wide: &[usize], writes: &[usize]) -> Vec<usize> {
    let read = |field: usize| stage.footprint.field_radius[field].is_some();
    let fields = 0..stage.footprint.field_radius.len();
    fields.filter(|f| !wide.contains(f) && (read(*f) || writes.contains(f))).collect()
}
