//! The struct of a stage in kernels: its boxes, its grid and its formula.

use std::collections::HashMap;
use std::fmt::{self, Display};

use abide_core::expr::{Dag, Looped, Tap};
use abide_core::plan::{Lowering, Stepwise};
use abide_core::program::{Indices, Reduction, StageKind};
use abide_core::reduction::{MANY_LEAVES, leaf};
use abide_core::{DType, Problem, Stage};

use super::kinds::{boxed, triple};
use super::{Part, sector, transform};
use crate::cuda::quotients::evaluated;
use crate::cuda::{Cuda, literal};
use crate::emit::{Formula, part};
use crate::loops::{self, Joint, Reads};
use crate::program::{self, Grid, Kinds, Slot, Slots, Work};
use crate::text::Text;

/// What stands between the braces of a stage's struct, and how it is launched.
pub struct Body {
    pub text: Text,
    pub slots: Vec<Slot>,
    pub grid: Grid,
    /// The leaves of a reduction.
    pub leaves: Option<Grid>,
    /// The points of a stage that computes at points alone, or the tiles of a transform.
    pub count: usize,
    /// The bytes of shared memory of a transform's block.
    pub shared_bytes: usize,
    pub entries: &'static [Entry],
}

impl Body {
    /// Returns the leaves of a reduction; for any other stage its tiles.
    pub fn leaves(&self) -> &Grid {
        self.leaves.as_ref().unwrap_or(&self.grid)
    }
}

/// The kernels of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Update,
    /// Takes all values along to other buffers.
    Carry,
    Points,
    Reduce,
    /// Computes new values and reduces what they give.
    Tail,
    /// Joins rows of many leaves.
    JoinRows,
    JoinLeaves,
    Scalar,
    Transform,
}

/// The rows of leaves that a block joins to one: `ROWS_OF_BLOCK` of the kernels.
const ROWS_OF_BLOCK: usize = 64;

/// Returns the tiles of blocks: each has several of the leaves, `each` for each warp where they are very many, else one; or where
/// they are few, or the blocks of a persistent kernel share them, a single one.
fn tiles_of_leaves(leaves: &Grid, is_alone: bool, each: usize) -> Grid {
    const WARPS: usize = 8;
    let tile_leaves = if leaves.count() < 16 * MANY_LEAVES { WARPS } else { each * WARPS };
    if !is_alone || leaves.count() < MANY_LEAVES {
        return leaves.clone();
    }
    let [z, y, x] = leaves.tile;
    let [planes, rows, count] = leaves.blocks;
    let blocks = [planes, rows, count.div_ceil(tile_leaves)];
    Grid { tile: [z, y, tile_leaves * x], blocks, ..leaves.clone() }
}

/// When the leaves of a reduction are joined to its scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    /// By the last block of the kernel that makes them, or where they are many, in launches of their own.
    Within,
    /// In a launch of its own.
    After,
    /// In a task of a persistent kernel.
    Task,
}

impl Joined {
    /// Returns the kernels of a reduction whose leaves `first` makes.
    fn entries(self, first: Entry, leaves: &Grid) -> &'static [Entry] {
        let is_many = self != Joined::Task && leaves.count() >= MANY_LEAVES;
        match (first, is_many, self) {
            (Entry::Tail, true, _) => &[Entry::Tail, Entry::JoinRows, Entry::JoinLeaves],
            (Entry::Tail, false, Joined::Within) => &[Entry::Tail],
            (Entry::Tail, false, _) => &[Entry::Tail, Entry::JoinLeaves],
            (_, true, _) => &[Entry::Reduce, Entry::JoinRows, Entry::JoinLeaves],
            (_, false, Joined::Within) => &[Entry::Reduce],
            (_, false, _) => &[Entry::Reduce, Entry::JoinLeaves],
        }
    }
}

impl Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entry::Update => "update",
            Entry::Carry => "carry",
            Entry::Points => "points",
            Entry::Reduce => "reduce",
            Entry::Tail => "reduce_made",
            Entry::JoinRows => "join_rows",
            Entry::JoinLeaves => "join_leaves",
            Entry::Scalar => "scalar",
            Entry::Transform => "transform",
        })
    }
}

