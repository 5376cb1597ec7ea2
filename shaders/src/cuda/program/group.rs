//! The struct of a group of stages in kernels: how its members follow each other, where values go between them, and
//! their formulas.

use std::fmt::Display;
use std::ops::Range;

use abide_core::expr::Dag;
use abide_core::plan::fused::{COPIES_AHEAD, Fused, Load, Member, Source};
use abide_core::program::{Boxes, Indices, StageKind, around};
use abide_core::reduction::leaf;
use abide_core::{Problem, Stage};

use super::kinds::{boxed, triple};
use super::stages::neutral;
use super::{KernelLaunch, Part};
use crate::cuda::Cuda;
use crate::cuda::quotients::evaluated;
use crate::emit::{Formula, part};
use crate::program::{self, Grid, Kinds, Slot, Slots};
use crate::text::Text;

/// Threads of a multiprocessor for which registers are shared out: more have too few each for a group's formulas.
const THREADS_AT_ONCE: usize = 768;

/// What stands between the braces of a group's struct, and the buffers that it names.
pub struct GroupBody {
    pub text: Text,
    pub slots: Vec<Slot>,
    /// The member that is a reduction.
    pub reduced: Option<usize>,
    /// The number of the struct that joins the reduction's leaves.
    pub joined_by: Option<usize>,
    pub grid: Grid,
    pub threads: usize,
    /// Bytes of shared memory of a block.
    pub shared_bytes: usize,
    /// Whether rows of device memory are copied.
    pub copies: bool,
}

impl GroupBody {
    /// Writes the group's struct, which has this number.
    pub fn write(&self, text: &mut Text, number: usize, names: &[&str]) {
        text.blank();
        text.push(format!("// {}", names.join(", ")));
        text.push(format!("struct Group{number} {{"));
        text.push(&self.text);
        text.push("};");
    }

    /// Writes the kernel of the group of this number.
    pub fn write_kernel(&self, text: &mut Text, number: usize, may_stop: bool) {
        text.push(format!(
            "extern \"C\" __global__ void __launch_bounds__({}, {}) \
             group_{number}(const __grid_constant__ Arguments arguments)",
            self.threads,
            (THREADS_AT_ONCE / self.threads).max(1)
        ));
        text.push("{");
        if may_stop {
            text.push("if (arguments.progress->stopped) return;");
        }
        text.push(self.call(number, "blockIdx.x"));
        text.push("}");
    }

    /// Returns the statement of the kernel of this number for a tile.
    pub fn call(&self, number: usize, tile: &str) -> String {
        let copies = if self.copies { "Copies" } else { "NoCopies" };
        let joins =
            self.joined_by.map_or("NoReduction".to_owned(), |leaves| format!("JoinRows<Stage{leaves}>"));
        format!("group<Group{number}, {joins}, {copies}>(arguments, {tile});")
    }

    /// Returns the launch of the group of this number.
    pub fn launch(&self, number: usize) -> KernelLaunch {
        KernelLaunch {
            entry: format!("group_{number}"),
            blocks: self.grid.count(),
            threads: self.threads,
            shared_bytes: self.shared_bytes,
            carries: false,
            part: Part::Tiles(self.grid.clone()),
        }
    }
}

/// A group while its struct is written.
struct Writer<'a> {
    problem: &'a Problem,
    kinds: &'a Kinds,
    stages: &'a [Stage],
    boxes: &'a Boxes,
    fused: &'a Fused,
    /// The fields and temporaries that the launch makes, in its order.
    made: &'a [usize],
    slots: Slots,
    /// Where each ring begins, in values, and then that of each load.
    rings: Vec<usize>,
    loads: Vec<usize>,
    /// Of each field and temporary that comes from device memory, the tap that comes first to a row.
    firsts: Vec<First>,
}

/// The tap of a name that is the first of a group's to come to a row.
struct First {
    name: usize,
    member: usize,
    offset: [i32; 3],
    /// The row that is tapped, from the block's front.
    row: isize,
}

