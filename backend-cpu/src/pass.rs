//! Several steps of one tile while its planes stream past: the pipeline of `abide_core::plan::Levels`, carried out.
//!
//! A tile reads the values from before the pass where its first levels need them, in the domain, and writes its own
//! cells' values after the pass there. Everything between stays in rings. Levels meet the domain's edge as the definition
//! does; under a periodic boundary a tile goes on beyond the edge instead and computes the other side's cells again,
//! unless it has the whole axis to itself.

use std::ops::Range;

use abide_core::Real;
use abide_core::plan::{Level, Levels, across};
use multiversion::multiversion;

use crate::chunk::{Buffer, Memory, Row, Scratch, Sink, TapRow};
use crate::lanes::Ahead;
use crate::region::Region;
use crate::rings::{Storage, Window, padded};
use crate::shared::Shared;
use crate::streams::Stream;
use crate::tape::{RowAt, Tape};

/// Cells of the domain that are advanced together; what it computes of them is its own to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    /// The cells along the three axes, slowest first.
    pub cells: [Range<usize>; 3],
}

/// What all tiles of a pass share.
pub struct Pass<'a, T> {
    /// The computed cells of the domain.
    pub region: &'a Region,
    /// The pipeline.
    pub levels: &'a Levels,
    /// Each stage's formula.
    pub tapes: &'a [Tape],
    /// The parameters' values.
    pub parameters: &'a [T],
    /// Cells of a chunk.
    pub chunk: usize,
    /// Axes along which there is more than one tile; the streamed one counts always.
    pub divided: [bool; 3],
    /// Each field before the pass.
    pub now: &'a [Shared<'a, T>],
    /// Each written field after the pass.
    pub new: &'a [Shared<'a, T>],
}

/// The rings and the scratch of one thread.
pub struct Rings<T> {
    storages: Vec<Storage<T>>,
    scratch: Scratch<T>,
    /// The scalars of each stage whose scalars are the same in all rows.
    scalars: Vec<Vec<T>>,
    lines: Vec<LineAt>,
    /// What each level computes of the tile.
    spans: Vec<[Range<isize>; 3]>,
    streams: Vec<Stream>,
    /// For each output of the level at work, its storage, and where its row begins there or in the domain.
    taken: Vec<Option<Storage<T>>>,
    begin: Vec<usize>,
}

impl<T: Real> Rings<T> {
    /// Rings for no pipeline yet, and scratch for any of the tapes.
    pub fn new(region: &Region, tapes: &[Tape], chunk: usize) -> Self {
        let tapes: Vec<&Tape> = tapes.iter().collect();
        Rings {
            storages: Vec::new(),
            scratch: Scratch::new(region, &tapes, chunk),
            scalars: tapes.iter().map(|tape| Vec::with_capacity(tape.uniform.nodes.len())).collect(),
            lines: Vec::with_capacity(tapes.iter().map(|tape| tape.lines.len()).max().unwrap_or(0)),
            spans: Vec::new(),
            streams: Vec::new(),
            taken: Vec::new(),
            begin: Vec::new(),
        }
    }

    /// Makes room for a pipeline and tiles of up to so many cells. The memory is touched first by who uses it.
    pub fn fit(&mut self, levels: &Levels, most: [usize; 3]) {
        let beyond = levels.beyond();
        let room = |axis: usize| most[axis] + 2 * beyond[axis];
        let plane = room(across(levels.stream)) * padded::<T>(room(2));
        self.storages.resize_with(self.storages.len().max(levels.storages.len()), Storage::empty);
        for (storage, planes) in self.storages.iter_mut().zip(&levels.storages) {
            storage.fit(planes * plane);
        }
    }
}

/// A row beside the computed one.
#[derive(Debug, Clone, Copy)]
enum LineAt {
    /// Beyond the domain, with the constant of this axis and side.
    Constant([usize; 2]),
    /// In the domain, beginning at this index; in a ring, the row with these numbers.
    Row { domain: usize, ring: [isize; 2], held: bool },
}

/// The values before the pass, and the rings.
struct Sources<'a, T> {
    now: &'a [Shared<'a, T>],
    storages: &'a [Storage<T>],
}

impl<T> Memory<T> for Sources<'_, T> {
    #[inline(always)]
    fn cells(&self, buffer: Buffer, range: Range<usize>) -> &[T] {
        match buffer {
            // SAFETY: by the contract of `advance` nobody writes what a tile reads of `now`.
            Buffer::Field(field) => unsafe { self.now[field].read(range) },
            Buffer::Ring(storage) => {
                let Storage { values, start } = &self.storages[storage];
                &values[start + range.start..start + range.end]
            }
        }
    }
}