impl Entry {
    pub fn threads(self, tiles: &Stepwise) -> usize {
        match self {
            Entry::Update => tiles.threads_per_block(),
            // Those of a leaf, on any number of axes.
            Entry::Carry
            | Entry::Points
            | Entry::Reduce
            | Entry::Tail
            | Entry::JoinRows
            | Entry::JoinLeaves => leaf(1).iter().product(),
            Entry::Scalar => 1,
            Entry::Transform => transform::THREADS,
        }
    }

    pub fn blocks(self, body: &Body) -> usize {
        match self {
            Entry::Update | Entry::Carry | Entry::Reduce | Entry::Tail => body.grid.count(),
            Entry::Points => body.count.div_ceil(leaf(1).iter().product()),
            Entry::JoinRows => {
                // Along the first axis that has several, and 32 columns of all others.
                let leaves = body.leaves();
                let rows = leaves.blocks.into_iter().find(|&count| count > 1).unwrap_or(1);
                rows.div_ceil(ROWS_OF_BLOCK) * (leaves.count() / rows).div_ceil(32)
            }
            Entry::JoinLeaves | Entry::Scalar => 1,
            Entry::Transform => body.count,
        }
    }

    /// Returns the bytes of shared memory that a block asks for at its launch.
    pub fn shared_bytes(self, body: &Body) -> usize {
        if self == Entry::Transform { body.shared_bytes } else { 0 }
    }

    /// Returns what the kernel's blocks go over.
    pub fn part(self, body: &Body) -> Part {
        match self {
            Entry::Update => Part::Tiles(body.grid.clone()),
            Entry::Reduce | Entry::Tail if body.entries.contains(&Entry::JoinLeaves) => {
                Part::Tiles(body.grid.clone())
            }
            Entry::Reduce | Entry::Tail => Part::Joined(body.grid.clone(), body.leaves().clone()),
            Entry::Carry => Part::Carried(body.grid.clone()),
            Entry::Points => Part::Points,
            Entry::JoinRows => Part::Rows,
            Entry::JoinLeaves => Part::Leaves(body.leaves().clone()),
            Entry::Scalar => Part::Scalar,
            Entry::Transform => Part::Lines,
        }
    }

    /// Returns the statement of the kernel for a tile.
    pub fn call(self, number: usize, tile: &str) -> String {
        match self {
            Entry::Scalar => {
                format!(
                    "set_scalar(arguments, Stage{number}::SCALAR, Stage{number}::value(Alone{{arguments}}));"
                )
            }
            Entry::JoinLeaves => format!("{self}<Stage{number}>(arguments);"),
            _ => format!("{self}<Stage{number}>(arguments, {tile});"),
        }
    }
}

/// A stage whose formula is written.
pub(super) struct Writer<'a> {
    pub problem: &'a Problem,
    pub kinds: &'a Kinds,
    pub stage: &'a Stage,
    pub slots: Slots,
    /// Where the plan keeps loops, the turns of an outer one that share its inner loops.
    pub rows: Option<usize>,
}

