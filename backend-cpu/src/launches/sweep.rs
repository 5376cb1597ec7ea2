//! One stage over all its values: bands of rows on all threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use abide_core::floating::standard;
use abide_core::program::{Buffer, Indices, Launch, Levels, around};
use abide_core::{Real, Result};
use multiversion::multiversion;
use rayon::prelude::*;

use super::field_rows::{FieldRows, Line};
use crate::bytecode::{Bytecode, TapAt};
use crate::rings::{Storage, zeros};
use crate::shared::Shared;
use crate::steps::{Chunk, NewValues, StepScratch, Taps};
use crate::sum::Ahead;

/// Values of a launch too small to be worth waking a second thread, and bands per thread.
pub const FEW: usize = 16384;
const BANDS: usize = 8;

/// Values of a row so short that gathering all of it costs less than parts of its own for its ends.
const SHORT: usize = 512;

/// Lanes of two of the widest vectors, which loops take at once.
const WIDEST: usize = 16;

/// The scratch of a thread.
pub struct Work<T> {
    step_scratch: StepScratch<T>,
    /// The values of taps that lie in no row as they are.
    gathered: Vec<Box<[T]>>,
    /// The new values of outputs that are not stored as they are computed.
    outputs: Vec<Storage<T>>,
    /// The values of the bytecode's scalars.
    scalars: Vec<T>,
    lines: Vec<Line<T>>,
    /// The rows of leaves of a reduction.
    pub leaves: Storage<T>,
}

impl<T: Real> Work<T> {
    /// Allocates scratch for any of the bytecodes, and for the rows of `leaf` over a width.
    pub fn new(bytecodes: &[&Bytecode], chunk: usize, width: usize, leaf: [usize; 3]) -> Result<Self> {
        let chunk = chunk.next_multiple_of(WIDEST);
        let most =
            |of: fn(&Bytecode) -> usize| bytecodes.iter().map(|&bytecode| of(bytecode)).max().unwrap_or(0);
        let outputs = most(|bytecode| bytecode.outputs);
        Ok(Work {
            step_scratch: StepScratch::new(bytecodes, chunk)?,
            gathered: (0..most(|bytecode| bytecode.taps.len()))
                .map(|_| Ok(zeros(chunk)?.into_boxed_slice()))
                .collect::<Result<_>>()?,
            outputs: (0..outputs).map(|_| Storage::new(chunk)).collect::<Result<_>>()?,
            scalars: Vec::with_capacity(most(|bytecode| bytecode.uniform.nodes.len())),
            lines: Vec::with_capacity(most(|bytecode| bytecode.rows.len())),
            leaves: Storage::new(leaf[0] * leaf[1] * (width + 2 * leaf[2]))?,
        })
    }
}

/// A stage with the buffers that it reads.
pub struct Sweep<'a, T> {
    /// The rows of fields and temporaries.
    pub field_rows: &'a FieldRows,
    /// The formula.
    pub bytecode: &'a Bytecode,
    /// The parameters, and then the computed scalars.
    pub scalars: &'a [T],
    /// The most values of a chunk.
    pub chunk: usize,
    /// The buffer of each field and temporary.
    pub reads: Vec<Option<Shared<'a, T>>>,
    /// How the stage's indices become those of each field; none where all are on one grid.
    pub levels: &'a [Levels],
}

/// An output of a stage and where it goes.
struct Target<'a, T> {
    name: usize,
    indices: Indices,
    buffer: Shared<'a, T>,
    /// Whether values are stored as they are computed. Not so where the stage taps what it overwrites, and
    /// where it computes values that are not kept.
    is_direct: bool,
}

/// The new values of a launch, to be computed.
pub struct Task<'a, T> {
    sweep: Sweep<'a, T>,
    targets: Vec<Option<Target<'a, T>>>,
    /// The box around those of all outputs.
    all: Indices,
}

impl<T: Real> Task<'_, T> {
    /// Computes all.
    pub fn run(&self, works: &mut [Work<T>]) {
        let [zs, ys, _] = &self.all;
        let rows = zs.len() * ys.len();
        share(works, rows, self.values_of(rows, 1), |work, band| {
            // SAFETY: bands are disjoint, and a launch reads no value that another band of it writes.
            unsafe { update_rows(self, work, band) };
        });
    }

    /// Returns the values of rows along an axis: lines along the second axis, planes along the slowest.
    pub fn values_of(&self, rows: usize, axis: usize) -> usize {
        rows * self.all[axis + 1..].iter().map(Range::len).product::<usize>()
    }

    /// Computes rows along an axis, counted from the first.
    ///
    /// # Safety
    ///
    /// No other thread writes what the stage reads there, or uses the new values.
    pub unsafe fn rows(&self, work: &mut Work<T>, axis: usize, rows: Range<usize>) {
        let lines = if axis == 0 { self.all[1].len() } else { 1 };
        // SAFETY: the caller promises it.
        unsafe { update_rows(self, work, rows.start * lines..rows.end * lines) };
    }
}

