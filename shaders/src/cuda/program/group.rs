//! The struct of a group of stages in kernels: how its members follow each other, where values go between them, and
//! their formulas.

use std::fmt::Display;

use abide_core::expr::Dag;
use abide_core::plan::fused::{Fused, Member, Source};
use abide_core::program::{Boxes, Indices, StageKind, around};
use abide_core::reduction::leaf;
use abide_core::{DType, Problem, Stage};

use super::kinds::{boxed, triple};
use super::stages::{evaluated, neutral};
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
    let row = fused.values_of_row();
    let mut values = 0;
    let mut rings = Vec::new();
    for ring in &fused.rings {
        rings.push(values);
        values += ring.rows * row;
    }
    let (slots, firsts) = (Slots::default(), firsts(fused, stages));
    let mut writer = Writer { problem, kinds, stages, boxes, fused, made, slots, rings, firsts };
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
        if let StageKind::Reduce(reduction, ..) = stages[member.stage].does {
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
    for number in 0..fused.members.len() {
        writer.member(&mut text, number);
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

    /// Returns the box of tiles, by the indices that they own, in which nothing has to be asked.
    fn inner(&self) -> Indices {
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

    /// Writes what a member does in a turn.
    fn member(&mut self, text: &mut Text, number: usize) {
        let member = &self.fused.members[number];
        let stage = &self.stages[member.stage];
        let own = self.own(member).to_vec();
        let [z, y, x] = member.beyond;
        text.push(format!("{{\n// {}", stage.name.replace(|c: char| c.is_control() || c == '\\', " ")));
        text.push(format!(
            "const auto u = at.template member<{}, {}, {}, {}, {}, {}, {}>(front);",
            member.lag, z[0], z[1], y[0], y[1], x[0], x[1]
        ));
        self.prefetch(text, number);
        text.push("if (u.is_active) {");
        let computed = around(&own).unwrap_or([0..0, 0..0, 0..0]);
        if matches!(stage.does, StageKind::Reduce(..)) {
            self.argument(text, member, &computed);
            text.push("}\n}");
            return;
        }
        text.push(format!("if (u.template holds<{}>()) {{", boxed(&self.unwrapped(&computed, member))));
        let outputs: Vec<usize> =
            (0..own.len()).filter(|&output| member.outputs[output] != Default::default()).collect();
        let values = evaluated(text, &self.formula(member, &outputs), &stage.dag);
        for (&output, value) in outputs.iter().zip(&values) {
            let goes = member.outputs[output];
            let is_whole = own[output] == computed;
            if goes.is_passed {
                text.push(format!("passed_{number}_{output} = {value};"));
            }
            if let Some(ring) = goes.ring {
                let (first, rows) = (self.rings[ring], self.fused.rings[ring].rows);
                let put = format!("u.template keep_row<{first}, {rows}>({value});");
                text.push(match is_whole {
                    true => put,
                    false => format!(
                        "if (u.template holds<{}>()) {put}",
                        boxed(&self.unwrapped(&own[output], member))
                    ),
                });
            }
            if goes.is_stored {
                let (kind, slot) =
                    (self.kinds.number(stage.writes[output]), self.write(stage.writes[output]));
                text.push(format!(
                    "if (u.is_owned) u.template store<Kind{kind}, {slot}, {}>({value});",
                    boxed(&own[output])
                ));
            }
        }
        text.push("}");
        self.take_along(text, member, stage, &own);
        text.push("}\n}");
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
                text.push(format!("u.template keep_row<{first}, {rows}>(old);"));
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
        let values = evaluated(text, &self.formula(member, &[0]), dag);
        text.push(format!("value = {};\n}}", values[0]));
        let rows = leaf(self.problem.shape.dimensions())[self.fused.axis] + 1;
        text.push(format!("u.template keep_row<LEAVES, {rows}>(value);"));
    }

    /// Returns the formula of some outputs of a member.
    fn formula(&mut self, member: &Member, outputs: &[usize]) -> Formula {
        let dag = &self.stages[member.stage].dag;
        let Dag { nodes, outputs: all } = dag;
        let wanted: Vec<_> = outputs.iter().map(|&output| all[output]).collect();
        let (language, dtype) = (Cuda::of_program(dag), self.problem.dtype);
        part(
            nodes,
            &wanted,
            |_| None,
            &language,
            dtype,
            |tap| {
                let name = usize::from(tap.field);
                let ([z, y, x], kind) = (tap.offset, self.kinds.number(name));
                match member.sources.iter().find(|(made, _)| *made == name) {
                    None => {
                        let slot = self.slots.number(Slot::Read(name));
                        format!("u.template at<Kind{kind}, {slot}, false, {z}, {y}, {x}>()")
                    }
                    Some((_, Source::Passed(from, output))) => format!("passed_{from}_{output}"),
                    Some(&(_, Source::Ring(ring))) => {
                        let (first, rows) = (self.rings[ring], self.fused.rings[ring].rows);
                        format!("u.template kept<Kind{kind}, {first}, {rows}, {z}, {y}, {x}>()")
                    }
                }
            },
        )
    }
}