/// Returns the first taps of all names that come from device memory.
fn firsts(fused: &Fused, stages: &[Stage]) -> Vec<First> {
    let mut firsts: Vec<First> = Vec::new();
    for (number, member) in fused.members.iter().enumerate() {
        for tap in stages[member.stage].dag.taps() {
            let name = usize::from(tap.field);
            if member.sources.iter().any(|&(made, _)| made == name) {
                continue;
            }
            let row = tap.offset[fused.axis] as isize - member.lag as isize;
            let first = First { name, member: number, offset: tap.offset, row };
            match firsts.iter_mut().find(|known| known.name == name) {
                Some(known) if known.row < row => *known = first,
                Some(_) => {}
                None => firsts.push(first),
            }
        }
    }
    firsts
}

/// Returns the body of a group, whose stages are given as they are lowered, in blocks of so many threads.
pub fn group(
    problem: &Problem,
    kinds: &Kinds,
    stages: &[Stage],
    boxes: &Boxes,
    fused: &Fused,
    threads: usize,
    made: &[usize],
) -> GroupBody {
    let (row, wide) = (fused.values_of_row(), fused.values_of_wide());
    let mut values = 0;
    let (mut rings, mut loads) = (Vec::new(), Vec::new());
    for load in &fused.loads {
        loads.push(values);
        values += load.rows * wide;
    }
    for ring in &fused.rings {
        rings.push(values);
        values += ring.rows * row;
    }
    let firsts = if fused.loads.is_empty() { firsts(fused, stages) } else { Vec::new() };
    let slots = Slots::default();
    let mut writer = Writer { problem, kinds, stages, boxes, fused, made, slots, rings, loads, firsts };
    let is_reduced = |member: &Member| matches!(stages[member.stage].does, StageKind::Reduce(..));
    let reduced = fused.members.iter().position(is_reduced);
    let mut text = Text::default();
    let axis = fused.axis;
    text.push(format!("static {}", triple("int", "TILE", fused.tile)));
    text.push(format!("static {}", triple("Offset", "FIRST", fused.first)));
    text.push(format!("static {}", triple("unsigned", "BLOCKS", fused.blocks)));
    text.push(format!("static {}", triple("int", "ROW", fused.row())));
    let across = |axis: usize| if axis > fused.axis { fused.beyond[axis][0] } else { 0 };
    text.push(format!("static {}", triple("int", "BEFORE", [0, 1, 2].map(across))));
    text.push(format!("static {}", triple("bool", "WRAPS", fused.wraps)));
    text.push(format!("static {}", triple("int", "WIDE", fused.wide())));
    text.push(format!("static {}", triple("int", "COPIED", fused.copied.map(|[low, _]| low))));
    let front = |member: &Member| member.lag as isize - member.beyond[axis][0] as isize;
    let start = fused.members.iter().map(front).min().unwrap_or(0);
    let end = fused.members.iter().map(|member| fused.tile[axis] + member.beyond[axis][1] + member.lag).max();
    number(&mut text, "THREADS", threads);
    number(&mut text, "AXIS", axis);
    let window = fused.loads.iter().map(|load| load.window).max().unwrap_or(0);
    let lowest = fused.loads.iter().map(|load| start + load.top - load.window as isize).min().unwrap_or(0);
    // A row of the tile is in the rings at its number plus this, which is never below 0.
    let bias = (fused.beyond[axis][0] as isize).max((window + COPIES_AHEAD) as isize - start).max(-lowest);
    number(&mut text, "BIAS", bias);
    number(&mut text, "START", start);
    number(&mut text, "END", end.unwrap_or(0));
    number(&mut text, "WINDOW", window);
    let turns = start..end.unwrap_or(0) as isize;
    text.push(format!("typedef {} Inner;", boxed(&writer.inner(&turns))));
    if let Some(place) = reduced {
        let member = &fused.members[place];
        number(&mut text, "LAG", member.lag);
        number(&mut text, "LEAVES", values);
        let leaf = leaf(problem.shape.dimensions());
        values += (leaf[axis] + 1) * row;
        if let StageKind::Reduce(reduction, ..) = stages[member.stage].does {
            text.push(neutral(problem, reduction));
        }
    }
    number(&mut text, "VALUES", values);
    writer.turn(&mut text, reduced.is_some());
    writer.copies(&mut text);
    writer.turns(&mut text, true);
    writer.turns(&mut text, false);
    let grid = Grid { tile: fused.tile, first: fused.first, blocks: fused.blocks };
    let (shared_bytes, copies) = (fused.shared_bytes(problem), !fused.loads.is_empty());
    GroupBody { text, slots: writer.slots.0, reduced, joined_by: None, grid, threads, shared_bytes, copies }
}

