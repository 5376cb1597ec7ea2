//! The kernels of a stage: its boxes, its tiles and its formula, which is written twice: for tiles in which
//! nothing has to be asked, and for all others.

use abide_core::domain::axis_name;
use abide_core::expr::{Dag, Tap};
use abide_core::plan::Stepwise;
use abide_core::program::{Indices, Levels, Reduction, StageKind, is_empty};
use abide_core::reduction::leaf;
use abide_core::{DType, Problem, Stage};

use super::{OfScalars, ScalarLayout, comparisons};
use crate::emit::{Formula, part};
use crate::program::matrices::Matrices;
use crate::program::{self, Grid, Kind, Kinds, Slot, Slots, Work};
use crate::text::Text;
use crate::wgsl::language::{Wgsl, literal};
use crate::wgsl::{Access, constant, moved};

const UPDATE: &str = include_str!("../../../kernels/wgsl/program/update.wgsl");
const REDUCE: &str = include_str!("../../../kernels/wgsl/program/reduce.wgsl");
const POINTS: &str = include_str!("../../../kernels/wgsl/program/points.wgsl");
const JOIN: &str = include_str!("../../../kernels/wgsl/program/join.wgsl");
const SCALAR: &str = include_str!("../../../kernels/wgsl/program/scalar.wgsl");

/// A kernel without its beginning.
pub struct Body {
    pub text: Text,
    /// The type of its numbers.
    pub real: DType,
    /// How each slot's buffer is used.
    pub slots: Vec<Access>,
    /// How the scalars are used, if they are.
    pub scalars: Access,
    /// The values of the leaves that it uses; 0 if it uses none.
    pub leaves: usize,
    pub threads: usize,
    pub workgroups: usize,
    pub workgroup_bytes: usize,
}

impl Body {
    /// Returns a kernel that writes values of fields and temporaries.
    pub fn of_values(text: Text, real: DType, slots: &[Slot], threads: usize, workgroups: usize) -> Body {
        let access = |slot: &Slot| match slot {
            Slot::Read(_) => Access::Read,
            Slot::Write(_) => Access::Write,
        };
        Body {
            text,
            real,
            slots: slots.iter().map(access).collect(),
            scalars: Access::Read,
            leaves: 0,
            threads,
            workgroups,
            workgroup_bytes: 0,
        }
    }

    /// Returns a kernel of one thread, which writes a scalar.
    pub fn single(text: Text, real: DType) -> Body {
        Body {
            text,
            real,
            slots: Vec::new(),
            scalars: Access::Write,
            leaves: 0,
            threads: 1,
            workgroups: 1,
            workgroup_bytes: 0,
        }
    }
}

/// What all stages share.
pub struct StageContext<'a> {
    pub problem: &'a Problem,
    pub kinds: &'a Kinds,
    pub tiles: &'a Stepwise,
    pub layout: ScalarLayout,
    /// The stages, simplified.
    pub stages: &'a [Stage],
    pub matrices: &'a Matrices,
}

/// A stage while its kernel is written.
pub(super) struct Writer<'a> {
    pub context: &'a StageContext<'a>,
    pub stage: &'a Stage,
    /// Whether each output is written where it lies.
    pub stays: &'a [bool],
    pub slots: Slots,
    /// The taps that the outputs need.
    pub taps: Vec<Tap>,
}

