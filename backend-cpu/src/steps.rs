//! The steps of a bytecode, carried out for one chunk of a row.
//!
//! Where all values lie is found once for the chunk. Instructions are then carried out on one group of cells
//! after another: a few vectors, so that the value that passes from one instruction to the next stays in
//! registers, and all slots in the first-level cache.

use std::ops::Range;

use abide_core::{Real, Result};
use multiversion::multiversion;
use multiversion::target::target_cfg_f;

use crate::bytecode::{Bytecode, Instruction, Steps};
use crate::lanes::{FEW_VECTORS, MOST_VECTORS, carry_out, group, least, zero};
#[cfg(target_arch = "x86_64")]
use crate::rings::LINE_BYTES;
use crate::rings::Storage;
use crate::sum::{Ahead, Sum};

/// The values that the taps of a chunk read.
pub trait Taps<T> {
    /// Returns the values of a tap, one for each value of the chunk.
    fn tap(&self, number: usize) -> &[T];
}

/// The places of a row's new values.
pub trait NewValues<T> {
    /// Returns the new values of an output, `range` counted from the first computed cell of the row. Those of
    /// two outputs do not overlap.
    fn cells(&mut self, output: usize, range: Range<usize>) -> &mut [T];
}

/// The values of an operand in memory; machine instructions find the address in its first word.
#[repr(C)]
struct Values<T> {
    at: *mut T,
    /// All ones where each cell of the chunk has a place of its own; zero where each group has the same.
    moves: usize,
}

impl<T> Clone for Values<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Values<T> {}

impl<T> Values<T> {
    /// Prefetches the `G` lines from a cell of the chunk on. The hardware prefetches along few rows at a time,
    /// and a bytecode alternates between many.
    #[inline(always)]
    fn ask<const G: usize>(self, start: usize) {
        #[cfg(target_arch = "x86_64")]
        if self.moves != 0 {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let at = self.at.wrapping_add(start).cast::<i8>();
            for line in 0..G {
                // SAFETY: a prefetch is a hint; it faults at no address and changes no value. SSE is part of
                // x86-64.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.wrapping_add(line * LINE_BYTES)) };
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = start;
    }

    /// Returns values that each group finds in the same place.
    fn of_group(values: &mut [T]) -> Self {
        Values { at: values.as_mut_ptr(), moves: 0 }
    }

    /// Returns the place for the group that begins at a cell of the chunk.
    #[inline(always)]
    fn group(self, start: usize) -> *mut T {
        // Wrapping, because only those that carry out an instruction know which operands it uses.
        self.at.wrapping_add(start & self.moves)
    }
}

/// The scratch in which a thread carries out bytecodes.
pub struct StepScratch<T> {
    /// A group of values for each slot.
    slots: Storage<T>,
    /// A group of the same value for each scalar of the bytecode.
    scalars: Storage<T>,
    /// A small group of values for each tap, and each output, of a chunk that is shorter.
    short: Storage<T>,
    /// The coordinates along the row of a chunk's cells, where a bytecode reads them.
    along: Storage<T>,
    /// The operands of the chunk that is being computed.
    operands: Vec<Values<T>>,
}

// SAFETY: the pointers are used only while a chunk is computed, by the thread that put them there.
unsafe impl<T: Send> Send for StepScratch<T> {}

impl<T: Real> StepScratch<T> {
    /// Allocates scratch for any of the bytecodes. Chunks of those that read the coordinate along the row have at most
    /// `chunk` cells, rounded up to whole vectors.
    pub fn new(bytecodes: &[&Bytecode], chunk: usize) -> Result<Self> {
        let most =
            |of: fn(&Bytecode) -> usize| bytecodes.iter().map(|&bytecode| of(bytecode)).max().unwrap_or(0);
        let groups = |count: usize| Storage::new(count * group::<T>());
        Ok(StepScratch {
            slots: groups(most(Bytecode::slots))?,
            scalars: groups(most(|bytecode| bytecode.uniform.nodes.len()))?,
            short: groups(most(|bytecode| bytecode.taps.len() + bytecode.outputs))?,
            along: match bytecodes.iter().any(|bytecode| bytecode.reads_along()) {
                true => Storage::new(chunk.saturating_add(group::<T>()))?,
                false => Storage::empty(),
            },
            operands: Vec::with_capacity(most(Bytecode::operands)),
        })
    }
}

/// A chunk of a row to be computed.
pub struct Chunk<'a> {
    /// The formula.
    pub bytecode: &'a Bytecode,
    /// The coordinate along the row of the first value.
    pub first: isize,
    /// The place of the new values in the sink.
    pub to: Range<usize>,
    /// Rows that are prefetched.
    pub ahead: Ahead,
    /// The number of the steps among [`Bytecode::inner`], for cells that make no choice.
    pub inner: Option<usize>,
}

impl Chunk<'_> {
    /// Computes the new values.
    #[inline(always)]
    pub fn compute<T: Real>(
        &self,
        step_scratch: &mut StepScratch<T>,
        scalars: &[T],
        taps: &impl Taps<T>,
        sink: &mut impl NewValues<T>,
    ) {
        let code = match self.bytecode.steps_of(self.inner) {
            Steps::Code(code) => code,
            Steps::Sum(weighted) => {
                let mut sum = Sum::default();
                for term in &weighted.terms {
                    sum.add(scalars[term.weight], taps.tap(term.tap));
                }
                let scale = weighted.scale.map(|scale| scalars[scale]);
                sum.store(sink.cells(0, self.to.clone()), scale, self.ahead);
                return;
            }
        };
        let (len, group, least) = (self.to.len(), group::<T>(), least::<T>());
        // A short chunk is computed as a whole group, from copies of its taps.
        let is_short = len < least;
        let StepScratch { slots, scalars: same, short, along, operands } = step_scratch;
        let taps_of = self.bytecode.taps.len();
        let short = short.first_mut((taps_of + self.bytecode.outputs) * least);
        let (short_taps, short_outputs) = short.split_at_mut(taps_of * least);
        let same = same.first_mut(scalars.len() * group);
        for (same, &scalar) in same.chunks_exact_mut(group).zip(scalars) {
            // Most chunks find it there from the one before.
            if same[0].to_bits64() != scalar.to_bits64() {
                same.fill(scalar);
            }
        }
        operands.clear();
        let slots = slots.first_mut(code.slots * group).chunks_exact_mut(group);
        operands.extend(slots.chain(same.chunks_exact_mut(group)).map(Values::of_group));
        for number in 0..taps_of {
            let mut values = &taps.tap(number)[..len];
            if is_short {
                let copy = &mut short_taps[number * least..][..least];
                copy[..len].copy_from_slice(values);
                values = copy;
            }
            // Nothing is stored to a tap.
            operands.push(Values { at: values.as_ptr().cast_mut(), moves: usize::MAX });
        }
        for number in 0..self.bytecode.outputs {
            let values = match is_short {
                true => &mut short_outputs[number * least..][..least],
                false => &mut sink.cells(number, self.to.clone())[..len],
            };
            operands.push(Values { at: values.as_mut_ptr(), moves: usize::MAX });
        }
        if code.reads_along {
            let along = along.first_mut(len.max(least));
            for (cell, value) in (self.first..).zip(&mut *along) {
                *value = T::from_f64(cell as f64);
            }
            operands.push(Values { at: along.as_mut_ptr(), moves: usize::MAX });
        }
        // SAFETY: the operands are in the order that the code counts them in. All are borrowed here: groups, and
        // taps, outputs and coordinates of `len` cells or a whole group. Outputs overlap nothing that is read.
        unsafe {
            #[cfg(all(target_arch = "x86_64", unix))]
            match &code.native {
                Some(native) => native.run::<T>(operands.as_ptr().cast(), len.max(least)),
                None => groups(&code.instructions, operands, len.max(least)),
            }
            #[cfg(not(all(target_arch = "x86_64", unix)))]
            groups(&code.instructions, operands, len.max(least));
        }
        if is_short {
            for number in 0..self.bytecode.outputs {
                let cells = sink.cells(number, self.to.clone());
                cells.copy_from_slice(&short_outputs[number * least..][..len]);
            }
        }
    }
}

