//! The operators. The row of an operator in a table has all that planning, the CPU and both kernel languages
//! have to know of it.
//!
//! Every operator has the same bits on CPUs and on CUDA: it is rounded correctly, or the formula of an elementary
//! [`Function`], whose row in `core/src/functions` says what it is.
//!
//! Only one thing is left open by a row: how errors pass through the operator on wgpu.
//! `backend-wgpu/src/accuracy` says that, and the compiler finds an operator that is missing there.

use super::{Expr, IntoExpr};
use crate::functions::{self, Function};
use crate::real::Real;

/// The notation of an operator of two operands in C and WGSL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// A sign between its operands.
    Infix(&'static str),
    /// A function of this name, in C and in WGSL.
    Call(&'static str, &'static str),
    /// The first operand if this relation holds between the two, else the second.
    Choose(&'static str),
    /// 1 if this relation holds between the operands, else 0.
    Relation(&'static str),
}

macro_rules! unary {
    ($($(#[$doc:meta])* $op:ident $method:ident: $flops:literal, $c:literal, $wgsl:literal, |$x:ident| $value:expr;)*) => {
        /// Operators of one operand.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Unary {
            $($(#[$doc])* $op),*
        }

        /// The functions of the operators of one operand, for a number type.
        pub trait Elementary: Sized {
            $($(#[$doc])* fn $method(self) -> Self;)*
        }

        macro_rules! elementary {
            ($real:ident) => {
                impl Elementary for $real {
                    $(
                        #[inline(always)]
                        fn $method(self) -> Self {
                            let $x = self;
                            $value
                        }
                    )*
                }
            };
        }
        elementary!(f32);
        elementary!(f64);

        impl Unary {
            /// All operators of one operand.
            pub const ALL: &'static [Unary] = &[$(Unary::$op),*];

            /// Returns the floating-point operations that the operator counts as.
            pub fn flops(self) -> usize {
                match self { $(Unary::$op => $flops),* }
            }

            /// Returns the operator's name in messages.
            pub fn name(self) -> &'static str {
                match self { $(Unary::$op => stringify!($method)),* }
            }

            /// Returns the function whose formula the operator stands for, if it is one.
            pub fn function(self) -> Option<Function> {
                Function::named(self.name())
            }

            /// Returns the text that C writes before the operand in parentheses.
            pub fn c(self) -> &'static str {
                match self { $(Unary::$op => $c),* }
            }

            /// Returns the text that WGSL writes before the operand in parentheses.
            pub fn wgsl(self) -> &'static str {
                match self { $(Unary::$op => $wgsl),* }
            }
        }

        /// Returns the value of an operator of one operand.
        #[inline(always)]
        pub fn unary<T: Real>(op: Unary, a: T) -> T {
            match op { $(Unary::$op => Elementary::$method(a)),* }
        }

        impl<'g> Expr<'g> {
            $(
                $(#[$doc])*
                pub fn $method(self) -> Expr<'g> {
                    self.unary(Unary::$op)
                }
            )*
        }
    };
}

// Operator and method: operations, C, WGSL, its value in either type.
unary! {
    /// The opposite sign.
    Neg negated: 0, "-", "-", |x| -x;
    /// Absolute value.
    Abs abs: 0, "fabs", "abs", |x| x.abs();
    /// Square root, correctly rounded.
    Sqrt sqrt: 1, "sqrt", "sqrt", |x| x.sqrt();
    /// The greatest whole number that is not greater.
    Floor floor: 1, "floor", "floor", |x| x.floor();
    /// This rounded to binary32.
    RoundF32 round_f32: 0, "round_f32", "round_f32", |x| x.through_f32(|x| x);
    /// This rounded to binary32, and then to binary16: infinite from 65520 on.
    RoundF16 round_f16: 0, "round_f16", "round_f16", |x| x.through_f32(|x| half::f16::from_f32(x).to_f32());
    /// This rounded to binary32, and then to the 8 bits of bfloat16.
    RoundBf16 round_bf16: 0, "round_bf16", "round_bf16", |x| x.through_f32(|x| half::bf16::from_f32(x).to_f32());
    /// This as a value of the run's type: what follows from it is computed in that type, whatever the precision of its fields.
    Widened widened: 0, "real", "real", |x| x;
    /// e to the power of this, within 0.90 units in the last place.
    Exp exp: 29, "formula_exp", "formula_exp", |x| functions::exp(x);
    /// Natural logarithm, within 0.92 units in the last place.
    Log log: 33, "formula_log", "formula_log", |x| functions::log(x);
    /// Sine of radians, within 0.90 units in the last place.
    Sin sin: 44, "formula_sin", "formula_sin", |x| functions::sin(x);
    /// Cosine of radians, within 0.90 units in the last place.
    Cos cos: 44, "formula_cos", "formula_cos", |x| functions::cos(x);
    /// Hyperbolic tangent, within 0.99 units in the last place.
    Tanh tanh: 32, "formula_tanh", "formula_tanh", |x| functions::tanh(x);
    /// Cube root, within 0.75 units in the last place.
    Cbrt cbrt: 25, "formula_cbrt", "formula_cbrt", |x| functions::cbrt(x);
    /// e to the power of this, less one, within 0.95 units in the last place.
    Expm1 expm1: 38, "formula_expm1", "formula_expm1", |x| functions::expm1(x);
    /// Natural logarithm of this and one, within 0.97 units in the last place.
    Log1p log1p: 38, "formula_log1p", "formula_log1p", |x| functions::log1p(x);
    /// Error function, within 0.78 units in the last place.
    Erf erf: 116, "formula_erf", "formula_erf", |x| functions::erf(x);
}

macro_rules! binary {
    ($(#[doc = $doc:literal] $op:ident $(as $method:ident)?: $flops:literal, $text:expr, |$a:ident, $b:ident| $value:expr;)*) => {
        /// Operators of two operands. Comparisons give 1 where they hold and 0 where they do not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Binary {
            $(#[doc = $doc] $op),*
        }

        impl Binary {
            /// All operators of two operands.
            pub const ALL: &'static [Binary] = &[$(Binary::$op),*];

            /// Returns the floating-point operations that the operator counts as.
            pub fn flops(self) -> usize {
                match self { $(Binary::$op => $flops),* }
            }

            /// Returns the function whose formula the operator stands for, if it is one.
            pub fn function(self) -> Option<Function> {
                match self.text() {
                    Text::Call(c, _) => c.strip_prefix("formula_").and_then(Function::named),
                    _ => None,
                }
            }

            /// Returns the notation in C and WGSL.
            pub fn text(self) -> Text {
                match self { $(Binary::$op => $text),* }
            }
        }

        /// Returns the value of an operator of two operands.
        #[inline(always)]
        pub fn binary<T: Real>(op: Binary, a: T, b: T) -> T {
            match op {
                $(Binary::$op => {
                    let ($a, $b) = (a, b);
                    $value
                })*
            }
        }

        impl<'g> Expr<'g> {
            $($(
                #[doc = $doc]
                pub fn $method(self, right: impl IntoExpr<'g>) -> Expr<'g> {
                    self.binary(Binary::$op, right)
                }
            )?)*
        }
    };
}

fn truth<T: Real>(holds: bool) -> T {
    if holds { T::ONE } else { T::ZERO }
}

// Operator and method: operations, its notation, its value. The first four are Rust's
// operators.
binary! {
    /// The sum.
    Add: 1, Text::Infix("+"), |a, b| a + b;
    /// The difference.
    Sub: 1, Text::Infix("-"), |a, b| a - b;
    /// The product.
    Mul: 1, Text::Infix("*"), |a, b| a * b;
    /// The quotient.
    Div: 1, Text::Infix("/"), |a, b| a / b;
    /// The smaller; `right` where either is NaN.
    Min as min: 0, Text::Choose("<"), |a, b| if a < b { a } else { b };
    /// The larger; `right` where either is NaN.
    Max as max: 0, Text::Choose(">"), |a, b| if a > b { a } else { b };
    /// This to the power of `right`, within 0.97 units in the last place.
    Pow as pow: 110, Text::Call("formula_pow", "formula_pow"), |a, b| functions::pow(a, b);
    /// The angle in radians of the point (`right`, this), within 0.96 units in the last place.
    Atan2 as atan2: 53, Text::Call("formula_atan2", "formula_atan2"), |a, b| functions::atan2(a, b);
    /// 1 where this is less than `right`, else 0.
    Less as lt: 0, Text::Relation("<"), |a, b| truth(a < b);
    /// 1 where this is at most `right`, else 0.
    LessEqual as le: 0, Text::Relation("<="), |a, b| truth(a <= b);
    /// 1 where this is greater than `right`, else 0.
    Greater as gt: 0, Text::Relation(">"), |a, b| truth(a > b);
    /// 1 where this is at least `right`, else 0.
    GreaterEqual as ge: 0, Text::Relation(">="), |a, b| truth(a >= b);
    /// 1 where both are equal, else 0.
    Equal as eq: 0, Text::Relation("=="), |a, b| truth(a == b);
    /// 1 where both differ, else 0.
    NotEqual as ne: 0, Text::Relation("!="), |a, b| truth(a != b);
}

impl Binary {
    /// Returns the relation as C and WGSL write it; `None` if this is no comparison.
    pub fn relation(self) -> Option<&'static str> {
        match self.text() {
            Text::Relation(sign) => Some(sign),
            _ => None,
        }
    }
}

/// Hands the names of all operators of one operand to a macro, which makes a loop of its own for each.
#[doc(hidden)]
#[macro_export]
macro_rules! with_unary_operators {
    ($each:ident) => {
        $each!(Neg Abs Sqrt Floor RoundF32 RoundF16 RoundBf16 Widened Exp Log Sin Cos Tanh Cbrt Expm1 Log1p Erf)
    };
}

/// Hands the names of all operators of two operands to a macro, which makes a loop of its own for each.
#[doc(hidden)]
#[macro_export]
macro_rules! with_binary_operators {
    ($each:ident) => {
        $each!(Add Sub Mul Div Min Max Pow Atan2 Less LessEqual Greater GreaterEqual Equal NotEqual)
    };
}
