//! One stage over all computed cells: bands of rows on all threads.

use std::ops::Range;

use abide_core::{Real, Result};
use multiversion::multiversion;

use crate::bytecode::{Bytecode, InnerPart};
use crate::chunk::{Buffer, Memory, Row, Scratch, Sink, TapRow};
use crate::region::{Line, Region};
use crate::rings::Walk;
use crate::steps::NewValues;
use crate::sum::Ahead;
use crate::threads::join;

/// The data that all bands of a stage share.
pub struct Stage<'a, T> {
    /// The computed cells.
    pub region: &'a Region,
    /// The formula.
    pub bytecode: &'a Bytecode,
    /// The parameters' values.
    pub parameters: &'a [T],
    /// The old values of all fields.
    pub old: &'a [Vec<T>],
    /// Cells of a chunk.
    pub chunk: usize,
}

/// The old values of the whole domain.
struct Arrays<'a, T>(&'a [Vec<T>]);

// SAFETY: the arrays are borrowed.
unsafe impl<T> Memory<T> for Arrays<'_, T> {
    #[inline(always)]
    fn cells(&self, buffer: Buffer, range: Range<usize>) -> &[T] {
        match buffer {
            Buffer::Field(field) => &self.0[field][range],
            // A sweep has no rings.
            Buffer::Ring(_) => &[],
        }
    }

    #[inline(always)]
    fn all(&self, buffer: Buffer) -> *const [T] {
        match buffer {
            Buffer::Field(field) => &self.0[field][..],
            Buffer::Ring(_) => &[],
        }
    }
}

/// A part of the region, and the scratch of the thread that sweeps it.
pub struct Band<T> {
    units: Range<usize>,
    scratch: Scratch<T>,
    lines: Vec<Line>,
}

impl<T: Real> Band<T> {
    /// Returns a band of some units, with scratch for any of the bytecodes. All scratch is allocated here, none
    /// in a sweep.
    pub fn new(units: Range<usize>, region: &Region, bytecodes: &[&Bytecode], chunk: usize) -> Result<Self> {
        let lines =
            Vec::with_capacity(bytecodes.iter().map(|bytecode| bytecode.lines.len()).max().unwrap_or(0));
        Ok(Band { units, scratch: Scratch::new(region, bytecodes, chunk)?, lines })
    }
}

/// The new values of a stage's outputs, from an index of the domain on.
pub struct Outputs<'a, T> {
    /// The values, in the order of the formula's outputs.
    values: Vec<&'a mut [T]>,
    origin: usize,
    /// The index at which the row being computed begins, and the cells from it to the next row.
    row: usize,
    width: usize,
}

impl<'a, T> Outputs<'a, T> {
    /// Returns the outputs of a stage that writes the fields `writes`, taken from the new values of all
    /// fields.
    pub fn new(new: &'a mut [Vec<T>], writes: &[usize]) -> Self {
        let mut buffers: Vec<Option<&mut [T]>> = new.iter_mut().map(|buffer| Some(&mut buffer[..])).collect();
        // Each field is written by one output.
        let values = writes.iter().map(|&field| buffers[field].take().unwrap_or_default()).collect();
        Outputs { values, origin: 0, row: 0, width: 0 }
    }

    fn split(self, at: usize) -> (Self, Self) {
        let halves = self.values.into_iter();
        let (low, high) =
            halves.map(|values| values.split_at_mut((at - self.origin).min(values.len()))).unzip();
        (
            Outputs { values: low, origin: self.origin, row: 0, width: 0 },
            Outputs { values: high, origin: at, row: 0, width: 0 },
        )
    }
}

impl<T> NewValues<T> for Outputs<'_, T> {
    #[inline(always)]
    fn cells(&mut self, output: usize, range: Range<usize>) -> &mut [T] {
        &mut self.values[output][self.row + range.start..self.row + range.end]
    }
}

// SAFETY: the new values are borrowed to be written.
unsafe impl<T> Sink<T> for Outputs<'_, T> {
    #[inline(always)]
    fn all(&mut self, output: usize) -> (*mut [T], Walk) {
        (&mut *self.values[output], Walk::domain(self.row, self.width))
    }

    #[inline(always)]
    fn done(&mut self, rows: usize) {
        self.row += rows * self.width;
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
            join(|| sweep(stage, low, outputs_low), || sweep(stage, high, outputs_high));
        }
    }
}

/// Returns whether additions should become multiply-adds: only if [`rows`] has them as single instructions
/// here.
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

/// Computes the rows of a band; compiled for each instruction set.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))]
fn rows<T: Real>(stage: &Stage<'_, T>, band: &mut Band<T>, mut outputs: Outputs<'_, T>) {
    let Stage { region, bytecode, parameters, chunk, .. } = *stage;
    let (Band { units, scratch, lines }, memory) = (band, Arrays(stage.old));
    let mut row = Row {
        region,
        bytecode,
        memory: &memory,
        chunk,
        window: 0..0,
        ahead: Ahead { read: true, write: true },
        inner: InnerPart::default(),
    };
    outputs.width = region.width();
    let mut number = units.start;
    while number < units.end {
        let unit = region.unit(number);
        let [z, y] = unit.row;
        row.inner = bytecode.inner_of([z as isize, y as isize], region.width() as isize);
        if bytecode.varies_in(&row.inner) || number == units.start {
            bytecode
                .uniform
                .evaluate(&mut scratch.scalars, parameters, [z as isize, y as isize, 0], |_| T::ZERO);
        }
        lines.clear();
        lines.extend(bytecode.lines.iter().map(|&[dz, dy]| region.line([z as isize + dz, y as isize + dy])));
        scratch.rows.clear();
        for row in &bytecode.rows {
            scratch.rows.push(match lines[row.line] {
                Line::At(start) => TapRow::At(Buffer::Field(row.field), Walk::domain(start, region.width())),
                Line::Constant(side) => TapRow::Constant(side),
            });
        }
        outputs.row = region.index(&unit) - outputs.origin;
        let beside = if bytecode.varies_by_row { 1 } else { region.beside(unit.row, &bytecode.reach) };
        let count = beside.min(units.end - number).max(1);
        row.run(scratch, &mut outputs, unit.cells.start as isize..unit.cells.end as isize, count);
        number += count;
    }
}