impl StageContext<'_> {
    /// Returns the kernels of a stage that is launched alone, and the slots of the first. It is given which of its
    /// outputs are written where they lie.
    pub fn single(&self, number: usize, own: &[Indices], stays: &[bool]) -> (Vec<Body>, Vec<Slot>) {
        let stage = &self.stages[number];
        match stage.does {
            StageKind::Update if !stage.points.is_empty() => self.points(stage, own, stays),
            StageKind::Update => self.update(stage, own, stays),
            StageKind::Reduce(reduction, _, scalar) => self.reduce(stage, own, reduction, scalar),
            StageKind::Scalar(scalar) => (vec![self.scalar(stage, scalar)], Vec::new()),
            StageKind::Transform(_) => self.transform(number, own, stays),
        }
    }

    /// Returns the kernel of a stage of new values, none if nothing needs them, and its slots.
    fn update(&self, stage: &Stage, own: &[Indices], stays: &[bool]) -> (Vec<Body>, Vec<Slot>) {
        let fields = self.problem.program.fields().len();
        let Some(work) = program::update(self.kinds, stage, own, fields, self.tiles.tile, 1) else {
            return (Vec::new(), Vec::new());
        };
        let mut writer = Writer { context: self, stage, stays, slots: Slots::default(), taps: Vec::new() };
        let [inside, mut edge] = writer.formulas(&work);
        let mut edge_text = writer.ghosts();
        edge_text.extend(&edge.statements);
        let mut inside_text: Text = inside.statements.iter().collect();
        for ((&output, value), edge_value) in
            work.outputs.iter().zip(&inside.outputs).zip(edge.outputs.drain(..))
        {
            let place = writer.place(stage.writes[output]);
            let slot = writer.slots.number(Slot::Write(output));
            inside_text.push(format!("values_{slot}[{place}] = {value};"));
            let stored = format!("values_{slot}[{place}] = {edge_value};");
            edge_text.push(match own[output] == work.computed {
                true => stored,
                false => format!("if {} {{ {stored} }}", holds(&own[output])),
            });
        }
        let keep = writer.keep(&work, own);
        let threads = self.tiles.threads_per_block();
        let mut text = self.threads(self.tiles.threads);
        writer.begin(&mut text, &work, threads);
        let parts = [
            ("ended", self.ended()),
            ("places", writer.places(&work)),
            ("inside", if has_inner_tile(&work) { inside_text } else { Text::default() }),
            ("edge", edge_text),
            ("keep", keep),
        ];
        text.filled(UPDATE, &parts);
        let slots = writer.slots.0;
        (vec![Body::of_values(text, self.problem.dtype, &slots, threads, work.grid.count())], slots)
    }

    /// Returns the kernels of a stage at points and their slots: first one that takes all other values along, if
    /// any output goes to another buffer.
    fn points(&self, stage: &Stage, own: &[Indices], stays: &[bool]) -> (Vec<Body>, Vec<Slot>) {
        let Some(work) = program::points(self.kinds, stage, own, self.problem.shape.dimensions()) else {
            return (Vec::new(), Vec::new());
        };
        let threads = leaf(1).iter().product();
        let mut writer = Writer { context: self, stage, stays, slots: Slots::default(), taps: Vec::new() };
        let [_, body] = writer.formulas(&work);
        let mut computing = writer.ghosts();
        computing.extend(&body.statements);
        for (&output, value) in work.outputs.iter().zip(&body.outputs) {
            let (place, slot) =
                (writer.place(stage.writes[output]), writer.slots.number(Slot::Write(output)));
            computing.push(format!("values_{slot}[{place}] = {value};"));
        }
        let keep = writer.keep(&work, &vec![[0..0, 0..0, 0..0]; own.len()]);
        let mut text = Text::default();
        writer.begin(&mut text, &work, threads);
        let count = stage.points.len();
        let all: Vec<String> = stage.points.iter().map(|[z, y, x]| format!("vec3i({z}, {y}, {x})")).collect();
        constant(&mut text, "POINTS", count);
        text.push("fn point(i: i32) -> vec3i {");
        text.push(format!("var all = array<vec3i, {count}>({});", all.join(", ")));
        text.push("return all[i];\n}");
        let parts = [("ended", self.ended()), ("places", writer.places(&work)), ("edge", computing)];
        text.filled(POINTS, &parts);
        let slots = writer.slots.0.clone();
        let carry = writer.carrying(&work, keep);
        let points = Body::of_values(text, self.problem.dtype, &slots, threads, count.div_ceil(threads));
        (carry.into_iter().chain([points]).collect(), slots)
    }

    /// Returns the extents of a workgroup as constants.
    fn threads(&self, threads: [usize; 3]) -> Text {
        let mut text = Text::default();
        for (letter, threads) in ["Z", "Y", "X"].into_iter().zip(threads) {
            constant(&mut text, &format!("THREADS_{letter}"), threads);
        }
        text
    }

    /// Returns the kernels of a reduction, and the slots of the first.
    fn reduce(
        &self,
        stage: &Stage,
        own: &[Indices],
        reduction: Reduction,
        scalar: usize,
    ) -> (Vec<Body>, Vec<Slot>) {
        let Some(work) = program::reduce(self.kinds, stage, own, self.problem.shape.dimensions()) else {
            return (Vec::new(), Vec::new());
        };
        // A leaf has as many indices on any number of axes.
        let threads = leaf(1).iter().product();
        let mut writer =
            Writer { context: self, stage, stays: &[], slots: Slots::default(), taps: Vec::new() };
        let [inside, edge] = writer.formulas(&work);
        let value = |formula: &Formula| format!("value = {};", formula.outputs[0]);
        let mut edge_text = writer.ghosts();
        edge_text.extend(&edge.statements);
        edge_text.push(value(&edge));
        let mut inside_text: Text = inside.statements.iter().collect();
        inside_text.push(value(&inside));
        let mut text = self.joining(reduction);
        writer.begin(&mut text, &work, threads);
        let parts = [
            ("ended", self.ended()),
            ("places", writer.places(&work)),
            ("inside", if has_inner_tile(&work) { inside_text } else { Text::default() }),
            ("edge", edge_text),
        ];
        text.filled(REDUCE, &parts);
        let slots = writer.slots.0;
        let first = Body {
            text,
            real: self.problem.dtype,
            slots: vec![Access::Read; slots.len()],
            scalars: Access::Read,
            leaves: leaves_of(&work.grid),
            threads,
            workgroups: work.grid.count(),
            workgroup_bytes: threads * self.problem.dtype.bytes(),
        };
        (vec![first, self.leaves(reduction, scalar, &work.grid)], slots)
    }

    /// Returns the kernel that joins the leaves of a reduction, one of each block of a grid.
    pub fn leaves(&self, reduction: Reduction, scalar: usize, grid: &Grid) -> Body {
        let threads = leaf(1).iter().product();
        let mut text = self.joining(reduction);
        constant(&mut text, "THREADS", threads);
        blocks(&mut text, grid);
        text.filled(JOIN, &[("ended", self.ended()), ("store", self.layout.set(scalar, "value"))]);
        Body { leaves: leaves_of(grid), threads, ..Body::single(text, self.problem.dtype) }
    }

    /// Returns the kernel of a formula of scalars.
    fn scalar(&self, stage: &Stage, scalar: usize) -> Body {
        let Dag { nodes, outputs } = &stage.dag;
        let (layout, real) = (self.layout, self.layout.kept());
        let formula = part(nodes, outputs, |_| None, &OfScalars(layout), real, |_| String::new());
        let mut computing: Text = formula.statements.iter().collect();
        computing.push(layout.set(scalar, &formula.outputs[0]));
        let mut text = Text::default();
        text.filled(SCALAR, &[("ended", self.ended()), ("formula", computing)]);
        Body::single(text, real)
    }

    /// Writes the function that taps a buffer where the boundary is asked.
    pub fn tap_function(&self, text: &mut Text, slot: usize, name: usize) {
        let ([z, y, _], first) = strides(self.kinds.kind(name));
        text.blank();
        text.push(format!("fn tap_{slot}(a: Ghost, b: Ghost, c: Ghost) -> real {{"));
        text.push(format!(
            "return seen(values_{slot}[a.index * {z} + b.index * {y} + c.index{}], a, b, c);",
            moved(-first)
        ));
        text.push("}");
    }

    /// Writes the functions that ask the boundary of a kind, which has this number, along each axis.
    pub fn ghost_functions(&self, text: &mut Text, number: usize) {
        let kind = &self.kinds.all[number];
        for axis in 0..3 {
            let (sides, letter) = (kind.sides(axis), axis_name(axis));
            let [low, high] = sides.map(|side| side.constant());
            let values = kind.values(axis, self.problem, |number| format!("parameters.p{number}"), literal);
            text.blank();
            text.push(format!("fn ghost_{letter}_{number}(i: i32) -> Ghost {{"));
            text.push(format!(
                "return ghost(i, {}, {}, {low}, {high}, {}, {});",
                kind.buffer.extents[axis],
                kind.folds(axis),
                values[0],
                values[1]
            ));
            text.push("}");
        }
    }

    /// Returns the statement that ends kernels after the run has ended, if a condition may end it.
    pub fn ended(&self) -> Text {
        let program = &self.problem.program;
        let may_end = self.problem.until.is_some() && !program.has_loops();
        let may_stop = may_end || program.has_conditions();
        may_stop.then_some("if parameters.ended != 0u { return; }").into_iter().collect()
    }

    /// Returns the functions that join two values of a reduction.
    pub fn joining(&self, reduction: Reduction) -> Text {
        let dtype = self.problem.dtype;
        let (joined, needs) = match reduction {
            Reduction::Min => ("least(a, b)", true),
            Reduction::Max => ("greatest(a, b)", true),
            Reduction::Sum => ("a + b", false),
        };
        let mut text = Text::default();
        if needs {
            text.file(comparisons(dtype));
            text.blank();
        }
        text.push(format!("fn join(a: real, b: real) -> real {{\nreturn {joined};\n}}"));
        let neutral = literal(dtype, reduction.neutral::<f64>());
        text.push(format!("fn neutral() -> real {{\nreturn {neutral};\n}}"));
        text.blank();
        text
    }
}

