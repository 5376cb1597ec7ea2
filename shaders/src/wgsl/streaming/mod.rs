//! The kernel of 2.5-D streaming: `streaming.wgsl` with levels and blocks of cells unrolled.
//!
//! A stage is a function of what arrives and what the stage carries. The function is called for every cell of
//! a thread at each of the stage's levels. At level `l`, `u{l}_{field}_{cell}` waits to arrive and
//! `k{l}_{slot}_{cell}` is carried. Where neither the window nor the planes meet a boundary, planes take a
//! loop of their own, in which no cell is tested.

mod arrive;
mod handover;
mod memory;
mod which;

use abide_core::domain::Axes;
use abide_core::plan::overlapped::Source;
use abide_core::plan::streaming::carry::Carry;
use abide_core::plan::streaming::portable::{Arrival, PortableStreaming};
use abide_core::{Boundary, Problem, Stage};

use self::memory::held;
use super::overlapped::coordinates;
use super::{
    Binding, Kernel, constant, domain, finished, header, moved, parameters, problem_constants, tap_functions,
};
use crate::text::{LETTERS, Text};

const STREAMING: &str = include_str!("../../../kernels/wgsl/streaming/streaming.wgsl");

/// Returns the kernel of a problem's stages, which are prepared for WGSL. The kernel takes as many steps as
/// the plan's depth. With `shorter`, it takes any smaller number, which is a uniform.
pub(super) fn kernel(
    problem: &Problem,
    stages: &[Stage],
    streaming: &PortableStreaming,
    shorter: bool,
) -> Kernel {
    let program = &*problem.program;
    let writer = Writer::new(problem, stages, streaming, shorter);
    let bindings = writer.bindings();

    let steps = if shorter { "fewer steps" } else { "several steps" };
    let mut text = header(problem, steps, &bindings, [streaming.lanes, writer.levels()]);
    problem_constants(&mut text, writer.axes, problem);
    writer.constants(&mut text);
    let text = finished(
        text,
        problem.dtype,
        STREAMING,
        &[
            ("thread", writer.thread()),
            ("domain", domain()),
            ("functions", writer.functions()),
            ("which", writer.which()),
            ("begin", writer.begin()),
            ("run", writer.run()),
        ],
    );
    Kernel {
        name: program.name().to_owned(),
        text,
        bindings,
        piece_cells: usize::MAX,
        threads: streaming.threads_per_block(),
        workgroups: streaming.workgroups(),
        workgroup_bytes: streaming.shared_bytes,
    }
}

/// The values that the parts of the text share. Triples begin with the swept axis.
struct Writer<'a> {
    problem: &'a Problem,
    stages: &'a [Stage],
    streaming: &'a PortableStreaming,
    arrivals: Vec<Arrival>,
    axes: Axes,
    extents: [usize; 3],
    radius: [usize; 3],
    sides: [[Boundary; 2]; 3],
    /// Axes along which a window, or a share, may hold cells that are not computed.
    masked: [bool; 3],
    /// Whether any window and plane can lie inside the computed cells.
    may_be_inside: bool,
    /// Whether the number of steps is a uniform.
    shorter: bool,
}

impl<'a> Writer<'a> {
    fn new(
        problem: &'a Problem,
        stages: &'a [Stage],
        streaming: &'a PortableStreaming,
        shorter: bool,
    ) -> Self {
        let program = &*problem.program;
        let axes = Axes::of(problem.shape.dimensions());
        let (threads, cells) = (streaming.configuration.threads, streaming.configuration.cells);
        let (extents, radius) = (axes.order(problem.shape.padded()), axes.order(program.radius()));
        let sides = axes.order(problem.boundaries.0);
        let masked: [bool; 3] =
            std::array::from_fn(|axis| radius[axis] > 0 && sides[axis][0] != Boundary::Periodic);
        let carries = Carry::all(stages, program.fields().len(), axes);
        let mut writer = Writer {
            problem,
            stages,
            streaming,
            arrivals: Arrival::all(&carries, axes, threads, cells),
            axes,
            extents,
            radius,
            sides,
            masked,
            may_be_inside: true,
            shorter,
        };
        let fits = |axis: usize| streaming.window()[axis - 1] <= writer.computed(axis).len();
        let swept = !masked[0] || streaming.behind + streaming.configuration.ahead < writer.computed(0).len();
        writer.may_be_inside = fits(1) && fits(2) && swept;
        writer
    }

