//! The kernel of overlapped tiling, for several steps: `overlapped.wgsl` with the blocks of cells unrolled.
//!
//! A cell of a thread's block is a local variable `u{field}_{cell}`. A stage's formula is a function of its
//! taps, which is called for every cell of the block. The arguments are the thread's own cells and slots of
//! other threads. Windows that neither touch a side of the domain nor hold ghost cells take a loop of their
//! own, in which no cell is masked.

use abide_core::domain::Axes;
use abide_core::expr::{Node, Tap};
use abide_core::plan::overlapped::{Exchange, Given, Overlapped, Source, refreshes};
use abide_core::{Boundary, Problem, Program, Stage};

use super::language::Wgsl;
use super::{Binding, COUNTS, Kernel, constant, domain, finished, header, parameters, problem_constants};
use crate::emit::formula;
use crate::text::{LETTERS, Text};

const OVERLAPPED: &str = include_str!("../../kernels/wgsl/overlapped/overlapped.wgsl");
const SHOWN: &str = include_str!("../../kernels/wgsl/overlapped/shown.wgsl");

/// Returns the kernel of a problem's stages in windows; the stages are prepared for WGSL.
pub(super) fn kernel(problem: &Problem, stages: &[Stage], overlapped: &Overlapped) -> Kernel {
    let program = &*problem.program;
    let simplified = program.simplified(problem.dtype);
    let exchange = overlapped.exchange(problem, &simplified);
    let writer = Writer::new(problem, &simplified, stages, overlapped, &exchange);
    let bindings = bindings(program, stages);

    let levels = stages.len() * overlapped.configuration.depth;
    let mut text = header(problem, "several steps", &bindings, [1, levels]);
    problem_constants(&mut text, Axes::PADDED, problem);
    writer.constants(&mut text);
    let text = finished(
        text,
        problem.dtype,
        OVERLAPPED,
        &[
            ("domain", domain()),
            ("functions", writer.functions()),
            ("load", writer.load()),
            ("steps", writer.steps()),
            ("store", writer.store()),
        ],
    );
    Kernel {
        name: program.name().to_owned(),
        text,
        bindings,
        piece_cells: usize::MAX,
        threads: overlapped.threads_per_block(),
        workgroups: overlapped.blocks.iter().product(),
        workgroup_bytes: overlapped.shared_bytes,
    }
}

fn bindings(program: &Program, stages: &[Stage]) -> Vec<Binding> {
    let fields = 0..program.fields().len();
    let parameters = parameters(program, stages);
    let olds = fields.clone().filter(|&field| is_used(stages, field)).map(|field| Binding::Old(field, 0));
    let news = fields.filter(|&field| program.is_written(field)).map(|field| Binding::New(field, 0));
    parameters.into_iter().chain([Binding::Steps]).chain(olds).chain(news).collect()
}

fn is_used(stages: &[Stage], field: usize) -> bool {
    stages.iter().any(|stage| {
        stage.writes.contains(&field) || stage.dag.taps().any(|tap| usize::from(tap.field) == field)
    })
}

/// The values that the parts of the text share.
struct Writer<'a> {
    problem: &'a Problem,
    stages: &'a [Stage],
    overlapped: &'a Overlapped,
    exchange: &'a Exchange,
    /// Fields that live in registers.
    fields: Vec<usize>,
    /// Axes along which windows hold images of the cells of the other side, computed like any other cells.
    images: [bool; 3],
    /// Axes along which a window may hold cells that are not computed.
    masked: [bool; 3],
    refreshes: bool,
    /// Whether any window can lie inside the computed cells.
    may_be_inside: bool,
}

impl<'a> Writer<'a> {
    fn new(
        problem: &'a Problem,
        simplified: &Program,
        stages: &'a [Stage],
        overlapped: &'a Overlapped,
        exchange: &'a Exchange,
    ) -> Self {
        let radius = problem.program.radius();
        let (extents, window) = (problem.shape.padded(), overlapped.window());
        let images = std::array::from_fn(|axis| {
            !overlapped.whole[axis] && problem.boundaries.0[axis][0] == Boundary::Periodic && radius[axis] > 0
        });
        let fits = |axis: usize| {
            window[axis] <= problem.boundaries.computed(axis, extents[axis], radius[axis]).len()
        };
        Writer {
            problem,
            stages,
            overlapped,
            exchange,
            fields: (0..simplified.fields().len()).filter(|&field| is_used(stages, field)).collect(),
            images,
            masked: std::array::from_fn(|axis| !images[axis] && radius[axis] > 0),
            refreshes: (0..3).any(|axis| refreshes(problem, axis, overlapped.whole[axis], radius[axis])),
            may_be_inside: (0..3).all(fits),
        }
    }