impl Writer<'_> {
    /// Returns the formula whose loops are kept. What loops store has no places that an index finds.
    fn looped(&self) -> Option<&Looped> {
        let are_alone = self.stage.set_alone().len() == self.stage.writes.len();
        self.stage.looped.as_ref().filter(|_| are_alone && self.rows.is_some())
    }

    /// Returns how the formula is written.
    fn language(&self) -> Cuda {
        match self.looped() {
            Some(_) => Cuda::PLAIN,
            None => Cuda::of_launch(&self.stage.dag).with_singles(self.kinds.singles()),
        }
    }

    /// Returns the text that reads a tap.
    fn tap(&mut self, tap: Tap) -> String {
        let name = usize::from(tap.field);
        let ([z, y, x], slot) = (tap.offset, self.slots.number(Slot::Read(name)));
        // A field may be written where it lies only if the stage taps it at the place of the value alone.
        let alone =
            || self.stage.dag.taps().all(|tap| usize::from(tap.field) != name || tap.offset == [0; 3]);
        let changes = self.stage.writes.contains(&name) && alone();
        let at = format!("template at<Kind{}, {slot}, {changes}, {z}, {y}, {x}>()", self.kinds.number(name));
        match self.kinds.levels(self.stage, name) {
            levels if levels.is_same() => format!("u.{at}"),
            levels => format!("u.template on_level<{}>().{at}", levels.0),
        }
    }

    /// Returns the formula of some of the stage's outputs.
    fn formula(&mut self, outputs: &[usize]) -> Formula {
        let Dag { nodes, outputs: all } = &self.stage.dag;
        let (dtype, language) = (self.problem.dtype, self.language());
        if let Some(looped) = self.looped().cloned() {
            let tables = loops::table_texts(0, &looped, &[]);
            let together = Joint { rows: self.rows.unwrap_or(1), team: 1 };
            let store = |_: usize, _: &str, _: &str| String::new();
            let reads = Reads { tap: |tap| self.tap(tap), component: |_, _, _: &str| None, store: &store };
            let mut body = loops::formula(&looped, &language, dtype, &tables, together, reads);
            body.statements.splice(0..0, loops::own_tables(&language, dtype, &looped));
            body.outputs = outputs.iter().map(|&output| body.outputs[output].clone()).collect();
            return body;
        }
        let outputs: Vec<_> = outputs.iter().map(|&output| all[output]).collect();
        part(nodes, &outputs, |_| None, &language, dtype, |tap| self.tap(tap))
    }

    /// Writes the function that stores the new values of outputs inside of their `own` boxes.
    fn compute(&mut self, text: &mut Text, work: &Work, body: &Formula, own: &[Indices]) {
        text.push(format!("{VIEWED} void compute(const View& u)\n{{"));
        for (&output, value) in work.outputs.iter().zip(&evaluated(text, body, &self.language())) {
            let kind = self.kinds.number(self.stage.writes[output]);
            let (slot, indices) = (self.slots.number(Slot::Write(output)), boxed(&own[output]));
            text.push(format!("u.template store<Kind{kind}, {slot}, {indices}>({value});"));
        }
        text.push("}");
    }

    /// Writes the function that takes values along which are not in these boxes of the outputs.
    pub fn keep(&mut self, text: &mut Text, work: &Work, but: &[Indices]) {
        text.push(format!("{VIEWED} void keep(const View& u)\n{{"));
        for &output in &work.kept {
            let name = self.stage.writes[output];
            let [slot, old] = [Slot::Write(output), Slot::Read(name)].map(|slot| self.slots.number(slot));
            let (kind, indices) = (self.kinds.number(name), boxed(&but[output]));
            text.push(format!("u.template keep<Kind{kind}, {slot}, {old}, {indices}>();"));
        }
        text.push("}");
    }
}

pub(super) const VIEWED: &str = "template <class View>\n__device__ static __forceinline__";

/// How many times as many planes a tile has whose planes are read by their neighbours, too, and how many of these tiles there must be,
/// so that all multiprocessors have some at any time. On an H200 sweeps of 256³ and 512³ in f32 took 0.97 and 0.96 of the time, Maxwell's
/// equations 0.97, fields that are each read at one plane 1.05; 128³ took 1.01.
const PLANES_OF_TALL: usize = 4;
const LEAST_TALL: usize = 4096;

/// Returns whether a stage reads a field at several planes.
fn reads_planes_again(stage: &Stage) -> bool {
    let mut first: HashMap<u16, i32> = HashMap::new();
    stage.dag.taps().any(|tap| *first.entry(tap.field).or_insert(tap.offset[0]) != tap.offset[0])
}

/// Returns the body of a stage of new values; `None` if nothing needs them.
pub fn update(
    problem: &Problem,
    kinds: &Kinds,
    stage: &Stage,
    own: &[Indices],
    tiles: &Stepwise,
) -> Option<Body> {
    // Tiles begin where sectors of memory do.
    let fields = problem.program.fields().len();
    let of = |tile: [usize; 3]| program::update(kinds, stage, own, fields, tile, sector(problem.dtype));
    let [planes, y, x] = tiles.tile;
    let tall = if reads_planes_again(stage) { of([PLANES_OF_TALL * planes, y, x]) } else { None };
    let work = match tall.filter(|work| work.grid.count() >= LEAST_TALL) {
        Some(tall) => tall,
        None => of(tiles.tile)?,
    };
    let rows = (tiles.lowering == Lowering::Loops).then_some(tiles.rows);
    let mut writer = Writer { problem, kinds, stage, slots: Slots::default(), rows };
    let body = writer.formula(&work.outputs);
    let mut text = Text::default();
    write(&mut text, &work);
    writer.compute(&mut text, &work, &body, own);
    writer.keep(&mut text, &work, own);
    Some(Body {
        text,
        slots: writer.slots.0,
        grid: work.grid,
        leaves: None,
        count: 0,
        shared_bytes: 0,
        entries: &[Entry::Update],
    })
}

