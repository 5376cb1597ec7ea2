//! A pass of several steps as a pipeline: one level for each stage and step, each a few planes behind those
//! it reads.
//!
//! This is the wavefront form of temporal blocking, Nguyen et al.'s 3.5-D blocking (SC'10). Planes of a tile
//! stream past; every level turns those that arrive into planes of its own, of which it keeps in a ring only
//! as many as later levels still read. Along the streamed axis nothing is computed twice except where tiles
//! begin and end. Along the other axes tiles overlap, because a level computes beyond its tile what later
//! levels will read there.

use serde::Serialize;

use crate::program::{Problem, Program};

/// One stage of one step of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Level {
    /// The step of the pass, counted from 0.
    pub step: usize,
    /// The index of the stage in the program.
    pub stage: usize,
    /// Planes behind the front of the pass.
    pub lag: usize,
    /// Cells beyond each side of the tile that the level computes, along the three axes, slowest first.
    pub beyond: [usize; 3],
    /// For each field of the program, the ring that holds its values; `None` for values from before the pass.
    pub sources: Vec<Option<usize>>,
    /// The destinations of the stage's outputs, one per output.
    pub outputs: Vec<Output>,
}

/// The destination of one output: a ring that a later level reads, the domain, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The field.
    pub field: usize,
    /// The ring; `None` where the level writes to the domain directly.
    pub ring: Option<usize>,
    /// Whether this output is what the field holds after the pass.
    pub last: bool,
}

/// The planes of an output that later levels still read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ring {
    /// Planes of the ring: after so many, a plane takes the place of the first.
    pub planes: usize,
    /// The storage that holds the ring. Rings whose planes are dead before the front moves on share storage.
    pub storage: usize,
    /// Planes by which a plane of this ring lies before the plane of the same number in a ring without shift.
    pub shift: usize,
}

/// The pipeline of a pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Levels {
    /// Steps per pass.
    pub depth: usize,
    /// The streamed axis: the slowest of two or three. A line is a plane of its own.
    pub stream: usize,
    /// Planes that each level computes at a time.
    pub block: usize,
    /// The levels, in the order in which they run.
    pub levels: Vec<Level>,
    /// The rings of all levels.
    pub rings: Vec<Ring>,
    /// Planes that each storage has room for.
    pub storages: Vec<usize>,
    /// Cells beyond each side of a tile that the first levels read, along the three axes.
    pub halo: [usize; 3],
}

/// Returns the other one of the two slower axes.
pub fn across(stream: usize) -> usize {
    1 - stream
}

impl Levels {
    /// Makes the pipeline of `depth` steps of a problem; each level computes `block` planes at a time.
    pub fn new(problem: &Problem, depth: usize, block: usize) -> Levels {
        let program = problem.program.simplified(problem.dtype);
        let stream = if program.dimensions() == 3 { 0 } else { 1 };
        let order: Vec<usize> = (0..depth.max(1)).flat_map(|_| 0..program.stages().len()).collect();
        let flow = Flow::new(&program, &order);
        let mut pipeline = Levels {
            depth: depth.max(1),
            stream,
            block: block.max(1),
            levels: Vec::new(),
            rings: Vec::new(),
            storages: Vec::new(),
            halo: flow.halo(),
        };
        pipeline.lay_out(&flow);
        pipeline.share_rings(&flow);
        pipeline
    }

    /// Lets all levels of a program of one stage use one ring for each field. This is the grid compression of
    /// Pohl et al. (Parallel Processing Letters 13, 2003) carried over to rings: a level writes a plane to
    /// the place of one that the level before wrote and that it has just read for the last time. Half as many
    /// planes are kept, and a plane is written to a place that a cache nearby already holds.
    fn share_rings(&mut self, flow: &Flow<'_>) {
        let [stage] = flow.program.stages() else { return };
        let radius = stage.footprint.radius[self.stream];
        let count = self
            .levels
            .iter()
            .filter(|level| level.outputs.iter().any(|output| output.ring.is_some()))
            .count();
        if radius == 0 || count == 0 {
            return;
        }
        let planes = self.block + 2 * radius + (2 * radius + 1) * (count - 1);
        for (number, level) in self.levels.iter().enumerate() {
            for (field, output) in level.outputs.iter().enumerate() {
                if let Some(ring) = output.ring {
                    // A plane is read for the last time when the plane one radius further on is read.
                    self.rings[ring] = Ring { planes, storage: field, shift: (radius + 1) * number };
                }
            }
        }
        self.storages = vec![planes; stage.writes.len()];
    }