    fn volume(&self) -> usize {
        self.exchange.cells.iter().product()
    }

    fn threads(&self) -> usize {
        self.exchange.threads.iter().product()
    }

    /// Returns the plane, row and column of a cell in the block.
    fn place(&self, cell: usize) -> [usize; 3] {
        let [_, rows, columns] = self.exchange.cells;
        [cell / (rows * columns), cell / columns % rows, cell % columns]
    }

    /// Returns whether parameters vary from stage to stage.
    fn varies(&self) -> bool {
        !self.problem.program.varying().is_empty()
    }

    fn given(&self, field: usize) -> Option<&Given> {
        self.exchange.fields[field].as_ref()
    }

    fn constants(&self, text: &mut Text) {
        let (configuration, window) = (&self.overlapped.configuration, self.overlapped.window());
        for (axis, [letter, _]) in LETTERS.into_iter().enumerate() {
            let numbers = [
                ("TILE", self.overlapped.tile[axis]),
                ("HALO", self.overlapped.halo[axis][0]),
                ("WINDOW", window[axis]),
                ("THREADS", configuration.threads[axis]),
                ("CELLS", configuration.cells[axis]),
                ("BLOCKS", self.overlapped.blocks[axis]),
            ];
            for (name, value) in numbers {
                constant(text, &format!("{name}_{letter}"), value);
            }
            text.push(format!("const IMAGES_{letter}: bool = {};", self.images[axis]));
        }
        text.push(COUNTS);
    }

    /// Returns the slots, the stages' formulas, and the function for what ghost cells show.
    fn functions(&self) -> Text {
        let mut text = Text::default();
        if self.exchange.slots > 0 {
            declare_slots(&mut text, self.exchange.words());
        }
        for (number, stage) in self.stages.iter().enumerate() {
            self.function(&mut text, number, stage);
        }
        if self.refreshes {
            text.push(SHOWN);
        }
        text
    }

    /// Writes a stage's formula as a function of its taps and coordinates.
    fn function(&self, text: &mut Text, number: usize, stage: &Stage) {
        let taps: Vec<Tap> = stage.dag.taps().collect();
        let position = |tap: Tap| taps.iter().position(|&other| other == tap).unwrap_or_default();
        let body = formula(&stage.dag, &Wgsl::of(&self.problem.program), self.problem.dtype, |tap| {
            format!("t{}", position(tap))
        });
        let coordinates = coordinates(stage).into_iter().map(|axis| format!("{}: i32", LETTERS[axis][1]));
        let level = self.varies().then(|| "level: i32".to_owned());
        let arguments: Vec<String> =
            (0..taps.len()).map(|tap| format!("t{tap}: real")).chain(coordinates).chain(level).collect();
        let (result, value) = match &body.outputs[..] {
            [value] => ("real".to_owned(), value.clone()),
            many => {
                text.push(format!("struct Values{number} {{"));
                text.extend((0..many.len()).map(|output| format!("w{output}: real,")));
                text.push("}");
                (format!("Values{number}"), format!("Values{number}({})", many.join(", ")))
            }
        };
        text.push(format!("// {:?}", stage.name));
        text.push(format!("fn stage{number}({}) -> {result} {{", arguments.join(", ")));
        text.extend(&body.statements);
        text.push(format!("return {value};"));
        text.push("}");
        text.blank();
    }