/// Calls `work` with bands of `rows` rows, on all threads where there are enough values.
pub fn share<T: Real>(
    works: &mut [Work<T>],
    rows: usize,
    values: usize,
    work: impl Fn(&mut Work<T>, Range<usize>) + Sync,
) {
    let bands = if values < FEW { 1 } else { rows.min(BANDS * works.len()) };
    let next = AtomicUsize::new(0);
    let all = |scratch: &mut Work<T>| loop {
        let band = next.fetch_add(1, Ordering::Relaxed);
        if band >= bands {
            break;
        }
        standard(|| work(scratch, rows * band / bands..rows * (band + 1) / bands));
    };
    match works {
        [] => {}
        [scratch, ..] if bands == 1 => all(scratch),
        _ => works.par_iter_mut().with_max_len(1).for_each(all),
    }
}

/// Returns whether a box holds all values of a field or temporary.
pub fn covers(field_rows: &FieldRows, name: usize, own: &Indices) -> bool {
    let kind = field_rows.kind(name);
    places(kind, own).iter().enumerate().all(|(axis, own)| own.len() == kind.extents[axis])
}

/// Copies the values of a field or temporary that a stage does not compute.
pub fn keep<T: Real>(field_rows: &FieldRows, name: usize, own: &Indices, [old, new]: [Shared<'_, T>; 2]) {
    if covers(field_rows, name, own) {
        return;
    }
    let kind = field_rows.kind(name);
    let (row, own) = (kind.extents[2], places(kind, own));
    for z in 0..kind.extents[0] {
        for y in 0..kind.extents[1] {
            let start = (z * kind.extents[1] + y) * row;
            let computed = if own[0].contains(&z) && own[1].contains(&y) { own[2].clone() } else { 0..0 };
            for part in [0..computed.start, computed.end..row] {
                let part = start + part.start..start + part.end;
                // SAFETY: nobody else uses the buffers between two launches.
                unsafe { new.write(part.clone()).copy_from_slice(old.read(part)) };
            }
        }
    }
}

/// Returns the places in a buffer of those of some indices that it holds.
fn places(kind: &Buffer, own: &Indices) -> [Range<usize>; 3] {
    [0, 1, 2].map(|axis| {
        let place = |at: isize| (at - kind.low[axis]).clamp(0, kind.extents[axis] as isize) as usize;
        place(own[axis].start)..place(own[axis].end)
    })
}

/// The sink of a row: where its new values go.
pub trait RowSink<T: Real> {
    /// Returns whether new values are stored as they are computed.
    fn is_direct(&self) -> bool;

    /// Computes a chunk of the row; `outputs` are scratch, one for each output.
    fn compute(&mut self, chunk: &Chunk<'_>, work: &mut Registers<'_, T>, taps: &impl Taps<T>);
}

/// The scratch in which a chunk is computed.
pub struct Registers<'w, T> {
    /// The scratch of the bytecode's steps.
    pub step_scratch: &'w mut StepScratch<T>,
    /// The values of the bytecode's scalars.
    pub scalars: &'w [T],
    /// The new values of outputs that are not stored as they are computed.
    pub outputs: &'w mut [Storage<T>],
}

impl<'a, T: Real> Sweep<'a, T> {
    /// Copies the values that the stage does not compute, and returns the task of computing the new values of the
    /// outputs over their own boxes; `None` where all boxes are empty.
    pub fn task(
        self,
        stage: &abide_core::Stage,
        own: &[Indices],
        launch: &Launch,
        buffers: &[Shared<'a, T>],
    ) -> Option<Task<'a, T>> {
        // Also where nothing is computed: the buffer that is written holds the field from now on.
        for ((&name, &write), own) in stage.writes.iter().zip(&launch.writes).zip(own) {
            let new = write.filter(|write| !launch.reads.contains(&Some(*write)));
            if let (Some(new), Some(old)) = (new, self.reads[name]) {
                keep(self.field_rows, name, own, [old, buffers[new]]);
            }
        }
        let all = around(own)?;
        let targets: Vec<Option<Target<'_, T>>> = (0..own.len())
            .map(|output| {
                let (name, buffer) = (stage.writes[output], launch.writes[output]?);
                let is_tapped = self.bytecode.rows.iter().any(|row| launch.reads[row.field] == Some(buffer));
                let is_direct = !is_tapped && own[output] == all;
                Some(Target { name, indices: own[output].clone(), buffer: buffers[buffer], is_direct })
            })
            .collect();
        Some(Task { sweep: self, targets, all })
    }