    fn computed(&self, axis: usize) -> std::ops::Range<usize> {
        let padded = self.axes.0[axis];
        self.problem.boundaries.computed(padded, self.extents[axis], self.radius[axis])
    }

    fn bindings(&self) -> Vec<Binding> {
        let program = &self.problem.program;
        let fields = 0..program.fields().len();
        let parameters = parameters(program, self.stages);
        let steps = self.shorter.then_some(Binding::Steps);
        let olds = fields.clone().map(|field| Binding::Old(field, 0));
        parameters
            .into_iter()
            .chain(steps)
            .chain(olds)
            .chain(self.written().into_iter().map(|field| Binding::New(field, 0)))
            .collect()
    }

    /// Returns whether parameters vary from stage to stage.
    fn varies(&self) -> bool {
        !self.problem.program.varying().is_empty()
    }

    fn written(&self) -> Vec<usize> {
        (0..self.fields()).filter(|&field| self.problem.program.is_written(field)).collect()
    }

    fn fields(&self) -> usize {
        self.problem.program.fields().len()
    }

    fn volume(&self) -> usize {
        self.streaming.configuration.cells.iter().product()
    }

    fn threads(&self) -> usize {
        self.streaming.threads_per_block()
    }

    fn levels(&self) -> usize {
        self.streaming.configuration.depth * self.stages.len()
    }

    fn arrival(&self, level: usize) -> &Arrival {
        &self.arrivals[level % self.stages.len()]
    }

    /// Returns the planes by which a level lags behind the level before it, in addition to that level's
    /// delay: 0 where a level takes what the level before it has just made.
    fn apart(&self) -> usize {
        self.streaming.configuration.handover.lag()
    }

    /// Returns the planes by which what arrives at a level lags behind what arrives at the first level.
    fn lag(&self, level: usize) -> usize {
        (0..level).map(|before| self.arrival(before).delay() + self.apart()).sum()
    }

    /// Returns the row and column of a cell in the block.
    fn place(&self, cell: usize) -> [usize; 2] {
        let columns = self.streaming.configuration.cells[1];
        [cell / columns, cell % columns]
    }

    /// Returns the indices of a cell of the block in a plane.
    fn indices(&self, plane: String, cell: usize) -> [String; 3] {
        let [row, column] = self.place(cell);
        [plane, format!("y{}", moved(row as isize)), format!("x{}", moved(column as isize))]
    }

    /// Returns the expression for the old value of a cell of the block in a plane.
    fn load(&self, field: usize, plane: &str, cell: usize) -> String {
        format!("tap_{field}({})", self.indices(plane.to_owned(), cell).join(", "))
    }

    fn constants(&self, text: &mut Text) {
        let streaming = self.streaming;
        for axis in 0..3 {
            let suffix = LETTERS[axis][0];
            let extent = self.extents[axis] as isize;
            // The ghost cells beyond each side. Farther out, no level needs a cell that is not computed.
            let ghosts = self.sides[axis]
                .map(|side| if side == Boundary::Fixed { 0 } else { self.radius[axis] as isize });
            for (name, value) in [
                ("FROM", -ghosts[0]),
                ("TO", extent + ghosts[1]),
                ("LEAD", streaming.lead[axis][0] as isize),
                ("MARGIN", streaming.margin[axis][0] as isize),
            ] {
                constant(text, &format!("{name}_{suffix}"), value);
            }
            if axis > 0 {
                for (name, value) in [
                    ("WINDOW", streaming.window()[axis - 1]),
                    ("TILE", streaming.tile()[axis - 1]),
                    ("TILES", streaming.tiles[axis - 1]),
                    ("THREADS", streaming.configuration.threads[axis - 1]),
                    ("CELLS", streaming.configuration.cells[axis - 1]),
                ] {
                    constant(text, &format!("{name}_{suffix}"), value);
                }
            }
        }
        let [middle, sides] = streaming.windows();
        for (name, value) in [
            ("THREADS", self.threads()),
            ("WORKGROUPS", streaming.workgroups()),
            ("MIDDLE", middle),
            ("SHARES", streaming.configuration.shares),
            ("SIDES", sides),
            ("SIDE_SHARES", streaming.side_shares),
            ("BEHIND", streaming.behind),
            ("AHEAD", streaming.configuration.ahead),
        ] {
            constant(text, name, value);
        }
    }

