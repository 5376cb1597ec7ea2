//! One stage over all computed cells: bands of rows on all threads, each row in chunks, each chunk by the tape.
//!
//! A tap is a slice of the old array, shifted. Only where a chunk's tap reaches beyond an end of its row is it
//! gathered into scratch first; a row that itself lies beyond the domain is another row, or a row of constants.
//! All scratch belongs to a band and is allocated with the session.

use std::ops::Range;

use abide_core::Real;
use abide_core::grid::Source as Found;
use abide_core::program::MAX_FIELDS;
use multiversion::multiversion;

use crate::lanes::{self, Source};
use crate::region::{Line, Region};
use crate::tape::{Op, Operand, Place, Tape, Term};

/// What all bands of a stage share.
pub struct Stage<'a, T> {
    /// The computed cells.
    pub region: &'a Region,
    /// The formula.
    pub tape: &'a Tape,
    /// The parameters' values.
    pub parameters: &'a [T],
    /// The old values of all fields.
    pub old: &'a [Vec<T>],
    /// Cells of a chunk.
    pub chunk: usize,
}

/// A part of the region, and the scratch of whichever thread sweeps it.
pub struct Band<T> {
    units: Range<usize>,
    slots: Vec<Box<[T]>>,
    gathered: Vec<Box<[T]>>,
    constants: [[Box<[T]>; 2]; 2],
    scalars: Vec<T>,
    lines: Vec<Line>,
}

impl<T: Real> Band<T> {
    /// A band of some units, with scratch for any of the tapes.
    pub fn new(units: Range<usize>, region: &Region, tapes: &[&Tape], chunk: usize) -> Self {
        let most = |of: fn(&Tape) -> usize| tapes.iter().map(|&tape| of(tape)).max().unwrap_or(0);
        let lanes = |value: T| vec![value; chunk].into_boxed_slice();
        let rows = |count: usize| (0..count).map(|_| lanes(T::ZERO)).collect();
        let constant = |axis: usize, side: usize| {
            region.constant(axis, side).map(|value| lanes(T::from_f64(value))).unwrap_or_default()
        };
        Band {
            units,
            slots: rows(most(|tape| tape.slots)),
            gathered: rows(if region.reaches_out() { most(|tape| tape.taps.len()) } else { 0 }),
            constants: [0, 1].map(|axis| [0, 1].map(|side| constant(axis, side))),
            scalars: Vec::with_capacity(most(|tape| tape.uniform.nodes.len())),
            lines: Vec::with_capacity(most(|tape| tape.lines.len())),
        }
    }
}

/// The new values of a stage's outputs, from some index of the domain on.
pub struct Outputs<'a, T> {
    /// The values, in the order of the formula's outputs; empty beyond the last.
    values: [&'a mut [T]; MAX_FIELDS],
    origin: usize,
}

impl<'a, T> Outputs<'a, T> {
    /// The outputs of a stage that writes the fields `writes`, taken from the new values of all fields.
    pub fn new(new: &'a mut [Vec<T>], writes: &[usize]) -> Self {
        let mut values = std::array::from_fn(|_| <&mut [T]>::default());
        for (field, buffer) in new.iter_mut().enumerate() {
            if let Some(output) = writes.iter().position(|&written| written == field) {
                values[output] = buffer;
            }
        }
        Outputs { values, origin: 0 }
    }

    fn split(self, at: usize) -> (Self, Self) {
        let mut high = std::array::from_fn(|_| <&mut [T]>::default());
        let mut low = std::array::from_fn(|_| <&mut [T]>::default());
        for (i, values) in self.values.into_iter().enumerate() {
            (low[i], high[i]) = values.split_at_mut((at - self.origin).min(values.len()));
        }
        (Outputs { values: low, origin: self.origin }, Outputs { values: high, origin: at })
    }
}

/// Carries out a stage on the threads of the pool that this is called in.
pub fn sweep<T: Real>(stage: &Stage<'_, T>, bands: &mut [Band<T>], outputs: Outputs<'_, T>) {
    match bands {
        [] => {}
        [band] => rows(stage, band, outputs),
        _ => {
            let (low, high) = bands.split_at_mut(bands.len() / 2);
            let at = high.first().map_or(0, |band| stage.region.index(&stage.region.unit(band.units.start)));
            let (outputs_low, outputs_high) = outputs.split(at);
            rayon::join(|| sweep(stage, low, outputs_low), || sweep(stage, high, outputs_high));
        }
    }
}

/// Whether additions should become multiply-adds: only if [`rows`] has them as single instructions here.
pub fn has_fused_multiply_add() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(any(
        target_arch = "aarch64",
        target_arch = "powerpc64",
        target_arch = "s390x",
        target_arch = "riscv64"
    ));
}