    /// Computes a row over a range of indices.
    #[inline(always)]
    pub fn row(&self, work: &mut Work<T>, at: [isize; 2], xs: &Range<isize>, sink: &mut impl RowSink<T>) {
        let Work { step_scratch, gathered, outputs, scalars, lines, .. } = work;
        let bytecode = self.bytecode;
        lines.clear();
        for row in &bytecode.rows {
            let [dz, dy] = bytecode.lines[row.line];
            let levels = self.levels.get(row.field).copied().unwrap_or_default();
            let place = [levels.index(at[0]) + dz, levels.index(at[1]) + dy];
            lines.push(self.field_rows.line(row.field, place).seen(levels));
        }
        let [head, tail] = self.ends(lines, xs);
        // The values that make choices of the formula are the outermost ones or few.
        let inner = bytecode.inner_of(at, xs.end);
        let is_plain = sink.is_direct() && lines.iter().all(|line| self.is_held(line));
        let mut start = xs.start;
        while start < xs.end {
            let (own, until) = inner.at(start);
            let part = [head, tail].into_iter().find(|&end| start < end).unwrap_or(xs.end).min(until);
            // Chunks of a part are of about one length, whole vectors: a short one costs nearly as much as a
            // long one.
            let left = (part - start) as usize;
            // Where scratch holds nothing, a chunk may be as long as the part between the ends.
            let is_between = is_plain && start >= head && part <= tail;
            let reads_along = bytecode.steps_of(own).reads_along();
            let chunk = if is_between && !reads_along { left } else { self.chunk };
            let length = left.div_ceil(left.div_ceil(chunk)).next_multiple_of(WIDEST);
            let end = part.min(start + length as isize);
            for (number, &TapAt { row, shift }) in bytecode.taps.iter().enumerate() {
                if !is_between && self.within(&lines[row], start + shift..end + shift).is_none() {
                    let to = &mut gathered[number][..(end - start) as usize];
                    self.field_rows.gather(lines[row], &self.reads, start, shift, to);
                }
            }
            let taps = RowTaps { sweep: self, lines, gathered, cells: start..end };
            let to = (start - xs.start) as usize..(end - xs.start) as usize;
            let ahead = Ahead { read: false, write: false };
            let chunk = Chunk { bytecode, first: start, to, ahead, inner: own };
            sink.compute(&chunk, &mut Registers { step_scratch, scalars, outputs }, &taps);
            start = end;
        }
    }

    /// Returns where the first part of a row ends and the last begins: those in which taps reach beyond what
    /// their rows hold and are gathered. Short rows have one part.
    #[inline(always)]
    fn ends(&self, lines: &[Line<T>], xs: &Range<isize>) -> [isize; 2] {
        let (mut head, mut tail) = (0, 0);
        for &TapAt { row, shift } in &self.bytecode.taps {
            // Rows that are nowhere as they are have to be gathered all along.
            if let Line::At { name, negated: false, .. } = lines[row] {
                let held = self.field_rows.held(name);
                head = head.max(held.start - shift - xs.start);
                tail = tail.max(xs.end + shift - held.end);
            }
        }
        let vectors = |cells: isize| (cells as usize).next_multiple_of(WIDEST) as isize;
        let (head, tail) = (vectors(head), vectors(tail));
        if xs.len() < SHORT || head + tail > xs.len() as isize {
            return [xs.end; 2];
        }
        [xs.start + head, xs.end - tail]
    }

    /// Returns the name of a row's buffer and the position there of the first of some indices, if the row holds
    /// them all as they are.
    #[inline(always)]
    fn within(&self, line: &Line<T>, cells: Range<isize>) -> Option<(usize, usize)> {
        let Line::At { name, start, negated: false } = *line else { return None };
        let held = self.field_rows.held(name);
        (cells.start >= held.start && cells.end <= held.end)
            .then(|| (name, start + (cells.start - held.start) as usize))
    }

    /// Returns whether a row lies in a buffer as it is.
    #[inline(always)]
    fn is_held(&self, line: &Line<T>) -> bool {
        matches!(*line, Line::At { name, negated: false, .. } if self.reads[name].is_some())
    }

