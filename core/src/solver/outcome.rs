//! The states of a run, and the quantities that can end it: one table each. The kernels of every language get
//! their constants from these tables, and hosts read by them what a device says.

/// An enumeration that kernels know by constants. A row has a variant, its constant, and its meaning in
/// words.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($row:ident $constant:literal $words:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        pub enum $name {
            $(#[doc = concat!("`", $words, "`")] $row),*
        }

        impl $name {
            /// All variants, in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$row),*];

            /// Returns the variant of a number; `None` if there is none.
            pub fn of(number: u32) -> Option<$name> {
                $name::ALL.get(number as usize).copied()
            }

            /// Returns the name of the variant's constant in kernels.
            pub fn constant(self) -> &'static str {
                match self { $($name::$row => $constant),* }
            }

            /// Returns the variant's meaning, in words.
            pub fn words(self) -> &'static str {
                match self { $($name::$row => $words),* }
            }
        }
    };
}

numbered! {
    /// The state of a run. Some states occur on some devices only: kernels that are launched phase by phase
    /// have states between phases, and persistent kernels wait for each other.
    Status {
        Running "RUNNING" "iterating",
        Converged "CONVERGED" "the residual is small enough",
        Limited "ITERATIONS" "a limit on iterations",
        Stagnant "STAGNATION" "no progress",
        NotFinite "NOT_FINITE" "a quantity is not finite",
        NotPositive "NOT_POSITIVE" "a quantity is not positive",
        Vanished "VANISHED" "a quantity that is divided by is 0",
        Lost "LOST" "a wait was given up",
        Ended "ENDED" "ended as the history tells",
        Suspect "SUSPECT" "a recurred product is to be computed afresh",
        Renew "RENEW" "all recurred products are to be computed afresh",
        Confirm "CONFIRM" "a recurred residual is small enough: is the true one?",
        Closing "CLOSING" "GMRES's cycle is at its end",
    }
}

numbered! {
    /// The quantities that may end a run, in words as the methods' papers write them.
    Quantity {
        Residual "OF_RESIDUAL" "|r|",
        Rho "OF_RHO" "(r, M^-1 r)",
        Curvature "OF_CURVATURE" "(p, A p)",
        Form "OF_FORM" "(u, A u)",
        Shadow "OF_SHADOW" "rho = (r~, r)",
        ShadowProduct "OF_SHADOW_PRODUCT" "(r~, A M^-1 p)",
        Square "OF_SQUARE" "(t, t)",
        Omega "OF_OMEGA" "omega = (t, s) / (t, t)",
        Basis "OF_BASIS" "A M^-1 v",
        Determinant "OF_DETERMINANT" "the Hessenberg matrix's determinant",
        Next "OF_NEXT" "the next basis vector",
        TrueResidual "OF_TRUE_RESIDUAL" "|b - A x|",
        RightHandSide "OF_RIGHT_HAND_SIDE" "|b|",
    }
}

/// A device's statement on a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The state of the run.
    pub status: Status,
    /// The quantity that ended the run.
    pub quantity: Quantity,
    /// The value of that quantity.
    pub value: f64,
}

impl Status {
    /// Returns whether the run waits for a phase that looks into a recurred value or ends a cycle.
    pub fn awaits_mending(self) -> bool {
        matches!(self, Status::Suspect | Status::Renew | Status::Confirm | Status::Closing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_the_rows() {
        for (number, &status) in Status::ALL.iter().enumerate() {
            assert_eq!((status as usize, Status::of(number as u32)), (number, Some(status)));
        }
        for (number, &quantity) in Quantity::ALL.iter().enumerate() {
            assert_eq!((quantity as usize, Quantity::of(number as u32)), (number, Some(quantity)));
        }
        assert_eq!((Status::of(99), Quantity::of(99)), (None, None));
    }
}