impl Writer<'_> {
    /// Returns the kernel that takes values along to other buffers, by the statements that keep them; `None` where all stay.
    pub fn carrying(self, work: &Work, keep: Text) -> Option<Body> {
        let context = self.context;
        let threads = leaf(1).iter().product();
        let mut text = context.threads(leaf(context.problem.shape.dimensions()));
        let nothing = Work { computed: [0..0, 0..0, 0..0], inner: [0..0, 0..0, 0..0], ..work.clone() };
        self.begin(&mut text, &nothing, threads);
        let parts = [
            ("ended", context.ended()),
            ("places", self.places(work)),
            ("inside", Text::default()),
            ("edge", Text::default()),
            ("keep", keep),
        ];
        text.filled(UPDATE, &parts);
        let is_needed = !self.stays.iter().all(|&stays| stays);
        let (dtype, count) = (context.problem.dtype, work.grid.count());
        is_needed.then(|| Body::of_values(text, dtype, &self.slots.0, threads, count))
    }

    /// Returns the slot of the buffer in which a field or temporary lies before the stage.
    fn old(&mut self, name: usize) -> usize {
        self.slots.old(name, &self.stage.writes, self.stays)
    }

    /// Returns the formula of the outputs that have values: with taps inside their buffers, and with taps that
    /// ask the boundary.
    fn formulas(&mut self, work: &Work) -> [Formula; 2] {
        let Dag { nodes, outputs } = &self.stage.dag;
        let outputs: Vec<_> = work.outputs.iter().map(|&output| outputs[output]).collect();
        let dtype = self.context.problem.dtype;
        [false, true]
            .map(|asks| part(nodes, &outputs, |_| None, &language(), dtype, |tap| self.tap(tap, asks)))
    }

    /// Returns the text that reads a tap.
    fn tap(&mut self, tap: Tap, asks: bool) -> String {
        let name = usize::from(tap.field);
        let (slot, kind) = (self.old(name), self.context.kinds.kind(name));
        let number = self.context.kinds.number(name);
        let levels = self.context.kinds.levels(self.stage, name);
        if !levels.is_same() {
            let index =
                |axis: usize| format!("({}{})", on_level(axis, levels), moved(tap.offset[axis] as isize));
            let [a, b, c] = [0, 1, 2].map(index);
            if asks && asks_boundary(kind) {
                return format!("tap_{slot}(ghost_z_{number}{a}, ghost_y_{number}{b}, ghost_x_{number}{c})");
            }
            let ([z, y, _], first) = strides(kind);
            return format!("values_{slot}[{a} * {z} + {b} * {y} + {c}{}]", moved(-first));
        }
        self.taps.push(tap);
        if asks && asks_boundary(kind) {
            let [a, b, c] = [0, 1, 2].map(|axis| ghost(axis, number, tap.offset[axis]));
            return format!("tap_{slot}({a}, {b}, {c})");
        }
        let (strides, _) = strides(kind);
        let by: isize = (0..3).map(|axis| tap.offset[axis] as isize * strides[axis]).sum();
        format!("values_{slot}[at_{number}{}]", moved(by))
    }

    /// Returns the statements that take values along to other buffers which are not in these boxes of the outputs.
    pub fn keep(&mut self, work: &Work, but: &[Indices]) -> Text {
        let mut keep = Text::default();
        for &output in work.kept.iter().filter(|&&output| !self.stays[output]) {
            let name = self.stage.writes[output];
            let (place, held) = (self.place(name), self.context.kinds.kind(name).held());
            let [to, from] = [Slot::Write(output), Slot::Read(name)].map(|slot| self.slots.number(slot));
            let stored = format!("values_{to}[{place}] = values_{from}[{place}];");
            keep.push(match is_empty(&but[output]) {
                true => format!("if {} {{ {stored} }}", holds(&held)),
                false => format!("if {} && !({}) {{ {stored} }}", holds(&held), holds(&but[output])),
            });
        }
        keep
    }

    /// Returns the declarations of all places at which taps ask a boundary.
    fn ghosts(&self) -> Text {
        let mut known: Vec<String> = Vec::new();
        let mut text = Text::default();
        for tap in &self.taps {
            let name = usize::from(tap.field);
            let number = self.context.kinds.number(name);
            for axis in (0..3).filter(|_| asks_boundary(self.context.kinds.kind(name))) {
                let (own, letter) = (ghost(axis, number, tap.offset[axis]), axis_name(axis));
                if !known.contains(&own) {
                    let index = moved(tap.offset[axis] as isize);
                    text.push(format!("let {own} = ghost_{letter}_{number}({letter}{index});"));
                    known.push(own);
                }
            }
        }
        text
    }

    /// Returns the place of the index computed, in the buffer of a field or temporary.
    fn place(&self, name: usize) -> String {
        format!("at_{}", self.context.kinds.number(name))
    }

    /// Returns the declarations of the places that the stage names.
    fn places(&self, work: &Work) -> Text {
        let tapped = self.taps.iter().map(|tap| usize::from(tap.field));
        let written = work
            .outputs
            .iter()
            .chain(&work.kept)
            .filter_map(|&output| self.stage.writes.get(output).copied());
        let mut numbers: Vec<usize> =
            tapped.chain(written).map(|name| self.context.kinds.number(name)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| place(&self.context.kinds.all[number], number)).collect()
    }

    /// Writes the tiles, the boxes, and the functions by which taps ask boundaries.
    fn begin(&self, text: &mut Text, work: &Work, threads: usize) {
        constant(text, "THREADS", threads);
        for (axis, letter) in ["Z", "Y", "X"].into_iter().enumerate() {
            constant(text, &format!("TILE_{letter}"), work.grid.tile[axis]);
            constant(text, &format!("FIRST_{letter}"), work.grid.first[axis]);
        }
        blocks(text, &work.grid);
        for (name, indices) in [("is_computed", &work.computed), ("is_inner", &work.inner)] {
            text.blank();
            text.push(format!("fn {name}(z: i32, y: i32, x: i32) -> bool {{"));
            text.push(format!("return {};", holds(indices)));
            text.push("}");
        }
        let mut written: Vec<usize> = Vec::new();
        let tapped = self.slots.0.iter().enumerate().filter_map(|(slot, own)| match *own {
            Slot::Read(name) => Some((slot, name)),
            Slot::Write(output) => self.stays[output].then_some((slot, self.stage.writes[output])),
        });
        for (slot, name) in tapped.filter(|(_, name)| asks_boundary(self.context.kinds.kind(*name))) {
            let number = self.context.kinds.number(name);
            if !written.contains(&number) {
                written.push(number);
                self.context.ghost_functions(text, number);
            }
            self.context.tap_function(text, slot, name);
        }
        text.blank();
    }
}