/// Returns the body of a stage at points, and of what takes all other values along where outputs go to other
/// buffers.
pub fn points(problem: &Problem, kinds: &Kinds, stage: &Stage, own: &[Indices]) -> Option<Body> {
    let work = program::points(kinds, stage, own, problem.shape.dimensions())?;
    let mut writer = Writer { problem, kinds, stage, slots: Slots::default(), rows: None };
    let body = writer.formula(&work.outputs);
    let points = stage.points.len();
    let all: Vec<String> = stage.points.iter().map(|[z, y, x]| format!("{{{z}, {y}, {x}}}")).collect();
    let mut text = Text::default();
    write(&mut text, &work);
    text.push(format!("static constexpr int POINTS = {points};"));
    text.push("__device__ static __forceinline__ int point(int i, int axis)\n{");
    text.push(format!("static const int all[POINTS][3] = {{{}}};", all.join(", ")));
    text.push("return all[i][axis];\n}");
    writer.compute(&mut text, &work, &body, own);
    writer.keep(&mut text, &work, &vec![[0..0, 0..0, 0..0]; own.len()]);
    let entries = &[Entry::Carry, Entry::Points];
    Some(Body {
        text,
        slots: writer.slots.0,
        grid: work.grid,
        leaves: None,
        count: points,
        shared_bytes: 0,
        entries,
    })
}

/// Returns the body of a reduction.
pub fn reduce(
    problem: &Problem,
    kinds: &Kinds,
    stage: &Stage,
    own: &[Indices],
    joined: Joined,
) -> Option<Body> {
    let StageKind::Reduce(reduction, _, scalar) = stage.does else { return None };
    let work = program::reduce(kinds, stage, own, problem.shape.dimensions())?;
    let mut writer = Writer { problem, kinds, stage, slots: Slots::default(), rows: None };
    let mut text = Text::default();
    let (entries, leaves) = (joined.entries(Entry::Reduce, &work.grid), work.grid.clone());
    reduces(&mut text, problem, (reduction, scalar), &leaves, entries);
    let work = Work { grid: tiles_of_leaves(&leaves, joined != Joined::Task, 4), ..work };
    write(&mut text, &work);
    value(&mut text, "value(const View& u)", &writer.formula(&work.outputs), &stage.dag);
    Some(Body {
        text,
        slots: writer.slots.0,
        grid: work.grid,
        leaves: Some(leaves),
        count: 0,
        shared_bytes: 0,
        entries,
    })
}

/// Returns the body of an update and the reduction of what it makes; `stored` says of each field and temporary whether somebody
/// reads it after both.
pub fn tail(
    problem: &Problem,
    kinds: &Kinds,
    [update, reduction]: [&Stage; 2],
    [own, region]: [&[Indices]; 2],
    stored: &[bool],
    joined: Joined,
) -> Option<Body> {
    let StageKind::Reduce(joins, _, scalar) = reduction.does else { return None };
    let (dimensions, fields) = (problem.shape.dimensions(), problem.program.fields().len());
    let Work { grid: leaves, .. } = program::reduce(kinds, reduction, region, dimensions)?;
    // What a formula makes is at hand one leaf after another: a block with more of them takes longer.
    let grid = tiles_of_leaves(&leaves, joined != Joined::Task, 1);
    let work = program::update(kinds, update, own, fields, leaf(dimensions), 1)?;
    let mut writer = Writer { problem, kinds, stage: update, slots: Slots::default(), rows: None };
    let body = writer.formula(&work.outputs);
    let mut text = Text::default();
    let entries = joined.entries(Entry::Tail, &leaves);
    reduces(&mut text, problem, (joins, scalar), &leaves, entries);
    write(&mut text, &Work { grid: grid.clone(), ..work.clone() });
    text.push(format!("typedef {} Region;", boxed(region.first()?)));
    // What the reduction taps of the update's outputs: the values at hand, or those that the kernel took along.
    let output_of = |tap: &Tap| update.writes.iter().position(|&made| made == usize::from(tap.field));
    let Dag { nodes, outputs } = &reduction.dag;
    let mut other = Writer { problem, kinds, stage: reduction, slots: writer.slots, rows: None };
    let term = |other: &mut Writer<'_>, kept: bool| {
        part(
            nodes,
            outputs,
            |_| None,
            &Cuda::of_launch(&reduction.dag).with_singles(kinds.singles()),
            problem.dtype,
            |tap| match output_of(&tap) {
                Some(output) if kept => {
                    let (kind, slot) =
                        (kinds.number(update.writes[output]), other.slots.number(Slot::Write(output)));
                    format!("u.template at<Kind{kind}, {slot}, true, 0, 0, 0>()")
                }
                Some(output) => format!("made[{output}]"),
                None => other.tap(tap),
            },
        )
    };
    let (at_hand, kept) = (term(&mut other, false), term(&mut other, true));
    let mut writer = Writer { problem, kinds, stage: update, slots: other.slots, rows: None };
    let count = update.writes.len();
    let arguments = format!("value(const View& u, const real (&made)[{count}])");
    value(&mut text, &arguments, &at_hand, &reduction.dag);
    value(&mut text, "value_kept(const View& u)", &kept, &reduction.dag);
    text.push(format!("{VIEWED} real compute(const View& u)\n{{"));
    let values = evaluated(&mut text, &body, &Cuda::of_launch(&update.dag));
    text.push(format!("real made[{count}] = {{}};"));
    for (&output, value) in work.outputs.iter().zip(&values) {
        text.push(format!("made[{output}] = {value};"));
        let name = update.writes[output];
        if stored[name] {
            let (kind, slot, indices) =
                (kinds.number(name), writer.slots.number(Slot::Write(output)), boxed(&own[output]));
            text.push(format!("u.template store<Kind{kind}, {slot}, {indices}>(made[{output}]);"));
        }
    }
    text.push("return value(u, made);\n}");
    writer.keep(&mut text, &work, own);
    Some(Body { text, slots: writer.slots.0, grid, leaves: Some(leaves), count: 0, shared_bytes: 0, entries })
}