fn number(text: &mut Text, name: &str, value: impl Display) {
    text.push(format!("static constexpr int {name} = {value};"));
}

impl Writer<'_> {
    fn own(&self, member: &Member) -> &[Indices] {
        &self.boxes.stages[member.stage]
    }

    /// Writes the type of a turn: the block's front, and its remainders by the rows of rings.
    fn turn(&self, text: &mut Text, reduces: bool) {
        let leaves = leaf(self.problem.shape.dimensions())[self.fused.axis] + 1;
        let mut all: Vec<usize> = self.fused.rings.iter().map(|ring| ring.rows).collect();
        all.extend(self.fused.loads.iter().map(|load| load.rows));
        all.extend(reduces.then_some(leaves));
        all.retain(|rows| !rows.is_power_of_two());
        all.sort_unstable();
        all.dedup();
        let each = |of: &dyn Fn(&usize) -> String| all.iter().map(of).collect::<String>();
        text.push("struct Turn {");
        text.push(format!("int front{};", each(&|rows| format!(", by_{rows}"))));
        let first = each(&|rows| format!(", by_{rows}(unsigned(front + BIAS) % {rows})"));
        text.push(format!("__device__ __forceinline__ explicit Turn(int front) : front(front){first} {{}}"));
        let next = each(&|rows| format!(" by_{rows} = ::next<{rows}>(by_{rows});"));
        text.push(format!("__device__ __forceinline__ void next() {{ ++front;{next} }}"));
        text.push("template <int ROWS>\n__device__ __forceinline__ int remainder() const\n{");
        for rows in &all {
            text.push(format!("if constexpr (ROWS == {rows}) return by_{rows};"));
        }
        text.push("return 0;\n}\n};");
    }

    /// Writes what a block copies from device memory in a turn: where the places of a row lie, the copies, and the signs that
    /// a boundary gives.
    fn copies(&mut self, text: &mut Text) {
        if self.fused.loads.is_empty() {
            return;
        }
        let (mut found, mut copied, mut signed): (Vec<usize>, Vec<String>, Vec<String>) = Default::default();
        let (mut finds, mut advances) = (Vec::new(), Vec::new());
        for (load, first) in self.fused.loads.iter().zip(&self.loads) {
            let Load { name, rows, top, window, layout } = *load;
            let (kind, slot) = (self.kinds.number(name), self.slots.number(Slot::Read(name)));
            if !found.contains(&layout) {
                found.push(layout);
                finds.push(format!("copies.template find<Kind{kind}, {layout}>();"));
                advances.push(format!("copies.template advance<Kind{kind}, {layout}>();"));
            }
            copied.push(format!(
                "copies.template copy<BEGINS, Kind{kind}, {slot}, {first}, {rows}, {top}, {window}, {layout}>(turn);"
            ));
            let sides = [0, 1, 2].map(|axis| self.kinds.kind(name).sides(axis));
            if sides.as_flattened().iter().any(|side| side.is_negated()) {
                signed.push(format!(
                    "copies.template sign<Kind{kind}, {first}, {rows}, {top}, {window}, {layout}>(turn);"
                ));
            }
        }
        number(text, "LAYOUTS", found.len());
        copied.extend(advances);
        for (types, function, argument, all) in [
            ("class Copies", "find", "", finds),
            ("bool BEGINS, class Copies", "copy", ", const Turn& turn", copied),
            ("class Copies", "sign", ", const Turn& turn", signed),
        ] {
            text.push(format!(
                "template <{types}>\n__device__ static __forceinline__ void {function}(Copies& copies{argument})\n{{"
            ));
            text.extend(&all);
            text.push("}");
        }
    }

    /// Returns the box of tiles, by the indices that they own, in which nothing has to be asked in these turns.
    fn inner(&self, turns: &Range<isize>) -> Indices {
        let mut inner: Option<Indices> = None;
        for member in &self.fused.members {
            let stage = &self.stages[member.stage];
            let [_, own] = program::boxes(self.kinds, stage, self.own(member));
            let own = [0, 1, 2].map(|axis| {
                let [low, high] = member.beyond[axis].map(|by| by as isize);
                own[axis].start + low..own[axis].end - high
            });
            inner = Some(match inner {
                None => own,
                Some(inner) => [0, 1, 2]
                    .map(|axis| inner[axis].start.max(own[axis].start)..inner[axis].end.min(own[axis].end)),
            });
        }
        let mut inner = inner.unwrap_or([0..0, 0..0, 0..0]);
        for load in &self.fused.loads {
            let held = self.kinds.kind(load.name).held();
            for (axis, inner) in inner.iter_mut().enumerate() {
                // The first index that a tile asks for, and the last one behind its own.
                let [low, high] = self.fused.copied[axis].map(|by| by as isize);
                let [low, high] = match axis == self.fused.axis {
                    true => [
                        load.window as isize - load.top - turns.start,
                        turns.end - 1 + load.top - (self.fused.tile[axis] as isize - 1),
                    ],
                    false => [low, high],
                };
                *inner = inner.start.max(held[axis].start + low)..inner.end.min(held[axis].end - high);
            }
        }
        inner
    }

    /// Returns a box, without ends along the axes where indices beyond the domain are computed anew.
    fn unwrapped(&self, indices: &Indices, member: &Member) -> Indices {
        [0, 1, 2].map(|axis| {
            let [low, high] = match self.fused.wraps[axis] {
                true => member.beyond[axis].map(|by| by as isize),
                false => [0; 2],
            };
            indices[axis].start - low..indices[axis].end + high
        })
    }

    /// Writes what the stages do in a turn: of a tile inside, in which all stages compute everywhere, or of any.
    fn turns(&mut self, text: &mut Text, inside: bool) {
        let name = if inside { "turn_inside" } else { "turn_anywhere" };
        text.push(format!(
            "template <class View>\n__device__ static __forceinline__ void {name}(const View& at, const Turn& turn)\n{{"
        ));
        for (number, member) in self.fused.members.iter().enumerate() {
            for (output, goes) in member.outputs.iter().enumerate() {
                if goes.is_passed {
                    text.push(format!("real passed_{number}_{output};"));
                }
            }
        }
        for section in self.sections(inside) {
            self.section(text, &section, inside);
        }
        text.push("}");
    }

    /// Returns the members that compute at the same indices in the same turn, so that what their formulas share is computed once:
    /// each after those whose values it takes.
    fn sections(&self, inside: bool) -> Vec<Vec<usize>> {
        let members = &self.fused.members;
        let own = |member: &Member| if inside { None } else { around(self.own(member)) };
        let key = |member: &Member| (member.lag, member.beyond, own(member));
        let is_reduced = |member: &Member| matches!(self.stages[member.stage].does, StageKind::Reduce(..));
        let mut sections: Vec<Vec<usize>> = Vec::new();
        for (number, member) in members.iter().enumerate() {
            let place = |maker: usize| sections.iter().position(|section| section.contains(&maker));
            let earliest = member.sources.iter().map(|&(name, source)| match source {
                Source::Passed(maker, _) => place(maker).unwrap_or(0),
                // What is kept in this turn can be read when its section has ended.
                Source::Ring(ring) => {
                    let makes = |maker: &usize| {
                        members[*maker].outputs.iter().any(|output| output.ring == Some(ring))
                    };
                    debug_assert_eq!(self.fused.rings[ring].name, name);
                    (0..number).filter(makes).filter_map(place).max().map_or(0, |last| last + 1)
                }
            });
            let earliest = earliest.max().unwrap_or(0);
            let is_alike = |section: &Vec<usize>| {
                section
                    .first()
                    .is_some_and(|&first| !is_reduced(&members[first]) && key(&members[first]) == key(member))
            };
            let known =
                (earliest..sections.len()).find(|&place| !is_reduced(member) && is_alike(&sections[place]));
            match known {
                Some(place) => sections[place].push(number),
                None => sections.push(vec![number]),
            }
        }
        sections
    }

    /// Writes what members that compute at the same indices do in a turn.
    fn section(&mut self, text: &mut Text, numbers: &[usize], inside: bool) {
        let fused = self.fused;
        let [first, ..] = *numbers else { return };
        let [z, y, x] = fused.members[first].beyond;
        let lag = fused.members[first].lag;
        let names = numbers.iter().map(|&number| &*self.stages[fused.members[number].stage].name);
        let names = names.collect::<Vec<_>>().join(", ");
        text.push(format!("{{\n// {}", names.replace(|c: char| c.is_control() || c == '\\', " ")));
        text.push(format!(
            "const auto u = at.template member<{lag}, {}, {}, {}, {}, {}, {}>(turn);",
            z[0], z[1], y[0], y[1], x[0], x[1]
        ));
        for &number in numbers {
            self.prefetch(text, number);
        }
        text.push("if (u.is_active) {");
        let computed = around(self.own(&fused.members[first])).unwrap_or([0..0, 0..0, 0..0]);
        if matches!(self.stages[fused.members[first].stage].does, StageKind::Reduce(..)) {
            self.argument(text, &fused.members[first], &computed);
            text.push("}\n}");
            return;
        }
        text.push(format!(
            "if (u.template holds<{}>()) {{",
            boxed(&self.unwrapped(&computed, &fused.members[first]))
        ));
        let outputs = self.formulas(text, numbers);
        for (place, &(number, output)) in outputs.iter().enumerate() {
            let member = &fused.members[number];
            let stage = &self.stages[member.stage];
            let own = self.own(member)[output].clone();
            let (goes, value) = (member.outputs[output], format!("values.v[{place}]"));
            if goes.is_passed {
                text.push(format!("passed_{number}_{output} = {value};"));
            }
            if let Some(ring) = goes.ring {
                let (first, rows) = (self.rings[ring], fused.rings[ring].rows);
                let put = format!("u.template keep_row<{first}, {rows}, -{lag}>({value});");
                text.push(match inside || own == computed {
                    true => put,
                    false => {
                        format!("if (u.template holds<{}>()) {put}", boxed(&self.unwrapped(&own, member)))
                    }
                });
            }
            if goes.is_stored {
                let (kind, slot) =
                    (self.kinds.number(stage.writes[output]), self.write(stage.writes[output]));
                text.push(format!(
                    "if (u.is_owned) u.template store<Kind{kind}, {slot}, {}>({value});",
                    boxed(&own)
                ));
            }
        }
        text.push("}");
        for &number in numbers.iter().filter(|_| !inside) {
            let member = &fused.members[number];
            let own = self.own(member).to_vec();
            self.take_along(text, member, &self.stages[member.stage], &own);
        }
        text.push("}\n}");
    }

    /// Writes the formulas of members that compute at the same indices as one, and returns the member and output of each value
    /// of `values`.
    fn formulas(&mut self, text: &mut Text, numbers: &[usize]) -> Vec<(usize, usize)> {
        let fused = self.fused;
        let outputs: Vec<(usize, usize)> = numbers
            .iter()
            .flat_map(|&number| {
                fused.members[number].outputs.iter().enumerate().map(move |(k, goes)| (number, k, goes))
            })
            .filter(|(.., goes)| **goes != Default::default())
            .map(|(number, output, _)| (number, output))
            .collect();
        let mut body = Text::default();
        for &number in numbers {
            let member = &fused.members[number];
            let own: Vec<usize> =
                outputs.iter().filter(|(maker, _)| *maker == number).map(|&(_, output)| output).collect();
            let formula = self.formula(member, &own, &outputs, numbers);
            body.push("{");
            body.extend(&formula.statements);
            for (output, value) in own.iter().zip(&formula.outputs) {
                let place = outputs.iter().position(|known| *known == (number, *output)).unwrap_or(0);
                body.push(format!("values.v[{place}] = {value};"));
            }
            body.push("}");
        }
        let is_at_once =
            |&number: &usize| Cuda::of_launch(&self.stages[fused.members[number].stage].dag).at_once;
        let count = outputs.len();
        if numbers.iter().any(is_at_once) {
            text.push("const auto values = evaluate(u, [&](const auto& u, auto& exact) {");
            text.push(format!("Values<{count}> values;"));
            text.push(&body);
            text.push("return values;\n});");
        } else {
            text.push(format!("struct {{ real v[{}]; }} values;", count.max(1)));
            text.push(&body);
        }
        outputs
    }

    /// Writes what asks for the rows that the next turn reads first, of each field and temporary by the member that is the
    /// first to come there.
    fn prefetch(&mut self, text: &mut Text, number: usize) {
        let own: Vec<&First> = self.firsts.iter().filter(|first| first.member == number).collect();
        if own.is_empty() {
            return;
        }
        text.push("if (u.is_next) {");
        for &First { name, offset: [z, y, x], .. } in own {
            let (kind, slot) = (self.kinds.number(name), self.slots.number(Slot::Read(name)));
            text.push(format!("u.template ahead<Kind{kind}, {slot}, {z}, {y}, {x}>();"));
        }
        text.push("}");
    }

    /// Returns the slot of the buffer to which a field or temporary goes.
    fn write(&mut self, name: usize) -> usize {
        let place = self.made.iter().position(|&made| made == name).unwrap_or(0);
        self.slots.number(Slot::Write(place))
    }

    /// Writes what keeps the values of fields that a stage does not compute.
    fn take_along(&mut self, text: &mut Text, member: &Member, stage: &Stage, own: &[Indices]) {
        let fields = self.problem.program.fields().len();
        for (output, goes) in member.outputs.iter().enumerate() {
            let name = stage.writes[output];
            let held = self.kinds.kind(name).held();
            if name >= fields || own[output] == held || *goes == Default::default() {
                continue;
            }
            let (kind, old) = (self.kinds.number(name), self.slots.number(Slot::Read(name)));
            let [all, computed] =
                [&held, &own[output]].map(|indices| boxed(&self.unwrapped(indices, member)));
            text.push(format!("if (u.template misses<{all}, {computed}>()) {{"));
            text.push(format!("const real old = u.template at<Kind{kind}, {old}, false, 0, 0, 0>();"));
            if let Some(ring) = goes.ring {
                let (first, rows) = (self.rings[ring], self.fused.rings[ring].rows);
                text.push(format!("u.template keep_row<{first}, {rows}, -{}>(old);", member.lag));
            }
            if goes.is_stored {
                let slot = self.write(name);
                text.push(format!("if (u.is_owned) u.template take<Kind{kind}, {slot}>(old);"));
            }
            text.push("}");
        }
    }

    /// Writes what keeps the argument of a reduction.
    fn argument(&mut self, text: &mut Text, member: &Member, computed: &Indices) {
        text.push("real value = neutral();");
        text.push(format!("if (u.template holds<{}>()) {{", boxed(computed)));
        let dag = &self.stages[member.stage].dag;
        let values = evaluated(text, &self.formula(member, &[0], &[], &[]), &Cuda::of_launch(dag));
        text.push(format!("value = {};\n}}", values[0]));
        let rows = leaf(self.problem.shape.dimensions())[self.fused.axis] + 1;
        text.push(format!("u.template keep_row<LEAVES, {rows}, -{}>(value);", member.lag));
    }

    /// Returns the formula of some outputs of a member, among members that are computed together and have made `values` of these
    /// members and outputs.
    fn formula(
        &mut self,
        member: &Member,
        outputs: &[usize],
        values: &[(usize, usize)],
        together: &[usize],
    ) -> Formula {
        let dag = &self.stages[member.stage].dag;
        let Dag { nodes, outputs: all } = dag;
        let wanted: Vec<_> = outputs.iter().map(|&output| all[output]).collect();
        let (language, dtype) = (Cuda::of_launch(dag).with_singles(self.kinds.singles()), self.problem.dtype);
        part(
            nodes,
            &wanted,
            |_| None,
            &language,
            dtype,
            |tap| {
                let name = usize::from(tap.field);
                let ([z, y, x], kind) = (tap.offset, self.kinds.number(name));
                let row = tap.offset[self.fused.axis] as isize - member.lag as isize;
                match member.sources.iter().find(|(made, _)| *made == name) {
                    None => match self.fused.loads.iter().position(|load| load.name == name) {
                        Some(load) => {
                            let (first, rows) = (self.loads[load], self.fused.loads[load].rows);
                            format!("u.template copied<{first}, {rows}, {row}, {y}, {x}>()")
                        }
                        None => {
                            let slot = self.slots.number(Slot::Read(name));
                            format!("u.template at<Kind{kind}, {slot}, false, {z}, {y}, {x}>()")
                        }
                    },
                    Some(&(_, Source::Passed(from, output))) if together.contains(&from) => {
                        let place = values.iter().position(|known| *known == (from, output)).unwrap_or(0);
                        format!("values.v[{place}]")
                    }
                    Some((_, Source::Passed(from, output))) => format!("passed_{from}_{output}"),
                    Some(&(_, Source::Ring(ring))) => {
                        let (first, rows) = (self.rings[ring], self.fused.rings[ring].rows);
                        format!("u.template kept<Kind{kind}, {first}, {rows}, {row}, {z}, {y}, {x}>()")
                    }
                }
            },
        )
    }
}
