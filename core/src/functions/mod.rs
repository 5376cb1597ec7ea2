//! The elementary functions as formulas: the same bits wherever they are computed.
//!
//! A function is one branch-free formula over the few exact or once-rounded operations of [`Number`]. With `f32`
//! and `f64` it is the value on a CPU, in loops that compilers turn into vector instructions; with a type that
//! records, it becomes the text of kernels ([`Function::record`]). Few arguments are rare, such as those whose
//! results overflow: for all others a shorter formula gives the same bits.

mod atan2;
mod cbrt;
mod circular;
mod erf;
mod exp;
mod expm1;
mod log;
mod log1p;
mod number;
mod pow;
mod record;
mod tanh;

pub use number::Number;
pub use record::{Id, Record, Step};

use crate::real::{DType, Real};
use circular::{cos, sin};
use record::Recorder;

/// One of the formulas of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Whether the arguments are rare: a condition.
    Rare,
    /// The value of arguments that are not rare.
    Common,
    /// The value of arguments that are rare.
    Other,
}

macro_rules! functions {
    (
        one { $($one:ident $one_name:ident in $one_at:ident;)* }
        two { $($two:ident $two_name:ident in $two_at:ident;)* }
    ) => {
        /// An elementary function.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Function {
            $(#[doc = concat!("See [`", stringify!($one_name), "`].")] $one,)*
            $(#[doc = concat!("See [`", stringify!($two_name), "`].")] $two,)*
        }

        impl Function {
            /// All functions.
            pub const ALL: &'static [Function] = &[$(Function::$one,)* $(Function::$two,)*];

            /// Returns the name in messages and in formulas.
            pub fn name(self) -> &'static str {
                match self {
                    $(Function::$one => stringify!($one_name),)*
                    $(Function::$two => stringify!($two_name),)*
                }
            }

            /// Returns the number of arguments.
            pub fn arguments(self) -> usize {
                match self {
                    $(Function::$one => 1,)*
                    $(Function::$two => 2,)*
                }
            }

            fn record_of<T: Real>(self, form: Form) -> Record {
                let recorder = Recorder::default();
                let [x, y] = [0, 1].map(|number| recorder.argument::<T>(number));
                let result = match (self, form) {
                    $(
                        (Function::$one, Form::Rare) => $one_at::is_rare(x),
                        (Function::$one, Form::Common) => $one_at::common(x),
                        (Function::$one, Form::Other) => $one_at::other(x),
                    )*
                    $(
                        (Function::$two, Form::Rare) => $two_at::is_rare(x, y),
                        (Function::$two, Form::Common) => $two_at::common(x, y),
                        (Function::$two, Form::Other) => $two_at::other(x, y),
                    )*
                };
                let result = result.id;
                recorder.finish(result)
            }

            /// Replaces each of `values` by the function of it; by that of it and what `other` returns for its
            /// index, where the function has two arguments, or, `turned`, of both in the opposite order. All of
            /// them go through the same formula, in loops that become vector instructions.
            #[inline(always)]
            pub fn replace<N: Number<Truth = bool>>(self, values: &mut [N], other: impl Fn(usize) -> N, turned: bool) {
                let pair = |i: usize, value: N| if turned { [other(i), value] } else { [value, other(i)] };
                match self {
                    $(
                        Function::$one => {
                            let is_rare = values.iter().fold(false, |any, &x| any | $one_at::is_rare(x));
                            if is_rare {
                                values.iter_mut().for_each(|value| *value = $one_at::full(*value));
                            } else {
                                values.iter_mut().for_each(|value| *value = $one_at::common(*value));
                            }
                        }
                    )*
                    $(
                        Function::$two => {
                            let mut is_rare = false;
                            for (i, &value) in values.iter().enumerate() {
                                let [x, y] = pair(i, value);
                                is_rare |= $two_at::is_rare(x, y);
                            }
                            if is_rare {
                                for (i, value) in values.iter_mut().enumerate() {
                                    let [x, y] = pair(i, *value);
                                    *value = $two_at::full(x, y);
                                }
                            } else {
                                for (i, value) in values.iter_mut().enumerate() {
                                    let [x, y] = pair(i, *value);
                                    *value = $two_at::common(x, y);
                                }
                            }
                        }
                    )*
                }
            }
        }

        $(
            #[doc = concat!("Returns `", stringify!($one_name), "` of any argument.")]
            pub fn $one_name<N: Number<Truth = bool>>(x: N) -> N {
                if $one_at::is_rare(x) { $one_at::full(x) } else { $one_at::common(x) }
            }
        )*
        $(
            #[doc = concat!("Returns `", stringify!($two_name), "` of any arguments.")]
            pub fn $two_name<N: Number<Truth = bool>>(x: N, y: N) -> N {
                if $two_at::is_rare(x, y) { $two_at::full(x, y) } else { $two_at::common(x, y) }
            }
        )*
    };
}

functions! {
    one {
        Exp exp in exp;
        Log log in log;
        Sin sin in sin;
        Cos cos in cos;
        Tanh tanh in tanh;
        Cbrt cbrt in cbrt;
        Expm1 expm1 in expm1;
        Log1p log1p in log1p;
        Erf erf in erf;
    }
    two {
        Pow pow in pow;
        Atan2 atan2 in atan2;
    }
}

/// How fast a device computes a function, and whether it has the bits of this crate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FunctionRate {
    /// Values per second by the formula.
    pub formula: f64,
    /// Values per second by the platform's own function.
    pub platform: f64,
    /// Values of the formula whose bits are others.
    pub wrong: usize,
}

impl Function {
    /// Returns ordinary arguments, those that functions are timed with, by a number in 0..1.
    pub fn ordinary(self, at: f64) -> [f64; 2] {
        let x = match self {
            Function::Log | Function::Log1p | Function::Pow => 0.1 + 10.0 * at,
            Function::Erf => 6.0 * at - 3.0,
            _ => 20.0 * at - 10.0,
        };
        [x, 3.0 - 6.0 * at]
    }

    /// Returns the function of a name.
    pub fn named(name: &str) -> Option<Function> {
        Function::ALL.iter().copied().find(|function| function.name() == name)
    }

    /// Returns the steps of a form of the function's formula in a type.
    pub fn record(self, dtype: DType, form: Form) -> Record {
        match dtype {
            DType::F32 => self.record_of::<f32>(form),
            DType::F64 => self.record_of::<f64>(form),
        }
    }
}