    fn lay_out(&mut self, flow: &Flow<'_>) {
        let (stream, block) = (self.stream, self.block);
        // Planes by which each level lags the front. A level lags each level that it reads by the radius of that read.
        let mut lags = vec![0usize; flow.order.len()];
        for level in flow.live() {
            let reads =
                flow.reads(level).filter_map(|(field, radius)| Some((flow.sources[level][field]?, radius)));
            lags[level] = reads.map(|(from, radius)| lags[from] + radius[stream]).max().unwrap_or(0);
        }
        let mut ring_of = std::collections::HashMap::new();
        let (mut free, mut ends): (Vec<usize>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
        for level in flow.live() {
            let stage = &flow.program.stages()[flow.order[level]];
            let sources = flow.sources[level]
                .iter()
                .enumerate()
                .map(|(field, from)| from.and_then(|from| ring_of.get(&(from, field)).copied()))
                .collect();
            let mut outputs = Vec::new();
            for &field in &stage.writes {
                let readers: Vec<(usize, usize)> = flow.readers(level, field, stream).collect();
                let last = flow.last[field] == Some(level);
                // A level that computes nothing beyond its tile may write to the domain at once.
                let direct = readers.is_empty() && last && flow.beyond[level] == [0; 3];
                let ring = (!direct).then(|| {
                    let behind = |&(reader, radius): &(usize, usize)| lags[reader] - lags[level] + radius;
                    let more = readers.iter().map(behind).max().unwrap_or(0);
                    let planes = block + more;
                    let reused = if more == 0 { free.pop() } else { None };
                    let storage = reused.unwrap_or_else(|| {
                        self.storages.push(0);
                        self.storages.len() - 1
                    });
                    self.storages[storage] = self.storages[storage].max(planes);
                    if more == 0 {
                        ends.push((readers.iter().map(|reader| reader.0).max().unwrap_or(level), storage));
                    }
                    self.rings.push(Ring { planes, storage, shift: 0 });
                    self.rings.len() - 1
                });
                if let Some(ring) = ring {
                    ring_of.insert((level, field), ring);
                }
                outputs.push(Output { field, ring, last });
            }
            ends.retain(|&(end, storage)| {
                let over = end <= level;
                if over {
                    free.push(storage);
                }
                !over
            });
            let (lag, beyond) = (lags[level], flow.beyond[level]);
            let (step, stage) = (level / flow.program.stages().len(), flow.order[level]);
            self.levels.push(Level { step, stage, lag, beyond, sources, outputs });
        }
    }

    /// Returns the most cells beyond each side of a tile that any level computes, along the three axes. Rings
    /// must have room for them.
    pub fn beyond(&self) -> [usize; 3] {
        let mut most = [0; 3];
        for level in &self.levels {
            (0..3).for_each(|axis| most[axis] = level.beyond[axis].max(most[axis]));
        }
        most
    }

    /// Returns the cells that all levels compute per cell of a tile and step: 1 at best, more where
    /// overlapping tiles compute cells twice. `tile` are the extents of the tile; along `open` axes it has
    /// neighbours on both sides.
    pub fn overlap(&self, tile: [usize; 3], open: [bool; 3]) -> f64 {
        let cells = |beyond: [usize; 3]| -> f64 {
            (0..3).map(|a| (tile[a] + if open[a] { 2 * beyond[a] } else { 0 }) as f64).product()
        };
        let all: f64 = self.levels.iter().map(|level| cells(level.beyond)).sum();
        all / (self.levels.len().max(1) as f64 * cells([0; 3]))
    }
}

/// The levels of a pass, and which level reads which fields of which other level.
struct Flow<'p> {
    program: &'p Program,
    /// The stage of each level.
    order: &'p [usize],
    /// For each level and field, the level that wrote the values that are current when it runs.
    sources: Vec<Vec<Option<usize>>>,
    /// For each field, the level that writes it last.
    last: Vec<Option<usize>>,
    needed: Vec<bool>,
    beyond: Vec<[usize; 3]>,
}

impl<'p> Flow<'p> {
    fn new(program: &'p Program, order: &'p [usize]) -> Flow<'p> {
        let mut current = vec![None; program.fields().len()];
        let mut sources = Vec::with_capacity(order.len());
        for (level, &stage) in order.iter().enumerate() {
            sources.push(current.clone());
            program.stages()[stage].writes.iter().for_each(|&field| current[field] = Some(level));
        }
        let count = order.len();
        let mut flow = Flow {
            program,
            order,
            sources,
            last: current,
            needed: vec![false; count],
            beyond: vec![[0; 3]; count],
        };
        for level in (0..count).rev() {
            // Values that are written over before anyone reads them need not be computed.
            flow.needed[level] |= flow.last.contains(&Some(level));
            if !flow.needed[level] {
                continue;
            }
            let reads: Vec<_> = flow.reads(level).collect();
            for (field, radius) in reads {
                if let Some(from) = flow.sources[level][field] {
                    flow.needed[from] = true;
                    for axis in 0..3 {
                        let beyond = flow.beyond[level][axis] + radius[axis];
                        flow.beyond[from][axis] = flow.beyond[from][axis].max(beyond);
                    }
                }
            }
        }
        flow
    }

    fn live(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.order.len()).filter(|&level| self.needed[level])
    }

    /// Returns the fields that a level reads, with its radius for each.
    fn reads(&self, level: usize) -> impl Iterator<Item = (usize, [usize; 3])> + 'p {
        let radius = &self.program.stages()[self.order[level]].footprint.field_radius;
        radius.iter().enumerate().filter_map(|(field, radius)| Some((field, (*radius)?)))
    }

    /// Returns the later levels that read a field of a level, with their radius along an axis.
    fn readers(&self, level: usize, field: usize, axis: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.live().filter(move |&reader| self.sources[reader][field] == Some(level)).filter_map(
            move |reader| {
                self.reads(reader).find(|read| read.0 == field).map(|(_, radius)| (reader, radius[axis]))
            },
        )
    }

    /// Returns the cells beyond each side of a tile that a pass reads of the values from before it.
    fn halo(&self) -> [usize; 3] {
        let mut halo = [0; 3];
        for level in self.live() {
            for (_, radius) in self.reads(level) {
                for axis in 0..3 {
                    halo[axis] = halo[axis].max(self.beyond[level][axis] + radius[axis]);
                }
            }
        }
        halo
    }
}