/// The rows of a band, compiled for each instruction set.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn rows<T: Real>(stage: &Stage<'_, T>, band: &mut Band<T>, mut outputs: Outputs<'_, T>) {
    let Stage { region, tape, parameters, .. } = *stage;
    // Where nothing is kept in slots, a chunk may be as long as no tap of it reaches beyond an end of the row.
    let reach = [-1, 1].map(|side| tape.taps.iter().map(|tap| side * tap.shift).max().unwrap_or(0).max(0) as usize);
    for number in band.units.clone() {
        let unit = region.unit(number);
        let [z, y] = unit.row;
        if tape.varies_by_row || number == band.units.start {
            tape.uniform.evaluate(&mut band.scalars, parameters, [z, y, 0], |_| T::ZERO);
        }
        band.lines.clear();
        band.lines.extend(tape.lines.iter().map(|&offset| region.line(unit.row, offset)));
        let all_at_hand = band.lines.iter().all(|line| matches!(line, Line::At(_)));
        let long =
            (tape.slots == 0 && all_at_hand).then(|| unit.cells.end.min(region.width().saturating_sub(reach[1])));
        let mut to = region.index(&unit) - outputs.origin;
        let mut start = unit.cells.start;
        while start < unit.cells.end {
            let len = match long {
                Some(end) if start >= reach[0] && end > start => end - start,
                _ => stage.chunk.min(unit.cells.end - start),
            };
            chunk(stage, band, &mut outputs.values, start..start + len, to);
            start += len;
            to += len;
        }
    }
}

/// One chunk: the cells `cells` of the row that the band is at, whose new values go to `to` in the outputs.
#[inline(always)]
fn chunk<T: Real>(
    stage: &Stage<'_, T>,
    band: &mut Band<T>,
    outputs: &mut [&mut [T]; MAX_FIELDS],
    cells: Range<usize>,
    to: usize,
) {
    gather(stage, band, &cells);
    for step in &stage.tape.steps {
        let mut taken: Box<[T]> = Box::default();
        let place = match step.place {
            // No step reads the slot it writes, so the slot can be taken out while the others are read.
            Place::Slot(slot) => {
                taken = std::mem::take(&mut band.slots[slot]);
                &mut taken[..cells.len()]
            }
            Place::Output(output) => &mut outputs[output][to..to + cells.len()],
        };
        let at = |operand| operand_of(stage, band, &cells, operand);
        match step.op {
            Op::Copy(a) => lanes::copy(place, at(a)),
            Op::Index => lanes::index(place, cells.start),
            Op::Unary(op, a) => lanes::apply1(op, place, at(a)),
            Op::Binary(op, a, b) => lanes::apply2(op, place, at(a), at(b)),
            Op::Fma(a, b, c) => lanes::fma(place, at(a), at(b), at(c)),
            Op::Select(c, yes, no) => lanes::select(place, at(c), at(yes), at(no)),
            Op::Sum(ref terms) => lanes::sum(place, terms.len(), |number| {
                let Term { weight, operand } = terms[number];
                match operand_of(stage, band, &cells, operand) {
                    Source::Lanes(values) => (band.scalars[weight], values),
                    // The tape puts no scalar here.
                    Source::Scalar(_) => (band.scalars[weight], &[]),
                }
            }),
        }
        if let Place::Slot(slot) = step.place {
            band.slots[slot] = taken;
        }
    }
}

/// The cells that a tap of a chunk means, if they all lie in the row.
#[inline(always)]
fn within(cells: &Range<usize>, shift: isize, width: usize) -> Option<Range<usize>> {
    let start = cells.start.checked_add_signed(shift)?;
    (start + cells.len() <= width).then(|| start..start + cells.len())
}

#[inline(always)]
fn operand_of<'a, T: Real>(
    stage: &Stage<'a, T>,
    band: &'a Band<T>,
    cells: &Range<usize>,
    operand: Operand,
) -> Source<'a, T> {
    let len = cells.len();
    Source::Lanes(match operand {
        Operand::Scalar(number) => return Source::Scalar(band.scalars[number]),
        Operand::Slot(slot) => &band.slots[slot][..len],
        Operand::Tap(number) => {
            let tap = stage.tape.taps[number];
            match band.lines[tap.line] {
                Line::Constant([axis, side]) => &band.constants[axis][side][..len],
                Line::At(row) => match within(cells, tap.shift, stage.region.width()) {
                    Some(at) => &stage.old[tap.field][row + at.start..row + at.end],
                    None => &band.gathered[number][..len],
                },
            }
        }
    })
}

/// Gathers the taps of a chunk that reach beyond an end of the row.
#[inline(always)]
fn gather<T: Real>(stage: &Stage<'_, T>, band: &mut Band<T>, cells: &Range<usize>) {
    let width = stage.region.width();
    if band.gathered.is_empty() {
        return;
    }
    for (number, tap) in stage.tape.taps.iter().enumerate() {
        let Line::At(row) = band.lines[tap.line] else { continue };
        if within(cells, tap.shift, width).is_some() {
            continue;
        }
        let row = &stage.old[tap.field][row..row + width];
        let to = &mut band.gathered[number][..cells.len()];
        let start = cells.start as isize + tap.shift;
        // In chunk coordinates, the cells that lie in the row are copied at once.
        let low = (-start).clamp(0, to.len() as isize) as usize;
        let high = (width as isize - start).clamp(low as isize, to.len() as isize) as usize;
        if low < high {
            let from = (start + low as isize) as usize;
            to[low..high].copy_from_slice(&row[from..from + high - low]);
        }
        for i in (0..low).chain(high..to.len()) {
            to[i] = match stage.region.along_row(start + i as isize) {
                Found::Cell(x) => row[x],
                Found::Value(value) => T::from_f64(value),
            };
        }
    }
}