    /// Computes the formula's scalars for a row.
    #[inline(always)]
    pub fn prepare(&self, work: &mut Work<T>, at: [isize; 2]) {
        self.bytecode.uniform.evaluate(&mut work.scalars, self.scalars, [at[0], at[1], 0], |_| T::ZERO);
    }
}

/// The taps of a chunk.
struct RowTaps<'s, 'a, T> {
    sweep: &'s Sweep<'a, T>,
    lines: &'s [Line<T>],
    gathered: &'s [Box<[T]>],
    cells: Range<isize>,
}

impl<T: Real> Taps<T> for RowTaps<'_, '_, T> {
    #[inline(always)]
    fn tap(&self, number: usize) -> &[T] {
        let (TapAt { row, shift }, len) = (self.sweep.bytecode.taps[number], self.cells.len());
        let cells = self.cells.start + shift..self.cells.end + shift;
        match self.sweep.within(&self.lines[row], cells) {
            Some((name, at)) => match self.sweep.reads[name] {
                // SAFETY: nobody writes a buffer that a launch taps away from the value's own place, and
                // values in place are written only when their chunk has been read.
                Some(buffer) => unsafe { buffer.read(at..at + len) },
                None => &self.gathered[number][..len],
            },
            None => &self.gathered[number][..len],
        }
    }
}

/// Computes the rows of a band, counted from the first of the slowest axis; compiled for each instruction
/// set.
///
/// # Safety
///
/// No other thread writes what the stage reads, or uses the new values of the band.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
unsafe fn update_rows<T: Real>(task: &Task<'_, T>, work: &mut Work<T>, band: Range<usize>) {
    let Task { sweep, targets, all: [zs, ys, xs] } = task;
    for row in band.clone() {
        let at = [zs.start + (row / ys.len()) as isize, ys.start + (row % ys.len()) as isize];
        if sweep.bytecode.varies_by_row || row == band.start {
            sweep.prepare(work, at);
        }
        sweep.row(work, at, xs, &mut Update { sweep, targets, at, first: xs.start });
    }
}

/// The row of an update.
struct Update<'s, 'a, T> {
    sweep: &'s Sweep<'a, T>,
    targets: &'s [Option<Target<'a, T>>],
    at: [isize; 2],
    /// The index of the row's first value.
    first: isize,
}

/// The new values of a chunk of an update.
struct Places<'u, 's, 'a, T> {
    update: &'u Update<'s, 'a, T>,
    scratch: &'u mut [Storage<T>],
}

impl<'a, T: Real> Update<'_, 'a, T> {
    /// Returns the values of a target, `range` counted from the row's first index.
    #[inline(always)]
    fn place(&self, target: &Target<'a, T>, range: &Range<usize>) -> &'a mut [T] {
        let at = [self.at[0], self.at[1], self.first + range.start as isize];
        let at = self.sweep.field_rows.kind(target.name).position(at);
        // SAFETY: by the contract of `update_rows` the values are this thread's; they are used up before
        // others of the row are asked for.
        unsafe { target.buffer.write(at..at + range.len()) }
    }
}

impl<T: Real> NewValues<T> for Places<'_, '_, '_, T> {
    #[inline(always)]
    fn cells(&mut self, output: usize, range: Range<usize>) -> &mut [T] {
        match &self.update.targets[output] {
            Some(target) if target.is_direct => self.update.place(target, &range),
            _ => self.scratch[output].first_mut(range.len()),
        }
    }
}

impl<T: Real> RowSink<T> for Update<'_, '_, T> {
    #[inline(always)]
    fn is_direct(&self) -> bool {
        self.targets.iter().all(|target| target.as_ref().is_some_and(|target| target.is_direct))
    }

    #[inline(always)]
    fn compute(&mut self, chunk: &Chunk<'_>, work: &mut Registers<'_, T>, taps: &impl Taps<T>) {
        chunk.compute(
            work.step_scratch,
            work.scalars,
            taps,
            &mut Places { update: self, scratch: work.outputs },
        );
        for (target, values) in self.targets.iter().zip(&*work.outputs) {
            let Some(target) = target.as_ref().filter(|target| !target.is_direct) else { continue };
            let [zs, ys, xs] = &target.indices;
            if !zs.contains(&self.at[0]) || !ys.contains(&self.at[1]) {
                continue;
            }
            let place =
                |at: isize| (at - self.first).clamp(chunk.to.start as isize, chunk.to.end as isize) as usize;
            let kept = place(xs.start)..place(xs.end);
            if !kept.is_empty() {
                let from = kept.start - chunk.to.start..kept.end - chunk.to.start;
                self.place(target, &kept).copy_from_slice(&values.first(chunk.to.len())[from]);
            }
        }
    }
}
