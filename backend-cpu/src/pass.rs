//! Several steps of one tile while its planes stream past, through the pipeline of
//! `abide_core::plan::Levels`.
//!
//! A tile's first levels read the values from before the pass in the domain. Its last level writes the values
//! of its own cells after the pass there. Everything between stays in rings. `tile` says which cells a level
//! computes.

use std::ops::Range;

use abide_core::plan::{Levels, across};
use abide_core::{Real, Result};
use multiversion::multiversion;

use crate::bytecode::{Bytecode, InnerPart, RowAt};
use crate::chunk::{Buffer, Memory, Row, Scratch, TapRow};
use crate::prefetch::Prefetch;
use crate::region::Region;
use crate::rings::{LINE_BYTES, Storage, Walk, padded};
use crate::shared::Shared;
use crate::stretch::Stretch;
use crate::sum::{Ahead, Rows};
use crate::targets::{Part, Targets, Turn};
use crate::tile::{Pass, Tile};

/// The rings and the scratch of one thread.
pub struct Rings<T> {
    storages: Vec<Storage<T>>,
    work: Work<T>,
}

/// A thread's scratch beside its rings.
struct Work<T> {
    scratch: Scratch<T>,
    /// The scalars of each level whose scalars are the same in all rows.
    scalars: Vec<Vec<T>>,
    lines: Vec<LineAt>,
    prefetches: Vec<Prefetch>,
    /// For each output of the level at work, where its row begins in its ring or in the domain.
    begin: Vec<Walk>,
}

impl<T: Real> Rings<T> {
    /// Allocates rings for no pipeline yet, and scratch for any of the bytecodes.
    pub fn new(region: &Region, bytecodes: &[Bytecode], chunk: usize) -> Result<Self> {
        let bytecodes: Vec<&Bytecode> = bytecodes.iter().collect();
        let work = Work {
            scratch: Scratch::new(region, &bytecodes, chunk)?,
            scalars: Vec::new(),
            lines: Vec::with_capacity(
                bytecodes.iter().map(|bytecode| bytecode.lines.len()).max().unwrap_or(0),
            ),
            prefetches: Vec::new(),
            begin: Vec::new(),
        };
        Ok(Rings { storages: Vec::new(), work })
    }

    /// Makes room for a pipeline and for tiles of up to `most` cells. The thread that uses the memory is the
    /// first to touch it.
    pub fn fit(&mut self, levels: &Levels, most: [usize; 3]) -> Result<()> {
        self.work.scalars.resize_with(self.work.scalars.len().max(levels.levels.len()), Vec::new);
        let beyond = levels.beyond();
        let room = |axis: usize| most[axis] + 2 * beyond[axis];
        let plane = room(across(levels.stream)) * padded::<T>(room(2) + LINE_BYTES / size_of::<T>());
        self.storages.resize_with(self.storages.len().max(levels.storages.len()), Storage::empty);
        for (storage, planes) in self.storages.iter_mut().zip(&levels.storages) {
            storage.fit(planes.saturating_mul(plane))?;
        }
        Ok(())
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

/// The values before the pass, and the rings' storages. Of a storage a level may read some planes and write
/// others.
struct Sources<'a, T> {
    now: &'a [Shared<'a, T>],
    storages: &'a [Shared<'a, T>],
}

// SAFETY: by the contract of `advance` nobody writes what a tile reads of `now`. The rings are this thread's,
// and `Levels` sees to it that no level writes a plane that it reads for the row at work.
unsafe impl<T> Memory<T> for Sources<'_, T> {
    #[inline(always)]
    fn cells(&self, buffer: Buffer, range: Range<usize>) -> &[T] {
        match buffer {
            // SAFETY: by the contract of `advance` nobody writes what a tile reads of `now`.
            Buffer::Field(field) => unsafe { self.now[field].read(range) },
            // SAFETY: as above.
            Buffer::Ring(storage) => unsafe { self.storages[storage].read(range) },
        }
    }

    #[inline(always)]
    fn all(&self, buffer: Buffer) -> *const [T] {
        match buffer {
            Buffer::Field(field) => self.now[field].all(),
            Buffer::Ring(storage) => self.storages[storage].all(),
        }
    }
}