    /// Returns the loads of the block's cells from device memory, and the stores into slots of those that
    /// other threads need.
    fn load(&self) -> Text {
        let cells =
            || self.fields.iter().flat_map(|&field| (0..self.volume()).map(move |cell| (field, cell)));
        let mut text: Text = cells().map(|(field, cell)| format!("var u{field}_{cell}: real;")).collect();
        if self.may_be_inside {
            let within = [0, 1, 2].map(|axis| {
                let [upper, letter] = LETTERS[axis];
                format!("first_{letter} >= FIRST_{upper} && first_{letter} + WINDOW_{upper} <= END_{upper}")
            });
            text.push("// All cells of the window are computed, and none asks the boundary.");
            text.push(format!("let inside = {};", within.join(" && ")));
            text.push("if inside {");
            text.push("let at = (s * EXTENT_Y + y) * EXTENT_X + x;");
            let [_, rows, columns] = self.problem.shape.padded();
            text.extend(cells().map(|(field, cell)| {
                let [s, y, x] = self.place(cell);
                format!("u{field}_{cell} = old_{field}[at + {}];", (s * rows + y) * columns + x)
            }));
            text.push("} else {");
            self.load_through_boundary(&mut text);
            text.push("}");
        } else {
            self.load_through_boundary(&mut text);
        }
        for field in self.fields.iter().copied() {
            let Some(given) = self.given(field) else { continue };
            let first = self.exchange.pad + given.first * self.threads();
            text.push(format!(
                "{} here_{field} = t + {first};",
                if given.copies > 1 { "var" } else { "let" }
            ));
            text.push(self.give(field, given));
        }
        text
    }

    fn load_through_boundary(&self, text: &mut Text) {
        for axis in 0..3 {
            let [upper, letter] = LETTERS[axis];
            text.extend((0..self.exchange.cells[axis]).map(|at| {
                format!(
                    "let from_{letter}{at} = \
                     source({letter} + {at}, EXTENT_{upper}, LOW_{upper}, HIGH_{upper});"
                )
            }));
        }
        let constant = self.problem.boundaries.0.iter().flatten().any(|side| side.held().is_some());
        for cell in 0..self.volume() {
            let [s, y, x] = self.place(cell);
            let at = format!("(from_s{s} * EXTENT_Y + from_y{y}) * EXTENT_X + from_x{x}");
            let loads = self.fields.iter().map(|field| format!("u{field}_{cell} = old_{field}[{at}];"));
            if !constant {
                text.extend(loads);
                continue;
            }
            text.push(format!("if from_s{s} < 0 || from_y{y} < 0 || from_x{x} < 0 {{"));
            text.push(format!("let value = ghost(s + {s}, y + {y}, x + {x});"));
            text.extend(self.fields.iter().map(|field| format!("u{field}_{cell} = value;")));
            text.push("} else {");
            text.extend(loads);
            text.push("}");
        }
    }

    /// Returns the stores into a block's slots of the cells that other threads need.
    fn give(&self, field: usize, given: &Given) -> Text {
        let ranks = given.ranks.iter().enumerate().filter_map(|(cell, rank)| Some((cell, (*rank)?)));
        let threads = self.threads();
        ranks
            .map(|(cell, rank)| format!("slots[here_{field} + {}] = u{field}_{cell};", rank * threads))
            .collect()
    }

    /// Returns the loops over steps. Where some windows have only computed cells and others do not, each kind
    /// has a loop of its own.
    fn steps(&self) -> Text {
        let mut text = Text::default();
        let differ = self.refreshes || self.masked.contains(&true);
        if !differ || !self.may_be_inside {
            text.push(self.masks());
            self.all_steps(&mut text, differ);
            return text;
        }
        text.push("if inside {");
        self.all_steps(&mut text, false);
        text.push("} else {");
        text.push(self.masks());
        self.all_steps(&mut text, true);
        text.push("}");
        text
    }

    /// Returns the masks, which say which planes, rows and columns of the block are computed.
    fn masks(&self) -> Text {
        let axes = (0..3).filter(|&axis| self.masked[axis]);
        let one = |axis: usize, at: usize| {
            let [upper, letter] = LETTERS[axis];
            format!(
                "let in_{letter}{at} = {letter} + {at} >= FIRST_{upper} && {letter} + {at} < END_{upper};"
            )
        };
        axes.flat_map(|axis| (0..self.exchange.cells[axis]).map(move |at| one(axis, at))).collect()
    }

    fn mask(&self, cell: usize) -> Option<String> {
        let place = self.place(cell);
        let axes = (0..3).filter(|&axis| self.masked[axis]);
        let terms: Vec<String> = axes.map(|axis| format!("in_{}{}", LETTERS[axis][1], place[axis])).collect();
        (!terms.is_empty()).then(|| terms.join(" && "))
    }

