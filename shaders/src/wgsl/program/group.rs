//! The kernel of a group of stages: how its members follow each other, where values go between them, and their
//! formulas, which are written twice as those of single stages are.

use abide_core::domain::axis_name;
use abide_core::expr::{Dag, Tap};
use abide_core::plan::fused::{Fused, Member, Output, Source};
use abide_core::program::{Boxes, Indices, Reduction, StageKind, around, is_empty};
use abide_core::reduction::leaf;
use abide_core::{Problem, Stage};

use super::stages::{
    Body, StageContext, asks_boundary, blocks, ghost, holds, language, leaves_of, place, strides,
};
use crate::emit::{Formula, part};
use crate::program::{self, Grid, Kinds, Slot, Slots};
use crate::text::Text;
use crate::wgsl::language::literal;
use crate::wgsl::{constant, moved};

const GROUP: &str = include_str!("../../../kernels/wgsl/program/group.wgsl");
const REDUCE: &str = include_str!("../../../kernels/wgsl/program/group_reduce.wgsl");

/// A group while its kernel is written.
struct Writer<'a> {
    context: &'a StageContext<'a>,
    stages: &'a [Stage],
    boxes: &'a Boxes,
    fused: &'a Fused,
    /// The fields and temporaries that the launch makes, in its order.
    made: &'a [usize],
    /// Of each of these, whether it is written where it lies.
    stays: &'a [bool],
    slots: Slots,
    /// The buffers, by slot and name, that are tapped where the boundary is asked.
    asked: Vec<(usize, usize)>,
    /// The rings that are tapped so.
    asked_rings: Vec<usize>,
}

/// What a member's taps name at one index.
#[derive(Default)]
struct Named {
    /// The places at which taps ask a boundary, with what finds them.
    ghosts: Vec<(String, String)>,
    /// The rows of rings, with what finds their slots.
    rows: Vec<(String, String)>,
    /// The kinds of buffers.
    places: Vec<usize>,
}

impl Named {
    fn add(list: &mut Vec<(String, String)>, name: String, value: String) -> String {
        if !list.iter().any(|(known, _)| *known == name) {
            list.push((name.clone(), value));
        }
        name
    }

    fn place(&mut self, kind: usize) -> String {
        if !self.places.contains(&kind) {
            self.places.push(kind);
        }
        format!("at_{kind}")
    }

    fn declarations(list: &[(String, String)]) -> Text {
        list.iter().map(|(name, value)| format!("let {name} = {value};")).collect()
    }
}

impl StageContext<'_> {
    /// Returns the kernels of a group, whose stages are given as they are lowered, and the slots of the first: the
    /// group's own, and that which joins the leaves of its reduction if it has one.
    pub fn group(
        &self,
        stages: &[Stage],
        boxes: &Boxes,
        fused: &Fused,
        made: &[usize],
        stays: &[bool],
    ) -> (Vec<Body>, Vec<Slot>) {
        let mut writer = Writer {
            context: self,
            stages,
            boxes,
            fused,
            made,
            stays,
            slots: Slots::default(),
            asked: Vec::new(),
            asked_rings: Vec::new(),
        };
        let inner = writer.inner();
        let has_inner_tile = (0..3).all(|axis| inner[axis].len() >= fused.tile[axis]);
        let inside = if has_inner_tile { writer.turn(false) } else { Text::default() };
        let edge = writer.turn(true);
        let reduction = fused.members.iter().find_map(|member| match stages[member.stage].does {
            StageKind::Reduce(reduction, _, scalar) => Some((member, reduction, scalar)),
            _ => None,
        });
        let mut text = Text::default();
        writer.begin(&mut text, &inner);
        let mut values = fused.values_of_rings();
        let mut leaves = None;
        if let Some((member, reduction, scalar)) = reduction {
            let grid = writer.leaves(member);
            values += writer.reduction(&mut text, reduction, &grid);
            leaves = Some((member.lag, scalar, reduction, grid));
        }
        if values > 0 {
            text.push(format!("var<workgroup> rings: array<real, {values}>;"));
        }
        writer.functions(&mut text);
        let joined = leaves.iter().map(|(lag, ..)| {
            format!(
                "let row = front - {lag};\nif row >= 0 && row < TILE_{} && row % LEAF_ROWS == LEAF_ROWS - 1 {{\n\
                 join_leaves(i32(local), row, z0, y0, x0);\n}}",
                axis_name(fused.axis).to_uppercase()
            )
        });
        let parts = [
            ("ended", self.ended()),
            ("passed", writer.passed()),
            ("inside", inside),
            ("edge", edge),
            ("joined", joined.collect()),
        ];
        text.filled(GROUP, &parts);
        let slots = writer.slots.0;
        let mut own =
            Body::of_values(text, self.problem.dtype, &slots, fused.threads, fused.blocks.iter().product());
        own.workgroup_bytes = (values * self.problem.dtype.bytes()).next_multiple_of(16);
        own.leaves = leaves.as_ref().map_or(0, |(.., grid)| leaves_of(grid));
        let joins = leaves.map(|(_, scalar, reduction, grid)| self.leaves(reduction, scalar, &grid));
        (std::iter::once(own).chain(joins).collect(), slots)
    }
}

