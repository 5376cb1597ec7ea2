//! The steps of a tape, carried out for one chunk of a row.

use std::ops::Range;

use abide_core::Real;

use crate::lanes::{self, Source};
use crate::rings::Storage;
use crate::sum::{Ahead, Sum};
use crate::tape::{Op, Operand, Place, Tape, Term};

/// The values that the taps of a chunk read.
pub trait Taps<T> {
    /// Returns the values of a tap, one for each value of the chunk.
    fn tap(&self, number: usize) -> &[T];
}

/// The places of a row's new values.
pub trait NewValues<T> {
    /// Returns the new values of an output, `range` counted from the first computed cell of the row.
    fn cells(&mut self, output: usize, range: Range<usize>) -> &mut [T];
}

/// A chunk of a row to be computed.
pub struct Chunk<'a> {
    /// The formula.
    pub tape: &'a Tape,
    /// The coordinate along the row of the first value.
    pub first: isize,
    /// The place of the new values in the sink.
    pub to: Range<usize>,
    /// Rows that memory is asked for ahead of their use.
    pub ahead: Ahead,
}

impl Chunk<'_> {
    /// Computes the new values. `slots` are as long as the chunk.
    #[inline(always)]
    pub fn compute<T: Real>(
        &self,
        slots: &mut [Storage<T>],
        scalars: &[T],
        taps: &impl Taps<T>,
        sink: &mut impl NewValues<T>,
    ) {
        let len = self.to.len();
        for step in &self.tape.steps {
            let mut taken = Storage::empty();
            let place = match step.place {
                // No step reads the slot it writes, so the slot can be taken out while the others are read.
                Place::Slot(slot) => {
                    taken = std::mem::replace(&mut slots[slot], Storage::empty());
                    taken.first_mut(len)
                }
                Place::Output(output) => sink.cells(output, self.to.clone()),
            };
            let at = |operand| match operand {
                Operand::Scalar(number) => Source::Scalar(scalars[number]),
                Operand::Slot(slot) => Source::Lanes(slots[slot].first(len)),
                Operand::Tap(number) => Source::Lanes(taps.tap(number)),
            };
            match step.op {
                Op::Copy(a) => lanes::copy(place, at(a)),
                Op::Index => lanes::index(place, self.first),
                Op::Unary(op, a) => lanes::apply1(op, place, at(a)),
                Op::Binary(op, a, b) => lanes::apply2(op, place, at(a), at(b)),
                Op::Scaled(scale, op, a, b) => lanes::scaled(op, place, scalars[scale], at(a), at(b)),
                Op::Product(a, b, c) => lanes::product(place, at(a), at(b), at(c)),
                Op::Fma(a, b, c) => lanes::fma(place, at(a), at(b), at(c)),
                Op::Select(c, yes, no) => lanes::select(place, at(c), at(yes), at(no)),
                Op::Sum(ref terms, scale) => {
                    let mut sum = Sum::default();
                    for &Term { weight, operand } in terms {
                        // The tape puts no scalar here.
                        if let Source::Lanes(values) = at(operand) {
                            sum.add(scalars[weight], values);
                        }
                    }
                    sum.store(place, scale.map(|scale| scalars[scale]), self.ahead);
                }
            }
            if let Place::Slot(slot) = step.place {
                slots[slot] = taken;
            }
        }
    }
}
