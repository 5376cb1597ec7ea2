//! The stepwise schedule, a launch per stage: each block loads a tile with its halo into shared memory, or its threads read what they
//! tap.

use serde::Serialize;

use super::chain::Carrier;
use super::description::{Describe, Line};
use super::fused::{Fused, Group, Partition};
use super::options::Lowering;
use super::tables::PlacedTable;
use super::{Plan, tables};
use crate::program::Stage;
use crate::units::times;

/// The tiles of a launch per stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stepwise {
    /// Cells of a tile along the three axes, slowest first.
    pub tile: [usize; 3],
    /// Threads of a block along the three axes, slowest first; each divides the tile. Where a team computes each point, its teams.
    pub threads: [usize; 3],
    /// For each stage, bytes of shared memory for its tile with halos; 0 if its taps are read from device
    /// memory instead.
    pub shared_bytes: Vec<usize>,
    /// The most cells of a field in one buffer. On a device that binds no buffer large enough for the field,
    /// the field lies in several.
    pub piece_cells: usize,
    /// Whether a kernel's text has the formula once for each cell of a thread, so that their loads do not wait for each other.
    pub is_repeated: bool,
    /// How the loops of formulas become text; straight where they have none.
    pub lowering: Lowering,
    /// Points of a thread along the fastest axis that share a pass over loops; 1 unless they are jammed.
    pub points: usize,
    /// Threads that share the loops of a point; 1 unless a team does.
    pub team: usize,
    /// The most turns of a loop that share a pass over its inner loops; 1 where each turn has its own pass.
    pub rows: usize,
    /// For each stage, the tables of its formula, by their numbers; none where loops are written out.
    pub tables: Vec<Vec<PlacedTable>>,
    /// The blocks of a launch where each loads tables into shared memory and goes over tiles one after another; `None`
    /// where each has one tile.
    pub launched: Option<usize>,
    /// The stages of a problem that is not plain in groups; no steps where it is plain.
    pub partition: Partition,
}

impl Stepwise {
    /// Returns the blocks of a domain along the three axes, slowest first.
    pub fn blocks(&self, extents: [usize; 3]) -> [usize; 3] {
        std::array::from_fn(|axis| extents[axis].div_ceil(self.tile[axis]))
    }

    /// Returns the blocks of a launch over a domain.
    pub fn launched(&self, extents: [usize; 3]) -> usize {
        let tiles = self.blocks(extents).iter().product();
        self.launched.map_or(tiles, |launched| launched.min(tiles))
    }

    /// Returns the bytes of shared memory that the tables of a stage take before its tile.
    pub fn table_bytes(&self, stage: usize) -> usize {
        self.tables.get(stage).map_or(0, |tables| tables::shared_bytes(tables))
    }

    /// Returns the threads of a block.
    pub fn threads_per_block(&self) -> usize {
        self.threads.iter().product::<usize>() * self.team
    }
}

impl Describe for Stepwise {
    fn summary(&self, _: &Plan) -> String {
        format!("stepwise, tiles of {}, {} threads per block", times(&self.tile), self.threads_per_block())
    }

