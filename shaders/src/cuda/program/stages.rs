//! The struct of a stage in kernels: its boxes, its grid and its formula.

use std::fmt::{self, Display};

use abide_core::expr::{Dag, Tap};
use abide_core::plan::Stepwise;
use abide_core::program::{Does, Indices, Reduction, around, is_empty};
use abide_core::reduction::leaf;
use abide_core::{Problem, Stage};

use super::kinds::{Kinds, boxed, triple};
use super::{Slot, sector};
use crate::cuda::{Cuda, literal};
use crate::emit::{Formula, part};
use crate::text::Text;

/// What stands between the braces of a stage's struct, and how it is launched.
pub struct Body {
    pub text: Text,
    pub slots: Vec<Slot>,
    pub grid: Grid,
    pub entries: &'static [Entry],
}

/// The tiles over a box of indices.
pub struct Grid {
    tile: [usize; 3],
    first: [isize; 3],
    pub blocks: [usize; 3],
}

/// The kernels of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Update,
    Reduce,
    JoinLeaves,
    Scalar,
}

impl Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entry::Update => "update",
            Entry::Reduce => "reduce",
            Entry::JoinLeaves => "join_leaves",
            Entry::Scalar => "scalar",
        })
    }
}

impl Entry {
    pub fn threads(self, tiles: &Stepwise) -> usize {
        match self {
            Entry::Update => tiles.threads_per_block(),
            // Those of a leaf, on any number of axes.
            Entry::Reduce | Entry::JoinLeaves => leaf(1).iter().product(),
            Entry::Scalar => 1,
        }
    }

    pub fn blocks(self, grid: &Grid) -> usize {
        match self {
            Entry::Update | Entry::Reduce => grid.blocks(),
            Entry::JoinLeaves | Entry::Scalar => 1,
        }
    }

    /// Returns the statement of the kernel.
    pub fn call(self, number: usize) -> String {
        match self {
            Entry::Scalar => {
                format!(
                    "arguments.scalars[Stage{number}::SCALAR] = Stage{number}::value(Alone{{arguments}});"
                )
            }
            entry => format!("{entry}<Stage{number}>(arguments);"),
        }
    }
}

impl Grid {
    /// Returns the tiles over a box, the first of which begins at these indices.
    fn over(indices: &Indices, tile: [usize; 3], first: [isize; 3]) -> Grid {
        let blocks =
            [0, 1, 2].map(|axis| ((indices[axis].end - first[axis]).max(1) as usize).div_ceil(tile[axis]));
        Grid { tile, first, blocks }
    }

    fn write(&self, text: &mut Text) {
        text.push(format!("static {}", triple("int", "TILE", self.tile)));
        text.push(format!("static {}", triple("Offset", "FIRST", self.first)));
        text.push(format!("static {}", triple("unsigned", "BLOCKS", self.blocks)));
    }
}

/// Gives slots to what a stage reads and writes.
struct Slots<'a> {
    stage: &'a Stage,
    kinds: &'a Kinds,
    all: Vec<Slot>,
}

impl Slots<'_> {
    fn number(&mut self, slot: Slot) -> usize {
        self.all.iter().position(|known| *known == slot).unwrap_or_else(|| {
            self.all.push(slot);
            self.all.len() - 1
        })
    }

    /// Returns the text that reads a tap.
    fn tap(&mut self, tap: Tap) -> String {
        let name = usize::from(tap.field);
        let ([z, y, x], slot) = (tap.offset, self.number(Slot::Read(name)));
        // A field may be written where it lies only if the stage taps it at the place of the value alone.
        let alone =
            || self.stage.dag.taps().all(|tap| usize::from(tap.field) != name || tap.offset == [0; 3]);
        let changes = self.stage.writes.contains(&name) && alone();
        format!("u.template at<Kind{}, {slot}, {changes}, {z}, {y}, {x}>()", self.kinds.number(name))
    }

    /// Returns the formula of some of the stage's outputs.
    fn formula(&mut self, problem: &Problem, outputs: &[usize]) -> Formula {
        let Dag { nodes, outputs: all } = &self.stage.dag;
        let outputs: Vec<_> = outputs.iter().map(|&output| all[output]).collect();
        part(nodes, &outputs, |_| None, &Cuda { plane: None }, problem.dtype, |tap| self.tap(tap))
    }
}

const VIEWED: &str = "template <class View>\n__device__ static __forceinline__";

