//! What a function's formula does, recorded: kernels in other languages are written from it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Sub};

use super::Number;
use crate::real::{DType, Real};

/// The number of a step.
pub type Id = u32;

/// A step of a formula; operands are numbers of earlier steps. Each is the operation of [`Number`] of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Step {
    /// One of the function's arguments.
    Argument(u8),
    /// The bits of a constant in f64, which is one of the type's.
    Constant(u64),
    Negative(Id),
    Absolute(Id),
    /// The bits of the lowest significand in f64, here and in the next two.
    Significand(Id, u64),
    InverseExponent(Id, u64),
    InversePower(Id, u64),
    Add(Id, Id),
    Subtract(Id, Id),
    Multiply(Id, Id),
    Divide(Id, Id),
    WithSignOf(Id, Id),
    Reciprocal(Id),
    NearInverseCubeRoot(Id),
    Anchored(Id, Id),
    Whole(Id),
    /// Of a number, an anchor and a bit of it.
    Negated(Id, Id, u8),
    Raised(Id, Id),
    Lowered(Id, Id),
    /// The entry at an index in the table of a number.
    Entry(Id, u8),
    MulAdd(Id, Id, Id),
    Residue(Id, Id, Id),
    MinusExactly(Id, Id, Id),
    Choose(Id, Id, Id),
    /// The steps from here on are conditions.
    Less(Id, Id),
    Same(Id, Id),
    IsNan(Id),
    HasBit(Id, u8),
    IsBeyond(Id, Id),
    IsWithin(Id, Id),
    IsOutside(Id, Id, Id),
    And(Id, Id),
    Or(Id, Id),
}

impl Step {
    /// Returns whether the result is a condition.
    pub fn is_condition(self) -> bool {
        matches!(
            self,
            Step::Less(..)
                | Step::Same(..)
                | Step::IsNan(_)
                | Step::HasBit(..)
                | Step::IsBeyond(..)
                | Step::IsWithin(..)
                | Step::IsOutside(..)
                | Step::And(..)
                | Step::Or(..)
        )
    }

    /// Returns the floating-point operations that the step counts as: two for a fused multiply-add.
    pub fn flops(self) -> usize {
        match self {
            Step::Add(..) | Step::Subtract(..) | Step::Multiply(..) | Step::Divide(..) => 1,
            // A subtraction of what anchors have in common.
            Step::Reciprocal(_) | Step::Whole(_) => 1,
            // An anchor is a sum with a number so large that the sum is whole.
            Step::MulAdd(..) | Step::Residue(..) | Step::MinusExactly(..) | Step::Anchored(..) => 2,
            _ => 0,
        }
    }
}

/// A formula as steps in the order in which they are taken.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// The steps.
    pub steps: Vec<Step>,
    /// The step whose result is the formula's.
    pub result: Id,
    /// The tables that entries are read from.
    pub tables: Vec<&'static [f64]>,
}

impl Record {
    /// Returns whether the condition that is recorded holds for any arguments: no number is less than itself.
    pub fn is_possible(&self) -> bool {
        !matches!(self.steps[self.result as usize], Step::Less(a, b) if a == b)
    }
}

#[derive(Default)]
struct Steps {
    list: Vec<Step>,
    index: HashMap<Step, Id>,
    tables: Vec<&'static [f64]>,
}

/// A record in the making. Equal steps are taken once.
#[derive(Default)]
pub(super) struct Recorder {
    steps: RefCell<Steps>,
}

impl Recorder {
    fn put(&self, step: Step) -> Id {
        let Steps { list, index, .. } = &mut *self.steps.borrow_mut();
        *index.entry(step).or_insert_with(|| {
            list.push(step);
            (list.len() - 1) as Id
        })
    }

    /// Returns an argument of the function.
    pub fn argument<T>(&self, number: u8) -> Recorded<'_, T> {
        Recorded { recorder: self, id: self.put(Step::Argument(number)), of: PhantomData }
    }

    /// Returns the record of what leads to a step.
    pub fn finish(self, result: Id) -> Record {
        let Steps { list, tables, .. } = self.steps.into_inner();
        Record { steps: list, result, tables }
    }
}

/// A number, or a condition, that is recorded.
pub(super) struct Recorded<'r, T> {
    recorder: &'r Recorder,
    pub id: Id,
    of: PhantomData<T>,
}