pub fn language() -> Wgsl {
    Wgsl { index: [0, 1, 2].map(|axis| axis_name(axis).to_owned()), ..Wgsl::here() }
}

/// Returns the distances between neighbours in a buffer whose rows follow each other, and the place that the
/// index 0 would have before the first value.
pub fn strides(kind: &Kind) -> ([isize; 3], isize) {
    kind.strides(kind.buffer.extents[2])
}

/// Returns the declaration of the place of the index computed in a buffer of a kind, which has this number.
pub fn place(kind: &Kind, number: usize) -> String {
    let (strides, first) = strides(kind);
    format!("let at_{number} = z * {} + y * {} + x{};", strides[0], strides[1], moved(-first))
}

/// Returns the values of the buffer of a reduction's leaves, one of each block of a grid: what joins them needs as much
/// room again.
pub fn leaves_of(grid: &Grid) -> usize {
    2 * grid.count()
}

/// Returns whether any stage reads beyond the values of a kind.
pub fn asks_boundary(kind: &Kind) -> bool {
    (0..3).any(|axis| kind.folds(axis) > 0)
}

/// Returns whether there is room for a tile where nothing has to be asked.
fn has_inner_tile(work: &Work) -> bool {
    (0..3).all(|axis| work.inner[axis].len() >= work.grid.tile[axis])
}

