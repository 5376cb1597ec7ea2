//! The work of a stage: what it computes over which indices, and the tiles that cover them.

use abide_core::Stage;
use abide_core::program::{Indices, around, is_empty};
use abide_core::reduction::leaf;

use super::{Kinds, Slot};

/// The tiles over a box of indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grid {
    pub tile: [usize; 3],
    pub first: [isize; 3],
    pub blocks: [usize; 3],
}

impl Grid {
    /// Returns the grid of a stage that has no index.
    pub fn single() -> Grid {
        Grid { tile: [1; 3], first: [0; 3], blocks: [1; 3] }
    }

    /// Returns the tiles over a box, the first of which begins at these indices.
    pub fn over(indices: &Indices, tile: [usize; 3], first: [isize; 3]) -> Grid {
        let blocks =
            [0, 1, 2].map(|axis| ((indices[axis].end - first[axis]).max(1) as usize).div_ceil(tile[axis]));
        Grid { tile, first, blocks }
    }

    /// Returns the number of tiles.
    pub fn count(&self) -> usize {
        self.blocks.iter().product()
    }
}

/// What the kernel of a stage does over its tiles.
#[derive(Clone)]
pub(crate) struct Work {
    pub grid: Grid,
    /// The box around all that is computed.
    pub computed: Indices,
    /// The box in which nothing has to be asked: all taps lie inside their buffers, and all outputs are
    /// computed.
    pub inner: Indices,
    /// The outputs that have values, by their numbers among the stage's.
    pub outputs: Vec<usize>,
    /// The outputs whose old values outside of their own boxes go along to a new buffer.
    pub kept: Vec<usize>,
}

/// Returns the work of a stage of new values, whose outputs have their `own` boxes; `None` if nothing needs
/// them. Tiles begin at multiples of `align` along the fastest axis. The first `fields` names are fields.
pub(crate) fn update(
    kinds: &Kinds,
    stage: &Stage,
    own: &[Indices],
    fields: usize,
    tile: [usize; 3],
    align: isize,
) -> Option<Work> {
    let held = |output: usize| kinds.kind(stage.writes[output]).held();
    let outputs = (0..own.len()).filter(|&output| !is_empty(&own[output])).collect();
    // Where a field's old values stay at fixed sides, they go along to its new buffer.
    let kept: Vec<usize> = (0..own.len())
        .filter(|&output| stage.writes[output] < fields && own[output] != held(output))
        .collect();
    let old: Vec<Indices> = kept.iter().map(|&output| held(output)).collect();
    let visited = around(own.iter().chain(&old))?;
    let mut first = [0, 1, 2].map(|axis| visited[axis].start);
    first[2] = first[2].div_euclid(align) * align;
    let [computed, inner] = boxes(kinds, stage, own);
    Some(Work { grid: Grid::over(&visited, tile, first), computed, inner, outputs, kept })
}

/// Returns the work of a stage at points, on a domain of `dimensions` axes. Its tiles cover all values of what it
/// sets, for the kernel that takes them along to other buffers.
pub(crate) fn points(kinds: &Kinds, stage: &Stage, own: &[Indices], dimensions: usize) -> Option<Work> {
    let held: Vec<Indices> = stage.writes.iter().map(|&name| kinds.kind(name).held()).collect();
    let grid = Grid::over(&around(&held)?, leaf(dimensions), [0; 3]);
    let [computed, inner] = boxes(kinds, stage, own);
    let all: Vec<usize> = (0..own.len()).collect();
    Some(Work { grid, computed, inner, outputs: all.clone(), kept: all })
}

/// Returns the work of a reduction over a region, on a domain of `dimensions` axes.
pub(crate) fn reduce(kinds: &Kinds, stage: &Stage, own: &[Indices], dimensions: usize) -> Option<Work> {
    // The tree counts its leaves from the first index of the field, whatever the region.
    let grid = Grid::over(own.first()?, leaf(dimensions), [0; 3]);
    let [computed, inner] = boxes(kinds, stage, own);
    Some(Work { grid, computed, inner, outputs: vec![0], kept: Vec::new() })
}

/// Returns the boxes [`Work::computed`] and [`Work::inner`].
pub(crate) fn boxes(kinds: &Kinds, stage: &Stage, own: &[Indices]) -> [Indices; 2] {
    let computed = around(own).unwrap_or([0..0, 0..0, 0..0]);
    let mut inner = computed.clone();
    let mut within = |limits: Indices| {
        for (inner, limits) in inner.iter_mut().zip(limits) {
            *inner = inner.start.max(limits.start)..inner.end.min(limits.end);
        }
    };
    own.iter().filter(|own| !is_empty(own)).cloned().for_each(&mut within);
    for tap in stage.dag.taps() {
        let (name, held) = (usize::from(tap.field), kinds.kind(usize::from(tap.field)).held());
        let levels = kinds.levels(stage, name);
        within([0, 1, 2].map(|axis| levels.inside(&held[axis], tap.offset[axis] as isize)));
    }
    [computed, inner]
}

/// The buffers that a kernel names, numbered in the order in which it first does.
#[derive(Default)]
pub(crate) struct Slots(pub Vec<Slot>);

impl Slots {
    /// Returns the number of a buffer.
    pub fn number(&mut self, slot: Slot) -> usize {
        self.0.iter().position(|known| *known == slot).unwrap_or_else(|| {
            self.0.push(slot);
            self.0.len() - 1
        })
    }

    /// Returns the number of the buffer in which a field or temporary lies before a launch, which makes others and writes some of
    /// them where they lie. A buffer that it writes is bound once.
    pub fn old(&mut self, name: usize, made: &[usize], stays: &[bool]) -> usize {
        let output = made.iter().position(|&made| made == name);
        let stays = output.filter(|&output| stays.get(output) == Some(&true));
        self.number(stays.map_or(Slot::Read(name), Slot::Write))
    }
}