    fn lines(&self, _: &Plan) -> Vec<Line> {
        let bytes = self.shared_bytes.iter().max().copied().unwrap_or(0);
        let (tile, threads) = (times(&self.tile), self.threads_per_block());
        let threads = if self.team > 1 { threads.to_string() } else { times(&self.threads) };
        let tiling =
            format!("tiles of {tile} cells, {threads} threads and {bytes} bytes of shared memory per block");
        let mut lines = vec![("tiling", tiling)];
        match self.lowering {
            Lowering::Auto | Lowering::Straight => {}
            Lowering::Loops => lines.push(("loops", "loops of formulas stay loops".to_owned())),
            Lowering::Jammed => {
                let words = format!("{} points of a thread go through loops together", self.points);
                lines.push(("loops", words));
            }
            Lowering::Team => lines.push(("loops", format!("{} threads share those of a point", self.team))),
        }
        if self.rows > 1 {
            let words =
                format!("up to {} turns of a loop go through the loops within it together", self.rows);
            lines.push(("rows", words));
        }
        if let Some(words) = tables::words(&self.tables) {
            lines.push(("tables", words));
        }
        if let Some(launched) = self.launched {
            let words =
                format!("{launched} at the most, each of which loads tables once and goes over tiles");
            lines.push(("blocks", words));
        }
        let fused: Vec<(&[usize], &Fused)> =
            self.partition.all().filter_map(|group| Some((&*group.stages, group.fused.as_ref()?))).collect();
        let tails: Vec<&[usize]> =
            self.partition.all().filter(|group| group.is_tail()).map(|group| &*group.stages).collect();
        let is_several = |group: &Group| group.stages.len() > 1;
        if self.partition.all().any(is_several) {
            let (kernels, stages) =
                (self.partition.all().count(), self.partition.all().map(|g| g.stages.len()));
            lines.push(("groups", format!("{} stages in {kernels} groups", stages.sum::<usize>())));
        }
        for chain in &self.partition.chains {
            let stages: Vec<usize> = self
                .partition
                .of_chain(chain)
                .iter()
                .flat_map(|group| group.stages.iter().copied())
                .collect();
            let (first, last) = (stages.iter().min().unwrap_or(&0), stages.iter().max().unwrap_or(&0));
            let words = match chain.by {
                Carrier::Reduction => {
                    format!(
                        "stages {first} to {last}: the kernel of the first one computes the scalars behind it"
                    )
                }
                Carrier::Blocks { blocks, threads, .. } => {
                    let noun = if blocks == 1 { "block" } else { "blocks" };
                    format!(
                        "stages {first} to {last} go over few values: one launch of {blocks} {noun} of {threads} threads"
                    )
                }
            };
            lines.push(("chain", words));
        }
        for stage in &self.partition.carried {
            let words = format!("stage {stage} of the program is made at the end of the step before");
            lines.push(("carried", words));
        }
        let mut before = 0;
        for split in &self.partition.splits {
            let first = split.stage + before;
            let last = first + split.parts.len() - 1;
            before += split.parts.len() - 1;
            lines.push((
                "split",
                format!("stage {} of the program runs in parts, as stages {first} to {last}", split.stage),
            ));
        }
        for stages in tails {
            lines.push((
                "group",
                format!(
                    "stages {} and {}: the first one's kernel reduces what it has made",
                    stages[0], stages[1]
                ),
            ));
        }
        let passes = self.partition.all().filter_map(|group| Some((&*group.stages, group.pass.as_ref()?)));
        for (stages, pass) in passes {
            lines.push((
                "group",
                format!(
                    "stages {} to {} repeat one formula: the levels of one pass of a streaming kernel, windows of {} \
                     cells a thread and {} warps",
                    stages[0],
                    stages[stages.len() - 1],
                    pass.cells_per_thread.iter().product::<usize>(),
                    pass.warps
                ),
            ));
        }
        for (stages, fused) in fused {
            let numbers: Vec<String> = stages.iter().map(usize::to_string).collect();
            let (rings, tile) = (fused.rings.len(), times(&fused.tile));
            let copied = match fused.loads.len() {
                0 => String::new(),
                count => format!(", {count} copied there ahead"),
            };
            lines.push((
                "group",
                format!(
                    "stages {}: tiles of {tile} and {} threads, {rings} names in shared memory{copied}, {} rows behind at the most",
                    numbers.join(", "),
                    fused.threads,
                    fused.members.iter().map(|member| member.lag).max().unwrap_or(0)
                ),
            ));
        }
        lines
    }
}

/// Returns the fields of a stage that a tile must stage: those tapped away from the cell itself.
pub fn staged_fields(stage: &Stage) -> Vec<usize> {
    let radii = stage.footprint.field_radius.iter().enumerate();
    radii.filter(|(_, radius)| radius.is_some_and(|r| r != [0; 3])).map(|(field, _)| field).collect()
}