/// Returns the name of the place at a distance along an axis from the index computed, for a kind.
pub fn ghost(axis: usize, kind: usize, offset: i32) -> String {
    let side = match offset {
        0 => "",
        1.. => "_p",
        _ => "_m",
    };
    let distance = if offset == 0 { String::new() } else { offset.unsigned_abs().to_string() };
    format!("{}_{kind}{side}{distance}", axis_name(axis))
}

/// Returns the index along an axis from which offsets count on a grid of so many levels coarser, or finer if below 0.
fn on_level(axis: usize, levels: Levels) -> String {
    let letter = axis_name(axis);
    match levels.0 > 0 {
        true => format!("({letter} >> {}u)", levels.0),
        false => format!("{letter} * {}", 1i64 << levels.0.unsigned_abs()),
    }
}

/// Returns the condition that an index lies in a box.
pub fn holds(indices: &Indices) -> String {
    let side = |axis: usize| {
        let (letter, range) = (axis_name(axis), &indices[axis]);
        format!("{letter} >= {} && {letter} < {}", range.start, range.end)
    };
    [0, 1, 2].map(side).join(" && ")
}

/// Writes the numbers of tiles.
pub fn blocks(text: &mut Text, grid: &Grid) {
    for (axis, letter) in ["Z", "Y", "X"].into_iter().enumerate() {
        constant(text, &format!("BLOCKS_{letter}"), grid.blocks[axis]);
    }
    text.push("const BLOCKS: i32 = BLOCKS_Z * BLOCKS_Y * BLOCKS_X;");
}
