//! The kinds of boundary, each a row of a table.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::Serialize;

use super::scalar_name::ScalarName;
use crate::error::{Error, Result};

/// The place where a kernel finds the cell that a ghost cell shows: expressions of the index `i` along an
/// axis of `n` cells, which mean the same in C and WGSL.
#[derive(Debug, Clone, Copy)]
pub struct KindText {
    /// The constant's name; its value is the number of the table's row.
    pub constant: &'static str,
    /// The cell's index for `-n <= i < 0`.
    pub below: &'static str,
    /// The cell's index for `n <= i < 2 * n`.
    pub above: &'static str,
    /// Whether the cell lies at the same side as the ghost cell.
    pub shows_this_side: bool,
}

macro_rules! kinds {
    ($($(#[$meta:meta])* $kind:ident $(($value:ty))?, $name:literal, $constant:literal, $near:literal, $negated:literal, |$r:ident| $least:expr, |$i:ident, $n:ident| $below:expr, $above:expr;)*) => {
        /// The rule for the ghost cells beyond one side of the domain.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
        #[serde(rename_all = "lowercase")]
        pub enum Boundary {
            $($(#[$meta])* $kind $(($value))?,)*
            /// Ghost cells hold the value that a parameter or a computed scalar of this name has now; a
            /// [`Boundary::Constant`] in all else.
            Scalar(ScalarName),
            /// The inner side of a slab ([`crate::slabs`]), which no user asks for: ghost cells hold 0, and whatever
            /// depends on them is replaced before it is used. A [`Boundary::Constant`] in all else.
            Open,
        }

        impl Boundary {
            /// The notation of each kind.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The text of each kind in kernels.
            pub const TEXTS: &'static [KindText] = &[
                $(KindText {
                    constant: $constant,
                    below: stringify!($below),
                    above: stringify!($above),
                    shows_this_side: $near,
                }),*
            ];

            /// Returns one boundary of each kind, with this value if the kind takes one.
            pub fn each(value: f64) -> [Boundary; Boundary::NAMES.len()] {
                [$(Boundary::$kind $((value as $value))?),*]
            }

            /// Returns the boundary's notation, with a value as C.
            pub fn name(self) -> &'static str {
                match self { $(Boundary::$kind { .. } => $name,)* Boundary::Scalar(_) | Boundary::Open => Boundary::ONE_VALUE.name() }
            }

            /// Returns the name of the boundary's constant in kernels.
            pub fn constant(self) -> &'static str {
                match self { $(Boundary::$kind { .. } => $constant,)* Boundary::Scalar(_) | Boundary::Open => Boundary::ONE_VALUE.constant() }
            }

            /// Checks whether ghost cells show cells of this side, whose values change from stage to stage.
            pub fn shows_this_side(self) -> bool {
                match self { $(Boundary::$kind { .. } => $near,)* Boundary::Scalar(_) | Boundary::Open => false }
            }

            /// Checks whether ghost cells show cells with the opposite sign.
            pub fn is_negated(self) -> bool {
                match self { $(Boundary::$kind { .. } => $negated,)* Boundary::Scalar(_) | Boundary::Open => false }
            }

            /// Returns the least extent of an axis on which taps reach `radius` cells.
            pub(super) fn least_extent(self, radius: usize) -> usize {
                match self {
                    $(Boundary::$kind { .. } => {
                        let least: fn(usize) -> usize = |$r| $least;
                        least(radius)
                    })*
                    Boundary::Scalar(_) | Boundary::Open => Boundary::ONE_VALUE.least_extent(radius),
                }
            }

            /// Returns the index of the cell that the ghost cell at `i` shows on an axis of `n` cells.
            #[inline(always)]
            pub(super) fn shown(self, i: isize, n: isize) -> isize {
                match self {
                    $(Boundary::$kind { .. } => {
                        let ($i, $n) = (i, n);
                        if $i < 0 { $below } else { $above }
                    })*
                    Boundary::Scalar(_) | Boundary::Open => Boundary::ONE_VALUE.shown(i, n),
                }
            }
        }
    };
}

// Kind: its notation, its constant in kernels, whether ghost cells show cells of this side, whether they show
// them with the opposite sign, the least extent for a radius, and the index of the cell that each shows below
// the first and above the last cell.
kinds! {
    /// The outermost cells, as many as the program's radius on the axis, keep their initial values. No
    /// computed cell taps beyond the edge; the table has the nearest cell there.
    #[default]
    Fixed, "fixed", "FIXED", false, false, |_r| 0, |i, n| 0, n - 1;
    /// The domain goes on at its other side.
    Periodic, "periodic", "PERIODIC", false, false, |r| r, |i, n| i + n, i - n;
    /// Ghost cells mirror the edge, `u[-1] = u[0]`, `u[-2] = u[1]`: no flux.
    Mirror, "mirror", "MIRROR", true, false, |r| r, |i, n| -1 - i, n - 1 - i + n;
    /// Ghost cells mirror the outermost value, `u[-1] = u[1]`: no flux through a node.
    Reflect, "reflect", "REFLECT", true, false, |r| r + 1, |i, n| -i, n - 2 - i + n;
    /// Ghost cells mirror the edge with the opposite sign, `u[-1] = -u[0]`: zero at the edge.
    #[serde(rename = "-mirror")]
    MinusMirror, "-mirror", "MINUS_MIRROR", true, true, |r| r, |i, n| -1 - i, n - 1 - i + n;
    /// Ghost cells mirror the outermost value with the opposite sign, `u[-1] = -u[1]`.
    #[serde(rename = "-reflect")]
    MinusReflect, "-reflect", "MINUS_REFLECT", true, true, |r| r + 1, |i, n| -i, n - 2 - i + n;
    /// Ghost cells hold the value of the cell at the edge, `u[-k] = u[0]`: no gradient.
    Clamp, "clamp", "CLAMP", true, false, |_r| 0, |i, n| 0, n - 1;
    /// Ghost cells hold this value, in every field but coefficients ([`Problem::boundaries_of`](crate::Problem::boundaries_of)).
    Constant(f64), "constant=C", "CONSTANT", false, false, |_r| 0, |i, n| 0, n - 1;
}

impl Boundary {
    /// A constant, whose row of the table a scalar's value shares.
    const ONE_VALUE: Boundary = Boundary::Constant(0.0);

    /// Returns the value that ghost cells hold; 0 if they show cells.
    pub fn value(self) -> f64 {
        self.held().unwrap_or(0.0)
    }

    /// Returns the value that ghost cells hold, whatever the fields and scalars are; `None` if they show cells or a
    /// scalar's value.
    pub fn held(self) -> Option<f64> {
        match self {
            Boundary::Constant(value) => Some(value),
            Boundary::Open => Some(0.0),
            _ => None,
        }
    }

    /// Returns whether ghost cells hold a number or a scalar's value that a user asked for.
    pub fn holds_value(self) -> bool {
        matches!(self, Boundary::Constant(_) | Boundary::Scalar(_))
    }

    /// Returns one boundary of each plain kind.
    pub fn each_plain(value: f64) -> Vec<Boundary> {
        Boundary::each(value).into_iter().filter(|kind| kind.is_plain()).collect()
    }

    /// Returns one boundary of each plain kind that a side may have alone; a periodic axis has two such
    /// sides.
    pub fn each_alone(value: f64) -> Vec<Boundary> {
        Boundary::each_plain(value).into_iter().filter(|&kind| kind != Boundary::Periodic).collect()
    }

    /// Returns whether ghost cells mirror the outermost value, and not the edge. Between two such sides a single value has
    /// no other to show.
    pub fn mirrors_a_value(self) -> bool {
        self.least_extent(0) > 0
    }

    /// Returns whether every schedule can run the boundary; only a launch per stage shows cells with the opposite sign or
    /// a scalar's value.
    pub fn is_plain(self) -> bool {
        !self.is_negated() && !matches!(self, Boundary::Scalar(_))
    }

    /// Returns the names in a sentence, as in `fixed, periodic or constant=C`.
    pub fn names() -> String {
        match Boundary::NAMES.split_last() {
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

impl Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Boundary::Constant(value) => write!(f, "constant={value}"),
            Boundary::Scalar(name) => write!(f, "constant={name}"),
            Boundary::Open => f.write_str("open"),
            other => f.write_str(other.name()),
        }
    }
}

impl FromStr for Boundary {
    type Err = Error;

    /// Reads one of [`Boundary::NAMES`], where C is a finite number or a scalar's name; also reads
    /// `constant(C)`.
    fn from_str(text: &str) -> Result<Self> {
        let constant = text
            .strip_prefix("constant=")
            .or_else(|| text.strip_prefix("constant(").and_then(|rest| rest.strip_suffix(')')));
        let unknown = || {
            let names = Boundary::NAMES.iter().copied();
            let meaning = "where C is a finite number or the name of a scalar";
            Error::unknown("boundary", text, names.chain([meaning]))
        };
        let Some(constant) = constant else {
            // The kind that takes a value is written as `constant=0` here.
            let plain = Boundary::each(0.0).into_iter().find(|kind| kind.to_string() == text);
            return plain.ok_or_else(unknown);
        };
        match constant.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Boundary::Constant(value)),
            Ok(_) => Err(unknown()),
            Err(_) => constant.parse().map(Boundary::Scalar).map_err(|_| unknown()),
        }
    }
}