    fn all_steps(&self, text: &mut Text, edge: bool) {
        text.push("for (var n = 0u; n < run.steps; n++) {");
        let waits = self.waits(edge);
        for (number, stage) in self.stages.iter().enumerate() {
            self.stage(text, number, stage, edge, waits[number]);
        }
        text.push("}");
    }

    /// Returns whether a stage taps slots, and therefore begins with a barrier.
    fn taps_others(&self, stage: &Stage) -> bool {
        self.exchange.slots > 0 && stage.dag.taps().any(|tap| tap.offset != [0; 3])
    }

    /// Returns the fields that a stage writes and that have slots.
    fn given_by<'s>(&'s self, stage: &'s Stage) -> impl Iterator<Item = (usize, &'s Given)> + 's {
        stage.writes.iter().filter_map(|&field| Some((field, self.given(field)?)))
    }

    /// Returns for each stage whether it needs a barrier before it writes slots. It needs one where other
    /// threads may still read the slots that it overwrites: in the stage itself, or in an earlier stage from
    /// which no barrier parts it.
    fn waits(&self, edge: bool) -> Vec<bool> {
        let count = self.exchange.fields.len();
        // For each field the copy that is read, and which copies were read since the last barrier.
        let (mut current, mut read) = (vec![0; count], vec![[false; 2]; count]);
        let mut waits = vec![false; self.stages.len()];
        // Two steps bring the copies back to where they were; the reads of the steps before count too.
        for _ in 0..4 {
            for (stage, wait) in self.stages.iter().zip(&mut waits) {
                if self.taps_others(stage) {
                    read.fill([false; 2]);
                }
                for tap in stage.dag.taps().filter(|tap| tap.offset != [0; 3]) {
                    let field = usize::from(tap.field);
                    read[field][current[field]] = true;
                }
                let target = |field: usize, given: &Given| (current[field] + given.copies - 1) % given.copies;
                *wait |= self.given_by(stage).any(|(field, given)| read[field][target(field, given)]);
                if *wait {
                    read.fill([false; 2]);
                }
                for (field, given) in self.given_by(stage) {
                    current[field] = (current[field] + given.copies - 1) % given.copies;
                }
                if edge && self.refreshes && self.given_by(stage).next().is_some() {
                    read.fill([false; 2]);
                    self.given_by(stage).for_each(|(field, _)| read[field][current[field]] = true);
                }
            }
        }
        waits
    }

    /// Writes one stage: new values are computed from own cells and slots, and go back to registers and
    /// slots. With `waits`, other threads may still read the slots that the stage overwrites.
    fn stage(&self, text: &mut Text, number: usize, stage: &Stage, edge: bool, waits: bool) {
        let taps: Vec<Tap> = stage.dag.taps().collect();
        if self.taps_others(stage) {
            text.push("workgroupBarrier();");
        }
        let mut read: Vec<(u16, usize, isize)> = Vec::new();
        for cell in 0..self.volume() {
            let mut arguments = Vec::with_capacity(taps.len());
            for &tap in &taps {
                arguments.push(match self.exchange.source(cell, tap) {
                    Source::Own(place) => format!("u{}_{place}", tap.field),
                    Source::Other(rank, thread) => {
                        let key = (tap.field, rank, thread);
                        let known = read.iter().position(|&other| other == key);
                        let name = known.unwrap_or(read.len());
                        if known.is_none() {
                            let distance = (rank * self.threads()) as isize + thread;
                            let sign = if distance < 0 { '-' } else { '+' };
                            let distance = distance.unsigned_abs();
                            text.push(format!(
                                "let n{number}_{name} = slots[here_{} {sign} {distance}];",
                                tap.field
                            ));
                            read.push(key);
                        }
                        format!("n{number}_{name}")
                    }
                });
            }
            arguments.extend(
                coordinates(stage).into_iter().map(|axis| self.coordinate(axis, self.place(cell)[axis])),
            );
            arguments.extend(self.varies().then(|| format!("i32(n) * {} + {number}", self.stages.len())));
            text.push(format!("let w{number}_{cell} = stage{number}({});", arguments.join(", ")));
        }
        if waits {
            text.push("workgroupBarrier();");
        }
        for (output, &field) in stage.writes.iter().enumerate() {
            for cell in 0..self.volume() {
                let part = if stage.writes.len() > 1 { format!(".w{output}") } else { String::new() };
                let new = format!("w{number}_{cell}{part}");
                let mask = self.mask(cell).filter(|_| edge);
                let value =
                    mask.map_or(new.clone(), |mask| format!("select(u{field}_{cell}, {new}, {mask})"));
                text.push(format!("u{field}_{cell} = {value};"));
            }
            let Some(given) = self.given(field) else { continue };
            if given.copies > 1 {
                let both =
                    2 * (self.exchange.pad + given.first * self.threads()) + given.count * self.threads();
                text.push(format!("here_{field} = 2 * t + {both} - here_{field};"));
            }
            text.push(self.give(field, given));
        }
        let ghosts: Vec<usize> = self.given_by(stage).map(|(field, _)| field).collect();
        if edge && self.refreshes && !ghosts.is_empty() {
            text.push("workgroupBarrier();");
            for cell in 0..self.volume() {
                self.refresh(text, cell, &ghosts);
            }
        }
    }

    /// Writes the assignments that give a cell, if it is a ghost cell, the value of the cell that it shows.
    /// Shown cells are no ghost cells, so no ghost cell waits for another.
    fn refresh(&self, text: &mut Text, cell: usize, fields: &[usize]) {
        let [s, y, x] = self.place(cell);
        let own = cell * self.threads();
        let Some(mask) = self.mask(cell) else { return };
        text.push(format!("if !({mask}) {{"));
        text.push(format!("let at = shown(first_s, first_y, first_x, s + {s}, y + {y}, x + {x});"));
        text.push("if at >= 0 {");
        for field in fields {
            text.push(format!("u{field}_{cell} = slots[here_{field} - t + at];"));
            text.push(format!("slots[here_{field} + {own}] = u{field}_{cell};"));
        }
        text.extend(["}", "}"]);
    }

    /// Returns the expression for a cell's coordinate. For an image of a cell it is the coordinate of the
    /// cell itself.
    fn coordinate(&self, axis: usize, at: usize) -> String {
        let [upper, letter] = LETTERS[axis];
        if self.images[axis] {
            return format!("source({letter} + {at}, EXTENT_{upper}, LOW_{upper}, HIGH_{upper})");
        }
        format!("{letter} + {at}")
    }

    /// Returns the stores to device memory of the tile's cells that lie in the domain.
    fn store(&self) -> Text {
        let mut text = Text::default();
        for axis in 0..3 {
            let [upper, letter] = LETTERS[axis];
            text.push(format!("let end_{letter} = min(tile_{letter} + TILE_{upper}, EXTENT_{upper});"));
            text.extend((0..self.exchange.cells[axis]).map(|at| {
                format!(
                    "let out_{letter}{at} = {letter} + {at} >= tile_{letter} \
                     && {letter} + {at} < end_{letter};"
                )
            }));
        }
        let written: Vec<usize> =
            self.fields.iter().copied().filter(|&field| self.problem.program.is_written(field)).collect();
        for cell in 0..self.volume() {
            let [s, y, x] = self.place(cell);
            text.push(format!("if out_s{s} && out_y{y} && out_x{x} {{"));
            text.push(format!("let at = ((s + {s}) * EXTENT_Y + y + {y}) * EXTENT_X + x + {x};"));
            text.extend(written.iter().map(|field| format!("new_{field}[at] = u{field}_{cell};")));
            text.push("}");
        }
        text
    }
}

/// Writes the declaration of the slots, `words` in number.
pub(super) fn declare_slots(text: &mut Text, words: usize) {
    text.push(
        "// The cells that threads give each other; taps beyond the window land before and behind them.",
    );
    text.push(format!("var<workgroup> slots: array<real, {words}>;"));
    text.blank();
}

/// Returns the axes whose coordinates a stage's formula uses.
pub(super) fn coordinates(stage: &Stage) -> Vec<usize> {
    let uses = |axis: &usize| {
        stage.dag.nodes.iter().any(|node| matches!(node, Node::Coord(a) if usize::from(*a) == *axis))
    };
    (0..3).filter(uses).collect()
}
