//! What instructions do: a table of codes, which the loops of `lanes` are made of too.
//!
//! An instruction works on an accumulator, which stays in registers. So each operator of two operands has two
//! codes: the accumulator is its left operand, or turned, its right one.

use abide_core::expr::{Binary, Unary};
#[cfg(all(target_arch = "x86_64", unix))]
use abide_core::functions::Function;

use super::step::Operand;

/// Hands the table to a macro: operators of one operand and of two, each first those that are an instruction
/// or a few of a machine, and then those that are calls of a function; then two codes that are one instruction,
/// each rounded by itself, because choosing what to do takes as long as a sum or a product.
macro_rules! with_codes {
    ($each:ident) => {
        $each! {
            [Neg Abs Sqrt Floor RoundF32 RoundF16 RoundBf16 Widened]
            [Exp Log Sin Cos Tanh Cbrt Expm1 Log1p Erf]
            [
                Add AddTurned, Sub SubTurned, Mul MulTurned, Div DivTurned, Min MinTurned, Max MaxTurned,
                Less LessTurned, LessEqual LessEqualTurned, Greater GreaterTurned,
                GreaterEqual GreaterEqualTurned, Equal EqualTurned, NotEqual NotEqualTurned,
            ]
            [Pow PowTurned, Atan2 Atan2Turned,]
            [
                LoadAdd Load Add, LoadSub Load Sub, LoadSubTurned Load SubTurned, LoadMul Load Mul,
                AddAdd Add Add, AddSub Add Sub, AddSubTurned Add SubTurned, AddMul Add Mul,
                SubAdd Sub Add, SubSub Sub Sub, SubSubTurned Sub SubTurned, SubMul Sub Mul,
                SubTurnedAdd SubTurned Add, SubTurnedSub SubTurned Sub,
                SubTurnedSubTurned SubTurned SubTurned, SubTurnedMul SubTurned Mul,
                MulAdd Mul Add, MulSub Mul Sub, MulSubTurned Mul SubTurned, MulMul Mul Mul,
            ]
        }
    };
}
pub(crate) use with_codes;

macro_rules! codes {
    (
        [$($one:ident)*] [$($one_called:ident)*]
        [$($two:ident $turned:ident,)*] [$($two_called:ident $turned_called:ident,)*]
        [$($both:ident $first:ident $second:ident,)*]
    ) => {
        /// What an instruction does with the accumulator and its operands `a` and `b`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Opcode {
            /// The accumulator becomes `a`.
            Load,
            /// `a` becomes the accumulator, which stays.
            Store,
            /// The accumulator becomes `a · b` and it, rounded once.
            FmaOnto,
            /// The accumulator becomes it times `a`, and `b`, rounded once.
            FmaBy,
            /// The accumulator becomes `a` where it is not zero, else `b`.
            SelectBy,
            /// The accumulator stays where `a` is not zero, and becomes `b` elsewhere.
            SelectYes,
            /// The accumulator stays where `a` is zero, and becomes `b` elsewhere.
            SelectNo,
            /// The accumulator, an index along the row, becomes a random number. Where `a` is stand its
            /// other operands, each as a group of cells, and the number of its stream and part.
            Draw,
            $(
                #[doc = "The accumulator goes through this operator."]
                $one,
            )*
            $(
                #[doc = "The accumulator goes through this operator."]
                $one_called,
            )*
            $(
                #[doc = "The operator's left operand is the accumulator, its right one `a`."]
                $two,
                #[doc = "The operator's right operand is the accumulator, its left one `a`."]
                $turned,
            )*
            $(
                #[doc = "The operator's left operand is the accumulator, its right one `a`."]
                $two_called,
                #[doc = "The operator's right operand is the accumulator, its left one `a`."]
                $turned_called,
            )*
            $(
                #[doc = "One code with `a`, then another with `b`."]
                $both,
            )*
        }

        impl Opcode {
            /// Returns the code of an operator of one operand.
            pub fn unary(op: Unary) -> Opcode {
                match op { $(Unary::$one => Opcode::$one,)* $(Unary::$one_called => Opcode::$one_called,)* }
            }

            /// Returns the code that does what two do, if there is one.
            fn both(first: Opcode, second: Opcode) -> Option<Opcode> {
                match (first, second) {
                    $((Opcode::$first, Opcode::$second) => Some(Opcode::$both),)*
                    _ => None,
                }
            }

            /// Returns the two codes that a code stands for, the first with `a` and the second with `b`; `None`
            /// for one that stands for itself.
            #[cfg(all(target_arch = "x86_64", unix))]
            pub fn parts(self) -> Option<[Opcode; 2]> {
                match self {
                    $(Opcode::$both => Some([Opcode::$first, Opcode::$second]),)*
                    _ => None,
                }
            }

            /// Returns the function that a code calls, and whether the accumulator is its second argument.
            #[cfg(all(target_arch = "x86_64", unix))]
            pub fn called(self) -> Option<(Function, bool)> {
                match self {
                    $(Opcode::$one_called => Some((Function::$one_called, false)),)*
                    $(
                        Opcode::$two_called => Some((Function::$two_called, false)),
                        Opcode::$turned_called => Some((Function::$two_called, true)),
                    )*
                    _ => None,
                }
            }

            /// Returns the code of an operator whose left operand is the accumulator, or `turned`, its right.
            pub fn binary(op: Binary, turned: bool) -> Opcode {
                match (op, turned) {
                    $((Binary::$two, false) => Opcode::$two, (Binary::$two, true) => Opcode::$turned,)*
                    $(
                        (Binary::$two_called, false) => Opcode::$two_called,
                        (Binary::$two_called, true) => Opcode::$turned_called,
                    )*
                }
            }
        }
    };
}
with_codes!(codes);

/// One instruction; `O` says where an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction<O = Operand> {
    /// What it does.
    pub does: Opcode,
    /// Its operands besides the accumulator; any where it uses none.
    pub a: O,
    /// See `a`.
    pub b: O,
}

impl<O> Instruction<O> {
    /// Returns the instruction with its operands named otherwise.
    pub fn map<P>(self, name: impl Fn(O) -> P) -> Instruction<P> {
        Instruction { does: self.does, a: name(self.a), b: name(self.b) }
    }
}

impl Instruction {
    /// Returns the instruction that does what this one and then `next` do, if there is one.
    pub fn and(self, next: Instruction) -> Option<Instruction> {
        Some(Instruction { does: Opcode::both(self.does, next.does)?, a: self.a, b: next.a })
    }
}