/// Carries out instructions on `len` cells, at least [`least`] of them; compiled for each instruction set.
///
/// # Safety
///
/// The operands that are stored to have places, and all others values, for as many cells, or for a group where
/// they do not move. Outputs overlap nothing else. Meanwhile nobody else uses them.
// Where there are vectors of 512 bits, the machine's own instructions (`native`) do this, if the system lets them.
#[cfg_attr(unix, multiversion(targets("x86_64+avx2+fma")))]
#[cfg_attr(
    not(unix),
    multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl+avx2+fma", "x86_64+avx2+fma"))
)]
unsafe fn groups<T: Real>(code: &[Instruction<u32>], operands: &[Values<T>], len: usize) {
    // With wide registers, and many of them, larger groups cost less for each cell.
    let is_wide = target_cfg_f!(target_feature = "avx512f");
    // SAFETY: the caller promises it.
    unsafe {
        match (size_of::<T>(), is_wide) {
            (4, true) => groups_of::<T, 16, MOST_VECTORS>(code, operands, len),
            (4, false) => groups_of::<T, 16, 4>(code, operands, len),
            (_, true) => groups_of::<T, 8, MOST_VECTORS>(code, operands, len),
            (_, false) => groups_of::<T, 8, 4>(code, operands, len),
        }
    }
}

/// Carries out instructions on groups of `G` vectors of `V` cells, and at the end of a few.
///
/// # Safety
///
/// The conditions of [`groups`].
#[inline(always)]
unsafe fn groups_of<T: Real, const V: usize, const G: usize>(
    code: &[Instruction<u32>],
    operands: &[Values<T>],
    len: usize,
) {
    let (large, small) = (G * V, FEW_VECTORS * V);
    let mut start = 0;
    while start < len {
        let left = len - start;
        // A group that reaches beyond the end repeats cells of those before, whose new values are the same
        // again. Two small groups take about as long as a large one.
        // SAFETY: the caller promises it.
        unsafe {
            if left >= large || left > 2 * small && len >= large {
                // Prefetched two groups in advance: CloverLeaf on 960² becomes a tenth faster.
                operands.iter().for_each(|values| values.ask::<G>(start + 2 * large));
                one_group::<T, V, G>(code, operands, start.min(len - large));
                start += large;
            } else {
                one_group::<T, V, FEW_VECTORS>(code, operands, start.min(len - small));
                start += small;
            }
        }
    }
}

/// Carries out instructions on the group of cells that begins at `start`.
///
/// # Safety
///
/// The conditions of [`groups`]; also, the group lies among the cells.
#[inline(always)]
unsafe fn one_group<T: Real, const V: usize, const G: usize>(
    code: &[Instruction<u32>],
    operands: &[Values<T>],
    start: usize,
) {
    let mut accumulator = zero::<T, V, G>();
    for &Instruction { does, a, b } in code {
        let (a, b) = (operands[a as usize].group(start), operands[b as usize].group(start));
        // SAFETY: the caller promises it.
        accumulator = unsafe { carry_out::<T, V, G>(does, accumulator, a, b) };
    }
}

#[cfg(test)]
mod tests;