/// Advances one tile by the steps of a pass.
///
/// # Safety
///
/// While this runs, no other thread writes cells of `pass.now` that lie within the pipeline's halo of the
/// tile, counted across periodic edges. No other thread reads or writes cells of `pass.new` in the tile.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
pub unsafe fn advance<T: Real>(pass: &Pass<'_, T>, rings: &mut Rings<T>, tile: &Tile) {
    let Pass { levels, bytecodes, parameters, .. } = *pass;
    let Rings { storages, work } = rings;
    let storages: Vec<Shared<'_, T>> =
        storages.iter_mut().map(|storage| Shared::new(storage.all_mut())).collect();
    for (level, scalars) in levels.levels.iter().zip(&mut work.scalars) {
        let read = parameters.of(level.step, level.stage);
        bytecodes[level.stage].uniform.evaluate(scalars, read, [0; 3], |_| T::ZERO);
    }
    let window = pass.window(tile);
    pass.prefetches(&mut work.prefetches);
    let mut parts: Vec<Part<T>> = (0..levels.levels.len()).map(|level| pass.part(tile, level)).collect();
    let planes = |parts: &[Part<T>], level: usize| parts[level].span[levels.stream].clone();
    let lag = |level: usize| levels.levels[level].lag as isize;
    let all = 0..levels.levels.len();
    let begin = all.clone().map(|level| planes(&parts, level).start + lag(level)).min().unwrap_or(0);
    let end = all.clone().map(|level| planes(&parts, level).end + lag(level)).max().unwrap_or(0);
    let mut front = begin;
    while front < end {
        for number in all.clone() {
            let (most, at) = (planes(&parts, number), front - lag(number));
            let now = at.max(most.start)..(at + levels.block as isize).min(most.end);
            if !now.is_empty() {
                let level = &levels.levels[number];
                let bytecode = &bytecodes[level.stage];
                let turn = Turn { tile, window: &window, storages: &storages, number, level, bytecode };
                pass.planes(work, &turn, &mut parts[number], now);
            }
        }
        front += levels.block as isize;
    }
}

