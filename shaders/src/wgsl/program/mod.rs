//! The kernels of programs that are not plain: one or two per stage or group of stages, the same ones for those that
//! do the same.
//!
//! A kernel binds only the buffers that its stage uses. A buffer that is written may be bound once only, so a
//! stage that writes a field where it lies has another kernel than one that writes it elsewhere.

mod group;
mod stages;
mod transform;

use std::collections::{BTreeMap, HashMap};

use abide_core::expr::Binary;
use abide_core::plan::Stepwise;
use abide_core::program::{Boxes, Launch, Launches, StageKind, Storage, Until};
use abide_core::{Array, DType, Error, Problem, Result};

use self::stages::{Body, StageContext, language};
use super::{Access, Bound, Kernel, MAX_CELLS, called};
use crate::boundary;
use crate::emit::Language;
use crate::program::matrices::Matrices;
use crate::program::{Distinct, Kinds, Slot};
use crate::record;
use crate::text::Text;
use crate::wgsl::language::literal;

const PROGRAM: &str = include_str!("../../../kernels/wgsl/program/program.wgsl");
const SINGLE: &str = include_str!("../../../kernels/wgsl/program/f32.wgsl");
const DOUBLE: &str = include_str!("../../../kernels/wgsl/program/f64.wgsl");
const TURN: &str = include_str!("../../../kernels/wgsl/program/turn.wgsl");
const UNTIL: &str = include_str!("../../../kernels/wgsl/program/until.wgsl");

/// Where the numbers of a buffer of [`scalars`] lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScalarLayout {
    /// The type of the fields, in which stages of fields read the parameters and the computed scalars.
    fields: DType,
    /// The type in which scalars are kept and computed.
    kept: DType,
    /// The parameters and computed scalars.
    count: usize,
}

impl ScalarLayout {
    /// Returns the layout for a problem on a device that computes in f64, or does not. Scalars that stages compute are f64
    /// where that can be.
    pub fn of(problem: &Problem, has_f64: bool) -> ScalarLayout {
        let computes = problem.program.stages().iter().any(|stage| stage.does.scalar().is_some());
        let kept = if has_f64 && computes { DType::F64 } else { problem.dtype };
        let count = problem.parameters.len() + problem.scalars.len();
        ScalarLayout { fields: problem.dtype, kept, count }
    }

    /// Returns the type in which scalars are kept and computed.
    pub fn kept(self) -> DType {
        self.kept
    }

    /// Returns whether scalars are kept beside those that stages of fields read.
    fn is_apart(self) -> bool {
        self.kept != self.fields
    }

    /// Returns the text of a scalar as it is kept.
    fn kept_name(self, number: usize) -> String {
        let name = if self.is_apart() { "kept_" } else { "p" };
        format!("parameters.{name}{number}")
    }

    /// Returns the text of a number of the type in which scalars are kept.
    fn literal(self, value: f64) -> String {
        match value.is_finite() {
            true => literal(self.kept, value),
            // These come with the scalars that stages of fields read.
            false => format!("{}({})", self.kept, literal(self.kept, value)),
        }
    }

    /// Returns the statements that set a scalar to the `value` of an expression.
    fn set(self, number: usize, value: &str) -> Text {
        let kept = self.kept_name(number);
        let rounded = || format!("parameters.p{number} = {}({kept});", self.fields);
        let mut text = Text::default();
        match self.is_apart() {
            true => text.extend([format!("{kept} = {}({value});", self.kept), rounded()]),
            false => text.push(format!("{kept} = {value};")),
        }
        text
    }

    /// Returns the place, in bytes, of a scalar as it is kept; parameters come first.
    pub fn kept_at(self, number: usize) -> usize {
        let begin = match self.is_apart() {
            // Behind the rounded scalars, an infinity and a NaN.
            true => (PROGRESS_BYTES + (self.count + 2) * self.fields.bytes()).next_multiple_of(8),
            false => PROGRESS_BYTES,
        };
        begin + number * self.kept.bytes()
    }

    /// Returns what a scalar of this value is in the buffer: places in bytes, and what stands there.
    pub fn value(self, number: usize, value: f64) -> Vec<(usize, Array)> {
        let read = (PROGRESS_BYTES + number * self.fields.bytes(), self.fields);
        let kept = self.is_apart().then(|| (self.kept_at(number), self.kept));
        let of = |(place, dtype)| (place, Array::from_fn(dtype, 1, |_| value));
        std::iter::once(read).chain(kept).map(of).collect()
    }
}