impl<T> Clone for Recorded<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Recorded<'_, T> {}

impl<T> Recorded<'_, T> {
    fn put(self, step: Step) -> Self {
        Recorded { id: self.recorder.put(step), ..self }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $step:ident;)*) => {$(
        impl<T> $trait for Recorded<'_, T> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.put(Step::$step(self.id, other.id))
            }
        }
    )*};
}
operators! { Add add Add; Sub sub Subtract; Mul mul Multiply; Div div Divide; BitAnd bitand And; BitOr bitor Or; }

impl<T> Neg for Recorded<'_, T> {
    type Output = Self;
    fn neg(self) -> Self {
        let step = self.recorder.steps.borrow().list[self.id as usize];
        self.put(match step {
            Step::Constant(bits) => Step::Constant((-f64::from_bits(bits)).to_bits()),
            _ => Step::Negative(self.id),
        })
    }
}

impl<T: Real> Number for Recorded<'_, T> {
    type Truth = Self;
    const TYPE: DType = <T as Real>::DTYPE;

    fn constant(self, value: f64) -> Self {
        self.put(Step::Constant(T::from_f64(value).to_f64().to_bits()))
    }

    fn mul_add(self, a: Self, b: Self) -> Self {
        self.put(Step::MulAdd(self.id, a.id, b.id))
    }

    fn residue(self, a: Self, product: Self) -> Self {
        self.put(Step::Residue(self.id, a.id, product.id))
    }

    fn minus_exactly(self, a: Self, b: Self) -> Self {
        self.put(Step::MinusExactly(self.id, a.id, b.id))
    }

    fn absolute(self) -> Self {
        self.put(Step::Absolute(self.id))
    }

    fn with_sign_of(self, sign: Self) -> Self {
        self.put(Step::WithSignOf(self.id, sign.id))
    }

    fn anchored(self, factor: Self) -> Self {
        self.put(Step::Anchored(self.id, factor.id))
    }

    fn whole(self) -> Self {
        self.put(Step::Whole(self.id))
    }

    fn has_bit(self, bit: u8) -> Self {
        self.put(Step::HasBit(self.id, bit))
    }

    fn negated(self, anchor: Self, bit: u8) -> Self {
        self.put(Step::Negated(self.id, anchor.id, bit))
    }

    fn raised(self, anchor: Self) -> Self {
        self.put(Step::Raised(self.id, anchor.id))
    }

    fn lowered(self, anchor: Self) -> Self {
        self.put(Step::Lowered(self.id, anchor.id))
    }

    fn significand(self, lowest: f64) -> Self {
        self.put(Step::Significand(self.id, lowest.to_bits()))
    }

    fn inverse_exponent(self, lowest: f64) -> Self {
        self.put(Step::InverseExponent(self.id, lowest.to_bits()))
    }

    fn inverse_power(self, lowest: f64) -> Self {
        self.put(Step::InversePower(self.id, lowest.to_bits()))
    }

    fn reciprocal(self) -> Self {
        self.put(Step::Reciprocal(self.id))
    }

    fn near_inverse_cube_root(self) -> Self {
        self.put(Step::NearInverseCubeRoot(self.id))
    }

    fn entry(self, table: &'static [f64]) -> Self {
        let number = {
            let tables = &mut self.recorder.steps.borrow_mut().tables;
            let known = tables.iter().position(|known| std::ptr::eq(*known, table));
            known.unwrap_or_else(|| {
                tables.push(table);
                tables.len() - 1
            })
        };
        self.put(Step::Entry(self.id, number as u8))
    }

    fn less(self, other: Self) -> Self {
        self.put(Step::Less(self.id, other.id))
    }

    fn same(self, other: Self) -> Self {
        self.put(Step::Same(self.id, other.id))
    }

    fn is_nan(self) -> Self {
        self.put(Step::IsNan(self.id))
    }

    fn is_beyond(self, limit: Self) -> Self {
        self.put(Step::IsBeyond(self.id, limit.id))
    }

    fn is_within(self, limit: Self) -> Self {
        self.put(Step::IsWithin(self.id, limit.id))
    }

    fn is_outside(self, low: Self, high: Self) -> Self {
        self.put(Step::IsOutside(self.id, low.id, high.id))
    }

    fn choose(condition: Self, yes: Self, no: Self) -> Self {
        condition.put(Step::Choose(condition.id, yes.id, no.id))
    }
}