    /// Returns the slots, the stages, and taps through the boundary.
    fn functions(&self) -> Text {
        let mut text = self.declared();
        for number in 0..self.stages.len() {
            self.function(&mut text, number);
        }
        let at = match self.streaming.lanes {
            1 => "[at]".to_owned(),
            lanes => format!("[at / {lanes}][at % {lanes}]"),
        };
        text.push(tap_functions(0..self.fields(), |field| format!("old_{field}{at}")));
        text
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<'_> {
        let volume = self.volume();
        (0..self.fields()).flat_map(move |field| (0..volume).map(move |cell| (field, cell)))
    }

    /// Returns the beginning: the cells that a thread keeps, the tests at the sides, the thread's variables,
    /// and the first planes.
    fn begin(&self) -> Text {
        let mut text = Text::default();
        for axis in [1, 2] {
            let [suffix, index] = LETTERS[axis];
            text.push(format!(
                "let low_{index} = select(first_{index} + MARGIN_{suffix}, 0, window_{index} == 0);"
            ));
            text.push(format!(
                "let high_{index} = select(first_{index} + MARGIN_{suffix} + TILE_{suffix}, EXTENT_{suffix}, \
                 window_{index} == TILES_{suffix} - 1);"
            ));
            let step = if axis == 2 { self.streaming.lanes } else { 1 };
            for at in (0..self.streaming.configuration.cells[axis - 1]).step_by(step) {
                text.push(format!(
                    "let keeps_{index}{at} = {index}{plus} >= low_{index} && {index}{plus} < high_{index};",
                    plus = moved(at as isize)
                ));
            }
        }
        let mut beside = Vec::new();
        for axis in [1, 2].into_iter().filter(|&axis| self.masked[axis]) {
            let [suffix, index] = LETTERS[axis];
            for at in 0..self.streaming.configuration.cells[axis - 1] {
                text.push(format!(
                    "let held_{index}{at} = {};",
                    held(&format!("{index}{}", moved(at as isize)), suffix)
                ));
                beside.push(format!("held_{index}{at}"));
            }
        }
        if !beside.is_empty() {
            text.push(format!("let beside = {};", beside.join(" || ")));
        }
        for level in 0..self.levels() {
            let slots = self.arrival(level).carry.slots.len();
            let slots = (0..slots).flat_map(|slot| (0..self.volume()).map(move |cell| (slot, cell)));
            text.extend(slots.map(|(slot, cell)| format!("var k{level}_{slot}_{cell}: real;")));
            let first = |(field, cell)| match level {
                0 => format!("var u0_{field}_{cell} = {};", self.load(field, "p", cell)),
                _ => format!("var u{level}_{field}_{cell}: real;"),
            };
            if level == 0 || self.apart() > 0 {
                text.extend(self.cells().map(first));
            }
        }
        for ahead in 1..self.streaming.configuration.ahead {
            text.extend(self.cells().map(|(field, cell)| {
                format!("var a{ahead}_{field}_{cell} = {};", self.load(field, &format!("p + {ahead}"), cell))
            }));
        }
        self.first_slots(&mut text);
        text
    }

    /// Returns the loops: one over planes that meet no boundary, and one over the others.
    fn run(&self) -> Text {
        let mut text = Text::default();
        if !self.may_be_inside {
            text.push(self.remember());
            text.push("for (; p < end; p++) {");
            self.plane(&mut text, true);
            text.push("}");
            return text;
        }
        let within = [1, 2].map(|axis| {
            let [suffix, index] = LETTERS[axis];
            format!("first_{index} >= FIRST_{suffix} && first_{index} + WINDOW_{suffix} <= END_{suffix}")
        });
        text.push(
            "// No cell of the window is held or beyond the domain; nor, between these two planes, at any \
             level.",
        );
        text.push(format!("let inside = {};", within.join(" && ")));
        let [low, high] = match self.masked[0] {
            true => ["FIRST_S + BEHIND", "END_S - AHEAD"],
            false => ["p", "end"],
        };
        text.push(format!("let low = {low};"));
        text.push(format!("let high = {high};"));
        text.push(format!("let at = {};", self.across()));
        text.push("while p < end {");
        text.push("if inside && p >= low && p < high {");
        text.push("let stop = min(end, high);");
        text.push("for (; p < stop; p++) {");
        self.plane(&mut text, false);
        text.extend(["}", "} else {"]);
        text.push("let stop = select(end, min(end, low), inside && p < low);");
        text.push(self.remember());
        text.push("for (; p < stop; p++) {");
        self.plane(&mut text, true);
        text.extend(["}", "}", "}"]);
        text
    }

