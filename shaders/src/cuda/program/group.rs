//! The struct of a group of stages in kernels: how its members follow each other, where values go between them, and
//! their formulas.

use std::fmt::Display;

use abide_core::plan::fused::{Fused, Member, Section, Source};
use abide_core::program::{Boxes, Does, Indices, around};
use abide_core::reduction::leaf;
use abide_core::{DType, Problem, Stage};

use super::kinds::{boxed, triple};
use super::stages::neutral;
use super::{KernelLaunch, Part};
use crate::cuda::Cuda;
use crate::emit::{Formula, part};
use crate::program::{self, Grid, Kinds, Slot, Slots};
use crate::text::Text;

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
    /// Values of all rows in shared memory.
    pub values: usize,
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
            "extern \"C\" __global__ void __launch_bounds__({}) \
             group_{number}(const __grid_constant__ Arguments arguments)",
            self.threads
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
        match self.joined_by {
            Some(leaves) => format!("group<Group{number}, JoinRows<Stage{leaves}>>(arguments, {tile});"),
            None => format!("group<Group{number}, NoReduction>(arguments, {tile});"),
        }
    }

    /// Returns the launch of the group of this number.
    pub fn launch(&self, number: usize, dtype: DType) -> KernelLaunch {
        KernelLaunch {
            entry: format!("group_{number}"),
            blocks: self.grid.count(),
            threads: self.threads,
            shared_bytes: self.values * dtype.bytes(),
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
    /// Where each ring begins, in values.
    rings: Vec<usize>,
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
    let row = fused.values_of_row();
    let mut values = 0;
    let mut rings = Vec::new();
    for ring in &fused.rings {
        rings.push(values);
        values += ring.rows * row;
    }
    let mut writer = Writer { problem, kinds, stages, boxes, fused, made, slots: Slots::default(), rings };
    let is_reduced = |member: &Member| matches!(stages[member.stage].does, Does::Reduce(..));
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
    // A row of the tile is in the rings at its number plus this, which is never below 0.
    let before = fused.beyond[axis][0];
    let front = |member: &Member| member.lag as isize - member.beyond[axis][0] as isize;
    let start = fused.members.iter().map(front).min().unwrap_or(0);
    let end = fused.members.iter().map(|member| fused.tile[axis] + member.beyond[axis][1] + member.lag).max();
    number(&mut text, "THREADS", threads);
    number(&mut text, "AXIS", axis);
    number(&mut text, "BIAS", before);
    number(&mut text, "START", start);
    number(&mut text, "END", end.unwrap_or(0));
    text.push(format!("typedef {} Inner;", boxed(&writer.inner())));
    if let Some(place) = reduced {
        let member = &fused.members[place];
        number(&mut text, "LAG", member.lag);
        number(&mut text, "LEAVES", values);
        let leaf = leaf(problem.shape.dimensions());
        values += (leaf[axis] + 1) * row;
        if let Does::Reduce(reduction, ..) = stages[member.stage].does {
            text.push(neutral(problem, reduction));
        }
    }
    number(&mut text, "VALUES", values);
    text.push(
        "template <class View>\n__device__ static __forceinline__ void turn(const View& at, int front)\n{",
    );
    for (number, member) in fused.members.iter().enumerate() {
        for (output, goes) in member.outputs.iter().enumerate() {
            if goes.is_passed {
                text.push(format!("real passed_{number}_{output};"));
            }
        }
    }
    for section in fused.sections(stages, boxes) {
        writer.section(&mut text, &section);
    }
    text.push("}");
    let grid = Grid { tile: fused.tile, first: fused.first, blocks: fused.blocks };
    GroupBody { text, slots: writer.slots.0, reduced, joined_by: None, grid, threads, values }
}

fn number(text: &mut Text, name: &str, value: impl Display) {
    text.push(format!("static constexpr int {name} = {value};"));
}

impl Writer<'_> {
    fn own(&self, member: &Member) -> &[Indices] {
        &self.boxes.stages[member.stage]
    }

    /// Returns the box of indices at a block's front where no member has to ask anything, wherever it is behind it.
    fn inner(&self) -> Indices {
        let mut inner: Option<Indices> = None;
        for member in &self.fused.members {
            let [_, mut own] = program::boxes(self.kinds, &self.stages[member.stage], self.own(member));
            let axis = &mut own[self.fused.axis];
            *axis = axis.start + member.lag as isize..axis.end + member.lag as isize;
            inner = Some(match inner {
                None => own,
                Some(inner) => [0, 1, 2]
                    .map(|axis| inner[axis].start.max(own[axis].start)..inner[axis].end.min(own[axis].end)),
            });
        }
        inner.unwrap_or([0..0, 0..0, 0..0])
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

    /// Writes what a section does in a turn.
    fn section(&mut self, text: &mut Text, section: &Section) {
        let (fused, stages, boxes) = (self.fused, self.stages, self.boxes);
        let members = || section.members.iter().map(|&number| &fused.members[number]);
        // All members of a section compute at the same indices.
        let Some(first) = members().next() else { return };
        let computed = around(&boxes.stages[first.stage]).unwrap_or([0..0, 0..0, 0..0]);
        let names: Vec<String> = members()
            .map(|member| stages[member.stage].name.replace(|c: char| c.is_control() || c == '\\', " "))
            .collect();
        let [z, y, x] = first.beyond;
        text.push(format!("{{\n// {}", names.join(", ")));
        text.push(format!(
            "const auto u = at.template member<{}, {}, {}, {}, {}, {}, {}>(front);",
            first.lag, z[0], z[1], y[0], y[1], x[0], x[1]
        ));
        text.push("if (u.is_active) {");
        let is_reduced = |member: &Member| matches!(stages[member.stage].does, Does::Reduce(..));
        let reduces = members().any(is_reduced);
        if reduces {
            text.push("real argument = neutral();");
        }
        text.push(format!("if (u.template holds<{}>()) {{", boxed(&self.unwrapped(&computed, first))));
        let formula = self.formula(section);
        text.extend(&formula.statements);
        for (&(number, output, _), value) in section.outputs.iter().zip(&formula.outputs) {
            let member = &fused.members[number];
            match is_reduced(member) {
                true => text.push(format!("argument = {value};")),
                false => self.output(text, [number, output], member, &computed, value),
            }
        }
        text.push("}");
        if reduces {
            let rows = leaf(self.problem.shape.dimensions())[fused.axis] + 1;
            text.push(format!("u.template keep_row<LEAVES, {rows}>(argument);"));
        }
        for member in members().filter(|member| !is_reduced(member)) {
            self.take_along(text, member, &stages[member.stage], &boxes.stages[member.stage]);
        }
        text.push("}\n}");
    }

    /// Writes where an output of a member goes.
    fn output(
        &mut self,
        text: &mut Text,
        [number, output]: [usize; 2],
        member: &Member,
        computed: &Indices,
        value: &str,
    ) {
        let (goes, own) = (member.outputs[output], &self.boxes.stages[member.stage][output]);
        if goes.is_passed {
            text.push(format!("passed_{number}_{output} = {value};"));
        }
        if let Some(ring) = goes.ring {
            let (first, rows) = (self.rings[ring], self.fused.rings[ring].rows);
            let put = format!("u.template keep_row<{first}, {rows}>({value});");
            text.push(match own == computed {
                true => put,
                false => format!("if (u.template holds<{}>()) {put}", boxed(&self.unwrapped(own, member))),
            });
        }
        if goes.is_stored {
            let name = self.stages[member.stage].writes[output];
            let (kind, slot) = (self.kinds.number(name), self.write(name));
            text.push(format!(
                "if (u.is_owned) u.template store<Kind{kind}, {slot}, {}>({value});",
                boxed(own)
            ));
        }
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
                text.push(format!("u.template keep_row<{first}, {rows}>(old);"));
            }
            if goes.is_stored {
                let slot = self.write(name);
                text.push(format!("if (u.is_owned) u.template take<Kind{kind}, {slot}>(old);"));
            }
            text.push("}");
        }
    }

    /// Returns the formula of a section.
    fn formula(&mut self, section: &Section) -> Formula {
        let wanted: Vec<_> = section.outputs.iter().map(|&(.., node)| node).collect();
        let (language, dtype) = (Cuda::PROGRAM, self.problem.dtype);
        part(
            &section.nodes,
            &wanted,
            |_| None,
            &language,
            dtype,
            |place| {
                let (tap, source) = section.taps[usize::from(place.field)];
                let name = usize::from(tap.field);
                let ([z, y, x], kind) = (tap.offset, self.kinds.number(name));
                match source {
                    None => {
                        let slot = self.slots.number(Slot::Read(name));
                        format!("u.template at<Kind{kind}, {slot}, false, {z}, {y}, {x}>()")
                    }
                    Some(Source::Passed(from, output)) => format!("passed_{from}_{output}"),
                    Some(Source::Ring(ring)) => {
                        let (first, rows) = (self.rings[ring], self.fused.rings[ring].rows);
                        format!("u.template kept<Kind{kind}, {first}, {rows}, {z}, {y}, {x}>()")
                    }
                }
            },
        )
    }
}