/// WGSL for a formula of scalars.
struct OfScalars(ScalarLayout);

impl Language for OfScalars {
    fn real(&self, dtype: DType) -> &'static str {
        language().real(dtype)
    }

    fn literal(&self, _: DType, value: f64) -> String {
        self.0.literal(value)
    }

    fn declare(&self, dtype: DType, name: &str, value: &str) -> String {
        language().declare(dtype, name, value)
    }

    fn variable(&self, dtype: DType, name: &str, value: &str) -> Option<String> {
        language().variable(dtype, name, value)
    }

    fn choose(&self, condition: &str, yes: &str, no: &str) -> String {
        language().choose(condition, yes, no)
    }

    fn own<'t>(&self, c: &'t str, wgsl: &'t str) -> &'t str {
        language().own(c, wgsl)
    }

    fn coordinate(&self, dtype: DType, axis: u8) -> String {
        language().coordinate(dtype, axis)
    }

    fn parameter(&self, number: u16) -> String {
        self.0.kept_name(usize::from(number))
    }
}

/// The beginning of the buffer of scalars, in bytes: whether the run has ended, and the steps done, each a
/// `u32`. The parameters and the computed scalars follow.
const PROGRESS_BYTES: usize = 8;

/// The most points of a stage, which stand in the kernel's text.
const MAX_POINTS: usize = 4096;

/// The buffer that a program's kernel expects at a binding of group 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// The buffer of [`scalars`].
    Scalars(Access),
    /// The leaves of a reduction.
    Leaves,
    /// The matrices of transforms.
    Matrices,
    /// The buffer of one of the launch's slots, by its number.
    Slot(usize, Access),
}

impl Bound for Place {
    fn access(&self) -> Access {
        match *self {
            Place::Scalars(access) | Place::Slot(_, access) => access,
            Place::Leaves => Access::Write,
            Place::Matrices => Access::Read,
        }
    }
}

/// The kernels of the launches of a [`Storage`].
#[derive(Debug, Clone)]
pub struct ProgramKernels {
    /// All kernels.
    pub kernels: Vec<Kernel<Place>>,
    /// The values of the leaves of reductions.
    pub leaves: usize,
    /// The matrices of transforms.
    pub matrices: Matrices,
    /// The number of the kernel that ends each step where a condition may end the run.
    pub until: Option<usize>,
    /// What goes before each turn of a loop that a condition ends, by the loop's number among the program's phases.
    pub turns: BTreeMap<usize, usize>,
    launches: HashMap<Variant, Dispatches>,
}

/// The kernels that carry out a launch, by their numbers, and the buffers that they name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Dispatches {
    kernels: Vec<usize>,
    slots: Vec<Slot>,
}

/// Stages by their numbers, and which of their outputs are written where they lie.
type Variant = (Vec<usize>, Vec<bool>);

fn variant(launch: &Launch) -> Variant {
    let stays =
        |(&target, buffer): (&usize, &Option<usize>)| buffer.is_some() && launch.reads[target] == *buffer;
    (launch.stages.clone(), launch.made.iter().zip(&launch.writes).map(stays).collect())
}

impl ProgramKernels {
    /// Returns the numbers of a launch's kernels, in order, and the number of each of its slots' buffers.
    pub fn dispatches(&self, launch: &Launch) -> (&[usize], Vec<Option<usize>>) {
        match self.launches.get(&variant(launch)) {
            Some(own) => (&own.kernels, own.slots.iter().map(|slot| slot.buffer(launch)).collect()),
            None => (&[], Vec::new()),
        }
    }
}

/// Returns the bytes of the buffer of scalars before the first step: the progress; the parameters, the computed scalars, an
/// infinity and a NaN, which WGSL cannot write as literals; and, where they are kept in another type than that of the
/// fields, the parameters and computed scalars again in that.
pub fn scalars(problem: &Problem, layout: ScalarLayout) -> Vec<u8> {
    let own = [&problem.parameters[..], &problem.scalars].concat();
    let numbers = [&own[..], &[f64::INFINITY, f64::NAN]].concat();
    let mut bytes = record::bytes(problem.dtype, &[0, 0], &numbers);
    if layout.is_apart() {
        bytes.resize(layout.kept_at(0), 0);
        bytes.extend(record::bytes(layout.kept, &[], &own));
    }
    bytes
}