/// Where a row's outputs go.
struct Targets<'a, T> {
    level: &'a Level,
    new: &'a [Shared<'a, T>],
    rings: &'a mut [Option<Storage<T>>],
    begin: &'a [usize],
}

impl<T> Sink<T> for Targets<'_, T> {
    #[inline(always)]
    fn cells(&mut self, output: usize, range: Range<usize>) -> &mut [T] {
        let begin = self.begin[output];
        let range = begin + range.start..begin + range.end;
        match &mut self.rings[output] {
            Some(storage) => &mut storage.values[range],
            // SAFETY: a level without a ring writes cells of its tile, which by the contract of `advance` are its own.
            None => unsafe { self.new[self.level.outputs[output].field].write(range) },
        }
    }
}

/// Advances one tile by the steps of a pass.
///
/// # Safety
///
/// While it runs no other thread writes cells of `pass.now` that lie within the pipeline's halo of the tile, counted
/// across periodic edges, and none reads or writes cells of `pass.new` that lie in the tile.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub unsafe fn advance<T: Real>(pass: &Pass<'_, T>, rings: &mut Rings<T>, tile: &Tile) {
    let Pass { levels, tapes, parameters, .. } = *pass;
    for (tape, scalars) in tapes.iter().zip(&mut rings.scalars) {
        tape.uniform.evaluate(scalars, parameters, [0; 3], |_| T::ZERO);
    }
    let window = pass.window(tile);
    pass.streams(&mut rings.streams);
    let mut spans = std::mem::take(&mut rings.spans);
    spans.clear();
    spans.extend(levels.levels.iter().map(|level| [0, 1, 2].map(|axis| pass.range(tile, level, axis))));
    let planes = |level: usize| spans[level][levels.stream].clone();
    let lag = |level: usize| levels.levels[level].lag as isize;
    let all = 0..levels.levels.len();
    let begin = all.clone().map(|level| planes(level).start + lag(level)).min().unwrap_or(0);
    let end = all.clone().map(|level| planes(level).end + lag(level)).max().unwrap_or(0);
    let mut front = begin;
    while front < end {
        for level in all.clone() {
            let (most, at) = (planes(level), front - lag(level));
            let now = at.max(most.start)..(at + levels.block as isize).min(most.end);
            if !now.is_empty() {
                pass.planes(rings, tile, &window, level, &spans[level], now);
            }
        }
        front += levels.block as isize;
    }
    rings.spans = spans;
}