    /// Returns the cells from one index to the next along an axis.
    fn stride(&self, axis: usize) -> usize {
        let [_, rows, columns] = self.problem.shape.padded();
        [rows * columns, columns, 1][self.axes.0[axis]]
    }

    /// Writes all that is done when plane `p` arrives.
    fn plane(&self, text: &mut Text, edge: bool) {
        self.wait(text);
        if !edge {
            text.push(format!(
                "let begin = max(source(p + AHEAD, EXTENT_S, LOW_S, HIGH_S), 0) * {} + at;",
                self.stride(0) / self.streaming.lanes
            ));
        }
        self.fetch(text, edge);
        let mut levels: Vec<usize> = (0..self.levels()).collect();
        if self.apart() > 0 {
            // Each level takes what the level before it made a plane ago.
            levels.reverse();
        }
        levels.into_iter().for_each(|level| self.level(text, level, edge));
        for ahead in 0..self.streaming.configuration.ahead {
            let name = |ahead: usize| match ahead {
                0 => "u0".to_owned(),
                n if n == self.streaming.configuration.ahead => "l".to_owned(),
                n => format!("a{n}"),
            };
            text.extend(self.cells().map(|(field, cell)| {
                let from = name(ahead + 1);
                let from =
                    if from == "l" { format!("l{field}_{cell}") } else { format!("{from}_{field}_{cell}") };
                format!("{}_{field}_{cell} = {from};", name(ahead))
            }));
        }
        self.renew(text);
    }

    /// Writes the work of a level, which takes the plane that waits before it.
    fn level(&self, text: &mut Text, level: usize, edge: bool) {
        let number = level % self.stages.len();
        let (stage, arrival) = (&self.stages[number], &self.arrivals[number]);
        let mut read: Vec<(u16, usize, isize)> = Vec::new();
        for cell in 0..self.volume() {
            let mut arguments = Vec::new();
            for &tap in &arrival.taps {
                arguments.push(match arrival.exchange.source(cell, tap) {
                    Source::Own(place) => format!("u{level}_{}_{place}", tap.field),
                    Source::Other(rank, thread) => {
                        let key = (tap.field, rank, thread);
                        let known = read.iter().position(|&other| other == key);
                        let name = known.unwrap_or(read.len());
                        if known.is_none() {
                            let value = self.given(level, usize::from(tap.field), rank, thread);
                            text.push(format!("let n{level}_{name} = {value};"));
                            read.push(key);
                        }
                        format!("n{level}_{name}")
                    }
                });
            }
            arguments.extend((0..arrival.carry.slots.len()).map(|slot| format!("k{level}_{slot}_{cell}")));
            let plane = format!("p{}", moved(-(self.lag(level) as isize)));
            let indices = self.axes.padded(self.indices(plane, cell));
            arguments.extend(coordinates(stage).into_iter().map(|axis| indices[axis].clone()));
            arguments.extend(self.varies().then(|| level.to_string()));
            text.push(format!("let w{level}_{cell} = arrive{number}({});", arguments.join(", ")));
        }
        for cell in 0..self.volume() {
            let slots = 0..arrival.carry.slots.len();
            text.extend(slots.map(|slot| format!("k{level}_{slot}_{cell} = w{level}_{cell}.k{slot};")));
        }
        let is_last = level + 1 == self.levels();
        text.extend(self.cells().map(|(field, cell)| {
            let declared = if is_last || self.apart() == 0 { "var " } else { "" };
            format!("{declared}u{}_{field}_{cell} = w{level}_{cell}.v{field};", level + 1)
        }));
        let behind = self.lag(level) + arrival.delay();
        if edge {
            self.bound(text, level, behind);
        }
        let is_step = (level + 1).is_multiple_of(self.stages.len());
        if self.shorter && is_step {
            text.push(format!("if run.steps == {}u {{", (level + 1) / self.stages.len()));
            self.store(text, level + 1, behind);
            text.push("}");
        } else if is_last {
            self.store(text, level + 1, behind);
        }
    }
}