impl<T: Real> Pass<'_, T> {
    /// Returns the part of a tile that a level computes.
    #[inline(always)]
    fn part(&self, tile: &Tile, number: usize) -> Part<T> {
        let level = &self.levels.levels[number];
        let kept = if self.wraps(2) { [0..0, 0..0] } else { self.kept(tile, level) };
        let completes = kept.iter().any(|kept| !kept.is_empty());
        let keeps = level.outputs.iter().any(|output| output.ring.is_some() && (output.last || completes));
        let span = [0, 1, 2].map(|axis| self.range(tile, level, axis));
        Part { span, share: self.share(number, tile), kept, keeps, stretch: None }
    }

    /// Computes some planes of a level.
    #[inline(always)]
    fn planes(&self, work: &mut Work<T>, turn: &Turn<'_, T>, part: &mut Part<T>, planes: Range<isize>) {
        let Turn { window, storages, number, level, bytecode, .. } = *turn;
        let (rows, cells) = (part.span[across(self.levels.stream)].clone(), part.span[2].clone());
        if rows.is_empty() || cells.is_empty() {
            return;
        }
        // Along the second axis rows lie side by side, whether these are planes or the rows of one plane.
        let [slow, fast] = if self.levels.stream == 0 { [planes, rows] } else { [rows, planes] };
        // Most turns are part of a stretch.
        let first = self.go_on(part, &work.prefetches, number, [slow.start, fast.start], &fast);
        if slow.len() == 1 && first == fast.end {
            return;
        }
        let Work { scratch, scalars, lines, begin, prefetches } = work;
        std::mem::swap(&mut scratch.scalars, &mut scalars[number]);
        let memory = Sources { now: self.now, storages };
        let mut row = Row {
            region: self.region,
            bytecode,
            memory: &memory,
            chunk: self.chunk,
            window: window.cells.clone(),
            ahead: Ahead { read: false, write: false },
            inner: InnerPart::default(),
        };
        let copies = level.outputs.iter().any(|output| output.last && output.ring.is_some());
        for z in slow.clone() {
            let mut y = if z == slow.start { first } else { fast.start };
            while y < fast.end {
                y = self.go_on(part, prefetches, number, [z, y], &fast);
                if y == fast.end {
                    break;
                }
                let at = [z, y];
                let surrounded = self.surrounded(bytecode, at, part.span[1].end);
                let count =
                    if bytecode.varies_by_row { 1 } else { surrounded.min((fast.end - y) as usize).max(1) };
                let place = |axis: usize| {
                    let (at, extent) = (at[axis], self.region.extent(axis) as isize);
                    // Few rows lie beyond the edge, and a division is slow.
                    if (0..extent).contains(&at) { at as usize } else { at.rem_euclid(extent) as usize }
                };
                let place = [place(0), place(1)];
                row.inner = bytecode.inner_of(place.map(|at| at as isize), self.region.width() as isize);
                if bytecode.varies_in(&row.inner) {
                    bytecode.uniform.evaluate(
                        &mut scratch.scalars,
                        self.parameters.of(level.step, level.stage),
                        [place[0] as isize, place[1] as isize, 0],
                        |_| T::ZERO,
                    );
                }
                self.find(lines, scratch, turn, at, surrounded > 0);
                let domain = self.region.row_index(place);
                begin.clear();
                for output in &level.outputs {
                    begin.push(match output.ring {
                        Some(ring) => {
                            let first = (cells.start - window.cells.start) as usize;
                            window.walk(self.levels.rings[ring], at).shifted(first)
                        }
                        None => Walk::domain(domain, self.region.width()).shifted(cells.start as usize),
                    });
                }
                let mut targets = Targets { pass: self, turn, part, prefetches, begin, row: at, domain };
                let sums = if surrounded > 0 && !bytecode.varies_by_row && !copies {
                    row.sums(scratch, &mut targets, &cells, surrounded)
                } else {
                    None
                };
                if let Some(sums) = sums {
                    let kept = part.keeps.then(|| {
                        let field = self.now[level.outputs[0].field].all();
                        let size = [surrounded, self.region.width()];
                        (
                            part.kept.clone(),
                            cells.start,
                            Rows::new(field, Walk::domain(domain, size[1]), size),
                        )
                    });
                    part.stretch = Some(Stretch { at, sums, kept });
                    continue;
                }
                row.run(scratch, &mut targets, cells.clone(), count);
                y += count as isize;
            }
        }
        std::mem::swap(&mut scratch.scalars, &mut scalars[number]);
    }

    /// Goes on with the rows of a level's stretch, if the stretch has come to the row; returns the row after
    /// those that are done.
    #[inline(always)]
    fn go_on(
        &self,
        part: &mut Part<T>,
        prefetches: &[Prefetch],
        number: usize,
        at: [isize; 2],
        fast: &Range<isize>,
    ) -> isize {
        let Some(stretch) = part.stretch.as_mut().filter(|stretch| stretch.at == at) else { return at[1] };
        let rows = stretch.sums.left().min((fast.end - at[1]).max(0) as usize);
        // SAFETY: by the contract of `advance` nobody writes what a tile reads, nor reads what it writes. The
        // rings are this thread's, borrowed while a tile is at work, and no level writes a plane that it
        // reads for the row at work.
        unsafe { stretch.advance(rows) };
        for prefetch in prefetches {
            self.ask(prefetch, at, rows, number, &part.share);
        }
        at[1] + rows as isize
    }

    /// Finds the rows that the taps of a row lie in. If the row is `surrounded`, all lines beside it lie in
    /// the domain.
    #[inline(always)]
    fn find(
        &self,
        lines: &mut Vec<LineAt>,
        scratch: &mut Scratch<T>,
        turn: &Turn<'_, T>,
        row: [isize; 2],
        surrounded: bool,
    ) {
        let Turn { window, level, bytecode, .. } = *turn;
        // Plain loops here and below: adaptors stay calls where the instruction set is chosen at run time.
        let held = |source: usize, row: [isize; 2]| {
            let source = self.levels.rings[source];
            TapRow::At(Buffer::Ring(source.storage), window.walk(source, row))
        };
        let domain =
            |field: usize, at: usize| TapRow::At(Buffer::Field(field), Walk::domain(at, self.region.width()));
        scratch.rows.clear();
        if surrounded {
            for &RowAt { field, line } in &bytecode.rows {
                let at = [row[0] + bytecode.lines[line][0], row[1] + bytecode.lines[line][1]];
                scratch.rows.push(match level.sources[field] {
                    Some(source) => held(source, at),
                    None => domain(field, self.region.row_index(at.map(|at| at as usize))),
                });
            }
            return;
        }
        lines.clear();
        for offset in &bytecode.lines {
            lines.push(self.line([row[0] + offset[0], row[1] + offset[1]]));
        }
        for &RowAt { field, line } in &bytecode.rows {
            scratch.rows.push(match (lines[line], level.sources[field]) {
                (LineAt::Constant(side), _) => TapRow::Constant(side),
                (LineAt::Row { ring, held: true, .. }, Some(source)) => held(source, ring),
                (LineAt::Row { domain: at, .. }, _) => domain(field, at),
            });
        }
    }

    /// Counts the rows along the second axis, from one on and up to `end`, whose neighbouring lines all lie
    /// in the domain and are computed, as is so for nearly all rows.
    #[inline(always)]
    fn surrounded(&self, bytecode: &Bytecode, row: [isize; 2], end: isize) -> usize {
        let mut rows = end - row[1];
        for axis in 0..2 {
            let (computed, [low, high]) = (self.region.computed(axis), bytecode.reach[axis]);
            let last = computed.end as isize - high;
            if row[axis] + low < computed.start as isize || row[axis] >= last {
                return 0;
            }
            if axis == 1 {
                rows = rows.min(last - row[1]);
            }
        }
        rows.max(0) as usize
    }

    /// Finds a row that may lie beyond the domain.
    #[inline(always)]
    fn line(&self, at: [isize; 2]) -> LineAt {
        // Rows that are never computed are in no ring, because their values never change.
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
}