/// Writes how a reduction joins values, and to which scalar.
fn reduces(
    text: &mut Text,
    problem: &Problem,
    (reduction, scalar): (Reduction, usize),
    leaves: &Grid,
    entries: &[Entry],
) {
    let name = match reduction {
        Reduction::Min => "LEAST",
        Reduction::Max => "GREATEST",
        Reduction::Sum => "SUM",
    };
    text.push(format!("static constexpr int REDUCTION = {name}, SCALAR = {scalar};"));
    text.push(format!("static {}", triple("Offset", "LEAVES", leaves.blocks)));
    text.push(format!("static constexpr bool ROWS_JOINED = {};", entries.contains(&Entry::JoinRows)));
    text.push(format!("static constexpr bool JOINED_WITHIN = {};", !entries.contains(&Entry::JoinLeaves)));
    text.push(neutral(problem, reduction));
}

/// Returns the function of a reduction's neutral value.
pub fn neutral(problem: &Problem, reduction: Reduction) -> String {
    let neutral = literal(problem.dtype, reduction.neutral::<f64>());
    format!("__device__ static __forceinline__ real neutral() {{ return {neutral}; }}")
}

/// Returns the body of a formula of scalars, whose numbers are f64.
pub fn scalar(stage: &Stage, scalar: usize) -> Body {
    let mut text = Text::default();
    text.push(format!("static constexpr int SCALAR = {};", scalar));
    let Dag { nodes, outputs } = &stage.dag;
    let body = part(nodes, outputs, |_| None, &Cuda::PLAIN, DType::F64, |_| String::new());
    text.push(format!("{VIEWED} real value(const View& u)\n{{"));
    text.extend(&body.statements);
    text.push(format!("return {};\n}}", body.outputs[0]));
    Body {
        text,
        slots: Vec::new(),
        grid: Grid::single(),
        leaves: None,
        count: 0,
        shared_bytes: 0,
        entries: &[Entry::Scalar],
    }
}

/// Writes a function that returns a formula's only value.
fn value(text: &mut Text, function: &str, body: &Formula, dag: &Dag) {
    text.push(format!("{VIEWED} real {function}\n{{"));
    let values = evaluated(text, body, &Cuda::of_launch(dag));
    text.push(format!("return {};\n}}", values[0]));
}

/// Writes the tiles of a stage and its boxes.
pub(super) fn write(text: &mut Text, Work { grid, computed, inner, .. }: &Work) {
    text.push(format!("static {}", triple("int", "TILE", grid.tile)));
    text.push(format!("static {}", triple("Offset", "FIRST", grid.first)));
    text.push(format!("static {}", triple("unsigned", "BLOCKS", grid.blocks)));
    text.push(format!("typedef {} Computed;", boxed(computed)));
    text.push(format!("typedef {} Inner;", boxed(inner)));
}