impl Writer<'_> {
    fn problem(&self) -> &Problem {
        self.context.problem
    }

    fn kinds(&self) -> &Kinds {
        self.context.kinds
    }

    /// Returns the box of tiles, by the indices that they own, in which nothing has to be asked.
    fn inner(&self) -> Indices {
        let of = |member: &Member| {
            let [_, own] =
                program::boxes(self.kinds(), &self.stages[member.stage], &self.boxes.stages[member.stage]);
            [0, 1, 2].map(|axis| {
                let [low, high] = member.beyond[axis].map(|by| by as isize);
                own[axis].start + low..own[axis].end - high
            })
        };
        let both = |one: Indices, two: Indices| {
            [0, 1, 2].map(|axis| one[axis].start.max(two[axis].start)..one[axis].end.min(two[axis].end))
        };
        self.fused.members.iter().map(of).reduce(both).unwrap_or([0..0, 0..0, 0..0])
    }

    /// Returns a box, with what a member computes anew beyond the domain.
    fn unwrapped(&self, indices: &Indices, member: &Member) -> Indices {
        if is_empty(indices) {
            return indices.clone();
        }
        [0, 1, 2].map(|axis| {
            let [low, high] = match self.fused.wraps[axis] {
                true => member.beyond[axis].map(|by| by as isize),
                false => [0; 2],
            };
            indices[axis].start - low..indices[axis].end + high
        })
    }

    /// Returns the grid of the leaves of a reduction, which are counted from the first index of the domain.
    fn leaves(&self, member: &Member) -> Grid {
        let leaf = leaf(self.problem().shape.dimensions());
        Grid::over(&self.boxes.stages[member.stage][0], leaf, [0; 3])
    }

    /// Writes the sizes, the box of inner tiles and the rings.
    fn begin(&self, text: &mut Text, inner: &Indices) {
        let Fused { axis, tile, first, threads, .. } = *self.fused;
        let members = || self.fused.members.iter();
        let start = members().map(|member| member.lag as isize - member.beyond[axis][0] as isize).min();
        let end = members().map(|member| member.lag + tile[axis] + member.beyond[axis][1]).max();
        constant(text, "THREADS", threads);
        for (axis, letter) in ["Z", "Y", "X"].into_iter().enumerate() {
            constant(text, &format!("TILE_{letter}"), tile[axis]);
            constant(text, &format!("FIRST_{letter}"), first[axis]);
        }
        let grid = Grid { tile, first, blocks: self.fused.blocks };
        blocks(text, &grid);
        constant(text, "START", start.unwrap_or(0));
        constant(text, "END", end.unwrap_or(0));
        constant(text, "ROW", self.fused.values_of_row());
        constant(text, "ROW_X", self.fused.row()[2]);
        constant(text, "BEFORE_Y", if axis == 0 { self.fused.beyond[1][0] } else { 0 });
        constant(text, "BEFORE_X", self.fused.beyond[2][0]);
        text.blank();
        text.push(format!("fn is_inner(z: i32, y: i32, x: i32) -> bool {{\nreturn {};\n}}", holds(inner)));
        let mut first = 0;
        for (number, ring) in self.fused.rings.iter().enumerate() {
            // Rows are counted from the first that anybody computes, so that none is below 0.
            let before = self.fused.beyond[axis][0];
            text.push(format!("fn row_{number}(row: i32) -> i32 {{"));
            text.push(format!("return {first} + i32(u32(row + {before}) % {}u) * ROW;\n}}", ring.rows));
            first += ring.rows * self.fused.values_of_row();
        }
    }

    /// Writes what a reduction needs, and returns the values that it keeps.
    fn reduction(&self, text: &mut Text, reduction: Reduction, grid: &Grid) -> usize {
        let (axis, tile) = (self.fused.axis, self.fused.tile);
        let leaf = grid.tile;
        let columns: usize = (axis + 1..3).map(|axis| tile[axis]).product();
        let levels = leaf[axis].ilog2() as usize;
        text.blank();
        for (axis, letter) in ["Z", "Y", "X"].into_iter().enumerate() {
            constant(text, &format!("LEAF_{letter}"), leaf[axis]);
            constant(text, &format!("LEAVES_{letter}"), grid.blocks[axis]);
        }
        constant(text, "LEAF_ROWS", leaf[axis]);
        constant(text, "LEAF_ACROSS", if axis == 0 { leaf[1] } else { 1 });
        constant(text, "COLUMNS", columns);
        // The rows of the reduction lie behind the rings.
        let first = self.fused.values_of_rings();
        constant(text, "JOINED", first);
        constant(text, "TOP", first + levels * columns);
        text.push(format!("const ALONG_Z: bool = {};", axis == 0));
        text.push(self.context.joining(reduction));
        text.file(REDUCE);
        text.blank();
        (levels + 1) * columns
    }

    /// Writes the functions by which taps ask boundaries.
    fn functions(&self, text: &mut Text) {
        let buffers = self.asked.iter().map(|&(_, name)| name);
        let rings = self.asked_rings.iter().map(|&ring| self.fused.rings[ring].name);
        let mut numbers: Vec<usize> = buffers.chain(rings).map(|name| self.kinds().number(name)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().for_each(|number| self.context.ghost_functions(text, number));
        for &(slot, name) in &self.asked {
            self.context.tap_function(text, slot, name);
        }
        let (row, across) = match self.fused.axis {
            0 => ("a.index - first.x", "(b.index - first.y + BEFORE_Y) * ROW_X + "),
            _ => ("b.index - first.y", ""),
        };
        let zero = literal(self.problem().dtype, 0.0);
        for ring in &self.asked_rings {
            text.blank();
            text.push(format!("fn kept_{ring}(a: Ghost, b: Ghost, c: Ghost, first: vec3i) -> real {{"));
            text.push(format!("var stored = {zero};"));
            text.push("if !(a.constant || b.constant || c.constant) {");
            text.push(format!("stored = rings[row_{ring}({row}) + {across}c.index - first.z + BEFORE_X];"));
            text.push("}\nreturn seen(stored, a, b, c);\n}");
        }
        text.blank();
    }

    /// Returns the declarations of what members hand on at an index.
    fn passed(&self) -> Text {
        let mut text = Text::default();
        for (number, member) in self.fused.members.iter().enumerate() {
            let passed = member.outputs.iter().enumerate().filter(|(_, output)| output.is_passed);
            text.extend(passed.map(|(output, _)| format!("var passed_{number}_{output}: real;")));
        }
        text
    }

    /// Returns what all members do in a turn at an index of the row.
    fn turn(&mut self, asks: bool) -> Text {
        let mut text = Text::default();
        for number in 0..self.fused.members.len() {
            self.member(&mut text, number, asks);
        }
        text
    }

    /// Writes what a member does in a turn.
    fn member(&mut self, text: &mut Text, number: usize, asks: bool) {
        let (fused, stages, boxes) = (self.fused, self.stages, self.boxes);
        let member = &fused.members[number];
        let (stage, own) = (&stages[member.stage], &boxes.stages[member.stage]);
        let is_reduced = matches!(stage.does, StageKind::Reduce(..));
        let outputs: Vec<usize> = (0..own.len())
            .filter(|&output| is_reduced || member.outputs[output] != Output::default())
            .collect();
        if outputs.is_empty() {
            return;
        }
        let mut named = Named::default();
        let formula = self.formula(&mut named, member, &outputs, asks);
        let computed = around(own).unwrap_or([0..0, 0..0, 0..0]);
        let mut computing: Text = formula.statements.iter().collect();
        let mut kept = Text::default();
        if is_reduced {
            computing.push(format!("value = {};", formula.outputs[0]));
        } else {
            for (&output, value) in outputs.iter().zip(&formula.outputs) {
                let goes = self.goes(&mut named, number, output, value);
                let is_everywhere = !asks || own[output] == computed;
                let (new, is_new) = (&own[output], holds(&self.unwrapped(&own[output], member)));
                match is_everywhere {
                    true => computing.push(&goes),
                    false => computing.push(format!("if {is_new} {{\n{}}}", goes.as_ref())),
                }
                let name = stage.writes[output];
                let all = self.kinds().kind(name).held();
                // What a stage does not compute of a field it takes along.
                if asks && name < self.problem().program.fields().len() && *new != all {
                    let mut old = Named::default();
                    let value = self.memory(&mut old, name, [0; 3], true);
                    let goes = self.goes(&mut named, number, output, "old");
                    let is_old = holds(&self.unwrapped(&all, member));
                    kept.push(format!("if {is_old} && !({is_new}) {{"));
                    kept.push(Named::declarations(&old.ghosts));
                    old.places.iter().for_each(|&kind| drop(named.place(kind)));
                    kept.push(format!("let old = {value};"));
                    kept.push(&goes);
                    kept.push("}");
                }
            }
        }
        // Names of stages are left out, so that groups that do the same share a kernel.
        text.push(format!("{{ // Stage {number} of the group."));
        text.push(format!("let row = front - {};", member.lag));
        text.push(format!("if {} {{", self.active(member)));
        text.push(match fused.axis {
            0 => "let z = z0 + row;\nlet y = y0 + across_y;",
            _ => "let z = z0;\nlet y = y0 + row;",
        });
        text.push("let x = x0 + across_x;");
        named.places.sort_unstable();
        for &number in &named.places {
            text.push(place(&self.kinds().all[number], number));
        }
        text.push(Named::declarations(&named.rows));
        if is_reduced {
            text.push("var value = neutral();");
        }
        if asks {
            text.push(format!("if {} {{", holds(&self.unwrapped(&computed, member))));
            text.push(Named::declarations(&named.ghosts));
            text.push(&computing);
            text.push("}");
            text.push(&kept);
        } else {
            text.push(&computing);
        }
        if is_reduced {
            text.push("add_row(row, across_y * TILE_X + across_x, value);");
        }
        text.push("}\n}");
    }

    /// Returns the condition that a member computes in a turn at an index of the row.
    fn active(&self, member: &Member) -> String {
        let sides = (0..3).filter(|&axis| axis >= self.fused.axis).map(|axis| {
            let letter = axis_name(axis);
            let index = if axis == self.fused.axis { "row".to_owned() } else { format!("across_{letter}") };
            let [low, high] = member.beyond[axis];
            // All indices of a row are visited that the member farthest beyond the tile needs.
            let is_whole = axis > self.fused.axis && member.beyond[axis] == self.fused.beyond[axis];
            let end = self.fused.tile[axis] + high;
            (!is_whole).then(|| format!("{index} >= {} && {index} < {end}", -(low as isize)))
        });
        sides.flatten().collect::<Vec<_>>().join(" && ")
    }

    /// Returns the condition that an index at which a member computes is the tile's own; nothing where all are.
    fn owned(&self, member: &Member) -> Option<String> {
        let sides = (self.fused.axis..3).filter(|&axis| member.beyond[axis] != [0; 2]).map(|axis| {
            let letter = axis_name(axis);
            let index = if axis == self.fused.axis { "row".to_owned() } else { format!("across_{letter}") };
            format!("{index} >= 0 && {index} < TILE_{}", letter.to_uppercase())
        });
        Some(sides.collect::<Vec<_>>().join(" && ")).filter(|condition| !condition.is_empty())
    }

    /// Returns the statements that bring a member's value to where it goes.
    fn goes(&mut self, named: &mut Named, number: usize, output: usize, value: &str) -> Text {
        let fused = self.fused;
        let member = &fused.members[number];
        let goes = member.outputs[output];
        let mut text = Text::default();
        if goes.is_passed {
            text.push(format!("passed_{number}_{output} = {value};"));
        }
        if let Some(ring) = goes.ring {
            let row = self.row(named, ring, 0);
            text.push(format!("rings[{row} + i] = {value};"));
        }
        if goes.is_stored {
            let name = self.stages[member.stage].writes[output];
            let to = self.made.iter().position(|&made| made == name).unwrap_or(0);
            let slot = self.slots.number(Slot::Write(to));
            let at = named.place(self.kinds().number(name));
            let stored = format!("values_{slot}[{at}] = {value};");
            // What is beyond the domain is computed anew there, and stored where it lies.
            let all = holds(&self.kinds().kind(name).held());
            let is_computed_anew = (0..3).any(|axis| fused.wraps[axis] && member.beyond[axis] != [0; 2]);
            let conditions: Vec<String> =
                self.owned(member).into_iter().chain(is_computed_anew.then_some(all)).collect();
            text.push(match conditions.is_empty() {
                true => stored,
                false => format!("if {} {{ {stored} }}", conditions.join(" && ")),
            });
        }
        text
    }

    /// Returns the name of the slot of a ring's row, so many behind the member's own.
    fn row(&self, named: &mut Named, ring: usize, by: i32) -> String {
        let sign = if by < 0 { "m" } else { "p" };
        let name = format!("slot_{ring}_{sign}{}", by.unsigned_abs());
        Named::add(&mut named.rows, name, format!("row_{ring}(row{})", moved(by as isize)))
    }

    /// Returns the formula of some outputs of a member, with what it names.
    fn formula(&mut self, named: &mut Named, member: &Member, outputs: &[usize], asks: bool) -> Formula {
        let Dag { nodes, outputs: all } = &self.stages[member.stage].dag;
        let wanted: Vec<_> = outputs.iter().map(|&output| all[output]).collect();
        let dtype = self.problem().dtype;
        part(nodes, &wanted, |_| None, &language(), dtype, |tap| self.tap(named, member, tap, asks))
    }

    /// Returns the text that reads a tap.
    fn tap(&mut self, named: &mut Named, member: &Member, tap: Tap, asks: bool) -> String {
        let name = usize::from(tap.field);
        match member.sources.iter().find(|(made, _)| *made == name) {
            None => self.memory(named, name, tap.offset, asks),
            Some((_, Source::Passed(from, output))) => format!("passed_{from}_{output}"),
            Some(&(_, Source::Ring(ring))) => self.kept(named, ring, tap.offset, asks),
        }
    }

    /// Returns the text that reads a buffer at a distance.
    fn memory(&mut self, named: &mut Named, name: usize, offset: [i32; 3], asks: bool) -> String {
        let slot = self.slots.old(name, self.made, self.stays);
        let (kind, number) = (self.kinds().kind(name), self.kinds().number(name));
        if asks && asks_boundary(kind) {
            if !self.asked.contains(&(slot, name)) {
                self.asked.push((slot, name));
            }
            let [a, b, c] = [0, 1, 2].map(|axis| asked(named, axis, number, offset[axis]));
            return format!("tap_{slot}({a}, {b}, {c})");
        }
        let (strides, _) = strides(kind);
        let by: isize = (0..3).map(|axis| offset[axis] as isize * strides[axis]).sum();
        let at = named.place(number);
        format!("values_{slot}[{at}{}]", moved(by))
    }

    /// Returns the text that reads a ring at a distance.
    fn kept(&mut self, named: &mut Named, ring: usize, offset: [i32; 3], asks: bool) -> String {
        let Fused { axis, wraps, .. } = *self.fused;
        let name = self.fused.rings[ring].name;
        let (kind, number) = (self.kinds().kind(name), self.kinds().number(name));
        if asks && asks_boundary(kind) {
            if !self.asked_rings.contains(&ring) {
                self.asked_rings.push(ring);
            }
            let zero = literal(self.problem().dtype, 0.0);
            let [a, b, c] = [0, 1, 2].map(|axis| match wraps[axis] {
                false => asked(named, axis, number, offset[axis]),
                // What is computed anew beyond the domain is there as it is.
                true => {
                    let index = format!("{}{}", axis_name(axis), moved(offset[axis] as isize));
                    let value = format!("Ghost({index}, false, false, {zero})");
                    Named::add(
                        &mut named.ghosts,
                        format!("{}_anew", ghost(axis, number, offset[axis])),
                        value,
                    )
                }
            });
            return format!("kept_{ring}({a}, {b}, {c}, vec3i(z0, y0, x0))");
        }
        let row_x = self.fused.row()[2] as isize;
        let strides = [0, if axis == 0 { row_x } else { 0 }, 1];
        let by: isize = (0..3).map(|axis| offset[axis] as isize * strides[axis]).sum();
        let row = self.row(named, ring, offset[axis]);
        format!("rings[{row} + i{}]", moved(by))
    }
}

/// Returns the name of the place at a distance along an axis, where a boundary is asked.
fn asked(named: &mut Named, axis: usize, kind: usize, offset: i32) -> String {
    let letter = axis_name(axis);
    let value = format!("ghost_{letter}_{kind}({letter}{})", moved(offset as isize));
    Named::add(&mut named.ghosts, ghost(axis, kind, offset), value)
}