/// Checks that WGSL can express a problem that is not plain: the sizes of buffers.
pub(super) fn check(problem: &Problem, boxes: &Boxes) -> Result<()> {
    let largest = boxes.buffers.iter().map(|buffer| buffer.len()).max().unwrap_or(0);
    if largest > MAX_CELLS {
        let change = "choose a smaller size or another backend";
        return Err(Error::limit("values of a field on wgpu", largest, MAX_CELLS, change));
    }
    if let Some(stage) = problem.program.stages().iter().find(|stage| stage.points.len() > MAX_POINTS) {
        let (what, change) = (format!("points of stage {} on wgpu", stage.name), "use another backend");
        return Err(Error::limit(what, stage.points.len(), MAX_POINTS, change));
    }
    Ok(())
}

/// Returns the kernels of a problem that is not plain, for the tile of its plan, all launches of a storage and a layout of
/// its scalars. The problem is that whose stages the plan's groups are of (`Partition::split_problem`).
pub fn program_kernels(
    problem: &Problem,
    tiles: &Stepwise,
    storage: &Storage,
    layout: ScalarLayout,
) -> Result<ProgramKernels> {
    let boxes = Boxes::of(problem)?;
    check(problem, &boxes)?;
    let mut stages = problem.program.simplified(problem.dtype).stages().to_vec();
    if layout.kept != DType::F64 {
        // A device without f64 computes them in the type of the fields, of which their constants are numbers then.
        for (stage, own) in stages.iter_mut().zip(problem.program.stages()) {
            if matches!(stage.does, StageKind::Scalar(_)) {
                stage.dag = own.dag.simplified(layout.kept);
            }
        }
    }
    let kinds = Kinds::of(problem, &stages, &boxes, &tiles.partition);
    let matrices = Matrices::of(&problem.program, &boxes);
    let context =
        StageContext { problem, kinds: &kinds, tiles, layout, stages: &stages, matrices: &matrices };
    let mut bodies: Distinct<'_, Body> = Distinct::default();
    let mut launches: HashMap<Variant, Dispatches> = HashMap::new();
    for launch in storage.steps.iter().flat_map(|Launches { launches, .. }| launches) {
        let variant = variant(launch);
        if launches.contains_key(&variant) {
            continue;
        }
        let (made, slots) = match &launch.stages[..] {
            &[number] => context.single(number, &boxes.stages[number], &variant.1),
            all => {
                let fused = tiles.partition.all().find(|group| group.stages == all);
                let Some(fused) = fused.and_then(|group| group.fused.as_ref()) else {
                    let reason = format!("it has no kernel of the stages {all:?}");
                    return Err(Error::invalid("plan", reason, "make a plan for this problem"));
                };
                context.group(&stages, &boxes, fused, &launch.made, &variant.1)
            }
        };
        let numbers = made.into_iter().map(|body| {
            let text = String::from(body.text.as_ref());
            let names: Vec<&str> = launch.stages.iter().map(|&stage| &*stages[stage].name).collect();
            let number = bodies.number(&text, body, names[0]);
            let all = &mut bodies.all[number].1;
            names.into_iter().for_each(|name| {
                if !all.contains(&name) {
                    all.push(name)
                }
            });
            number
        });
        let kernels = numbers.collect();
        launches.insert(variant, Dispatches { kernels, slots });
    }
    // Between the steps of a program with loops the host is there itself.
    let until = problem.until.filter(|_| !problem.program.has_loops()).map(|until| {
        let body = tested(problem, until, layout, UNTIL);
        let text = String::from(body.text.as_ref());
        bodies.number(&text, body, "the end of a step")
    });
    let phases = problem.program.phases().iter().enumerate();
    let turns = phases.filter_map(|(number, phase)| {
        let body = tested(problem, phase.repeat?.until?, layout, TURN);
        let text = String::from(body.text.as_ref());
        Some((number, bodies.number(&text, body, "a turn of a loop")))
    });
    let turns = turns.collect();
    let leaves = bodies.all.iter().map(|(body, _)| body.leaves).max().unwrap_or(0);
    let kernels =
        bodies.all.into_iter().map(|(body, names)| finished(problem, body, &names, layout)).collect();
    Ok(ProgramKernels { kernels, leaves, matrices, until, turns, launches })
}