impl<T: Real> Pass<'_, T> {
    /// Whether tiles go on beyond the domain's edge along an axis.
    #[inline(always)]
    fn wraps(&self, axis: usize) -> bool {
        self.region.is_periodic(axis) && (self.divided[axis] || axis == self.levels.stream)
    }

    /// The cells along an axis that a level computes for a tile.
    #[inline(always)]
    fn range(&self, tile: &Tile, level: &Level, axis: usize) -> Range<isize> {
        let beyond = level.beyond[axis] as isize;
        let (low, high) = (tile.cells[axis].start as isize - beyond, tile.cells[axis].end as isize + beyond);
        if self.wraps(axis) {
            return low..high;
        }
        let computed = self.region.computed(axis);
        low.max(computed.start as isize)..high.min(computed.end as isize)
    }

    /// The window of a tile: all that its levels compute or keep.
    #[inline(always)]
    fn window(&self, tile: &Tile) -> Window {
        let beyond = self.levels.beyond();
        let range = |axis: usize| {
            let (low, high) = (tile.cells[axis].start as isize, tile.cells[axis].end as isize);
            let (low, high) = (low - beyond[axis] as isize, high + beyond[axis] as isize);
            if self.wraps(axis) { low..high } else { low.max(0)..high.min(self.region.extent(axis) as isize) }
        };
        let (rows, cells) = (range(across(self.levels.stream)), range(2));
        let (first, stride) = (range(self.levels.stream).start, padded::<T>(cells.len()));
        Window { stream: self.levels.stream, first, low: rows.start, rows: rows.len(), cells, stride }
    }

    /// Some planes of a level.
    #[inline(always)]
    fn planes(
        &self,
        rings: &mut Rings<T>,
        tile: &Tile,
        window: &Window,
        number: usize,
        span: &[Range<isize>; 3],
        planes: Range<isize>,
    ) {
        let level = &self.levels.levels[number];
        let stream = self.levels.stream;
        let (rows, cells) = (span[across(stream)].clone(), span[2].clone());
        if rows.is_empty() || cells.is_empty() {
            return;
        }
        // No level reads the storages that it writes, so they can be taken out while the others are read.
        let storage = |ring: usize| self.levels.rings[ring].storage;
        let Rings { storages, scratch, scalars, lines, taken, begin, streams, .. } = rings;
        taken.clear();
        taken.extend(
            level.outputs.iter().map(|output| {
                output.ring.map(|ring| std::mem::replace(&mut storages[storage(ring)], Storage::empty()))
            }),
        );
        std::mem::swap(&mut scratch.scalars, &mut scalars[level.stage]);
        let tape = &self.tapes[level.stage];
        let memory = Sources { now: self.now, storages };
        let row = Row {
            region: self.region,
            tape,
            memory: &memory,
            chunk: self.chunk,
            window: window.cells.clone(),
            ahead: Ahead { read: false, write: false },
        };
        let share = self.share(number, tile);
        let kept = if self.wraps(2) { [0..0, 0..0] } else { self.kept(tile, level) };
        let keeps = taken.iter().any(Option::is_some)
            && (level.outputs.iter().any(|output| output.last) || kept.iter().any(|kept| !kept.is_empty()));
        let (mut beside, mut safe, mut domain) = (false, None, 0);
        for plane in planes {
            // The rows of a plane lie side by side, and planes that are rows.
            beside &= stream == 1;
            for line in rows.clone() {
                let mut at = [0; 2];
                (at[stream], at[across(stream)]) = (plane, line);
                let surrounded = self.surrounded(tape, at);
                if beside && surrounded && !tape.varies_by_row {
                    domain += self.region.width();
                    self.step(scratch, tape, level, window);
                    for i in 0..begin.len() {
                        begin[i] = match (level.outputs[i].ring, &taken[i]) {
                            (Some(ring), Some(storage)) => {
                                let first = storage.start + (cells.start - window.cells.start) as usize;
                                first + window.beside(self.levels.rings[ring].planes, begin[i] - first)
                            }
                            _ => begin[i] + self.region.width(),
                        };
                    }
                } else {
                    let place = |axis: usize| {
                        let (at, extent) = (at[axis], self.region.extent(axis) as isize);
                        // Few rows lie beyond the edge, and a division takes its time.
                        if (0..extent).contains(&at) { at as usize } else { at.rem_euclid(extent) as usize }
                    };
                    let [z, y] = [place(0), place(1)];
                    if tape.varies_by_row {
                        tape.uniform.evaluate(&mut scratch.scalars, self.parameters, [z, y, 0], |_| T::ZERO);
                    }
                    domain = self.region.row_index([z, y]);
                    self.find(lines, scratch, tape, level, window, at, surrounded);
                    safe = row.safe(&scratch.rows);
                    begin.clear();
                    for (output, taken) in level.outputs.iter().zip(&*taken) {
                        begin.push(match (output.ring, taken) {
                            (Some(ring), Some(storage)) => {
                                let first = window.index(self.levels.rings[ring].planes, at);
                                storage.start + first + (cells.start - window.cells.start) as usize
                            }
                            _ => domain + cells.start as usize,
                        });
                    }
                }
                beside = surrounded;
                for stream in &*streams {
                    self.ask(stream, at, number, &share);
                }
                let mut targets = Targets { level, new: self.new, rings: taken, begin };
                row.compute(scratch, &mut targets, cells.clone(), &safe);
                if keeps {
                    self.keep(taken, begin, tile, level, &cells, &kept, at, domain);
                }
            }
        }
        std::mem::swap(&mut scratch.scalars, &mut scalars[level.stage]);
        for (output, taken) in level.outputs.iter().zip(taken) {
            if let (Some(ring), Some(taken)) = (output.ring, taken.take()) {
                storages[storage(ring)] = taken;
            }
        }
    }

    /// Finds the rows that the taps of a row lie in, which has all lines beside it in the domain if it is `surrounded`.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "one row's place in everything there is")]
    fn find(
        &self,
        lines: &mut Vec<LineAt>,
        scratch: &mut Scratch<T>,
        tape: &Tape,
        level: &Level,
        window: &Window,
        row: [isize; 2],
        surrounded: bool,
    ) {
        // Plain loops here and below: adaptors stay calls where the instruction set is chosen at run time.
        let held = |source: usize, row: [isize; 2]| {
            let source = self.levels.rings[source];
            TapRow::At(Buffer::Ring(source.storage), window.index(source.planes, row))
        };
        scratch.rows.clear();
        if surrounded {
            for &RowAt { field, line } in &tape.rows {
                let at = [row[0] + tape.lines[line][0], row[1] + tape.lines[line][1]];
                scratch.rows.push(match level.sources[field] {
                    Some(source) => held(source, at),
                    None => TapRow::At(Buffer::Field(field), self.region.row_index(at.map(|at| at as usize))),
                });
            }
            return;
        }
        lines.clear();
        for offset in &tape.lines {
            lines.push(self.line([row[0] + offset[0], row[1] + offset[1]]));
        }
        for &RowAt { field, line } in &tape.rows {
            scratch.rows.push(match (lines[line], level.sources[field]) {
                (LineAt::Constant(side), _) => TapRow::Constant(side),
                (LineAt::Row { ring, held: true, .. }, Some(source)) => held(source, ring),
                (LineAt::Row { domain, .. }, _) => TapRow::At(Buffer::Field(field), domain),
            });
        }
    }

    /// Moves on from a surrounded row to the one beside it, surrounded too: so lie all rows that it reads.
    #[inline(always)]
    fn step(&self, scratch: &mut Scratch<T>, tape: &Tape, level: &Level, window: &Window) {
        for (at, row) in scratch.rows.iter_mut().zip(&tape.rows) {
            match (at, level.sources[row.field]) {
                (TapRow::At(Buffer::Ring(_), index), Some(source)) => {
                    *index = window.beside(self.levels.rings[source].planes, *index);
                }
                (TapRow::At(_, index), _) => *index += self.region.width(),
                (TapRow::Constant(_), _) => {}
            }
        }
    }

    /// Whether all lines beside a row lie in the domain and are computed, as nearly all do.
    #[inline(always)]
    fn surrounded(&self, tape: &Tape, row: [isize; 2]) -> bool {
        let mut all = true;
        for axis in 0..2 {
            let (computed, [low, high]) = (self.region.computed(axis), tape.reach[axis]);
            all &= row[axis] + low >= computed.start as isize && row[axis] + high < computed.end as isize;
        }
        all
    }

    /// Where a row that may lie beyond the domain is found.
    #[inline(always)]
    fn line(&self, at: [isize; 2]) -> LineAt {
        // Rows that are never computed are in no ring; they have the values that they always had.
        let computed = |axis: usize, index: isize| {
            let computed = self.region.computed(axis);
            index >= computed.start as isize && index < computed.end as isize
        };
        if computed(0, at[0]) && computed(1, at[1]) {
            let domain = self.region.row_index([at[0] as usize, at[1] as usize]);
            return LineAt::Row { domain, ring: at, held: true };
        }
        match self.region.place(at) {
            Err(side) => LineAt::Constant(side),
            Ok(place) => {
                let (mut ring, mut held) = (at, true);
                for axis in 0..2 {
                    if !self.wraps(axis) {
                        ring[axis] = place[axis] as isize;
                        held &= computed(axis, ring[axis]);
                    }
                }
                LineAt::Row { domain: self.region.row_index(place), ring, held }
            }
        }
    }

    /// The cells at the ends of rows that a level's readers need and that are never computed.
    #[inline(always)]
    fn kept(&self, tile: &Tile, level: &Level) -> [Range<usize>; 2] {
        let (beyond, computed) = (level.beyond[2], self.region.computed(2));
        let low = tile.cells[2].start.saturating_sub(beyond)..computed.start;
        let high = computed.end..(tile.cells[2].end + beyond).min(self.region.width());
        [low, high]
    }

    /// Completes a row in the rings by the cells that are never computed, and copies what the fields hold after the pass.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "one row's place in everything there is")]
    fn keep(
        &self,
        rings: &mut [Option<Storage<T>>],
        begin: &[usize],
        tile: &Tile,
        level: &Level,
        cells: &Range<isize>,
        kept: &[Range<usize>; 2],
        row: [isize; 2],
        domain: usize,
    ) {
        let own = (0..2).all(|axis| tile.cells[axis].contains(&(row[axis] as usize))) && row.iter().all(|&at| at >= 0);
        for ((output, storage), &begin) in level.outputs.iter().zip(rings).zip(begin) {
            let Some(Storage { values, .. }) = storage else { continue };
            for kept in kept {
                for x in kept.clone() {
                    let to = begin as isize + x as isize - cells.start;
                    // SAFETY: nobody writes cells that are not computed.
                    values[to as usize] = unsafe { self.now[output.field].read(domain + x..domain + x + 1) }[0];
                }
            }
            if output.last && own {
                let low = (tile.cells[2].start as isize).max(cells.start);
                let high = (tile.cells[2].end as isize).min(cells.end);
                let from = begin + (low - cells.start) as usize;
                let to = domain + low as usize;
                let len = (high - low).max(0) as usize;
                // SAFETY: the cells are the tile's, which by the contract of `advance` are its own.
                unsafe { self.new[output.field].write(to..to + len) }.copy_from_slice(&values[from..from + len]);
            }
        }
    }
}