/// Returns the body of a stage of new values; `None` if nothing needs them.
pub fn update(
    problem: &Problem,
    kinds: &Kinds,
    stage: &Stage,
    own: &[Indices],
    tiles: &Stepwise,
) -> Option<Body> {
    let fields = problem.program.fields().len();
    let mut slots = Slots { stage, kinds, all: Vec::new() };
    let computed: Vec<usize> = (0..own.len()).filter(|&output| !is_empty(&own[output])).collect();
    let body = slots.formula(problem, &computed);
    // Where a field's old values stay at fixed sides, they go along to its new buffer.
    let kept: Vec<usize> = (0..own.len())
        .filter(|&output| stage.writes[output] < fields && own[output] != kinds.held(stage.writes[output]))
        .collect();
    let held: Vec<Indices> = kept.iter().map(|&output| kinds.held(stage.writes[output])).collect();
    let visited = around(own.iter().chain(&held))?;
    // Tiles begin where sectors of memory do.
    let mut first = [0, 1, 2].map(|axis| visited[axis].start);
    first[2] = first[2].div_euclid(sector(problem.dtype)) * sector(problem.dtype);
    let grid = Grid::over(&visited, tiles.tile, first);
    let mut text = Text::default();
    grid.write(&mut text);
    boxes(&mut text, kinds, stage, own);
    text.push(format!("{VIEWED} void compute(const View& u)\n{{"));
    text.extend(&body.statements);
    let place = |slots: &mut Slots<'_>, output: usize| {
        let name = stage.writes[output];
        let slot = slots.number(Slot::Write(output));
        (kinds.number(name), slot, boxed(&own[output]))
    };
    for (&output, value) in computed.iter().zip(&body.outputs) {
        let (kind, slot, indices) = place(&mut slots, output);
        text.push(format!("u.template store<Kind{kind}, {slot}, {indices}>({value});"));
    }
    text.push("}");
    text.push(format!("{VIEWED} void keep(const View& u)\n{{"));
    for output in kept {
        let (kind, slot, indices) = place(&mut slots, output);
        let old = slots.number(Slot::Read(stage.writes[output]));
        text.push(format!("u.template keep<Kind{kind}, {slot}, {old}, {indices}>();"));
    }
    text.push("}");
    Some(Body { text, slots: slots.all, grid, entries: &[Entry::Update] })
}

/// Returns the body of a reduction.
pub fn reduce(problem: &Problem, kinds: &Kinds, stage: &Stage, own: &[Indices]) -> Option<Body> {
    let Does::Reduce(reduction, _, scalar) = stage.does else { return None };
    // The tree counts its leaves from the first index of the field, whatever the region.
    let grid = Grid::over(own.first()?, leaf(problem.shape.dimensions()), [0; 3]);
    let mut slots = Slots { stage, kinds, all: Vec::new() };
    let name = match reduction {
        Reduction::Min => "LEAST",
        Reduction::Max => "GREATEST",
        Reduction::Sum => "SUM",
    };
    let neutral = literal(problem.dtype, reduction.neutral::<f64>());
    let mut text = Text::default();
    text.push(format!("static constexpr int REDUCTION = {name}, SCALAR = {};", scalar));
    grid.write(&mut text);
    boxes(&mut text, kinds, stage, own);
    text.push(format!("__device__ static __forceinline__ real neutral() {{ return {neutral}; }}"));
    value(&mut text, &slots.formula(problem, &[0]));
    Some(Body { text, slots: slots.all, grid, entries: &[Entry::Reduce, Entry::JoinLeaves] })
}

/// Returns the body of a formula of scalars.
pub fn scalar(problem: &Problem, stage: &Stage, scalar: usize) -> Body {
    let mut text = Text::default();
    text.push(format!("static constexpr int SCALAR = {};", scalar));
    let Dag { nodes, outputs } = &stage.dag;
    let language = Cuda { plane: None };
    value(&mut text, &part(nodes, outputs, |_| None, &language, problem.dtype, |_| String::new()));
    let grid = Grid { tile: [1; 3], first: [0; 3], blocks: [1; 3] };
    Body { text, slots: Vec::new(), grid, entries: &[Entry::Scalar] }
}

/// Writes the function that returns a formula's only value.
fn value(text: &mut Text, body: &Formula) {
    text.push(format!("{VIEWED} real value(const View& u)\n{{"));
    text.extend(&body.statements);
    text.push(format!("return {};\n}}", body.outputs[0]));
}

/// Writes the box that a stage computes, and the box in which it needs to ask nothing: all taps lie inside
/// their buffers, and all outputs are computed.
fn boxes(text: &mut Text, kinds: &Kinds, stage: &Stage, own: &[Indices]) {
    let computed = around(own).unwrap_or([0..0, 0..0, 0..0]);
    let mut inner = computed.clone();
    let mut within = |limits: Indices| {
        for (inner, limits) in inner.iter_mut().zip(limits) {
            *inner = inner.start.max(limits.start)..inner.end.min(limits.end);
        }
    };
    own.iter().filter(|own| !is_empty(own)).cloned().for_each(&mut within);
    for tap in stage.dag.taps() {
        let held = kinds.held(usize::from(tap.field));
        within([0, 1, 2].map(|axis| {
            let by = tap.offset[axis] as isize;
            held[axis].start - by..held[axis].end - by
        }));
    }
    text.push(format!("typedef {} Computed;", boxed(&computed)));
    text.push(format!("typedef {} Inner;", boxed(&inner)));
}