/// Returns the kernel that counts a step, or a turn of a loop, and tests a condition.
fn tested(problem: &Problem, until: Until, layout: ScalarLayout, what: &str) -> Body {
    let mut text = Text::default();
    text.file(comparisons(layout.kept));
    text.push("fn holds(value: real) -> bool {");
    text.push(match limit(layout.kept, until) {
        Some(limit) => {
            let relation = until.relation.relation().unwrap_or("==");
            format!("return value {relation} {};", layout.literal(limit))
        }
        // No value of the type is the limit.
        None => format!("return {};", until.relation == Binary::NotEqual),
    });
    text.push("}");
    let scalar = problem.program.parameters().len() + until.scalar;
    let value = std::iter::once(format!("let value = {};", layout.kept_name(scalar))).collect();
    let ended = std::iter::once("if parameters.ended != 0u { return; }").collect();
    text.filled(what, &[("ended", ended), ("value", value)]);
    Body { real: layout.kept, ..Body::single(text, problem.dtype) }
}

/// Returns the number of a type that stands for the limit of a condition: every number of the type relates to
/// it as to the limit itself. Returns `None` where the relation is equality and no number of the type is
/// equal.
fn limit(dtype: DType, until: Until) -> Option<f64> {
    let near = match dtype {
        DType::F32 => until.value as f32,
        DType::F64 => return Some(until.value),
    };
    let is_above = f64::from(near) >= until.value;
    let is_below = f64::from(near) <= until.value;
    let up = if is_above { near } else { near.next_up() };
    let down = if is_below { near } else { near.next_down() };
    match until.relation {
        Binary::GreaterEqual | Binary::Less => Some(f64::from(up)),
        Binary::Greater | Binary::LessEqual => Some(f64::from(down)),
        _ => (up == down).then_some(f64::from(near)),
    }
}

/// Returns the file of comparisons that know NaN and the signs of zeros.
fn comparisons(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => SINGLE,
        DType::F64 => DOUBLE,
    }
}

/// Returns the kernel of a body, which stages of these names share: what it needs, and the body behind it.
fn finished(problem: &Problem, body: Body, names: &[&str], layout: ScalarLayout) -> Kernel<Place> {
    let code = body.text.as_ref();
    let mut bindings = Vec::new();
    if code.contains("parameters.") {
        bindings.push(Place::Scalars(body.scalars));
    }
    if body.leaves > 0 {
        bindings.push(Place::Leaves);
    }
    if code.contains("matrices[") {
        bindings.push(Place::Matrices);
    }
    bindings.extend(body.slots.iter().enumerate().map(|(slot, &access)| Place::Slot(slot, access)));
    let (program, shape, dtype) = (problem.program.name(), problem.shape, problem.dtype);
    let mut text = Text::default();
    // Names are quoted, so that none can end the comment.
    text.push(format!("// {program:?} on {shape} {dtype}: {names:?}"));
    text.blank();
    text.push(format!("alias real = {};", body.real));
    text.blank();
    if matches!(bindings.first(), Some(Place::Scalars(_))) {
        let parameters = problem.program.parameters().iter().map(|parameter| &parameter.name);
        let all: Vec<&String> =
            parameters.chain(problem.program.scalars().iter().map(|scalar| &scalar.name)).collect();
        let read = if body.real == dtype { "real".to_owned() } else { dtype.to_string() };
        text.push("// Whether the run has ended, the steps done, the parameters and the computed scalars.");
        text.extend(["struct Scalars {", "ended: u32,", "steps: u32,"]);
        text.extend(all.iter().enumerate().map(|(number, name)| format!("p{number}: {read}, // {name:?}")));
        text.extend([format!("infinity: {read},"), format!("nan: {read},")]);
        if layout.is_apart() && body.scalars == Access::Write {
            let kept = (0..all.len()).map(|number| format!("kept_{number}: {},", layout.kept));
            text.extend(kept);
        }
        text.push("}");
    }
    for (number, binding) in bindings.iter().enumerate() {
        let access = if binding.access() == Access::Write { "read_write" } else { "read" };
        let variable = match binding {
            Place::Scalars(_) => "parameters: Scalars".to_owned(),
            Place::Leaves => "leaves: array<real>".to_owned(),
            Place::Matrices => "matrices: array<real>".to_owned(),
            Place::Slot(slot, _) => format!("values_{slot}: array<real>"),
        };
        text.push(format!("@group(0) @binding({number}) var<storage, {access}> {variable};"));
    }
    if code.contains("Ghost") {
        text.blank();
        boundary::wgsl(&mut text);
        boundary::wgsl_signs(&mut text);
        text.file(PROGRAM);
    }
    text.file(code);
    called(&mut text, body.real);
    Kernel {
        name: names.join(", "),
        text: text.into(),
        bindings,
        piece_cells: usize::MAX,
        threads: body.threads,
        workgroups: body.workgroups,
        workgroup_bytes: body.workgroup_bytes,
    }
}

#[cfg(test)]
mod tests;
